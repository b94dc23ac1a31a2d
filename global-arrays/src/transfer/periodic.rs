//! Patches that wrap around the ends of the array: put, get, accumulate.
//!
//! A call is cut where its patch is wound around the array ([`Wrapped`]), and each piece goes as an ordinary patch;
//! those of a get are all under way at once.
//!
//! # Safety
//! VIEW-LIVE (see `transfer`).
#![allow(unsafe_code)]

use armci_core::{Accumulate, NbHandle};
use bytemuck::Pod;
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension, Slice};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::select::Section;
use crate::wrap::{Wrapped, WrappingRanges};

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Fetches a patch that may leave the array and come in again at its other end, along every axis
    /// (`NGA_Periodic_get`). A patch longer than the array goes around it as often as it takes.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if a range runs backwards, or around an axis of length 0.
    #[track_caller]
    pub fn periodic_get(&self, at: impl WrappingRanges<D>) -> Result<Array<T, D>> {
        let wrapped = self.wrapped(at.ranges())?;
        let shape = wrapped.shape();
        let bytes = shape.iter().try_fold(size_of::<T>(), |all, len| all.checked_mul((*len).max(1)));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(self.outside(format!("{:?}", at.ranges())));
        }
        let mut buffer = Array::from_elem(self.dimension(&shape), T::zeroed());
        self.periodic_get_into(at, &mut buffer)?;
        Ok(buffer)
    }

    /// As [`GlobalArray::periodic_get`], into a buffer of the patch's shape (`NGA_Periodic_get`).
    ///
    /// # Errors
    /// As [`GlobalArray::periodic_get`]; [`Error::BufferShape`]. Nothing was written then.
    #[track_caller]
    pub fn periodic_get_into<'a>(
        &self,
        at: impl WrappingRanges<D>,
        target: impl Into<ArrayViewMut<'a, T, D>>,
    ) -> Result<()> {
        let (wrapped, mut target) = (self.wrapped(at.ranges())?, target.into());
        self.fits_wrapped(&wrapped, &at, target.shape())?;
        let strides = Axes::from_fn(target.ndim(), |axis| target.strides()[axis]);
        if strides.iter().zip(target.shape()).any(|(stride, len)| *stride < 0 && *len > 1) {
            // A view with an axis backwards is no transfer's target.
            target.assign(&self.periodic_get(at)?);
            return Ok(());
        }
        let mut handle = NbHandle::default();
        // SAFETY: VIEW-LIVE, of a buffer of the patch's shape, until the wait.
        let begun = unsafe { self.begin_wrapped_get(&wrapped, target.as_mut_ptr(), &strides, &mut handle) };
        let answered = self.group.world().wait_for(&mut handle).map_err(|source| self.runtime(source));
        begun.and(answered)
    }

    /// Copies `source` into a patch that may leave the array and come in again at its other end, along every axis
    /// (`NGA_Periodic_put`). Completion as [`GlobalArray::put`].
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if a range runs backwards, or around an axis of length 0; [`Error::BufferShape`];
    /// [`Error::Mismatch`] if the patch is longer than the array along an axis: an element would be given two values.
    /// Nothing was written then.
    #[track_caller]
    pub fn periodic_put<'a>(&self, at: impl WrappingRanges<D>, source: impl Into<ArrayView<'a, T, D>>) -> Result<()> {
        let (wrapped, source) = (self.wrapped(at.ranges())?, source.into());
        self.fits_wrapped(&wrapped, &at, source.shape())?;
        if wrapped.overlaps_itself() {
            return Err(Error::Mismatch {
                operation: "a periodic put",
                why: format!("{:?} covers elements of array '{}' more than once", at.ranges(), self.name),
            });
        }
        for (patch, within) in wrapped.pieces() {
            self.put(patch, part_of(&source, &patch, &within))?;
        }
        Ok(())
    }

    /// Starts the gets of a wrapped patch, to a buffer of its shape with these distances between neighbours along each
    /// axis. Also if one is refused, those before it are under way.
    ///
    /// # Safety
    /// VIEW-LIVE for the elements of the patch at `target`, until what was started with `handle` has been waited for.
    #[track_caller]
    pub(crate) unsafe fn begin_wrapped_get(
        &self,
        wrapped: &Wrapped,
        target: *mut T,
        strides: &Axes<isize>,
        handle: &mut NbHandle,
    ) -> Result<()> {
        for (patch, within) in wrapped.pieces() {
            let section = Section::of(&patch);
            let offset: isize = within.iter().zip(strides.iter()).map(|(at, stride)| *at as isize * stride).sum();
            for piece in self.pieces(&section, strides) {
                let to = target.wrapping_offset(offset + piece.first);
                let world = self.group.world();
                // SAFETY: VIEW-LIVE: the piece's elements, of those that the wrapped patch has at `target`.
                let got = unsafe { world.get_strided_nb_into(piece.place, to, &piece.shape(), Some(&mut *handle)) };
                if let Err(source) = got {
                    return Err(self.refused(&section, piece.place, source));
                }
            }
        }
        Ok(())
    }

    fn wrapped(&self, ranges: &[std::ops::Range<isize>]) -> Result<Wrapped> {
        Wrapped::new(ranges, self.shape()).ok_or_else(|| self.outside(format!("{ranges:?}, wrapped around,")))
    }

    /// Refuses a buffer that has not the patch's shape.
    fn fits_wrapped(&self, wrapped: &Wrapped, at: &impl WrappingRanges<D>, buffer: &[usize]) -> Result<()> {
        let expected = wrapped.shape();
        if *expected == *buffer {
            return Ok(());
        }
        Err(Error::BufferShape {
            array: self.name.clone(),
            patch: format!("{:?}", at.ranges()),
            expected: expected.to_vec(),
            buffer: buffer.to_vec(),
            rank: self.group.rank(),
        })
    }
}

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Adds `alpha` times `source` to a patch that may leave the array and come in again at its other end, along every
    /// axis (`NGA_Periodic_acc`). Completion as [`GlobalArray::accumulate`]. A patch longer than the array goes around
    /// it as often as it takes, and adds each time.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if a range runs backwards, or around an axis of length 0; [`Error::BufferShape`]. Nothing
    /// was added then.
    #[track_caller]
    pub fn periodic_accumulate<'a>(
        &self,
        at: impl WrappingRanges<D>,
        alpha: T,
        source: impl Into<ArrayView<'a, T, D>>,
    ) -> Result<()> {
        let (wrapped, source) = (self.wrapped(at.ranges())?, source.into());
        self.fits_wrapped(&wrapped, &at, source.shape())?;
        for (patch, within) in wrapped.pieces() {
            self.accumulate(patch, alpha, part_of(&source, &patch, &within))?;
        }
        Ok(())
    }
}

/// The elements of a buffer that go with a piece which begins at `within`.
fn part_of<'a, T, D: Dimension>(
    source: &'a ArrayView<'_, T, D>,
    patch: &Patch,
    within: &Axes<usize>,
) -> ArrayView<'a, T, D> {
    source.slice_each_axis(|axis| {
        let from = within[axis.axis.index()];
        Slice::from(from..from + patch.range(axis.axis.index()).len())
    })
}
