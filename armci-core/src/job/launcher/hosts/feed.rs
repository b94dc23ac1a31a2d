//! What goes into a remote shell's standard input: the call, and then, where rank 0 is, our own input.
//!
//! Guaranteed: the launcher never waits for a reader: it reads a piece of input only when the piece before has been
//! taken, and writes only what fits. Behind the last byte, or when nobody reads any more, the pipe is closed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// What is read at a time.
const PIECE: usize = 64 << 10;

/// A remote shell's standard input.
#[derive(Default)]
pub(super) struct Feed {
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    written: usize,
    /// Our own input is to follow.
    more: bool,
}

impl Feed {
    pub(super) fn new(pipe: Option<OwnedFd>, bytes: Vec<u8>, more: bool) -> Self {
        let more = more && !std::io::IsTerminal::is_terminal(&std::io::stdin());
        Self { pipe, bytes, written: 0, more }
    }

    /// The pipe, if there is something to be written into it.
    pub(super) fn hungry(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| self.written < self.bytes.len()).map(OwnedFd::as_fd)
    }

    /// Whether there is room for more input.
    pub(super) fn wants_input(&self) -> bool {
        self.more && self.pipe.is_some() && self.written == self.bytes.len()
    }

    /// Reads a piece, if there is room and something is there.
    pub(super) fn read(&mut self, input: BorrowedFd<'_>) {
        if !self.wants_input() {
            return;
        }
        self.bytes.resize(PIECE, 0);
        self.written = 0;
        let read = rustix::io::read(input, &mut self.bytes);
        self.bytes.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(length) if length > 0 => self.write(),
            Err(Errno::INTR | Errno::AGAIN) => {}
            _ => {
                self.more = false;
                self.pipe = None;
            }
        }
    }

    /// Writes what fits.
    pub(super) fn write(&mut self) {
        while let Some(pipe) = self.hungry() {
            match rustix::io::write(pipe, &self.bytes[self.written..]) {
                Ok(length) => self.written += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads; whether that matters is the remote shell's end to tell.
                Err(_) => self.pipe = None,
            }
        }
        if !self.more {
            self.pipe = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn feed(more: bool) -> (Feed, std::io::PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        let pipe = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        (Feed { pipe: Some(pipe), bytes: b"call".to_vec(), written: 0, more }, reader)
    }

    #[test]
    fn the_call_comes_first_and_the_input_follows_to_its_end() {
        let (mut feed, mut reader) = feed(true);
        let (input, mut typed) = std::io::pipe().unwrap();
        assert!(feed.hungry().is_some() && !feed.wants_input());
        feed.write();
        typed.write_all(b" and input").unwrap();
        assert!(feed.wants_input());
        feed.read(input.as_fd());
        drop(typed);
        feed.read(input.as_fd());
        assert!(feed.hungry().is_none() && !feed.wants_input());
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        assert_eq!(all, "call and input");
    }

    #[test]
    fn where_no_rank_reads_the_pipe_ends_behind_the_call() {
        let (mut feed, reader) = feed(false);
        feed.write();
        assert_eq!(std::io::read_to_string(reader).unwrap(), "call");
    }

    #[test]
    fn a_reader_that_is_slow_or_gone_holds_nobody_up() {
        let (mut feed, reader) = feed(true);
        feed.bytes = vec![7; 1 << 20];
        feed.write();
        assert!(feed.hungry().is_some() && !feed.wants_input() && feed.written > 0);
        drop(reader);
        feed.write();
        assert!(feed.hungry().is_none() && !feed.wants_input());
    }
}
