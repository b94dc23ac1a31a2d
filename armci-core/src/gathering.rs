//! A gathering: ranks of one node that meet, and show each other a few bytes.
//!
//! What every collective is made of, for the world and for each team alike: a
//! barrier in shared memory, two exchange buffers per member, and each member's
//! count of the rounds so far.
//!
//! # Safety
//! EXCHANGE-ROUND (see `node/exchange.rs`): rounds are made by [`Gathering::round`] only, which keeps their order, and
//! by one thread of a rank, to which its gatherings belong. TEAM-BLOCK: each member's block lies in its private heap
//! at the offset it told, any bytes at first except that its barrier is at rest, and serves nothing else as long as
//! the gathering exists.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use crate::am::origin::Origin;
use crate::error::{Error, Result};
use crate::node::exchange::ExchangeBuffers;
use crate::node::{Node, TeamBlock};
use crate::sync::barrier::NodeBarrier;

/// Who meets, as ranks of the world, in order.
#[derive(Debug, Clone)]
pub(crate) enum Members {
    /// Ranks that follow each other.
    All(Range<usize>),
    /// These.
    These(Rc<[u32]>),
}

impl Members {
    /// How many.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Members::All(ranks) => ranks.len(),
            Members::These(ranks) => ranks.len(),
        }
    }

    /// The rank of a member.
    #[inline]
    pub(crate) fn get(&self, member: usize) -> Option<usize> {
        match self {
            Members::All(ranks) => Some(ranks.start + member).filter(|rank| ranks.contains(rank)),
            Members::These(ranks) => ranks.get(member).map(|rank| *rank as usize),
        }
    }

    /// The number of a rank among them.
    pub(crate) fn position(&self, rank: usize) -> Option<usize> {
        match self {
            Members::All(ranks) => ranks.contains(&rank).then(|| rank - ranks.start),
            Members::These(ranks) => ranks.iter().position(|member| *member as usize == rank),
        }
    }
}

/// Ranks that meet.
#[derive(Debug)]
pub(crate) struct Gathering {
    node: Arc<Node>,
    members: Members,
    /// This rank's number among them.
    me: usize,
    /// Rounds of exchange so far.
    rounds: Cell<u64>,
    /// Meetings so far, as far as the checker counts them.
    meetings: Cell<u64>,
    /// Where each one's [`TeamBlock`] lies in its slot; none for all ranks of the node, who have control blocks.
    blocks: Option<Box<[u64]>>,
    /// This rank has begun a split-phase barrier, and not ended it.
    arriving: Cell<bool>,
    /// The team was ended, and its blocks given back.
    ended: Cell<bool>,
}

impl Gathering {
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
        let (rounds, meetings) = (Cell::new(0), Cell::new(0));
        let (arriving, ended) = (Cell::new(false), Cell::new(false));
        Gathering { node, members, me, rounds, meetings, blocks, arriving, ended }
    }

    /// Who meets.
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

    /// Whether it is all ranks of the node.
    pub(crate) fn is_everyone(&self) -> bool {
        self.blocks.is_none()
    }

    /// What its first member knows it by, as long as it exists.
    pub(crate) fn name(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks[0])
    }

    /// The number of a meeting that this member comes to now.
    pub(crate) fn next_meeting(&self) -> u64 {
        self.meetings.replace(self.meetings.get() + 1)
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
    fn barrier(&self) -> &NodeBarrier {
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

    /// Refuses a member that does not exist.
    pub(crate) fn check(&self, member: usize) -> Result<()> {
        if member < self.len() { Ok(()) } else { Err(Error::Rank { rank: member, size: self.len() }) }
    }

    /// Refuses to begin something while a split-phase barrier is under way, or when the team was ended.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        if self.arriving.get() || self.ended.get() { Err(self.unready()) } else { Ok(()) }
    }

    /// What is said to who begins something all the same.
    #[cold]
    fn unready(&self) -> Error {
        Error::Argument(if self.ended.get() {
            "a collective call was made over a team that was freed before: what lives on a team is freed first".into()
        } else {
            "a collective call was made between the beginning and the end of a split-phase barrier of the same ranks"
                .into()
        })
    }

    /// Notes that the team is no more, whose blocks will serve for something else.
    pub(crate) fn retire(&self) {
        self.ended.set(true);
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
    fn arrive(&self, digest: u64) -> Option<u32> {
        let barrier = self.barrier();
        // Ranks without a progress thread sleep where messages wake them too.
        let others = || (0..self.len()).map(|member| self.node.control(self.slot(member)));
        let ring_others =
            || others().filter(|control| !control.attention.threaded()).for_each(|control| control.main_bell.ring());
        barrier.arrive(self.len() as u32, digest, ring_others)
    }

    /// Waits, serving, until all are here.
    fn wait(&self, origin: &Origin, epoch: u32) {
        let barrier = self.barrier();
        origin.wait_with_all(barrier.bell(), || barrier.is_over(epoch));
    }

    /// Begins a split-phase barrier; the epoch to be waited over, if not all are here.
    pub(crate) fn begin(&self) -> Option<u32> {
        // Also by the last one to arrive: what is refused is refused to all alike.
        self.arriving.set(true);
        if self.len() == 1 { None } else { self.arrive(0) }
    }

    /// Whether the split-phase barrier with this epoch is over.
    pub(crate) fn is_over(&self, epoch: u32) -> bool {
        self.barrier().is_over(epoch)
    }

    /// Waits until the split-phase barrier with this epoch, if there is still one, is over, and ends it.
    pub(crate) fn end(&self, origin: &Origin, epoch: Option<u32>) {
        if let Some(epoch) = epoch {
            self.wait(origin, epoch);
        }
        self.arriving.set(false);
    }

    /// Shows `mine` to all members and meets them; returns the round to [read](Gathering::read) the others' with.
    pub(crate) fn round(&self, origin: &Origin, mine: &[u8]) -> Round<'_> {
        let number = self.rounds.replace(self.rounds.get() + 1);
        // SAFETY: EXCHANGE-ROUND: our own buffers, and this round's barrier comes next.
        unsafe { self.exchange(self.me).write(number, mine) };
        self.meet(origin);
        Round { gathering: self, number }
    }
}

/// A round of exchange in which all have shown what they have, until the next one begins.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    gathering: &'a Gathering,
    number: u64,
}

impl Round<'_> {
    /// Copies what a member has shown, from byte `from` on.
    pub(crate) fn read(&self, member: usize, from: usize, to: &mut [u8]) {
        debug_assert_eq!(self.number + 1, self.gathering.rounds.get(), "a later round has begun");
        // SAFETY: EXCHANGE-ROUND: this round's barrier is passed, the next one not reached.
        unsafe { self.gathering.exchange(member).read(self.number, from, to) };
    }
}
