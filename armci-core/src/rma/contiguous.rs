//! Contiguous transfers and single values.
//!
//! # Safety
//! REGION-LIVE: what [`World::resolve`] returns lies inside a live region, so it is mapped.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::by_message;
use crate::accumulate::kernels::Accumulate;
use crate::copy::Patch;
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::transport::Transport;
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
    pub fn put<T: Pod>(&self, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        let bytes = size_of_val(source);
        let to = self.resolve(target, bytes as u64)?;
        self.count().put(bytes);
        if self.direct(self.protocol().put, self.transport().capabilities().rma) {
            self.origin().order(to.rank, target.region);
            // SAFETY: REGION-LIVE; `source` is borrowed for the call, which is how long it is read.
            unsafe { self.transport().put(to, source.as_ptr().cast(), bytes) };
            Ok(())
        } else {
            let whole = Patch::new(&[], &[], &[bytes]);
            // SAFETY: `source` is borrowed for the call, and is copied before it returns.
            unsafe { by_message::put(self, source.as_ptr().cast(), target.cast(), &whole) }
        }
    }

    /// Copies from `source` into `target` (`ARMCI_Get`); complete on return.
    ///
    /// # Errors
    /// If the source's rank or region does not exist or the transfer leaves the region; nothing was written.
    #[inline]
    pub fn get<T: Pod>(&self, source: GlobalPtr<T>, target: &mut [T]) -> Result<()> {
        let bytes = size_of_val(target);
        let from = self.resolve(source, bytes as u64)?;
        self.count().get(bytes);
        if self.direct(self.protocol().get, self.transport().capabilities().rma) {
            self.origin().order(from.rank, source.region);
            // SAFETY: REGION-LIVE; `target` is ours alone for the call.
            unsafe { self.transport().get(from, target.as_mut_ptr().cast(), bytes) };
            Ok(())
        } else {
            let whole = Patch::new(&[], &[], &[bytes]);
            // SAFETY: `target` is ours alone for the call, which waits for the data.
            unsafe { by_message::get(self, source.cast(), target.as_mut_ptr().cast(), &whole) }
        }
    }

    /// Stores one value (`ARMCI_PutValue*`); completion as [`World::put`].
    ///
    /// # Errors
    /// As [`World::put`].
    #[inline]
    pub fn put_value<T: Pod>(&self, value: T, target: GlobalPtr<T>) -> Result<()> {
        self.put(std::slice::from_ref(&value), target)
    }

    /// Fetches one value (`ARMCI_GetValue*`).
    ///
    /// # Errors
    /// As [`World::get`].
    #[inline]
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
    pub fn accumulate<T: Accumulate>(&self, alpha: T, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        let whole = Patch::new(&[], &[], &[size_of_val(source)]);
        // SAFETY: `source` is borrowed for the call, and is read or copied before it returns.
        unsafe { self.accumulate_patch(alpha, source.as_ptr(), target, &whole, size_of_val(source) as u64) }
    }
}
