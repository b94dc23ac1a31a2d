//! Being asked to end: Ctrl-C, `kill`, a terminal that goes.
//!
//! The first such signal is only remembered, so that whoever waits for a peer can end it and its files are removed;
//! between two measurements the run looks here, too. A second one ends the program at once. (While a job of ours
//! runs, its launcher takes the signals, and the job fails.) What was ignored stays ignored.
//!
//! # Safety
//! SIGNAL-SAFE: what is called in a handler, or between `fork` and `exec`, is an atomic store or a system call.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::error::{Error, Result};

/// The signal that came; 0: none. Nothing else is read on the strength of it.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn remember(signal: libc::c_int) {
    CAME.store(signal, Ordering::Relaxed);
}

/// Remembers signals from now on.
pub fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: both structures are initialized (all-zero bytes are a valid `sigaction`) and on our stack, the
        // signals exist, and the handler has the type that goes without `SA_SIGINFO`; SIGNAL-SAFE.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = remember as extern "C" fn(libc::c_int) as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

/// Fails once a signal has come.
///
/// # Errors
/// Which one.
pub fn check() -> Result<()> {
    match CAME.load(Ordering::Relaxed) {
        0 => Ok(()),
        signal => Err(Error::Interrupted(signal)),
    }
}

/// Lets the kernel ask the command to end when the calling thread ends, however that happens.
pub fn tie(command: &mut Command) -> &mut Command {
    let parent = getpid();
    let tied = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // It may have ended before.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: SIGNAL-SAFE: two system calls, and errors without allocation.
    unsafe { command.pre_exec(tied) }
}
