//! Allocating and freeing regions, and finding places in them.
//!
//! Collective: every rank computes the same in its own books (`memory/books.rs`),
//! and talks only to agree on the largest part, on what the ledger and the
//! system say, and that all are ready. Where all ask for the same and it lies
//! ready, one exchange settles all of that.

use std::ops::Range;

use crate::collectives::Reduce;
use crate::error::{Error, Result};
use crate::memory::books::Books;
use crate::memory::heap::{Block, Heap};
use crate::memory::region::{MAX_REGIONS, Part};
use crate::memory::{GlobalPtr, Region};
use crate::node::HEAP_START;
use crate::world::World;

/// Free memory that a rank keeps resident, in bytes, before it gives pages back.
const KEEP_RESIDENT: u64 = 256 << 20;

impl World {
    /// Allocates memory that every rank can reach: `bytes` of it on this rank, perhaps different on others,
    /// perhaps none. Its content is arbitrary. Collective (`ARMCI_Malloc`).
    ///
    /// Every rank reserves as much as the largest part.
    ///
    /// # Errors
    /// On all ranks alike: [`Error::Memory`] if the node has not enough, [`Error::SlotFull`],
    /// [`Error::RegionTableFull`], [`Error::Diverged`]. Nothing was allocated then.
    pub fn allocate(&self, bytes: usize) -> Result<Region> {
        let mut books = self.primary()?.books.borrow_mut();
        let wish = bytes as u64;
        let regions = &self.node().mine().regions;
        // If all ask for the same and a block of that size lies ready, which is known beforehand, ranks need to meet
        // only once: each publishes its part first.
        let ready = books.ready(wish);
        if let Some((id, block)) = &ready {
            regions.publish(*id, part_of(block, bytes));
        }
        let mut words = [wish, !wish, books.history, !books.history];
        self.all_reduce(&mut words, Reduce::Max)?;
        let [largest, not_smallest, history, not_history] = words;
        if history == !not_history && largest == !not_smallest && ready.is_some() {
            return self.enter(&mut books, |books| books.heap.allocate(wish.max(1)).ok_or_else(unready));
        }
        if let Some((id, _)) = ready {
            regions.withdraw(id);
        }
        if history != !not_history {
            let histories = self.all_gather(&[books.history])?;
            let rank = histories.iter().position(|history| *history != histories[0]).unwrap_or(0);
            return Err(Error::Diverged { rank });
        }
        // From here on every rank computes the same, until memory is asked of the system.
        let region = self.enter(&mut books, |books| self.take_block(&mut books.heap, largest.max(1)))?;
        regions.publish(region.id, part_of(&region.block, bytes));
        self.meet();
        Ok(region)
    }

    /// Enters a region into the books, with the block that `take` finds for it.
    fn enter(&self, books: &mut Books, take: impl FnOnce(&mut Books) -> Result<Block>) -> Result<Region> {
        let id = books.names.take().ok_or(Error::RegionTableFull { limit: MAX_REGIONS })?;
        let block = take(books).inspect_err(|_| books.names.give_back(id))?;
        books.by_offset.insert(HEAP_START + block.offset, id);
        books.note(block.offset, id);
        Ok(Region { id, block, window: self.node().window().base() })
    }

    /// Takes a block of the heap and makes it resident; on all ranks, or on none.
    fn take_block(&self, heap: &mut Heap, bytes: u64) -> Result<Block> {
        let slot = self.node().window().slot_len();
        let full = |heap: &Heap| Error::SlotFull { rank: self.rank(), asked: bytes, slot, free: heap.free_bytes() };
        let block = heap.allocate(bytes).ok_or_else(|| full(heap))?;
        match self.make_resident(heap, &block) {
            Ok(()) => return Ok(block),
            Err(error) => {
                heap.free(block);
                if !matches!(error, Error::Memory { .. }) {
                    return Err(error);
                }
            }
        }
        // Free blocks that are kept resident may be what is missing. Every rank gives up its own, then all try again.
        self.trim(heap, 0);
        self.meet();
        let block = heap.allocate(bytes).ok_or_else(|| full(heap))?;
        self.make_resident(heap, &block).map(|()| block.clone()).inspect_err(|_| heap.free(block))
    }

    /// Has the ledger grant, and the system provide, what of a block is not resident yet; on all ranks, or on none.
    fn make_resident(&self, heap: &mut Heap, block: &Block) -> Result<()> {
        let node = self.node();
        let absent = heap.absent(block);
        if absent.is_empty() {
            return Ok(());
        }
        let wanted = absent.iter().map(|range| range.end - range.start).sum::<u64>();
        let me = self.rank() as u64 + 1;
        // What another rank has in its private heap may leave less room in its slot than there is here.
        let refusal = if !self.private().admit(heap.reach().max(block.offset + block.len)) {
            [me, wanted, heap.free_bytes(), 0]
        } else if let Err(refused) = node.ledger().grant(wanted) {
            [me, wanted, refused.granted, refused.limit]
        } else {
            [0; 4]
        };
        // One rank's refusal is everybody's: the highest such rank speaks.
        let all: Vec<u64> = self.all_gather(&refusal)?;
        let speaker = all.as_chunks::<4>().0.iter().rfind(|refusal| refusal[0] != 0);
        if let Some(&[rank, asked, granted, limit]) = speaker {
            if refusal[0] == 0 {
                node.ledger().release(wanted);
            }
            let rank = rank as usize - 1;
            return Err(match limit {
                0 => Error::SlotFull { rank, asked, slot: node.window().slot_len(), free: granted },
                _ => Error::Memory { rank, asked, granted, limit },
            });
        }
        let me = node.who().local_rank;
        let in_slot = |range: &Range<u64>| HEAP_START + range.start..HEAP_START + range.end;
        let populated = absent.iter().try_for_each(|range| node.window().populate(me, in_slot(range)));
        let mut failed = [u64::from(populated.is_err())];
        self.all_reduce(&mut failed, Reduce::Sum)?;
        if failed == [0] {
            heap.mark_resident(block);
            return Ok(());
        }
        for range in &absent {
            self.give_back(range);
        }
        populated?;
        Err(Error::Job(format!("{} other ranks could not populate {wanted} bytes granted to them", failed[0])))
    }

    /// Gives free resident pages back, if more than `mark` bytes of them are kept.
    fn trim(&self, heap: &mut Heap, mark: u64) {
        for range in heap.trim(mark) {
            self.give_back(&range);
        }
    }

    /// Gives pages of the heap back to the system and the ledger.
    fn give_back(&self, range: &Range<u64>) {
        self.node().give_back(HEAP_START + range.start..HEAP_START + range.end);
    }

    /// Frees a region. Collective (`ARMCI_Free`); completes everybody's operations first.
    ///
    /// # Errors
    /// As [`World::barrier`]; the region is freed all the same. [`Error::NoRegion`] if it is not one of this world;
    /// nothing is freed then.
    pub fn free(&self, region: Region) -> Result<()> {
        let primary = self.primary()?;
        let fenced = self.barrier();
        self.own(&region)?;
        let Region { id, block, .. } = region;
        self.node().mine().regions.withdraw(id);
        let mut books = primary.books.borrow_mut();
        books.note(u64::MAX, id);
        books.names.give_back(id);
        books.by_offset.remove(&(HEAP_START + block.offset));
        books.heap.free(block);
        self.trim(&mut books.heap, KEEP_RESIDENT);
        fenced
    }

    /// This rank's part of a region, if the region is this world's and alive.
    fn own(&self, region: &Region) -> Result<Part> {
        let node = self.node();
        let part = node.mine().regions.part(region.id).filter(|_| region.window == node.window().base());
        part.ok_or(Error::NoRegion { region: region.id, rank: self.rank() })
    }

    /// Where this rank's own part of a region lies, and how many bytes it has.
    ///
    /// Other ranks may write there at any time: it is memory for raw pointers and atomics, not for references,
    /// unless the program keeps everybody else away by synchronising.
    ///
    /// # Errors
    /// [`Error::NoRegion`] if the region was freed.
    pub fn local_part(&self, region: &Region) -> Result<(*mut u8, usize)> {
        let node = self.node();
        let part = self.own(region)?;
        Ok((node.window().address(node.who().local_rank, part.offset), part.len as usize))
    }

    /// The address, the same on every rank of the node, at which the part of a region on `rank` begins.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::NoRegion`].
    pub fn address(&self, region: &Region, rank: usize) -> Result<*mut u8> {
        let node = self.node();
        let slot = node.slot_of(rank).ok_or(Error::Rank { rank, size: self.size() })?;
        // A region begins at the same offset in every slot.
        Ok(node.window().address(slot, self.own(region)?.offset))
    }

    /// The pointer to what lies at `address` in the memory of `rank`: the way of programs that know places as
    /// (rank, address), as ARMCI's C interface has them.
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Address`] if the address lies in no region of that rank.
    pub fn locate(&self, rank: usize, address: *const u8) -> Result<GlobalPtr<u8>> {
        let node = self.node();
        let slot = node.slot_of(rank).ok_or(Error::Rank { rank, size: self.size() })?;
        let nowhere = Error::Address { rank, address: address as usize };
        let Some((_, offset)) = node.window().resolve(address as usize).filter(|(found, _)| *found == slot) else {
            return Err(nowhere);
        };
        let books = self.primary()?.books.borrow();
        let Some((start, id)) = books.by_offset.range(..=offset).next_back() else { return Err(nowhere) };
        let len = node.control(slot).regions.part(*id).map_or(0, |part| part.len);
        if offset - start > len {
            return Err(nowhere);
        }
        Ok(GlobalPtr::new(*id, slot as u32, offset - start))
    }
}

/// A rank's part of the region in a block.
fn part_of(block: &Block, bytes: usize) -> Part {
    Part { offset: HEAP_START + block.offset, len: bytes as u64 }
}

/// A block that lay ready is gone: the books are wrong.
fn unready() -> Error {
    Error::Job("the heap's books contradict themselves: this is a fault of the library".into())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{Error, World};

    #[test]
    fn a_region_of_another_world_is_refused() {
        let (here, there) = (World::init().unwrap(), World::init().unwrap());
        let region = here.allocate(64).unwrap();
        let same_name = there.allocate(64).unwrap();
        assert_eq!(region.id(), same_name.id());
        assert!(matches!(there.local_part(&region), Err(Error::NoRegion { .. })));
        assert!(matches!(there.free(region), Err(Error::NoRegion { .. })));
        there.free(same_name).unwrap();
        let next = there.allocate(64).unwrap();
        there.put_value(1u8, next.at(0, 63)).unwrap();
        there.free(next).unwrap();
        there.finalize().unwrap();
        here.finalize().unwrap();
    }
}
