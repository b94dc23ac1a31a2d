//! Signals to the launcher, as readable bytes instead of interruptions.
//!
//! Guaranteed: while a [`Listener`] lives, the signals in [`ASKING_TO_END`] and [`ASKING_TO_STOP`] do
//! not interrupt the calling thread but wait in its descriptor; dropping it restores the thread's
//! signal mask and the disposition of `SIGCHLD`. Ignored signals stay ignored (`nohup`).
//!
//! `progress-thread` keeps a mask too, but for the opposite purpose (no signal at all, for a moment),
//! and as a detail of its own: to share the ten lines, it would have to offer signal masks to
//! everybody.
//!
//! # Safety
//! PLAIN-SIGNAL-CALLS: the calls into libc get pointers to initialized `sigset_t` and `sigaction`
//! values on our stack, or null where the manual allows it, and signal numbers that exist.
//! OWN-THREAD: the mask is restored on the thread that changed it, because [`Listener`] cannot be
//! sent to another.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::error::{Error, Result};

/// What a terminal, a batch system or a person sends to end a program.
pub(super) const ASKING_TO_END: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// What a terminal sends to suspend a program (Ctrl-Z).
pub(super) const ASKING_TO_STOP: i32 = libc::SIGTSTP;

/// Signals of this thread, queued.
pub(super) struct Listener {
    queue: OwnedFd,
    mask_before: Mask,
    children_ignored: bool,
    own_thread: PhantomData<*const ()>,
}

/// A set of signals, as a thread's mask.
#[derive(Clone, Copy)]
pub(super) struct Mask(libc::sigset_t);

impl Mask {
    fn of(signals: &[i32]) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: PLAIN-SIGNAL-CALLS; `sigemptyset` initializes the set before the others read it.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in signals {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            Self(set.assume_init())
        }
    }

    /// Changes the calling thread's mask, and returns what it was. Safe between fork and exec.
    fn apply(self, how: i32) -> io::Result<Self> {
        let mut before = Self::of(&[]);
        // SAFETY: PLAIN-SIGNAL-CALLS.
        match unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) } {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Makes this the calling thread's mask. Safe between fork and exec.
    pub(super) fn restore(self) -> io::Result<()> {
        self.apply(libc::SIG_SETMASK).map(drop)
    }
}

impl Listener {
    /// Starts listening on the calling thread.
    pub(super) fn new() -> Result<Self> {
        // A signal that is blocked is queued even if it is ignored; so we do not ask for those.
        let mut wanted = ASKING_TO_END.to_vec();
        wanted.push(ASKING_TO_STOP);
        wanted.retain(|&signal| disposition_of(signal) != libc::SIG_IGN);
        let signals = Mask::of(&wanted);
        // SAFETY: PLAIN-SIGNAL-CALLS; -1 asks for a new descriptor.
        let queue = unsafe { libc::signalfd(-1, &raw const signals.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if queue < 0 {
            return Err(Error::System { call: "signalfd", source: io::Error::last_os_error() });
        }
        // SAFETY: the kernel has just given us this descriptor.
        let queue = unsafe { OwnedFd::from_raw_fd(queue) };
        let mask_before =
            signals.apply(libc::SIG_BLOCK).map_err(|source| Error::System { call: "pthread_sigmask", source })?;
        // Whoever ignores SIGCHLD has no dead children to ask; a parent that did so has handed it
        // down to us.
        let children_ignored = disposition_of(libc::SIGCHLD) == libc::SIG_IGN;
        if children_ignored {
            set_disposition_of_child(libc::SIG_DFL);
        }
        Ok(Self { queue, mask_before, children_ignored, own_thread: PhantomData })
    }

    /// The mask that ranks should start with.
    pub(super) fn mask_before(&self) -> Mask {
        self.mask_before
    }

    /// Becomes readable when a signal has come.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    /// The next signal that has come.
    pub(super) fn next(&self) -> Option<i32> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.queue, &mut record) {
            // The record opens with the signal's number.
            Ok(length) if length == record.len() => {
                Some(u32::from_ne_bytes([record[0], record[1], record[2], record[3]]) as i32)
            }
            _ => None,
        }
    }

    /// Lets [`ASKING_TO_STOP`] do to this process what it would have done had we not caught it;
    /// returns when the process is continued, or at once where nobody could continue it (the kernel
    /// does not let the terminal stop a process group without a parent outside).
    pub(super) fn stop_this_process(&self) {
        let stop = Mask::of(&[ASKING_TO_STOP]);
        // SAFETY: PLAIN-SIGNAL-CALLS. The signal is blocked in this thread, so it waits here for the
        // line below.
        unsafe { libc::raise(ASKING_TO_STOP) };
        // Fails only for an unknown `how`.
        let _ = stop.apply(libc::SIG_UNBLOCK).and_then(|_| stop.apply(libc::SIG_BLOCK));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.children_ignored {
            set_disposition_of_child(libc::SIG_IGN);
        }
        // Fails only for an unknown `how`.
        let _ = self.mask_before.restore();
    }
}

fn disposition_of(signal: i32) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: PLAIN-SIGNAL-CALLS; all-zero bytes are a valid `sigaction`, whatever the call does.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

fn set_disposition_of_child(disposition: libc::sighandler_t) {
    // SAFETY: PLAIN-SIGNAL-CALLS; the disposition is `SIG_DFL` or `SIG_IGN`, no function.
    unsafe { libc::signal(libc::SIGCHLD, disposition) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_waits_to_be_read() {
        let listener = Listener::new().unwrap();
        assert_eq!(listener.next(), None);
        // SAFETY: `SIGTERM`, which hardly anybody ignores, is blocked in this thread and read below, before the mask is restored.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
        assert_eq!(listener.next(), Some(libc::SIGTERM));
        assert_eq!(listener.next(), None);
    }
}
