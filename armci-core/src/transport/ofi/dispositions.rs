//! Signals as the program has them: what loading libfabric changes of that is put back.
//!
//! Some of its providers, and libraries these load, take signals for themselves as soon as they are there, chosen or
//! not: a segmentation fault then leaves a file behind and ends with another code. A program's signals are its own.
//!
//! # Safety
//! SIGACTION: the calls are given a signal's number and places for an action, of which zeroes are one.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

/// Signals that libraries are known to take.
const SIGNALS: [c_int; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// What is done at each of [`SIGNALS`].
pub(super) struct Dispositions([libc::sigaction; SIGNALS.len()]);

impl Dispositions {
    /// As they are now.
    pub(super) fn now() -> Self {
        Dispositions(SIGNALS.map(|signal| {
            // SAFETY: SIGACTION.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, ptr::null(), &mut action);
                action
            }
        }))
    }

    /// As they were.
    pub(super) fn restore(&self) {
        for (signal, action) in SIGNALS.iter().zip(&self.0) {
            // SAFETY: SIGACTION: the action was the program's own a moment ago.
            unsafe { libc::sigaction(*signal, action, ptr::null_mut()) };
        }
    }
}
