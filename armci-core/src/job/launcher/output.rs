//! What ranks write, when it does not go straight to the launcher's own descriptors: cut into
//! lines, tagged, kept or passed on.
//!
//! Guaranteed: lines are never mixed, a last line without an end gets one, and the launcher never
//! blocks on a reader that does not read: it writes at most `PIPE_BUF` bytes after `poll` has found
//! room, and meanwhile reads no more from the ranks than fits a bounded backlog. A line longer than
//! [`LONGEST_LINE`] is cut.

use std::io::{Stderr, Stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// A line is held back until it is whole, up to this length.
const LONGEST_LINE: usize = 1 << 20;
/// Beyond this backlog, ranks have to wait.
const BACKLOG: usize = 4 << 20;
/// What a pipe with room takes without blocking.
const AT_ONCE: usize = 4096;

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
    tagged: bool,
    sources: Vec<Source>,
    /// Whole lines, to be written or kept; written up to `written`.
    lines: Vec<u8>,
    written: usize,
    /// Nobody reads what we write.
    deaf: bool,
}

/// One rank's end of it.
struct Source {
    pipe: Option<OwnedFd>,
    partial: Vec<u8>,
}

impl Stream {
    pub(super) fn new(target: Target, tagged: bool) -> Self {
        Self { target, tagged, sources: Vec::new(), lines: Vec::new(), written: 0, deaf: false }
    }

    /// Adds the next rank's pipe.
    pub(super) fn add(&mut self, pipe: Option<OwnedFd>) {
        self.sources.push(Source { pipe, partial: Vec::new() });
    }

    /// The pipe to wait on for this rank's output, if there is one and room for more.
    pub(super) fn source(&self, rank: usize) -> Option<BorrowedFd<'_>> {
        let room = matches!(self.target, Target::Memory) || self.lines.len() - self.written < BACKLOG;
        self.sources[rank].pipe.as_ref().filter(|_| room).map(|pipe| pipe.as_fd())
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

    /// Reads what a rank has written.
    pub(super) fn receive(&mut self, rank: usize) {
        let mut buffer = [0; 16 << 10];
        while self.source(rank).is_some() {
            let Some(pipe) = &self.sources[rank].pipe else {
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

    /// No more from this rank: its last line counts as whole.
    pub(super) fn close(&mut self, rank: usize) {
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
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let partial = &mut self.sources[rank].partial;
            partial.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                if partial.len() < LONGEST_LINE {
                    continue;
                }
                partial.push(b'\n');
            }
            let line = std::mem::take(partial);
            if !self.deaf {
                if self.tagged {
                    self.lines.extend_from_slice(format!("[{rank}] ").as_bytes());
                }
                self.lines.extend_from_slice(&line);
            }
        }
    }

    /// Writes one piece. To be called when [`Stream::sink`] has been found writable.
    pub(super) fn write_some(&mut self) {
        let Some(sink) = self.sink() else { return };
        let end = self.lines.len().min(self.written + AT_ONCE);
        match rustix::io::write(sink, &self.lines[self.written..end]) {
            Ok(length) => self.written += length,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => {
                // The reader is gone: let the ranks notice as they would without us.
                self.deaf = true;
                self.written = self.lines.len();
                self.sources.iter_mut().for_each(|source| source.pipe = None);
            }
        }
        if self.written == self.lines.len() {
            self.lines.clear();
            self.written = 0;
        }
    }

    /// What was kept in memory.
    pub(super) fn into_kept(self) -> Vec<u8> {
        if matches!(self.target, Target::Memory) { self.lines } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_tagged() {
        let mut stream = Stream::new(Target::Memory, true);
        stream.add(None);
        stream.add(None);
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
        stream.add(None);
        stream.take(0, &vec![b'x'; LONGEST_LINE]);
        assert_eq!(stream.into_kept().len(), LONGEST_LINE + 1);
    }
}
