//! Splitting a section by the blocks it touches: one strided transfer for each.

use armci_core::{GlobalPtr, Region, Strided};
use bytemuck::Pod;
use ndarray::Dimension;

use crate::array::GlobalArray;
use crate::axes::{Axes, MAX_DIMS};
use crate::distribution::{Blocks, Distribution};
use crate::select::Section;

/// The part of a section that lies in one block, as a transfer of the runtime.
pub(crate) struct Piece<T> {
    /// Where it begins, in the buffer and in the owner's memory.
    pub(crate) first: isize,
    pub(crate) place: GlobalPtr<T>,
    counts: [usize; MAX_DIMS + 1],
    local: [usize; MAX_DIMS],
    remote: [usize; MAX_DIMS],
    levels: usize,
}

impl<T> Piece<T> {
    /// So many elements along each axis, between a place here and one there, with neighbours so far apart.
    #[inline]
    fn new(first: isize, place: GlobalPtr<T>, counts: &[usize], distances: impl Fn(usize) -> (usize, usize)) -> Self {
        let mut piece =
            Piece { first, place, counts: [1; MAX_DIMS + 1], local: [0; MAX_DIMS], remote: [0; MAX_DIMS], levels: 0 };
        for axis in (0..counts.len()).rev() {
            let (local, remote) = distances(axis);
            if piece.levels == 0 && piece.counts[0] == 1 && local == 1 && remote == 1 {
                piece.counts[0] = counts[axis];
            } else if counts[axis] > 1 {
                piece.counts[piece.levels + 1] = counts[axis];
                piece.local[piece.levels] = local;
                piece.remote[piece.levels] = remote;
                piece.levels += 1;
            }
        }
        piece
    }

    /// Its elements, if they are contiguous here and there.
    #[inline]
    pub(crate) fn row(&self) -> Option<usize> {
        (self.levels == 0).then_some(self.counts[0])
    }

    #[inline]
    pub(crate) fn shape(&self) -> Strided<'_> {
        Strided {
            counts: &self.counts[..=self.levels],
            local: &self.local[..self.levels],
            remote: &self.remote[..self.levels],
        }
    }
}

/// Goes through the pieces of a section; none of them is empty. (An iterator and no closure, since a transfer could not
/// be told then as made where the program called.)
pub(crate) struct Pieces<'a, T> {
    distribution: &'a Distribution,
    region: &'a Region,
    section: &'a Section,
    strides: &'a Axes<isize>,
    blocks: Blocks,
    element: std::marker::PhantomData<T>,
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// All of a section as one piece, if it has elements and one block has them all: the same as its only piece, in less
    /// time, since most patches are so and many are small.
    #[inline]
    pub(crate) fn lone_piece(&self, section: &Section, strides: &Axes<isize>) -> Option<Piece<T>> {
        let Section { start, len, step, .. } = section;
        let place = self
            .distribution
            .place_around(start, |axis| len[axis].checked_sub(1).map(|more| start[axis] + more * step[axis]))?;
        let piece = |axis: usize| (strides[axis].unsigned_abs(), place.strides[axis] * step[axis]);
        Some(Piece::new(0, self.region.at(place.rank, place.offset), len, piece))
    }

    /// Splits a section by block, for a buffer with these distances between neighbours along each axis.
    #[inline]
    pub(crate) fn pieces<'a>(&'a self, section: &'a Section, strides: &'a Axes<isize>) -> Pieces<'a, T> {
        let blocks = self.distribution.touched(&section.patch());
        Pieces {
            distribution: &self.distribution,
            region: &self.region,
            section,
            strides,
            blocks,
            element: std::marker::PhantomData,
        }
    }
}

impl<T: Pod> Pieces<'_, T> {
    /// The piece in a block, unless the section steps over it.
    #[inline]
    fn piece(&self, block: &Axes<usize>) -> Option<Piece<T>> {
        let (patch, place) = (self.distribution.block(block), self.distribution.place(block));
        let Section { start, len, step, .. } = self.section;
        let (mut first, mut offset, mut empty) = (0, place.offset, false);
        // Which elements of the section, counted along each axis, are inside.
        let counts = Axes::from_fn(start.len(), |axis| {
            let inside = patch.range(axis);
            let count = |end: usize| {
                let reach = end.saturating_sub(start[axis]);
                // (Most sections have no steps, and a division is slow.)
                let count = if step[axis] == 1 { reach } else { reach.div_ceil(step[axis]) };
                count.min(len[axis])
            };
            let (from, to) = (count(inside.start), count(inside.end));
            empty |= from >= to;
            first += from as isize * self.strides[axis];
            // (The first of them is behind the block's beginning, unless there are none.)
            offset += (start[axis] + from * step[axis]).saturating_sub(inside.start) * place.strides[axis];
            to.saturating_sub(from)
        });
        if empty {
            return None;
        }
        let place_of_first = self.region.at(place.rank, offset);
        Some(Piece::new(first, place_of_first, &counts, |axis| {
            (self.strides[axis].unsigned_abs(), place.strides[axis] * step[axis])
        }))
    }
}

impl<T: Pod> Iterator for Pieces<'_, T> {
    type Item = Piece<T>;

    #[inline]
    fn next(&mut self) -> Option<Piece<T>> {
        loop {
            let block = self.blocks.next()?;
            if let Some(piece) = self.piece(&block) {
                return Some(piece);
            }
        }
    }
}
