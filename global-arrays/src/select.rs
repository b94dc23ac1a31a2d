//! What part of an array a call means: ranges, a [`Patch`], or `ndarray`'s `s![..]`.

use std::ops::{Range, RangeFull};

use ndarray::{Dim, Dimension, Ix1, IxDyn, SliceInfo, SliceInfoElem};

use crate::axes::Axes;
use crate::patch::Patch;

/// What names a part of an array of `D` dimensions, for which a buffer has `Out` dimensions.
///
/// * `[0..3, 5..7]`, one range for each axis;
/// * `s![0..3, -2..]` of `ndarray`, also with steps (`NGA_Strided_get`), backwards, and with single indices, whose axes the
///   buffer does not have;
/// * a [`Patch`]; `..`, the whole array; for arrays of dynamic dimension, slices of ranges or of `SliceInfoElem`.
pub trait Select<D: Dimension> {
    /// The dimensions of a buffer for it.
    type Out: Dimension;

    /// The part of an array of this shape, if it lies inside it.
    fn section(&self, shape: &[usize]) -> Option<Section>;

    /// It, as the program wrote it.
    fn describe(&self) -> String;
}

/// A part of an array: along each axis so many elements, so far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The lowest index of each axis.
    pub(crate) start: Axes<usize>,
    pub(crate) len: Axes<usize>,
    pub(crate) step: Axes<usize>,
    /// Whether a buffer holds an axis backwards.
    pub(crate) backward: Axes<bool>,
    /// Whether a buffer has an axis at all.
    pub(crate) kept: Axes<bool>,
}

impl Section {
    /// A patch, each axis forward and each element of it.
    #[inline]
    pub(crate) fn of(patch: &Patch) -> Self {
        let dims = patch.ndim();
        Section {
            start: patch.start(),
            len: patch.shape(),
            step: Axes::splat(dims, 1),
            backward: Axes::splat(dims, false),
            kept: Axes::splat(dims, true),
        }
    }

    /// The smallest patch around it.
    pub(crate) fn patch(&self) -> Patch {
        Patch::from_fn(self.start.len(), |axis| {
            let reach = self.len[axis].saturating_sub(1) * self.step[axis] + usize::from(self.len[axis] > 0);
            self.start[axis]..self.start[axis] + reach
        })
    }

    /// The patch it is, if no axis has a step.
    pub(crate) fn as_patch(&self) -> Option<Patch> {
        let whole =
            (0..self.start.len()).all(|axis| !self.backward[axis] && (self.step[axis] == 1 || self.len[axis] < 2));
        whole.then(|| self.patch())
    }

    /// The distances between neighbours along each of its axes, in a buffer that has these for the axes it keeps.
    #[inline]
    pub(crate) fn strides(&self, buffer: &[isize]) -> Axes<isize> {
        let mut buffer = buffer.iter();
        Axes::from_fn(self.len.len(), |axis| if self.kept[axis] { buffer.next().copied().unwrap_or(0) } else { 0 })
    }

    /// The shape of a buffer for it.
    pub(crate) fn buffer_shape<Out: Dimension>(&self) -> Out {
        let kept = self.kept.iter().filter(|kept| **kept).count();
        let mut shape = Out::zeros(kept);
        let lengths = self.len.iter().zip(self.kept.iter()).filter(|(_, kept)| **kept);
        for (axis, (len, _)) in lengths.enumerate() {
            shape[axis] = *len;
        }
        shape
    }
}

/// The section that the elements of an `s![..]` mean.
fn sliced(elements: &[SliceInfoElem], shape: &[usize]) -> Option<Section> {
    if elements.len() != shape.len() {
        return None;
    }
    let mut section = Section::of(&Patch::whole(shape));
    for (axis, element) in elements.iter().enumerate() {
        let len = shape[axis] as isize;
        let from_back = |at: isize| if at < 0 { at + len } else { at };
        match *element {
            SliceInfoElem::Slice { start, end, step } => {
                let (start, end) = (from_back(start), from_back(end.unwrap_or(len)));
                if step == 0 || start < 0 || end < start || len < end {
                    return None;
                }
                let reach = (end - start) as usize;
                let pace = step.unsigned_abs();
                section.len[axis] = reach.div_ceil(pace);
                // (What takes no step needs none, which may be so long that strides times it cannot be counted.)
                section.step[axis] = if section.len[axis] > 1 { pace } else { 1 };
                section.backward[axis] = step < 0;
                // Backwards, steps are counted from the last element.
                let skipped = if step < 0 && reach > 0 { (reach - 1) % pace } else { 0 };
                section.start[axis] = start as usize + skipped;
            }
            SliceInfoElem::Index(at) => {
                let at = from_back(at);
                if at < 0 || len <= at {
                    return None;
                }
                section.start[axis] = at as usize;
                section.len[axis] = 1;
                section.kept[axis] = false;
            }
            // An array has no such axis.
            SliceInfoElem::NewAxis => return None,
        }
    }
    Some(section)
}

fn describe_slice(elements: &[SliceInfoElem]) -> String {
    let described = elements.iter().map(|element| match element {
        SliceInfoElem::Slice { start, end, step } => {
            let end = end.map(|end| end.to_string()).unwrap_or_default();
            let step = if *step == 1 { String::new() } else { format!(";{step}") };
            format!("{start}..{end}{step}")
        }
        SliceInfoElem::Index(at) => at.to_string(),
        SliceInfoElem::NewAxis => "NewAxis".into(),
    });
    format!("[{}]", described.collect::<Vec<_>>().join(", "))
}

// Always, here and below: a section is large to hand around, and nothing but what small transfers wait for.
#[inline(always)]
fn ranges_section(ranges: &[Range<usize>], shape: &[usize]) -> Option<Section> {
    let outside = |(range, len): (&Range<usize>, &usize)| range.start > range.end || range.end > *len;
    if ranges.len() != shape.len() || ranges.iter().zip(shape).any(outside) {
        return None;
    }
    let dims = ranges.len();
    Some(Section {
        start: Axes::from_fn(dims, |axis| ranges[axis].start),
        len: Axes::from_fn(dims, |axis| ranges[axis].len()),
        step: Axes::splat(dims, 1),
        backward: Axes::splat(dims, false),
        kept: Axes::splat(dims, true),
    })
}

macro_rules! ranges {
    ($($dims:literal),*) => {$(
        impl Select<Dim<[usize; $dims]>> for [Range<usize>; $dims] {
            type Out = Dim<[usize; $dims]>;

            #[inline(always)]
            fn section(&self, shape: &[usize]) -> Option<Section> {
                ranges_section(self, shape)
            }

            fn describe(&self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}
ranges!(1, 2, 3, 4, 5, 6);

impl Select<Ix1> for Range<usize> {
    type Out = Ix1;

    #[inline]
    fn section(&self, shape: &[usize]) -> Option<Section> {
        ranges_section(std::slice::from_ref(self), shape)
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }
}

impl Select<IxDyn> for [Range<usize>] {
    type Out = IxDyn;

    fn section(&self, shape: &[usize]) -> Option<Section> {
        ranges_section(self, shape)
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }
}

impl Select<IxDyn> for [SliceInfoElem] {
    type Out = IxDyn;

    fn section(&self, shape: &[usize]) -> Option<Section> {
        sliced(self, shape)
    }

    fn describe(&self) -> String {
        describe_slice(self)
    }
}

impl<D: Dimension> Select<D> for RangeFull {
    type Out = D;

    #[inline]
    fn section(&self, shape: &[usize]) -> Option<Section> {
        Some(Section::of(&Patch::whole(shape)))
    }

    fn describe(&self) -> String {
        "..".into()
    }
}

impl<D: Dimension> Select<D> for Patch {
    type Out = D;

    #[inline]
    fn section(&self, shape: &[usize]) -> Option<Section> {
        self.is_inside(shape).then(|| Section::of(self))
    }

    fn describe(&self) -> String {
        self.to_string()
    }
}

impl<D: Dimension, S: Select<D> + ?Sized> Select<D> for &S {
    type Out = S::Out;

    #[inline]
    fn section(&self, shape: &[usize]) -> Option<Section> {
        S::section(self, shape)
    }

    fn describe(&self) -> String {
        S::describe(self)
    }
}

impl<S: AsRef<[SliceInfoElem]>, D: Dimension, Out: Dimension> Select<D> for SliceInfo<S, D, Out> {
    type Out = Out;

    #[inline]
    fn section(&self, shape: &[usize]) -> Option<Section> {
        sliced(self.as_ref(), shape)
    }

    fn describe(&self) -> String {
        describe_slice(self.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, Ix2, s};
    use proptest::prelude::*;

    /// A section's elements, in the order of a buffer.
    fn elements(section: &Section, plain: &Array2<usize>) -> Vec<usize> {
        let along = |axis: usize| {
            let at = |i: usize| section.start[axis] + i * section.step[axis];
            let forward = (0..section.len[axis]).map(at);
            if section.backward[axis] { forward.rev().collect::<Vec<_>>() } else { forward.collect() }
        };
        let cols = along(1);
        along(0).into_iter().flat_map(|row| cols.iter().map(move |col| plain[[row, *col]])).collect()
    }

    proptest! {
        #[test]
        fn slices_mean_what_they_mean_to_ndarray(
            (rows, a, b) in (0isize..12).prop_flat_map(|n| (Just(n), 0..=n, 0..=n)),
            (cols, c) in (1isize..12).prop_flat_map(|n| (Just(n), -n..n)),
            step in prop_oneof![-4isize..=-1, 1isize..=4],
        ) {
            let plain = Array2::from_shape_fn((rows as usize, cols as usize), |(row, col)| row * 100 + col);
            let slice = s![a.min(b)..a.max(b);step, c..];
            let section = Select::<Ix2>::section(&slice, plain.shape()).unwrap();
            prop_assert_eq!(elements(&section, &plain), plain.slice(slice).iter().copied().collect::<Vec<_>>());
            let index = s![.., c];
            let section = Select::<Ix2>::section(&index, plain.shape()).unwrap();
            prop_assert_eq!(section.buffer_shape::<Ix1>(), plain.slice(index).raw_dim());
            prop_assert_eq!(elements(&section, &plain), plain.slice(index).iter().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_outside_is_refused() {
        let shape = [4, 5];
        assert!(Select::<Ix2>::section(&s![0..5, ..], &shape).is_none());
        assert!(Select::<Ix2>::section(&s![-5.., ..], &shape).is_none());
        assert!(Select::<Ix2>::section(&s![.., 5], &shape).is_none());
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = Select::<Ix2>::section(&[3..2, 0..1], &shape);
        assert!(backwards.is_none());
        assert_eq!(Select::<Ix2>::describe(&s![1..;2, -1]), "[1..;2, -1]");
        assert!(Select::<IxDyn>::section(&[0..1, 0..1, 0..1][..], &shape).is_none());
    }
}
