//! Who watches, where the launcher may not: each rank its neighbour, and what started it.
//!
//! Every rank holds one end of a socket pair, its lifeline; the rank before it on the node holds the other. A rank
//! that leaves in order writes a byte first. One that dies does not, and the kernel closes its end: whoever reads that
//! ends the job. So each rank watches one other, whatever their number, with two descriptors and one thread that
//! sleeps. The parent is watched too, by a descriptor of its process: a launcher that was killed cannot end its ranks.
//!
//! Guaranteed: within two seconds of such an end this process is gone. Not guaranteed: that a death is seen while a child
//! that the rank forked, and that did not exec, still holds its lifeline; the launcher sees it then. Nor that of a
//! rank that is alone on its host, behind a script that returns 0: Open MPI's launcher sees it all the same, MPICH's does not.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, Signal};

use super::abort::Aborter;
use crate::error::{Error, Result};

/// How long the launcher has to end this process, after it was told.
const GRACE: Duration = Duration::from_secs(1);
/// It polls, and writes a line; but what is thread-local in the program's libraries lies there too.
const STACK: usize = 256 << 10;

/// A rank's watch.
pub(super) struct Guard {
    rank: usize,
    aborter: Aborter,
    /// Open as long as this rank lives.
    own: Option<OwnedFd>,
    on_duty: Option<OnDuty>,
}

/// The thread, and what it ends by: the closing of a pipe.
struct OnDuty {
    thread: JoinHandle<()>,
    stop: OwnedFd,
}

/// What can end.
struct Watched {
    descriptor: OwnedFd,
    /// How to say that it has.
    ended: String,
    /// Whether it says goodbye first, if all is well.
    polite: bool,
}

impl Guard {
    pub(super) fn new(rank: usize, aborter: Aborter) -> Self {
        Self { rank, aborter, own: None, on_duty: None }
    }

    /// The end of this rank's lifeline that a neighbour is to have.
    pub(super) fn lifeline(&mut self) -> Result<OwnedFd> {
        let (ours, theirs) = socket_pair()?;
        self.own = Some(ours);
        Ok(theirs)
    }

    /// Begins to watch.
    pub(super) fn watch(&mut self, neighbour: usize, lifeline: Option<OwnedFd>) -> Result<()> {
        let neighbour = lifeline.map(|descriptor| Watched {
            descriptor,
            ended: format!("rank {neighbour} has died"),
            polite: true,
        });
        let parent = rustix::process::getppid().and_then(|parent| {
            let descriptor = rustix::process::pidfd_open(parent, PidfdFlags::empty()).ok()?;
            Some(Watched {
                descriptor,
                ended: format!("process {parent}, which started this rank, has died"),
                polite: false,
            })
        });
        let (stopped, stop) = pipe()?;
        let (rank, aborter) = (self.rank, self.aborter.clone());
        let duty = move || {
            let watched: Vec<_> = [neighbour, parent].into_iter().flatten().collect();
            if let Some(why) = keep(watched, &stopped) {
                end_the_job(rank, &aborter, &why);
            }
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

    /// Ends the watch, and tells whoever watches this rank that it leaves in order.
    pub(super) fn stop(&mut self) {
        if let Some(own) = self.own.take() {
            // Without a reader nobody is to be told, which no signal need say.
            let _ = rustix::net::send(&own, &[1], SendFlags::NOSIGNAL);
        }
        if let Some(OnDuty { thread, stop }) = self.on_duty.take() {
            drop(stop);
            // It panics nowhere; and if it did, the watch is over all the same.
            let _ = thread.join();
        }
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

/// Sleeps until something watched ends badly, and says what; nothing if the watch is over.
fn keep(mut watched: Vec<Watched>, stopped: &OwnedFd) -> Option<String> {
    loop {
        let descriptors = [stopped.as_fd()].into_iter().chain(watched.iter().map(|watched| watched.descriptor.as_fd()));
        let mut polled: Vec<_> =
            descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        // Whatever makes this fail, a launcher still watches.
        retry_on_intr(|| rustix::event::poll(&mut polled, None)).ok()?;
        let ready: Vec<_> = polled.iter().map(|source| !source.revents().is_empty()).collect();
        if ready[0] {
            return None;
        }
        let index = ready.iter().skip(1).position(|ready| *ready)?;
        let ended = watched.swap_remove(index);
        let said_goodbye =
            ended.polite && rustix::io::read(&ended.descriptor, &mut [0; 1]).is_ok_and(|bytes| bytes == 1);
        if !said_goodbye {
            return Some(ended.ended);
        }
    }
}

/// Says why, asks the launcher for the end, and if that does not come, makes it.
fn end_the_job(rank: usize, aborter: &Aborter, why: &str) {
    let reason = format!("{why} without leaving the job: ending it");
    // Without a reader of standard error, the end must do.
    let _ = std::io::stderr().write_all(format!("armci: rank {rank}: {reason}\n").as_bytes());
    aborter.abort(1, &reason);
    std::thread::sleep(GRACE);
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(descriptor: OwnedFd) -> Vec<Watched> {
        vec![Watched { descriptor, ended: "gone".into(), polite: true }]
    }

    #[test]
    fn a_death_is_told_from_a_goodbye_and_from_the_end_of_the_watch() {
        let (_open, stop) = pipe().unwrap();
        let (lifeline, own) = socket_pair().unwrap();
        drop(own);
        assert_eq!(keep(watched(lifeline), &_open), Some("gone".into()));

        let (lifeline, own) = socket_pair().unwrap();
        rustix::io::write(&own, &[1]).unwrap();
        drop(own);
        let (stopped, other) = pipe().unwrap();
        let watch = std::thread::spawn(move || keep(watched(lifeline), &stopped));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!watch.is_finished());
        drop(other);
        assert_eq!(watch.join().unwrap(), None);
        drop(stop);
    }

    #[test]
    fn what_is_stopped_tells_its_neighbour() {
        let mut guard = Guard::new(3, Aborter::default());
        let lifeline = guard.lifeline().unwrap();
        guard.watch(0, None).unwrap();
        guard.stop();
        assert_eq!(rustix::io::read(&lifeline, &mut [0; 2]).unwrap(), 1);
    }
}
