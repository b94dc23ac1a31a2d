//! The groups of ranks that C has handles to, by number; group 0 is the world.
//!
//! A group is a [`Team`], the world, or, for a rank that named it without being of it, only a list of ranks. With it go
//! the MPI communicator of its ranks, if there is an MPI, and what `ARMCI_Malloc_group` has allocated over it. A group's
//! number is this rank's own: other ranks may have another for it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::rc::Rc;

use armci_core::{Error, Number, Reduce, Region, Result, Team, World};
use bytemuck::Pod;

use crate::allocations::Allocations;
use crate::mpi::{MPI_Comm, mpi};

/// A group, as this rank sees it.
pub(crate) struct Group {
    pub(crate) number: u32,
    /// The ranks in the world, in the group's order.
    pub(crate) to_world: Box<[c_int]>,
    /// The rank in the group of each rank of the world; -1 for those outside.
    pub(crate) from_world: Box<[c_int]>,
    pub(crate) comm: Option<MPI_Comm>,
    pub(crate) allocations: RefCell<Allocations>,
    who: Who,
    /// Those of its ranks that are on this node, and the first of each node; found when first asked for.
    scopes: [OnceCell<Option<Team>>; 2],
}

enum Who {
    World(World),
    Team(Team),
    /// This rank is not of it.
    Others,
}

/// Which of a group's ranks take part in something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// Those on the calling rank's node.
    Node,
    /// The first of each node.
    Masters,
}

/// Some ranks that do something together, the calling one among them.
#[derive(Clone, Copy)]
pub(crate) enum Ranks<'a> {
    World(&'a World),
    Team(&'a Team),
}

/// The same call for either.
macro_rules! either {
    ($self:expr, $ranks:ident => $call:expr) => {
        match $self {
            Ranks::World($ranks) => $call,
            Ranks::Team($ranks) => $call,
        }
    };
}

impl Ranks<'_> {
    pub(crate) fn rank(self) -> usize {
        either!(self, ranks => ranks.rank())
    }

    pub(crate) fn barrier(self) -> Result<()> {
        either!(self, ranks => ranks.barrier())
    }

    pub(crate) fn broadcast<T: Pod>(self, root: usize, values: &mut [T]) -> Result<()> {
        either!(self, ranks => ranks.broadcast(root, values))
    }

    pub(crate) fn all_reduce<T: Number>(self, values: &mut [T], reduce: Reduce) -> Result<()> {
        either!(self, ranks => ranks.all_reduce(values, reduce))
    }

    pub(crate) fn all_gather<T: Pod>(self, mine: &[T]) -> Result<Vec<T>> {
        either!(self, ranks => ranks.all_gather(mine))
    }

    pub(crate) fn allocate(self, bytes: usize) -> Result<Region> {
        either!(self, ranks => ranks.allocate(bytes))
    }

    /// The rank here of a rank of the world.
    pub(crate) fn member(self, world_rank: usize) -> Option<usize> {
        match self {
            Ranks::World(world) => (world_rank < world.size()).then_some(world_rank),
            Ranks::Team(team) => team.member(world_rank),
        }
    }
}

impl Group {
    /// This rank's number in the group; -1 if it is not of it.
    pub(crate) fn rank(&self) -> c_int {
        match &self.who {
            Who::World(world) => world.rank() as c_int,
            Who::Team(team) => team.rank() as c_int,
            Who::Others => -1,
        }
    }

    /// Its ranks, for what they do together.
    pub(crate) fn ranks(&self) -> Result<Ranks<'_>> {
        match &self.who {
            Who::World(world) => Ok(Ranks::World(world)),
            Who::Team(team) => Ok(Ranks::Team(team)),
            Who::Others => Err(Error::Argument(format!("this rank is not of the group of ranks {:?}", self.to_world))),
        }
    }

    /// The rank in the world of a rank of the group.
    pub(crate) fn world_rank(&self, rank: c_int) -> Result<c_int> {
        let found = usize::try_from(rank).ok().and_then(|rank| self.to_world.get(rank));
        let size = self.to_world.len();
        found.copied().ok_or_else(|| Error::Argument(format!("rank {rank} does not exist: the group has {size} ranks")))
    }

    /// Its ranks of a scope; none if this rank is not one of them. The first call is collective over those.
    pub(crate) fn scoped(&self, world: &World, scope: Scope) -> Result<Option<Ranks<'_>>> {
        let all = self.ranks()?;
        let list = self.list(world, scope)?;
        if list.len() == self.to_world.len() {
            return Ok(Some(all));
        }
        let kept = &self.scopes[usize::from(scope == Scope::Masters)];
        if kept.get().is_none() {
            let of_it = list.contains(&world.rank());
            let team = of_it.then(|| world.create_team(&list)).transpose()?;
            // It was empty a moment ago, and creating a team calls nothing of C's.
            let _ = kept.set(team);
        }
        Ok(kept.get().and_then(Option::as_ref).map(Ranks::Team))
    }

    /// The ranks in the world of a scope, in the group's order.
    pub(crate) fn list(&self, world: &World, scope: Scope) -> Result<Vec<usize>> {
        let all = self.to_world.iter().map(|rank| *rank as usize);
        let mine = world.node_of(world.rank())?;
        let mut seen = vec![false; world.nodes()];
        let mut list = Vec::new();
        for rank in all {
            let node = world.node_of(rank)?;
            let first = !std::mem::replace(&mut seen[node], true);
            let takes_part = match scope {
                Scope::All => true,
                Scope::Node => node == mine,
                Scope::Masters => first,
            };
            if takes_part {
                list.push(rank);
            }
        }
        Ok(list)
    }

    /// Ends it: frees what was allocated over it, its teams and its communicator. Collective over its ranks.
    fn end(self) -> Result<()> {
        let Group { who, scopes, allocations, comm, .. } = self;
        let Who::Team(team) = who else { return Ok(()) };
        let freed = allocations.into_inner().free_all(team.world());
        let parts = scopes.into_iter().filter_map(|scope| scope.into_inner().flatten()).try_for_each(Team::free);
        let ended = team.free();
        let comm = match (mpi(), comm) {
            (Some(mpi), Some(comm)) => mpi.free(comm),
            _ => Ok(()),
        };
        freed.and(parts).and(ended).and(comm)
    }
}

/// All groups of this rank.
pub(crate) struct Groups {
    by_number: RefCell<BTreeMap<u32, Rc<Group>>>,
    world: Rc<Group>,
    default: RefCell<Rc<Group>>,
    next: Cell<u32>,
}

/// The number of the world.
const WORLD: u32 = 0;
/// Numbers are below this, so that they fit beside a mark into an `int`.
pub(crate) const NUMBERS: u32 = 1 << 24;

impl Groups {
    /// The world alone, which is the default.
    pub(crate) fn new(world: &World, comm: Option<MPI_Comm>) -> Self {
        let identity: Box<[c_int]> = (0..world.size() as c_int).collect();
        let world = Rc::new(Group {
            number: WORLD,
            to_world: identity.clone(),
            from_world: identity,
            comm: comm.or_else(|| mpi().map(|mpi| mpi.world())),
            allocations: RefCell::default(),
            who: Who::World(world.clone()),
            scopes: Default::default(),
        });
        let by_number = RefCell::new(BTreeMap::from([(WORLD, world.clone())]));
        Groups { by_number, default: RefCell::new(world.clone()), world, next: Cell::new(WORLD + 1) }
    }

    pub(crate) fn world(&self) -> &Rc<Group> {
        &self.world
    }

    pub(crate) fn default(&self) -> Rc<Group> {
        self.default.borrow().clone()
    }

    pub(crate) fn set_default(&self, group: Rc<Group>) {
        *self.default.borrow_mut() = group;
    }

    pub(crate) fn get(&self, number: u32) -> Option<Rc<Group>> {
        self.by_number.borrow().get(&number).cloned()
    }

    /// Makes a group of these ranks of `parent`. Collective over them; others may call it too, and wait for nobody.
    pub(crate) fn create(&self, world: &World, parent: &Group, ranks: &[c_int]) -> Result<Rc<Group>> {
        let to_world = ranks.iter().map(|rank| parent.world_rank(*rank)).collect::<Result<Box<[c_int]>>>()?;
        let mut from_world = vec![-1; world.size()].into_boxed_slice();
        for (rank, world_rank) in to_world.iter().enumerate() {
            from_world[*world_rank as usize] = rank as c_int;
        }
        let number = self.next.get();
        if number == NUMBERS {
            return Err(Error::Argument(format!("{NUMBERS} groups have been created, which is all that can be")));
        }
        let (mut who, mut comm) = (Who::Others, mpi().map(|mpi| mpi.null()));
        if from_world[world.rank()] >= 0 {
            let list: Vec<usize> = to_world.iter().map(|rank| *rank as usize).collect();
            who = Who::Team(world.create_team(&list)?);
            // What is made before MPI begins has none.
            if let Some(mpi) = mpi().filter(|mpi| mpi.is_running()) {
                let all = self.world.comm.unwrap_or(mpi.world());
                mpi.check(all, world.rank(), world.size())?;
                comm = Some(mpi.create(all, &to_world)?);
            }
        }
        let group = Rc::new(Group {
            number,
            to_world,
            from_world,
            comm,
            allocations: RefCell::default(),
            who,
            scopes: Default::default(),
        });
        self.next.set(number + 1);
        self.by_number.borrow_mut().insert(number, group.clone());
        Ok(group)
    }

    /// Ends a group. Collective over its ranks.
    pub(crate) fn free(&self, group: Rc<Group>) -> Result<()> {
        if group.number == WORLD {
            return Err(Error::Argument("the group of all ranks was to be freed".into()));
        }
        self.by_number.borrow_mut().remove(&group.number);
        if self.default.borrow().number == group.number {
            self.set_default(self.world.clone());
        }
        // Nobody holds one across a call of C's.
        Rc::into_inner(group).map_or(Ok(()), Group::end)
    }
}
