//! Copies between patches: of the same shape, of another, with axes permuted; also between groups.
//!
//! A rank copies what it owns of one side straight from, or to, the other: nothing is put between, but for patches of one
//! array that overlap, and for permuted axes (a tile of 256 by 256).
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): between the two syncs of a collective operation each rank touches its own blocks alone.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::{ArrayView, Dimension, IntoDimension, MathCell, Zip};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::math::operand::{Operand, Overlap};
use crate::math::tiles::{elements, tiles};
use crate::math::whole::on_slices_and_arrays;
use crate::patch::Patch;
use crate::slice::GlobalSlice;

on_slices_and_arrays! {
    <T: Pod, D where D: Dimension>

    /// Copies a patch of the same shape here (`GA_Copy`, `NGA_Copy_patch`). Collective over the group of what is changed,
    /// whose ranks all have `source` too: where the source's group is the smaller one, see [`GlobalSlice::copy_to`].
    /// The two may overlap.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn copy_from(&self, source: impl Operand<T, D>) -> Result<()> {
        let source = source.as_slice();
        self.same_shape("a copy", &source)?;
        match self.overlap(&source) {
            Overlap::Same => self.together(|| Ok(())),
            Overlap::Shifted => self.assign_from(source, |x| x),
            Overlap::Apart => self.together(|| {
                for part in self.array.own_parts(&self.patch)? {
                    let wanted = source.beside_patch(&part.patch, &self.patch);
                    // SAFETY: OWN-BLOCK.
                    source.array.get_into(wanted, unsafe { part.view_mut::<D>() })?;
                }
                Ok(())
            }),
        }
    }

    /// Copies this patch to one of the same shape (`GA_Copy`, `NGA_Copy_patch`). Collective over the group of this one, whose
    /// ranks all have `target` too; those of the target's group that are not in it see the copy after a sync with them.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn copy_to(&self, target: impl Operand<T, D>) -> Result<()> {
        let target = target.as_slice();
        self.same_shape("a copy", &target)?;
        match self.overlap(&target) {
            Overlap::Same => self.together(|| Ok(())),
            Overlap::Shifted => target.assign_from(self, |x| x),
            Overlap::Apart => self.together(|| {
                for part in self.array.own_parts(&self.patch)? {
                    // SAFETY: OWN-BLOCK.
                    target.array.put(target.beside_patch(&part.patch, &self.patch), unsafe { part.view::<D>() })?;
                }
                Ok(())
            }),
        }
    }

    /// Makes the patch the transpose of `source`, whose axes are this one's in reverse order (`GA_Transpose`, and
    /// `NGA_Copy_patch` with `'T'`). Collective, as [`GlobalSlice::copy_from`]. A square patch may be transposed in
    /// itself; each rank copies what goes with its own elements first, then.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn transpose_from(&self, source: impl Operand<T, D>) -> Result<()> {
        let dims = self.patch().ndim();
        permute(self, "a transposition", source.as_slice(), &Axes::from_fn(dims, |axis| dims - 1 - axis))
    }

    /// Makes the patch `source` with its axes permuted: axis `k` here is its axis `axes[k]`, as in `ndarray`'s
    /// `permuted_axes`. Collective, as [`GlobalSlice::transpose_from`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] if `axes` does not name each axis once; as [`GlobalSlice::assign_from`].
    pub fn permute_from(&self, source: impl Operand<T, D>, axes: impl IntoDimension<Dim = D>) -> Result<()> {
        let (axes, dims) = (axes.into_dimension(), self.patch().ndim());
        let named = |axis: usize| axes.slice().iter().filter(|named| **named == axis).count();
        match Axes::of(axes.slice()) {
            Some(axes) if axes.len() == dims && (0..dims).all(|axis| named(axis) == 1) => {
                permute(self, "a permutation of axes", source.as_slice(), &axes)
            }
            _ => {
                let why = format!("{:?} does not name each of {dims} axes once", axes.slice());
                Err(Error::Mismatch { operation: "a permutation of axes", why })
            }
        }
    }
}

impl<T: Pod, D: Dimension> GlobalSlice<'_, T, D> {
    /// Copies the elements of a patch of any shape that has as many, in order, last axis fastest (`NGA_Copy_patch` of
    /// different shapes). Collective, as [`GlobalSlice::copy_from`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] if there are not as many elements, or if the patches overlap; [`Error::Elsewhere`]; if a transfer fails.
    #[track_caller]
    pub fn reshape_from<E: Dimension>(&self, source: impl Operand<T, E>) -> Result<()> {
        let (operation, source) = ("a copy into another shape", source.as_slice());
        let mismatch = |why: String| Err(Error::Mismatch { operation, why });
        if self.patch.len() != source.patch.len() {
            let (here, there) = (self.patch.len(), source.patch.len());
            return mismatch(format!("{} has {here} elements, {} has {there}", self.patch, source.patch));
        }
        if std::ptr::addr_eq(self.array, source.array) && !self.patch.intersection(&source.patch).is_empty() {
            let name = self.array.name();
            return mismatch(format!("{} and {} of array '{name}' overlap", self.patch, source.patch));
        }
        let (shape, last) = (self.shape(), self.patch.ndim() - 1);
        self.between_syncs(|between| {
            let row = |part: Axes<usize>| {
                Axes::from_fn(part.len(), |axis| if axis == last { part[axis].clamp(1, elements::<T>()) } else { 1 })
            };
            self.each_tile(between, row, |piece, cells| {
                let at = piece.relative_to(&self.patch.start()).start();
                let first = at.iter().zip(shape.iter()).fold(0, |count, (at, len)| count * len + at);
                let mut cells = cells.iter();
                for part in runs(&source.patch, first, piece.len()) {
                    for (value, cell) in source.array.get(part)?.iter().zip(&mut cells) {
                        cell.set(*value);
                    }
                }
                Ok(())
            })
        })
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Copies the elements of a patch of any shape that has as many; see [`GlobalSlice::reshape_from`]. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::reshape_from`].
    #[track_caller]
    pub fn reshape_from<E: Dimension>(&self, source: impl Operand<T, E>) -> Result<()> {
        self.whole().reshape_from(source)
    }
}

/// The patches that the elements `first..first + count` of a patch make, counted with the last axis fastest, in order.
fn runs(patch: &Patch, first: usize, count: usize) -> Vec<Patch> {
    let (shape, start, dims) = (patch.shape(), patch.start(), patch.ndim());
    let (mut found, mut next, end) = (Vec::new(), first, first + count);
    while next < end {
        // The longest piece from here on: whole along the last axes, a range along one, a single index along the others.
        let (mut axis, mut below) = (dims - 1, 1);
        while axis > 0 && next % (below * shape[axis]) == 0 && below * shape[axis] <= end - next {
            below *= shape[axis];
            axis -= 1;
        }
        let at = next / below % shape[axis];
        let take = ((end - next) / below).min(shape[axis] - at);
        let mut index = shape;
        let mut rest = next;
        for axis in (0..dims).rev() {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        found.push(Patch::from_fn(dims, |along| {
            let from = start[along] + index[along];
            match along.cmp(&axis) {
                std::cmp::Ordering::Less => from..from + 1,
                std::cmp::Ordering::Equal => from..from + take,
                std::cmp::Ordering::Greater => start[along]..start[along] + shape[along],
            }
        }));
        next += take * below;
    }
    found
}

/// Side of what is fetched at a time along the two axes that are contiguous here and there, and of what is turned at a
/// time: two squares of the latter lie in a first-level cache.
const FETCHED: usize = 256;
const TURNED: usize = 32;

#[track_caller]
fn permute<T: Pod, D: Dimension>(
    target: &GlobalSlice<'_, T, D>,
    operation: &'static str,
    source: GlobalSlice<'_, T, D>,
    axes: &Axes<usize>,
) -> Result<()> {
    let shape = source.shape();
    if *target.shape() != *Axes::from_fn(axes.len(), |axis| shape[axes[axis]]) {
        let (here, there) = (target.shape(), source.array.name());
        let why = format!("{shape:?} of array '{there}', permuted by {axes:?}, is not {here:?}");
        return Err(Error::Mismatch { operation, why });
    }
    let (from, to) = (target.patch.start(), source.patch.start());
    // The source's part that goes with a part of the target.
    let turned = |piece: &Patch| {
        let mut part = source.patch;
        let within = piece.relative_to(&from);
        let mut ranges = Axes::from_fn(axes.len(), |axis| part.range(axis).start);
        let mut lengths = ranges;
        for (axis, there) in axes.iter().enumerate() {
            let range = within.range(axis);
            ranges[*there] = to[*there] + range.start;
            lengths[*there] = range.len();
        }
        part = Patch::from_fn(axes.len(), |axis| ranges[axis]..ranges[axis] + lengths[axis]);
        part
    };
    let mut order = D::zeros(axes.len());
    for (axis, there) in axes.iter().enumerate() {
        order[axis] = *there;
    }
    let tile = |part: Axes<usize>| square(&part, axes, FETCHED);
    let turn = |piece: &Patch, cells: ArrayView<'_, MathCell<T>, D>, fetched: ndarray::Array<T, D>| {
        let fetched = fetched.permuted_axes(order.clone());
        let whole = Patch::whole(cells.shape());
        for small in tiles(&whole, &square(&piece.shape(), axes, TURNED)) {
            let range = |axis: ndarray::AxisDescription| ndarray::Slice::from(small.range(axis.axis.index()));
            let fetched = fetched.slice_each_axis(range);
            Zip::from(cells.slice_each_axis(range)).and(fetched).for_each(|cell, value| cell.set(*value));
        }
    };
    target.between_syncs(|between| {
        if std::ptr::addr_eq(target.array, source.array) && !target.patch.intersection(&source.patch).is_empty() {
            let mut early = Vec::new();
            let took = target.each_tile(between, tile, |piece, _| {
                early.push(source.array.get(turned(piece))?);
                Ok(())
            });
            let met = target.array.sync();
            took.and(met)?;
            let mut early = early.into_iter();
            return target.each_tile(between, tile, |piece, cells| {
                if let Some(fetched) = early.next() {
                    turn(piece, cells, fetched);
                }
                Ok(())
            });
        }
        target.each_tile(between, tile, |piece, cells| {
            turn(piece, cells, source.array.get(turned(piece))?);
            Ok(())
        })
    })
}

/// The shape of a tile that has up to `side` along the last axis, and along that which is the source's last; up to
/// `side * side` elements altogether.
fn square(part: &Axes<usize>, axes: &Axes<usize>, side: usize) -> Axes<usize> {
    let last = part.len() - 1;
    let mut tile = part.map(|_| 1);
    let mut left = side * side;
    let across = axes.iter().position(|axis| *axis == last).unwrap_or(last);
    for axis in [last, across].into_iter().chain((0..part.len()).rev()) {
        if tile[axis] == 1 {
            let most = if axis == last || axis == across { side } else { left };
            tile[axis] = part[axis].clamp(1, most.max(1));
            left = (left / tile[axis]).max(1);
        }
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_the_elements_in_order(
            ranges in prop::collection::vec((0usize..3, 1usize..6), 1..5),
            (from, to) in (0.0f64..=1.0, 0.0f64..=1.0),
        ) {
            let patch = Patch::from_fn(ranges.len(), |axis| ranges[axis].0..ranges[axis].0 + ranges[axis].1);
            let at = |part: f64| (part * patch.len() as f64) as usize;
            let (first, end) = (at(from.min(to)), at(from.max(to)));
            let mut next = first;
            for run in runs(&patch, first, end - first) {
                let shape = patch.shape();
                let local = run.relative_to(&patch.start());
                let plain = ndarray::ArrayD::from_shape_fn(&shape[..], |index| {
                    (0..shape.len()).fold(0, |count, axis| count * shape[axis] + index[axis])
                });
                let part = plain.slice_each_axis(|axis| ndarray::Slice::from(local.range(axis.axis.index())));
                for found in part {
                    prop_assert_eq!(*found, next);
                    next += 1;
                }
            }
            prop_assert_eq!(next, end);
        }
    }
}
