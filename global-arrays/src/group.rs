//! The ranks that an array lives on: the world, or a team.

use armci_core::{Number, Reduce, Region, Result, Team, World};
use bytemuck::Pod;

/// The ranks that share an array (a processor group of Global Arrays), numbered from 0.
///
/// Where this crate speaks of the ranks of an array, these numbers are meant.
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

    /// This rank's number in the group.
    #[inline]
    pub fn rank(&self) -> usize {
        either!(self, ranks => ranks.rank())
    }

    /// How many ranks the group has.
    #[inline]
    pub fn size(&self) -> usize {
        either!(self, ranks => ranks.size())
    }

    /// The number in the world of a rank of the group.
    ///
    /// # Errors
    /// [`armci_core::Error::Rank`] if there is no such rank.
    pub fn world_rank(&self, rank: usize) -> Result<usize> {
        match self {
            Group::World(world) if rank < world.size() => Ok(rank),
            Group::World(world) => Err(armci_core::Error::Rank { rank, size: world.size() }),
            Group::Team(team) => team.world_rank(rank),
        }
    }

    /// Memory on each rank of the group; collective.
    #[track_caller]
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Region> {
        either!(self, ranks => ranks.allocate(bytes))
    }

    /// Completes what all ranks of the group wrote, and waits for them (`GA_Pgroup_sync`). Collective.
    ///
    /// # Errors
    /// As [`World::barrier`].
    #[inline]
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        either!(self, ranks => ranks.barrier())
    }

    /// Waits for all ranks of the group, and completes nothing.
    #[inline]
    #[track_caller]
    pub(crate) fn meet(&self) -> Result<()> {
        either!(self, ranks => ranks.synchronize())
    }

    /// Gives every rank the values that rank `root` of the group has (`GA_Pgroup_brdcst`). Collective.
    ///
    /// # Errors
    /// As [`World::broadcast`].
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, root: usize, values: &mut [T]) -> Result<()> {
        either!(self, ranks => ranks.broadcast(root, values))
    }

    /// Combines the values of all ranks, element by element, and gives all the result (`GA_Pgroup_dgop`). Collective.
    ///
    /// # Errors
    /// As [`World::all_reduce`].
    #[track_caller]
    pub fn all_reduce<T: Number>(&self, values: &mut [T], reduce: Reduce) -> Result<()> {
        either!(self, ranks => ranks.all_reduce(values, reduce))
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
