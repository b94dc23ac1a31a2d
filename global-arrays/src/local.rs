//! What this rank owns, in place.
//!
//! # Safety
//! OWN-BLOCK: a rank's blocks are reached by reference only in views whose callers keep others away from them while
//! they live, by synchronising before and after. Blocks lie apart from each other, inside the rank's part of the
//! array's region, which is there as long as the array is.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::distribution::Place;
use crate::error::{Error, Result};
use crate::patch::Patch;

/// A part of one of this rank's blocks, in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPart<T> {
    /// The part, in the array's indices.
    pub(crate) patch: Patch,
    start: *mut T,
    strides: Axes<usize>,
}

impl<T: Pod> OwnPart<T> {
    fn lay<D: Dimension>(&self) -> ndarray::StrideShape<D> {
        let (mut shape, mut strides) = (D::zeros(self.strides.len()), D::zeros(self.strides.len()));
        for (axis, len) in self.patch.shape().iter().enumerate() {
            (shape[axis], strides[axis]) = (*len, self.strides[axis]);
        }
        shape.strides(strides)
    }

    /// The elements, to read.
    ///
    /// # Safety
    /// OWN-BLOCK: nobody writes them while the view lives.
    pub(crate) unsafe fn view<'a, D: Dimension>(&self) -> ArrayView<'a, T, D> {
        // SAFETY: OWN-BLOCK; elements are aligned, since blocks begin on a line and strides count elements.
        unsafe { ArrayView::from_shape_ptr(self.lay::<D>(), self.start) }
    }

    /// The elements, to change.
    ///
    /// # Safety
    /// OWN-BLOCK: nobody else touches them while the view lives.
    pub(crate) unsafe fn view_mut<'a, D: Dimension>(&self) -> ArrayViewMut<'a, T, D> {
        // SAFETY: OWN-BLOCK; as above.
        unsafe { ArrayViewMut::from_shape_ptr(self.lay::<D>(), self.start) }
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// This rank's block, to read in place (`NGA_Access`); for arrays with one block on each rank. Ghost cells are not
    /// part of it.
    ///
    /// # Safety
    /// OWN-BLOCK: while the view lives, no rank writes or accumulates into this block: the program has synchronised
    /// before and will again before anybody does.
    ///
    /// # Errors
    /// If the array's region is gone; [`Error::Mismatch`] if ranks have many blocks.
    pub unsafe fn local_view(&self) -> Result<ArrayView<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.own_block()?.view() })
    }

    /// This rank's block, to change in place (`NGA_Access`); as [`GlobalArray::local_view`].
    ///
    /// # Safety
    /// OWN-BLOCK: while the view lives, nobody else touches this block, nor does this rank by other ways.
    ///
    /// # Errors
    /// As [`GlobalArray::local_view`].
    pub unsafe fn local_view_mut(&self) -> Result<ArrayViewMut<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.own_block()?.view_mut() })
    }

    /// The one block of this rank, which may be empty.
    fn own_block(&self) -> Result<OwnPart<T>> {
        let Some(patch) = self.distribution.block_on(self.group.rank()) else {
            return Err(Error::Mismatch {
                operation: "a view of this rank's block",
                why: format!("array '{}' has many blocks on a rank", self.name),
            });
        };
        let (start, dims) = (self.own_memory()?, patch.ndim());
        let empty = OwnPart { patch, start, strides: Axes::splat(dims, 0) };
        Ok(self
            .distribution
            .blocks_on(self.group.rank())
            .next()
            .map_or(empty, |(_, place)| part(start, &patch, &patch, &place)))
    }

    /// The parts of this rank's blocks that lie in a patch; none of them is empty.
    pub(crate) fn own_parts(&self, patch: &Patch) -> Result<impl Iterator<Item = OwnPart<T>> + '_> {
        let (start, patch) = (self.own_memory()?, *patch);
        Ok(self.distribution.blocks_on(self.group.rank()).filter_map(move |(block, place)| {
            let inside = block.intersection(&patch);
            (!inside.is_empty()).then(|| part(start, &block, &inside, &place))
        }))
    }

    /// Writes a value into all memory of this rank's part, ghost cells included.
    pub(crate) fn fill_memory(&self, value: T) -> Result<()> {
        let start = self.own_memory()?;
        let elements = self.distribution.elements_on(self.group.rank());
        if bytemuck::bytes_of(&value).iter().all(|byte| *byte == 0) {
            // SAFETY: the part has that many elements; plain stores of plain data, through a raw pointer.
            unsafe { start.write_bytes(0, elements) };
            return Ok(());
        }
        for index in 0..elements {
            // SAFETY: as above.
            unsafe { start.add(index).write(value) };
        }
        Ok(())
    }

    fn own_memory(&self) -> Result<*mut T> {
        let (start, _) = self.group.world().local_part(&self.region).map_err(|source| self.runtime(source))?;
        Ok(start.cast())
    }
}

/// The part `inside` of a block that lies at `place` in the memory from `start` on.
fn part<T>(start: *mut T, block: &Patch, inside: &Patch, place: &Place) -> OwnPart<T> {
    let offset = place.at(&inside.start(), &block.start());
    OwnPart { patch: *inside, start: start.wrapping_add(offset), strides: place.strides }
}
