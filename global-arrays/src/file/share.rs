//! The elements of a file, in pieces that are contiguous there and are patches of the array; and which rank moves which.
//!
//! Pieces follow the file, not the array's blocks: so each is one large access to the file, whatever the distribution is,
//! and the rows of blocks that it is put together from are moved by memory copies. A rank moves consecutive pieces.

use std::ops::Range;

use crate::axes::Axes;
use crate::patch::Patch;

/// Bytes of a piece at most (unless one element has more).
const PIECE: usize = 4 << 20;
/// Bytes of a piece at least, where the file has so many.
const SMALLEST: usize = 64 << 10;

/// A file of elements in order, last axis contiguous.
pub(crate) struct Pieces {
    shape: Axes<usize>,
    /// The axis that is cut; those before it have one index in each piece, those behind it are whole.
    axis: usize,
    /// Indices of that axis in a piece, and pieces along it.
    step: usize,
    along: usize,
    /// Elements of one index of that axis.
    inner: usize,
}

impl Pieces {
    pub(crate) fn new(shape: &[usize], element: usize, ranks: usize) -> Self {
        // (Of lengths that a file claims beside one of 0, the product may be any.)
        let product = |lengths: &[usize]| lengths.iter().fold(1usize, |product, len| product.saturating_mul(*len));
        let bytes = product(shape).saturating_mul(element);
        let budget = (bytes / ranks.max(1)).clamp(SMALLEST, PIECE) / element.max(1);
        let inner_of = |axis: usize| product(&shape[axis + 1..]).max(1);
        let axis = (0..shape.len()).find(|axis| inner_of(*axis) <= budget).unwrap_or(shape.len() - 1);
        let inner = inner_of(axis);
        let step = (budget / inner).clamp(1, shape[axis].max(1));
        Pieces {
            shape: Axes::from_fn(shape.len(), |axis| shape[axis]),
            axis,
            step,
            along: shape[axis].div_ceil(step),
            inner,
        }
    }

    /// The pieces that a rank moves.
    pub(crate) fn of(&self, rank: usize, ranks: usize) -> Range<usize> {
        let empty = self.shape.contains(&0);
        let pieces = if empty { 0 } else { self.shape[..self.axis].iter().product::<usize>() * self.along };
        pieces * rank / ranks..pieces * (rank + 1) / ranks
    }

    /// A piece: the patch, and how many elements are before it in the file.
    pub(crate) fn piece(&self, number: usize) -> (Patch, usize) {
        let (mut before, part) = (number / self.along, number % self.along);
        let from = part * self.step;
        let first = (before * self.shape[self.axis] + from) * self.inner;
        let mut leading = self.shape;
        for axis in (0..self.axis).rev() {
            leading[axis] = before % self.shape[axis];
            before /= self.shape[axis];
        }
        let patch = Patch::from_fn(self.shape.len(), |axis| match axis.cmp(&self.axis) {
            std::cmp::Ordering::Less => leading[axis]..leading[axis] + 1,
            std::cmp::Ordering::Equal => from..(from + self.step).min(self.shape[axis]),
            std::cmp::Ordering::Greater => 0..self.shape[axis],
        });
        (patch, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_array_of_whatever_lengths_has_no_pieces() {
        for shape in [[0, usize::MAX, usize::MAX], [usize::MAX, usize::MAX, 0]] {
            assert!(Pieces::new(&shape, 8, 2).of(1, 2).is_empty());
        }
    }

    proptest! {
        #[test]
        fn pieces_follow_each_other_through_the_file(
            shape in prop::collection::vec(0usize..9, 1..=7),
            element in prop_oneof![Just(4usize), Just(1 << 12), Just(1 << 15), Just(1 << 17)],
            ranks in 1usize..6,
        ) {
            let pieces = Pieces::new(&shape, element, ranks);
            let mut next = 0;
            for rank in 0..ranks {
                for number in pieces.of(rank, ranks) {
                    let (patch, first) = pieces.piece(number);
                    prop_assert_eq!(first, next);
                    prop_assert!(!patch.is_empty());
                    prop_assert!(patch.len() == 1 || patch.len() * element <= PIECE);
                    // Contiguous: the first element's number is right, and so is the last one's.
                    let number = |last: bool| patch.ranges().zip(&shape).fold(0, |number, (range, len)| {
                        number * len + if last { range.end - 1 } else { range.start }
                    });
                    prop_assert_eq!(number(false), first);
                    prop_assert_eq!(number(true), first + patch.len() - 1);
                    next += patch.len();
                }
            }
            prop_assert_eq!(next, shape.iter().product::<usize>());
        }
    }
}
