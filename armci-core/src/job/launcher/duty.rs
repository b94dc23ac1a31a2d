//! What the launcher's one loop is for: the ranks of this host ([`super::ranks`]), or the hosts of a job
//! ([`super::hosts`]).
//!
//! The loop knows processes (its *members*), what they write, signals and deadlines; a duty knows what members say, what
//! their end means, and how a signal reaches everybody.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::Failure;
use super::ending::Ending;
use super::spawn::Started;

/// A process that the loop has started.
pub(super) struct Member {
    pub(super) process: Started,
    pub(super) ending: Option<Ending>,
}

/// Why a job is to end.
#[derive(Debug)]
pub(super) struct Verdict {
    /// What the launching program should exit with.
    pub(super) code: i32,
    /// The rank that is to blame, if one is.
    pub(super) failed: Option<Failure>,
    /// Its process, if it has one.
    pub(super) pid: i32,
    /// The sentence for people.
    pub(super) why: String,
}

/// The loop's purpose.
pub(super) trait Duty {
    /// What a descriptor stands for.
    type Token: Copy;

    /// How long everybody has, after `SIGTERM`, to flush and leave.
    const GRACE: Duration;

    /// Names the descriptors to wait on, besides those of the members.
    fn wait_on<'a>(&'a self, add: &mut dyn FnMut(Self::Token, BorrowedFd<'a>, PollFlags));

    /// Takes what is ready there.
    fn serve(&mut self, token: Self::Token, members: &[Member]) -> Option<Verdict>;

    /// Takes the last words of a member that has ended.
    fn last_words(&mut self, member: usize, members: &[Member]) -> Option<Verdict>;

    /// Decides what it means for the job that these members have ended.
    fn judge(&self, members: &[Member], ended: &[usize]) -> Option<Verdict>;

    /// When something will be overdue, and what that means.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Called when that time has passed.
    fn overdue(&mut self) -> Option<Verdict> {
        None
    }

    /// Sends everybody a signal.
    fn signal(&mut self, members: &[Member], signal: Signal);

    /// How many ranks live, besides one that failed.
    fn others(&self, members: &[Member], failed: Option<usize>) -> usize;

    /// Tells somebody else of the end, who says it to people. Whether there is somebody.
    fn report(&mut self, verdict: &Verdict) -> bool {
        let _ = verdict;
        false
    }

    /// Whether somebody who has ended may still be heard: his last words may be on their way.
    fn listens(&self) -> bool {
        false
    }

    /// All members have ended well.
    fn all_done(&mut self) {}
}

/// Signals the members' process groups; none is reaped yet, so every number is still theirs.
pub(super) fn signal_groups<'a>(members: impl IntoIterator<Item = &'a Member>, signal: Signal) {
    for member in members {
        // Fails if there is nobody left to signal.
        let _ = rustix::process::kill_process_group(member.process.pid, signal);
    }
}
