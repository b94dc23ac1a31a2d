//! What ranks write, when it does not go straight to the launcher's own descriptors: cut into
//! lines, tagged, kept or passed on.
//!
//! Guaranteed: lines are never mixed, a last line without an end gets one, and nothing that a rank
//! wrote before it ended is lost while somebody reads. The launcher never blocks on a reader that
//! does not read: it writes at most `PIPE_BUF` bytes after `poll` has found room, and meanwhile reads
//! no more from the ranks than fits a bounded backlog (beyond it, only what a pipe of a rank that has
//! ended still holds). No call here lasts longer than a [`TURN`], so that signals and deadlines are
//! seen in time. A line longer than [`LONGEST_LINE`] is cut.

use std::io::{Stderr, Stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// A line is held back until it is whole, up to this length.
const LONGEST_LINE: usize = 1 << 20;
/// Beyond this backlog, ranks have to wait.
const BACKLOG: usize = 4 << 20;
/// What a pipe with room takes without blocking.
const AT_ONCE: usize = 4096;
/// Bytes that are read from a rank, or written, before somebody else has a turn. A pipe holds less,
/// unless its writer has asked for more.
const TURN: usize = 256 << 10;

/// Where lines go.
pub(super) enum Target {
    /// The launcher's standard output.
    Stdout(Stdout),
    /// The launcher's standard error.
    Stderr(Stderr),
    /// Memory.
    Memory,
}

/// One of the two standard streams of all ranks.
pub(super) struct Stream {
    target: Target,
    sources: Vec<Source>,
    tagged: bool,
    /// Whole lines, to be written or kept; written up to `written`.
    lines: Vec<u8>,
    written: usize,
    /// Nobody reads what we write.
    deaf: bool,
}

/// One rank's end of it.
struct Source {
    pipe: Option<OwnedFd>,
    /// What each of its lines starts with.
    tag: String,
    partial: Vec<u8>,
}

impl Stream {
    pub(super) fn new(target: Target, tagged: bool) -> Self {
        Self { target, sources: Vec::new(), tagged, lines: Vec::new(), written: 0, deaf: false }
    }

    /// Adds the pipe of a rank, which comes behind those before it.
    pub(super) fn add(&mut self, rank: usize, pipe: Option<OwnedFd>) {
        let tag = if self.tagged { format!("[{rank}] ") } else { String::new() };
        self.sources.push(Source { pipe, tag, partial: Vec::new() });
    }

    /// The pipes to wait on, with their ranks: all that are open, if there is room for more.
    pub(super) fn readable(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let pipes = self.sources.iter().enumerate().filter(|_| self.has_room());
        pipes.filter_map(|(rank, source)| Some((rank, source.pipe.as_ref()?.as_fd())))
    }

    /// Whether some rank, or a process that it left behind, may still write.
    pub(super) fn is_open(&self) -> bool {
        self.sources.iter().any(|source| source.pipe.is_some())
    }

    fn has_room(&self) -> bool {
        matches!(self.target, Target::Memory) || self.lines.len() - self.written < BACKLOG
    }

    /// The descriptor to wait on for room, if lines wait to be written.
    pub(super) fn sink(&self) -> Option<BorrowedFd<'_>> {
        if self.lines.len() == self.written {
            return None;
        }
        match &self.target {
            Target::Stdout(stdout) => Some(stdout.as_fd()),
            Target::Stderr(stderr) => Some(stderr.as_fd()),
            Target::Memory => None,
        }
    }

    /// Reads a turn of what a rank has written, as far as there is room.
    pub(super) fn receive(&mut self, rank: usize) {
        self.read_turn(rank, Self::has_room);
    }

    /// Reads what the pipe of a rank that has ended holds, room or not.
    pub(super) fn receive_last(&mut self, rank: usize) {
        self.read_turn(rank, |_| true);
    }

    fn read_turn(&mut self, rank: usize, may_go_on: fn(&Self) -> bool) {
        let mut buffer = [0; 16 << 10];
        for _ in 0..TURN / buffer.len() {
            let Some(pipe) = self.sources[rank].pipe.as_ref().filter(|_| may_go_on(self)) else {
                return;
            };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(length) if length > 0 => self.take(rank, &buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                _ => self.close(rank),
            }
        }
    }

    /// Takes what the pipes hold, and closes them.
    pub(super) fn hang_up(&mut self) {
        for rank in 0..self.sources.len() {
            self.receive_last(rank);
            self.close(rank);
        }
    }

    /// No more from this rank: its last line counts as whole.
    fn close(&mut self, rank: usize) {
        self.sources[rank].pipe = None;
        if !self.sources[rank].partial.is_empty() {
            self.take(rank, b"\n");
        }
    }

    /// A line of the launcher's own, in its place among the others.
    pub(super) fn say(&mut self, line: &str) {
        if !self.deaf {
            self.lines.extend_from_slice(line.as_bytes());
            self.lines.push(b'\n');
        }
    }

    fn take(&mut self, rank: usize, bytes: &[u8]) {
        if self.deaf {
            return;
        }
        let Source { tag, partial, .. } = &mut self.sources[rank];
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let whole = piece.ends_with(b"\n");
            if !whole && partial.len() + piece.len() < LONGEST_LINE {
                partial.extend_from_slice(piece);
                continue;
            }
            for part in [tag.as_bytes(), partial, piece, if whole { b"" } else { b"\n" }] {
                self.lines.extend_from_slice(part);
            }
            partial.clear();
        }
    }

    /// Writes a turn, as far as the reader has room.
    pub(super) fn write_some(&mut self) {
        let until = self.written + TURN;
        while self.written < until
            && let Some(sink) = self.sink()
            && takes_more(sink)
        {
            let end = self.lines.len().min(self.written + AT_ONCE);
            match rustix::io::write(sink, &self.lines[self.written..end]) {
                Ok(length) => self.written += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.turn_deaf(),
            }
        }
        // Whenever half is written: each byte is moved at most once, and no more is held than twice
        // what waits.
        if self.written >= self.lines.len() - self.written {
            self.lines.drain(..self.written);
            self.written = 0;
        }
    }

    /// The reader is gone: lets the ranks notice as they would without us.
    fn turn_deaf(&mut self) {
        self.deaf = true;
        self.lines.clear();
        self.written = 0;
        for source in &mut self.sources {
            source.pipe = None;
            source.partial.clear();
        }
    }

    /// What was kept in memory.
    pub(super) fn into_kept(self) -> Vec<u8> {
        if matches!(self.target, Target::Memory) { self.lines } else { Vec::new() }
    }
}

/// Whether a write of [`AT_ONCE`] bytes would return at once, be it with an error.
fn takes_more(sink: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(sink, PollFlags::OUT)];
    rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_tagged() {
        let mut stream = Stream::new(Target::Memory, true);
        stream.add(0, None);
        stream.add(1, None);
        stream.take(0, b"he");
        stream.take(1, b"one\ntw");
        stream.take(0, b"llo\n\n");
        stream.close(1);
        stream.close(0);
        assert_eq!(String::from_utf8(stream.into_kept()).unwrap(), "[1] one\n[0] hello\n[0] \n[1] tw\n");
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut stream = Stream::new(Target::Memory, false);
        stream.add(0, None);
        stream.take(0, &vec![b'x'; LONGEST_LINE]);
        assert_eq!(stream.into_kept().len(), LONGEST_LINE + 1);
    }
}
