//! The duty of the launcher of a job over several hosts: to start an agent on each, to let in only those, to bring their
//! exchanges together, and to judge their ends.
//!
//! Guaranteed: whoever connects and does not prove that it is an agent of this job is dropped, and the job goes on; when
//! all agents are there nobody else is let in. A host that does not call back, is lost or breaks the rules ends the job, by name.

use std::io::Stdin;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::super::super::network::addresses;
use super::super::super::network::door::{Caller, Door};
use super::super::super::network::greeting::VERSION;
use super::super::super::network::line::{Line, is_silence};
use super::super::super::network::proof::Secret;
use super::super::super::place::Place;
use super::super::super::wire::{self, Frame, Kind};
use super::super::duty::{Duty, Member, Verdict, signal_groups};
use super::super::exchange::{differing, too_much};
use super::super::ranks::{OUTSIDE, Share};
use super::super::spawn;
use super::super::watch::Watch;
use super::super::{Bind, Failure, Job};
use super::call::{Call, Plan};
use super::feed::Feed;
use super::upstream::{self, Report};
use super::{Hosts, SILENCE, agent};
use crate::error::{Error, Result};

/// How long a remote shell has to start its agent, and that to call back.
const START: Duration = Duration::from_secs(60);

/// See the module.
pub(in super::super) struct Head {
    hosts: Vec<Host>,
    size: usize,
    remote_shell: String,
    /// Where agents connect, until all have.
    door: Option<Door>,
    port: u16,
    call_by: Instant,
    started: bool,
    /// Whether a rank has joined, and whether all have said goodbye.
    joined: bool,
    left: bool,
    input: Stdin,
}

/// A host and its agent.
struct Host {
    name: String,
    ranks: Range<usize>,
    line: Option<Line>,
    place: Option<Place>,
    asked: Option<Frame>,
    /// Its ranks have ended well.
    done: bool,
    /// Nobody can be reached there any more.
    lost: bool,
    /// Its remote shell has ended, and its line has not: how long its last words may take to come.
    last_by: Option<Instant>,
    feed: Feed,
}

/// What a descriptor stands for.
#[derive(Clone, Copy)]
pub(in super::super) enum Token {
    Door,
    Stranger(u64),
    Agent(usize),
    /// The standard input of a host's remote shell.
    Feed(usize),
    /// Our own, for rank 0.
    Input,
}

/// Starts the remote shells.
pub(in super::super) fn start<'a>(job: &'a Job, hosts: &Hosts) -> Result<Watch<'a, Head>> {
    let dealt = hosts.deal(job.ranks)?;
    let addresses = addresses::to_be_called_at(hosts.address.as_deref())?;
    let secret = Secret::invent()?;
    let door = Door::open(&addresses, secret, SILENCE)?;
    let port = door.port();
    let addresses: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
    let plan = plan(job)?.encode();
    let commands = dealt.iter().map(|(name, _)| hosts.command(name)).collect::<Result<Vec<_>>>()?;
    let head = Head {
        hosts: dealt.iter().map(|(name, ranks)| Host::new(name, ranks.clone())).collect(),
        size: job.ranks,
        remote_shell: hosts.remote_shell_shown(),
        door: Some(door),
        port,
        call_by: Instant::now() + START,
        started: false,
        joined: false,
        left: false,
        input: std::io::stdin(),
    };
    let mut watch = Watch::new(job, false, head)?;
    let (stdout, stderr) = watch.pipes();
    for (host, mut command) in commands.into_iter().enumerate() {
        command.stdin(Stdio::piped());
        if stdout {
            command.stdout(Stdio::piped());
        }
        if stderr {
            command.stderr(Stdio::piped());
        }
        match spawn::start(command, None, watch.mask(), None) {
            Ok(mut process) => {
                let call = Call { addresses: addresses.clone(), secret, host, plan: plan.clone() };
                let ours = host == 0 && !job.no_input;
                let head = watch.duty();
                head.hosts[host].feed = Feed::new(process.stdin.take(), call.encode(), ours);
                let first = head.hosts[host].ranks.start;
                watch.add(first, process);
            }
            Err(error) => {
                let verdict = watch.duty().no_shell(host, &error);
                watch.end(verdict);
                break;
            }
        }
    }
    Ok(watch)
}

/// What every agent is to run.
fn plan(job: &Job) -> Result<Plan> {
    let directory = std::env::current_dir().map_err(|source| Error::System { call: "getcwd", source })?;
    let carried = std::env::vars_os().filter(|(name, _)| is_carried(&name.to_string_lossy()));
    Ok(Plan {
        directory,
        program: job.program.clone(),
        args: job.args.clone(),
        env: carried.chain(job.env.iter().cloned()).collect(),
        bound: job.bind == Bind::Core,
        tagged: job.tag_output,
        by_line: job.capture_stdout || job.capture_stderr,
        no_input: job.no_input || std::io::IsTerminal::is_terminal(&std::io::stdin()),
    })
}

/// Whether ranks on other hosts get a variable as it is here. A job's admission is of one host.
fn is_carried(name: &str) -> bool {
    (name.starts_with("ARMCI_") && name != super::super::super::ticket::VARIABLE)
        || ["PATH", "LD_LIBRARY_PATH"].contains(&name)
}

impl Host {
    fn new(name: &str, ranks: Range<usize>) -> Self {
        let name = name.to_owned();
        let feed = Feed::default();
        Self { name, ranks, line: None, place: None, asked: None, done: false, lost: false, last_by: None, feed }
    }

    /// Its name and its ranks, for people.
    fn shown(&self) -> String {
        let (first, last) = (self.ranks.start, self.ranks.end - 1);
        if first == last {
            format!("host {} (rank {first})", self.name)
        } else {
            format!("host {} (ranks {first} to {last})", self.name)
        }
    }

    /// Whether its agent may still say how its ranks have ended.
    fn may_be_heard(&self) -> bool {
        !self.done && !self.lost && self.line.as_ref().is_some_and(|line| line.socket().is_some())
    }

    fn send(&mut self, bytes: &Arc<[u8]>) {
        if let Some(line) = &mut self.line {
            line.send(Arc::clone(bytes));
        }
    }
}

impl Head {
    /// The job ends because of a host.
    fn blame(&mut self, host: usize, code: i32, reason: &str) -> Verdict {
        let host = &mut self.hosts[host];
        host.lost = true;
        let failed = Some(Failure { rank: host.ranks.start, reason: format!("{reason} (host {})", host.name) });
        Verdict { code, failed, pid: 0, why: format!("{}: {reason}", host.shown()) }
    }

    fn no_shell(&mut self, host: usize, error: &std::io::Error) -> Verdict {
        let reason =
            format!("its remote shell ({}) could not be started: {error}; say --rsh COMMAND", self.remote_shell);
        self.blame(host, 1, &reason)
    }

    /// Lets in whoever knocks, as a stranger.
    fn open_door(&mut self) -> Option<Verdict> {
        let error = self.door.as_mut()?.answer().err()?;
        self.door = None;
        let why = format!("nobody can be let in any more: accept failed: {error}");
        Some(Verdict { code: 1, failed: None, pid: 0, why })
    }

    /// Hears a stranger: an agent becomes its host's, anybody else is dropped.
    fn hear_stranger(&mut self, number: u64) -> Option<Verdict> {
        let Caller { mut line, who, welcome } = self.door.as_mut()?.hear(number)?;
        let host = self.hosts.get_mut(who.host).filter(|host| host.line.is_none())?;
        if who.version != VERSION {
            line.send(Frame::encode(Kind::Refused, &[]).into());
            let reason = format!(
                "its armci-run is {}, and this one is {VERSION}: install one on all hosts, or say --agent-path",
                who.version
            );
            return Some(self.blame(who.host, 1, &reason));
        }
        line.send(welcome.into());
        (host.line, host.place) = (Some(line), Some(who.place));
        if self.hosts.iter().all(|host| host.line.is_some()) {
            self.start_ranks();
        }
        None
    }

    /// All hosts are there: says to each what its part is.
    fn start_ranks(&mut self) {
        self.started = true;
        self.door = None;
        let places: Vec<_> = self.hosts.iter().map(|host| host.place.map(|place| place.machine)).collect();
        for node in 0..self.hosts.len() {
            let share = share(&self.hosts, &places, node, self.size);
            self.hosts[node].send(&agent::encode_share(&share).into());
        }
    }

    /// Takes what an agent has sent; a line that is closed before its ranks are done is a lost host.
    fn hear(&mut self, host: usize) -> Option<Verdict> {
        self.hosts[host].line.as_mut()?.receive();
        self.hosts[host].line.as_mut()?.flush();
        loop {
            let expected = self.hosts[host].done || self.hosts[host].lost;
            let line = self.hosts[host].line.as_mut()?;
            match line.next() {
                Ok(Some(frame)) => {
                    if let Some(verdict) = self.accept(host, frame) {
                        return Some(verdict);
                    }
                }
                Ok(None) if line.socket().is_some() || expected => return None,
                Ok(None) => {
                    let reason = match line.broken() {
                        Some(error) if is_silence(error) => format!(
                            "it has not answered for {} seconds: it is down, or its network is",
                            SILENCE.as_secs()
                        ),
                        Some(error) => format!("the connection to its agent broke: {error}"),
                        None => "its agent closed the connection: it was killed, or its host goes down".into(),
                    };
                    return Some(self.blame(host, 1, &reason));
                }
                Err(error) => return Some(self.blame(host, 1, &error.to_string())),
            }
        }
    }

    fn accept(&mut self, host: usize, frame: Frame) -> Option<Verdict> {
        match frame.kind {
            Kind::Joined => {
                if !std::mem::replace(&mut self.joined, true) {
                    let word: Arc<[u8]> = Frame::encode(Kind::Joined, &[]).into();
                    self.hosts.iter_mut().for_each(|host| host.send(&word));
                }
                self.nobody_outside()
            }
            Kind::Gather | Kind::Goodbye if self.hosts[host].asked.is_none() => {
                self.hosts[host].asked = Some(frame);
                self.answer_all()
            }
            Kind::Done => {
                self.hosts[host].done = true;
                self.nobody_outside()
            }
            Kind::Failed => match Report::decode(&frame.payload) {
                Some(report) => Some(self.judge_report(host, report)),
                None => Some(self.blame(host, 1, "its agent reported what cannot be read")),
            },
            kind => Some(self.blame(host, 1, &format!("its agent sent {kind:?}, against the rules of the line"))),
        }
    }

    /// A host whose ranks have all ended without joining, while others have joined, would be waited for forever.
    fn nobody_outside(&mut self) -> Option<Verdict> {
        if !self.joined || self.left {
            return None;
        }
        let host = self.hosts.iter().position(|host| host.done)?;
        Some(self.blame(host, 1, &format!("its ranks {OUTSIDE}")))
    }

    /// Answers a collective request if all hosts have made it.
    fn answer_all(&mut self) -> Option<Verdict> {
        let asked = self.hosts.iter().map(|host| host.asked.as_ref()).collect::<Option<Vec<_>>>()?;
        let kind = asked[0].kind;
        if let Some(other) = asked.iter().position(|other| other.kind != kind) {
            let reason = format!("its ranks {}", differing(asked[other].kind, 0, kind));
            return Some(self.blame(other, 1, &reason));
        }
        let table: Vec<u8> = asked.iter().flat_map(|asked| &asked.payload).copied().collect();
        if table.len() > wire::LARGEST {
            return Some(self.blame(0, 1, &format!("its ranks {}", too_much(table.len()))));
        }
        self.left |= kind == Kind::Goodbye;
        let answer: Arc<[u8]> = Frame::encode(kind, &table).into();
        for host in &mut self.hosts {
            host.asked = None;
            host.send(&answer);
        }
        None
    }

    /// Why the ranks of a host have ended, as its agent says.
    fn judge_report(&mut self, host: usize, report: Report) -> Verdict {
        let ranks = self.hosts[host].ranks.clone();
        let Some(rank) = report.rank.filter(|rank| ranks.contains(rank)) else {
            return self.blame(host, report.code, &format!("its agent was {}", report.why));
        };
        let name = &self.hosts[host].name;
        let process = if report.pid == 0 { String::new() } else { format!("pid {} ", report.pid) };
        let why = format!("rank {rank} ({process}on host {name}) {}", report.reason);
        let failed = Some(Failure { rank, reason: format!("{} (on host {name})", report.reason) });
        Verdict { code: report.code, failed, pid: report.pid, why }
    }
}

/// What a host is to start. Hosts of one machine share its processors and its memory.
fn share(hosts: &[Host], machines: &[Option<[u64; 2]>], node: usize, size: usize) -> Share {
    let here = |range: Range<usize>| range.filter(|other| machines[*other] == machines[node]);
    let ranks = |range| here(range).map(|other| hosts[other].ranks.len()).sum();
    Share {
        first: hosts[node].ranks.start,
        ranks: hosts[node].ranks.len(),
        size,
        node,
        nodes: hosts.len(),
        nodes_here: here(0..hosts.len()).count(),
        ranks_here: ranks(0..hosts.len()),
        before_here: ranks(0..node),
    }
}

impl Duty for Head {
    type Token = Token;

    /// Agents give their ranks a moment, and then say goodbye themselves; this is for those that cannot be reached.
    const GRACE: Duration = Duration::from_secs(2);

    fn wait_on<'a>(&'a self, add: &mut dyn FnMut(Token, BorrowedFd<'a>, PollFlags)) {
        let flags = |sending| if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        if let Some(door) = &self.door {
            add(Token::Door, door.listener(), PollFlags::IN);
            for (number, socket, sending) in door.strangers() {
                add(Token::Stranger(number), socket, flags(sending));
            }
        }
        for (number, host) in self.hosts.iter().enumerate() {
            if let Some((socket, sending)) = host.line.as_ref().and_then(Line::socket) {
                add(Token::Agent(number), socket, flags(sending));
            }
            if let Some(pipe) = host.feed.hungry() {
                add(Token::Feed(number), pipe, PollFlags::OUT);
            }
            if host.feed.wants_input() {
                add(Token::Input, self.input.as_fd(), PollFlags::IN);
            }
        }
    }

    fn serve(&mut self, token: Token, _members: &[Member]) -> Option<Verdict> {
        match token {
            Token::Door => self.open_door(),
            Token::Stranger(number) => self.hear_stranger(number),
            Token::Agent(host) => self.hear(host),
            Token::Feed(host) => {
                self.hosts[host].feed.write();
                None
            }
            Token::Input => {
                self.hosts.iter_mut().for_each(|host| host.feed.read(self.input.as_fd()));
                None
            }
        }
    }

    fn last_words(&mut self, member: usize, _members: &[Member]) -> Option<Verdict> {
        let line = self.hosts[member].line.as_mut()?;
        line.receive();
        // How its process ended tells more than that the line is closed.
        while let Some(Ok(Some(frame))) = self.hosts[member].line.as_mut().map(Line::next) {
            if let Some(verdict) = self.accept(member, frame) {
                return Some(verdict);
            }
        }
        // A process here ends before what its agent has said there comes over a network.
        let host = &mut self.hosts[member];
        host.last_by = host.may_be_heard().then(|| Instant::now() + SILENCE);
        None
    }

    fn listens(&self) -> bool {
        self.hosts.iter().any(Host::may_be_heard)
    }

    fn judge(&self, members: &[Member], ended: &[usize]) -> Option<Verdict> {
        let host = *ended.iter().find(|host| !self.hosts[**host].done && !self.hosts[**host].may_be_heard())?;
        let (how, shell) = (members[host].ending?, &self.remote_shell);
        let host = &self.hosts[host];
        let reason = match &host.line {
            None => format!(
                "its remote shell ({shell} {}) {} before its agent had called back on port {}",
                host.name,
                how.describe(),
                self.port
            ),
            Some(_) => format!("its agent, or the remote shell to it ({shell} {}), {}", host.name, how.describe()),
        };
        let failed = Some(Failure { rank: host.ranks.start, reason: format!("{reason} (host {})", host.name) });
        let code = if how.code() == 0 { 1 } else { how.code() };
        Some(Verdict { code, failed, pid: 0, why: format!("{}: {reason}", host.shown()) })
    }

    fn deadline(&self) -> Option<Instant> {
        let strangers = self.door.as_ref().and_then(Door::deadline).into_iter();
        let last = self.hosts.iter().filter(|host| host.may_be_heard()).filter_map(|host| host.last_by);
        strangers.chain((!self.started).then_some(self.call_by)).chain(last).min()
    }

    fn overdue(&mut self) -> Option<Verdict> {
        let now = Instant::now();
        if let Some(door) = &mut self.door {
            door.drop_overdue();
        }
        let silent = |host: &Host| host.may_be_heard() && host.last_by.is_some_and(|by| by <= now);
        if let Some(host) = self.hosts.iter().position(silent) {
            let reason = format!(
                "the remote shell to its agent ({} {}) has ended, and the agent has not said how its ranks have",
                self.remote_shell, self.hosts[host].name
            );
            return Some(self.blame(host, 1, &reason));
        }
        if self.started || now < self.call_by {
            return None;
        }
        let host = self.hosts.iter().position(|host| host.line.is_none())?;
        let (seconds, port, shell) = (START.as_secs(), self.port, &self.remote_shell);
        let reason = format!(
            "it has not called back within {seconds} seconds: does its remote shell ({shell}) wait for something, or can \
             it not reach port {port} of this host (armci-run --address)?"
        );
        Some(self.blame(host, 1, &reason))
    }

    fn signal(&mut self, members: &[Member], signal: Signal) {
        let word: Arc<[u8]> = upstream::signal(signal).into();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.send(&word);
            // Who has not called back hears nothing; and in the end nobody is waited for.
            let ends = signal == Signal::TERM && host.line.is_none() || signal == Signal::KILL;
            if ends {
                signal_groups(members.get(number), signal);
            }
        }
    }

    fn others(&self, members: &[Member], failed: Option<usize>) -> usize {
        if !self.started {
            return 0;
        }
        let alive = |&(number, host): &(usize, &Host)| {
            !host.done && !host.lost && members.get(number).is_some_and(|member| member.ending.is_none())
        };
        let hosts = self.hosts.iter().enumerate().filter(alive);
        hosts
            .map(|(_, host)| host.ranks.len() - usize::from(failed.is_some_and(|rank| host.ranks.contains(&rank))))
            .sum()
    }
}
