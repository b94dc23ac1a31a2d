//! Accumulate of 1 MiB of `f64`, from rank 1 into rank 0's memory: the blocking call, again and again.
//!
//! By active message the call returns when the last batch is on its way, and the next call waits for credits; so a
//! loop of them runs at the rate of the server.

use armci_core::World;

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, Pages, sample};

/// Measures it under `name`; collective.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, name: &str, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, MIB)?;
    if world.rank() == 1 {
        let mine = Pages::new(MIB, 1.0);
        figures.add(name, sample(effort.samples, 2, || world.accumulate(1.5, mine.numbers(), target.on(0)))?);
        world.fence(0)?;
    }
    target.free(world)
}
