//! How a step went that ranks took each for itself, known to all of them: so that what fails on one rank (its file is too
//! large, the disk is full, a pipe is closed) is an error on all, and the same one.

use std::io::{Error, ErrorKind};

use armci_core::Group;

/// The kinds of errors that come without a number of the operating system.
const KINDS: [ErrorKind; 6] = [
    ErrorKind::Other,
    ErrorKind::InvalidData,
    ErrorKind::InvalidInput,
    ErrorKind::UnexpectedEof,
    ErrorKind::Unsupported,
    ErrorKind::WriteZero,
];

/// How a step went on this rank.
pub(crate) struct Outcome(Option<Error>);

impl Outcome {
    pub(crate) fn of<T>(done: Result<T, Error>) -> Self {
        Outcome(done.err())
    }

    /// How the step went on all ranks of the group: the error of the first that failed, and which rank that is. Collective.
    #[track_caller]
    pub(crate) fn agree(self, group: &Group) -> armci_core::Result<Result<(), (usize, Error)>> {
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
                Ok(number) if number >= 0 => Error::from_raw_os_error(number),
                _ => Error::new(KINDS[kind as usize], String::from_utf8_lossy(&bytes)),
            },
        )))
    }
}
