//! One stream socket, with what has arrived on it and what is still to be sent.
//!
//! Nothing here waits: what does not fit now leaves when the socket is writable again. A socket that is closed at the
//! other end is closed here too, after the last word from it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::super::wire::{Frame, Frames};
use crate::error::Result;

/// A socket and its two queues.
pub(in super::super) struct Line {
    socket: Option<OwnedFd>,
    frames: Frames,
    outbox: VecDeque<(Arc<[u8]>, usize)>,
    broken: Option<Errno>,
}

/// Whether a connection broke because nobody has answered. Then the kernel reports what a router has told it meanwhile, or
/// that the other end's address answers nobody, if it knows more than the time.
pub(in super::super) fn is_silence(broken: Errno) -> bool {
    [Errno::TIMEDOUT, Errno::HOSTUNREACH, Errno::NETUNREACH].contains(&broken)
}

impl Line {
    pub(in super::super) fn new(socket: OwnedFd) -> Self {
        Self::resumed(socket, Frames::default())
    }

    /// A socket on which something has been read already.
    pub(in super::super) fn resumed(socket: OwnedFd, frames: Frames) -> Self {
        Self { socket: Some(socket), frames, outbox: VecDeque::new(), broken: None }
    }

    /// The socket, while it is open, and whether there is something to be sent on it.
    pub(in super::super) fn socket(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.socket.as_ref().map(|socket| (socket.as_fd(), !self.outbox.is_empty()))
    }

    /// What the kernel reported when the connection broke, if it did not simply end.
    pub(in super::super) fn broken(&self) -> Option<Errno> {
        self.broken
    }

    /// How much has arrived that is no whole frame.
    pub(in super::super) fn waiting(&self) -> usize {
        self.frames.waiting()
    }

    /// The next frame that has arrived.
    pub(in super::super) fn next(&mut self) -> Result<Option<Frame>> {
        self.frames.next()
    }

    /// Sends, now or later.
    pub(in super::super) fn send(&mut self, bytes: Arc<[u8]>) {
        self.outbox.push_back((bytes, 0));
        self.flush();
    }

    /// Reads until nothing is left.
    pub(in super::super) fn receive(&mut self) {
        self.receive_up_to(usize::MAX);
    }

    /// Reads until nothing is left, or so much waits: whoever has not shown who it is gets no more room.
    pub(in super::super) fn receive_up_to(&mut self, limit: usize) {
        let mut buffer = [0; 16 << 10];
        while let Some(socket) = self.socket.as_ref().filter(|_| self.frames.waiting() < limit) {
            match rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) if length > 0 => self.frames.push(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => self.close(Some(error)),
                Ok(_) => self.close(None),
            }
        }
    }

    /// Sends no more after this: the other end reads to an end.
    pub(in super::super) fn end(&mut self) {
        if let Some(socket) = &self.socket {
            // One that is broken has ended.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
    }

    fn close(&mut self, broken: Option<Errno>) {
        self.broken = broken;
        self.socket = None;
    }

    /// Sends until nothing is left or nothing more fits.
    pub(in super::super) fn flush(&mut self) {
        while let (Some(socket), Some((bytes, sent))) = (&self.socket, self.outbox.front_mut()) {
            match rustix::net::send(socket, &bytes[*sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(length) => {
                    *sent += length;
                    if *sent == bytes.len() {
                        self.outbox.pop_front();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody is there any more; whoever reads from the line learns it.
                Err(_) => self.outbox.clear(),
            }
        }
    }
}
