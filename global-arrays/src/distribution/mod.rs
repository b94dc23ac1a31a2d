//! Who owns what, and where it lies: an array cut into blocks, and the blocks dealt to ranks.
//!
//! Each axis is cut into pieces ([`cut`]); the pieces of all axes make a grid of blocks, numbered with the last axis
//! fastest. A [`Deal`] says which rank a block goes to, and where in its memory. Nothing is stored per rank; the only
//! thing that grows are the places of irregular cuts.

mod cut;
mod grid;
mod queries;
#[cfg(test)]
mod tests;

use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::axes::{Axes, advance};
use crate::patch::Patch;

pub(crate) use cut::Cut;

/// How blocks go to ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Deal {
    /// Block `i` to rank `i`. Around each block the memory has room for ghost cells, so many on either side.
    OneEach { ghosts: Axes<usize> },
    /// Block `i` to rank `i % ranks`, in whose memory it is the block `i / ranks`, each in the room of the largest.
    RoundRobin { ranks: usize },
    /// Along each axis in turn to the ranks of a grid (ScaLAPACK's block-cyclic distribution).
    Grid { grid: Axes<usize>, packing: Packing },
}

/// How the blocks of a rank lie, when a grid of ranks was dealt many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Packing {
    /// As one array, in which blocks that were dealt in turn are neighbours, as ScaLAPACK wants it.
    Joined,
    /// Each by itself, in the room of the largest.
    Tiles,
}

/// How an array is spread over the ranks of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    shape: Axes<usize>,
    cuts: Axes<Cut>,
    blocks: Axes<usize>,
    deal: Deal,
}

/// By what all else follows from.
impl Hash for Distribution {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.cuts.hash(state);
        self.deal.hash(state);
    }
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whose it is, of the array's group.
    pub(crate) rank: usize,
    /// Of its first element, in elements from the beginning of the rank's part.
    pub(crate) offset: usize,
    /// Between neighbours along each axis, in elements.
    pub(crate) strides: Axes<usize>,
}

impl Place {
    /// Where an element of the block lies, in elements from the beginning of the rank's part; the block begins at
    /// `first` in the array.
    #[inline]
    pub(crate) fn at(&self, index: &[usize], first: &[usize]) -> usize {
        let within =
            index.iter().zip(first).zip(self.strides.iter()).map(|((at, first), stride)| (at - first) * stride);
        self.offset + within.sum::<usize>()
    }
}

/// Distances in memory of a box of these lengths, last axis contiguous; and its elements.
#[inline]
pub(crate) fn packed(lengths: &Axes<usize>) -> (Axes<usize>, usize) {
    let mut strides = *lengths;
    let mut distance = 1;
    for axis in (0..lengths.len()).rev() {
        strides[axis] = distance;
        distance *= lengths[axis];
    }
    (strides, distance)
}

/// The position of an index in a box of these lengths, last axis fastest.
#[inline]
fn number(index: &[usize], lengths: &[usize]) -> usize {
    index.iter().zip(lengths).fold(0, |number, (at, len)| number * len + at)
}

/// The index at a position.
#[inline]
fn index_of(mut number: usize, lengths: &Axes<usize>) -> Axes<usize> {
    let mut index = *lengths;
    for axis in (0..lengths.len()).rev() {
        index[axis] = number % lengths[axis];
        number /= lengths[axis];
    }
    index
}

impl Distribution {
    pub(crate) fn new(cuts: Axes<Cut>, deal: Deal) -> Self {
        Distribution { shape: cuts.map(Cut::len), blocks: cuts.map(Cut::pieces), cuts, deal }
    }

    /// Regular blocks, one for each of at most `ranks` ranks, of at least `min_block` where the shape allows, with as
    /// little surface as can be. Ranks that would get nothing own nothing.
    ///
    /// # Panics
    /// With more than [`MAX_DIMS`](crate::MAX_DIMS) axes, or with lengths of a smallest block for fewer axes than there are.
    pub fn regular(shape: &[usize], ranks: usize, min_block: &[usize]) -> Self {
        Distribution::regular_with_ghosts(shape, ranks, min_block, &Axes::splat(shape.len(), 0))
    }

    pub(crate) fn regular_with_ghosts(
        shape: &[usize],
        ranks: usize,
        min_block: &[usize],
        ghosts: &Axes<usize>,
    ) -> Self {
        let grid = grid::choose(shape, ranks, min_block);
        let cuts = Axes::from_fn(shape.len(), |axis| Cut::even(shape[axis], grid[axis]));
        Distribution::new(cuts, Deal::OneEach { ghosts: *ghosts })
    }

    /// The array's shape.
    #[inline]
    pub fn shape(&self) -> &Axes<usize> {
        &self.shape
    }

    /// Blocks along each axis.
    pub fn blocks(&self) -> &Axes<usize> {
        &self.blocks
    }

    /// Ghost cells on either side of each block, along each axis.
    pub fn ghosts(&self) -> Axes<usize> {
        match &self.deal {
            Deal::OneEach { ghosts } => *ghosts,
            _ => self.shape.map(|_| 0),
        }
    }

    /// Whether each rank has at most one block.
    pub fn has_one_block_each(&self) -> bool {
        matches!(self.deal, Deal::OneEach { .. })
    }

    /// The patch that a block is, by its index in the grid of blocks.
    #[inline]
    pub(crate) fn block(&self, block: &[usize]) -> Patch {
        Patch::from_fn(block.len(), |axis| self.cuts[axis].piece(block[axis]))
    }

    /// The owner of an element; `None` outside the array.
    pub fn owner(&self, index: &[usize]) -> Option<usize> {
        let inside = index.len() == self.shape.len() && index.iter().zip(self.shape.iter()).all(|(at, len)| at < len);
        inside.then(|| self.rank_of(&self.block_of(index)))
    }

    /// The rank that an element is on, and where, in elements from the beginning of the rank's part; `None` outside the
    /// array.
    #[inline]
    pub(crate) fn locate(&self, index: &[usize]) -> Option<(usize, usize)> {
        let shape = &*self.shape;
        if index.len() != shape.len() || index.iter().zip(shape).any(|(at, len)| at >= len) {
            return None;
        }
        let Deal::OneEach { ghosts } = &self.deal else {
            let block = self.block_of(index);
            let place = self.place(&block);
            return Some((place.rank, place.at(index, &self.block(&block).start())));
        };
        // What `place` says, without its strides: axis by axis, the last one fastest.
        let (mut rank, mut offset) = (0, 0);
        for (axis, at) in index.iter().enumerate() {
            let (cut, ghosts) = (&self.cuts[axis], ghosts[axis]);
            let piece = cut.piece_of(*at);
            let range = cut.piece(piece);
            rank = rank * self.blocks[axis] + piece;
            offset = offset * (range.len() + 2 * ghosts) + at - range.start + ghosts;
        }
        Some((rank, offset))
    }

    /// The block that an element of the array lies in, by its index in the grid of blocks.
    #[inline]
    pub(crate) fn block_of(&self, index: &[usize]) -> Axes<usize> {
        Axes::from_fn(index.len(), |axis| self.cuts[axis].piece_of(index[axis]))
    }

    /// Where an element lies, with the distances between its neighbours, if its block also has, along each axis, the
    /// index that `last` gives.
    #[inline]
    pub(crate) fn place_around(&self, first: &[usize], last: impl Fn(usize) -> Option<usize>) -> Option<Place> {
        let mut block = Axes::splat(first.len(), 0);
        let (mut strides, mut distance, mut offset) = (block, 1, 0);
        let ghosts = if let Deal::OneEach { ghosts } = &self.deal { Some(ghosts) } else { None };
        for axis in (0..first.len()).rev() {
            let (cut, last) = (&self.cuts[axis], last(axis)?);
            block[axis] = cut.piece_of(first[axis]);
            let range = cut.piece(block[axis]);
            if last >= range.end {
                return None;
            }
            // What `place` says of one block each, on the way.
            if let Some(ghosts) = ghosts {
                strides[axis] = distance;
                offset += (first[axis] - range.start + ghosts[axis]) * distance;
                distance *= range.len() + 2 * ghosts[axis];
            }
        }
        if ghosts.is_some() {
            return Some(Place { rank: number(&block, &self.blocks), offset, strides });
        }
        let place = self.place(&block);
        Some(Place { offset: place.at(first, &self.block(&block).start()), ..place })
    }

    #[inline]
    fn rank_of(&self, block: &[usize]) -> usize {
        match &self.deal {
            Deal::OneEach { .. } => number(block, &self.blocks),
            Deal::RoundRobin { ranks } => number(block, &self.blocks) % ranks,
            Deal::Grid { grid, .. } => {
                block.iter().zip(grid.iter()).fold(0, |rank, (at, ranks)| rank * ranks + at % ranks)
            }
        }
    }

    /// Where a block lies.
    #[inline]
    pub(crate) fn place(&self, block: &Axes<usize>) -> Place {
        let own = |axis: usize| self.cuts[axis].piece(block[axis]).len();
        let rank = self.rank_of(block);
        match &self.deal {
            Deal::OneEach { ghosts } => {
                let (strides, _) = packed(&Axes::from_fn(block.len(), |axis| own(axis) + 2 * ghosts[axis]));
                let offset = strides.iter().zip(ghosts.iter()).map(|(stride, width)| stride * width).sum();
                Place { rank, offset, strides }
            }
            Deal::RoundRobin { ranks } => {
                let (strides, _) = packed(&Axes::from_fn(block.len(), own));
                Place { rank, offset: number(block, &self.blocks) / ranks * self.room(), strides }
            }
            Deal::Grid { grid, packing: Packing::Tiles } => {
                let (strides, _) = packed(&Axes::from_fn(block.len(), own));
                let local = Axes::from_fn(block.len(), |axis| block[axis] / grid[axis]);
                let tiles = self.tiles(rank, grid);
                Place { rank, offset: number(&local, &tiles) * self.room(), strides }
            }
            Deal::Grid { grid, packing: Packing::Joined } => {
                let (strides, _) = packed(&self.joined(rank, grid));
                let within = |axis: usize| block[axis] / grid[axis] * self.cuts[axis].longest() * strides[axis];
                Place { rank, offset: (0..block.len()).map(within).sum(), strides }
            }
        }
    }

    /// Elements of the largest block.
    fn room(&self) -> usize {
        self.cuts.iter().map(Cut::longest).product()
    }

    /// Blocks along each axis that a rank of a grid has.
    fn tiles(&self, rank: usize, grid: &Axes<usize>) -> Axes<usize> {
        let at = index_of(rank, grid);
        Axes::from_fn(grid.len(), |axis| (self.blocks[axis] + grid[axis] - 1 - at[axis]) / grid[axis])
    }

    /// The shape of the one array that the blocks of a rank of a grid make.
    fn joined(&self, rank: usize, grid: &Axes<usize>) -> Axes<usize> {
        let at = index_of(rank, grid);
        Axes::from_fn(grid.len(), |axis| {
            let mine = (at[axis]..self.blocks[axis]).step_by(grid[axis]);
            mine.map(|block| self.cuts[axis].piece(block).len()).sum()
        })
    }

    /// Elements of memory that a rank's part has, ghost cells and unused room included.
    pub(crate) fn elements_on(&self, rank: usize) -> usize {
        let blocks: usize = self.blocks.iter().product();
        match &self.deal {
            Deal::OneEach { ghosts } if rank < blocks => {
                let block = index_of(rank, &self.blocks);
                (0..block.len()).map(|axis| self.cuts[axis].piece(block[axis]).len() + 2 * ghosts[axis]).product()
            }
            Deal::OneEach { .. } => 0,
            Deal::RoundRobin { ranks } => (blocks + ranks - 1 - rank) / ranks * self.room(),
            Deal::Grid { grid, .. } if rank >= grid.iter().product::<usize>() => 0,
            Deal::Grid { grid, packing: Packing::Tiles } => {
                self.tiles(rank, grid).iter().product::<usize>() * self.room()
            }
            Deal::Grid { grid, packing: Packing::Joined } => self.joined(rank, grid).iter().product(),
        }
    }

    /// Elements of memory to ask for on a rank of so many: what its part has; where each rank has a block and these differ
    /// by one along an axis at most, that of the largest, since ranks that ask for the same get it after one meeting.
    pub(crate) fn elements_asked(&self, rank: usize, ranks: usize) -> usize {
        let alike = self.cuts.iter().all(|cut| matches!(cut, Cut::Even { .. }));
        match &self.deal {
            Deal::OneEach { ghosts } if alike && self.blocks.iter().product::<usize>() == ranks => {
                self.cuts.iter().zip(ghosts.iter()).map(|(cut, width)| cut.longest() + 2 * width).product()
            }
            _ => self.elements_on(rank),
        }
    }

    /// Elements of memory that all ranks together have at most, if they can be counted.
    pub(crate) fn reserved(&self) -> Option<usize> {
        let ghosts = self.ghosts();
        let axis = |axis: usize| {
            let room = self.cuts[axis].longest().checked_add(ghosts[axis].checked_mul(2)?)?;
            room.checked_mul(self.blocks[axis])
        };
        // An axis of length 0 does not excuse another that cannot be counted.
        (0..self.shape.len()).try_fold(1usize, |all, at| all.checked_mul(axis(at)?.max(1)))
    }

    /// The blocks that touch a patch, by their indices in the grid of blocks, in that grid's order; among them may be
    /// empty ones.
    #[inline]
    pub(crate) fn touched(&self, patch: &Patch) -> Blocks {
        let dims = self.shape.len();
        let empty = patch.is_empty();
        let reach =
            Patch::from_fn(dims, |axis| if empty { 0..0 } else { self.cuts[axis].pieces_of(patch.range(axis)) });
        Blocks { first: reach.start(), counts: reach.shape(), next: (!empty).then(|| Axes::splat(dims, 0)) }
    }

    /// The pieces that blocks cut a range along an axis into.
    pub(crate) fn pieces_along(&self, axis: usize, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let cut = &self.cuts[axis];
        cut.pieces_of(range.clone()).map(move |piece| {
            let piece = cut.piece(piece);
            piece.start.max(range.start)..piece.end.min(range.end)
        })
    }

    /// The block that `rank` owns, where ranks have one block each: empty if it owns nothing. (`NGA_Distribution`)
    pub fn block_on(&self, rank: usize) -> Option<Patch> {
        if !self.has_one_block_each() {
            return None;
        }
        let blocks: usize = self.blocks.iter().product();
        Some(if rank < blocks {
            self.block(&index_of(rank, &self.blocks))
        } else {
            Patch::from_fn(self.shape.len(), |_| 0..0)
        })
    }

    /// The blocks that `rank` owns, and where each lies; none of them is empty.
    pub(crate) fn blocks_on(&self, rank: usize) -> impl Iterator<Item = (Patch, Place)> + '_ {
        let blocks: usize = self.blocks.iter().product();
        let (first, step, counts) = match &self.deal {
            Deal::OneEach { .. } => (rank, 1, usize::from(rank < blocks)),
            Deal::RoundRobin { ranks } => (rank, *ranks, (blocks + ranks - 1 - rank) / ranks),
            Deal::Grid { grid, .. } if rank >= grid.iter().product::<usize>() => (0, 1, 0),
            Deal::Grid { grid, .. } => (0, 1, self.tiles(rank, grid).iter().product()),
        };
        (0..counts).filter_map(move |count| {
            let block = match &self.deal {
                Deal::Grid { grid, .. } => {
                    let (at, local) = (index_of(rank, grid), index_of(count, &self.tiles(rank, grid)));
                    Axes::from_fn(grid.len(), |axis| local[axis] * grid[axis] + at[axis])
                }
                _ => index_of(first + count * step, &self.blocks),
            };
            let patch = self.block(&block);
            (!patch.is_empty()).then(|| (patch, self.place(&block)))
        })
    }

    /// The parts of a patch, each within one block, with its owner; in the order of the grid of blocks
    /// (`NGA_Locate_region`). What of the patch lies outside the array has no owner; all of it does that has another
    /// number of axes.
    pub fn owners<'a>(&'a self, patch: &Patch) -> impl Iterator<Item = (usize, Patch)> + use<'a> {
        // (Of what is outside, nobody owns anything.)
        let whole = Patch::whole(&self.shape);
        let patch = if patch.ndim() == whole.ndim() {
            whole.intersection(patch)
        } else {
            Patch::from_fn(whole.ndim(), |_| 0..0)
        };
        self.touched(&patch).filter_map(move |block| {
            let part = self.block(&block).intersection(&patch);
            (!part.is_empty()).then(|| (self.rank_of(&block), part))
        })
    }
}

/// Goes through a box of the grid of blocks.
pub(crate) struct Blocks {
    first: Axes<usize>,
    counts: Axes<usize>,
    next: Option<Axes<usize>>,
}

impl Iterator for Blocks {
    type Item = Axes<usize>;

    #[inline]
    fn next(&mut self) -> Option<Axes<usize>> {
        let at = self.next.as_mut()?;
        let block = Axes::from_fn(at.len(), |axis| self.first[axis] + at[axis]);
        if !advance(at, &self.counts) {
            self.next = None;
        }
        Some(block)
    }
}
