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
struct Checked {
    counts: [usize; MAX_LEVELS + 1],
    local: [usize; MAX_LEVELS],
    remote: [usize; MAX_LEVELS],
    levels: usize,
    local_span: usize,
    remote_span: usize,
}

impl Strided<'_> {
    /// Refuses a shape that contradicts itself, or leaves a local buffer of `len` elements of `T`.
    pub(crate) fn check_local<T>(&self, len: usize) -> Result<()> {
        self.check(size_of::<T>())?.fits(len.saturating_mul(size_of::<T>()))
    }

    /// Brings the shape to bytes of elements of `size`.
    fn check(&self, size: usize) -> Result<Checked> {
        let levels = self.local.len();
        if self.counts.len() != levels + 1 || self.remote.len() != levels || levels > MAX_LEVELS {
            return Err(Error::Shape(format!(
                "{} counts need {} strides on each side, at most {MAX_LEVELS}; there are {levels} local and {} remote ones",
                self.counts.len(),
                self.counts.len().saturating_sub(1),
                self.remote.len(),
            )));
        }
        let too_large = || Error::Shape(format!("{self:?} of {size}-byte elements exceeds the address space"));
        let scale = |from: &[usize], to: &mut [usize]| -> Option<()> {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.checked_mul(size)?;
            }
            Some(())
        };
        let mut checked = Checked {
            counts: [1; MAX_LEVELS + 1],
            local: [0; MAX_LEVELS],
            remote: [0; MAX_LEVELS],
            levels,
            local_span: 0,
            remote_span: 0,
        };
        scale(self.local, &mut checked.local).ok_or_else(too_large)?;
        scale(self.remote, &mut checked.remote).ok_or_else(too_large)?;
        checked.counts[..=levels].copy_from_slice(self.counts);
        checked.counts[0] = self.counts[0].checked_mul(size).ok_or_else(too_large)?;
        // The whole patch can be counted, also where strides of zero make its span small.
        let bytes = self.counts.iter().try_fold(size, |bytes, count| bytes.checked_mul(*count));
        bytes.filter(|bytes| *bytes <= isize::MAX as usize).ok_or_else(too_large)?;
        checked.local_span = span(self.counts, &checked.local, checked.counts[0]).ok_or_else(too_large)?;
        checked.remote_span = span(self.counts, &checked.remote, checked.counts[0]).ok_or_else(too_large)?;
        Ok(checked)
    }
}

/// Bytes from the first to behind the last byte of a patch; 0 if it is empty.
fn span(counts: &[usize], strides: &[usize], row: usize) -> Option<usize> {
    if counts.contains(&0) {
        return Some(0);
    }
    counts[1..]
        .iter()
        .zip(strides)
        .try_fold(row, |span, (count, stride)| span.checked_add((count - 1).checked_mul(*stride)?))
}

impl Checked {
    /// The patch from here to there, or from there to here.
    fn patch(&self, outward: bool) -> Patch {
        let [local, remote] = [&self.local[..self.levels], &self.remote[..self.levels]];
        let [to, from] = if outward { [remote, local] } else { [local, remote] };
        Patch::new(to, from, &self.counts[..=self.levels])
    }

    /// Refuses a local buffer that the patch leaves.
    fn fits(&self, bytes: usize) -> Result<()> {
        if self.local_span <= bytes {
            return Ok(());
        }
        Err(Error::Shape(format!("the patch spans {} bytes of a local buffer of {bytes}", self.local_span)))
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
    let shape = shape.check(size_of::<T>())?;
    // SAFETY: LOCAL-SPAN.
    unsafe { copy_patch(target.cast(), source.cast(), &shape.patch(true)) };
    Ok(())
}

impl World {
    /// Copies a patch of `source` to `target` (`ARMCI_PutS`); completion as [`World::put`].
    ///
    /// # Errors
    /// As [`World::put`]; [`Error::Shape`] if the shape contradicts itself or leaves `source`.
    #[track_caller]
    pub fn put_strided<T: Pod>(&self, source: &[T], target: GlobalPtr<T>, shape: &Strided<'_>) -> Result<()> {
        shape.check(size_of::<T>())?.fits(size_of_val(source))?;
        // SAFETY: LOCAL-SPAN was just checked; `source` is borrowed for the call.
        unsafe { self.put_strided_from(source.as_ptr(), target, shape) }
    }

    /// Copies a patch from `source` into `target` (`ARMCI_GetS`); complete on return.
    ///
    /// # Errors
    /// As [`World::get`]; [`Error::Shape`] if the shape contradicts itself or leaves `target`.
    #[track_caller]
    pub fn get_strided<T: Pod>(&self, source: GlobalPtr<T>, target: &mut [T], shape: &Strided<'_>) -> Result<()> {
        shape.check(size_of::<T>())?.fits(size_of_val(target))?;
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
        shape.check(size_of::<T>())?.fits(size_of_val(source))?;
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
        let shape = shape.check(size_of::<T>())?;
        let (patch, target) = (shape.patch(true), target.cast());
        let call = self.call_on(Kind::Put, target, patch.bytes(), Extent::Rows { patch: &patch, outward: true });
        // SAFETY: LOCAL-SPAN.
        let put = || unsafe { self.put_patch(source.cast(), target, &patch, shape.remote_span as u64) };
        if self.is_plain() { put() } else { self.watched(&call, put) }
    }

    /// # Safety
    /// LOCAL-SPAN for `patch` at `source`, which reaches `span` bytes at the target.
    unsafe fn put_patch(&self, source: *const u8, target: GlobalPtr<u8>, patch: &Patch, span: u64) -> Result<()> {
        let to = self.resolve(target, span)?;
        self.count().put(patch.bytes());
        if to.is_near() && target.region.index < self.direct().put.get() {
            self.origin().order(target.rank(), target.region, Access::Put);
            // SAFETY: REGION-LIVE, LOCAL-SPAN.
            unsafe { self.transport().put_patch(to, source, patch) };
            Ok(())
        } else {
            // SAFETY: LOCAL-SPAN.
            unsafe { far::put(self, to, source, target, patch) }
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
        let shape = shape.check(size_of::<T>())?;
        let (patch, source) = (shape.patch(false), source.cast());
        let call = self.call_on(Kind::Get, source, patch.bytes(), Extent::Rows { patch: &patch, outward: false });
        // SAFETY: LOCAL-SPAN.
        let get = || unsafe { self.get_patch(source, target.cast(), &patch, shape.remote_span as u64, completion) };
        if self.is_plain() { get() } else { self.watched(&call, get) }
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
        let shape = shape.check(size_of::<T>())?;
        // SAFETY: LOCAL-SPAN.
        unsafe { self.accumulate_patch(alpha, source, target, &shape.patch(true), shape.remote_span as u64) }
    }

    /// The common way of strided accumulates; `span` is how far the patch reaches at the target.
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
        span: u64,
    ) -> Result<()> {
        let (scale, source, target) = ((T::KIND, alpha_bytes(alpha)), source.cast(), target.cast());
        // SAFETY: LOCAL-SPAN.
        unsafe {
            if self.is_plain() {
                self.accumulate_rows(scale, source, target, patch, span)
            } else {
                self.accumulate_rows_watched(scale, source, target, patch, span)
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
        scale: (ElementKind, [u8; 16]),
        source: *const u8,
        target: GlobalPtr<u8>,
        patch: &Patch,
        span: u64,
    ) -> Result<()> {
        let call = self.call_on(Kind::Accumulate, target, patch.bytes(), Extent::Rows { patch, outward: true });
        // SAFETY: LOCAL-SPAN.
        self.watched(&call, || unsafe { self.accumulate_rows(scale, source, target, patch, span) })
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[inline(always)]
    unsafe fn accumulate_rows(
        &self,
        (kind, scale): (ElementKind, [u8; 16]),
        source: *const u8,
        target: GlobalPtr<u8>,
        patch: &Patch,
        span: u64,
    ) -> Result<()> {
        let to = self.resolve(target, span)?;
        // Strides are whole elements, so the first element's alignment is everyone's.
        self.aligned(target, kind.align(), "an accumulate")?;
        self.count().accumulate(patch.bytes());
        if to.is_near() && target.region.index < self.direct().accumulate.get() {
            self.origin().order(target.rank(), target.region, Access::Accumulate);
            // SAFETY: REGION-LIVE, LOCAL-SPAN, aligned whole elements.
            unsafe { self.transport().accumulate(to, source, patch, kind, &scale) };
            Ok(())
        } else {
            // SAFETY: LOCAL-SPAN.
            unsafe { by_message::accumulate(self, source, target, patch, kind, scale) }
        }
    }
}
