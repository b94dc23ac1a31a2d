//! Memory that one rank takes by itself, and that others reach all the same.

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::memory::heap::Block;
use crate::memory::{GlobalPtr, RegionId};
use crate::watch::{Call, Kind};
use crate::world::World;

/// Memory of this rank that every rank may reach, if it is given a [`GlobalPtr`].
///
/// Allocated by [`World::allocate_local`], freed by [`World::free_local`]. Dropping the handle frees nothing.
#[derive(Debug)]
#[must_use = "a region that is not freed stays allocated until the job ends"]
pub struct LocalRegion {
    id: RegionId,
    rank: u32,
    block: Block,
    /// Where the window of its world begins.
    window: u64,
}

impl LocalRegion {
    /// Its name on its rank.
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// A pointer to element `index`, counted in elements of `T`: for this rank, and for any that it is sent to.
    #[inline]
    pub fn at<T: Pod>(&self, index: usize) -> GlobalPtr<T> {
        GlobalPtr::new(self.id, self.rank, (index as u64).saturating_mul(size_of::<T>() as u64))
    }
}

impl World {
    /// Allocates `bytes` bytes of this rank's memory, which other ranks can reach, without asking them
    /// (`ARMCI_Malloc_local`). Its content is arbitrary. Any thread of the rank may call this.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// use armci_core::{GlobalPtr, World};
    ///
    /// let world = World::init()?;
    /// let mine = world.allocate_local(8 * 100)?;
    /// // Everybody learns where everybody's lies.
    /// let places: Vec<GlobalPtr<f64>> = world.all_gather(&[mine.at(0)])?;
    /// let right = (world.rank() + 1) % world.size();
    /// world.put(&[1.5; 100], places[right])?;
    /// world.barrier()?;
    /// assert_eq!(world.get_value(mine.at::<f64>(99))?, 1.5);
    /// world.barrier()?; // nobody reaches for it any more
    /// world.free_local(mine)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::SlotFull`], [`Error::RegionTableFull`].
    #[track_caller]
    pub fn allocate_local(&self, bytes: usize) -> Result<LocalRegion> {
        self.allocating(bytes, LocalRegion::id, || {
            self.check_open()?;
            let (id, block) = self.private().enter(bytes as u64)?;
            Ok(LocalRegion { id, rank: self.rank() as u32, block, window: self.node().window().base() })
        })
    }

    /// Frees what [`World::allocate_local`] gave (`ARMCI_Free_local`), once what this thread wrote there is complete. That
    /// nobody else reaches for it any more is for the program to know; who does later gets [`Error::NoRegion`], unless it
    /// resolves through a cache that still knows it.
    ///
    /// # Errors
    /// [`Error::NoRegion`] if it is not this world's. As [`World::fence`] of this rank; it is freed all the same.
    #[track_caller]
    pub fn free_local(&self, region: LocalRegion) -> Result<()> {
        self.check_open()?;
        if region.window != self.node().window().base() {
            return Err(Error::NoRegion { region: region.id, rank: self.rank() });
        }
        self.watched(&Call::of_all(Kind::Free, Some(region.id), 0), || {
            // What this thread wrote there by message comes first.
            let fenced = self.origin().fence(Some(self.rank()));
            self.forget(region.id);
            self.transport().withdraw(region.id);
            self.private().leave(region.id, region.block);
            fenced
        })
    }
}
