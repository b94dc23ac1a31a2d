//! Allocating and freeing memory that other ranks reach, and finding places in it.
//!
//! | | who calls | where it lies | what names it |
//! |---|---|---|---|
//! | [`symmetric`] | the world | at one offset in every slot | one id on all ranks |
//! | [`separate`] | a team; the world, where parts differ much | in private heaps | an id per rank, in a table of all |
//! | [`local`] | one rank, by itself | in its private heap | an id of that rank |
//! | [`registered`] | one rank, by itself | anywhere in its process | an id of that rank, reached by message |
//!
//! [`address`] is for programs that name places as (rank, address).

mod address;
mod filled;
mod local;
mod registered;
mod separate;
mod symmetric;

pub use local::LocalRegion;
pub use registered::Registered;

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::memory::heap::Block;
use crate::memory::region::Part;
use crate::memory::{GlobalPtr, RegionId};
use crate::watch::{Call, Kind};
use crate::world::World;
use separate::Separate;

/// What a rank does with its part of a region that it has just published, before the ranks meet.
type Prepare<'a> = &'a dyn Fn(RegionId);

/// Memory that the ranks of the world or of a team may reach: one part on each, perhaps of different lengths.
///
/// Allocated by [`World::allocate`] or [`Team::allocate`](crate::Team::allocate), freed by [`World::free`]; all are
/// collective over the world or the team. Dropping the handle frees nothing. Ranks outside the team may reach the
/// parts too, if they are given a [`GlobalPtr`].
#[derive(Debug)]
#[must_use = "a region that is not freed stays allocated until the job ends"]
pub struct Region {
    /// Its name on this rank.
    id: RegionId,
    block: Block,
    /// Where the window of its world begins: no other world has a window there.
    window: u64,
    /// What describes the others' parts, if they have different places and names.
    separate: Option<Separate>,
}

impl Region {
    /// The region's name: the same on every rank, if it was allocated over the world and its parts do not differ much;
    /// else the name of this rank's part.
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// A pointer to element `index`, counted in elements of `T`, of the part on rank `rank` of the world or team that
    /// the region was allocated over.
    ///
    /// Making it checks nothing; using it checks everything.
    #[inline]
    pub fn at<T: Pod>(&self, rank: usize, index: usize) -> GlobalPtr<T> {
        let offset = (index as u64).saturating_mul(size_of::<T>() as u64);
        match &self.separate {
            None => GlobalPtr::new(self.id, rank.try_into().unwrap_or(u32::MAX), offset),
            Some(separate) => separate.at(rank, offset),
        }
    }
}

impl World {
    /// Frees a region. Collective over the ranks that allocated it (`ARMCI_Free`); completes everybody's operations
    /// first.
    ///
    /// # Errors
    /// As [`World::barrier`]; the region is freed all the same. [`Error::NoRegion`] if it is not one of this world,
    /// [`Error::Argument`] during a split-phase barrier of the same ranks or if their team was freed before; nothing is
    /// freed then, and the region keeps its memory.
    #[track_caller]
    pub fn free(&self, region: Region) -> Result<()> {
        self.watched(&Call::of_all(Kind::Free, Some(region.id), 0), || match region.separate {
            None => self.free_symmetric(region),
            Some(_) => self.free_separate(region),
        })
    }

    /// Runs what allocates so many bytes here, tells who watches, and has a refusal in the log.
    #[track_caller]
    fn allocating<T>(
        &self,
        bytes: usize,
        id: impl FnOnce(&T) -> RegionId,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let call = Call::of_all(Kind::Allocate, None, bytes);
        let told = |done: &T| Call { region: Some(id(done)), ..call };
        self.watched_as(told, run).inspect_err(|error| {
            tracing::info!(rank = self.rank(), bytes, "an allocation was refused: {error}");
        })
    }

    /// Takes a region that is gone out of what this thread knows of others'.
    fn forget(&self, id: RegionId) {
        if let Some(cache) = self.cache() {
            cache.borrow_mut().forget(id);
        }
    }

    /// This rank's part of a region, if the region is this world's and alive.
    fn own(&self, region: &Region) -> Result<Part> {
        let node = self.node();
        let part = node.mine().regions.part(region.id).filter(|_| region.window == node.window().base());
        part.ok_or(Error::NoRegion { region: region.id, rank: self.rank() })
    }

    /// Where this rank's own part of a region lies, and how many bytes it has.
    ///
    /// Other ranks may write there at any time: it is memory for raw pointers and atomics, not for references,
    /// unless the program keeps everybody else away by synchronising.
    ///
    /// # Errors
    /// [`Error::NoRegion`] if the region was freed.
    pub fn local_part(&self, region: &Region) -> Result<(*mut u8, usize)> {
        let node = self.node();
        let part = self.own(region)?;
        Ok((node.window().address(node.who().local_rank, part.offset), part.len as usize))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{Error, World};

    #[test]
    fn a_region_of_another_world_is_refused() {
        let (here, there) = (World::init().unwrap(), World::init().unwrap());
        let region = here.allocate(64).unwrap();
        let same_name = there.allocate(64).unwrap();
        assert_eq!(region.id(), same_name.id());
        assert!(matches!(there.local_part(&region), Err(Error::NoRegion { .. })));
        assert!(matches!(there.free(region), Err(Error::NoRegion { .. })));
        there.free(same_name).unwrap();
        let next = there.allocate(64).unwrap();
        there.put_value(1u8, next.at(0, 63)).unwrap();
        there.free(next).unwrap();
        there.finalize().unwrap();
        here.finalize().unwrap();
    }
}
