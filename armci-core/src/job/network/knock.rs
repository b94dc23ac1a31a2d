//! The caller's side of a greeting: connect, prove, be shown a proof.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::super::random;
use super::super::wire::{Frame, Frames, Kind};
use super::greeting::{self, Introduction};
use super::keep_alive;
use super::line::Line;
use super::proof::Secret;
use crate::error::{Error, Result};

/// A line on which both sides know each other.
pub(in super::super) struct Greeted {
    stream: TcpStream,
    frames: Frames,
}

/// Connects, and shows each other the secret's proof; nothing if who is called has no use for this caller. Each step may
/// take `patience`; afterwards the line ends when the other host has not answered for `silence`.
///
/// # Errors
/// If nobody of this job answers there.
pub(in super::super) fn knock(
    address: SocketAddr,
    secret: Secret,
    who: &Introduction,
    silence: Duration,
    patience: Duration,
) -> Result<Option<Greeted>> {
    let connecting = |source| Error::System { call: "connecting", source };
    let stream = TcpStream::connect_timeout(&address, patience).map_err(connecting)?;
    keep_alive(&stream, silence)?;
    let mut greeted = Greeted { stream, frames: Frames::default() };
    let challenge = greeted.receive(Some(patience))?;
    let number = random()?;
    let stranger = || Error::Job("whoever answers there is not of this job".into());
    let hello = greeting::introduce(secret, &challenge, number, who).ok_or_else(stranger)?;
    greeted.stream.write_all(&hello).map_err(connecting)?;
    let answer = greeted.receive(Some(patience))?;
    match answer.kind {
        Kind::Refused => Ok(None),
        _ if greeting::is_ours(secret, &challenge, number, &answer) => Ok(Some(greeted)),
        _ => Err(stranger()),
    }
}

impl Greeted {
    /// Waits for a frame, at most so long.
    pub(in super::super) fn receive(&mut self, patience: Option<Duration>) -> Result<Frame> {
        let failed = |source| Error::System { call: "waiting for an answer", source };
        self.stream.set_read_timeout(patience).map_err(failed)?;
        let mut buffer = [0; 4 << 10];
        loop {
            if let Some(frame) = self.frames.next()? {
                return Ok(frame);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Error::Job("the connection was closed".into())),
                Ok(length) => self.frames.push(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The line, with what has arrived on it.
    pub(in super::super) fn into_line(self) -> Line {
        Line::resumed(OwnedFd::from(self.stream), self.frames)
    }
}
