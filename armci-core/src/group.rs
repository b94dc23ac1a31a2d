//! The ranks that something is shared by: the world, or a team; with the calls that both have.
//!
//! Guaranteed: whatever is made over a group numbers its ranks from 0 in the group's own order. There is no default
//! group that calls look up: what is collective is called over the group that was said.

use bytemuck::Pod;

use crate::allocation::Region;
use crate::collectives::{Number, Reduce};
use crate::error::{Error, Result};
use crate::team::Team;
use crate::world::World;

/// Ranks that share something (a processor group of Global Arrays), numbered from 0.
///
/// Whatever is made "over a group" takes a `&World`, a `&Team` or a `&Group`, and where it speaks of ranks, these numbers
/// are meant.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// use armci_core::{Group, Reduce, World};
///
/// let world = World::init()?;
/// let all = Group::from(&world);
/// let half = all.split(Some((all.rank() * 2 / all.size()) as i64), 0)?.expect("every rank has a colour");
/// let mut largest = [all.rank() as i64];
/// half.all_reduce(&mut largest, Reduce::Max)?;
/// assert_eq!(half.world_rank(half.size() - 1)? as i64, largest[0]);
/// assert_eq!(half.sum(1u64)?, half.size() as u64);
/// half.free()?;
/// world.finalize()
/// # }
/// ```
#[derive(Debug, Clone)]
pub enum Group {
    /// All ranks of the job.
    World(World),
    /// The members of a team.
    Team(Team),
}

/// Calls the same method of either.
macro_rules! either {
    ($group:expr, $ranks:ident => $call:expr) => {
        match $group {
            Group::World($ranks) => $call,
            Group::Team($ranks) => $call,
        }
    };
}

impl Group {
    /// The world, which one-sided operations go through.
    #[inline]
    pub fn world(&self) -> &World {
        match self {
            Group::World(world) => world,
            Group::Team(team) => team.world(),
        }
    }

    /// This rank's number in the group (`GA_Pgroup_nodeid`).
    #[inline]
    pub fn rank(&self) -> usize {
        either!(self, ranks => ranks.rank())
    }

    /// How many ranks the group has (`GA_Pgroup_nnodes`).
    #[inline]
    pub fn size(&self) -> usize {
        either!(self, ranks => ranks.size())
    }

    /// The number in the world of a rank of the group (`GA_Pgroup_absolute_id`).
    ///
    /// # Errors
    /// [`Error::Rank`] if there is no such rank.
    pub fn world_rank(&self, rank: usize) -> Result<usize> {
        match self {
            Group::World(world) if rank < world.size() => Ok(rank),
            Group::World(world) => Err(Error::Rank { rank, size: world.size() }),
            Group::Team(team) => team.world_rank(rank),
        }
    }

    /// The number in the group of a rank of the world, if it is in it.
    pub fn rank_of(&self, world_rank: usize) -> Option<usize> {
        match self {
            Group::World(world) => (world_rank < world.size()).then_some(world_rank),
            Group::Team(team) => team.member(world_rank),
        }
    }

    /// The number in `other` of a rank of this group, if it is in both.
    ///
    /// # Errors
    /// [`Error::Rank`] if there is no such rank here.
    pub fn translate(&self, rank: usize, other: &Group) -> Result<Option<usize>> {
        Ok(other.rank_of(self.world_rank(rank)?))
    }

    /// The ranks of the world that it has, in its order.
    pub fn ranks(&self) -> Vec<usize> {
        match self {
            Group::World(world) => (0..world.size()).collect(),
            Group::Team(team) => team.ranks(),
        }
    }

    /// Whether the other has the same ranks, in the same order.
    pub fn same_ranks(&self, other: &Group) -> bool {
        match (self, other) {
            (Group::World(_), Group::World(_)) => true,
            _ => {
                let same = |rank| self.world_rank(rank).ok() == other.world_rank(rank).ok();
                self.size() == other.size() && (0..self.size()).all(same)
            }
        }
    }

    /// Makes one group for each colour, of the ranks that name it, ordered by `key`, then by rank; none for a rank
    /// without a colour (`GA_Pgroup_split_irreg`). Collective over this group.
    ///
    /// # Errors
    /// As [`World::create_team`].
    #[track_caller]
    pub fn split(&self, colour: Option<i64>, key: i64) -> Result<Option<Group>> {
        Ok(either!(self, ranks => ranks.split(colour, key))?.map(Group::Team))
    }

    /// Makes a group of these ranks of this one, in this order (`GA_Pgroup_create`). Collective over them, and only them.
    ///
    /// # Errors
    /// As [`World::create_team`].
    #[track_caller]
    pub fn of_ranks(&self, ranks: &[usize]) -> Result<Group> {
        let ranks: Vec<usize> = ranks.iter().map(|rank| self.world_rank(*rank)).collect::<Result<_>>()?;
        self.world().create_team(&ranks).map(Group::Team)
    }

    /// Ends a group that was made by [`Group::split`] or [`Group::of_ranks`], as [`Team::free`] does
    /// (`GA_Pgroup_destroy`); arrays and counters that live on it are to be freed first. Collective. The world ends with
    /// [`World::finalize`]: here it stays.
    ///
    /// # Errors
    /// As [`Team::free`].
    #[track_caller]
    pub fn free(self) -> Result<()> {
        match self {
            Group::World(_) => Ok(()),
            Group::Team(team) => team.free(),
        }
    }

    /// Memory on each rank of the group, as [`World::allocate`]; to be freed by [`World::free`]. Collective.
    ///
    /// # Errors
    /// As [`World::allocate`].
    #[track_caller]
    pub fn allocate(&self, bytes: usize) -> Result<Region> {
        either!(self, ranks => ranks.allocate(bytes))
    }

    /// Completes what all ranks of the group wrote, and waits for them (`GA_Sync`, `GA_Pgroup_sync`). Collective.
    ///
    /// # Errors
    /// As [`World::barrier`].
    #[inline]
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        either!(self, ranks => ranks.barrier())
    }

    /// Waits for all ranks of the group, and completes nothing, as [`World::synchronize`]. Collective.
    ///
    /// # Errors
    /// As [`World::synchronize`].
    #[inline]
    #[track_caller]
    pub fn meet(&self) -> Result<()> {
        either!(self, ranks => ranks.synchronize())
    }

    /// Gives every rank the values that rank `root` of the group has (`GA_Brdcst`, `GA_Pgroup_brdcst`). Collective.
    ///
    /// # Errors
    /// As [`World::broadcast`].
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, root: usize, values: &mut [T]) -> Result<()> {
        either!(self, ranks => ranks.broadcast(root, values))
    }

    /// Combines the values of all ranks, element by element, and gives all the result (`GA_Dgop`, `GA_Igop`,
    /// `GA_Pgroup_dgop`). Collective.
    ///
    /// # Errors
    /// As [`World::all_reduce`].
    #[track_caller]
    pub fn all_reduce<T: Number>(&self, values: &mut [T], reduce: Reduce) -> Result<()> {
        either!(self, ranks => ranks.all_reduce(values, reduce))
    }

    /// The sum of what all ranks bring (`GA_Dgop` of one number). Collective.
    ///
    /// # Errors
    /// As [`World::all_reduce`].
    #[track_caller]
    pub fn sum<T: Number>(&self, value: T) -> Result<T> {
        let mut sum = [value];
        self.all_reduce(&mut sum, Reduce::Sum)?;
        Ok(sum[0])
    }

    /// Gives every rank the values of all, in rank order. Collective.
    ///
    /// # Errors
    /// As [`World::all_gather`].
    #[track_caller]
    pub fn all_gather<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
        either!(self, ranks => ranks.all_gather(mine))
    }
}

impl From<&World> for Group {
    fn from(world: &World) -> Self {
        Group::World(world.clone())
    }
}

impl From<&Team> for Group {
    fn from(team: &Team) -> Self {
        Group::Team(team.clone())
    }
}

impl From<&Group> for Group {
    fn from(group: &Group) -> Self {
        group.clone()
    }
}
