//! Read-modify-write: change a word of another rank and learn what it held.
//!
//! On a node the processor's atomics do it in place, whatever the owner is
//! doing; by active message whoever serves the owner does it, with the same
//! atomics, so both paths may meet on one word.
//!
//! [`SharedCounter`] is the load-balance counter of paper 003 (Figure 15) and
//! of Global Arrays' `NGA_Read_inc`.
//!
//! # Safety
//! REGION-LIVE: what [`World::resolve`] returns lies inside a live region, so it is mapped.
#![allow(unsafe_code)]

use std::ops::Range;

use bytemuck::Pod;

use crate::allocation::Region;
use crate::consistency::Access;
use crate::error::{Error, Result};
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
        if place.region.index < self.direct().rmw.get() {
            self.origin().order(place.rank(), place.region, Access::ReadModifyWrite);
            // SAFETY: REGION-LIVE, aligned.
            Ok(unsafe { self.transport().rmw(at, rmw) })
        } else {
            by_message::rmw(self, place, rmw)
        }
    }
}

/// A counter that all ranks draw tasks from.
///
/// It lives on rank 0. Each number is handed out exactly once. With the default
/// path a draw is one atomic addition in rank 0's memory, whatever rank 0 is
/// doing; with `ARMCI_PROTOCOL=rmw=am` rank 0's progress thread serves it.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// let world = armci_core::World::init()?;
/// let counter = armci_core::SharedCounter::create(&world)?;
/// let mut done = 0;
/// while counter.next()? < 10 {
///     done += 1;
/// }
/// assert_eq!(done, 10); // a job of one does all the work itself
/// counter.destroy()?;
/// world.finalize()
/// # }
/// ```
#[derive(Debug)]
pub struct SharedCounter {
    world: World,
    region: Region,
}

impl SharedCounter {
    /// A counter at 0. Collective.
    ///
    /// # Errors
    /// As [`World::allocate`].
    #[track_caller]
    pub fn create(world: &World) -> Result<Self> {
        // A line of its own: what else lies there would be fought over with every draw.
        let region = world.allocate(64)?;
        let counter = SharedCounter { world: world.clone(), region };
        counter.reset()?;
        Ok(counter)
    }

    fn place(&self) -> GlobalPtr<i64> {
        self.region.at(0, 0)
    }

    /// Draws the next number.
    ///
    /// # Errors
    /// If the counter was destroyed, or the job has ended.
    #[inline]
    #[track_caller]
    pub fn next(&self) -> Result<i64> {
        self.world.fetch_add(self.place(), 1)
    }

    /// Draws the next `count` numbers at once.
    ///
    /// # Errors
    /// As [`SharedCounter::next`]; [`Error::Argument`] for fewer than one.
    #[inline]
    #[track_caller]
    pub fn next_chunk(&self, count: i64) -> Result<Range<i64>> {
        if count < 1 {
            return Err(Error::Argument(format!("{count} numbers were drawn at once: at least 1 can be")));
        }
        let first = self.world.fetch_add(self.place(), count)?;
        Ok(first..first.saturating_add(count))
    }

    /// Sets the counter back to 0. Collective: no rank draws before all have reset.
    ///
    /// # Errors
    /// As [`SharedCounter::next`]; the ranks meet all the same.
    #[track_caller]
    pub fn reset(&self) -> Result<()> {
        self.world.synchronize()?;
        let set = if self.world.rank() == 0 {
            self.world.put_value(0i64, self.place()).and_then(|()| self.world.fence(0))
        } else {
            Ok(())
        };
        self.world.synchronize()?;
        set
    }

    /// Frees the counter. Collective.
    ///
    /// # Errors
    /// As [`World::free`].
    pub fn destroy(self) -> Result<()> {
        self.world.free(self.region)
    }
}
