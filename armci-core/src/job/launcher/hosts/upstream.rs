//! The agent's line to the head: what its ranks ask and how they end goes up, answers and orders come down.
//!
//! Guaranteed: an end is reported once, and not at all if it is the head's own order. A line that breaks is the order to
//! end: nobody would hear of these ranks any more.

use std::os::fd::BorrowedFd;

use rustix::process::Signal;

use super::super::super::network::line::Line;
use super::super::super::wire::{Frame, Kind, Reader, Words};
use super::super::duty::Verdict;

/// Stands for no rank in a report.
const NOBODY: u64 = u64::MAX;

/// See the module.
pub(in super::super) struct Upstream {
    line: Line,
    /// The end has been reported, or ordered.
    over: bool,
}

/// What the head wants.
pub(in super::super) enum Order {
    /// This is what all ranks have exchanged.
    Answer(Kind, Vec<u8>),
    /// On another host a rank has joined.
    OthersJoined,
    /// A signal for the ranks.
    Signal(Signal),
    /// The job is over.
    End(String),
}

/// Why a job ended, as an agent reports it.
pub(super) struct Report {
    pub(super) code: i32,
    /// The rank that failed, its process, and what became of it.
    pub(super) rank: Option<usize>,
    pub(super) pid: i32,
    pub(super) reason: String,
    /// The whole sentence, for ends without a rank.
    pub(super) why: String,
}

impl Upstream {
    pub(super) fn new(line: Line) -> Self {
        Self { line, over: false }
    }

    /// The socket, and whether there is something to be sent on it.
    pub(in super::super) fn socket(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.line.socket()
    }

    /// The first rank here has joined.
    pub(in super::super) fn joined(&mut self) {
        self.line.send(Frame::encode(Kind::Joined, &[]).into());
    }

    /// All ranks here have asked this.
    pub(in super::super) fn ask(&mut self, asked: &Frame) {
        self.line.send(Frame::encode(asked.kind, &asked.payload).into());
    }

    /// All ranks here have ended well.
    pub(in super::super) fn done(&mut self) {
        self.line.send(Frame::encode(Kind::Done, &[]).into());
    }

    /// The job is to end because of this.
    pub(in super::super) fn failed(&mut self, verdict: &Verdict) {
        if !std::mem::replace(&mut self.over, true) {
            let failed = verdict.failed.as_ref();
            let report = Report {
                code: verdict.code,
                rank: failed.map(|failed| failed.rank),
                pid: verdict.pid,
                reason: failed.map_or_else(String::new, |failed| failed.reason.clone()),
                why: verdict.why.clone(),
            };
            self.line.send(report.encode().into());
        }
    }

    /// The next order, if there is one.
    pub(in super::super) fn order(&mut self) -> Option<Order> {
        self.line.receive();
        self.line.flush();
        loop {
            let frame = match self.line.next() {
                Ok(Some(frame)) => frame,
                Ok(None) if self.line.socket().is_none() => return self.end("the launcher of this job is gone"),
                Ok(None) => return None,
                Err(error) => return self.end(&error.to_string()),
            };
            match frame.kind {
                kind @ (Kind::Gather | Kind::Goodbye) => return Some(Order::Answer(kind, frame.payload)),
                Kind::Joined => return Some(Order::OthersJoined),
                Kind::Signal => match signal_of(&frame) {
                    Some(Signal::TERM) => return self.end("the launcher ends the job"),
                    Some(signal) => return Some(Order::Signal(signal)),
                    None => {}
                },
                _ => {}
            }
        }
    }

    /// The order to end, once.
    fn end(&mut self, why: &str) -> Option<Order> {
        (!std::mem::replace(&mut self.over, true)).then(|| Order::End(why.to_owned()))
    }
}

impl Report {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut words = Words::default();
        words.number(self.code as u64);
        words.number(self.rank.map_or(NOBODY, |rank| rank as u64));
        words.number(self.pid as u64);
        words.bytes(self.reason.as_bytes());
        words.bytes(self.why.as_bytes());
        Frame::encode(Kind::Failed, &words.0)
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut words = Reader(payload);
        let code = words.number()? as i32;
        let rank = Some(words.number()?).filter(|rank| *rank != NOBODY).map(|rank| rank as usize);
        let pid = words.number()? as i32;
        let mut text = || words.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Some(Self { code, rank, pid, reason: text()?, why: text()? })
    }
}

/// The head's word that sends a signal.
pub(super) fn signal(signal: Signal) -> Vec<u8> {
    Frame::encode(Kind::Signal, &(signal.as_raw() as u64).to_le_bytes())
}

/// Whether the head ends the job by this word.
pub(super) fn is_end(frame: &Frame) -> bool {
    frame.kind == Kind::Signal && matches!(signal_of(frame), Some(Signal::TERM | Signal::KILL))
}

/// The signal it stands for: one of those that heads send.
fn signal_of(frame: &Frame) -> Option<Signal> {
    let number = Reader(&frame.payload).number()?;
    [Signal::TERM, Signal::KILL, Signal::STOP, Signal::CONT].into_iter().find(|signal| signal.as_raw() as u64 == number)
}
