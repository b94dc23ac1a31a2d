//! The launcher's one loop: asleep in `poll` until a rank asks, writes or ends, a signal comes, or
//! a deadline passes.
//!
//! ```text
//!             all have ended well
//!   Running ------------------------------------------+
//!      | a rank failed, a signal, the time-out        v
//!      v                                             kill what remains in the ranks' process groups, reap
//!   Ending: SIGTERM to all groups, 200 ms of grace    ^ |
//!      | grace is over                                | v
//!      v                                              | Flushing: pass on the rest of the output; done
//!   Killing: SIGKILL to all groups -------------------+
//!                                       all have ended
//! ```
//!
//! Guaranteed: only the first reason to end the job is reported; what a rank wrote or said before
//! it ended is taken before its end is judged, and all of it is passed on; a process group is only
//! signalled while its unreaped leader keeps the number from being reused.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::ending::{Ending, signal_name};
use super::exchange::{Exchange, Standing};
use super::output::{Stream, Target};
use super::signals::{self, Listener};
use super::spawn::{self, Plan, Started};
use super::{Failure, Job, Outcome};
use crate::error::{Error, Result};

/// How long ranks have, after `SIGTERM`, to flush and leave; and how long a reader of a job that was
/// told to end has, to read something.
const GRACE: Duration = Duration::from_millis(200);

/// A job under way.
pub(super) struct Watch<'a> {
    job: &'a Job,
    signals: Listener,
    ranks: Vec<Rank>,
    exchange: Exchange,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    phase: Phase,
    deadline: Option<Instant>,
    interrupted: bool,
    outcome: Outcome,
}

/// One rank's process.
struct Rank {
    process: Started,
    ending: Option<Ending>,
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
enum Source {
    Signal,
    Exit(usize),
    Control(usize),
    Stdout(usize),
    Stderr(usize),
    StdoutRoom,
    StderrRoom,
}

impl<'a> Watch<'a> {
    /// Starts all ranks. One that cannot be started fails the job.
    pub(super) fn start(job: &'a Job) -> Result<Self> {
        let seats = job.seats()?;
        let [secret] = super::super::random()?;
        let stream = |captured: bool, target: Target| match captured {
            true => Some(Stream::new(Target::Memory, job.tag_output)),
            false if job.tag_output => Some(Stream::new(target, true)),
            false => None,
        };
        let mut watch = Self {
            job,
            signals: Listener::new()?,
            ranks: Vec::with_capacity(job.ranks),
            exchange: Exchange::new(secret),
            stdout: stream(job.capture_stdout, Target::Stdout(std::io::stdout())),
            stderr: stream(job.capture_stderr, Target::Stderr(std::io::stderr())),
            phase: Phase::Running,
            deadline: job.timeout.map(|limit| Instant::now() + limit),
            interrupted: false,
            outcome: Outcome::default(),
        };
        let plan = Plan {
            job,
            secret,
            mask: watch.signals.mask_before(),
            pipe_stdout: watch.stdout.is_some(),
            pipe_stderr: watch.stderr.is_some(),
        };
        for (rank, (seat, core)) in seats.iter().enumerate() {
            match spawn::spawn(&plan, rank, *seat, core.as_ref()) {
                Ok(process) => watch.add(process),
                Err(error) => {
                    watch.could_not_start(rank, &error);
                    break;
                }
            }
        }
        Ok(watch)
    }

    fn add(&mut self, mut process: Started) {
        self.exchange.add(process.control.take().expect("a new process has its socket"));
        for (stream, pipe) in [(&mut self.stdout, process.stdout.take()), (&mut self.stderr, process.stderr.take())] {
            if let Some(stream) = stream {
                stream.add(pipe);
            }
        }
        self.ranks.push(Rank { process, ending: None });
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
        self.end(
            code,
            Some(Failure { rank, reason: reason.clone() }),
            &format!("rank {rank} of {} {reason}", self.job.ranks),
        );
    }

    /// Serves the job until every rank has ended and been reaped.
    pub(super) fn until_the_end(mut self) -> Result<Outcome> {
        while self.ranks.iter().any(|rank| rank.ending.is_none()) {
            let ready = self.sleep()?;
            self.serve(&ready);
            self.keep_deadlines();
        }
        self.reap();
        self.flush()?;
        let kept = |stream: Option<Stream>| stream.map_or(Vec::new(), Stream::into_kept);
        self.outcome.stdout = kept(self.stdout.take());
        self.outcome.stderr = kept(self.stderr.take());
        Ok(std::mem::take(&mut self.outcome))
    }

    /// Sleeps until something happens; returns what.
    fn sleep(&self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        let mut fds = Vec::new();
        let mut wait_for = |source, fd, flags| {
            sources.push(source);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        };
        wait_for(Source::Signal, self.signals.descriptor(), PollFlags::IN);
        for (number, rank) in self.ranks.iter().enumerate() {
            if rank.ending.is_none() {
                wait_for(Source::Exit(number), rank.process.exit.as_fd(), PollFlags::IN);
            }
            if let Some((socket, sending)) = self.exchange.socket(number) {
                let flags = if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                wait_for(Source::Control(number), socket, flags);
            }
        }
        let to_source: [fn(usize) -> Source; 2] = [Source::Stdout, Source::Stderr];
        let rooms = [Source::StdoutRoom, Source::StderrRoom];
        for ((stream, to_source), room) in [&self.stdout, &self.stderr].into_iter().zip(to_source).zip(rooms) {
            let Some(stream) = stream else { continue };
            for (rank, pipe) in stream.readable() {
                wait_for(to_source(rank), pipe, PollFlags::IN);
            }
            if let Some(sink) = stream.sink() {
                wait_for(room, sink, PollFlags::OUT);
            }
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
            Phase::Running => self.deadline,
            Phase::Ending { kill_at } => Some(kill_at),
            Phase::Killing => None,
            Phase::Flushing { until } => until,
        }
    }

    /// Serves what is ready: words first, then deaths, so that a death is judged by everything that
    /// preceded it.
    fn serve(&mut self, ready: &[Source]) {
        let mut ended = Vec::new();
        for &source in ready {
            match source {
                Source::Signal => self.obey_signals(),
                Source::Control(rank) => self.pump(rank),
                Source::Stdout(rank) => self.stdout.iter_mut().for_each(|stream| stream.receive(rank)),
                Source::Stderr(rank) => self.stderr.iter_mut().for_each(|stream| stream.receive(rank)),
                Source::StdoutRoom => self.stdout.iter_mut().for_each(Stream::write_some),
                Source::StderrRoom => self.stderr.iter_mut().for_each(Stream::write_some),
                Source::Exit(rank) => ended.push(rank),
            }
        }
        for &rank in &ended {
            self.note_ending(rank);
        }
        self.judge(&ended);
    }

    fn pump(&mut self, rank: usize) {
        if let Err((rank, broke)) = self.exchange.pump(rank) {
            self.fail(rank, 1, &broke);
        }
    }

    /// Takes a rank's last words and how it ended. The process stays a zombie, so that its group's
    /// number stays its own.
    fn note_ending(&mut self, rank: usize) {
        self.pump(rank);
        self.streams().for_each(|stream| stream.receive_last(rank));
        let process = &self.ranks[rank].process;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match rustix::process::waitid(WaitId::PidFd(process.exit.as_fd()), options) {
            Ok(Some(status)) => self.ranks[rank].ending = Some(Ending::of(&status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // Somebody else in this process reaped our child.
            Err(_) => self.ranks[rank].ending = Some(Ending::Code(1)),
        }
    }

    /// Decides what these ends mean for the job. Of several at once, a signal tells more than a
    /// code, a code more than a silent leave.
    fn judge(&mut self, ended: &[usize]) {
        if self.phase != Phase::Running {
            return;
        }
        let of_kind = |wanted: fn(Ending) -> bool| {
            ended
                .iter()
                .copied()
                .find_map(|rank| self.ranks[rank].ending.filter(|&ending| wanted(ending)).map(|ending| (rank, ending)))
        };
        let failed = of_kind(|ending| matches!(ending, Ending::Signal(_)))
            .or_else(|| of_kind(|ending| ending != Ending::Code(0)));
        if let Some((rank, ending)) = failed {
            return self.fail(rank, ending.code(), &ending.describe());
        }
        if !self.exchange.anyone_joined() {
            return;
        }
        // Also ranks that ended earlier: they may have become a problem only when somebody joined.
        let standing = |rank: usize| self.exchange.standing(rank);
        if let Some(rank) =
            (0..self.ranks.len()).find(|&rank| self.ranks[rank].ending.is_some() && standing(rank) != Standing::Left)
        {
            let how = match standing(rank) {
                Standing::Outside => {
                    "ended without joining the job that other ranks have joined; all ranks must initialize"
                }
                _ => "left without finalize",
            };
            self.fail(rank, 1, how);
        }
    }

    /// Ends the job because of this rank.
    fn fail(&mut self, rank: usize, code: i32, reason: &str) {
        let pid = self.ranks[rank].process.pid.as_raw_nonzero();
        let failure = Failure { rank, reason: reason.to_owned() };
        self.end(code, Some(failure), &format!("rank {rank} (pid {pid}) {reason}"));
    }

    fn obey_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            if signal == signals::ASKING_TO_STOP {
                self.pause();
                continue;
            }
            self.interrupted = true;
            match self.phase {
                Phase::Running => self.end(128 + signal, None, &format!("asked to end by {}", signal_name(signal))),
                // Asked twice: no more grace.
                Phase::Ending { .. } | Phase::Killing => self.kill(),
                // Perhaps not all that the ranks have written will be read.
                Phase::Flushing { .. } if self.outcome.code == 0 => self.outcome.code = 128 + signal,
                Phase::Flushing { .. } => {}
            }
        }
    }

    /// Stops the ranks, and this process with them, until somebody continues it. Meanwhile no
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
                self.end(124, None, &format!("the job was not done after {limit:?}"));
            }
            Phase::Ending { kill_at } if passed(kill_at) => self.kill(),
            _ => {}
        }
    }

    /// Turns from running to ending, once: says why, and asks the ranks to leave.
    fn end(&mut self, code: i32, failed: Option<Failure>, why: &str) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Ending { kill_at: Instant::now() + GRACE };
        self.outcome.code = code;
        self.outcome.failed = failed;
        let other = if self.outcome.failed.is_some() { "other " } else { "" };
        let others = match self.others_alive() {
            0 => String::new(),
            1 => format!("; ending the {other}rank"),
            others => format!("; ending the {other}{others} ranks"),
        };
        self.say(&format!("armci-run: {why}{others}"));
        self.signal_all(Signal::TERM);
    }

    /// How many ranks live, besides the one that failed.
    fn others_alive(&self) -> usize {
        let failed = self.outcome.failed.as_ref().map(|failed| failed.rank);
        let alive = |&(number, rank): &(usize, &Rank)| rank.ending.is_none() && Some(number) != failed;
        self.ranks.iter().enumerate().filter(alive).count()
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

    /// Signals every rank's process group; none is reaped yet, so every number is still theirs.
    fn signal_all(&self, signal: Signal) {
        for rank in &self.ranks {
            // Fails if there is nobody left to signal.
            let _ = rustix::process::kill_process_group(rank.process.pid, signal);
        }
    }

    /// Ends what ranks have left running, and takes their processes off the system's table.
    fn reap(&mut self) {
        self.signal_all(Signal::KILL);
        for mut rank in self.ranks.drain(..) {
            let _ = rank.process.child.wait();
        }
    }

    /// Passes on what is left in pipes and backlogs, as fast as it is read.
    ///
    /// All ranks are reaped, so a pipe that is not at its end belongs to a process that is about to
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

impl Drop for Watch<'_> {
    /// Reached with ranks only when the loop itself failed.
    fn drop(&mut self) {
        if !self.ranks.is_empty() {
            self.reap();
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Rounded up, so that a deadline has passed when poll returns.
    let duration = duration + Duration::from_millis(1);
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}
