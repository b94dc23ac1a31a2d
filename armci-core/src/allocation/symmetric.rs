//! Regions that lie at one offset in every rank's slot.
//!
//! Every rank computes the same in its own books (`memory/books.rs`),
//! and talks only to agree on the largest part, on what the ledger and the
//! system say, and that all are ready. Where all ask for the same and it lies
//! ready, one exchange settles all of that.

use std::ops::Range;

use super::{Prepare, Region, separate};
use crate::collectives::Reduce;
use crate::error::{Error, Result};
use crate::memory::RegionId;
use crate::memory::books::Books;
use crate::memory::heap::{Block, Heap};
use crate::memory::region::Part;
use crate::world::World;

/// Free memory that a rank keeps resident, in bytes, before it gives pages back.
const KEEP_RESIDENT: u64 = 256 << 20;
/// The largest part, in bytes, from which on it matters how much parts differ.
const UNEVEN_FROM: u64 = 64 << 10;

impl World {
    /// Allocates memory that every rank can reach: `bytes` of it on this rank, perhaps different on others,
    /// perhaps none. Its content is arbitrary. Collective (`ARMCI_Malloc`).
    ///
    /// Every rank reserves as much as the largest part, unless parts differ so much that this would waste more than is
    /// used; then each takes its own.
    ///
    /// # Errors
    /// On all ranks alike: [`Error::Memory`] if the node has not enough, [`Error::SlotFull`],
    /// [`Error::RegionTableFull`], [`Error::Diverged`]. Nothing was allocated then.
    #[track_caller]
    pub fn allocate(&self, bytes: usize) -> Result<Region> {
        self.allocating(bytes, Region::id, || self.allocate_together(bytes, 0, &|_| ()))
    }

    /// [`World::allocate`], of what all ranks must [describe](crate::Group::allocate_described) alike; `prepare` may be
    /// called more than once.
    pub(super) fn allocate_together(&self, bytes: usize, description: u64, prepare: Prepare<'_>) -> Result<Region> {
        let all = self.collective()?;
        let mut books = self.primary()?.books.borrow_mut();
        let wish = bytes as u64;
        // If all ask for the same and a block of that size lies ready, which is known beforehand, ranks need to meet
        // only once: each publishes its part first.
        let ready = books.ready(wish);
        if let Some((id, block)) = &ready {
            self.publish(*id, block, wish);
            prepare(*id);
        }
        if all.agree(books.digest_with(wish ^ description)) && ready.is_some() {
            return self.enter(&mut books, |books| books.heap.allocate(wish.max(1)).ok_or_else(unready));
        }
        if let Some((id, block)) = ready {
            self.withdraw(id, &block);
        }
        let mut words = [wish, !wish, books.history, !books.history, description, !description];
        all.all_reduce(&mut words, Reduce::Max)?;
        let [largest, not_smallest, history, not_history, described, not_described] = words;
        let first_unlike = |mine: u64| {
            let of_all = all.all_gather(&[mine]);
            of_all.iter().position(|other| *other != of_all[0]).unwrap_or(0)
        };
        if history != !not_history {
            return Err(Error::Diverged { rank: first_unlike(books.history) });
        }
        if described != !not_described {
            return Err(Error::Unlike { rank: first_unlike(description), first: 0 });
        }
        if largest != !not_smallest && largest >= UNEVEN_FROM {
            let mut sum = [wish];
            all.all_reduce(&mut sum, Reduce::Sum)?;
            if 2 * u128::from(sum[0]) <= u128::from(largest) * all.gathering.len() as u128 {
                drop(books);
                return separate::allocate(all, wish, description, prepare);
            }
        }
        // From here on every rank computes the same, until memory is asked of the system.
        let region = self.enter(&mut books, |books| self.take_block(&mut books.heap, largest.max(1)))?;
        self.publish(region.id, &region.block, wish);
        prepare(region.id);
        all.meet();
        Ok(region)
    }

    /// A block of the symmetric heap, as it lies in the slot.
    fn in_slot(&self, block: &Block) -> Range<u64> {
        let start = self.node().heap_start() + block.offset;
        start..start + block.len
    }

    /// Makes this rank's part of a region, of so many bytes, known to the node.
    fn publish(&self, id: RegionId, block: &Block, len: u64) {
        let range = self.in_slot(block);
        self.node().publish(id, Part { offset: range.start, len }, range);
    }

    fn withdraw(&self, id: RegionId, block: &Block) {
        self.transport().withdraw(id);
        self.node().withdraw(id, self.in_slot(block));
    }

    /// Enters a region into the books, with the block that `take` finds for it.
    fn enter(&self, books: &mut Books, take: impl FnOnce(&mut Books) -> Result<Block>) -> Result<Region> {
        let id = books.names.take()?;
        let block = take(books).inspect_err(|_| books.names.give_back(id))?;
        books.note(block.offset, id);
        Ok(Region { id, block, window: self.node().window().base(), separate: None })
    }

    /// Takes a block of the heap and makes it resident; on all ranks, or on none.
    fn take_block(&self, heap: &mut Heap, bytes: u64) -> Result<Block> {
        let slot = self.node().window().slot_len();
        let full = |heap: &Heap| Error::SlotFull { rank: self.rank(), asked: bytes, slot, free: heap.free_bytes() };
        let block = heap.allocate(bytes).ok_or_else(|| full(heap))?;
        match self.make_resident(heap, &block) {
            Ok(()) => return Ok(block),
            Err(error) => {
                self.abandon(heap, block);
                if !matches!(error, Error::Memory { .. }) {
                    return Err(error);
                }
            }
        }
        // Free blocks that are kept resident may be what is missing. Every rank gives up its own, then all try again.
        tracing::debug!(rank = self.rank(), bytes, "memory is short: what was kept is given up");
        self.trim(heap, 0);
        self.private().keep_nothing();
        self.synchronize()?;
        let block = heap.allocate(bytes).ok_or_else(|| full(heap))?;
        self.make_resident(heap, &block).map(|()| block.clone()).inspect_err(|_| self.abandon(heap, block))
    }

    /// Takes a block back that could not be made resident everywhere, and the room in the slot that it was to have.
    fn abandon(&self, heap: &mut Heap, block: Block) {
        heap.abandon(block);
        self.private().admit(heap.reach());
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
        let start = node.heap_start();
        let in_slot = |range: &Range<u64>| start + range.start..start + range.end;
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
        let start = self.node().heap_start();
        self.node().give_back(start + range.start..start + range.end);
    }

    /// Frees a symmetric region.
    pub(super) fn free_symmetric(&self, region: Region) -> Result<()> {
        let primary = self.primary()?;
        // What is refused to all frees nothing; what is reported after a meeting does not keep it from being freed.
        self.collective()?;
        let fenced = self.barrier();
        self.own(&region)?;
        let Region { id, block, .. } = region;
        self.withdraw(id, &block);
        self.forget(id);
        let mut books = primary.books.borrow_mut();
        books.note(u64::MAX, id);
        books.names.give_back(id);
        books.heap.free(block);
        self.trim(&mut books.heap, KEEP_RESIDENT);
        // What the heap reaches no further is there for the private one.
        self.private().admit(books.heap.reach());
        fenced
    }
}

/// A block that lay ready is gone: the books are wrong.
fn unready() -> Error {
    Error::Job("the heap's books contradict themselves: this is a fault of the library".into())
}
