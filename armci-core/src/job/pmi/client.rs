//! The key-value store that PMI-1 offers.
//!
//! Values are text of limited length: bytes travel as hexadecimal digits, in as many pieces as it takes, the first of
//! which begins with their number. Keys carry the rank, as all ranks share one space.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::FdFlags;

use super::super::abort::Aborter;
use super::super::hosted::KeyValues;
use super::wire::{ask, from_hex, to_hex};
use super::{Place, leave};
use crate::error::{Error, Result};

/// The longest value that any PMI-1 must take, and what a piece's header takes of it.
const VALUE_MAX: usize = 1024;
const HEADER: usize = 24;
/// The most that one value may have, said by another rank.
const LARGEST: usize = 1 << 20;

/// A rank's end of the conversation.
#[derive(Debug)]
pub(in super::super) struct Client {
    /// A descriptor of our own: `MPI_Finalize` closes the one that `PMI_FD` names, and the number may come to stand for
    /// something else.
    socket: Arc<OwnedFd>,
    rank: usize,
    size: usize,
    store: String,
    /// Bytes in one piece.
    piece: usize,
}

impl Client {
    /// Says hello.
    ///
    /// # Errors
    /// If the launcher is gone, or does not speak PMI-1.
    pub(in super::super) fn connect(place: &Place) -> Result<Self> {
        let inherited = place.socket()?;
        let client = Self::over(inherited, place.rank, place.size)?;
        leave::prepare(client.socket.clone(), place.rank)?;
        // A program that this rank starts is none, and finds PMI_FD stale.
        rustix::io::fcntl_setfd(inherited, FdFlags::CLOEXEC)
            .map_err(|errno| Error::system("fcntl on PMI_FD", errno))?;
        Ok(client)
    }

    fn over(socket: BorrowedFd<'_>, rank: usize, size: usize) -> Result<Self> {
        let socket =
            rustix::io::fcntl_dupfd_cloexec(socket, 3).map_err(|errno| Error::system("fcntl(F_DUPFD)", errno))?;
        ask(&socket, "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let maxes = ask(&socket, "cmd=get_maxes", "maxes")?;
        let longest = maxes.word("vallen_max").and_then(|max| max.parse().ok()).unwrap_or(VALUE_MAX).min(VALUE_MAX);
        // Some count the zero byte at the end.
        let Some(piece) = longest.checked_sub(1 + HEADER).map(|digits| digits / 2).filter(|piece| *piece > 0) else {
            return Err(Error::Job(format!(
                "the launcher behind PMI_FD takes values of {longest} bytes at most: too few"
            )));
        };
        let store = ask(&socket, "cmd=get_my_kvsname", "my_kvsname")?.needs("kvsname")?.to_owned();
        Ok(Self { socket: Arc::new(socket), rank, size, store, piece })
    }

    fn put_piece(&self, key: u64, piece: usize, value: &str) -> Result<()> {
        let question = format!("cmd=put kvsname={} key=armci-{key}-{}-{piece} value={value}", self.store, self.rank);
        ask(&*self.socket, &question, "put_result").map(drop)
    }

    fn get_piece(&self, rank: usize, key: u64, piece: usize) -> Result<String> {
        let question = format!("cmd=get kvsname={} key=armci-{key}-{rank}-{piece}", self.store);
        Ok(ask(&*self.socket, &question, "get_result")?.needs("value")?.to_owned())
    }
}

impl KeyValues for Client {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        if value.len() > LARGEST {
            let bytes = value.len();
            return Err(Error::Argument(format!("a share of an exchange has {bytes} bytes; at most {LARGEST} travel")));
        }
        let (first, rest) = value.split_at(value.len().min(self.piece));
        self.put_piece(key, 0, &format!("{}-{}", value.len(), to_hex(first)))?;
        rest.chunks(self.piece).zip(1..).try_for_each(|(bytes, piece)| self.put_piece(key, piece, &to_hex(bytes)))
    }

    fn fence(&mut self) -> Result<()> {
        ask(&*self.socket, "cmd=barrier_in", "barrier_out").map(drop)
    }

    fn get(&mut self, rank: usize, key: u64) -> Result<Vec<u8>> {
        let unreadable = |text: &str| {
            Error::Job(format!("rank {rank} put {:?}, which is none of our values", text.get(..60).unwrap_or(text)))
        };
        let first = self.get_piece(rank, key, 0)?;
        let (length, digits) = first.split_once('-').ok_or_else(|| unreadable(&first))?;
        let length: usize =
            length.parse().ok().filter(|length| *length <= LARGEST).ok_or_else(|| unreadable(&first))?;
        let mut value = from_hex(digits).ok_or_else(|| unreadable(&first))?;
        for piece in 1.. {
            if value.len() >= length {
                break;
            }
            let digits = self.get_piece(rank, key, piece)?;
            let bytes = from_hex(&digits).filter(|bytes| !bytes.is_empty()).ok_or_else(|| unreadable(&digits))?;
            value.extend(bytes);
        }
        if value.len() == length { Ok(value) } else { Err(unreadable(&first)) }
    }

    fn aborter(&self) -> Aborter {
        let socket = self.socket.clone();
        Aborter::new(move |code, _| {
            // If the launcher does not hear it, it sees this process end.
            let _ = leave::abort(&socket, code);
        })
    }

    fn finish(&mut self) -> Result<()> {
        leave::goodbye();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
