//! Regions that begin with a value in every element.
//!
//! Each rank fills its part before the ranks meet to say that the region is there, so that filling costs no meeting of
//! its own.
//!
//! # Safety
//! OWN-PART: this rank's part of a region that was just published is mapped, as long as the table says, and begins on a
//! line; nobody has been told of the region before the ranks have met.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::{Region, separate};
use crate::error::Result;
use crate::group::Group;
use crate::memory::RegionId;
use crate::team::Team;
use crate::world::World;

impl World {
    /// Allocates `count` elements here, perhaps as many more on others, all of them `value`; otherwise as
    /// [`World::allocate`]. When it returns, all parts are filled. Collective.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let region = world.allocate_filled(100, 2.5)?;
    /// let right = (world.rank() + 1) % world.size();
    /// assert_eq!(world.get_value::<f64>(region.at(right, 99))?, 2.5);
    /// world.free(region)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`World::allocate`].
    #[track_caller]
    pub fn allocate_filled<T: Pod>(&self, count: usize, value: T) -> Result<Region> {
        Group::from(self).allocate_described(count, Some(value), 0)
    }

    /// Writes a value into so many elements of this rank's part of a region.
    fn fill<T: Pod>(&self, id: RegionId, count: usize, value: T) {
        let Some(part) = self.node().mine().regions.part(id) else { return };
        debug_assert!(bytes_of::<T>(count) as u64 <= part.len);
        let start = self.node().window().address(self.node().who().local_rank, part.offset).cast::<T>();
        if bytemuck::bytes_of(&value).iter().all(|byte| *byte == 0) {
            // SAFETY: OWN-PART.
            unsafe { start.write_bytes(0, count) };
            return;
        }
        for index in 0..count {
            // SAFETY: OWN-PART; unaligned, for a type of more than a line.
            unsafe { start.add(index).write_unaligned(value) };
        }
    }
}

impl Team {
    /// [`World::allocate_filled`] on the members. Collective over the team.
    ///
    /// # Errors
    /// As [`Team::allocate`].
    #[track_caller]
    pub fn allocate_filled<T: Pod>(&self, count: usize, value: T) -> Result<Region> {
        Group::from(self).allocate_described(count, Some(value), 0)
    }
}

impl Group {
    /// Memory for so many elements on each rank of the group, perhaps for more on others: all of this value, or, without
    /// one, of arbitrary content. It is for something that the ranks must mean alike: `description` is a digest of that,
    /// and where ranks give different ones, nothing is allocated. It costs no
    /// meeting more. Collective.
    ///
    /// # Errors
    /// As [`World::allocate`]; [`Error::Unlike`](crate::Error::Unlike), on all ranks.
    #[track_caller]
    pub fn allocate_described<T: Pod>(&self, elements: usize, value: Option<T>, description: u64) -> Result<Region> {
        let (world, bytes) = (self.world(), bytes_of::<T>(elements));
        let prepare = |id| value.into_iter().for_each(|value| world.fill(id, elements, value));
        world.allocating(bytes, Region::id, || match self {
            Group::World(world) => world.allocate_together(bytes, description, &prepare),
            Group::Team(team) => separate::allocate(team.collective()?, bytes as u64, description, &prepare),
        })
    }
}

/// The bytes of so many elements; more than any rank can have, if they cannot be counted, so that all refuse them.
fn bytes_of<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>())
}
