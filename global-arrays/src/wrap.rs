//! Patches that leave the array and come in again at its other end.
//!
//! Along each axis such a patch is a line wound around the array: it begins somewhere inside, runs to the end, and
//! goes on at index 0, as often as it takes. [`Wrapped`] cuts it where it is wound, and goes through the pieces, each of
//! which is an ordinary patch. Nothing is allocated, whatever the number of pieces.

use std::ops::Range;

use ndarray::{Dim, Dimension, Ix1, IxDyn};

use crate::axes::{Axes, advance};
use crate::patch::Patch;

/// What names a patch of an array of `D` dimensions whose ranges may leave the array: `[-1..3, 8..12]`, one range for
/// each axis; for arrays of dynamic dimension, slices of ranges.
///
/// Index -1 is the last element of an axis, and the index behind the last one is 0.
pub trait WrappingRanges<D: Dimension> {
    /// The ranges, one for each axis.
    fn ranges(&self) -> &[Range<isize>];
}

macro_rules! ranges {
    ($($dims:literal),*) => {$(
        impl WrappingRanges<Dim<[usize; $dims]>> for [Range<isize>; $dims] {
            fn ranges(&self) -> &[Range<isize>] {
                self
            }
        }
    )*};
}
ranges!(1, 2, 3, 4, 5, 6);

impl WrappingRanges<Ix1> for Range<isize> {
    fn ranges(&self) -> &[Range<isize>] {
        std::slice::from_ref(self)
    }
}

impl WrappingRanges<IxDyn> for [Range<isize>] {
    fn ranges(&self) -> &[Range<isize>] {
        self
    }
}

impl<D: Dimension, S: WrappingRanges<D> + ?Sized> WrappingRanges<D> for &S {
    fn ranges(&self) -> &[Range<isize>] {
        S::ranges(self)
    }
}

/// A line wound around an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Winding {
    /// Where it begins, on the axis.
    first: usize,
    /// Elements of it.
    len: usize,
    /// Elements of the axis.
    around: usize,
}

impl Winding {
    /// How many pieces it is cut into, each from one end of the axis to the other but the first and the last.
    fn pieces(&self) -> usize {
        let in_first = self.around - self.first;
        if self.len == 0 { 0 } else { 1 + self.len.saturating_sub(in_first).div_ceil(self.around) }
    }

    /// A piece: where it lies on the axis, and how far from the beginning of the line.
    fn piece(&self, number: usize) -> (Range<usize>, usize) {
        let (from, at) = match number {
            0 => (0, self.first),
            _ => (self.around - self.first + (number - 1) * self.around, 0),
        };
        (at..self.around.min(at + (self.len - from)), from)
    }
}

/// A patch wound around the array along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrapped {
    axes: Axes<Winding>,
}

impl Wrapped {
    /// The patch of these ranges around an array of this shape. `None` with another number of ranges, if one runs
    /// backwards, if its elements cannot be counted, or if it runs around an axis on which there is nothing.
    pub(crate) fn new(ranges: &[Range<isize>], shape: &[usize]) -> Option<Self> {
        if ranges.len() != shape.len() {
            return None;
        }
        let mut axes = Axes::splat(shape.len(), Winding::default());
        for ((line, range), around) in axes.iter_mut().zip(ranges).zip(shape) {
            let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
            if len > 0 && *around == 0 {
                return None;
            }
            let first = if len == 0 { 0 } else { range.start.rem_euclid(isize::try_from(*around).ok()?) as usize };
            *line = Winding { first, len, around: *around };
        }
        Some(Wrapped { axes })
    }

    /// Elements along each axis.
    pub(crate) fn shape(&self) -> Axes<usize> {
        self.axes.map(|line| line.len)
    }

    /// Whether an element of the array is in it more than once.
    pub(crate) fn overlaps_itself(&self) -> bool {
        !self.is_empty() && self.axes.iter().any(|line| line.len > line.around)
    }

    fn is_empty(&self) -> bool {
        self.axes.iter().any(|line| line.len == 0)
    }

    /// Its pieces: each as a patch of the array, with the place in a buffer of its shape where that begins.
    pub(crate) fn pieces(&self) -> WrappedPieces<'_> {
        let next = (!self.is_empty()).then(|| Axes::splat(self.axes.len(), 0));
        WrappedPieces { wrapped: self, counts: self.axes.map(Winding::pieces), next }
    }
}

/// Goes through the pieces of a wrapped patch. (An iterator and no closure, since a transfer could not be told then as
/// made where the program called.)
pub(crate) struct WrappedPieces<'a> {
    wrapped: &'a Wrapped,
    counts: Axes<usize>,
    next: Option<Axes<usize>>,
}

impl Iterator for WrappedPieces<'_> {
    type Item = (Patch, Axes<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next.as_mut()?;
        let mut within = Axes::splat(number.len(), 0);
        let patch = Patch::from_fn(number.len(), |axis| {
            let (range, from) = self.wrapped.axes[axis].piece(number[axis]);
            within[axis] = from;
            range
        });
        if !advance(number, &self.counts) {
            self.next = None;
        }
        Some((patch, within))
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_the_line_in_order(around in 1usize..9, start in -40isize..40, len in 0usize..40) {
            let wrapped = Wrapped::new(&[start..start + len as isize], &[around]).unwrap();
            let mut found = Vec::new();
            for (patch, within) in wrapped.pieces() {
                prop_assert!(!patch.is_empty());
                prop_assert_eq!(within[0], found.len());
                found.extend(patch.range(0));
            }
            let expected: Vec<_> = (0..len as isize).map(|at| (start + at).rem_euclid(around as isize) as usize).collect();
            prop_assert_eq!(wrapped.overlaps_itself(), len > around);
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_cannot_be_wound_is_refused() {
        assert_eq!(Wrapped::new(&[0..1], &[4, 4]), None);
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = Wrapped::new(&[2..1], &[4]);
        assert_eq!(backwards, None);
        assert_eq!(Wrapped::new(&[isize::MIN..isize::MAX], &[4]), None);
        assert_eq!(Wrapped::new(&[0..1], &[0]), None);
        assert_eq!(Wrapped::new(&[7..7], &[0]).unwrap().pieces().count(), 0);
        let far = Wrapped::new(&[isize::MIN..isize::MIN + 3, isize::MAX - 2..isize::MAX], &[5, 5]).unwrap();
        assert!(far.pieces().count() <= 4);
    }
}
