//! The private heap: what a rank hands out of its slot without asking the others.
//!
//! It grows from the top of the slot downward, the symmetric heap (see
//! `allocation.rs`) from the bottom upward, each as far as the other leaves
//! room. Any thread of the rank may ask. Blocks are named by their offset from
//! the slot's *end*, so that the same books ([`Heap`]) serve both.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::RegionId;
use super::heap::{Block, Heap};
use super::region::{Names, Part};
use crate::error::{Error, Result};
use crate::node::Node;

/// Free memory that stays resident, in bytes, before pages are given back.
const KEEP_RESIDENT: u64 = 64 << 20;

/// The private heap of this rank.
#[derive(Debug)]
pub(crate) struct Private {
    node: Arc<Node>,
    books: Mutex<State>,
}

#[derive(Debug)]
struct State {
    heap: Heap,
    names: Names,
    registered: Names,
    /// Bytes from the bottom that the symmetric heap has taken.
    symmetric: u64,
}

impl Private {
    /// The empty private heap of this rank of `node`.
    pub(crate) fn new(node: Arc<Node>) -> Self {
        let heap = Heap::new(node.heap_len());
        Private {
            node,
            books: Mutex::new(State { heap, names: Names::private(), registered: Names::registered(), symmetric: 0 }),
        }
    }

    fn books(&self) -> MutexGuard<'_, State> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a block of at least `bytes`, granted by the ledger and, if `populate`, resident. Its content is arbitrary.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::SlotFull`]; nothing was taken.
    pub(crate) fn allocate(&self, bytes: u64, populate: bool) -> Result<Block> {
        let mut books = self.books();
        let State { heap, symmetric, .. } = &mut *books;
        let block = heap.allocate(bytes.max(1)).ok_or_else(|| self.full(heap, bytes))?;
        if heap.reach() + *symmetric > self.node.heap_len() {
            heap.abandon(block);
            return Err(self.full(heap, bytes));
        }
        let absent = heap.absent(&block);
        let wanted = absent.iter().map(|range| range.end - range.start).sum::<u64>();
        let ledger = self.node.ledger();
        let granted = ledger.grant(wanted).or_else(|_| {
            // What is kept for later may be what is missing.
            self.trim(heap, 0);
            ledger.grant(wanted)
        });
        if let Err(refused) = granted {
            heap.abandon(block);
            let rank = self.node.who().rank;
            return Err(Error::Memory { rank, asked: wanted, granted: refused.granted, limit: refused.limit });
        }
        if populate {
            let populated = absent
                .iter()
                .try_for_each(|range| self.node.window().populate(self.node.who().local_rank, self.in_slot(range)));
            if let Err(error) = populated {
                absent.iter().for_each(|range| self.give_back(range));
                heap.abandon(block);
                return Err(error);
            }
        }
        heap.mark_resident(&block);
        Ok(block)
    }

    /// Takes a block back.
    pub(crate) fn free(&self, block: Block) {
        let mut books = self.books();
        books.heap.free(block);
        self.trim(&mut books.heap, KEEP_RESIDENT);
    }

    /// Takes a block of at least `bytes`, and makes it known to the node as a region of this rank.
    ///
    /// # Errors
    /// As [`Private::allocate`]; [`Error::RegionTableFull`].
    pub(crate) fn enter(&self, bytes: u64) -> Result<(RegionId, Block)> {
        let block = self.allocate(bytes, true)?;
        let taken = self.books().names.take();
        let id = match taken {
            Ok(id) => id,
            Err(full) => {
                self.free(block);
                return Err(full);
            }
        };
        let offset = self.offset(&block);
        self.node.publish(id, Part { offset, len: bytes }, offset..offset + block.len);
        Ok((id, block))
    }

    /// Ends what [`Private::enter`] began.
    pub(crate) fn leave(&self, id: RegionId, block: Block) {
        let offset = self.offset(&block);
        self.node.withdraw(id, offset..offset + block.len);
        self.books().names.give_back(id);
        self.free(block);
    }

    /// A name for memory that lies elsewhere.
    ///
    /// # Errors
    /// [`Error::RegionTableFull`].
    pub(crate) fn take_registered(&self) -> Result<RegionId> {
        self.books().registered.take()
    }

    /// Runs `look` if that name is this rank's and still in use; it is not [given back](Private::give_registered_back)
    /// meanwhile.
    pub(crate) fn while_lent<R>(&self, id: RegionId, look: impl FnOnce() -> R) -> Option<R> {
        let _books = self.books();
        self.node.mine().regions.part(id).map(|_| look())
    }

    /// Takes such a name back, once it is withdrawn and whoever [looks](Private::while_lent) is done.
    pub(crate) fn give_registered_back(&self, id: RegionId) {
        self.books().registered.give_back(id);
    }

    /// Where a block begins, from the beginning of the slot.
    pub(crate) fn offset(&self, block: &Block) -> u64 {
        self.node.window().slot_len() - block.offset - block.len
    }

    /// Lets the symmetric heap take `reach` bytes from its end of the slot, if this one leaves so much; it always does
    /// if that is less than before. What is kept here for later gives way.
    pub(crate) fn admit(&self, reach: u64) -> bool {
        let mut books = self.books();
        let room = self.node.heap_len();
        if books.heap.reach() + reach > room {
            self.trim(&mut books.heap, 0);
        }
        let admitted = books.heap.reach() + reach <= room;
        if admitted {
            books.symmetric = reach;
        }
        admitted
    }

    /// Gives all free pages back.
    pub(crate) fn keep_nothing(&self) {
        self.trim(&mut self.books().heap, 0);
    }

    fn full(&self, heap: &Heap, asked: u64) -> Error {
        let slot = self.node.window().slot_len();
        Error::SlotFull { rank: self.node.who().rank, asked, slot, free: heap.free_bytes() }
    }

    fn trim(&self, heap: &mut Heap, mark: u64) {
        heap.trim(mark).iter().for_each(|range| self.give_back(range));
    }

    fn give_back(&self, range: &Range<u64>) {
        self.node.give_back(self.in_slot(range));
    }

    /// A range of the heap's books, as it lies in the slot.
    fn in_slot(&self, range: &Range<u64>) -> Range<u64> {
        let end = self.node.window().slot_len();
        end - range.end..end - range.start
    }
}
