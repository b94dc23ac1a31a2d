//! Strided transfers: patches of multi-dimensional arrays, up to seven stride levels.
//!
//! # Safety
//! REGION-LIVE (see `contiguous`), for the span from the first to the last byte
//! of the remote side; LOCAL-SPAN, likewise for the local side, which
//! [`Strided`] is checked against, or the caller vouches for.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::{Completion, by_message, far};
use crate::accumulate::kernels::{Accumulate, ElementKind, alpha_bytes};
use crate::consistency::Access;
use crate::copy::{MAX_LEVELS, Patch, copy_patch};
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::transport::Transport;
use crate::watch::{Extent, Kind};
use crate::world::World;

/// The shape of a strided transfer, all in elements.
///
/// `counts[0]` elements are contiguous; level `l` repeats what is below it
/// `counts[l + 1]` times, `local[l]` elements apart here and `remote[l]` there.
/// (ARMCI's `count`, `src_stride_arr` and `dst_stride_arr` say the same in bytes.)
///
/// ```
/// use armci_core::Strided;
/// // Three rows of four elements, out of rows of ten into rows of six.
/// let patch = Strided { counts: &[4, 3], local: &[10], remote: &[6] };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strided<'a> {
    /// How many: contiguous elements first, then each level.
    pub counts: &'a [usize],
    /// Distances in the local buffer, per level.
    pub local: &'a [usize],
    /// Distances in the remote memory, per level.
    pub remote: &'a [usize],
}

/// A shape in bytes, checked.
///
/// It is filled in where it stays: moved, its arrays would take longer than a small patch.
struct Checked {
    /// From here to there, or from there to here.
    patch: Patch,
    /// Bytes from the first to behind the last byte on either side; 0 if the patch is empty.
    local_span: usize,
    remote_span: usize,
}

/// Which way a patch goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

impl Strided<'_> {
    /// Refuses a shape that contradicts itself, or leaves a local buffer of `len` elements of `T`.
    pub(crate) fn check_local<T>(&self, len: usize) -> Result<()> {
        let (mut checked, bytes) = (Checked::nothing(), len.saturating_mul(size_of::<T>()));
        self.check(size_of::<T>(), Way::Out, &mut checked)?;
        if checked.local_span <= bytes {
            return Ok(());
        }
        Err(Error::Shape(format!("the patch spans {} bytes of a local buffer of {bytes}", checked.local_span)))
    }

    /// Brings the shape to bytes of elements of `size`.
    #[inline]
    fn check(&self, size: usize, way: Way, checked: &mut Checked) -> Result<()> {
        let levels = self.local.len();
        if self.counts.len() == levels + 1
            && self.remote.len() == levels
            && levels <= MAX_LEVELS
            && self.bring(size, way, checked).is_some()
        {
            return Ok(());
        }
        Err(self.contradiction(size))
    }

    /// [`Strided::check`] of arrays that go together; none if something exceeds the address space.
    #[inline]
    fn bring(&self, size: usize, way: Way, checked: &mut Checked) -> Option<()> {
        let row = self.counts[0].checked_mul(size)?;
        // The whole patch can be counted, also where strides of zero make its span small.
        let mut bytes = row;
        let (mut here, mut there) = (row, row);
        let empty = self.counts.contains(&0);
        checked.patch = Patch::row(row);
        for ((&count, &local), &remote) in self.counts[1..].iter().zip(self.local).zip(self.remote) {
            let (local, remote) = (local.checked_mul(size)?, remote.checked_mul(size)?);
            bytes = bytes.checked_mul(count)?;
            if !empty {
                here = here.checked_add((count - 1).checked_mul(local)?)?;
                there = there.checked_add((count - 1).checked_mul(remote)?)?;
            }
            match way {
                Way::Out => checked.patch.push(count, remote, local),
                Way::In => checked.patch.push(count, local, remote),
            }
        }
        (checked.local_span, checked.remote_span) = if empty { (0, 0) } else { (here, there) };
        (bytes <= isize::MAX as usize).then_some(())
    }

    /// What is wrong with a shape that was refused.
    #[cold]
    #[inline(never)]
    fn contradiction(&self, size: usize) -> Error {
        let levels = self.local.len();
        if self.counts.len() != levels + 1 || self.remote.len() != levels || levels > MAX_LEVELS {
            return Error::Shape(format!(
                "{} counts need {} strides on each side, at most {MAX_LEVELS}; there are {levels} local and {} remote ones",
                self.counts.len(),
                self.counts.len().saturating_sub(1),
                self.remote.len(),
            ));
        }
        Error::Shape(format!("{self:?} of {size}-byte elements exceeds the address space"))
    }
}

impl Checked {
    /// To be filled in by a check.
    #[inline]
    fn nothing() -> Self {
        Checked { patch: Patch::row(0), local_span: 0, remote_span: 0 }
    }
}

/// Copies a patch within this process: `local` are the strides at `source`, `remote` those at `target`
/// (`armci_read_strided` and `armci_write_strided`, where one side is dense). As fast as the copies of transfers.
///
/// ```
/// use armci_core::{Strided, copy_strided};
/// let (matrix, mut dense) = ([1, 2, 3, 4, 5, 6, 7, 8, 9], [0; 4]);
/// // The 2 by 2 patch at its upper right.
/// let shape = Strided { counts: &[2, 2], local: &[3], remote: &[2] };
/// // SAFETY: both lie in what is borrowed.
/// unsafe { copy_strided(dense.as_mut_ptr(), matrix[1..].as_ptr(), &shape)? };
/// assert_eq!(dense, [2, 3, 5, 6]);
/// # Ok::<(), armci_core::Error>(())
/// ```
///
/// # Safety
/// LOCAL-SPAN: all elements of the patch are readable from `source` on and writable from `target` on; the two do not
/// overlap.
///
/// # Errors
/// [`Error::Shape`] if the shape contradicts itself.
pub unsafe fn copy_strided<T: Pod>(target: *mut T, source: *const T, shape: &Strided<'_>) -> Result<()> {
    let mut checked = Checked::nothing();
    shape.check(size_of::<T>(), Way::Out, &mut checked)?;
    // SAFETY: LOCAL-SPAN.
    unsafe { copy_patch(target.cast(), source.cast(), &checked.patch) };
    Ok(())
}

impl World {
    /// Copies a patch of `source` to `target` (`ARMCI_PutS`); completion as [`World::put`].
    ///
    /// # Errors
    /// As [`World::put`]; [`Error::Shape`] if the shape contradicts itself or leaves `source`.
    #[track_caller]
    pub fn put_strided<T: Pod>(&self, source: &[T], target: GlobalPtr<T>, shape: &Strided<'_>) -> Result<()> {
        shape.check_local::<T>(source.len())?;
        // SAFETY: LOCAL-SPAN was just checked; `source` is borrowed for the call.
        unsafe { self.put_strided_from(source.as_ptr(), target, shape) }
    }

    /// Copies a patch from `source` into `target` (`ARMCI_GetS`); complete on return.
    ///
    /// # Errors
    /// As [`World::get`]; [`Error::Shape`] if the shape contradicts itself or leaves `target`.
    #[track_caller]
    pub fn get_strided<T: Pod>(&self, source: GlobalPtr<T>, target: &mut [T], shape: &Strided<'_>) -> Result<()> {
        shape.check_local::<T>(target.len())?;
        // SAFETY: LOCAL-SPAN was just checked; `target` is ours alone for the call.
        unsafe { self.get_strided_into(source, target.as_mut_ptr(), shape) }
    }

    /// Adds `alpha` times a patch of `source` to that at `target` (`ARMCI_AccS`); as [`World::accumulate`].
    ///
    /// # Errors
    /// As [`World::accumulate`]; [`Error::Shape`] if the shape contradicts itself or leaves `source`.
    #[track_caller]
    pub fn accumulate_strided<T: Accumulate>(
        &self,
        alpha: T,
        source: &[T],
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
    ) -> Result<()> {
        shape.check_local::<T>(source.len())?;
        // SAFETY: LOCAL-SPAN was just checked; `source` is borrowed for the call.
        unsafe { self.accumulate_strided_from(alpha, source.as_ptr(), target, shape) }
    }

    /// [`World::put_strided`] from where `source` points, for views that are no slice.
    ///
    /// # Safety
    /// LOCAL-SPAN: all elements of the patch that begins at `source` are readable and stay unchanged during the call.
    ///
    /// # Errors
    /// As [`World::put_strided`].
    #[track_caller]
    pub unsafe fn put_strided_from<T: Pod>(
        &self,
        source: *const T,
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.put_strided_by(source, target, shape, Completion::OnReturn) }
    }

    /// [`World::put_strided_from`], locally complete when that says.
    ///
    /// # Safety
    /// LOCAL-SPAN, until the put is locally complete.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn put_strided_by<T: Pod>(
        &self,
        source: *const T,
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
        completion: Completion,
    ) -> Result<()> {
        let (mut checked, target) = (Checked::nothing(), target.cast());
        shape.check(size_of::<T>(), Way::Out, &mut checked)?;
        let patch = &checked.patch;
        // SAFETY: LOCAL-SPAN.
        let put = || unsafe { self.put_patch(source.cast(), target, patch, checked.remote_span as u64, completion) };
        if self.is_plain() {
            return put();
        }
        let call = self.call_on(Kind::Put, target, patch.bytes(), Extent::Rows { patch, outward: true });
        self.watched(&call, put)
    }

    /// # Safety
    /// LOCAL-SPAN for `patch` at `source`, which reaches `span` bytes at the target.
    unsafe fn put_patch(
        &self,
        source: *const u8,
        target: GlobalPtr<u8>,
        patch: &Patch,
        span: u64,
        completion: Completion,
    ) -> Result<()> {
        let to = self.resolve(target, span)?;
        self.count().put(patch.bytes());
        if to.is_near() && target.region.index < self.direct().put.get() {
            self.origin().order(target.rank(), target.region, Access::Put);
            // SAFETY: REGION-LIVE, LOCAL-SPAN.
            unsafe { self.transport().put_patch(to, source, patch) };
            Ok(())
        } else {
            // SAFETY: LOCAL-SPAN.
            unsafe { far::put(self, to, source, target, patch, completion) }
        }
    }

    /// [`World::get_strided`] to where `target` points, for views that are no slice.
    ///
    /// # Safety
    /// LOCAL-SPAN: all elements of the patch that begins at `target` are writable and nobody else's during the call.
    ///
    /// # Errors
    /// As [`World::get_strided`].
    #[track_caller]
    pub unsafe fn get_strided_into<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        shape: &Strided<'_>,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.get_strided_by(source, target, shape, Completion::OnReturn) }
    }

    /// [`World::get_strided_into`], complete when that says.
    ///
    /// # Safety
    /// LOCAL-SPAN, until the get is complete.
    #[track_caller]
    pub(crate) unsafe fn get_strided_by<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        shape: &Strided<'_>,
        completion: Completion,
    ) -> Result<()> {
        let (mut checked, source) = (Checked::nothing(), source.cast());
        shape.check(size_of::<T>(), Way::In, &mut checked)?;
        let patch = &checked.patch;
        // SAFETY: LOCAL-SPAN.
        let get = || unsafe { self.get_patch(source, target.cast(), patch, checked.remote_span as u64, completion) };
        if self.is_plain() {
            return get();
        }
        let call = self.call_on(Kind::Get, source, patch.bytes(), Extent::Rows { patch, outward: false });
        self.watched(&call, get)
    }

    /// # Safety
    /// LOCAL-SPAN for `patch` at `target`, until the get is complete; it reaches `span` bytes at the source.
    unsafe fn get_patch(
        &self,
        source: GlobalPtr<u8>,
        target: *mut u8,
        patch: &Patch,
        span: u64,
        completion: Completion,
    ) -> Result<()> {
        let from = self.resolve(source, span)?;
        self.count().get(patch.bytes());
        if from.is_near() && source.region.index < self.direct().get.get() {
            self.origin().order(source.rank(), source.region, Access::Get);
            // SAFETY: REGION-LIVE, LOCAL-SPAN.
            unsafe { self.transport().get_patch(from, target, patch) };
            Ok(())
        } else {
            // SAFETY: LOCAL-SPAN.
            unsafe { far::get(self, from, source, target, patch, completion) }
        }
    }

    /// [`World::accumulate_strided`] from where `source` points, for views that are no slice.
    ///
    /// # Safety
    /// As [`World::put_strided_from`].
    ///
    /// # Errors
    /// As [`World::accumulate_strided`].
    #[track_caller]
    pub unsafe fn accumulate_strided_from<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.accumulate_strided_by(alpha, source, target, shape, Completion::OnReturn) }
    }

    /// [`World::accumulate_strided_from`], for which a later wait is, or not: locally complete on return in either case.
    ///
    /// # Safety
    /// LOCAL-SPAN.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn accumulate_strided_by<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
        completion: Completion,
    ) -> Result<()> {
        let mut checked = Checked::nothing();
        shape.check(size_of::<T>(), Way::Out, &mut checked)?;
        let way = (checked.remote_span as u64, completion);
        // SAFETY: LOCAL-SPAN.
        unsafe { self.accumulate_patch(alpha, source, target, &checked.patch, way) }
    }

    /// The common way of strided accumulates; `way` says how far the patch reaches at the target,
    /// and whether a later wait is for it.
    ///
    /// # Safety
    /// LOCAL-SPAN for `patch` at `source`.
    #[inline]
    #[track_caller]
    unsafe fn accumulate_patch<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        target: GlobalPtr<T>,
        patch: &Patch,
        way: (u64, Completion),
    ) -> Result<()> {
        let alpha = alpha_bytes(alpha);
        let (scale, source, target) = ((T::KIND, &alpha), source.cast(), target.cast());
        // SAFETY: LOCAL-SPAN.
        unsafe {
            if self.is_plain() {
                self.accumulate_rows(scale, source, target, patch, way)
            } else {
                self.accumulate_rows_watched(scale, source, target, patch, way)
            }
        }
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn accumulate_rows_watched(
        &self,
        scale: (ElementKind, &[u8; 16]),
        source: *const u8,
        target: GlobalPtr<u8>,
        patch: &Patch,
        way: (u64, Completion),
    ) -> Result<()> {
        let call = self.call_on(Kind::Accumulate, target, patch.bytes(), Extent::Rows { patch, outward: true });
        // SAFETY: LOCAL-SPAN.
        self.watched(&call, || unsafe { self.accumulate_rows(scale, source, target, patch, way) })
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[inline(always)]
    unsafe fn accumulate_rows(
        &self,
        (kind, scale): (ElementKind, &[u8; 16]),
        source: *const u8,
        target: GlobalPtr<u8>,
        patch: &Patch,
        way: (u64, Completion),
    ) -> Result<()> {
        let to = self.resolve(target, way.0)?;
        // Strides are whole elements, so the first element's alignment is everyone's.
        self.aligned(target, kind.align(), "an accumulate")?;
        self.count().accumulate(patch.bytes());
        if to.is_near() && target.region.index < self.direct().accumulate.get() {
            self.origin().order(target.rank(), target.region, Access::Accumulate);
            // SAFETY: REGION-LIVE, LOCAL-SPAN, aligned whole elements.
            unsafe { self.transport().accumulate(to, source, patch, kind, scale) };
            Ok(())
        } else {
            let verb = by_message::Verb::Accumulate { kind, alpha: *scale };
            // SAFETY: LOCAL-SPAN.
            unsafe { by_message::send(self, source, target, patch, verb, way.1) }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// How far a shape reaches here and there, and what it moves.
    fn reach(counts: &[usize], local: &[usize], remote: &[usize], way: Way) -> Result<(usize, usize, usize)> {
        let mut checked = Checked::nothing();
        Strided { counts, local, remote }.check(8, way, &mut checked)?;
        Ok((checked.local_span, checked.remote_span, checked.patch.bytes()))
    }

    #[test]
    fn a_shape_reaches_to_the_end_of_its_last_row() {
        for way in [Way::Out, Way::In] {
            let of = |counts: &[usize], local: &[usize], remote: &[usize]| reach(counts, local, remote, way).unwrap();
            assert_eq!(of(&[4], &[], &[]), (32, 32, 32));
            assert_eq!(of(&[4, 3], &[10], &[6]), (8 * (2 * 10 + 4), 8 * (2 * 6 + 4), 96));
            assert_eq!(of(&[4, 3, 2], &[10, 100], &[6, 0]), (8 * (100 + 20 + 4), 8 * (12 + 4), 192));
            assert_eq!(of(&[4, 0], &[usize::MAX / 8], &[6]), (0, 0, 0), "nothing reaches nowhere");
        }
    }

    #[test]
    fn the_way_says_which_strides_are_the_targets() {
        let patch = |way| {
            let mut checked = Checked::nothing();
            Strided { counts: &[4, 3], local: &[10], remote: &[6] }.check(8, way, &mut checked).unwrap();
            checked.patch
        };
        assert_eq!(patch(Way::Out), Patch::new(&[48], &[80], &[32, 3]));
        assert_eq!(patch(Way::In), Patch::new(&[80], &[48], &[32, 3]));
    }

    #[test]
    fn what_contradicts_itself_or_exceeds_the_address_space_is_refused() {
        let refused = |counts: &[usize], local: &[usize], remote: &[usize]| {
            reach(counts, local, remote, Way::Out).unwrap_err().to_string()
        };
        assert!(refused(&[4, 3], &[10], &[]).contains("2 counts need 1 strides"));
        assert!(refused(&[1; 9], &[1; 8], &[1; 8]).contains("at most 7"));
        let far = usize::MAX / 8;
        for (counts, local, remote) in [
            ([far, 2], [0], [0]),        // counted, though it reaches not far
            ([1, 3], [far], [1]),        // here
            ([1, 3], [1], [far]),        // there
            ([1, 1], [usize::MAX], [1]), // in bytes
            ([usize::MAX, 1], [0], [0]),
        ] {
            assert!(refused(&counts, &local, &remote).contains("exceeds the address space"), "{counts:?}");
        }
    }
}
