//! The language between a rank and its launcher, between a launcher and its agents on other hosts, and between ranks that
//! watch each other: frames of a kind, a length and bytes, over a stream socket.
//!
//! ```text
//!   0       4       8            8+len
//!   | kind  | len   | payload    |        both numbers little-endian u32
//! ```
//!
//! Guaranteed: whatever arrives, [`Frames`] yields whole frames of known kinds or an error; it
//! never reserves memory on the word of a length it has not seen arrive.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::error::{Error, Result};

/// The largest payload either side accepts: a table of 16 Ki ranks with 4 KiB each.
pub(super) const LARGEST: usize = 64 << 20;
/// The largest contribution of one rank to an exchange.
pub(super) const LARGEST_SHARE: usize = 1 << 20;
/// The bytes before a payload.
pub(super) const HEADER: usize = 8;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Rank: here I am, and this is the secret. Launcher: welcome, and this is the secret.
    Hello = 1,
    /// Rank: my share. Launcher: everybody's.
    Gather = 2,
    /// Rank: I am done. Launcher: everybody is. Between ranks: I leave in order.
    Goodbye = 3,
    /// Launcher: no; the payload says why.
    Refused = 4,
    /// To an agent, over the remote shell: whom to call back, and what to run.
    Call = 5,
    /// Launcher, to whoever connects: prove who you are.
    Challenge = 6,
    /// Launcher: all hosts are there; start your ranks.
    Start = 7,
    /// Agent: the first of my ranks has joined. Launcher: somewhere a rank has. Node: I watch you from now on.
    Joined = 8,
    /// Agent, rank: this is why the job is to end.
    Failed = 9,
    /// Agent: all my ranks have ended well.
    Done = 10,
    /// Launcher: a signal for your ranks.
    Signal = 11,
}

impl Kind {
    fn from_number(number: u32) -> Option<Self> {
        use Kind::{Call, Challenge, Done, Failed, Gather, Goodbye, Hello, Joined, Refused, Signal, Start};
        let all = [Hello, Gather, Goodbye, Refused, Call, Challenge, Start, Joined, Failed, Done, Signal];
        all.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// The bytes of a frame.
    pub(super) fn encode(kind: Kind, payload: &[u8]) -> Vec<u8> {
        debug_assert!(payload.len() <= LARGEST);
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend_from_slice(&(kind as u32).to_le_bytes());
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }
}

/// Cuts a stream of bytes into frames.
#[derive(Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Takes what has arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes wait for their frame to be whole.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// The next whole frame, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Frame>> {
        if self.bytes.len() < HEADER {
            return Ok(None);
        }
        let (kind, length) = (number_at(&self.bytes, 0), number_at(&self.bytes, 4) as usize);
        let unreadable = || {
            Error::Job(format!(
                "the control socket carried a frame of kind {kind} and {length} bytes, which is none of ours"
            ))
        };
        let kind = Kind::from_number(kind).ok_or_else(unreadable)?;
        if length > LARGEST {
            return Err(unreadable());
        }
        if self.bytes.len() < HEADER + length {
            return Ok(None);
        }
        let rest = self.bytes.split_off(HEADER + length);
        let mut payload = std::mem::replace(&mut self.bytes, rest);
        payload.drain(..HEADER);
        Ok(Some(Frame { kind, payload }))
    }
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Everybody's shares as one payload; payloads of consecutive ranks, one behind the other, are the payload of all.
pub(super) fn encode_table<'a>(shares: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut table = Vec::new();
    for share in shares {
        table.extend_from_slice(&(share.len() as u32).to_le_bytes());
        table.extend_from_slice(share);
    }
    table
}

/// The shares of `ranks` ranks, out of one payload.
pub(super) fn decode_table(mut table: &[u8], ranks: usize) -> Result<Vec<Vec<u8>>> {
    let broken = || Error::Job(format!("the launcher's answer to an exchange does not hold {ranks} shares"));
    let mut shares = Vec::with_capacity(ranks);
    for _ in 0..ranks {
        let (length, rest) = table.split_at_checked(4).ok_or_else(broken)?;
        let (share, rest) = rest.split_at_checked(number_at(length, 0) as usize).ok_or_else(broken)?;
        shares.push(share.to_vec());
        table = rest;
    }
    if table.is_empty() { Ok(shares) } else { Err(broken()) }
}

/// Numbers and texts, one behind the other.
#[derive(Default)]
pub(super) struct Words(pub(super) Vec<u8>);

impl Words {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what [`Words`] wrote; nothing from where it does not fit.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A text that need not be UTF-8.
    pub(super) fn text(&mut self) -> Option<OsString> {
        self.bytes().map(|bytes| OsString::from_vec(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let mut stream = Frame::encode(Kind::Hello, b"12345678");
        stream.extend(Frame::encode(Kind::Goodbye, b""));
        for cut in 0..stream.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                frames.push(part);
                while let Some(frame) = frames.next().unwrap() {
                    seen.push(frame);
                }
            }
            assert_eq!(
                seen,
                [
                    Frame { kind: Kind::Hello, payload: b"12345678".to_vec() },
                    Frame { kind: Kind::Goodbye, payload: vec![] }
                ]
            );
        }
    }

    #[test]
    fn unknown_kinds_and_absurd_lengths_are_errors() {
        for header in [[99u32, 0], [2, u32::MAX]] {
            let mut frames = Frames::default();
            frames.push(&header[0].to_le_bytes());
            frames.push(&header[1].to_le_bytes());
            assert!(frames.next().is_err());
        }
    }

    #[test]
    fn tables_round_trip_and_short_ones_are_errors() {
        let shares = [b"a".to_vec(), vec![], b"xyz".to_vec()];
        let table = encode_table(shares.iter().map(Vec::as_slice));
        assert_eq!(decode_table(&table, 3).unwrap(), shares);
        assert!(decode_table(&table, 4).is_err());
        assert!(decode_table(&table, 2).is_err());
        assert!(decode_table(&table[..table.len() - 1], 3).is_err());
    }
}
