//! What all ranks do together, again and again: the barrier, and collectives by size. All ranks take as many samples, so
//! all meet as often; rank 0 reports.

use armci_core::{Reduce, World};

use crate::error::Result;
use crate::setup::{Notes, Setup};
use crate::stats::in_step;

/// Bytes that a rank contributes.
const SIZES: [usize; 4] = [8, 512, 8 << 10, 64 << 10];

/// Samples, and calls of each: fewer where ranks must sleep to let each other run.
fn counts(world: &World, setup: &Setup) -> (usize, usize) {
    let wide = world.size() > 2 || setup.nodes > 1;
    ((setup.effort().samples / 4).max(10), if wide { 5 } else { 100 })
}

/// Measures the barrier; collective.
///
/// # Errors
/// What it says.
pub fn barrier(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let (samples, batch) = counts(world, setup);
    let barrier = in_step(samples, batch, || world.barrier())?;
    let synchronize = in_step(samples, batch, || world.synchronize())?;
    if world.rank() == 0 {
        for (id, stats) in [("barrier/barrier", barrier), ("barrier/synchronize", synchronize)] {
            notes.time(id, "ranks", world.size(), stats, setup.limit("line"));
        }
    }
    Ok(())
}

/// Measures broadcast, all-reduce, all-gather and exchange; collective.
///
/// # Errors
/// What they say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let sizes = if setup.sizes.is_empty() { &SIZES[..] } else { &setup.sizes };
    let (samples, batch) = counts(world, setup);
    for &bytes in sizes {
        let count = (bytes / 8).max(1);
        let batch = if bytes > 4096 { batch.min(5) } else { batch };
        let mut values = vec![1.0f64; count];
        let broadcast = in_step(samples, batch, || world.broadcast(0, &mut values))?;
        let all_reduce = in_step(samples, batch, || world.all_reduce(&mut values, Reduce::Max))?;
        let all_gather = in_step(samples, batch, || world.all_gather(&values).map(drop))?;
        // So many bytes for each of the others.
        let parts = vec![1.0f64; count * world.size()];
        let exchange = in_step(samples, batch, || world.exchange(&parts).map(drop))?;
        if world.rank() == 0 {
            let all = [
                ("collectives/broadcast", broadcast),
                ("collectives/all_reduce", all_reduce),
                ("collectives/all_gather", all_gather),
                ("collectives/exchange", exchange),
            ];
            for (id, stats) in all {
                let limit = if bytes < 4096 { "line".into() } else { format!("copy/{bytes}") };
                notes.time(id, "bytes", bytes, stats, setup.limit(limit));
            }
        }
    }
    Ok(())
}
