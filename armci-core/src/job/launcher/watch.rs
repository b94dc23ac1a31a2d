//! The launcher's one loop: asleep in `poll` until somebody asks, writes or ends, a signal comes, or
//! a deadline passes. Who that is, the ranks of this host or the hosts of a job, is its [`Duty`].
//!
//! ```text
//!             all have ended well
//!   Running ------------------------------------------+
//!      | one failed, a signal, the time-out           v
//!      v                                             kill what remains in the members' process groups, reap
//!   Ending: SIGTERM to all, some grace                ^ |
//!      | grace is over                                | v
//!      v                                              | Flushing: pass on the rest of the output; done
//!   Killing: SIGKILL to all --------------------------+
//!                                       all have ended
//! ```
//!
//! Guaranteed: only the first reason to end the job is reported; what a member wrote or said before
//! it ended is taken before its end is judged, and all of it is passed on; a process group is only
//! signalled while its unreaped leader keeps the number from being reused.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::duty::{Duty, Member, Verdict, signal_groups};
use super::ending::{Ending, signal_name};
use super::hosts::upstream::Upstream;
use super::output::{Stream, Target};
use super::ranks::{Part, Ranks, Token};
use super::signals::{self, Listener, Mask};
use super::spawn::{self, Plan, Started};
use super::{Failure, Job, Outcome};
use crate::error::{Error, Result};

/// How long a reader of a job that was told to end has, to read something; and how long what escaped from a job may keep
/// its output open.
const GRACE: Duration = Duration::from_millis(200);

/// A job under way.
pub(super) struct Watch<'a, D> {
    job: &'a Job,
    signals: Listener,
    members: Vec<Member>,
    duty: D,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    phase: Phase,
    deadline: Option<Instant>,
    interrupted: bool,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Ending { kill_at: Instant },
    Killing,
    Flushing { until: Option<Instant> },
}

/// What a descriptor in the poll set stands for.
#[derive(Clone, Copy)]
enum Source<T> {
    Signal,
    Exit(usize),
    Duty(T),
    Stdout(usize),
    Stderr(usize),
    StdoutRoom,
    StderrRoom,
}

impl<'a> Watch<'a, Ranks> {
    /// Starts the ranks of this host. One that cannot be started fails the job.
    pub(super) fn over_ranks(job: &'a Job, part: Part, upstream: Option<Upstream>) -> Result<Self> {
        let seats = part.seats(job.bind)?;
        let [secret] = super::super::random()?;
        let mut watch = Self::new(job, job.tag_output, Ranks::new(part, secret, upstream))?;
        let plan = Plan {
            job,
            secret,
            mask: watch.signals.mask_before(),
            pipe_stdout: watch.stdout.is_some(),
            pipe_stderr: watch.stderr.is_some(),
        };
        for (index, (seat, core)) in seats.iter().enumerate() {
            let who = watch.duty.part().identity(index);
            match spawn::rank(&plan, who.clone(), *seat, core.as_ref()) {
                Ok((process, control)) => {
                    watch.duty.exchange().add(control);
                    watch.add(who.rank, process);
                }
                Err(error) => {
                    watch.could_not_start(who.rank, &error);
                    break;
                }
            }
        }
        // Orders may have come with the one to start.
        let verdict = watch.duty.serve(Token::Upstream, &watch.members);
        watch.execute(verdict);
        Ok(watch)
    }

    fn could_not_start(&mut self, rank: usize, error: &std::io::Error) {
        let program = self.job.program.display();
        let (code, hint) = match error.raw_os_error() {
            Some(libc::ENOENT) => (127, "; give its path, or put its directory into PATH"),
            Some(libc::EACCES | libc::ENOEXEC | libc::EISDIR) => (126, "; it must be an executable file (chmod +x)"),
            Some(libc::EAGAIN | libc::ENOMEM) => {
                (1, "; ask for fewer ranks, or raise the limit on processes (ulimit -u)")
            }
            Some(libc::EMFILE | libc::ENFILE) => {
                (1, "; ask for fewer ranks, or raise the limit on open files (ulimit -n)")
            }
            _ => (1, ""),
        };
        let reason = format!("could not be started: {program}: {error}{hint}");
        let why = format!("rank {rank} of {} {reason}", self.duty.part().size());
        self.end(Verdict { code, failed: Some(Failure { rank, reason }), pid: 0, why });
    }
}

impl<'a, D: Duty> Watch<'a, D> {
    /// Nobody is started yet. `tagged`: each line gets the number of its rank here.
    pub(super) fn new(job: &'a Job, tagged: bool, duty: D) -> Result<Self> {
        let stream = |captured: bool, target: Target| match captured {
            true => Some(Stream::new(Target::Memory, tagged)),
            false if job.tag_output || job.by_line => Some(Stream::new(target, tagged)),
            false => None,
        };
        Ok(Self {
            job,
            signals: Listener::new()?,
            members: Vec::new(),
            duty,
            stdout: stream(job.capture_stdout, Target::Stdout(std::io::stdout())),
            stderr: stream(job.capture_stderr, Target::Stderr(std::io::stderr())),
            phase: Phase::Running,
            deadline: job.timeout.map(|limit| Instant::now() + limit),
            interrupted: false,
            outcome: Outcome::default(),
        })
    }

    /// The signal mask that processes start with.
    pub(super) fn mask(&self) -> Mask {
        self.signals.mask_before()
    }

    /// Whether standard output and standard error of processes come through here.
    pub(super) fn pipes(&self) -> (bool, bool) {
        (self.stdout.is_some(), self.stderr.is_some())
    }

    pub(super) fn duty(&mut self) -> &mut D {
        &mut self.duty
    }

    /// Takes the next process; what it writes is of `rank`.
    pub(super) fn add(&mut self, rank: usize, mut process: Started) {
        for (stream, pipe) in [(&mut self.stdout, process.stdout.take()), (&mut self.stderr, process.stderr.take())] {
            if let Some(stream) = stream {
                stream.add(rank, pipe);
            }
        }
        self.members.push(Member { process, ending: None });
    }

    /// Serves the job until every member has ended and been reaped.
    pub(super) fn until_the_end(mut self) -> Result<Outcome> {
        while self.members.iter().any(|member| member.ending.is_none())
            || (self.phase == Phase::Running && self.duty.listens())
        {
            let ready = self.sleep()?;
            self.serve(&ready);
            self.keep_deadlines();
        }
        if self.phase == Phase::Running {
            self.duty.all_done();
        }
        self.reap();
        self.flush()?;
        let kept = |stream: Option<Stream>| stream.map_or(Vec::new(), Stream::into_kept);
        self.outcome.stdout = kept(self.stdout.take());
        self.outcome.stderr = kept(self.stderr.take());
        Ok(std::mem::take(&mut self.outcome))
    }

    /// Sleeps until something happens; returns what.
    fn sleep(&self) -> Result<Vec<Source<D::Token>>> {
        let mut sources = Vec::new();
        let mut fds = Vec::new();
        let mut wait_for = |source, fd, flags| {
            sources.push(source);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        };
        wait_for(Source::Signal, self.signals.descriptor(), PollFlags::IN);
        for (number, member) in self.members.iter().enumerate() {
            if member.ending.is_none() {
                wait_for(Source::Exit(number), member.process.exit.as_fd(), PollFlags::IN);
            }
        }
        self.duty.wait_on(&mut |token, fd, flags| wait_for(Source::Duty(token), fd, flags));
        if let Some(stream) = &self.stdout {
            stream.readable().for_each(|(rank, pipe)| wait_for(Source::Stdout(rank), pipe, PollFlags::IN));
            stream.sink().into_iter().for_each(|sink| wait_for(Source::StdoutRoom, sink, PollFlags::OUT));
        }
        if let Some(stream) = &self.stderr {
            stream.readable().for_each(|(rank, pipe)| wait_for(Source::Stderr(rank), pipe, PollFlags::IN));
            stream.sink().into_iter().for_each(|sink| wait_for(Source::StderrRoom, sink, PollFlags::OUT));
        }
        let timeout = self.next_deadline().map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::system("poll", error)),
        }
        Ok(sources.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(source, _)| source).collect())
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => [self.deadline, self.duty.deadline()].into_iter().flatten().min(),
            Phase::Ending { kill_at } => Some(kill_at),
            Phase::Killing => None,
            Phase::Flushing { until } => until,
        }
    }

    /// Serves what is ready: words first, then deaths, so that a death is judged by everything that
    /// preceded it.
    fn serve(&mut self, ready: &[Source<D::Token>]) {
        let mut ended = Vec::new();
        for &source in ready {
            match source {
                Source::Signal => self.obey_signals(),
                Source::Duty(token) => {
                    let verdict = self.duty.serve(token, &self.members);
                    self.execute(verdict);
                }
                Source::Stdout(rank) => self.stdout.iter_mut().for_each(|stream| stream.receive(rank)),
                Source::Stderr(rank) => self.stderr.iter_mut().for_each(|stream| stream.receive(rank)),
                Source::StdoutRoom => self.stdout.iter_mut().for_each(Stream::write_some),
                Source::StderrRoom => self.stderr.iter_mut().for_each(Stream::write_some),
                Source::Exit(rank) => ended.push(rank),
            }
        }
        for &member in &ended {
            self.note_ending(member);
        }
        if self.phase == Phase::Running {
            let verdict = self.duty.judge(&self.members, &ended);
            self.execute(verdict);
        }
    }

    fn execute(&mut self, verdict: Option<Verdict>) {
        if let Some(verdict) = verdict {
            self.end(verdict);
        }
    }

    /// Takes a member's last words and how it ended. The process stays a zombie, so that its group's
    /// number stays its own.
    fn note_ending(&mut self, member: usize) {
        let verdict = self.duty.last_words(member, &self.members);
        self.execute(verdict);
        self.streams().for_each(|stream| stream.receive_last(member));
        let process = &self.members[member].process;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match rustix::process::waitid(WaitId::PidFd(process.exit.as_fd()), options) {
            Ok(Some(status)) => self.members[member].ending = Some(Ending::of(&status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // Somebody else in this process reaped our child.
            Err(_) => self.members[member].ending = Some(Ending::Code(1)),
        }
    }

    fn obey_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            if signal == signals::ASKING_TO_STOP {
                self.pause();
                continue;
            }
            self.interrupted = true;
            match self.phase {
                Phase::Running => {
                    let why = format!("asked to end by {}", signal_name(signal));
                    self.end(Verdict { code: 128 + signal, failed: None, pid: 0, why });
                }
                // Asked twice: no more grace.
                Phase::Ending { .. } | Phase::Killing => self.kill(),
                // Perhaps not all that the ranks have written will be read.
                Phase::Flushing { .. } if self.outcome.code == 0 => self.outcome.code = 128 + signal,
                Phase::Flushing { .. } => {}
            }
        }
    }

    /// Stops everybody, and this process with them, until somebody continues it. Meanwhile no
    /// deadline comes nearer.
    fn pause(&mut self) {
        self.signal_all(Signal::STOP);
        let begin = Instant::now();
        self.signals.stop_this_process();
        let stopped = begin.elapsed();
        self.deadline = self.deadline.map(|at| at + stopped);
        if let Phase::Ending { kill_at } = &mut self.phase {
            *kill_at += stopped;
        }
        self.signal_all(Signal::CONT);
    }

    fn keep_deadlines(&mut self) {
        let passed = |at: Instant| Instant::now() >= at;
        match self.phase {
            Phase::Running if self.deadline.is_some_and(passed) => {
                self.outcome.timed_out = true;
                let limit = self.job.timeout.unwrap_or_default();
                let why = format!("the job was not done after {limit:?}");
                self.end(Verdict { code: 124, failed: None, pid: 0, why });
            }
            Phase::Running if self.duty.deadline().is_some_and(passed) => {
                let verdict = self.duty.overdue();
                self.execute(verdict);
            }
            Phase::Ending { kill_at } if passed(kill_at) => self.kill(),
            _ => {}
        }
    }

    /// Turns from running to ending, once: says why, and asks everybody to leave.
    pub(super) fn end(&mut self, verdict: Verdict) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Ending { kill_at: Instant::now() + D::GRACE };
        if !self.duty.report(&verdict) {
            let failed = verdict.failed.as_ref().map(|failed| failed.rank);
            let other = if failed.is_some() { "other " } else { "" };
            let others = match self.duty.others(&self.members, failed) {
                0 => String::new(),
                1 => format!("; ending the {other}rank"),
                others => format!("; ending the {other}{others} ranks"),
            };
            self.say(&format!("armci-run: {}{others}", verdict.why));
        }
        self.outcome.code = verdict.code;
        self.outcome.failed = verdict.failed;
        self.signal_all(Signal::TERM);
    }

    fn say(&mut self, line: &str) {
        if self.job.quiet {
            return;
        }
        match &mut self.stderr {
            Some(stream) => stream.say(line),
            // Without a reader, the exit code must do.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    fn kill(&mut self) {
        self.phase = Phase::Killing;
        self.signal_all(Signal::KILL);
    }

    fn signal_all(&mut self, signal: Signal) {
        self.duty.signal(&self.members, signal);
    }

    /// Ends what members have left running, and takes their processes off the system's table.
    fn reap(&mut self) {
        signal_groups(&self.members, Signal::KILL);
        for mut member in self.members.drain(..) {
            let _ = member.process.child.wait();
        }
    }

    /// Passes on what is left in pipes and backlogs, as fast as it is read.
    ///
    /// All members are reaped, so a pipe that is not at its end belongs to a process that is about to
    /// die with its group, or to one that has left the group; after a while the latter is no longer
    /// listened to. Who told the job to end does not wait for a reader that does not read.
    fn flush(&mut self) -> Result<()> {
        let hang_up_at = Instant::now() + GRACE;
        loop {
            let now = Instant::now();
            if now >= hang_up_at {
                self.streams().for_each(Stream::hang_up);
            }
            let open = self.streams().any(|stream| stream.is_open());
            if !open && self.streams().all(|stream| stream.sink().is_none()) {
                return Ok(());
            }
            let impatient = !open && (self.interrupted || self.outcome.timed_out);
            let patience = impatient.then(|| now + GRACE);
            self.phase = Phase::Flushing { until: if open { Some(hang_up_at) } else { patience } };
            let ready = self.sleep()?;
            if ready.is_empty() && impatient {
                return Ok(());
            }
            self.serve(&ready);
        }
    }

    fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        [&mut self.stdout, &mut self.stderr].into_iter().flatten()
    }
}

impl<D> Drop for Watch<'_, D> {
    /// Reached with members only when the loop itself failed.
    fn drop(&mut self) {
        signal_groups(&self.members, Signal::KILL);
        for member in &mut self.members {
            let _ = member.process.child.wait();
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Rounded up, so that a deadline has passed when poll returns.
    let duration = duration + Duration::from_millis(1);
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}
