//! The language: lines of `name=value` words, one question, one answer.
//!
//! Guaranteed: an answer is taken only if it is of the kind that was asked for, and its words are found by name, since
//! launchers order them differently. A launcher that hangs up, answers something else or without end is an error that
//! shows what was said; nothing is read beyond the end of an answer. A launcher that is silent is waited for: it may
//! be waiting for other ranks.

use std::os::fd::AsFd;

use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags};

use crate::error::{Error, Result};

/// The longest answer that is read: a value of 1,024 bytes and some words, many times over.
const LONGEST: usize = 64 << 10;

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer(String);

impl Answer {
    /// The value of a word.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        let mut words = self.0.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        words.find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The value of a word that must be there.
    pub(super) fn needs(&self, name: &str) -> Result<&str> {
        self.word(name).ok_or_else(|| unreadable(&format!("answered without {name}"), self.0.as_bytes()))
    }
}

/// Asks, and waits for the answer, which must be of this kind and, if it says how it went, have gone well.
pub(super) fn ask(socket: impl AsFd, question: &str, kind: &str) -> Result<Answer> {
    tell(&socket, question)?;
    let answer = listen(&socket, question)?;
    if answer.word("cmd") != Some(kind) {
        return Err(unreadable(
            &format!("answered {:?} with something else than cmd={kind}", shown(question)),
            answer.0.as_bytes(),
        ));
    }
    match answer.word("rc") {
        None | Some("0") => Ok(answer),
        Some(_) => Err(unreadable(&format!("refused {:?}", shown(question)), answer.0.as_bytes())),
    }
}

/// Says something that has no answer.
pub(super) fn tell(socket: impl AsFd, text: &str) -> Result<()> {
    let line = format!("{text}\n");
    let mut bytes = line.as_bytes();
    while !bytes.is_empty() {
        let sent =
            retry_on_intr(|| rustix::net::send(&socket, bytes, SendFlags::NOSIGNAL)).map_err(|_| hung_up(text))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Reads one line. It is peeked at first: what follows it is somebody else's answer.
fn listen(socket: impl AsFd, question: &str) -> Result<Answer> {
    let mut line = Vec::new();
    let mut buffer = [0; 2048];
    while line.len() < LONGEST {
        let (seen, _) = retry_on_intr(|| rustix::net::recv(&socket, &mut buffer[..], RecvFlags::PEEK))
            .map_err(|_| hung_up(question))?;
        if seen == 0 {
            return Err(hung_up(question));
        }
        let end = buffer[..seen].iter().position(|byte| *byte == b'\n');
        let take = end.map_or(seen, |end| end + 1);
        let (taken, _) = retry_on_intr(|| rustix::net::recv(&socket, &mut buffer[..take], RecvFlags::empty()))
            .map_err(|_| hung_up(question))?;
        line.extend_from_slice(&buffer[..taken]);
        if end.is_some() && taken == take {
            let text = String::from_utf8(line).map_err(|error| unreadable("answered in no text", error.as_bytes()))?;
            return Ok(Answer(text));
        }
    }
    Err(unreadable("answered without an end of line", &line))
}

fn hung_up(question: &str) -> Error {
    Error::Job(format!(
        "the launcher behind PMI_FD hung up before it answered {:?}: it is gone, or this rank has already finished its \
         part in the job (a job runs one program per rank, once; finish ARMCI before MPI_Finalize)",
        shown(question)
    ))
}

fn unreadable(what: &str, said: &[u8]) -> Error {
    Error::Job(format!(
        "the launcher behind PMI_FD {what}: {:?}, which is not PMI-1; start the program with MPICH's mpiexec, srun \
         --mpi=pmi2 or armci-run, or say ARMCI_BOOTSTRAP=alone for a job of one",
        shown(&String::from_utf8_lossy(said))
    ))
}

/// The beginning of what was said.
fn shown(text: &str) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// Bytes as text of half the density, which no launcher chokes on.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// And back.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
