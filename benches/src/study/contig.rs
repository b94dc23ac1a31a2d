//! Put and get of contiguous blocks: by size from rank 1 to rank 0 (paper 003, Fig. 4-7), and of 16 bytes from rank 0 to
//! each rank in turn (Fig. 8). Whoever is not at work waits in a barrier.
//!
//! A blocking put ends with local completion. `put_fence` ends when it is there; `put_start` is what starting a
//! non-blocking put takes, the processor's own share (the model's `o`).

use armci_core::World;

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::setup::{Notes, Setup};
use crate::stats::batches;
use crate::study::Wanted;
use crate::timing::Pages;

/// The sizes of paper 003, in steps of four.
pub const SIZES: [usize; 9] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB];

/// Bytes of a transfer to each rank.
const TO_EACH: usize = 16;

/// A pair for the sizes; more ranks for what depends on the rank.
pub fn jobs(wanted: &Wanted) -> Vec<Setup> {
    let most = if wanted.quick { 4 } else { 8 };
    wanted.each("contig", &[2, most], &["rma", "am"], &["thread"])
}

/// Measures; collective.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let effort = setup.effort();
    let sizes = if setup.sizes.is_empty() { SIZES.to_vec() } else { setup.sizes.clone() };
    let most = sizes.iter().copied().max().unwrap_or(TO_EACH).max(TO_EACH);
    let target = Target::allocate(world, most)?;
    let mut mine = Pages::new(most, 2.0);
    // With more than two ranks it is the ranks that are of interest, not the sizes again.
    if world.rank() == 1 && (world.size() == 2 || !setup.sizes.is_empty()) {
        for bytes in sizes {
            let mine = &mut mine.numbers_mut()[..bytes / 8];
            let limit = || setup.limit(format!("copy/{bytes}"));
            let put = batches(effort.samples, effort.window, || world.put(mine, target.on(0)))?;
            world.fence(0)?;
            notes.time("contig/put", "bytes", bytes, put, limit());
            let there = batches(effort.samples, effort.window, || {
                world.put(mine, target.on(0))?;
                world.fence(0)
            })?;
            notes.time("contig/put_fence", "bytes", bytes, there, limit());
            let get = batches(effort.samples, effort.window, || world.get(target.on(0), mine))?;
            notes.time("contig/get", "bytes", bytes, get, limit());
        }
        let word = vec![1u64];
        let start = batches(effort.samples, effort.window, || {
            // Complete on its return, or its slot comes back by itself.
            world.put_nb(word.clone(), target.on(0).cast()).map(drop)
        })?;
        world.fence(0)?;
        notes.time("contig/put_start", "bytes", 8, start, setup.limit("atomic"));
    }
    world.barrier()?;
    if world.rank() == 0 && world.size() > 2 {
        let mine = &mut mine.numbers_mut()[..TO_EACH / 8];
        for rank in 1..world.size() {
            let put = batches(effort.samples, effort.window / 4, || {
                world.put(mine, target.on(rank))?;
                world.fence(rank)
            })?;
            let get = batches(effort.samples, effort.window / 4, || world.get(target.on(rank), mine))?;
            let limit = if world.node_of(rank)? == world.node_of(0)? { "copy/16" } else { "tcp" };
            notes.time("contig/put_to_rank", "rank", rank, put, limit.into());
            notes.time("contig/get_from_rank", "rank", rank, get, limit.into());
        }
    }
    target.free(world)
}
