//! Where other hosts connect: a listening socket, and whoever has knocked and is still to show who it is.
//!
//! Guaranteed: whoever does not prove within [`PATIENCE`] that it is of this job is dropped, having got no more than
//! [`GREETING`] bytes of room; nothing here waits. All are dropped with the door.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::super::random;
use super::greeting::{self, Introduction};
use super::keep_alive;
use super::line::Line;
use super::proof::{Nonce, Secret};
use crate::error::{Error, Result};

/// How long whoever connects may take to prove who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most that a greeting takes.
const GREETING: usize = 4 << 10;
/// So many may be proving it at a time; the oldest gives way.
const STRANGERS: usize = 256;

/// See the module.
pub(in super::super) struct Door {
    listener: TcpListener,
    port: u16,
    secret: Secret,
    silence: Duration,
    strangers: Vec<Stranger>,
    /// How many have knocked: what the next one is called by.
    knocked: u64,
}

/// Who has connected.
struct Stranger {
    number: u64,
    line: Line,
    challenge: Nonce,
    until: Instant,
}

/// Somebody of this job.
pub(in super::super) struct Caller {
    pub(in super::super) line: Line,
    pub(in super::super) who: Introduction,
    /// What lets it in, once it is sent.
    pub(in super::super) welcome: Vec<u8>,
}

impl Door {
    /// Listens at the address that is to be called, if it is one, else at all. The line of whoever has come in ends when
    /// it has not answered for `silence`.
    ///
    /// # Errors
    /// If that is not possible.
    pub(in super::super) fn open(addresses: &[IpAddr], secret: Secret, silence: Duration) -> Result<Self> {
        let only = addresses.first().filter(|_| addresses.len() == 1).copied();
        // An address of another machine, which passes on to us, cannot be listened at.
        let six = addresses.iter().any(IpAddr::is_ipv6).then_some(Ipv6Addr::UNSPECIFIED.into());
        let candidates = [only, six, Some(Ipv4Addr::UNSPECIFIED.into())].into_iter().flatten();
        let candidates: Vec<_> = candidates.map(|address| SocketAddr::new(address, 0)).collect();
        let listener = TcpListener::bind(&candidates[..]).and_then(|door| door.set_nonblocking(true).map(|()| door));
        let listener = listener.map_err(|source| Error::System { call: "listening for other hosts", source })?;
        let port = listener.local_addr().map_err(|source| Error::System { call: "getsockname", source })?.port();
        Ok(Self { listener, port, secret, silence, strangers: Vec::new(), knocked: 0 })
    }

    /// The port to call.
    pub(in super::super) fn port(&self) -> u16 {
        self.port
    }

    /// What becomes readable when somebody knocks.
    pub(in super::super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Everybody's number and socket, and whether something is to be sent there.
    pub(in super::super) fn strangers(&self) -> impl Iterator<Item = (u64, BorrowedFd<'_>, bool)> {
        self.strangers.iter().filter_map(|stranger| {
            let (socket, sending) = stranger.line.socket()?;
            Some((stranger.number, socket, sending))
        })
    }

    /// Lets in whoever knocks, as a stranger.
    ///
    /// # Errors
    /// If nobody can be let in any more.
    pub(in super::super) fn answer(&mut self) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Who has gone again is nobody's loss.
                Err(error) if [libc::ECONNABORTED, libc::EINTR].map(Some).contains(&error.raw_os_error()) => continue,
                Err(error) => return Err(error),
            };
            if let (Ok(()), Ok(challenge)) = (keep_alive(&stream, self.silence), random()) {
                let mut line = Line::new(OwnedFd::from(stream));
                line.send(greeting::challenge(challenge).into());
                if self.strangers.len() == STRANGERS {
                    self.strangers.remove(0);
                }
                let until = Instant::now() + PATIENCE;
                self.strangers.push(Stranger { number: self.knocked, line, challenge, until });
                self.knocked += 1;
            }
        }
    }

    /// Hears a stranger: one of this job is handed out, anybody else who has spoken is dropped.
    pub(in super::super) fn hear(&mut self, number: u64) -> Option<Caller> {
        let at = self.strangers.iter().position(|stranger| stranger.number == number)?;
        let stranger = &mut self.strangers[at];
        stranger.line.receive_up_to(GREETING);
        stranger.line.flush();
        let hello = match stranger.line.next() {
            Ok(None) if stranger.line.socket().is_some() && stranger.line.waiting() < GREETING => return None,
            Ok(hello) => hello,
            Err(_) => None,
        };
        let Stranger { line, challenge, .. } = self.strangers.remove(at);
        let believed = hello.and_then(|hello| greeting::believe(self.secret, challenge, &hello));
        let Some((who, welcome)) = believed else {
            tracing::debug!("somebody connected who is not of this job");
            return None;
        };
        Some(Caller { line, who, welcome })
    }

    /// When the next stranger has had its time.
    pub(in super::super) fn deadline(&self) -> Option<Instant> {
        self.strangers.iter().map(|stranger| stranger.until).min()
    }

    /// Drops those that have had theirs.
    pub(in super::super) fn drop_overdue(&mut self) {
        let now = Instant::now();
        self.strangers.retain(|stranger| stranger.until > now);
    }
}
