//! Neighbours: ranks of one node that meet, and show each other a few bytes.
//!
//! A barrier in shared memory, two exchange buffers per member, and each member's
//! count of the rounds so far.
//!
//! # Safety
//! EXCHANGE-ROUND (see `node/exchange.rs`): rounds are made by [`Neighbours::round`] only, which keeps their order, and
//! by one thread of a rank, to which its neighbours belong. TEAM-BLOCK: each member's block lies in its private heap
//! at the offset it told, any bytes at first except that its barrier is at rest, and serves nothing else as long as
//! the gathering exists.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use super::Members;
use crate::am::origin::Origin;
use crate::am::parcels::Bells;
use crate::node::exchange::ExchangeBuffers;
use crate::node::{Node, TeamBlock};
use crate::sync::barrier::NodeBarrier;
use crate::sync::bell::Bell;

/// Ranks of one node that meet.
#[derive(Debug)]
pub(crate) struct Neighbours {
    node: Arc<Node>,
    members: Members,
    /// This rank's number among them.
    me: usize,
    /// Rounds of exchange so far.
    rounds: Cell<u64>,
    /// Where each one's [`TeamBlock`] lies in its slot; none for all ranks of the node, who have control blocks.
    blocks: Option<Box<[u64]>>,
}

impl Neighbours {
    /// All ranks of the node.
    pub(crate) fn of_node(node: Arc<Node>) -> Self {
        let first = node.who().rank - node.who().local_rank;
        let (members, me) = (Members::All(first..first + node.ranks()), node.who().local_rank);
        Self::new(node, members, me, None)
    }

    /// Some ranks of the node, this one among them as number `me`, whose blocks lie at these offsets of their slots.
    pub(crate) fn of_team(node: Arc<Node>, members: Members, me: usize, blocks: Box<[u64]>) -> Self {
        assert_eq!(members.len(), blocks.len());
        Self::new(node, members, me, Some(blocks))
    }

    fn new(node: Arc<Node>, members: Members, me: usize, blocks: Option<Box<[u64]>>) -> Self {
        Neighbours { node, members, me, rounds: Cell::new(0), blocks }
    }

    /// Who meets, as ranks of the world.
    #[inline]
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// How many meet.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// This rank's number among them.
    #[inline]
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// Whether they are a team's, and not all ranks of the node.
    pub(super) fn is_team(&self) -> bool {
        self.blocks.is_some()
    }

    /// Where their barrier lies, and where those sleep who do not sleep at it.
    pub(super) fn bells(&self) -> Bells {
        let controls = (0..self.len()).map(|member| self.node.control(self.slot(member)));
        Bells {
            barrier: self.barrier(),
            others: controls.map(|control| ptr::from_ref::<Bell>(&control.main_bell)).collect(),
        }
    }

    /// The slot of a member.
    fn slot(&self, member: usize) -> usize {
        let slot = self.members.get(member).and_then(|rank| self.node.slot_of(rank));
        slot.expect("members of a gathering are ranks of this node")
    }

    /// The block of a member.
    fn block(&self, blocks: &[u64], member: usize) -> &TeamBlock {
        let at = self.node.window().address(self.slot(member), blocks[member]).cast::<TeamBlock>();
        debug_assert!(at.is_aligned());
        // SAFETY: TEAM-BLOCK.
        unsafe { &*at }
    }

    /// The block of the first member of a team.
    pub(crate) fn first_block(&self) -> &TeamBlock {
        self.block(self.blocks.as_deref().expect("only teams have blocks"), 0)
    }

    #[inline]
    pub(super) fn barrier(&self) -> &NodeBarrier {
        match &self.blocks {
            None => self.node.barrier(),
            Some(blocks) => &self.block(blocks, 0).barrier,
        }
    }

    fn exchange(&self, member: usize) -> &ExchangeBuffers {
        match &self.blocks {
            None => &self.node.control(member).exchange,
            Some(blocks) => &self.block(blocks, member).exchange,
        }
    }

    /// Meets all members; nothing else.
    #[inline]
    pub(crate) fn meet(&self, origin: &Origin) {
        self.meet_with(origin, 0);
    }

    #[inline]
    fn meet_with(&self, origin: &Origin, digest: u64) {
        if self.len() == 1 {
            return;
        }
        if let Some(epoch) = self.arrive(digest) {
            self.wait(origin, epoch);
        }
    }

    /// Meets all members, and says whether all have the same digest.
    #[inline]
    pub(crate) fn agree(&self, origin: &Origin, digest: u64) -> bool {
        self.meet_with(origin, digest);
        self.len() == 1 || self.barrier().agreed(self.len() as u32, digest)
    }

    /// Says that this member is here; the epoch of the barrier to be waited over, unless all are here.
    #[inline]
    pub(super) fn arrive(&self, digest: u64) -> Option<u32> {
        let barrier = self.barrier();
        // Ranks without a progress thread sleep where messages wake them too.
        let others = || (0..self.len()).map(|member| self.node.control(self.slot(member)));
        let ring_others =
            || others().filter(|control| !control.attention.threaded()).for_each(|control| control.main_bell.ring());
        barrier.arrive(self.len() as u32, digest, ring_others)
    }

    /// Waits, serving, until all are here.
    pub(super) fn wait(&self, origin: &Origin, epoch: u32) {
        let barrier = self.barrier();
        origin.wait_with_all(barrier.bell(), || barrier.is_over(epoch));
    }

    /// Whether the split-phase barrier with this epoch is over.
    pub(crate) fn is_over(&self, epoch: u32) -> bool {
        self.barrier().is_over(epoch)
    }

    /// Shows `mine` to all members and meets them; returns the round to [read](Round::read) the others' with.
    pub(crate) fn round(&self, origin: &Origin, mine: &[u8]) -> Round<'_> {
        let number = self.rounds.replace(self.rounds.get() + 1);
        // SAFETY: EXCHANGE-ROUND: our own buffers, and this round's barrier comes next.
        unsafe { self.exchange(self.me).write(number, mine) };
        self.meet(origin);
        Round { neighbours: self, number }
    }
}

/// A round of exchange in which all have shown what they have, until the next one begins.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    neighbours: &'a Neighbours,
    number: u64,
}

impl Round<'_> {
    /// Copies what a member has shown, from byte `from` on.
    pub(crate) fn read(&self, member: usize, from: usize, to: &mut [u8]) {
        debug_assert_eq!(self.number + 1, self.neighbours.rounds.get(), "a later round has begun");
        // SAFETY: EXCHANGE-ROUND: this round's barrier is passed, the next one not reached.
        unsafe { self.neighbours.exchange(member).read(self.number, from, to) };
    }
}
