//! The last word to the launcher: that the job is to end, or, when the process exits, that it has left in order.
//!
//! `finalize` is heard once: the launcher then hangs up. If this process has an MPI, that says it in `MPI_Finalize`, which
//! usually comes after us, and would find nobody. Whether there is one cannot be known for sure (it may be linked
//! statically, or begin later), but when the process exits it has had its turn: a line that is still open then has no
//! other user. A process that exits with the line open and without our goodbye says `abort` instead: launchers end the job
//! then anyway, but Hydra calls that a success if the exit code was 0.
//!
//! # Safety
//! EXIT-HANDLER: the handler runs in `exit`, on the thread that called it, while others may run. It uses nothing but the
//! static below, plain system calls and memory of its own, and does not unwind into C.
#![allow(unsafe_code)]

use std::io::Write;
use std::os::fd::OwnedFd;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::Pid;

use super::wire;
use crate::error::{Error, Result};

/// How long the launcher has to answer. It answers at once, or has died.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long what this process wrote may take to pass through the launcher, which drops what is under way when it is told
/// to end the job: of Hydra's jobs one in fifty lost the line that said why.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Asks for the end of the job. There is no answer.
pub(super) fn abort(socket: &OwnedFd, code: i32) -> Result<()> {
    std::thread::sleep(LAST_WORDS);
    wire::tell(socket, &format!("cmd=abort exitcode={code}"))
}

/// What the handler knows.
struct Line {
    socket: Arc<OwnedFd>,
    rank: usize,
    /// Whose it is: a forked child exits too, and has nothing to say.
    process: Pid,
    /// Whether the rank has said goodbye.
    left: AtomicBool,
}

static LINE: OnceLock<Line> = OnceLock::new();

/// Sees to it that the launcher hears how this process has left. Once; the line is then this process's.
pub(super) fn prepare(socket: Arc<OwnedFd>, rank: usize) -> Result<()> {
    let line = Line { socket, rank, process: rustix::process::getpid(), left: AtomicBool::new(false) };
    if LINE.set(line).is_err() {
        return Ok(());
    }
    // SAFETY: EXIT-HANDLER.
    if unsafe { libc::atexit(handler) } == 0 {
        return Ok(());
    }
    Err(Error::System { call: "atexit", source: std::io::ErrorKind::OutOfMemory.into() })
}

/// From now on, to exit is in order.
pub(super) fn goodbye() {
    if let Some(line) = LINE.get() {
        line.left.store(true, Ordering::Release);
    }
}

extern "C" fn handler() {
    let _ = catch_unwind(|| match LINE.get() {
        // Nobody is left to hear of an error.
        Some(line) if line.process == rustix::process::getpid() => drop(line.say()),
        _ => {}
    });
}

impl Line {
    /// Says it, unless an MPI has, and waits until it is heard.
    fn say(&self) -> Result<()> {
        if self.hung_up() {
            return Ok(());
        }
        if !self.left.load(Ordering::Acquire) {
            let line = format!("armci: rank {} exits without having left its job: ending it\n", self.rank);
            let _ = std::io::stderr().write_all(line.as_bytes());
            return abort(&self.socket, 1);
        }
        set_socket_timeout(&*self.socket, Timeout::Recv, Some(PATIENCE))
            .map_err(|errno| Error::system("setsockopt", errno))?;
        wire::ask(&*self.socket, "cmd=finalize", "finalize_ack").map(drop)
    }

    /// Whether either side has closed the line.
    fn hung_up(&self) -> bool {
        let mut polled = [PollFd::new(&*self.socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}
