//! Blocks in place: views of this rank's, and of those of the ranks on its node.
//!
//! | Global Arrays | here |
//! |---|---|
//! | `NGA_Access` of the own block | [`GlobalArray::local_view`], [`GlobalArray::local_view_mut`] |
//! | `NGA_Access_block`, `NGA_Access_block_grid` | [`GlobalArray::local_views`], [`GlobalArray::local_views_mut`] |
//! | `NGA_Access_block_segment` of ScaLAPACK's distribution | [`GlobalArray::local_joined_view`], [`GlobalArray::local_joined_view_mut`] |
//! | `NGA_Access` of another rank's block on the node | [`GlobalArray::views_on`], [`GlobalArray::views_on_mut`] |
//! | `NGA_Access_ghosts` | [`GlobalArray::local_view_with_ghosts`], [`GlobalArray::local_view_with_ghosts_mut`] |
//! | `NGA_Release`, `NGA_Release_update` | the end of the view's life |
//! | access, change each element, release | [`GlobalArray::map_inplace`], which is safe |
//! | access, read, release | [`GlobalArray::read_local`], which is safe |
//!
//! A view is taken after what this rank itself put there, also by message, has arrived; a blocking operation need not be
//! followed by a sync before its rank looks at the place. What other ranks wrote is there after a sync. What was
//! written through a view, others on the node see after the next sync, as after `NGA_Release_update`: it is the same memory.
//!
//! Views are unsafe to take, as nothing holds another rank off the elements that a view refers to. A guard could do it only
//! if every put of every rank asked for it first. So what is safe here copies ([`GlobalArray::read_local`]), or
//! refers to nothing ([`GlobalArray::map_inplace`]).
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`).
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::distribution::packed;
use crate::error::{Error, Result};
use crate::local::OwnPart;
use crate::patch::Patch;

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// A copy of this rank's block; for arrays with one block on each rank. What this rank wrote before is in it, what
    /// others wrote before the last sync too.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if ranks have many blocks: [`GlobalArray::get`] each of [`GlobalArray::blocks_on`] then.
    #[track_caller]
    pub fn read_local(&self) -> Result<Array<T, D>> {
        self.get(self.one_block("a copy of this rank's block")?)
    }

    /// This rank's block, to read in place (`NGA_Access`); for arrays with one block on each rank. Ghost cells are not
    /// part of it. What this rank itself wrote there before is in it.
    ///
    /// # Safety
    /// OWN-BLOCK: while the view lives, no rank writes or accumulates into this block: the program has synchronised
    /// before and will again before anybody does. This rank has no non-blocking operation under way with it.
    ///
    /// # Errors
    /// If a put of this rank to itself was refused since its last fence or sync; [`Error::Mismatch`] if ranks have many
    /// blocks.
    #[track_caller]
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
    #[track_caller]
    pub unsafe fn local_view_mut(&self) -> Result<ArrayViewMut<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.own_block()?.view_mut() })
    }

    /// Each of this rank's blocks, to read in place, with its patch (`NGA_Access_block`); none of them is empty.
    ///
    /// # Safety
    /// As [`GlobalArray::local_view`], for all of them.
    ///
    /// # Errors
    /// As [`GlobalArray::views_on`].
    #[track_caller]
    pub unsafe fn local_views(&self) -> Result<Vec<(Patch, ArrayView<'_, T, D>)>> {
        // SAFETY: OWN-BLOCK.
        unsafe { self.views_on(self.group.rank()) }
    }

    /// Each of this rank's blocks, to change in place, with its patch (`NGA_Access_block`); none of them is empty.
    ///
    /// # Safety
    /// As [`GlobalArray::local_view_mut`], for all of them.
    ///
    /// # Errors
    /// As [`GlobalArray::views_on`].
    #[track_caller]
    pub unsafe fn local_views_mut(&self) -> Result<Vec<(Patch, ArrayViewMut<'_, T, D>)>> {
        // SAFETY: OWN-BLOCK.
        unsafe { self.views_on_mut(self.group.rank()) }
    }

    /// Each block of a rank on this rank's node, to read in place, with its patch (`NGA_Access`); none of them is empty.
    ///
    /// # Safety
    /// OWN-BLOCK: as [`GlobalArray::local_view`], for the blocks of that rank.
    ///
    /// # Errors
    /// [`Error::Runtime`] if there is no such rank, or it is on another node (see [`GlobalArray::shares_node`]), or if a put
    /// of this rank to it was refused since the last fence or sync.
    #[track_caller]
    pub unsafe fn views_on(&self, rank: usize) -> Result<Vec<(Patch, ArrayView<'_, T, D>)>> {
        let parts = self.parts_on(rank, self.settled_memory(rank)?);
        // SAFETY: OWN-BLOCK.
        Ok(parts.map(|part| (part.patch, unsafe { part.view() })).collect())
    }

    /// Each block of a rank on this rank's node, to change in place, with its patch (`NGA_Access`); none of them is empty.
    ///
    /// # Safety
    /// OWN-BLOCK: as [`GlobalArray::local_view_mut`], for the blocks of that rank, which itself is among those to keep away.
    ///
    /// # Errors
    /// As [`GlobalArray::views_on`].
    #[track_caller]
    pub unsafe fn views_on_mut(&self, rank: usize) -> Result<Vec<(Patch, ArrayViewMut<'_, T, D>)>> {
        let parts = self.parts_on(rank, self.settled_memory(rank)?);
        // SAFETY: OWN-BLOCK.
        Ok(parts.map(|part| (part.patch, unsafe { part.view_mut() })).collect())
    }

    /// The one array that this rank's blocks make in ScaLAPACK's distribution, to read in place
    /// (`NGA_Access_block_segment`); its shape is that of [`Distribution::joined_shape`](crate::Distribution::joined_shape).
    ///
    /// # Safety
    /// As [`GlobalArray::local_view`], for all blocks of this rank.
    ///
    /// # Errors
    /// As [`GlobalArray::local_view`]; [`Error::Mismatch`] in other distributions.
    #[track_caller]
    pub unsafe fn local_joined_view(&self) -> Result<ArrayView<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.joined_blocks()?.view() })
    }

    /// The one array that this rank's blocks make in ScaLAPACK's distribution, to change in place
    /// (`NGA_Access_block_segment`); as [`GlobalArray::local_joined_view`].
    ///
    /// # Safety
    /// As [`GlobalArray::local_view_mut`], for all blocks of this rank.
    ///
    /// # Errors
    /// As [`GlobalArray::local_joined_view`].
    #[track_caller]
    pub unsafe fn local_joined_view_mut(&self) -> Result<ArrayViewMut<'_, T, D>> {
        // SAFETY: OWN-BLOCK.
        Ok(unsafe { self.joined_blocks()?.view_mut() })
    }

    /// The one block of this rank, which may be empty.
    #[track_caller]
    pub(crate) fn own_block(&self) -> Result<OwnPart<T>> {
        let patch = self.one_block("a view of this rank's block")?;
        let start = self.settled_memory(self.group.rank())?;
        let empty = OwnPart { patch, start, strides: Axes::splat(patch.ndim(), 0) };
        Ok(self.parts_on(self.group.rank(), start).next().unwrap_or(empty))
    }

    /// The patch of this rank's one block.
    pub(crate) fn one_block(&self, operation: &'static str) -> Result<Patch> {
        self.distribution.block_on(self.group.rank()).ok_or_else(|| Error::Mismatch {
            operation,
            why: format!("array '{}' has many blocks on a rank", self.name),
        })
    }

    #[track_caller]
    fn joined_blocks(&self) -> Result<OwnPart<T>> {
        let Some(shape) = self.distribution.joined_shape(self.group.rank()) else {
            return Err(Error::Mismatch {
                operation: "a view of this rank's blocks as one array",
                why: format!("those of array '{}' are not stored so", self.name),
            });
        };
        let start = self.settled_memory(self.group.rank())?;
        Ok(OwnPart { patch: Patch::whole(&shape), start, strides: packed(&shape).0 })
    }

    /// Where the memory of a rank's blocks begins, after what this rank sent there has arrived: it may be on its way as
    /// a message, which a look at the memory would not see.
    #[track_caller]
    fn settled_memory(&self, rank: usize) -> Result<*mut T> {
        let world = self.group.world();
        // (No closures, in which a call would not be told as made where the program called.)
        let settled = match self.group.world_rank(rank) {
            Ok(owner) => world.fence(owner),
            Err(no_such_rank) => Err(no_such_rank),
        };
        settled.map_err(|source| self.runtime(source))?;
        let address = match world.near_address(&self.region, rank) {
            Ok(None) => Err(armci_core::Error::Argument(format!(
                "rank {rank} is on another node, whose memory cannot be looked at in place: get its elements, and put them back"
            ))),
            Ok(Some(address)) => Ok(address.cast()),
            Err(error) => Err(error),
        };
        address.map_err(|source| self.runtime(source))
    }
}
