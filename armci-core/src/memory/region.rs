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

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;

use crate::primitive::{AtomicU64, Ordering};

/// Regions that can be alive at once.
pub(crate) const MAX_REGIONS: usize = 16 << 10;

/// The name of a region: the same on every rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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

/// One entry, as it lies in the window.
#[repr(C, align(32))]
#[derive(Debug)]
struct Entry {
    /// Generation of the live region, or 0.
    generation: AtomicU64,
    offset: AtomicU64,
    len: AtomicU64,
}

/// A rank's table, as it lies in the window. All zero bytes are an empty table.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RegionTable([Entry; MAX_REGIONS]);

impl RegionTable {
    /// Where this rank's part of `id` lies; `None` if there is no such region (any more).
    #[inline]
    pub(crate) fn part(&self, id: RegionId) -> Option<Part> {
        let entry = self.0.get(id.index as usize)?;
        // Acquire pairs with `publish`: offset and length belong to this generation or a later one.
        (entry.generation.load(Ordering::Acquire) == u64::from(id.generation))
            .then(|| Part { offset: entry.offset.load(Ordering::Relaxed), len: entry.len.load(Ordering::Relaxed) })
    }

    /// Makes a part known to every rank of the node. Only the table's owner calls this.
    pub(crate) fn publish(&self, id: RegionId, part: Part) {
        let entry = &self.0[id.index as usize];
        entry.offset.store(part.offset, Ordering::Relaxed);
        entry.len.store(part.len, Ordering::Relaxed);
        entry.generation.store(u64::from(id.generation), Ordering::Release);
    }

    /// Forgets a part. Only the table's owner calls this.
    pub(crate) fn withdraw(&self, id: RegionId) {
        self.0[id.index as usize].generation.store(0, Ordering::Release);
    }
}

/// Hands out region names; every rank makes the same calls, so all agree without talking.
#[derive(Debug, Default)]
pub(crate) struct Names {
    free: Vec<u32>,
    generations: Vec<u32>,
}

impl Names {
    /// The name that [`Names::take`] would give.
    pub(crate) fn next(&self) -> Option<RegionId> {
        let index = match self.free.last() {
            Some(index) => *index as usize,
            None => self.generations.len(),
        };
        // 0 means "no region", so the count skips it when it wraps.
        let generation = self.generations.get(index).map_or(1, |last| last.checked_add(1).unwrap_or(1));
        (index < MAX_REGIONS).then_some(RegionId { index: index as u32, generation })
    }

    /// A name nobody has; `None` if [`MAX_REGIONS`] are alive.
    pub(crate) fn take(&mut self) -> Option<RegionId> {
        let id = self.next()?;
        match self.free.pop() {
            Some(index) => self.generations[index as usize] = id.generation,
            None => self.generations.push(id.generation),
        }
        Some(id)
    }

    /// Takes a name back.
    pub(crate) fn give_back(&mut self, id: RegionId) {
        self.free.push(id.index);
    }
}

/// Memory that every rank may reach: one part on each rank, perhaps of different lengths.
///
/// Allocated by [`World::allocate`](crate::World::allocate), freed by
/// [`World::free`](crate::World::free); both are collective. Dropping the
/// handle frees nothing.
#[derive(Debug)]
#[must_use = "a region that is not freed stays allocated until the job ends"]
pub struct Region {
    pub(crate) id: RegionId,
    pub(crate) block: super::heap::Block,
    /// Where the window of its world begins: no other world has a window there.
    pub(crate) window: u64,
}

impl Region {
    /// The region's name, the same on every rank.
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// A pointer to element `index` of the part on `rank`, counted in elements of `T`.
    ///
    /// Making it checks nothing; using it checks everything.
    #[inline]
    pub fn at<T: Pod>(&self, rank: usize, index: usize) -> GlobalPtr<T> {
        GlobalPtr::new(
            self.id,
            rank.try_into().unwrap_or(u32::MAX),
            (index as u64).saturating_mul(size_of::<T>() as u64),
        )
    }
}

/// The place of a `T` (or of many, one after the other) in the memory of some rank.
///
/// A plain value: it may be copied, kept and sent to other ranks. Using it after
/// its region was freed is an error, not a disaster.
pub struct GlobalPtr<T> {
    pub(crate) region: RegionId,
    pub(crate) rank: u32,
    /// Bytes from the beginning of the rank's part.
    pub(crate) offset: u64,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for GlobalPtr<T> {}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalPtr(rank {}, region {}, byte {})", self.rank, self.region, self.offset)
    }
}

impl<T: Pod> GlobalPtr<T> {
    pub(crate) fn new(region: RegionId, rank: u32, offset: u64) -> Self {
        GlobalPtr { region, rank, offset, element: PhantomData }
    }

    /// The rank whose memory this points into.
    pub fn rank(self) -> usize {
        self.rank as usize
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
        GlobalPtr { region: self.region, rank: self.rank, offset: self.offset, element: PhantomData }
    }
}
