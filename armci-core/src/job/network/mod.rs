//! Lines between hosts, for whoever must know that another host is there: `armci-run --hosts`, and the watch that the ranks
//! of other launchers keep.
//!
//! Guaranteed: both ends of a line have proven that they know the job's secret, before either believes a word; a line whose
//! other end has not answered for a while breaks, whether something is sent on it or not. The other end's kernel answers,
//! so a process that is stopped or computes is no lost host.
//!
//! Rooms: `addresses.rs` (where we can be reached), `door.rs` (who is called), `knock.rs` (who calls), `greeting.rs` and
//! `proof.rs` (what they say to each other first), `line.rs` (a socket with what is under way on it).

pub(super) mod addresses;
pub(super) mod door;
pub(super) mod greeting;
pub(super) mod knock;
pub(super) mod line;
pub(super) mod proof;

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;

use crate::error::{Error, Result};

/// Lets the kernel end a connection whose other end has not answered for so long. It asks first when two seconds have
/// passed without a word, and then each second, so that of five seconds three answers must be lost, and of ten eight.
pub(super) fn keep_alive(socket: impl AsFd, silence: Duration) -> Result<()> {
    let socket = socket.as_fd();
    let set = || {
        sockopt::set_tcp_nodelay(socket, true)?;
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(2))?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1))?;
        // It also stands for the number of questions.
        sockopt::set_tcp_user_timeout(socket, silence.as_millis() as u32)
    };
    set().map_err(|errno| Error::system("setsockopt on the line to another host", errno))
}

/// What this host calls itself.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
