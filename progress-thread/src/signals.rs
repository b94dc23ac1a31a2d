//! Keeping signals that are sent to the process away from a new thread.
//!
//! # Safety
//! PLAIN-SIGNAL-CALLS: the calls into libc get pointers to `sigset_t` values on our stack that a
//! call before has initialized, and signal numbers that exist. OWN-THREAD: the mask is restored on
//! the thread that changed it, because [`Blocked`] cannot be sent.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Signals that a thread raises by its own fault. Blocked, they would kill without a handler's
/// word.
const FAULTS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Restores the calling thread's mask when dropped.
#[must_use = "signals are blocked only as long as this lives"]
#[derive(Debug)]
pub struct Blocked {
    before: libc::sigset_t,
    own_thread: PhantomData<*const ()>,
}

/// Blocks all signals but [`FAULTS`] in the calling thread, and in those it starts meanwhile.
///
/// # Errors
/// None that a kernel is known to have.
pub fn block_all_but_faults() -> io::Result<Blocked> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: PLAIN-SIGNAL-CALLS; `sigfillset` initializes the set that the others read,
    // `pthread_sigmask` the other if it succeeds.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) {
            0 => Ok(Blocked { before: before.assume_init(), own_thread: PhantomData }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: PLAIN-SIGNAL-CALLS, OWN-THREAD.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
