//! Ghost cells: around each block, copies of the elements that lie beside it in the array.
//!
//! ```text
//!      axis 1: low   core   high        Each rank fetches, for each of the 3^d - 1 zones around its core, the elements
//!            +-----+------+-----+       whose indices the zone's cells have: from as many owners as there are (a zone may
//!   low      |corner| edge |corner|     be wider than the neighbour's block), all at once, around the array's ends
//!            +-----+------+-----+       where the axis is periodic. Where it is not, cells beyond its ends
//!   core     | edge | BLOCK| edge |     stand for no element, and are left as they are.
//!            +-----+------+-----+
//!   high     |corner| edge |corner|
//!            +-----+------+-----+
//! ```
//!
//! Ranks pull and do not push. What a rank needs follows from its own block; who needs a part of it would take the
//! widths' reach into every block around. A get is complete when it returns, where puts would have to be fenced before
//! the ranks meet. And only its own rank writes ghost cells, so no two ever meet in one.
//!
//! An update is: a sync, so that the cores are as everybody left them; the gets, which write ghost cells and read cores
//! only; and a meeting, so that nobody changes its core before all have read it.
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): ghost cells belong to their block, and are written by its rank alone. VIEW-LIVE (see
//! `transfer`), for them.
#![allow(unsafe_code)]

use std::ops::Range;

use armci_core::NbHandle;
use bytemuck::Pod;
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension};

use crate::array::GlobalArray;
use crate::axes::{Axes, advance};
use crate::error::{Error, Result};
use crate::local::OwnPart;
use crate::patch::Patch;
use crate::wrap::Wrapped;

/// A side of a block along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where indices are lower (Global Arrays' direction -1).
    Low,
    /// Where indices are higher (Global Arrays' direction 1).
    High,
}

/// Where cells are, seen along one axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Zone {
    #[default]
    Core,
    Beside(Side),
}

const ZONES: [Zone; 3] = [Zone::Beside(Side::Low), Zone::Core, Zone::Beside(Side::High)];

impl Zone {
    /// The indices of the zone's cells around a block's range, as far as they stand for elements of the axis.
    fn cells(self, core: &Range<usize>, width: usize, len: usize, periodic: bool) -> Range<isize> {
        // (Lengths and widths together can be counted, or there were no such array.)
        let [start, end, width, len] = [core.start, core.end, width, len].map(|at| at as isize);
        match self {
            Zone::Core => start..end,
            Zone::Beside(Side::Low) if periodic => start - width..start,
            Zone::Beside(Side::Low) => (start - width).max(0)..start,
            Zone::Beside(Side::High) if periodic => end..end + width,
            Zone::Beside(Side::High) => end..(end + width).min(len),
        }
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Whether its blocks have ghost cells along any axis (`GA_Has_ghosts`); how many, the distribution knows.
    pub fn has_ghosts(&self) -> bool {
        self.distribution.ghosts().iter().any(|width| *width > 0)
    }

    /// Brings all ghost cells of all blocks up to date, those at edges and corners too (`GA_Update_ghosts`). Collective;
    /// begins with a sync, and ends when nobody reads any more.
    ///
    /// Along a periodic axis the array's ends are neighbours. Along others, cells beyond its ends are left untouched: they
    /// have the value that the array was created with until the program writes them. A rank whose block is empty has no
    /// ghost cells. An array without ghost cells is synchronised, and that is all.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`]; if an owner refused a part.
    #[track_caller]
    pub fn update_ghosts(&self) -> Result<()> {
        self.fetch_ghosts(|_| true, || ())
    }

    /// [`GlobalArray::update_ghosts`], and meanwhile `work`, whose result is returned (`NGA_Update_ghosts_nb`).
    /// Collective.
    ///
    /// The gets are under way while `work` runs, which may read any element of the array and this rank's core in place.
    /// What it writes to the array may or may not be in the ghost cells; these are there when this returns.
    ///
    /// # Errors
    /// As [`GlobalArray::update_ghosts`]; `work` has run in any case.
    #[track_caller]
    pub fn update_ghosts_while<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        self.fetch_ghosts(|_| true, work)
    }

    /// Brings the ghost cells on one side along one axis up to date (`NGA_Update_ghost_dir`): those beside the block, and
    /// with `corners` those too that lie beside it along other axes as well. Collective; as [`GlobalArray::update_ghosts`].
    ///
    /// One axis with corners, both sides, then the other without: that is all ghost cells of a matrix.
    ///
    /// # Errors
    /// As [`GlobalArray::update_ghosts`]; [`Error::Mismatch`], before anything is done, if there is no such axis.
    #[track_caller]
    pub fn update_ghosts_along(&self, axis: usize, side: Side, corners: bool) -> Result<()> {
        if axis >= self.ndim() {
            return Err(Error::Mismatch {
                operation: "an update of ghost cells",
                why: format!("array '{}' has {} axes, and no axis {axis}", self.name, self.ndim()),
            });
        }
        let others = |zones: &[Zone]| (0..zones.len()).all(|other| other == axis || zones[other] == Zone::Core);
        self.fetch_ghosts(|zones| zones[axis] == Zone::Beside(side) && (corners || others(zones)), || ())
    }

    #[track_caller]
    fn fetch_ghosts<R>(&self, wanted: impl Fn(&[Zone]) -> bool, work: impl FnOnce() -> R) -> Result<R> {
        let before = self.sync();
        let mut fetching = Fetching { array: self, handle: NbHandle::default() };
        let begun = self.begin_ghosts(wanted, &mut fetching.handle);
        let done = work();
        let arrived = fetching.wait();
        let met = self.group.meet().map_err(|source| self.runtime(source));
        before.and(begun).and(arrived).and(met)?;
        Ok(done)
    }

    /// Starts the gets of the zones around this rank's block that are wanted.
    #[track_caller]
    fn begin_ghosts(&self, wanted: impl Fn(&[Zone]) -> bool, handle: &mut NbHandle) -> Result<()> {
        let widths = self.distribution.ghosts();
        let Some(block) = self.parts_on(self.group.rank(), self.own_memory()?).next().filter(|_| self.has_ghosts())
        else {
            return Ok(());
        };
        let (dims, strides) = (self.ndim(), block.strides.map(|stride| *stride as isize));
        let mut at = Axes::splat(dims, 0);
        loop {
            let zones: Axes<Zone> = at.map(|zone: &usize| ZONES[*zone]);
            if wanted(&zones) && zones.iter().any(|zone| *zone != Zone::Core) {
                let cells = Axes::from_fn(dims, |axis| {
                    zones[axis].cells(&block.patch.range(axis), widths[axis], self.shape()[axis], self.periodic[axis])
                });
                let from_core = |axis: usize| cells[axis].start - block.patch.range(axis).start as isize;
                let offset: isize = (0..dims).map(|axis| from_core(axis) * strides[axis]).sum();
                if let Some(wrapped) = Wrapped::new(&cells, self.shape()) {
                    let first = block.start.wrapping_offset(offset);
                    // SAFETY: VIEW-LIVE: cells around the block, which its memory has room for, until the wait; nobody
                    // refers to them, since every view of them forbids updates.
                    unsafe { self.begin_wrapped_get(&wrapped, first, &strides, handle)? };
                }
            }
            if !advance(&mut at, &Axes::splat(dims, ZONES.len())) {
                return Ok(());
            }
        }
    }

    /// A copy of this rank's block with its ghost cells around it (`NGA_Get_ghost_block`); longer than the block by twice
    /// the width along each axis. Of an empty block, an empty array.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if ranks have many blocks.
    #[track_caller]
    pub fn ghost_block(&self) -> Result<Array<T, D>> {
        let cells = self.own_cells("a copy of this rank's block with its ghost cells")?;
        let mut copy = Array::from_elem(self.dimension(&cells), T::zeroed());
        if let Some(values) = copy.as_slice_mut().filter(|values| !values.is_empty()) {
            let place = self.region.at(self.group.rank(), 0);
            self.group.world().get(place, values).map_err(|source| self.runtime(source))?;
        }
        Ok(copy)
    }

    /// Writes this rank's block and the ghost cells around it, from an array of the shape that
    /// [`GlobalArray::ghost_block`] gives: the way to set the cells beyond the ends of an axis, as boundaries are.
    ///
    /// # Errors
    /// [`Error::BufferShape`]; [`Error::Mismatch`] if ranks have many blocks.
    #[track_caller]
    pub fn put_ghost_block<'a>(&self, source: impl Into<ArrayView<'a, T, D>>) -> Result<()> {
        let (cells, source) = (self.own_cells("a put to this rank's block with its ghost cells")?, source.into());
        if *source.shape() != *cells {
            return Err(Error::BufferShape {
                array: self.name.clone(),
                patch: format!("the block of rank {} with its ghost cells", self.group.rank()),
                expected: cells.to_vec(),
                buffer: source.shape().to_vec(),
                rank: self.group.rank(),
            });
        }
        let source = source.as_standard_layout();
        if let Some(values) = source.as_slice().filter(|values| !values.is_empty()) {
            let place = self.region.at(self.group.rank(), 0);
            self.group.world().put(values, place).map_err(|source| self.runtime(source))?;
        }
        Ok(())
    }

    /// This rank's block with its ghost cells around it, to read in place (`NGA_Access_ghosts`); of the shape of
    /// [`GlobalArray::ghost_block`].
    ///
    /// # Safety
    /// OWN-BLOCK: as [`GlobalArray::local_view`]; and no ghost cells are updated while the view lives.
    ///
    /// # Errors
    /// As [`GlobalArray::local_view`].
    #[track_caller]
    pub unsafe fn local_view_with_ghosts(&self) -> Result<ArrayView<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.own_block_with_ghosts()?.view() })
    }

    /// This rank's block with its ghost cells around it, to change in place (`NGA_Access_ghosts`); as
    /// [`GlobalArray::local_view_with_ghosts`].
    ///
    /// # Safety
    /// OWN-BLOCK: as [`GlobalArray::local_view_mut`]; and no ghost cells are updated while the view lives.
    ///
    /// # Errors
    /// As [`GlobalArray::local_view`].
    #[track_caller]
    pub unsafe fn local_view_with_ghosts_mut(&self) -> Result<ArrayViewMut<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.own_block_with_ghosts()?.view_mut() })
    }

    #[track_caller]
    fn own_block_with_ghosts(&self) -> Result<OwnPart<T>> {
        let (block, widths) = (self.own_block()?, self.distribution.ghosts());
        let cells = self.own_cells("a view of this rank's block with its ghost cells")?;
        let before: usize = block.strides.iter().zip(widths.iter()).map(|(stride, width)| stride * width).sum();
        Ok(OwnPart { patch: Patch::whole(&cells), start: block.start.wrapping_sub(before), strides: block.strides })
    }

    /// The shape of this rank's block with its ghost cells.
    fn own_cells(&self, operation: &'static str) -> Result<Axes<usize>> {
        let (block, widths) = (self.one_block(operation)?, self.distribution.ghosts());
        let shape = block.shape();
        Ok(if block.is_empty() { shape } else { Axes::from_fn(shape.len(), |axis| shape[axis] + 2 * widths[axis]) })
    }
}

/// Ghost cells on their way. Waits for them whatever happens, so that nothing lands in memory that is no array's any more.
struct Fetching<'a, T: Pod, D: Dimension> {
    array: &'a GlobalArray<T, D>,
    handle: NbHandle,
}

impl<T: Pod, D: Dimension> Fetching<'_, T, D> {
    fn wait(&mut self) -> Result<()> {
        self.array.group.world().wait_for(&mut self.handle).map_err(|source| self.array.runtime(source))
    }
}

impl<T: Pod, D: Dimension> Drop for Fetching<'_, T, D> {
    fn drop(&mut self) {
        // An error was reported by the wait before, or a panic is on its way.
        let _ = self.wait();
    }
}
