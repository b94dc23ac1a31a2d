//! Teams: some of the ranks, for collectives and allocations of their own.
//!
//! ```text
//!   world   0  1  2  3  4  5
//!   team    0     1     2           create_team(&[0, 2, 4]), by ranks 0, 2 and 4
//!           colour 7     colour 9   split(Some(colour), key), by all
//! ```
//!
//! # Protocol of creation
//! Only members take part. Each takes a block for the team from its private heap and tells the first member where it
//! lies; the first tells everybody all of it. Both are active messages of one kind, which the board of the receiver
//! (`am/board.rs`) collects under a key that all members compute alike: a digest of the list of ranks, and how often this list has
//! made a team. A member that has no memory for its block says so instead, and creation fails everywhere.
//!
//! # Protocol of the end
//! After a barrier of the team, each member says that it touches the barrier of its node no more, by a count in the block
//! of the first member there; that one gives its block back once all have.
//!
//! # Safety
//! TEAM-BLOCK (see `gathering.rs`).
#![allow(unsafe_code)]

use std::rc::Rc;
use std::sync::atomic::Ordering;

use crate::am::board::{Board, NO_MEMORY, TOLD_MAX, Told};
use bytemuck::Pod;

use crate::collectives::{Arrival, Collective, Number, Reduce, faces};
use crate::error::{Error, Result};
use crate::gathering::{Gathering, Members};
use crate::memory::heap::Block;
use crate::node::TeamBlock;
use crate::watch::{Call, Kind};
use crate::world::World;

/// Some of the job's ranks, in an order of their own: member `i` is a rank of the world.
///
/// Collective calls over a team are made by its members only, from the thread that joined; their ranks are those of the
/// team. One-sided calls name ranks of the world always, which [`Region::at`](crate::Region::at) does for regions of a
/// team.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// use armci_core::{Reduce, World};
///
/// let world = World::init()?;
/// // Ranks of even and of odd number, each in a team.
/// let team = world.split(Some((world.rank() % 2) as i64), 0)?.unwrap();
/// let mut sum = [world.rank() as i64];
/// team.all_reduce(&mut sum, Reduce::Sum)?;
///
/// let region = team.allocate(8 * 10)?;
/// let next = (team.rank() + 1) % team.size();
/// world.put(&[sum[0]; 10], region.at(next, 0))?;
/// team.barrier()?;
/// assert_eq!(world.get_value::<i64>(region.at(team.rank(), 9))?, sum[0]);
/// world.free(region)?;
/// team.free()?;
/// world.finalize()
/// # }
/// ```
///
/// Clones are the same team: it is freed once, after which the others refuse what they are asked.
#[derive(Debug, Clone)]
#[must_use = "a team that is not freed keeps its memory until the job ends"]
pub struct Team {
    world: World,
    gathering: Rc<Gathering>,
    /// Of this rank, in its private heap; none in a team of one.
    block: Block,
}

impl World {
    /// Makes a team of these ranks, in this order. Collective over them, and only them (`ARMCI_Group_create`).
    ///
    /// # Errors
    /// On all of them: [`Error::Rank`]; [`Error::Argument`] if a rank is
    /// named twice; [`Error::Memory`] on a member that has no memory for it, [`Error::Job`] on the others then.
    /// [`Error::Argument`] if this rank is not among them: others wait in vain then.
    #[track_caller]
    pub fn create_team(&self, ranks: &[usize]) -> Result<Team> {
        self.watched(&Call::of_all(Kind::Collective, None, 0), || self.create(ranks))
    }

    fn create(&self, ranks: &[usize]) -> Result<Team> {
        let board = &self.primary()?.board;
        ranks.iter().try_for_each(|rank| self.node().node_of(*rank).map(drop))?;
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let rank = pair[0];
            return Err(Error::Argument(format!("rank {rank} was named twice for a team")));
        }
        let Some(me) = ranks.iter().position(|rank| *rank == self.rank()) else {
            return Err(Error::Argument(format!(
                "rank {} was to create a team of ranks {ranks:?}, which it is not of",
                self.rank()
            )));
        };
        let ranks: Rc<[u32]> = ranks.iter().map(|rank| *rank as u32).collect();
        let key = board.key(&ranks);

        // The heap's blocks are aligned to lines of the cache, which is less than padding against neighbours asks for.
        const ALIGN: u64 = align_of::<TeamBlock>() as u64;
        let block = self.private().allocate(size_of::<TeamBlock>() as u64 + ALIGN, true);
        let offset = block.as_ref().map_or(NO_MEMORY, |block| self.private().offset(block).next_multiple_of(ALIGN));
        let first_here = ranks.iter().find(|rank| self.node().slot_of(**rank as usize).is_some());
        if first_here == ranks.get(me) && offset != NO_MEMORY {
            let at = self.node().window().address(self.node().who().local_rank, offset);
            // SAFETY: TEAM-BLOCK: it was handed out a moment ago, large and aligned enough; nobody knows of it yet.
            let first = unsafe { &*at.cast::<TeamBlock>() };
            first.barrier.reset();
            first.departed.store(0, Ordering::Release);
        }
        let told = self.tell(board, key, &ranks, Told { member: me as u64, offset })?;
        if told.iter().any(|told| told.offset == NO_MEMORY) {
            self.private().free(block?);
            let members: Vec<_> = told.iter().filter(|told| told.offset == NO_MEMORY).map(|told| told.member).collect();
            return Err(Error::Job(format!("members {members:?} of a team to be have no memory for their part of it")));
        }
        let mut offsets = vec![0; ranks.len()].into_boxed_slice();
        told.iter().for_each(|told| offsets[told.member as usize] = told.offset);
        let gathering = Gathering::of_team(self.node(), Members::These(ranks), me, &offsets, key);
        gathering.open(self.origin());
        Ok(Team { world: self.clone(), gathering: Rc::new(gathering), block: block? })
    }

    /// Tells the members of a team to be about this one, and returns what all have told.
    fn tell(&self, board: &Board, key: u64, ranks: &[u32], mine: Told) -> Result<Vec<Told>> {
        let tell = |rank: u32, told: &[Told]| {
            let payload = [bytemuck::bytes_of(&key), bytemuck::cast_slice(told)].concat();
            self.request(rank as usize, board.handler(), &payload).map(drop)
        };
        let wait_for = |count| {
            let mut told = board.take(key, count);
            self.origin().wait(|| {
                told = told.take().or_else(|| board.take(key, count));
                told.is_some()
            });
            told.unwrap_or_default()
        };
        if mine.member != 0 {
            tell(ranks[0], &[mine])?;
            return Ok(wait_for(ranks.len()));
        }
        board.add(key, [mine]);
        let all = wait_for(ranks.len());
        for rank in &ranks[1..] {
            all.chunks(TOLD_MAX).try_for_each(|told| tell(*rank, told))?;
        }
        Ok(all)
    }
}

/// A team from the colours and keys of all of some ranks: those of this rank's colour, by key, then by rank.
fn split(world: &World, all: Collective<'_>, colour: Option<i64>, key: i64) -> Result<Option<Team>> {
    let mine = [i64::from(colour.is_some()), colour.unwrap_or(0), key];
    let told = all.all_gather(&mine);
    if colour.is_none() {
        return Ok(None);
    }
    let same = told.as_chunks::<3>().0.iter().enumerate().filter(|(_, told)| told[..2] == mine[..2]);
    let mut members: Vec<(i64, usize)> =
        same.filter_map(|(member, told)| Some((told[2], all.gathering.members().get(member)?))).collect();
    // Stable: equal keys stay in the order of ranks here.
    members.sort_by_key(|(key, _)| *key);
    let ranks: Vec<usize> = members.into_iter().map(|(_, rank)| rank).collect();
    world.create(&ranks).map(Some)
}

impl World {
    /// Makes one team for each colour, of the ranks that name it, ordered by `key`, then by rank; none for a rank
    /// without a colour. Collective.
    ///
    /// # Errors
    /// As [`World::create_team`].
    #[track_caller]
    pub fn split(&self, colour: Option<i64>, key: i64) -> Result<Option<Team>> {
        self.collective()?.call(Kind::Collective, 0, |all| split(self, all, colour, key))
    }
}

impl Team {
    /// [`World::split`] of a team.
    ///
    /// # Errors
    /// As [`World::create_team`].
    #[track_caller]
    pub fn split(&self, colour: Option<i64>, key: i64) -> Result<Option<Team>> {
        self.collective()?.call(Kind::Collective, 0, |all| split(&self.world, all, colour, key))
    }

    /// This rank's number in the team, `0..size`.
    pub fn rank(&self) -> usize {
        self.gathering.me()
    }

    /// How many members the team has.
    pub fn size(&self) -> usize {
        self.gathering.len()
    }

    /// The rank in the world of a member (`ARMCI_Absolute_id`).
    ///
    /// # Errors
    /// [`Error::Rank`] if there is no such member.
    pub fn world_rank(&self, member: usize) -> Result<usize> {
        self.gathering.members().get(member).ok_or(Error::Rank { rank: member, size: self.size() })
    }

    /// The number in the team of a rank of the world, if it is a member.
    pub fn member(&self, world_rank: usize) -> Option<usize> {
        self.gathering.members().position(world_rank)
    }

    /// The number in `other` of a member of this team, if it is in both.
    ///
    /// # Errors
    /// [`Error::Rank`] if there is no such member here.
    pub fn translate(&self, member: usize, other: &Team) -> Result<Option<usize>> {
        Ok(other.member(self.world_rank(member)?))
    }

    /// The members' ranks in the world, in order.
    pub fn ranks(&self) -> Vec<usize> {
        (0..self.size()).filter_map(|member| self.gathering.members().get(member)).collect()
    }

    /// The world it is a part of.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Its members, for a collective call.
    #[inline]
    pub(crate) fn collective(&self) -> Result<Collective<'_>> {
        self.world.primary()?;
        self.gathering.ready()?;
        Ok(Collective { world: &self.world, gathering: &self.gathering })
    }

    /// Ends the team: completes everybody's operations, and frees its memory. Collective (`ARMCI_Group_free`). Regions
    /// allocated over it stay, but cannot be freed without it, so free them first.
    ///
    /// # Errors
    /// As [`Team::barrier`]; it has ended all the same. During a split-phase barrier of the team, and once this rank has
    /// left the job, it is refused; the team keeps its memory then.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        self.collective()?;
        let world = self.world.clone();
        world.watched(&Call::of_all(Kind::Collective, None, 0), || self.end())
    }

    fn end(self) -> Result<()> {
        let fenced = self.barrier();
        let world = &self.world;
        self.gathering.retire(world.origin());
        let near = self.gathering.near();
        let others = near.len() as u32 - 1;
        let first = near.first_block();
        if near.me() == 0 {
            world.origin().wait(|| first.departed.load(Ordering::Acquire) == others);
        } else {
            first.departed.fetch_add(1, Ordering::AcqRel);
            let slot = near.members().get(0).and_then(|rank| world.node().slot_of(rank));
            slot.into_iter().for_each(|slot| world.node().control(slot).main_bell.ring());
        }
        world.private().free(self.block);
        fenced
    }
}

faces!(Team);
