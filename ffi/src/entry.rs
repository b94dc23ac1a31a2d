//! The border: everything C calls comes in here.
//!
//! Guaranteed: no panic leaves; whatever fails writes one line, whole, to standard error; a failure that C cannot
//! see in a return value ends the job, since the launcher ends a job whose rank leaves before its time. A panic is
//! a bug of ours that may have left things half done: it ends the job, too.
//!
//! # Safety
//! `fflush` and `_exit` are called as the C standard and POSIX have them, and `stdout` is declared as `<stdio.h>` has
//! it.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use armci_core::{Error, Result};

use crate::member;

/// What a code says of a call that failed.
const FAILED: c_int = 1;
/// The longest that ending a rank waits for what C has buffered. Writing it takes microseconds; the rest is for a
/// machine with many more ranks than cores.
const FLUSH: Duration = Duration::from_millis(500);

unsafe extern "C" {
    /// C's standard output.
    static stdout: *mut libc::FILE;
}

/// Runs the body of a function that returns 0, or something else if it failed.
// Always: the closure's captures then stay in the registers that C passed them in.
#[inline(always)]
pub(crate) fn code(name: &str, body: impl FnOnce() -> Result<()>) -> c_int {
    guarded(name, || match body() {
        Ok(()) => 0,
        Err(error) => refused(name, &error),
    })
}

/// What a function that returns a code does when it failed.
#[cold]
#[inline(never)]
fn refused(name: &str, error: &Error) -> c_int {
    say(name, error);
    FAILED
}

/// What a function that cannot say that it failed does then.
#[cold]
#[inline(never)]
fn gives_up(name: &str, error: &Error) -> ! {
    say(name, error);
    end(FAILED)
}

/// Runs the body of a function that cannot say that it failed.
#[inline(always)]
pub(crate) fn answer<T>(name: &str, body: impl FnOnce() -> Result<T>) -> T {
    guarded(name, || body().unwrap_or_else(|error| gives_up(name, &error)))
}

/// Runs the body of a function that returns a pointer, or NULL if it failed.
pub(crate) fn pointer(name: &str, body: impl FnOnce() -> Result<*mut c_void>) -> *mut c_void {
    guarded(name, || {
        body().unwrap_or_else(|error| {
            say(name, &error);
            ptr::null_mut()
        })
    })
}

/// Runs a body; a panic ends the job.
///
/// What the body returns is what C gets. Were it a `Result` of ours, its seven words would be handed through memory and
/// read before they have arrived there: 3 to 5 ns of each call.
#[inline(always)]
fn guarded<T>(name: &str, body: impl FnOnce() -> T) -> T {
    // Nothing that the panic may have broken is looked at again.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| panicked(name))
}

#[cold]
#[inline(never)]
fn panicked(name: &str) -> ! {
    // The panic hook has written what and where.
    say(name, &"a bug of this library; the state it left is unknown, so the job ends here");
    end(FAILED)
}

/// Writes the one line.
#[cold]
pub(crate) fn say(name: &str, what: &dyn Display) {
    let line = match member::rank() {
        Some(rank) => format!("armci: rank {rank}: {name}: {what}\n"),
        None => format!("armci: {name}: {what}\n"),
    };
    // Nobody is left to be told if this fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Ends this rank, and thereby its job, with a code that is never 0: an error must not look like success.
#[cold]
pub(crate) fn end(code: c_int) -> ! {
    // An exit code has 8 bits.
    let code = if code & 0xff == 0 { FAILED } else { code };
    flush();
    member::abort(code);
    // SAFETY: may be called at any time. No handlers of `atexit` run: they may wait for ranks that never come.
    unsafe { libc::_exit(code) }
}

/// Writes what C has buffered, as far as that is possible within [`FLUSH`].
///
/// `fflush` waits for a stream's lock, which another thread holds as long as it waits for input, and for a reader of
/// a full pipe; so a thread of its own calls it, and is left behind if it does not come back.
fn flush() {
    let (done, wait) = mpsc::channel();
    let flusher = move || {
        // SAFETY: any thread may flush at any time; `stdout` is an open stream, or one that the program closed, whose
        // later use were the program's own error; NULL stands for all streams. Standard output comes first: the
        // others may never be reached.
        unsafe {
            libc::fflush(stdout);
            libc::fflush(ptr::null_mut());
        }
        // Nobody may be waiting any more.
        let _ = done.send(());
    };
    // Without another thread nothing can be flushed within a time.
    if thread::Builder::new().spawn(flusher).is_ok() {
        let _ = wait.recv_timeout(FLUSH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs this very test again, in a process that may end.
    fn in_a_child(name: &str, body: impl FnOnce()) -> Option<(Option<i32>, String)> {
        const CHILD: &str = "ARMCI_FFI_TEST_CHILD";
        if std::env::var_os(CHILD).is_some() {
            body();
            return None;
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CHILD, "yes");
        let output = child.output().unwrap();
        Some((output.status.code(), String::from_utf8(output.stderr).unwrap()))
    }

    #[test]
    fn a_panic_does_not_leave() {
        let body = || {
            let _ = code("ARMCI_Something", || panic!("what went wrong"));
        };
        if let Some((code, stderr)) = in_a_child("entry::tests::a_panic_does_not_leave", body) {
            assert_eq!(code, Some(FAILED), "{stderr}");
            assert!(stderr.contains("what went wrong"), "{stderr}");
            assert!(stderr.ends_with("\narmci: ARMCI_Something: a bug of this library; the state it left is unknown, so the job ends here\n"), "{stderr}");
        }
    }
}
