//! The launcher's side of the control sockets: who has joined, who has left, and the answers to
//! collective requests.
//!
//! A request is collective: it is answered, to all, when all ranks have made it. Nothing here
//! waits: [`Exchange::pump`] takes what has arrived and sends what fits; the rest of an answer
//! leaves when the socket is writable again.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::super::wire::{self, Frame, Frames, Kind};

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not said hello; perhaps it never will (`armci-run -n 2 hostname`).
    Outside,
    /// It takes part, and the others count on it.
    Joined,
    /// It, like all others, has said goodbye.
    Left,
}

/// A rank that broke the rules: its number, and how.
pub(super) type Violation = (usize, String);

/// All ranks' control sockets.
pub(super) struct Exchange {
    secret: u64,
    lines: Vec<Line>,
}

/// One rank's.
struct Line {
    socket: Option<OwnedFd>,
    frames: Frames,
    outbox: VecDeque<(Rc<[u8]>, usize)>,
    standing: Standing,
    asked: Option<Frame>,
}

impl Exchange {
    pub(super) fn new(secret: u64) -> Self {
        Self { secret, lines: Vec::new() }
    }

    /// Adds the next rank.
    pub(super) fn add(&mut self, socket: OwnedFd) {
        self.lines.push(Line {
            socket: Some(socket),
            frames: Frames::default(),
            outbox: VecDeque::new(),
            standing: Standing::Outside,
            asked: None,
        });
    }

    pub(super) fn standing(&self, rank: usize) -> Standing {
        self.lines[rank].standing
    }

    /// Whether any rank takes part.
    pub(super) fn anyone_joined(&self) -> bool {
        self.lines.iter().any(|line| line.standing != Standing::Outside)
    }

    /// The socket of a rank, and whether there is something to be sent on it.
    pub(super) fn socket(&self, rank: usize) -> Option<(BorrowedFd<'_>, bool)> {
        let line = &self.lines[rank];
        line.socket.as_ref().map(|socket| (socket.as_fd(), !line.outbox.is_empty()))
    }

    /// Takes what a rank has sent, and sends it what is due.
    pub(super) fn pump(&mut self, rank: usize) -> Result<(), Violation> {
        self.lines[rank].receive();
        while let Some(frame) = self.lines[rank].frames.next().map_err(|error| (rank, error.to_string()))? {
            self.accept(rank, frame)?;
        }
        self.lines[rank].flush();
        Ok(())
    }

    fn accept(&mut self, rank: usize, frame: Frame) -> Result<(), Violation> {
        let line = &mut self.lines[rank];
        match (frame.kind, line.standing) {
            (Kind::Hello, Standing::Outside) if frame.payload == self.secret.to_le_bytes() => {
                line.standing = Standing::Joined;
                line.answer(Frame::encode(Kind::Hello, &self.secret.to_le_bytes()).into());
                Ok(())
            }
            (Kind::Hello, Standing::Outside) => Err((rank, "did not know the job's secret".into())),
            (Kind::Hello, Standing::Joined) => {
                Err((rank, "joined twice; a rank is one process, and initializes once".into()))
            }
            (Kind::Hello, Standing::Left) => {
                let refusal =
                    "this rank has already finished its part in the job; a job runs one program per rank, once";
                line.answer(Frame::encode(Kind::Refused, refusal.as_bytes()).into());
                Ok(())
            }
            (Kind::Gather | Kind::Goodbye, Standing::Joined) if line.asked.is_none() => {
                line.asked = Some(frame);
                self.answer_all()
            }
            (kind, standing) => {
                Err((rank, format!("sent {kind:?} while {standing:?}, against the rules of the control socket")))
            }
        }
    }

    /// Answers a collective request if everybody has made it.
    fn answer_all(&mut self) -> Result<(), Violation> {
        let Some(kinds) =
            self.lines.iter().map(|line| line.asked.as_ref().map(|frame| frame.kind)).collect::<Option<Vec<_>>>()
        else {
            return Ok(());
        };
        let kind = kinds[0];
        if let Some(other) = kinds.iter().position(|&other| other != kind) {
            return Err((
                other,
                format!(
                    "asked for {:?} while rank 0 asked for {kind:?}: collective calls must be made in the same order by all ranks",
                    kinds[other]
                ),
            ));
        }
        let shares = self.lines.iter().filter_map(|line| line.asked.as_ref()).map(|frame| frame.payload.as_slice());
        let table = wire::encode_table(shares);
        if table.len() > wire::LARGEST {
            return Err((
                0,
                format!(
                    "and the others exchanged {} bytes at once; at most {} are carried",
                    table.len(),
                    wire::LARGEST
                ),
            ));
        }
        let answer: Rc<[u8]> = Frame::encode(kind, &table).into();
        for line in &mut self.lines {
            line.asked = None;
            if kind == Kind::Goodbye {
                line.standing = Standing::Left;
            }
            line.answer(Rc::clone(&answer));
        }
        Ok(())
    }
}

impl Line {
    fn answer(&mut self, bytes: Rc<[u8]>) {
        self.outbox.push_back((bytes, 0));
        self.flush();
    }

    /// Reads until nothing is left; a socket that is closed at the other end is closed here too.
    fn receive(&mut self) {
        let mut buffer = [0; 16 << 10];
        while let Some(socket) = &self.socket {
            match rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) if length > 0 => self.frames.push(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                _ => self.socket = None,
            }
        }
    }

    /// Sends until nothing is left or nothing more fits.
    fn flush(&mut self) {
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
                // The rank is gone; the watch learns it from its process.
                Err(_) => self.outbox.clear(),
            }
        }
    }
}
