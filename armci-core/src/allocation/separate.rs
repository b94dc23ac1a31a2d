//! Regions whose parts lie in private heaps: of teams, and of the world where parts differ much.
//!
//! Each member takes its part by itself, and all tell each other how it went and
//! what their parts are called. The names lie in one table on each node, in the
//! private heap of its first member, so that a region costs memory per member once.
//!
//! # Safety
//! NAME-TABLE: from the meeting that ends the allocation until the barrier that
//! begins the end, the table's words are mapped and nobody writes them.
#![allow(unsafe_code)]

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{Pod, Zeroable};

use super::{Prepare, Region};
use crate::collectives::Collective;
use crate::error::{Error, Result};
use crate::gathering::Gathering;
use crate::memory::heap::Block;
use crate::memory::together::Common;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::Node;
use crate::team::Team;
use crate::world::World;

/// What describes the parts of a region that are not alike.
#[derive(Debug)]
pub(super) struct Separate {
    /// The ranks it was allocated over, which free it together.
    gathering: Rc<Gathering>,
    node: Arc<Node>,
    /// The table of names, as an address in the node's window.
    table: *const AtomicU64,
    /// The table's block, with the member that has it.
    block: Option<Block>,
}

impl Separate {
    /// How many have a part.
    pub(super) fn members(&self) -> usize {
        self.gathering.len()
    }

    /// Whether all of them are on this node.
    pub(super) fn is_near(&self) -> bool {
        self.gathering.near().len() == self.gathering.len()
    }

    /// Refuses to meet while they are about to meet otherwise, or when their team was ended.
    pub(super) fn ready(&self) -> Result<()> {
        self.gathering.ready()
    }

    /// Everybody's address, told by everybody.
    pub(super) fn tell_addresses(&self, world: &World, mine: u64) -> Vec<u64> {
        Collective { world, gathering: &self.gathering }.all_gather(&[mine])
    }

    #[inline(never)]
    pub(super) fn at<T: Pod>(&self, member: usize, offset: u64) -> GlobalPtr<T> {
        let Some(rank) = self.gathering.members().get(member) else {
            return GlobalPtr::default();
        };
        // SAFETY: NAME-TABLE; it has a word for every member, and `node` keeps the window mapped.
        let name = unsafe { &*self.table.add(member) }.load(Ordering::Relaxed);
        GlobalPtr::new(RegionId::from_bits(name), rank as u32, offset)
    }
}

/// What a member tells of its part.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Told {
    name: u64,
    description: u64,
    /// Where the table lies in the slot; of the first member of a node.
    table: u64,
    /// 0, or one more than the rank that was refused, and the numbers of an [`Error::Memory`]; or, with a limit of 0, of
    /// an [`Error::SlotFull`]; or, with nothing asked, of an [`Error::RegionTableFull`].
    refused: u64,
    asked: u64,
    granted: u64,
    limit: u64,
}

impl Told {
    fn refusal(rank: usize, error: &Error) -> Self {
        let [asked, granted, limit] = match error {
            Error::Memory { asked, granted, limit, .. } => [*asked, *granted, *limit],
            Error::SlotFull { asked, free, .. } => [*asked, *free, 0],
            Error::RegionTableFull { limit } => [0, 0, *limit as u64],
            _ => [0; 3],
        };
        Told { name: 0, description: 0, table: 0, refused: rank as u64 + 1, asked, granted, limit }
    }

    fn error(&self, slot: u64) -> Option<Error> {
        let rank = self.refused.checked_sub(1)? as usize;
        let Told { asked, granted, limit, .. } = *self;
        Some(match (asked, limit) {
            (0, 0) => Error::Job(format!("rank {rank} could not take its part of the allocation")),
            (0, _) => Error::RegionTableFull { limit: limit as usize },
            (_, 0) => Error::SlotFull { rank, asked, slot, free: granted },
            _ => Error::Memory { rank, asked, granted, limit },
        })
    }
}

impl Team {
    /// Allocates memory that every rank can reach, on the members: `bytes` of it on this rank, perhaps different on
    /// others, perhaps none. Its content is arbitrary. Collective over the team (`ARMCI_Malloc_group`).
    ///
    /// # Errors
    /// On all members alike: [`Error::Memory`] if the node has not enough, [`Error::SlotFull`],
    /// [`Error::RegionTableFull`]. Nothing was allocated then.
    #[track_caller]
    pub fn allocate(&self, bytes: usize) -> Result<Region> {
        self.world().allocating(bytes, Region::id, || allocate(self.collective()?, bytes as u64, 0, &|_| ()))
    }
}

/// Takes this member's part, and the table if it is the first of its node.
fn take(all: Collective<'_>, bytes: u64) -> Result<(RegionId, Block, Option<Block>)> {
    let private = all.world.private();
    let (id, block) = private.enter(bytes)?;
    if all.gathering.near().me() != 0 {
        return Ok((id, block, None));
    }
    match private.allocate(size_of::<u64>() as u64 * all.gathering.len() as u64, true) {
        Ok(table) => Ok((id, block, Some(table))),
        Err(error) => {
            private.leave(id, block);
            Err(error)
        }
    }
}

/// Allocates a region of separate parts over a gathering.
pub(super) fn allocate(all: Collective<'_>, bytes: u64, description: u64, prepare: Prepare<'_>) -> Result<Region> {
    let (world, private, node) = (all.world, all.world.private(), all.world.node());
    let mine = take(all, bytes);
    let told = match &mine {
        Ok((id, _, table)) => {
            let table = table.as_ref().map_or(0, |table| private.offset(table));
            Told { name: id.to_bits(), table, ..Told::zeroed() }
        }
        Err(error) => Told::refusal(world.rank(), error),
    };
    let told = all.all_gather(&[Told { description, ..told }]);
    let unlike = told.iter().position(|other| other.description != told[0].description).map(|member| {
        let [rank, first] = [member, 0].map(|member| all.gathering.members().get(member).unwrap_or(member));
        Error::Unlike { rank, first }
    });
    let refused = told.iter().rev().find_map(|told| told.error(node.window().slot_len()));
    if let Some(refused) = unlike.or(refused) {
        if let Ok((id, block, table)) = mine {
            private.leave(id, block);
            table.into_iter().for_each(|table| private.free(table));
        }
        // Where there is too little, what is free shall be free for all, before anybody asks again.
        private.keep_nothing();
        all.meet();
        return Err(refused);
    }
    let (id, block, table) = mine?;
    let leader = all.gathering.first_here();
    let first = all.gathering.members().get(leader).and_then(|rank| node.slot_of(rank)).unwrap_or(0);
    let names = node.window().address(first, told[leader].table).cast::<AtomicU64>().cast_const();
    if table.is_some() {
        for (member, told) in told.iter().enumerate() {
            // SAFETY: NAME-TABLE: it was handed out for this many words, and the others read it after the meeting.
            unsafe { &*names.add(member) }.store(told.name, Ordering::Relaxed);
        }
    }
    let (members, here) = (all.gathering.members(), all.gathering.near().len());
    if let Some(rank) = members.get(0).filter(|_| here < members.len()) {
        node.together().enter(id, Common { rank: rank as u64, name: told[0].name });
    }
    prepare(id);
    all.meet();
    let separate = Separate { gathering: all.gathering.clone(), node: node.clone(), table: names, block: table };
    Ok(Region { id, block, window: node.window().base(), separate: Some(separate) })
}

impl World {
    /// Frees a region of separate parts.
    pub(super) fn free_separate(&self, region: Region) -> Result<()> {
        self.primary()?;
        self.own(&region)?;
        let Region { id, block, separate: Some(separate), .. } = region else { return Ok(()) };
        separate.gathering.ready()?;
        let fenced = self.fence_all_now();
        separate.gathering.meet(self.origin());
        (0..separate.members()).for_each(|member| self.forget(separate.at::<u8>(member, 0).region));
        self.node().together().leave(id);
        self.transport().withdraw(id);
        self.private().leave(id, block);
        // Nobody reads the table from here on, and every part is gone.
        separate.gathering.meet(self.origin());
        separate.block.into_iter().for_each(|table| self.private().free(table));
        debug_assert_eq!(separate.node.who(), self.node().who());
        fenced
    }
}
