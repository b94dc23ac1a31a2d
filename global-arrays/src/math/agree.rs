//! Ranks that bring the results of their parts together, and errors that all come to know.

use bytemuck::Pod;
use ndarray::Dimension;

use crate::error::{Error, Result};
use crate::math::operand::Between;
use crate::slice::GlobalSlice;

/// A rank's contribution, in words: the value, a position, and whether there is any.
type Note = [u64; 4];

const PRESENT: u64 = 0;
const FAILED: u64 = 1;

impl<T: Pod, D: Dimension> GlobalSlice<'_, T, D> {
    /// Begins with a sync of the array's group, has each rank do its part, and gives all the parts of all, in rank
    /// order. When it returns, all have done theirs. Where one fails, all have an error: it its own, the others
    /// [`Error::Elsewhere`].
    #[track_caller]
    pub(crate) fn contributed<R: Pod>(
        &self,
        operation: &'static str,
        local: impl FnOnce(&Between) -> Result<(R, u64)>,
    ) -> Result<Vec<(R, u64)>> {
        const { assert!(size_of::<R>() <= 16, "a note has two words for the value") };
        let before = self.array.sync();
        let done = Between::meetings(local);
        let part = before.and(done);
        let mut note: Note = [0, 0, 0, FAILED];
        if let Ok((value, position)) = &part {
            bytemuck::bytes_of_mut(&mut note)[..size_of::<R>()].copy_from_slice(bytemuck::bytes_of(value));
            (note[2], note[3]) = (*position, PRESENT);
        }
        let notes = self.array.group.all_gather(&note).map_err(|source| self.array.runtime(source));
        part?;
        let notes = notes?;
        let read = |(rank, note): (usize, &[u64])| {
            if note[3] != PRESENT {
                return Err(Error::Elsewhere { operation, array: self.array.name.clone(), rank });
            }
            Ok((bytemuck::pod_read_unaligned(&bytemuck::cast_slice(&note[..2])[..size_of::<R>()]), note[2]))
        };
        notes.chunks_exact(4).enumerate().map(read).collect()
    }
}
