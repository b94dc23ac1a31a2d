//! A rank's end of its control socket: joining, exchanging, leaving.
//!
//! Guaranteed: after [`Launched::join`] this process dies with its launcher, also when a shell
//! script stands between the two, and programs it starts do not inherit the socket. The socket
//! stays open until the process ends, dropped or not: it is what tells a second attempt to join
//! that there was a first.
//!
//! # Safety
//! INHERITED-CONTROL: a descriptor named by `ARMCI_JOB` is used only after `fstat` (harmless on any
//! number) showed it to be the socket the launcher made for this rank. Nothing in this process has
//! another claim to it, and nothing here closes it, so a borrow of it lives as long as the process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags};

use super::ticket::Ticket;
use super::wire::{self, Frame, Frames, Kind};
use super::{Bootstrap, Identity};
use crate::error::{Error, Result};
use crate::topology::Seat;

/// A rank that `armci-run` or [`super::Job`] started.
pub(super) struct Launched {
    socket: BorrowedFd<'static>,
    frames: Frames,
    identity: Identity,
    secret: u64,
    seat: Seat,
}

/// Borrows a descriptor by its number, if that is open.
pub(super) fn inherited(descriptor: RawFd) -> io::Result<BorrowedFd<'static>> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: INHERITED-CONTROL. The number is not -1. Only `fcntl(F_GETFD)` and `fstat` are called
    // on it until its inode number is found to be the ticket's; neither changes anything, whatever
    // the number stands for.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    rustix::io::fcntl_getfd(borrowed)?;
    Ok(borrowed)
}

impl Launched {
    /// Ties this process to its launcher and says hello.
    pub(super) fn join(ticket: Ticket) -> Result<Self> {
        let system = |call: &'static str| move |error: io::Error| Error::System { call, source: error };
        let socket = inherited(ticket.descriptor).map_err(system("fcntl on the control socket"))?;
        rustix::io::fcntl_setfd(socket, FdFlags::CLOEXEC)
            .map_err(|e| system("fcntl on the control socket")(e.into()))?;
        // From here on our parent's death is ours. If it died before, the launcher either still
        // lives, and ends the job, or is gone, and does not answer the hello.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(|e| system("prctl(PR_SET_PDEATHSIG)")(e.into()))?;
        let mut joined = Self {
            socket,
            frames: Frames::default(),
            identity: Identity::on_one_node(ticket.rank, ticket.size),
            secret: ticket.secret,
            seat: ticket.seat,
        };
        let answer = joined.exchange(Kind::Hello, &ticket.secret.to_le_bytes())?;
        if answer != ticket.secret.to_le_bytes() {
            return Err(Error::Job(
                "the process behind ARMCI_JOB does not know the job's secret; unset ARMCI_JOB".into(),
            ));
        }
        Ok(joined)
    }

    /// Sends one frame and waits for its answer.
    fn exchange(&mut self, kind: Kind, payload: &[u8]) -> Result<Vec<u8>> {
        self.send(&Frame::encode(kind, payload))?;
        let answer = self.receive()?;
        match answer.kind {
            answered if answered == kind => Ok(answer.payload),
            Kind::Refused => Err(Error::Job(String::from_utf8_lossy(&answer.payload).into_owned())),
            other => Err(Error::Job(format!(
                "the launcher answered {kind:?} with {other:?}: two processes share one rank's socket, or versions differ"
            ))),
        }
    }

    fn send(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let sent = retry_on_intr(|| rustix::net::send(self.socket, bytes, SendFlags::NOSIGNAL))
                .map_err(|_| launcher_gone())?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Frame> {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(frame) = self.frames.next()? {
                return Ok(frame);
            }
            let (received, _) = retry_on_intr(|| rustix::net::recv(self.socket, &mut buffer[..], RecvFlags::empty()))
                .map_err(|_| launcher_gone())?;
            if received == 0 {
                return Err(launcher_gone());
            }
            self.frames.push(&buffer[..received]);
        }
    }
}

fn launcher_gone() -> Error {
    Error::Job("the launcher of this job is gone; start the program again".into())
}

impl Bootstrap for Launched {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn all_gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        if mine.len() > wire::LARGEST_SHARE {
            return Err(Error::Argument(format!(
                "a share of an exchange has {} bytes; at most {} travel",
                mine.len(),
                wire::LARGEST_SHARE
            )));
        }
        let table = self.exchange(Kind::Gather, mine)?;
        wire::decode_table(&table, self.identity.size)
    }

    fn goodbye(&mut self) -> Result<()> {
        self.exchange(Kind::Goodbye, &[]).map(drop)
    }

    fn secret(&self) -> u64 {
        self.secret
    }

    fn seat(&self) -> Seat {
        self.seat
    }
}
