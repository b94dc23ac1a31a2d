//! The last word to the launcher, said when the process exits, if nobody has said it by then.
//!
//! `finalize` is heard once: the launcher then hangs up. If this process has an MPI, that says it in `MPI_Finalize`, which
//! usually comes after us, and would find nobody. Whether there is one cannot be known for sure (it may be linked
//! statically, or begin later), but when the process exits it has had its turn: a line that is still open then has no
//! other user.
//!
//! # Safety
//! EXIT-HANDLER: the handler runs in `exit`, on the thread that called it, while others may run. It uses nothing but the
//! static below, plain system calls and memory of its own, and does not unwind into C.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::panic::catch_unwind;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::Pid;

use super::wire;
use crate::error::{Error, Result};

/// How long the launcher has to answer. It answers at once, or has died.
const PATIENCE: Duration = Duration::from_secs(5);

/// The line, and the process it belongs to: a forked child exits too, and has nothing to say.
static LINE: OnceLock<(Arc<OwnedFd>, Pid)> = OnceLock::new();

/// Sees to it that `finalize` has been said over `socket` when this process has exited. Once.
pub(super) fn at_exit(socket: Arc<OwnedFd>) -> Result<()> {
    if LINE.set((socket, rustix::process::getpid())).is_err() {
        return Ok(());
    }
    // SAFETY: EXIT-HANDLER.
    if unsafe { libc::atexit(handler) } == 0 {
        return Ok(());
    }
    // Without memory for a handler: better now than never.
    LINE.get().map_or(Ok(()), |(socket, _)| say(socket))
}

extern "C" fn handler() {
    let _ = catch_unwind(|| match LINE.get() {
        // Nobody is left to hear of an error.
        Some((socket, process)) if *process == rustix::process::getpid() => drop(say(socket)),
        _ => {}
    });
}

/// Says it, unless an MPI has, and waits until it is heard.
fn say(socket: &OwnedFd) -> Result<()> {
    if hung_up(socket) {
        return Ok(());
    }
    set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE)).map_err(|errno| Error::system("setsockopt", errno))?;
    wire::ask(socket, "cmd=finalize", "finalize_ack").map(drop)
}

/// Whether either side has closed the line.
fn hung_up(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}
