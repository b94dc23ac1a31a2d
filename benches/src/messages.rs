//! A user's own active messages, short ones, from rank 1 to rank 0, which waits in a barrier and so serves them.

use armci_core::World;

use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, sample};

/// Messages between two fences.
const FLOOD: usize = 1000;

/// Measures `am_request`, a message and its reply, and `am_flood`, per message of many; collective.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let echo = world.register(|message, reply| reply.set(message.payload))?;
    let sink = world.register(|_, _| Ok(()))?;
    world.barrier()?;
    if world.rank() == 1 {
        let payload = 7u64.to_ne_bytes();
        let request = || world.request(0, echo, &payload).map(drop);
        figures.add("am_request", sample(10 * effort.samples, 20, request)?);
        let flood = || {
            (0..FLOOD).try_for_each(|_| world.send(0, sink, &payload))?;
            world.fence(0)
        };
        let each = sample(effort.samples, 1, flood)?;
        figures.add("am_flood", each.map(|flood| flood.scaled(1.0 / FLOOD as f64)));
    }
    Ok(world.barrier()?)
}
