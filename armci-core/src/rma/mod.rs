//! One-sided operations: put, get, accumulate, read-modify-write.
//!
//! Each one goes the same way: check and resolve the place, wait if the order
//! of this rank's own operations demands it, choose the path by capability and
//! setting, go. [`contiguous`], [`strided`] and [`vector`] are the faces, [`by_message`]
//! (with [`by_bulk`] and [`by_planes`], for what is long and far) and, for vectors, [`by_list`] the path for what remote memory access cannot or shall not do.
//!
//! What can be outstanding when a call returns: puts and accumulates by message at their targets (they are
//! locally complete, for their bytes have been copied), and the data of a get by message that is to come [later](Completion).

mod by_bulk;
pub(crate) mod by_list;
pub(crate) mod by_message;
mod by_planes;
mod contiguous;
pub(crate) mod far;
mod segment;
mod strided;
mod vector;

pub use segment::Segment;
pub use strided::{Strided, copy_strided};
pub use vector::Segments;

use std::cell::RefCell;

use bytemuck::Pod;

use crate::am::landing::{Group, Tag, Which};
use crate::am::origin::Origin;
use crate::config::Resolve;
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::memory::region::{Known, Part};
use crate::memory::region_cache::RegionCache;
use crate::transport::ofi::Line;
use crate::transport::{Remote, Transport};
use crate::watch::{Call, Kind};
use crate::world::World;

/// When a get's data are there. By remote memory access they are, in either case, when its call returns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion {
    /// When its call returns.
    OnReturn,
    /// When those of this tag have been waited for.
    Later(Tag),
}

impl Completion {
    /// Whether a later wait is for it.
    fn is_later(self) -> bool {
        matches!(self, Completion::Later(_))
    }

    /// The tag for the messages of a get.
    fn tag(self, origin: &Origin) -> Tag {
        match self {
            Completion::OnReturn => origin.tag(Group::Explicit),
            Completion::Later(tag) => tag,
        }
    }

    /// Waits for the get of this tag, if it is to be waited for.
    fn settle(self, origin: &Origin, tag: Tag) -> Result<()> {
        match self {
            Completion::OnReturn => origin.complete(Which::Op(tag.op)),
            Completion::Later(_) => Ok(()),
        }
    }
}

impl World {
    /// Where `bytes` bytes from `place` on lie; the one check of rank, region and bounds at the origin.
    // Always: left to itself the compiler calls it from some loops, where a put of 8 bytes takes 4.4 ns and not 3.4.
    #[inline(always)]
    pub(crate) fn resolve<T: Pod>(&self, place: GlobalPtr<T>, bytes: u64) -> Result<Remote> {
        if !self.is_plain() {
            return self.resolve_otherwise(place.cast(), bytes);
        }
        self.resolve_by_table(place, bytes)
    }

    /// [`World::resolve`] for one of many places of a call that looks beyond the node itself, now and then.
    #[inline(always)]
    pub(crate) fn resolve_one_of_many<T: Pod>(&self, place: GlobalPtr<T>, bytes: u64) -> Result<Remote> {
        if !self.is_plain() {
            return self.resolve_by_setting(place.cast(), bytes);
        }
        self.resolve_by_table(place, bytes)
    }

    /// [`World::resolve`] where the tables of the node are looked at.
    #[inline(always)]
    fn resolve_by_table<T: Pod>(&self, place: GlobalPtr<T>, bytes: u64) -> Result<Remote> {
        let rank = place.rank as usize;
        let Some(slot) = self.node().slot_of(rank) else { return self.resolve_far(place.cast(), bytes) };
        // This rank's own table knows at once that it has freed a region of all; the target's, how long its part is.
        let known = !place.region.is_symmetric() || self.node().mine().regions.has(place.region);
        let Some(part) = self.node().control(slot).regions.part(place.region).filter(|_| known) else {
            return Err(Error::NoRegion { region: place.region, rank });
        };
        Self::within(slot, part, place, bytes)
    }

    /// A place in a rank's part of its region, if it and `bytes` more lie there.
    #[inline(always)]
    fn within<T: Pod>(slot: usize, part: Part, place: GlobalPtr<T>, bytes: u64) -> Result<Remote> {
        let rank = place.rank as usize;
        match place.offset.checked_add(bytes) {
            // Registered memory lies anywhere: its offset from the slot may wrap.
            Some(end) if end <= part.len => Ok(Remote { slot, offset: part.offset.wrapping_add(place.offset) }),
            _ => Err(Error::Bounds { region: place.region, rank, offset: place.offset, bytes, len: part.len }),
        }
    }

    /// [`World::resolve`] where something unusual holds: this thread has left, regions are resolved through the cache, or
    /// nobody else serves other nodes.
    #[cold]
    #[inline(never)]
    fn resolve_otherwise(&self, place: GlobalPtr<u8>, bytes: u64) -> Result<Remote> {
        self.check_open()?;
        self.serve_if_nobody_does();
        self.resolve_by_setting(place, bytes)
    }

    /// Serves this rank where no other thread of it serves other nodes.
    pub(crate) fn serve_if_nobody_does(&self) {
        if self.context().is_unserved() {
            self.origin().serve();
        }
    }

    /// [`World::resolve`] as the setting says.
    #[inline(never)]
    fn resolve_by_setting(&self, place: GlobalPtr<u8>, bytes: u64) -> Result<Remote> {
        let Some(cache) = self.cache() else { return self.resolve_by_table(place, bytes) };
        if self.shared().config.resolve == Resolve::Table {
            return self.resolve_by_table(place, bytes);
        }
        let slot = self.node().slot_of(place.rank());
        let known = self.known(cache, place)?;
        Self::within(slot.unwrap_or(Remote::far(0).slot), known.part, place, bytes)
    }

    /// What is known of the part that a place on any rank lies in; asks its owner, if nothing is.
    fn known(&self, cache: &RefCell<RegionCache>, place: GlobalPtr<u8>) -> Result<Known> {
        let (region, rank) = (place.region, place.rank());
        self.node().node_of(rank)?;
        if region.is_symmetric() && !self.node().mine().regions.has(region) {
            return Err(Error::NoRegion { region, rank });
        }
        let known = cache.borrow_mut().lookup(place.rank, region);
        if let Some(known) = known {
            return Ok(known);
        }
        let known = by_message::describe(self, rank, region)?;
        cache.borrow_mut().insert(place.rank, region, known);
        Ok(known)
    }

    /// [`World::resolve`] of a place on another node.
    #[cold]
    #[inline(never)]
    fn resolve_far(&self, place: GlobalPtr<u8>, bytes: u64) -> Result<Remote> {
        let (known, _) = self.known_far(place)?;
        Self::within(Remote::far(0).slot, known.part, place, bytes)
    }

    /// What is known of the part that a place on another node lies in.
    pub(crate) fn known_far(&self, place: GlobalPtr<u8>) -> Result<(Known, &Line)> {
        self.check_open()?;
        let rank = place.rank();
        match (self.cache(), self.origin().line()) {
            (Some(cache), Some(line)) => Ok((self.known(cache, place)?, line)),
            _ => Err(Error::Rank { rank, size: self.size() }),
        }
    }

    /// The same for a place on another node that was resolved a moment ago.
    pub(crate) fn known_again(&self, place: GlobalPtr<u8>) -> Result<(Known, &Line)> {
        let known = self.cache().and_then(|cache| cache.borrow().again(place.rank, place.region));
        match (known, self.origin().line()) {
            (Some(known), Some(line)) => Ok((known, line)),
            _ => self.known_far(place),
        }
    }

    /// Refuses a place that is not a multiple of `align`.
    #[inline]
    pub(crate) fn aligned<T>(&self, place: GlobalPtr<T>, align: usize, what: &'static str) -> Result<()> {
        if place.offset.is_multiple_of(align as u64) {
            return Ok(());
        }
        Err(Error::Misaligned { region: place.region, rank: place.rank as usize, offset: place.offset, align, what })
    }

    /// Completes at `rank` all that this rank put and accumulated there (`ARMCI_Fence`).
    ///
    /// # Errors
    /// [`Error::Rank`]; or the first refusal of a put or accumulate by message since the last
    /// fence.
    #[track_caller]
    pub fn fence(&self, rank: usize) -> Result<()> {
        if self.is_plain() { self.fence_now(rank) } else { self.fence_watched(rank) }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn fence_watched(&self, rank: usize) -> Result<()> {
        self.watched(&Call::to(Kind::Fence, rank, 0), || self.fence_now(rank))
    }

    fn fence_now(&self, rank: usize) -> Result<()> {
        self.node().node_of(rank)?;
        self.check_open()?;
        self.transport().fence();
        let fenced = self.origin().fence(Some(rank));
        self.check_fence(Some(rank));
        fenced
    }

    /// Completes everywhere all that this rank put and accumulated (`ARMCI_AllFence`).
    ///
    /// # Errors
    /// As [`World::fence`].
    #[track_caller]
    pub fn fence_all(&self) -> Result<()> {
        if self.is_plain() { self.fence_all_now() } else { self.fence_all_watched() }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn fence_all_watched(&self) -> Result<()> {
        self.watched(&Call::of_all(Kind::Fence, None, 0), || self.fence_all_now())
    }

    /// [`World::fence_all`] as a part of something else.
    pub(crate) fn fence_all_now(&self) -> Result<()> {
        self.check_open()?;
        self.transport().fence();
        let fenced = self.origin().fence(None);
        self.check_fence(None);
        fenced
    }
}
