//! A rank's end of its control socket: joining, exchanging, leaving.
//!
//! Guaranteed: after [`Launched::join`] this process dies with its launcher, also when a shell
//! script stands between the two, and programs it starts do not inherit the socket. The socket
//! stays open until the process ends, dropped or not: it is what tells a second attempt to join
//! that there was a first. The progress thread is not sent where a wrapper (`armci-run -n 2 taskset
//! -c 0 prog`) has forbidden this rank to go ([`within`]).

use std::os::fd::BorrowedFd;

use rustix::io::{FdFlags, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags};
use rustix::thread::CpuSet;

use super::inherited::inherited;
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
    seat: Seat,
}

impl Launched {
    /// Ties this process to its launcher and says hello.
    pub(super) fn join(ticket: Ticket) -> Result<Self> {
        let socket = inherited(ticket.descriptor).map_err(|e| Error::system("fcntl on the control socket", e))?;
        rustix::io::fcntl_setfd(socket, FdFlags::CLOEXEC)
            .map_err(|e| Error::system("fcntl on the control socket", e))?;
        // From here on our parent's death is ours. If it died before, the launcher either still
        // lives, and ends the job, or is gone, and does not answer the hello.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(|e| Error::system("prctl(PR_SET_PDEATHSIG)", e))?;
        let mask = rustix::thread::sched_getaffinity(None).map_err(|e| Error::system("sched_getaffinity", e))?;
        let mut joined = Self {
            socket,
            frames: Frames::default(),
            identity: ticket.who,
            seat: within(&mask, ticket.core.as_deref(), ticket.seat),
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

/// The seat the launcher chose, as far as this rank's mask allows it.
///
/// A mask that is still the launcher's (`bound`) allows all of it: a bound rank keeps to its core,
/// but its progress thread was given one beside it. Any other mask is somebody's later word, and the
/// thread stays within it.
fn within(mask: &CpuSet, bound: Option<&[usize]>, seat: Seat) -> Seat {
    let as_launched =
        bound.is_some_and(|core| mask.count() as usize == core.len() && core.iter().all(|&c| holds(mask, c)));
    match seat.progress_cpu {
        Some(cpu) if !as_launched && !holds(mask, cpu) => Seat { progress_cpu: None, shares: true, ..seat },
        _ => seat,
    }
}

fn holds(mask: &CpuSet, cpu: usize) -> bool {
    cpu < CpuSet::MAX_CPU && mask.is_set(cpu)
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

    fn seat(&self) -> Seat {
        self.seat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(cpus: &[usize]) -> CpuSet {
        let mut mask = CpuSet::new();
        cpus.iter().for_each(|&cpu| mask.set(cpu));
        mask
    }

    #[test]
    fn the_progress_thread_stays_within_a_mask_that_was_narrowed() {
        let chosen = Seat { progress_cpu: Some(2), shares: false, crowded: false };
        let nowhere = Seat { progress_cpu: None, shares: true, crowded: false };
        for (now, bound, seat) in [
            (&[0, 1][..], Some(&[0, 1][..]), chosen), // as the launcher left it
            (&[0], Some(&[0, 1]), nowhere),           // taskset -c 0
            (&[3, 4], Some(&[0, 1]), nowhere),
            (&[2, 3], Some(&[0, 1]), chosen),
            (&[0, 1], None, nowhere),
            (&[0, 1, 2], None, chosen),
        ] {
            assert_eq!(within(&mask(now), bound, chosen), seat, "now {now:?}, bound to {bound:?}");
        }
        let beyond = Seat { progress_cpu: Some(5000), ..chosen };
        assert_eq!(within(&mask(&[0]), None, beyond), nowhere);
    }
}
