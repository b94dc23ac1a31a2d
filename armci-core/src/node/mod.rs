//! The node: what the ranks that share memory keep for each other.
//!
//! Each rank's slot begins with a [`ControlBlock`]; its pieces are defined where
//! they are used and put side by side here. A block of zero bytes, as the
//! kernel hands out, is a valid block that nobody has used yet.
//!
//! # Safety
//! CONTROL-BLOCK: every slot of the window begins with `size_of::<ControlBlock>()`
//! bytes (a multiple of the page size) that no heap hands out, zero at
//! first, and accessed only as a `ControlBlock`, whose fields are atomics or
//! cells with a protocol of their own. CONTEXT-BLOCK: the same for the blocks
//! of further origin contexts, for which any bytes will do: the private heap hands
//! out page-aligned places for them, and never takes those back.
#![allow(unsafe_code)]

pub(crate) mod attention;
pub(crate) mod doorbell;
mod elsewhere;
pub(crate) mod exchange;
pub(crate) mod message;
pub(crate) mod ring;

use std::ops::Range;

use crossbeam_utils::CachePadded;

use crate::accumulate::locks::ElementLocks;
use crate::error::{Error, Result};
use crate::job::{Bootstrap, Identity};
use crate::memory::RegionId;
use crate::memory::address_map::AddressMap;
use crate::memory::heap::PAGE;
use crate::memory::ledger::{self, Ledger};
use crate::memory::region::{Part, RegionTable};
use crate::memory::together::Together;
use crate::memory::window::{Joined, Window};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::sync::barrier::NodeBarrier;
use crate::sync::bell::Bell;
use attention::Attention;
use doorbell::Doorbell;
use elsewhere::Slots;
use exchange::ExchangeBuffers;
use message::{ContextBlock, MAX_CONTEXTS, Message};
use ring::Ring;

/// Messages a rank's inbox holds.
pub(crate) const INBOX: usize = 512;

/// What a rank shows its neighbours, at the beginning of its slot.
#[repr(C, align(4096))]
#[derive(Debug)]
pub(crate) struct ControlBlock {
    /// Where the rank's own threads sleep.
    pub(crate) main_bell: CachePadded<Bell>,
    /// Where its progress thread sleeps.
    pub(crate) service_bell: CachePadded<Doorbell>,
    /// Who has to be woken for a message.
    pub(crate) attention: CachePadded<Attention>,
    /// Of the node; used in the first slot only.
    pub(crate) barrier: NodeBarrier,
    /// Of the node; used in the first slot only.
    pub(crate) ledger: CachePadded<Ledger>,
    /// Guard this rank's memory against two accumulates at once.
    pub(crate) locks: ElementLocks,
    /// Where the blocks of this rank's further origin contexts lie in its slot; 0 where there never was one.
    pub(crate) contexts: [AtomicU64; MAX_CONTEXTS],
    /// Active messages to this rank.
    pub(crate) inbox: Ring<Message, INBOX>,
    /// This rank's contributions to collectives.
    pub(crate) exchange: ExchangeBuffers,
    /// This rank's parts of all regions.
    pub(crate) regions: RegionTable,
    /// The request slots of the first origin context: that of the thread that joined.
    pub(crate) first_context: ContextBlock,
}

/// What a member of a team keeps for it, in its private heap.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct TeamBlock {
    /// Of the team; used in the first member's block only.
    pub(crate) barrier: NodeBarrier,
    /// Members that touch no block of the team any more; of the first one's.
    pub(crate) departed: AtomicU32,
    /// This member's contributions to collectives.
    pub(crate) exchange: ExchangeBuffers,
}

const _: () = assert!(size_of::<ControlBlock>().is_multiple_of(PAGE as usize));

/// The window with the control blocks in it, and this rank's place among its neighbours.
#[derive(Debug)]
pub(crate) struct Node {
    window: Window,
    who: Identity,
    /// The rank in the first slot; the others follow in order.
    first: usize,
    /// The first rank of each node and the node's number, in the order of ranks.
    nodes: Vec<(usize, usize)>,
    /// Where the slots of each of them lie, in that order; empty if there is one node.
    slots: Vec<Slots>,
    /// Which private regions of this rank were allocated together with others.
    together: Together,
}

impl Node {
    /// Maps the node's memory and opens its ledger; collective over the job.
    pub(crate) fn join(bootstrap: &mut dyn Bootstrap, slot: Option<u64>, memory: Option<u64>) -> Result<Self> {
        let Joined { window, nodes } = Window::join(bootstrap, slot)?;
        let who = bootstrap.identity().clone();
        let first = who.rank - who.local_rank;
        let mut node = Node { window, first, nodes, who, slots: Vec::new(), together: Together::default() };
        if node.window.slot_len() < 2 * node.heap_start() {
            let (slot, control) = (node.window.slot_len(), node.heap_start());
            return Err(Error::Job(format!(
                "a slot of {slot} bytes is too small: its control block alone takes {control}; raise ARMCI_SLOT"
            )));
        }
        if node.who.local_rank == 0 {
            // Virtual nodes share the memory of one machine.
            let fair = || ledger::limit_of_this_machine() / node.who.nodes_here as u64;
            node.ledger().open(memory.unwrap_or_else(fair));
        }
        // Nobody may ask the ledger before it is open.
        node.slots = node.tell_slots(bootstrap)?;
        node.ledger().grant(size_of::<ControlBlock>() as u64).map_err(|refused| Error::Memory {
            rank: node.who.rank,
            asked: size_of::<ControlBlock>() as u64,
            granted: refused.granted,
            limit: refused.limit,
        })?;
        Ok(node)
    }

    /// Who this rank is.
    #[inline]
    pub(crate) fn who(&self) -> &Identity {
        &self.who
    }

    /// Ranks of this node.
    pub(crate) fn ranks(&self) -> usize {
        self.window.slots()
    }

    /// The slot of a rank; `None` if it does not share memory with us.
    #[inline]
    pub(crate) fn slot_of(&self, rank: usize) -> Option<usize> {
        let slot = rank.wrapping_sub(self.first);
        (slot < self.window.slots()).then_some(slot)
    }

    /// The node that a rank is on.
    ///
    /// # Errors
    /// [`Error::Rank`] if it does not exist.
    pub(crate) fn node_of(&self, rank: usize) -> Result<usize> {
        if rank >= self.who.size {
            return Err(Error::Rank { rank, size: self.who.size });
        }
        Ok(self.nodes[self.nth_node(rank)].1)
    }

    /// Which node, in the order of ranks, a rank of the job is on.
    fn nth_node(&self, rank: usize) -> usize {
        self.nodes.partition_point(|(first, _)| *first <= rank) - 1
    }

    /// The control block of a slot.
    #[inline]
    pub(crate) fn control(&self, slot: usize) -> &ControlBlock {
        assert!(slot < self.window.slots(), "slot {slot} of {}", self.window.slots());
        // SAFETY: CONTROL-BLOCK, in a slot that exists; the borrow keeps the window mapped.
        unsafe { &*self.window.address(slot, 0).cast::<ControlBlock>() }
    }

    /// The control block of a rank of this node.
    #[inline]
    pub(crate) fn control_of(&self, rank: usize) -> &ControlBlock {
        self.control(rank.wrapping_sub(self.first))
    }

    /// This rank's own control block.
    #[inline]
    pub(crate) fn mine(&self) -> &ControlBlock {
        self.control(self.who.local_rank)
    }

    /// The block of an origin context of a rank of this node; its first one's, if it has no such context.
    #[inline]
    pub(crate) fn context(&self, rank: usize, index: usize) -> &ContextBlock {
        let control = self.control_of(rank);
        // Acquire pairs with `set_context`: the block was granted before its place was told.
        let offset = match control.contexts.get(index) {
            Some(place) if index != 0 => place.load(Ordering::Acquire),
            _ => 0,
        };
        if offset == 0 || offset > self.window.slot_len() - size_of::<ContextBlock>() as u64 {
            return &control.first_context;
        }
        // SAFETY: CONTEXT-BLOCK.
        unsafe { &*self.window.address(rank.wrapping_sub(self.first), offset).cast::<ContextBlock>() }
    }

    /// Says where the block of a further origin context of this rank lies. Once for each, with a place that serves for
    /// nothing else (CONTEXT-BLOCK).
    pub(crate) fn set_context(&self, index: usize, offset: u64) {
        self.mine().contexts[index].store(offset, Ordering::Release);
    }

    /// The barrier of the node.
    #[inline]
    pub(crate) fn barrier(&self) -> &NodeBarrier {
        &self.control(0).barrier
    }

    /// The ledger of the node.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.control(0).ledger
    }

    /// The window itself.
    #[inline]
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Gives pages of this rank's slot back to the system and the ledger.
    pub(crate) fn give_back(&self, range: Range<u64>) {
        let bytes = range.end - range.start;
        match self.window.give_back(self.who.local_rank, range) {
            Ok(()) => self.ledger().release(bytes),
            // They stay granted, as they are still there.
            Err(error) => tracing::warn!("{bytes} free bytes stay resident: {error}"),
        }
    }

    /// Bytes of a slot that the heaps may hand out; they follow the control block.
    pub(crate) fn heap_len(&self) -> u64 {
        self.window.slot_len() - self.heap_start()
    }

    /// Where the symmetric heap begins in a slot.
    pub(crate) fn heap_start(&self) -> u64 {
        heap_start(self.window.slot_len())
    }

    /// Which regions lie where in a slot.
    #[inline]
    fn map(&self, slot: usize) -> AddressMap<'_> {
        let at = self.window.address(slot, size_of::<ControlBlock>() as u64);
        // SAFETY: ADDRESS-MAP: the heaps begin behind it.
        unsafe { AddressMap::at(at, self.window.slot_len()) }
    }

    /// The region at an offset in a slot, and that rank's part of it.
    #[inline]
    pub(crate) fn region_at(&self, slot: usize, offset: u64) -> Option<(RegionId, Part)> {
        self.control(slot).regions.get(self.map(slot).find(offset)?)
    }

    /// The region that an offset in a slot lies in, or ends, and how far behind its beginning: what is there, or a place
    /// that may be named, but where nothing is reached.
    pub(crate) fn place_at(&self, slot: usize, offset: u64) -> Option<(RegionId, Part, u64)> {
        let at = |offset: u64| self.region_at(slot, offset);
        let inside = at(offset).filter(|(_, part)| offset - part.offset < part.len);
        let ends = |(_, part): &(RegionId, Part)| part.offset + part.len == offset;
        let found = inside.or_else(|| at(offset).filter(ends)).or_else(|| at(offset.checked_sub(1)?).filter(ends));
        found.map(|(id, part)| (id, part, offset - part.offset))
    }

    /// Which private regions of this rank were allocated together with others.
    pub(crate) fn together(&self) -> &Together {
        &self.together
    }

    /// Makes this rank's part of a region known to the node; it fills `block` of the slot, or begins there.
    pub(crate) fn publish(&self, id: RegionId, part: Part, block: Range<u64>) {
        self.mine().regions.publish(id, part);
        self.map(self.who.local_rank).enter(block, Some(id.index));
    }

    /// Makes the node forget what [`Node::publish`] made known.
    pub(crate) fn withdraw(&self, id: RegionId, block: Range<u64>) {
        self.map(self.who.local_rank).enter(block, None);
        self.mine().regions.withdraw(id);
    }
}

/// Where the symmetric heap begins in a slot of so many bytes.
fn heap_start(slot_len: u64) -> u64 {
    size_of::<ControlBlock>() as u64 + AddressMap::len(slot_len)
}
