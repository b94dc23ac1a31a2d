//! Fences: with nothing under way; behind so many puts of 8 bytes to one rank; and behind one put to each rank.

use armci_core::World;

use crate::error::Result;
use crate::setup::{Notes, Setup};
use crate::stats::batches;

/// Puts before a fence.
const PUTS: [usize; 4] = [0, 1, 8, 64];

/// Measures; collective, the last rank does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let effort = setup.effort();
    let region = world.allocate(64 * 8)?;
    world.barrier()?;
    if world.rank() + 1 == world.size() {
        for puts in PUTS {
            let fence = batches(effort.samples, effort.window, || {
                (0..puts).try_for_each(|index| world.put_value(1u64, region.at(0, index % 64)))?;
                world.fence(0)
            })?;
            notes.time("fence/one", "puts", puts, fence, setup.limit("line"));
        }
        let all = batches(effort.samples, effort.window, || {
            (0..world.size()).try_for_each(|rank| world.put_value(1u64, region.at(rank, 0)))?;
            world.fence_all()
        })?;
        notes.time("fence/all", "ranks", world.size(), all, setup.limit("line"));
    }
    world.barrier()?;
    Ok(world.free(region)?)
}
