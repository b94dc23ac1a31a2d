//! A gathering: ranks that meet, and show each other a few bytes.
//!
//! What every collective is made of, for the world and for each team alike.
//!
//! ```text
//!   node 0    0  1  2         node 1    3  4            [`Neighbours`] meet in shared memory
//!             |\ | /                    | /
//!             leader <---- parcels ----> leader         the first member of each node speaks for it: [`Beyond`]
//! ```
//!
//! Where all members share a node, a meeting is a barrier, and a round is a look at everybody's buffer. Where they do
//! not, a round takes three steps: neighbours show each other what they have, leaders exchange that of their nodes, and
//! each leader shows its neighbours what it has got.

mod beyond;
mod neighbours;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) use neighbours::Neighbours;

use crate::am::origin::Origin;
use crate::error::{Error, Result};
use crate::node::Node;
use beyond::Beyond;

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
    near: Neighbours,
    /// Those of other nodes, if there are any.
    beyond: Option<Beyond>,
    members: Members,
    /// This rank's number among them.
    me: usize,
    /// What its first member knows it by, as long as it exists; 0 for all ranks of the job.
    name: u64,
    /// Meetings so far, as far as the checker counts them.
    meetings: Cell<u64>,
    /// This rank has begun a split-phase barrier, and not ended it.
    arriving: Cell<bool>,
    /// The team was ended, and its blocks given back.
    ended: Cell<bool>,
}

/// A split-phase barrier that this rank has arrived at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phase {
    /// The epoch of the neighbours' barrier, unless it was over at once.
    near: Option<u32>,
    /// How many such barriers the other nodes have come to then.
    beyond: u64,
}

impl Gathering {
    /// All ranks of the job.
    pub(crate) fn of_all(node: Arc<Node>) -> Self {
        let (rank, size) = (node.who().rank, node.who().size);
        let members = Members::All(0..size);
        let near = Neighbours::of_node(node.clone());
        Self::new(&node, near, members, rank, 0, 0)
    }

    /// Some ranks, this one among them as number `me`, whose blocks lie at these offsets of their slots. `key` tells this
    /// team from all others, on every member alike.
    pub(crate) fn of_team(node: &Arc<Node>, members: Members, me: usize, blocks: &[u64], key: u64) -> Self {
        let here = |member: &usize| members.get(*member).is_some_and(|rank| node.slot_of(rank).is_some());
        let near: Vec<usize> = (0..members.len()).filter(here).collect();
        let ranks = near.iter().filter_map(|member| Some(members.get(*member)? as u32)).collect();
        let offsets = near.iter().map(|member| blocks[*member]).collect();
        let number = near.iter().position(|member| *member == me).expect("a member is its own neighbour");
        let near = Neighbours::of_team(node.clone(), Members::These(ranks), number, offsets);
        Self::new(node, near, members, me, blocks[0], key)
    }

    fn new(node: &Arc<Node>, near: Neighbours, members: Members, me: usize, name: u64, key: u64) -> Self {
        let beyond = (near.len() < members.len()).then(|| Beyond::new(node, &members, me, key));
        let (arriving, ended) = (Cell::new(false), Cell::new(false));
        Gathering { near, beyond, members, me, name, meetings: Cell::new(0), arriving, ended }
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

    /// Those of this node.
    pub(crate) fn near(&self) -> &Neighbours {
        &self.near
    }

    /// The number, among all, of the first member of this node.
    pub(crate) fn first_here(&self) -> usize {
        self.near.members().get(0).and_then(|rank| self.members.position(rank)).unwrap_or(self.me)
    }

    /// Whether it is all ranks of the job.
    pub(crate) fn is_everyone(&self) -> bool {
        !self.near.is_team()
    }

    /// What its first member knows it by, as long as it exists.
    pub(crate) fn name(&self) -> u64 {
        self.name
    }

    /// The number of a meeting that this member comes to now.
    pub(crate) fn next_meeting(&self) -> u64 {
        self.meetings.replace(self.meetings.get() + 1)
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

    /// Makes split-phase barriers of the other nodes known to the neighbours; before any of them can begin.
    pub(crate) fn open(&self, origin: &Origin) {
        if let Some(beyond) = self.leading() {
            beyond.open(origin, &self.near);
        }
    }

    /// Notes that the team is no more, whose blocks will serve for something else.
    pub(crate) fn retire(&self, origin: &Origin) {
        if let Some(beyond) = self.leading() {
            beyond.close(origin);
        }
        self.ended.set(true);
    }

    /// What this rank does for its neighbours, if it leads them.
    fn leading(&self) -> Option<&Beyond> {
        self.beyond.as_ref().filter(|_| self.near.me() == 0)
    }

    /// Meets all members; nothing else.
    #[inline]
    pub(crate) fn meet(&self, origin: &Origin) {
        self.near.meet(origin);
        if self.beyond.is_some() {
            self.meet_beyond(origin);
        }
    }

    #[cold]
    fn meet_beyond(&self, origin: &Origin) {
        if let Some(beyond) = self.leading() {
            beyond.exchange(origin, Vec::new());
        }
        self.near.meet(origin);
    }

    /// Meets all members, and says whether all have the same digest.
    #[inline]
    pub(crate) fn agree(&self, origin: &Origin, digest: u64) -> bool {
        if self.beyond.is_none() {
            return self.near.agree(origin, digest);
        }
        let round = self.round(origin, &digest.to_ne_bytes());
        (0..self.len()).all(|member| {
            let mut theirs = [0; 8];
            round.read(member, 0, &mut theirs);
            theirs == digest.to_ne_bytes()
        })
    }

    /// Begins a split-phase barrier.
    pub(crate) fn begin(&self, origin: &Origin) -> Phase {
        // Also by the last one to arrive: what is refused is refused to all alike.
        self.arriving.set(true);
        let near = if self.near.len() == 1 { None } else { self.near.arrive(0) };
        let Some(beyond) = &self.beyond else { return Phase { near, beyond: 0 } };
        if near.is_none() {
            // The last of the node tells the others that all are here.
            beyond.announce(origin);
        }
        Phase { near, beyond: beyond.next_phase() }
    }

    /// Whether a split-phase barrier is over.
    pub(crate) fn is_over(&self, phase: Phase) -> bool {
        phase.near.is_none_or(|epoch| self.near.is_over(epoch)) && self.near.barrier().beyond() >= phase.beyond
    }

    /// Waits until a split-phase barrier is over, and ends it.
    pub(crate) fn end(&self, origin: &Origin, phase: Phase) {
        if let Some(epoch) = phase.near {
            self.near.wait(origin, epoch);
        }
        if phase.beyond != 0 {
            let barrier = self.near.barrier();
            origin.wait(|| barrier.beyond() >= phase.beyond);
        }
        self.arriving.set(false);
    }

    /// Shows `mine` to all members and meets them; returns the round to [read](Round::read) the others' with.
    #[inline]
    pub(crate) fn round(&self, origin: &Origin, mine: &[u8]) -> Round<'_> {
        match &self.beyond {
            None => Round::Near(self.near.round(origin, mine)),
            Some(beyond) => Round::Whole(self.round_beyond(origin, beyond, mine)),
        }
    }

    #[cold]
    fn round_beyond(&self, origin: &Origin, beyond: &Beyond, mine: &[u8]) -> beyond::Shown {
        // Lengths may differ, and whoever sends them on must know.
        let near = self.near.round(origin, &[&(mine.len() as u32).to_ne_bytes(), mine].concat());
        let gathered = (self.near.me() == 0).then(|| beyond.gather(origin, &near));
        beyond.share(origin, &self.near, gathered)
    }
}

/// A round of exchange in which all have shown what they have, until the next one begins.
#[derive(Debug)]
pub(crate) enum Round<'a> {
    /// Each one's bytes lie in its buffer.
    Near(neighbours::Round<'a>),
    /// All bytes are here.
    Whole(beyond::Shown),
}

impl Round<'_> {
    /// Copies what a member has shown, from byte `from` on.
    #[inline]
    pub(crate) fn read(&self, member: usize, from: usize, to: &mut [u8]) {
        match self {
            Round::Near(round) => round.read(member, from, to),
            Round::Whole(shown) => shown.read(member, from, to),
        }
    }
}
