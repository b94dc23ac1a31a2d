//! Regions: what a remote rank must know to reach an allocation.
//!
//! Each rank keeps, in its slot of the node's window, a table with one entry
//! per live region: where its part lies and how long it is. A transfer looks
//! its bounds up there, in the *target's* table: parts may differ in length,
//! and yet no rank stores anything per other rank. The line is shared and
//! rarely written, so a look-up costs two loads from the cache.
//!
//! An entry's generation grows each time the index is used anew, so a pointer
//! that outlives its region finds a different one and is refused.
//!
//! Indexes come from three ranges: regions of the whole job have one index
//! everywhere; a rank's private ones, and memory registered with it, have
//! indexes of that rank's own.
//!
//! # Safety
//! FLAT: a type laid out as C does, of plain numbers, without padding.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};
use crate::primitive::{AtomicU64, Ordering, fence};

/// Indexes of regions that are the same on every rank of the job.
pub(crate) const SYMMETRIC: Range<u32> = 0..20 << 10;
/// Indexes of regions of one rank's private heap, given by that rank.
pub(crate) const PRIVATE: Range<u32> = 20 << 10..28 << 10;
/// Indexes of registered memory, which lies in no window: only its owner reaches it directly.
pub(crate) const REGISTERED: Range<u32> = 28 << 10..32 << 10;

/// The name of a region at a rank: the same on every rank, for regions that the whole job allocated.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct RegionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

impl fmt::Debug for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl RegionId {
    /// Whether every rank knows the region by this name.
    #[inline]
    pub(crate) fn is_symmetric(self) -> bool {
        self.index < SYMMETRIC.end
    }

    /// Whether it is memory that lies in no window.
    #[inline]
    pub(crate) fn is_registered(self) -> bool {
        self.index >= REGISTERED.start
    }

    /// The two numbers in one word, as messages carry them.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.generation)
    }

    /// The reverse of [`RegionId::to_bits`].
    pub(crate) fn from_bits(bits: u64) -> Self {
        RegionId { index: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// A rank's part of one region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// First byte, from the beginning of the rank's slot.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) len: u64,
}

/// How a part is reached by remote memory access from another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Where it begins, as the fabric names places.
    pub(crate) address: u64,
    /// The key of its memory.
    pub(crate) key: u64,
}

impl Access {
    /// It is not.
    pub(crate) const NONE: Access = Access { address: 0, key: u64::MAX };

    /// What it is, unless it is not.
    pub(crate) fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// What a rank knows of a part of another rank's: where it lies, and how it is reached from another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) part: Part,
    /// [`Access::NONE`] on the owner's node, and where there is no such way.
    pub(crate) access: Access,
}

/// Set beside the generation of a live region.
const LIVE: u64 = 1 << 32;

/// One entry, as it lies in the window.
#[repr(C, align(32))]
#[derive(Debug)]
struct Entry {
    /// [`LIVE`] and the generation of the live region, or 0: no pointer's generation, whatever its bits, is that.
    generation: AtomicU64,
    offset: AtomicU64,
    len: AtomicU64,
}

/// A rank's table, as it lies in the window. All zero bytes are an empty table.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RegionTable([Entry; REGISTERED.end as usize]);

impl RegionTable {
    /// Where this rank's part of `id` lies; `None` if there is no such region (any more).
    #[inline]
    pub(crate) fn part(&self, id: RegionId) -> Option<Part> {
        let entry = self.0.get(id.index as usize)?;
        let live = LIVE | u64::from(id.generation);
        // Acquire pairs with the release of the generation: offset and length belong to this generation or a later one.
        if entry.generation.load(Ordering::Acquire) != live {
            return None;
        }
        let part = Part { offset: entry.offset.load(Ordering::Relaxed), len: entry.len.load(Ordering::Relaxed) };
        // If one of them is of a later one, so is what the generation shows from here on: it was taken away before they
        // were changed. (The fence pairs with the one in `publish`.)
        fence(Ordering::Acquire);
        (entry.generation.load(Ordering::Relaxed) == live).then_some(part)
    }

    /// Whether there is such a region now.
    #[inline]
    pub(crate) fn has(&self, id: RegionId) -> bool {
        let live = LIVE | u64::from(id.generation);
        self.0.get(id.index as usize).is_some_and(|entry| entry.generation.load(Ordering::Acquire) == live)
    }

    /// The live region of this index, and this rank's part of it.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<(RegionId, Part)> {
        let generation = self.0.get(index as usize)?.generation.load(Ordering::Acquire) as u32;
        let id = RegionId { index, generation };
        Some((id, self.part(id)?))
    }

    /// Makes a part known to every rank of the node. Only the table's owner calls this.
    pub(crate) fn publish(&self, id: RegionId, part: Part) {
        let entry = &self.0[id.index as usize];
        // After the withdrawal of whoever had the index before.
        fence(Ordering::Release);
        entry.offset.store(part.offset, Ordering::Relaxed);
        entry.len.store(part.len, Ordering::Relaxed);
        entry.generation.store(LIVE | u64::from(id.generation), Ordering::Release);
    }

    /// Forgets a part. Only the table's owner calls this.
    pub(crate) fn withdraw(&self, id: RegionId) {
        self.0[id.index as usize].generation.store(0, Ordering::Release);
    }
}

/// Hands out region names. Every rank makes the same calls for symmetric ones, so all agree without talking.
#[derive(Debug)]
pub(crate) struct Names {
    range: Range<u32>,
    free: Vec<u32>,
    generations: Vec<u32>,
}

impl Names {
    /// The names of regions that the whole job allocates.
    pub(crate) fn symmetric() -> Self {
        Self::of(SYMMETRIC)
    }

    /// The names of regions of this rank's private heap.
    pub(crate) fn private() -> Self {
        Self::of(PRIVATE)
    }

    /// The names of this rank's registered memory.
    pub(crate) fn registered() -> Self {
        Self::of(REGISTERED)
    }

    fn of(range: Range<u32>) -> Self {
        Names { range, free: Vec::new(), generations: Vec::new() }
    }

    /// The name that [`Names::take`] would give.
    pub(crate) fn next(&self) -> Option<RegionId> {
        let index = self.free.last().copied().unwrap_or(self.range.start + self.generations.len() as u32);
        // 0 means "no region", so the count skips it when it wraps.
        let generation = self.generations.get(self.at(index)).map_or(1, |last| last.checked_add(1).unwrap_or(1));
        self.range.contains(&index).then_some(RegionId { index, generation })
    }

    /// A name nobody has.
    ///
    /// # Errors
    /// [`Error::RegionTableFull`].
    pub(crate) fn take(&mut self) -> Result<RegionId> {
        let id = self.next().ok_or(Error::RegionTableFull { limit: self.range.len() })?;
        let at = self.at(id.index);
        match self.free.pop() {
            Some(_) => self.generations[at] = id.generation,
            None => self.generations.push(id.generation),
        }
        Ok(id)
    }

    /// Takes a name back.
    pub(crate) fn give_back(&mut self, id: RegionId) {
        self.free.push(id.index);
    }

    fn at(&self, index: u32) -> usize {
        (index - self.range.start) as usize
    }
}

/// The place of a `T` (or of many, one after the other) in the memory of some rank.
///
/// A plain value ([`Pod`]): it may be copied, kept, and put into the memory of other ranks. Using it after
/// its region was freed is an error, not a disaster.
#[repr(C)]
pub struct GlobalPtr<T> {
    pub(crate) region: RegionId,
    /// Bytes from the beginning of the rank's part.
    pub(crate) offset: u64,
    pub(crate) rank: u32,
    unused: u32,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for GlobalPtr<T> {}

/// A pointer to nothing.
impl<T: Pod> Default for GlobalPtr<T> {
    fn default() -> Self {
        GlobalPtr::new(RegionId { index: u32::MAX, generation: 0 }, u32::MAX, 0)
    }
}

// SAFETY: FLAT: four plain numbers without padding, of which any bits are a pointer, perhaps to nothing.
unsafe impl<T: 'static> Zeroable for GlobalPtr<T> {}
// SAFETY: FLAT.
unsafe impl<T: 'static> Pod for GlobalPtr<T> {}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalPtr(rank {}, region {}, byte {})", self.rank, self.region, self.offset)
    }
}

impl<T: Pod> GlobalPtr<T> {
    pub(crate) fn new(region: RegionId, rank: u32, offset: u64) -> Self {
        GlobalPtr { region, offset, rank, unused: 0, element: PhantomData }
    }

    /// The rank whose memory this points into.
    pub fn rank(self) -> usize {
        self.rank as usize
    }

    /// The pointer to the same place on another rank; of regions that have one name on all ranks.
    #[inline]
    #[must_use]
    pub fn on(mut self, rank: usize) -> Self {
        self.rank = rank.try_into().unwrap_or(u32::MAX);
        self
    }

    /// The pointer `count` elements further on.
    #[inline]
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "raw pointers have the same method, and no operator")]
    pub fn add(mut self, count: usize) -> Self {
        self.offset = self.offset.saturating_add((count as u64).saturating_mul(size_of::<T>() as u64));
        self
    }

    /// The same place as that of another type.
    #[inline]
    pub fn cast<U: Pod>(self) -> GlobalPtr<U> {
        GlobalPtr::new(self.region, self.rank, self.offset)
    }
}
