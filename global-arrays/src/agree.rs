//! What ranks did each for itself in a collective operation, known to all of them: the parts of a result, in rank order; and
//! that one failed, which is an error on all then.
//!
//! An error of arrays stays with its rank, and the others have [`Error::Elsewhere`]. An error of files and pipes (a disk is
//! full) is told word by word, so that all have the same.

use std::io::{self, ErrorKind};

use armci_core::Group;
use bytemuck::Pod;

use crate::error::{Error, Result};

/// A rank's part, in words: the value, a position, and whether there is any.
type Note = [u64; 4];

const PRESENT: u64 = 0;
const FAILED: u64 = 1;

/// The parts of all ranks of the group, in rank order; each a value of at most two words, and a position. Where one failed, all
/// have an error: it its own, the others [`Error::Elsewhere`]. Collective.
#[track_caller]
pub(crate) fn parts_of_all<R: Pod>(
    group: &Group,
    operation: &'static str,
    array: &str,
    part: Result<(R, u64)>,
) -> Result<Vec<(R, u64)>> {
    const { assert!(size_of::<R>() <= 16, "a note has two words for the value") };
    let mut note: Note = [0, 0, 0, FAILED];
    if let Ok((value, position)) = &part {
        bytemuck::bytes_of_mut(&mut note)[..size_of::<R>()].copy_from_slice(bytemuck::bytes_of(value));
        (note[2], note[3]) = (*position, PRESENT);
    }
    let notes = group.all_gather(&note);
    part?;
    let notes = notes.map_err(|source| Error::Runtime { array: array.into(), source })?;
    let read = |(rank, note): (usize, &Note)| {
        if note[3] != PRESENT {
            return Err(Error::Elsewhere { operation, array: array.into(), rank });
        }
        Ok((bytemuck::pod_read_unaligned(&bytemuck::bytes_of(note)[..size_of::<R>()]), note[2]))
    };
    notes.as_chunks().0.iter().enumerate().map(read).collect()
}

/// Makes an error of one rank known to all of the group: what comes out is what went in, or [`Error::Elsewhere`]. No rank goes
/// on before all have come. Collective.
#[track_caller]
pub(crate) fn agree<R>(group: &Group, operation: &'static str, array: &str, done: Result<R>) -> Result<R> {
    let told = group.all_gather(&[if done.is_ok() { PRESENT } else { FAILED }]);
    let done = done?;
    let told = told.map_err(|source| Error::Runtime { array: array.into(), source })?;
    match told.iter().position(|told| *told != PRESENT) {
        Some(rank) => Err(Error::Elsewhere { operation, array: array.into(), rank }),
        None => Ok(done),
    }
}

/// The kinds of errors that come without a number of the operating system.
const KINDS: [ErrorKind; 6] = [
    ErrorKind::Other,
    ErrorKind::InvalidData,
    ErrorKind::InvalidInput,
    ErrorKind::UnexpectedEof,
    ErrorKind::Unsupported,
    ErrorKind::WriteZero,
];

/// How a step that has to do with files went on this rank.
pub(crate) struct Outcome(Option<io::Error>);

impl Outcome {
    pub(crate) fn of<T>(done: io::Result<T>) -> Self {
        Outcome(done.err())
    }

    /// How the step went on all ranks of the group: the error of the first that failed, and which rank that is. Collective.
    #[track_caller]
    pub(crate) fn agree(self, group: &Group) -> armci_core::Result<std::result::Result<(), (usize, io::Error)>> {
        let text = self.0.as_ref().map(|error| error.to_string()).unwrap_or_default();
        let mine = match &self.0 {
            None => [0, 0, 0, 0],
            Some(error) => {
                let kind = KINDS.iter().position(|kind| *kind == error.kind()).unwrap_or(0);
                [1, error.raw_os_error().map_or(-1, i64::from), kind as i64, text.len() as i64]
            }
        };
        let all = group.all_gather(&mine)?;
        let all = all.as_chunks::<4>().0;
        let Some(first) = all.iter().position(|[failed, ..]| *failed != 0) else { return Ok(Ok(())) };
        let [_, number, kind, len] = all[first];
        let mut bytes = if first == group.rank() { text.into_bytes() } else { vec![0; len as usize] };
        group.broadcast(first, &mut bytes)?;
        Ok(Err((
            first,
            match i32::try_from(number) {
                Ok(number) if number >= 0 => io::Error::from_raw_os_error(number),
                _ => io::Error::new(KINDS[kind as usize], String::from_utf8_lossy(&bytes)),
            },
        )))
    }
}
