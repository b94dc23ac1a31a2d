//! Patches: rectangular pieces of an array.

use std::fmt;
use std::ops::Range;

use crate::axes::Axes;

/// A rectangular piece of an array: a range along each axis (Global Arrays' `lo` and `hi`, the end excluded).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    start: Axes<usize>,
    end: Axes<usize>,
}

impl Patch {
    /// A patch of these ranges.
    ///
    /// # Panics
    /// With more than [`MAX_DIMS`](crate::MAX_DIMS) ranges.
    pub fn new(ranges: &[Range<usize>]) -> Self {
        Patch::from_fn(ranges.len(), |axis| ranges[axis].clone())
    }

    /// All of an array of this shape.
    ///
    /// # Panics
    /// With more than [`MAX_DIMS`](crate::MAX_DIMS) axes.
    pub fn whole(shape: &[usize]) -> Self {
        Patch::from_fn(shape.len(), |axis| 0..shape[axis])
    }

    #[inline]
    pub(crate) fn from_fn(dims: usize, mut range: impl FnMut(usize) -> Range<usize>) -> Self {
        let mut end = Axes::splat(dims, 0);
        let start = Axes::from_fn(dims, |axis| {
            let range = range(axis);
            end[axis] = range.end;
            range.start
        });
        Patch { start, end }
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.start.len()
    }

    /// The first index along each axis.
    pub fn start(&self) -> Axes<usize> {
        self.start
    }

    /// The range along an axis.
    ///
    /// # Panics
    /// If there is no such axis.
    #[inline]
    pub fn range(&self, axis: usize) -> Range<usize> {
        self.start[axis]..self.end[axis]
    }

    /// The ranges along all axes.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        (0..self.ndim()).map(|axis| self.range(axis))
    }

    /// Elements along each axis.
    #[inline]
    pub fn shape(&self) -> Axes<usize> {
        Axes::from_fn(self.ndim(), |axis| self.range(axis).len())
    }

    /// Elements in all.
    pub fn len(&self) -> usize {
        self.ranges().map(|range| range.len()).product()
    }

    /// Whether it holds no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        (0..self.ndim()).any(|axis| self.range(axis).is_empty())
    }

    /// Whether an element is in it.
    pub fn contains(&self, index: &[usize]) -> bool {
        index.len() == self.ndim() && index.iter().enumerate().all(|(axis, at)| self.range(axis).contains(at))
    }

    /// What it has in common with another of as many axes.
    #[must_use]
    #[inline]
    pub fn intersection(&self, other: &Patch) -> Patch {
        Patch::from_fn(self.ndim().min(other.ndim()), |axis| {
            let start = self.start[axis].max(other.start[axis]);
            start..self.end[axis].min(other.end[axis]).max(start)
        })
    }

    /// The same piece, counted from `origin`, which is not behind its start.
    #[must_use]
    pub fn relative_to(&self, origin: &[usize]) -> Patch {
        Patch::from_fn(self.ndim(), |axis| self.start[axis] - origin[axis]..self.end[axis] - origin[axis])
    }

    /// A piece of the same shape that starts at `start`.
    #[must_use]
    pub fn moved_to(&self, start: &[usize]) -> Patch {
        Patch::from_fn(self.ndim(), |axis| start[axis]..start[axis] + self.range(axis).len())
    }

    /// Whether it lies inside an array of this shape, and no range runs backwards.
    pub(crate) fn is_inside(&self, shape: &[usize]) -> bool {
        let inside = |(axis, len): (usize, &usize)| self.start[axis] <= self.end[axis] && self.end[axis] <= *len;
        self.ndim() == shape.len() && shape.iter().enumerate().all(inside)
    }
}

impl<const N: usize> From<[Range<usize>; N]> for Patch {
    fn from(ranges: [Range<usize>; N]) -> Self {
        Patch::new(&ranges)
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
