//! What a program asks about a distribution, beyond who owns an element: its blocks by number, the ranks' shares, and
//! whether two are alike.
//!
//! All answers are computed; none needs another rank.

use super::{Cut, Deal, Distribution, Packing, index_of, number};
use crate::axes::Axes;
use crate::patch::Patch;

impl Distribution {
    /// How many blocks there are, the empty ones included (`GA_Total_blocks`). They are numbered along the grid of
    /// blocks, the last axis fastest.
    pub fn block_count(&self) -> usize {
        self.blocks.iter().product()
    }

    /// The shape of the largest block (`GA_Get_block_info`, with [`Distribution::blocks`]).
    pub fn block_shape(&self) -> Axes<usize> {
        self.cuts.map(Cut::longest)
    }

    /// The patch that block `number` is, which may be empty (`NGA_Distribution` of a block); `None` if there is no such block.
    pub fn block_at(&self, number: usize) -> Option<Patch> {
        (number < self.block_count()).then(|| self.block(&index_of(number, &self.blocks)))
    }

    /// The rank that owns block `number`; `None` if there is no such block.
    pub fn block_owner(&self, number: usize) -> Option<usize> {
        (number < self.block_count()).then(|| self.rank_of(&index_of(number, &self.blocks)))
    }

    /// The number of the block that an element lies in; `None` outside the array.
    pub fn block_number(&self, index: &[usize]) -> Option<usize> {
        self.owner(index)?;
        Some(number(&self.block_of(index), &self.blocks))
    }

    /// The blocks that `rank` owns, as patches, in the order of their numbers; none of them is empty.
    pub fn patches_on(&self, rank: usize) -> impl Iterator<Item = Patch> + '_ {
        let dealt = !matches!(self.deal, Deal::RoundRobin { ranks } if rank >= ranks);
        dealt.then(|| self.blocks_on(rank)).into_iter().flatten().map(|(patch, _)| patch)
    }

    /// The grid of ranks that blocks are dealt to along each axis, where there is one (`GA_Get_proc_grid`).
    pub fn rank_grid(&self) -> Option<Axes<usize>> {
        match &self.deal {
            Deal::OneEach { .. } => Some(self.blocks),
            Deal::RoundRobin { .. } => None,
            Deal::Grid { grid, .. } => Some(*grid),
        }
    }

    /// The place of a rank in the grid of ranks (`GA_Get_proc_index`); `None` without a grid, or if the rank has none.
    pub fn rank_index(&self, rank: usize) -> Option<Axes<usize>> {
        let grid = self.rank_grid()?;
        (rank < grid.iter().product::<usize>()).then(|| index_of(rank, &grid))
    }

    /// The shape of the one array that the blocks of `rank` make in its memory, where they do: in ScaLAPACK's
    /// distribution. (What its `numroc` computes, along each axis.)
    pub fn joined_shape(&self, rank: usize) -> Option<Axes<usize>> {
        let Deal::Grid { grid, packing: Packing::Joined } = &self.deal else { return None };
        let nothing = Axes::splat(grid.len(), 0);
        Some(if rank < grid.iter().product::<usize>() { self.joined(rank, grid) } else { nothing })
    }

    /// Whether each rank owns the same elements here and there, in the same blocks (`NGA_Compare_distr`). Ghost cells,
    /// and where in a rank's memory blocks lie, make no difference.
    pub fn same_blocks(&self, other: &Distribution) -> bool {
        let dealt_alike = match (&self.deal, &other.deal) {
            (Deal::OneEach { .. }, Deal::OneEach { .. }) => true,
            (Deal::RoundRobin { ranks: a }, Deal::RoundRobin { ranks: b }) => a == b,
            (Deal::Grid { grid: a, .. }, Deal::Grid { grid: b, .. }) => a == b,
            _ => false,
        };
        // What was said in the same words is the same; else block for block.
        let whole = Patch::whole(&self.shape);
        self.shape == other.shape
            && (dealt_alike && self.cuts == other.cuts || self.owners(&whole).eq(other.owners(&whole)))
    }
}
