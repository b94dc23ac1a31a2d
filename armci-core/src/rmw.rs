//! Read-modify-write: change a word of another rank and learn what it held.
//!
//! On a node the processor's atomics do it in place, whatever the owner is
//! doing; by active message whoever serves the owner does it, with the same
//! atomics, so both paths may meet on one word.
//!
//! [`SharedCounter`] is the load-balance counter of paper 003 (Figure 15) and
//! of Global Arrays' `NGA_Read_inc`.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::error::Result;
use crate::memory::{GlobalPtr, Region};
use crate::world::World;

/// What to do to the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmwKind {
    FetchAdd,
    Swap,
    CompareSwap,
}

/// One read-modify-write, on 8 bytes if `wide` or else on 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rmw {
    pub(crate) kind: RmwKind,
    pub(crate) wide: bool,
    pub(crate) operand: u64,
    pub(crate) compare: u64,
}

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

/// The arguments of a read-modify-write message.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct RmwArgs {
    pub(crate) region: u64,
    pub(crate) offset: u64,
    pub(crate) operand: u64,
    pub(crate) compare: u64,
    /// 0 fetch-and-add, 1 swap, 2 compare-and-swap.
    pub(crate) kind: u32,
    /// 8 or 4 bytes.
    pub(crate) bytes: u32,
}

impl RmwArgs {
    /// What a message says for `rmw` at `offset` of `region`.
    pub(crate) fn new(region: u64, offset: u64, rmw: Rmw) -> Self {
        let Rmw { kind, wide, operand, compare } = rmw;
        let kind = match kind {
            RmwKind::FetchAdd => 0,
            RmwKind::Swap => 1,
            RmwKind::CompareSwap => 2,
        };
        RmwArgs { region, offset, operand, compare, kind, bytes: if wide { 8 } else { 4 } }
    }

    /// What it asks for; `None` if that makes no sense.
    pub(crate) fn rmw(&self) -> Option<Rmw> {
        let kind = match self.kind {
            0 => RmwKind::FetchAdd,
            1 => RmwKind::Swap,
            2 => RmwKind::CompareSwap,
            _ => return None,
        };
        let wide = match self.bytes {
            8 => true,
            4 => false,
            _ => return None,
        };
        Some(Rmw { kind, wide, operand: self.operand, compare: self.compare })
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
    pub fn next(&self) -> Result<i64> {
        self.world.fetch_add(self.place(), 1)
    }

    /// Draws the next `count` numbers at once.
    ///
    /// # Errors
    /// As [`SharedCounter::next`].
    #[inline]
    pub fn next_chunk(&self, count: i64) -> Result<Range<i64>> {
        let first = self.world.fetch_add(self.place(), count)?;
        Ok(first..first + count)
    }

    /// Sets the counter back to 0. Collective: no rank draws before all have reset.
    ///
    /// # Errors
    /// As [`SharedCounter::next`].
    pub fn reset(&self) -> Result<()> {
        self.world.barrier()?;
        if self.world.rank() == 0 {
            self.world.put(&[0i64], self.place())?;
        }
        self.world.barrier()
    }

    /// Frees the counter. Collective.
    ///
    /// # Errors
    /// As [`World::free`].
    pub fn destroy(self) -> Result<()> {
        self.world.free(self.region)
    }
}
