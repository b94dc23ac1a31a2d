//! Places as (rank, address): what C's interface has, and how it becomes a [`GlobalPtr`] and back.
//!
//! An address is its owner's. On a node it is right for all, and found in the owner's map. Of another node it is known how
//! its slots lie, so it takes
//!
//! | the address lies in | to find its region |
//! |---|---|
//! | no slot of that rank | nothing: it is refused at once |
//! | a symmetric region | this rank's own map: its part lies at the same place behind the heap's beginning |
//! | a private region, of a team that this rank is of | one question to the owner, whose answer is [kept](crate::memory::place_cache) |
//! | another private region | a question each time: nobody would tell this rank when something else lies there |

use bytemuck::Pod;

use super::Region;
use super::separate::Separate;
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::rma::by_message;
use crate::transport::Remote;
use crate::world::World;

impl World {
    /// The address at which the part of a region on `rank` (of the world or team it was allocated over) begins: the same
    /// on every rank of that rank's node. A rank of another node is asked for it, if the parts lie apart.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::NoRegion`].
    pub fn address(&self, region: &Region, rank: usize) -> Result<*mut u8> {
        let part = self.own(region)?;
        let size = region.separate.as_ref().map_or(self.size(), Separate::members);
        if rank >= size {
            return Err(Error::Rank { rank, size });
        }
        let node = self.node();
        if region.separate.is_none() && node.slot_of(rank).is_none() {
            let slot = node.far_slot(rank)?;
            return Ok(slot.address(slot.heap_start() + (part.offset - node.heap_start())));
        }
        self.address_of(region.at::<u8>(rank, 0))
    }

    /// [`World::address`] where memory can be touched by it: nothing if `rank` is on another node, where the address means
    /// something else, or nothing.
    ///
    /// # Errors
    /// As [`World::address`].
    pub fn near_address(&self, region: &Region, rank: usize) -> Result<Option<*mut u8>> {
        let members = region.separate.as_ref().map_or(self.size(), Separate::members);
        let far = rank < members && self.node().slot_of(region.at::<u8>(rank, 0).rank()).is_none();
        if far { self.own(region).map(|_| None) } else { self.address(region, rank).map(Some) }
    }

    /// [`World::address`] of every rank that the region was allocated over. Collective over them: where parts lie apart on
    /// several nodes, each tells the others. (The table of `ARMCI_Malloc`.)
    ///
    /// # Errors
    /// As [`World::address`] and [`World::barrier`].
    pub fn addresses(&self, region: &Region) -> Result<Vec<*mut u8>> {
        let apart = region.separate.as_ref().filter(|separate| !separate.is_near());
        let Some(separate) = apart else {
            let members = region.separate.as_ref().map_or(self.size(), Separate::members);
            return (0..members).map(|rank| self.address(region, rank)).collect();
        };
        self.primary()?;
        separate.ready()?;
        let (mine, _) = self.local_part(region)?;
        let told = separate.tell_addresses(self, mine.expose_provenance() as u64);
        Ok(told.into_iter().map(|address| std::ptr::without_provenance_mut(address as usize)).collect())
    }

    /// The address of a place: the same on every rank of its owner's node, unless the memory is registered, which only its
    /// owner has an address for.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::NoRegion`]; [`Error::Bounds`] if it lies behind the end of its part.
    pub fn address_of<T: Pod>(&self, place: GlobalPtr<T>) -> Result<*mut u8> {
        let node = self.node();
        let Remote { slot, offset } = self.resolve(place, 0)?;
        if place.region.is_registered() && place.rank() != self.rank() {
            return Err(Error::Argument(format!(
                "rank {} has no address for memory that rank {} registered: it lies in that process alone",
                self.rank(),
                place.rank()
            )));
        }
        match node.slot_of(place.rank()) {
            Some(_) => Ok(node.window().address(slot, offset)),
            None => Ok(node.far_slot(place.rank())?.address(offset)),
        }
    }

    /// The pointer to what lies at `address` in the memory of `rank`: the way of programs that know places as
    /// (rank, address), as ARMCI's C interface has them.
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Address`] if the address lies in no region of that rank.
    // Always: C names every place by its address, and a pointer handed over in memory takes longer than finding it.
    #[inline(always)]
    pub fn locate(&self, rank: usize, address: *const u8) -> Result<GlobalPtr<u8>> {
        let node = self.node();
        let Some(slot) = node.slot_of(rank) else { return self.locate_far(rank, address as usize) };
        if let Some((found, offset)) = node.window().resolve(address as usize)
            && found == slot
        {
            if let Some((id, part)) = node.region_at(slot, offset)
                && offset - part.offset < part.len
            {
                return Ok(GlobalPtr::new(id, rank as u32, offset - part.offset));
            }
            return self.locate_end(rank, slot, offset);
        }
        Err(Error::Address { rank, address: address as usize })
    }

    /// The region that ends at an offset in a slot of this node: a pointer there may be named, but nothing reached.
    #[cold]
    #[inline(never)]
    fn locate_end(&self, rank: usize, slot: usize, offset: u64) -> Result<GlobalPtr<u8>> {
        match self.node().place_at(slot, offset) {
            Some((id, _, at)) => Ok(GlobalPtr::new(id, rank as u32, at)),
            None => Err(Error::Address { rank, address: self.node().window().address(slot, offset).addr() }),
        }
    }

    /// [`World::locate`] of a rank that shares no memory with this one.
    #[cold]
    #[inline(never)]
    fn locate_far(&self, rank: usize, address: usize) -> Result<GlobalPtr<u8>> {
        let slot = self.node().far_slot(rank)?;
        let nowhere = || Error::Address { rank, address };
        let offset = slot.offset(address).ok_or_else(nowhere)?;
        self.check_open()?;
        if let Some(place) = self.locate_symmetric(rank, offset.checked_sub(slot.heap_start()).ok_or_else(nowhere)?)? {
            return Ok(place);
        }
        let place = |region, start| GlobalPtr::new(region, rank as u32, address as u64 - start);
        let (places, together) = (&self.context().places, self.node().together());
        let known = places.borrow_mut().lookup(rank as u32, address as u64, together);
        if let Some(known) = known {
            return Ok(place(known.region, known.start));
        }
        let found = by_message::locate(self, rank, address)?;
        // A symmetric one would be known here, too: this rank has freed it, and its owner is about to.
        if found.region.is_symmetric() || found.start > address as u64 {
            return Err(nowhere());
        }
        places.borrow_mut().insert(rank as u32, found, together);
        Ok(place(found.region, found.start))
    }

    /// The place so far behind the beginning of a heap elsewhere, if a symmetric region lies or ends there.
    fn locate_symmetric(&self, rank: usize, in_heap: u64) -> Result<Option<GlobalPtr<u8>>> {
        let node = self.node();
        let offset = node.heap_start() + in_heap;
        let at = |offset: u64| node.region_at(node.who().local_rank, offset).filter(|(id, _)| id.is_symmetric());
        // The parts may differ in length: that there is one here says where the other begins, not where it ends.
        for (id, part) in [at(offset), at(offset - 1)].into_iter().flatten() {
            let place = GlobalPtr::new(id, rank as u32, offset - part.offset);
            let len = self.known_far(place)?.0.part.len;
            if place.offset <= len {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}
