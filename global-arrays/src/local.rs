//! Blocks in memory: where the elements of a part of one lie. What programs see of it is in `access.rs`.
//!
//! # Safety
//! OWN-BLOCK: a rank's blocks are reached by reference only in views whose callers keep others away from them while
//! they live, by synchronising before and after. Blocks lie apart from each other, inside the rank's part of the
//! array's region, which is there as long as the array is.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::{ArrayView, ArrayViewMut, Dimension, MathCell, ShapeBuilder};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::distribution::{Place, packed};
use crate::error::Result;
use crate::patch::Patch;

/// A part of a block, in the memory of this rank or of one beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPart<T> {
    /// The part, in the array's indices.
    pub(crate) patch: Patch,
    pub(crate) start: *mut T,
    pub(crate) strides: Axes<usize>,
}

impl<T: Pod> OwnPart<T> {
    fn lay<D: Dimension>(&self) -> ndarray::StrideShape<D> {
        let lengths = self.patch.shape();
        // (An empty view has no elements to tell apart by strides, but must have some that would.)
        let apart = if self.patch.is_empty() { packed(&lengths.map(|len| (*len).max(1))).0 } else { self.strides };
        let (mut shape, mut strides) = (D::zeros(lengths.len()), D::zeros(lengths.len()));
        for axis in 0..lengths.len() {
            (shape[axis], strides[axis]) = (lengths[axis], apart[axis]);
        }
        shape.strides(strides)
    }

    /// The part of it that is `inside`, which lies in its patch.
    pub(crate) fn narrowed(&self, inside: &Patch) -> Self {
        let (first, start) = (self.patch.start(), inside.start());
        let offset: usize = (0..start.len()).map(|axis| (start[axis] - first[axis]) * self.strides[axis]).sum();
        OwnPart { patch: *inside, start: self.start.wrapping_add(offset), strides: self.strides }
    }

    /// The elements, each to read and to change, also where several such views have them.
    ///
    /// # Safety
    /// OWN-BLOCK: no other rank touches them while the view lives, nor is there a view of another kind.
    pub(crate) unsafe fn cells<'a, D: Dimension>(&self) -> ArrayView<'a, MathCell<T>, D> {
        // SAFETY: OWN-BLOCK; no reference to an element is made on the way.
        unsafe { self.view_mut() }.into_cell_view()
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
    /// The blocks of a rank of which the memory begins at `start`; none of them is empty.
    pub(crate) fn parts_on(&self, rank: usize, start: *mut T) -> impl Iterator<Item = OwnPart<T>> + '_ {
        self.distribution.blocks_on(rank).map(move |(block, place)| part(start, &block, &block, &place))
    }

    /// The parts of this rank's blocks that lie in a patch; none of them is empty.
    pub(crate) fn own_parts(&self, patch: &Patch) -> Result<impl Iterator<Item = OwnPart<T>> + '_> {
        let (start, patch) = (self.own_memory()?, *patch);
        Ok(self.distribution.blocks_on(self.group.rank()).filter_map(move |(block, place)| {
            let inside = block.intersection(&patch);
            (!inside.is_empty()).then(|| part(start, &block, &inside, &place))
        }))
    }

    /// A patch in the memory of the rank that owns it, if that is one rank of this node, and the patch lies in one block.
    pub(crate) fn near_part(&self, patch: &Patch) -> Option<OwnPart<T>> {
        let place = self.distribution.place_around(&patch.start(), |axis| {
            let range = patch.range(axis);
            range.end.checked_sub(1).filter(|last| range.start <= *last)
        })?;
        let start = self.group.world().near_address(&self.region, place.rank).ok()??;
        let start = start.cast::<T>().wrapping_add(place.offset);
        Some(OwnPart { patch: *patch, start, strides: place.strides })
    }

    /// Where the memory of this rank's blocks begins.
    pub(crate) fn own_memory(&self) -> Result<*mut T> {
        let (start, _) = self.group.world().local_part(&self.region).map_err(|source| self.runtime(source))?;
        Ok(start.cast())
    }
}

/// The part `inside` of a block that lies at `place` in the memory from `start` on.
fn part<T>(start: *mut T, block: &Patch, inside: &Patch, place: &Place) -> OwnPart<T> {
    let offset = place.at(&inside.start(), &block.start());
    OwnPart { patch: *inside, start: start.wrapping_add(offset), strides: place.strides }
}
