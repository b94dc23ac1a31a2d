//! Put and get of contiguous blocks, from rank 1 to rank 0's memory, which rank 0 leaves alone meanwhile.
//!
//! What is timed is the blocking call: local completion of a put, completion of a get. Both sides begin on a page,
//! as the peers' do: the C library's copy is up to 16 times slower for some differences of alignment.

use std::time::Instant;

use armci_core::{GlobalPtr, Region, World};

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::{Effort, Pages, batch_for, sample};

/// A megabyte, as in the issue: 2^20 bytes.
pub const MIB: usize = 1 << 20;

/// The sizes of a sweep.
pub const SWEEP: [usize; 11] = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB, 2 * MIB, 3 * MIB, 4 * MIB];

/// The sizes that peers measure too, as `peers/sampling.h` has them.
pub const BESIDE_PEERS: [usize; 7] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, MIB];

/// Memory on every rank, and how far into it the first page begins.
pub struct Target {
    region: Region,
    page: u64,
}

impl Target {
    /// `bytes` bytes on every rank, touched. Collective.
    ///
    /// # Errors
    /// As [`World::allocate`].
    pub fn allocate(world: &World, bytes: usize) -> Result<Self> {
        let region = world.allocate(bytes + 4096)?;
        let (address, _) = world.local_part(&region)?;
        let target = Target { page: (address.align_offset(4096) as u64).min(4096), region };
        world.put(Pages::new(bytes, 1.0).numbers(), target.on(world.rank()))?;
        world.barrier()?;
        Ok(target)
    }

    /// Its first page on `rank`.
    pub fn on(&self, rank: usize) -> GlobalPtr<f64> {
        self.region.at(rank, self.page as usize / 8)
    }

    /// Where that page lies, for whoever works on it by other means.
    ///
    /// # Errors
    /// As [`World::address`].
    pub fn address(&self, world: &World, rank: usize) -> Result<*mut f64> {
        Ok(world.address(&self.region, rank)?.wrapping_add(self.page as usize).cast())
    }

    /// Frees it. Collective.
    ///
    /// # Errors
    /// As [`World::free`].
    pub fn free(self, world: &World) -> Result<()> {
        Ok(world.free(self.region)?)
    }
}

/// Measures `put_N` and `get_N` for each size of `sizes`; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, sizes: &[usize], figures: &mut Figures) -> Result<()> {
    let most = sizes.iter().copied().max().unwrap_or(8);
    let target = Target::allocate(world, most)?;
    if world.rank() == 1 {
        let mut mine = Pages::new(most, 2.0);
        for &bytes in sizes {
            let mine = &mut mine.numbers_mut()[..bytes / 8];
            let batch = batch_for(bytes);
            figures.add(format!("put_{bytes}"), sample(effort.samples, batch, || world.put(mine, target.on(0)))?);
            figures.add(format!("get_{bytes}"), sample(effort.samples, batch, || world.get(target.on(0), mine))?);
        }
    }
    target.free(world)
}

/// Measures `put_dirty`: 1 MiB that the owner has just written, so that its lines lie in the other core's caches.
/// Collective.
///
/// # Errors
/// What the operations say.
pub fn owner_wrote(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, MIB)?;
    let mine = Pages::new(MIB, 1.0);
    let mut samples = Vec::with_capacity(effort.samples);
    for _ in 0..effort.samples {
        if world.rank() == 0 {
            // Not a put: that may go past the caches.
            world.accumulate(1.0, mine.numbers(), target.on(0))?;
        }
        world.barrier()?;
        if world.rank() == 1 {
            let start = Instant::now();
            world.put(mine.numbers(), target.on(0))?;
            samples.push(start.elapsed().as_secs_f64() * 1e9);
        }
        world.barrier()?;
    }
    figures.add("put_dirty", Figure::of(samples));
    target.free(world)
}
