//! Read-modify-write: change a word of another rank and learn what it held.
//!
//! On a node the processor's atomics do it in place, whatever the owner is
//! doing; by active message whoever serves the owner does it, with the same
//! atomics, so both paths may meet on one word.
//!
//! # Safety
//! REGION-LIVE: what [`World::resolve`] returns lies inside a live region, so it is mapped.
#![allow(unsafe_code)]

use bytemuck::Pod;

use crate::consistency::Access;
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::rma::by_message;
use crate::transport::{Rmw, RmwKind, Transport};
use crate::watch::{Extent, Kind};
use crate::world::World;

/// A word that atomics work on: `i32`, `u32`, `i64`, `u64`.
pub trait Word: Pod + sealed::Sealed {
    /// The word in the low bytes of 64 bits.
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    /// The reverse.
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! words {
    ($($word:ty as $bits:ty),*) => {$(
        impl sealed::Sealed for $word {}
        impl Word for $word {
            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self as $bits)
            }
            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as $word
            }
        }
    )*};
}
words!(i32 as u32, u32 as u32, i64 as u64, u64 as u64);

impl World {
    /// Adds `value` to the word at `place` and returns what it held (`ARMCI_Rmw`, `ARMCI_FETCH_AND_ADD`).
    ///
    /// Atomic against every other read-modify-write of the word. Complete on return.
    ///
    /// # Errors
    /// If the place does not exist or is not aligned; nothing was changed.
    #[inline]
    #[track_caller]
    pub fn fetch_add<T: Word>(&self, place: GlobalPtr<T>, value: T) -> Result<T> {
        self.read_modify_write(place, RmwKind::FetchAdd, value, value)
    }

    /// Adds `value` to the word at `place`; as [`World::fetch_add`].
    ///
    /// # Errors
    /// As [`World::fetch_add`].
    #[inline]
    #[track_caller]
    pub fn add<T: Word>(&self, place: GlobalPtr<T>, value: T) -> Result<()> {
        self.fetch_add(place, value).map(drop)
    }

    /// Returns what the word at `place` holds, read as one; as [`World::fetch_add`] of nothing.
    ///
    /// # Errors
    /// As [`World::fetch_add`].
    #[inline]
    #[track_caller]
    pub fn fetch<T: Word>(&self, place: GlobalPtr<T>) -> Result<T> {
        self.read_modify_write(place, RmwKind::FetchAdd, T::zeroed(), T::zeroed())
    }

    /// Puts `value` into the word at `place` and returns what it held (`ARMCI_SWAP`); as [`World::fetch_add`].
    ///
    /// # Errors
    /// As [`World::fetch_add`].
    #[inline]
    #[track_caller]
    pub fn swap<T: Word>(&self, place: GlobalPtr<T>, value: T) -> Result<T> {
        self.read_modify_write(place, RmwKind::Swap, value, value)
    }

    /// Puts `value` into the word at `place` if it holds `expected`; returns what it held; as [`World::fetch_add`].
    ///
    /// # Errors
    /// As [`World::fetch_add`].
    #[inline]
    #[track_caller]
    pub fn compare_swap<T: Word>(&self, place: GlobalPtr<T>, expected: T, value: T) -> Result<T> {
        self.read_modify_write(place, RmwKind::CompareSwap, value, expected)
    }

    #[inline]
    #[track_caller]
    fn read_modify_write<T: Word>(&self, place: GlobalPtr<T>, kind: RmwKind, operand: T, compare: T) -> Result<T> {
        let wide = size_of::<T>() == 8;
        let rmw = Rmw { kind, wide, operand: operand.to_bits(), compare: compare.to_bits() };
        let place = place.cast();
        let found = if self.is_plain() { self.rmw_now(place, rmw) } else { self.rmw_watched(place, rmw) };
        found.map(T::from_bits)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn rmw_watched(&self, place: GlobalPtr<u8>, rmw: Rmw) -> Result<u64> {
        let call = self.call_on(Kind::Rmw, place, if rmw.wide { 8 } else { 4 }, Extent::Bytes);
        self.watched(&call, || self.rmw_now(place, rmw))
    }

    #[inline(always)]
    fn rmw_now(&self, place: GlobalPtr<u8>, rmw: Rmw) -> Result<u64> {
        let bytes = if rmw.wide { 8 } else { 4 };
        let at = self.resolve(place, bytes as u64)?;
        self.aligned(place, bytes, "an atomic operation")?;
        self.count().rmw(bytes);
        if at.is_near() && place.region.index < self.direct().rmw.get() {
            self.origin().order(place.rank(), place.region, Access::ReadModifyWrite);
            // SAFETY: REGION-LIVE, aligned.
            Ok(unsafe { self.transport().rmw(at, rmw) })
        } else {
            by_message::rmw(self, place, rmw)
        }
    }
}
