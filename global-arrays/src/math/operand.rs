//! Operands: the elements of one patch that go with a part of another of the same shape.
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): during a collective operation, between its two syncs, nobody writes operands.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::{CowArray, Dimension};

use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::slice::GlobalSlice;

impl<'a, T: Pod, D: Dimension> GlobalSlice<'a, T, D> {
    /// The elements of this patch that go with `part` of a patch `whole` of the same shape: in place, if they lie in
    /// one block of this rank, else fetched.
    ///
    /// # Safety
    /// OWN-BLOCK: nobody writes the elements while they are in use.
    #[track_caller]
    pub(crate) unsafe fn beside(&self, part: &Patch, whole: &Patch) -> Result<CowArray<'a, T, D>> {
        let start = self.patch.start();
        let within = part.relative_to(&whole.start());
        let wanted = Patch::from_fn(start.len(), |axis| {
            let range = within.range(axis);
            start[axis] + range.start..start[axis] + range.end
        });
        if let Some(own) = self.array.own_parts(&wanted)?.next()
            && own.patch == wanted
        {
            // SAFETY: OWN-BLOCK.
            return Ok(unsafe { own.view() }.into());
        }
        Ok(self.array.get(wanted)?.into())
    }

    /// Refuses another patch that has not this one's shape.
    pub(crate) fn same_shape<U: Pod, E: Dimension>(
        &self,
        operation: &'static str,
        other: &GlobalSlice<'_, U, E>,
    ) -> Result<()> {
        if *self.shape() == *other.shape() {
            return Ok(());
        }
        let (a, b) = (self.array.name(), other.array.name());
        let why = format!("{} of '{a}' and {} of '{b}' differ in shape", self.patch, other.patch);
        Err(Error::Mismatch { operation, why })
    }
}
