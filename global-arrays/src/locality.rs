//! Who has what of an array: what a program asks to put its work where the data are.
//!
//! Ranks are those of the array's group. Everything is computed from the [`Distribution`](crate::Distribution), whose
//! methods answer the rarer questions; nothing here waits for anybody.

use bytemuck::Pod;
use ndarray::{Dimension, IntoDimension};

use crate::array::GlobalArray;
use crate::error::Result;
use crate::patch::Patch;
use crate::select::Select;

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// The rank that owns an element (`NGA_Locate`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds).
    pub fn owner(&self, index: impl IntoDimension<Dim = D>) -> Result<usize> {
        let index = index.into_dimension();
        let owner = self.distribution.owner(index.slice());
        owner.ok_or_else(|| self.outside(format!("{:?}", index.slice())))
    }

    /// The ranks that own a part of a patch, each with its part, once for each block (`NGA_Locate_region`,
    /// `NGA_Locate_num_blocks`). Of a section with steps, the patch around it is meant.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds).
    pub fn owners<S: Select<D>>(&self, at: S) -> Result<impl Iterator<Item = (usize, Patch)> + use<'_, T, D, S>> {
        let patch = self.section(&at)?.patch();
        Ok(self.distribution.owners(&patch))
    }

    /// The block that `rank` owns, which may be empty (`NGA_Distribution`); `None` if ranks have many blocks.
    pub fn block_on(&self, rank: usize) -> Option<Patch> {
        self.distribution.block_on(rank)
    }

    /// The blocks that `rank` owns: none, one or many, none of them empty (`NGA_Distribution`).
    pub fn blocks_on(&self, rank: usize) -> impl Iterator<Item = Patch> + '_ {
        self.distribution.patches_on(rank)
    }

    /// Whether this rank reaches the blocks of another in place, by [`GlobalArray::views_on`]: they are on one node
    /// (`GA_Cluster_proc_nodeid`).
    pub fn shares_node(&self, rank: usize) -> bool {
        matches!(self.group.world().near_address(&self.region, rank), Ok(Some(_)))
    }

    /// The ranks of the array's group whose blocks this rank reaches in place, itself included.
    pub fn ranks_on_node(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.group.size()).filter(|rank| self.shares_node(*rank))
    }

    /// Whether each rank of the job owns the same elements of this array as of the other, in the same blocks
    /// (`NGA_Compare_distr`).
    pub fn same_distribution<U: Pod, E: Dimension>(&self, other: &GlobalArray<U, E>) -> bool {
        self.group.same_ranks(&other.group) && self.distribution.same_blocks(&other.distribution)
    }
}
