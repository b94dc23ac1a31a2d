//! Contiguous transfers and single values.
//!
//! # Safety
//! REGION-LIVE: what [`World::resolve`] returns lies inside a live region, so it is mapped. LOCAL-SPAN: the local
//! side is readable (put, accumulate) or ours to write (get) while the call runs, and until the get is complete: a
//! slice is, or the caller vouches for it.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::{Completion, by_message, far};
use crate::accumulate::kernels::{Accumulate, ElementKind, alpha_bytes};
use crate::consistency::Access;
use crate::copy::Patch;
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::transport::Transport;
use crate::watch::{Extent, Kind};
use crate::world::World;

impl World {
    /// Copies `source` to `target` (`ARMCI_Put`).
    ///
    /// On return `source` may be reused; [`World::fence`] completes the transfer at the target. Operations of
    /// this rank to the same place take effect in program order.
    ///
    /// # Errors
    /// If the target's rank or region does not exist or the transfer leaves the region; nothing was written.
    #[inline]
    #[track_caller]
    pub fn put<T: Pod>(&self, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        // SAFETY: LOCAL-SPAN: `source` is borrowed for the call, which is how long it is read.
        unsafe { self.put_bytes(source.as_ptr().cast(), size_of_val(source), target.cast(), Completion::OnReturn) }
    }

    /// [`World::put`] of `count` elements from where `source` points, for memory that is no slice: that of a C
    /// program, or what other ranks may write. It may be this rank's part of a region, even that of `target`.
    ///
    /// # Safety
    /// LOCAL-SPAN: `count` elements at `source` are readable, for the whole call.
    ///
    /// # Errors
    /// As [`World::put`].
    #[inline]
    #[track_caller]
    pub unsafe fn put_from<T: Pod>(&self, source: *const T, count: usize, target: GlobalPtr<T>) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.put_from_by(source, count, target, Completion::OnReturn) }
    }

    /// [`World::put_from`], locally complete when that says.
    ///
    /// # Safety
    /// LOCAL-SPAN, until the put is locally complete.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn put_from_by<T: Pod>(
        &self,
        source: *const T,
        count: usize,
        target: GlobalPtr<T>,
        completion: Completion,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.put_bytes(source.cast(), bytes_of::<T>(count), target.cast(), completion) }
    }

    /// The common way of all contiguous puts.
    ///
    /// # Safety
    /// LOCAL-SPAN.
    #[inline]
    #[track_caller]
    unsafe fn put_bytes(
        &self,
        source: *const u8,
        bytes: usize,
        target: GlobalPtr<u8>,
        completion: Completion,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe {
            if self.is_plain() {
                self.put_now(source, bytes, target, completion)
            } else {
                self.put_watched(source, bytes, target, completion)
            }
        }
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn put_watched(
        &self,
        source: *const u8,
        bytes: usize,
        target: GlobalPtr<u8>,
        completion: Completion,
    ) -> Result<()> {
        let call = self.call_on(Kind::Put, target, bytes, Extent::Bytes);
        // SAFETY: LOCAL-SPAN.
        self.watched(&call, || unsafe { self.put_now(source, bytes, target, completion) })
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[inline(always)]
    unsafe fn put_now(
        &self,
        source: *const u8,
        bytes: usize,
        target: GlobalPtr<u8>,
        completion: Completion,
    ) -> Result<()> {
        let to = self.resolve(target, bytes as u64)?;
        self.count().put(bytes);
        if to.is_near() && target.region.index < self.direct().put.get() {
            self.origin().order(target.rank(), target.region, Access::Put);
            // SAFETY: REGION-LIVE, LOCAL-SPAN.
            unsafe { self.transport().put(to, source, bytes) };
            Ok(())
        } else {
            let whole = Patch::new(&[], &[], &[bytes]);
            // SAFETY: LOCAL-SPAN.
            unsafe { far::put(self, to, source, target, &whole, completion) }
        }
    }

    /// Copies from `source` into `target` (`ARMCI_Get`); complete on return.
    ///
    /// # Errors
    /// If the source's rank or region does not exist or the transfer leaves the region; nothing was written.
    #[inline]
    #[track_caller]
    pub fn get<T: Pod>(&self, source: GlobalPtr<T>, target: &mut [T]) -> Result<()> {
        // SAFETY: LOCAL-SPAN: `target` is ours alone for the call.
        unsafe { self.get_bytes(source.cast(), target.as_mut_ptr().cast(), size_of_val(target), Completion::OnReturn) }
    }

    /// [`World::get`] of `count` elements to where `target` points, for memory that is no slice; see
    /// [`World::put_from`].
    ///
    /// # Safety
    /// LOCAL-SPAN: `count` elements at `target` are writable, and this program refers to them by nothing else, for
    /// the whole call.
    ///
    /// # Errors
    /// As [`World::get`].
    #[inline]
    #[track_caller]
    pub unsafe fn get_into<T: Pod>(&self, source: GlobalPtr<T>, target: *mut T, count: usize) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.get_into_by(source, target, count, Completion::OnReturn) }
    }

    /// [`World::get_into`], complete when that says.
    ///
    /// # Safety
    /// LOCAL-SPAN, until the get is complete.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn get_into_by<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        count: usize,
        completion: Completion,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.get_bytes(source.cast(), target.cast(), bytes_of::<T>(count), completion) }
    }

    /// The common way of all contiguous gets.
    ///
    /// # Safety
    /// LOCAL-SPAN, until the get is complete.
    #[inline]
    #[track_caller]
    unsafe fn get_bytes(
        &self,
        source: GlobalPtr<u8>,
        target: *mut u8,
        bytes: usize,
        completion: Completion,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe {
            if self.is_plain() {
                self.get_now(source, target, bytes, completion)
            } else {
                self.get_watched(source, target, bytes, completion)
            }
        }
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn get_watched(
        &self,
        source: GlobalPtr<u8>,
        target: *mut u8,
        bytes: usize,
        completion: Completion,
    ) -> Result<()> {
        let call = self.call_on(Kind::Get, source, bytes, Extent::Bytes);
        // SAFETY: LOCAL-SPAN.
        self.watched(&call, || unsafe { self.get_now(source, target, bytes, completion) })
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[inline(always)]
    unsafe fn get_now(
        &self,
        source: GlobalPtr<u8>,
        target: *mut u8,
        bytes: usize,
        completion: Completion,
    ) -> Result<()> {
        let from = self.resolve(source, bytes as u64)?;
        self.count().get(bytes);
        if from.is_near() && source.region.index < self.direct().get.get() {
            self.origin().order(source.rank(), source.region, Access::Get);
            // SAFETY: REGION-LIVE, LOCAL-SPAN.
            unsafe { self.transport().get(from, target, bytes) };
            Ok(())
        } else {
            let whole = Patch::new(&[], &[], &[bytes]);
            // SAFETY: LOCAL-SPAN.
            unsafe { far::get(self, from, source, target, &whole, completion) }
        }
    }

    /// Stores one value (`ARMCI_PutValue*`); completion as [`World::put`].
    ///
    /// # Errors
    /// As [`World::put`].
    #[inline]
    #[track_caller]
    pub fn put_value<T: Pod>(&self, value: T, target: GlobalPtr<T>) -> Result<()> {
        self.put(std::slice::from_ref(&value), target)
    }

    /// Fetches one value (`ARMCI_GetValue*`).
    ///
    /// # Errors
    /// As [`World::get`].
    #[inline]
    #[track_caller]
    pub fn get_value<T: Pod>(&self, source: GlobalPtr<T>) -> Result<T> {
        let mut value = T::zeroed();
        self.get(source, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Adds `alpha` times `source` to the elements at `target` (`ARMCI_Acc`): atomic per element against all
    /// other accumulates, in any order with them. Completion as [`World::put`].
    ///
    /// # Errors
    /// As [`World::put`]; or if `target` is not aligned to its element.
    #[inline]
    #[track_caller]
    pub fn accumulate<T: Accumulate>(&self, alpha: T, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        // SAFETY: LOCAL-SPAN: `source` is borrowed for the call, and is read or copied before it returns.
        unsafe { self.accumulate_from(alpha, source.as_ptr(), source.len(), target) }
    }

    /// [`World::accumulate`] of `count` elements from where `source` points, for memory that is no slice; see
    /// [`World::put_from`].
    ///
    /// # Safety
    /// LOCAL-SPAN: `count` elements at `source` are readable, and nobody writes them, for the whole call.
    ///
    /// # Errors
    /// As [`World::accumulate`].
    #[inline]
    #[track_caller]
    pub unsafe fn accumulate_from<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        count: usize,
        target: GlobalPtr<T>,
    ) -> Result<()> {
        // SAFETY: LOCAL-SPAN.
        unsafe { self.accumulate_from_by(alpha, source, count, target, Completion::OnReturn) }
    }

    /// [`World::accumulate_from`], for which a later wait is, or not: locally complete on return in either case.
    ///
    /// # Safety
    /// LOCAL-SPAN.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn accumulate_from_by<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        count: usize,
        target: GlobalPtr<T>,
        completion: Completion,
    ) -> Result<()> {
        let (alpha, bytes) = (alpha_bytes(alpha), bytes_of::<T>(count));
        let scale = (T::KIND, &alpha);
        // SAFETY: LOCAL-SPAN.
        unsafe {
            if self.is_plain() {
                self.accumulate_now(scale, source.cast(), bytes, target.cast(), completion)
            } else {
                self.accumulate_watched(scale, source.cast(), bytes, target.cast(), completion)
            }
        }
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn accumulate_watched(
        &self,
        scale: (ElementKind, &[u8; 16]),
        source: *const u8,
        bytes: usize,
        target: GlobalPtr<u8>,
        completion: Completion,
    ) -> Result<()> {
        let call = self.call_on(Kind::Accumulate, target, bytes, Extent::Bytes);
        // SAFETY: LOCAL-SPAN.
        self.watched(&call, || unsafe { self.accumulate_now(scale, source, bytes, target, completion) })
    }

    /// # Safety
    /// LOCAL-SPAN.
    #[inline(always)]
    unsafe fn accumulate_now(
        &self,
        (kind, alpha): (ElementKind, &[u8; 16]),
        source: *const u8,
        bytes: usize,
        target: GlobalPtr<u8>,
        completion: Completion,
    ) -> Result<()> {
        let to = self.resolve(target, bytes as u64)?;
        self.aligned(target, kind.align(), "an accumulate")?;
        self.count().accumulate(bytes);
        if to.is_near() && target.region.index < self.direct().accumulate.get() {
            self.origin().order(target.rank(), target.region, Access::Accumulate);
            // SAFETY: REGION-LIVE, LOCAL-SPAN, aligned whole elements.
            unsafe { self.transport().accumulate_row(to, source, bytes, kind, alpha) };
            Ok(())
        } else {
            let whole = Patch::new(&[], &[], &[bytes]);
            let verb = by_message::Verb::Accumulate { kind, alpha: *alpha };
            // SAFETY: LOCAL-SPAN; it is copied or fetched before this returns.
            unsafe { by_message::send(self, source, target, &whole, verb, completion) }
        }
    }
}

/// The bytes of so many elements; as many as fit a number if there are more, which no region has.
#[inline]
fn bytes_of<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>())
}
