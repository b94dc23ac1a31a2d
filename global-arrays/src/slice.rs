//! A patch of an array, for operations that all ranks do together.

use bytemuck::Pod;
use ndarray::Dimension;

use crate::agree::agree;
use crate::array::GlobalArray;
use crate::error::Result;
use crate::patch::Patch;
use crate::select::Select;

/// A patch of an array, as operand of an operation on patches (those of Global Arrays whose names end in `_patch`).
///
/// It has as many axes as the array: one that was selected by a single index has length 1.
#[derive(Debug)]
pub struct GlobalSlice<'a, T, D> {
    pub(crate) array: &'a GlobalArray<T, D>,
    pub(crate) patch: Patch,
}

impl<T, D> Clone for GlobalSlice<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, D> Copy for GlobalSlice<'_, T, D> {}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// A patch of the array, to do something with it on all ranks together.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds); [`Error::Mismatch`](crate::Error::Mismatch) if it has steps.
    pub fn slice<S: Select<D>>(&self, at: S) -> Result<GlobalSlice<'_, T, D>> {
        Ok(GlobalSlice { array: self, patch: self.patch(&at, "a patch")? })
    }

    /// All of the array, as a patch.
    pub fn whole(&self) -> GlobalSlice<'_, T, D> {
        GlobalSlice { array: self, patch: Patch::whole(self.shape()) }
    }
}

impl<'a, T: Pod, D: Dimension> GlobalSlice<'a, T, D> {
    /// The array it is a patch of.
    pub fn array(&self) -> &'a GlobalArray<T, D> {
        self.array
    }

    /// The patch, in the array's indices.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// Its length along each axis.
    pub fn shape(&self) -> crate::Axes<usize> {
        self.patch.shape()
    }

    /// Does this rank's part of a collective operation between two syncs of the array's group: what was written to the
    /// array before is there, and what the operation wrote is there when it returns. A rank that has something to
    /// report still meets the others, who have an error then too.
    #[track_caller]
    pub(crate) fn together<R>(&self, local: impl FnOnce() -> Result<R>) -> Result<R> {
        let before = self.array.sync();
        let done = local();
        self.ended(before.and(done))
    }

    /// Ends a collective operation, as [`GlobalSlice::together`] does: a sync in which all come to know of an error of one.
    #[track_caller]
    pub(crate) fn ended<R>(&self, done: Result<R>) -> Result<R> {
        let group = &self.array.group;
        let completed = group.world().fence_all().map_err(|source| self.array.runtime(source));
        let done = done.and_then(|done| completed.map(|()| done));
        agree(group, "a collective operation", &self.array.name, done)
    }
}
