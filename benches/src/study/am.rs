//! A user's own active messages from rank 1 to rank 0, which waits in a barrier: the round trip by payload, and the time
//! of each of many one-way messages up to their fence.

use armci_core::World;

use crate::error::Result;
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::stats::batches;

/// Payloads in bytes.
const PAYLOADS: [usize; 5] = [8, 64, 512, 4 << 10, 15 << 10];
/// Messages up to a fence.
const FLOOD: usize = 500;

/// Measures; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let (effort, sizes) = (setup.effort(), if setup.sizes.is_empty() { &PAYLOADS[..] } else { &setup.sizes });
    let echo = world.register(|message, reply| reply.set(message.payload))?;
    let sink = world.register(|_, _| Ok(()))?;
    world.barrier()?;
    if world.rank() == 1 {
        for &bytes in sizes {
            let payload = vec![7u8; bytes];
            let trip = batches(effort.samples, effort.window, || world.request(0, echo, &payload).map(drop))?;
            notes.time("am/round_trip", "bytes", bytes, trip, setup.limit("line"));
            let flood = batches(effort.samples / 10 + 5, effort.window, || {
                (0..FLOOD).try_for_each(|_| world.send(0, sink, &payload))?;
                world.fence(0)
            })?;
            let each = flood.map(|flood| flood.scaled(1.0 / FLOOD as f64));
            notes.time("am/each_of_many", "bytes", bytes, each, setup.limit("line"));
            if let Some(each) = each {
                notes.add(Record::new("am/rate", 1e9 / each.median, "1/s").at("bytes", bytes as f64));
            }
        }
    }
    Ok(world.barrier()?)
}
