//! Who watches, where the launcher may not: each rank its neighbour, and what started it; each node the next.
//!
//! Every rank holds one end of a socket pair, its lifeline; the rank before it on the node holds the other. The first
//! ranks of nodes have connections to those of the next and the previous node (`ring.rs`). A rank that leaves in order says
//! goodbye on its lines first. One that dies does not, and the kernel closes its ends; a host that is lost does not answer
//! the questions that the kernel asks it on connections. Whoever finds out ends the job, and passes the reason on, so that a
//! ring of many ends at once and not one by one. So each rank watches one other, a node's first rank up to two more,
//! whatever their number, with a descriptor for each and one for itself, and one thread that sleeps. The parent is watched
//! too, by a descriptor of its process: a launcher that was killed cannot end its ranks.
//!
//! Guaranteed: within two seconds of such an end this process is gone; where a host is lost, or a line is cut, within two
//! seconds of the time that the kernels take to be sure ([`SILENCE`]). A rank that is stopped is no dead one. Not guaranteed:
//! that a death is seen while a child that the rank forked, and that did not exec, still holds its lines; the
//! launcher sees it then. Nor that a node is watched which could not be connected to: a line at the start says so.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, Signal};

use super::abort::Aborter;
use super::network::line::{Line, is_silence};
use super::ring::{self, SILENCE};
use super::wire::{Frame, Kind};
use crate::error::{Error, Result};

/// How long the launcher has to end this process, after it was told.
const GRACE: Duration = Duration::from_secs(1);
/// How long a node that watches the previous one waits for the word of the other that does.
const DEFERENCE: Duration = Duration::from_millis(500);
/// It polls, and writes a line; but what is thread-local in the program's libraries lies there too.
const STACK: usize = 256 << 10;

/// A rank's watch.
pub(super) struct Guard {
    rank: usize,
    aborter: Aborter,
    /// While nobody is on duty.
    lines: Lines,
    on_duty: Option<OnDuty>,
}

/// The thread, and what it ends by: the closing of a pipe.
struct OnDuty {
    thread: JoinHandle<Lines>,
    stop: OwnedFd,
}

/// What a rank is watched by, and what it watches.
#[derive(Default)]
struct Lines {
    /// Open as long as this rank lives.
    own: Option<Line>,
    neighbours: Vec<Neighbour>,
}

/// Another rank, whose end is the job's. It says goodbye first, if all is well.
pub(super) struct Neighbour {
    pub(super) line: Line,
    pub(super) rank: usize,
    /// The name of its host, if it is of another node: then it watches this rank, too.
    pub(super) host: Option<String>,
    /// Whether a third rank watches it, which is to say what has happened.
    pub(super) by_another_too: bool,
}

/// What started this process. It has nothing to say.
struct Parent {
    descriptor: OwnedFd,
    pid: i32,
}

/// Why the job is to end.
#[derive(Debug, PartialEq, Eq)]
struct End {
    why: String,
    /// Whether somebody else has found out, and said so.
    told: bool,
}

impl Guard {
    /// For a rank with these neighbours on other nodes.
    pub(super) fn new(rank: usize, aborter: Aborter, neighbours: Vec<Neighbour>) -> Self {
        Self { rank, aborter, lines: Lines { own: None, neighbours }, on_duty: None }
    }

    /// The end of this rank's lifeline that a neighbour is to have.
    pub(super) fn lifeline(&mut self) -> Result<OwnedFd> {
        let (ours, theirs) = socket_pair()?;
        self.lines.own = Some(Line::new(ours));
        Ok(theirs)
    }

    /// Begins to watch.
    pub(super) fn watch(&mut self, neighbour: usize, lifeline: Option<OwnedFd>) -> Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.neighbours.extend(lifeline.map(|descriptor| Neighbour {
            line: Line::new(descriptor),
            rank: neighbour,
            host: None,
            by_another_too: false,
        }));
        let parent = rustix::process::getppid().and_then(|parent| {
            let descriptor = rustix::process::pidfd_open(parent, PidfdFlags::empty()).ok()?;
            Some(Parent { descriptor, pid: parent.as_raw_nonzero().get() })
        });
        let (stopped, stop) = pipe()?;
        let (rank, aborter) = (self.rank, self.aborter.clone());
        let duty = move || {
            if let Some(end) = lines.keep(parent, &stopped) {
                end_the_job(rank, &aborter, &mut lines, &end);
            }
            lines
        };
        let start = |source| Error::System { call: "starting the thread that watches the neighbours", source };
        // The thread inherits the mask: a program's signals go to the program's threads.
        let _blocked = progress_thread::block_all_but_faults().map_err(start)?;
        let thread = std::thread::Builder::new()
            .name(format!("armci-guard-{rank}"))
            .stack_size(STACK)
            .spawn(duty)
            .map_err(start)?;
        self.on_duty = Some(OnDuty { thread, stop });
        Ok(())
    }

    /// How many ranks of other nodes it is to watch.
    #[cfg(test)]
    pub(super) fn watched_beyond(&self) -> usize {
        self.lines.neighbours.len()
    }

    /// Ends the watch, and tells whoever watches this rank that it leaves in order.
    pub(super) fn stop(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        // First: a neighbour that answers the goodbye and is gone has not died.
        if let Some(OnDuty { thread, stop }) = self.on_duty.take() {
            drop(stop);
            // It panics nowhere; and if it did, the watch is over all the same.
            lines = thread.join().unwrap_or_default();
        }
        lines.say_goodbye();
    }
}

/// Sockets rather than a pipe: writing to one that nobody reads need not raise `SIGPIPE`.
fn socket_pair() -> Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|errno| Error::system("socketpair", errno))
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(|errno| Error::system("pipe2", errno))
}

impl Lines {
    /// Sleeps until something watched ends badly, and says what; nothing if the watch is over.
    fn keep(&mut self, parent: Option<Parent>, stopped: &OwnedFd) -> Option<End> {
        let mut found: Option<(String, Instant)> = None;
        loop {
            // Before the first sleep too: what has come while a line was made wakes nobody.
            let mut index = 0;
            while let Some(neighbour) = self.neighbours.get_mut(index) {
                let why = match neighbour.hear() {
                    Word::None => {
                        index += 1;
                        continue;
                    }
                    Word::Goodbye => None,
                    Word::End(why) => return Some(End { why, told: true }),
                    Word::Lost(why) if !neighbour.by_another_too => return Some(End { why, told: false }),
                    Word::Lost(why) => Some(why),
                };
                self.neighbours.swap_remove(index);
                found = found.or(why.map(|why| (why, Instant::now() + DEFERENCE)));
            }
            let sockets = self.neighbours.iter().filter_map(|neighbour| Some(neighbour.line.socket()?.0));
            let parents = parent.iter().map(|parent| parent.descriptor.as_fd());
            let descriptors = [stopped.as_fd()].into_iter().chain(parents).chain(sockets);
            let mut polled: Vec<_> =
                descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
            let left = found.as_ref().map(|(_, until)| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // Whatever makes this fail, a launcher still watches.
            let ready = retry_on_intr(|| rustix::event::poll(&mut polled, left.as_ref())).ok()?;
            let mut signs = polled.iter().map(|source| !source.revents().is_empty());
            if signs.next() == Some(true) {
                return None;
            }
            if let Some(Parent { pid, .. }) = parent.as_ref().filter(|_| signs.next() == Some(true)) {
                let why = died(&format!("process {pid}, which started this rank,"));
                return Some(End { why, told: false });
            }
            if let Some((why, _)) = found.take_if(|_| ready == 0) {
                return Some(End { why, told: false });
            }
        }
    }

    /// Tells all that watch this rank, or are watched by it on other nodes, why the job ends.
    fn tell(&mut self, why: &str) {
        let beyond = self.neighbours.iter_mut().filter(|neighbour| neighbour.host.is_some());
        for line in self.own.iter_mut().chain(beyond.map(|neighbour| &mut neighbour.line)) {
            line.send(Frame::encode(Kind::Failed, why.as_bytes()).into());
        }
    }

    /// Says goodbye, to other nodes until it is heard.
    fn say_goodbye(mut self) {
        if let Some(own) = &mut self.own {
            own.send(Frame::encode(Kind::Goodbye, &[]).into());
        }
        let beyond = self.neighbours.into_iter().filter(|neighbour| neighbour.host.is_some());
        ring::farewell(beyond.map(|neighbour| neighbour.line).collect());
    }
}

/// What came from a neighbour.
enum Word {
    None,
    Goodbye,
    /// The job is to end.
    End(String),
    /// It is there no more.
    Lost(String),
}

impl Neighbour {
    fn hear(&mut self) -> Word {
        self.line.receive();
        loop {
            match self.line.next() {
                Ok(Some(Frame { kind: Kind::Goodbye, .. })) => return Word::Goodbye,
                Ok(Some(Frame { kind: Kind::Failed, payload })) => {
                    return Word::End(String::from_utf8_lossy(&payload).into_owned());
                }
                Ok(Some(_)) => {}
                Ok(None) if self.line.socket().is_some() => return Word::None,
                Ok(None) => return Word::Lost(self.lost()),
                Err(error) => return Word::Lost(format!("rank {} speaks what cannot be read: {error}", self.rank)),
            }
        }
    }

    /// What has happened to it, as far as its line tells.
    fn lost(&self) -> String {
        match (&self.host, self.line.broken()) {
            (None, _) => died(&format!("rank {}", self.rank)),
            (Some(host), None | Some(Errno::CONNRESET)) => died(&format!("rank {} on host {host}", self.rank)),
            (Some(host), Some(errno)) if is_silence(errno) => format!(
                "host {host} (rank {}) has not answered for {} seconds: it is down, or its network is",
                self.rank,
                SILENCE.as_secs()
            ),
            (Some(host), Some(errno)) => format!("the connection to host {host} (rank {}) broke: {errno}", self.rank),
        }
    }
}

fn died(who: &str) -> String {
    format!("{who} has died without leaving the job")
}

/// Says why, tells the neighbours, asks the launcher for the end, and if that does not come, makes it.
fn end_the_job(rank: usize, aborter: &Aborter, lines: &mut Lines, end: &End) {
    if !end.told {
        // Without a reader of standard error, the end must do.
        let _ = std::io::stderr().write_all(format!("armci: rank {rank}: {}: ending it\n", end.why).as_bytes());
    }
    lines.tell(&end.why);
    aborter.abort(1, &end.why);
    std::thread::sleep(GRACE);
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// Lines to one neighbour, and its end of it.
    fn watched(host: Option<&str>) -> (Lines, Line) {
        let (ours, theirs) = socket_pair().unwrap();
        (watching(ours, host), Line::new(theirs))
    }

    fn watching(descriptor: OwnedFd, host: Option<&str>) -> Lines {
        let host = host.map(str::to_owned);
        let neighbour = Neighbour { line: Line::new(descriptor), rank: 7, host, by_another_too: false };
        Lines { own: None, neighbours: vec![neighbour] }
    }

    fn word(kind: Kind, payload: &[u8]) -> std::sync::Arc<[u8]> {
        Frame::encode(kind, payload).into()
    }

    #[test]
    fn a_death_is_told_from_a_goodbye_and_from_the_end_of_the_watch() {
        let (_open, stop) = pipe().unwrap();
        let (mut lines, theirs) = watched(None);
        drop(theirs);
        let why = "rank 7 has died without leaving the job".to_owned();
        assert_eq!(lines.keep(None, &_open), Some(End { why, told: false }));

        let (mut lines, mut theirs) = watched(None);
        theirs.send(word(Kind::Goodbye, &[]));
        drop(theirs);
        let (stopped, other) = pipe().unwrap();
        let watch = std::thread::spawn(move || lines.keep(None, &stopped));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!watch.is_finished());
        drop(other);
        assert_eq!(watch.join().unwrap(), None);
        drop(stop);
    }

    #[test]
    fn what_came_before_the_watch_is_heard() {
        let (stopped, stop) = pipe().unwrap();
        let (mut lines, theirs) = watched(Some("h"));
        drop(theirs);
        lines.neighbours[0].line.receive();
        // So that a watch that sleeps first ends, too.
        drop(stop);
        assert!(lines.keep(None, &stopped).is_some());
    }

    #[test]
    fn a_reason_is_passed_on_both_ways() {
        let (_open, _stop) = pipe().unwrap();
        let (mut lines, mut theirs) = watched(Some("h"));
        let (own, mut watcher) = socket_pair().map(|(own, watcher)| (Line::new(own), Line::new(watcher))).unwrap();
        lines.own = Some(own);
        theirs.send(word(Kind::Failed, b"rank 9 has died"));
        let end = lines.keep(None, &_open).unwrap();
        assert_eq!(end, End { why: "rank 9 has died".into(), told: true });
        lines.tell(&end.why);
        for line in [&mut watcher, &mut theirs] {
            line.receive();
            let frame = line.next().unwrap().unwrap();
            assert_eq!((frame.kind, &frame.payload[..]), (Kind::Failed, &b"rank 9 has died"[..]));
        }
    }

    #[test]
    fn who_is_watched_by_two_is_named_by_one() {
        let (_open, _stop) = pipe().unwrap();
        let of_two = |lines: &mut Lines| lines.neighbours[0].by_another_too = true;
        // The other one says it.
        let (mut lines, theirs) = watched(Some("h"));
        of_two(&mut lines);
        let (mut other, mut its) = watched(Some("i"));
        lines.neighbours.append(&mut other.neighbours);
        drop(theirs);
        its.send(word(Kind::Failed, b"it has died"));
        assert_eq!(lines.keep(None, &_open), Some(End { why: "it has died".into(), told: true }));
        // Nobody does.
        let (mut lines, theirs) = watched(Some("h"));
        of_two(&mut lines);
        drop(theirs);
        let end = lines.keep(None, &_open).unwrap();
        assert!(end.why.contains("rank 7 on host h has died") && !end.told, "{end:?}");
    }

    #[test]
    fn goodbyes_that_cross_are_heard_by_both() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut in_vain = 0;
        for _ in 0..200 {
            let ends = [TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap().0];
            let guards = ends.map(|end| {
                let mut guard = Guard::new(0, Aborter::default(), watching(end.into(), Some("h")).neighbours);
                guard.watch(0, None).unwrap();
                guard
            });
            let begin = Instant::now();
            // A watch that took a goodbye for a death would kill this process.
            std::thread::scope(|scope| {
                for mut guard in guards {
                    scope.spawn(move || guard.stop());
                }
            });
            in_vain += u32::from(begin.elapsed() >= ring::LAST_WORDS);
        }
        // A machine that stands still for a moment is no fault of theirs.
        assert!(in_vain < 3, "the other's goodbye was waited for in vain {in_vain} times");
    }

    #[test]
    fn what_is_stopped_tells_its_neighbour() {
        let mut guard = Guard::new(3, Aborter::default(), Vec::new());
        let mut lifeline = Line::new(guard.lifeline().unwrap());
        guard.watch(0, None).unwrap();
        guard.stop();
        lifeline.receive();
        assert_eq!(lifeline.next().unwrap().unwrap().kind, Kind::Goodbye);
    }
}
