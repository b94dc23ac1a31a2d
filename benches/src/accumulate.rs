//! Accumulate of `f64`, from rank 1 into rank 0's memory: the blocking call, again and again.
//!
//! By active message the call returns when the last batch is on its way, and the next call waits for credits; so a
//! loop of them runs at the rate of the server.
//!
//! # Safety
//! OWN-SPAN: rank 1 alone works on the memory of both sides while it measures (rank 0 is in a barrier), and both are
//! [`MIB`] bytes long.
#![allow(unsafe_code)]

use armci_core::World;

use crate::beside;
use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, Pages, batch_for, sample, side};
use crate::ways::{SCALE, loops};

/// The sizes that are held against loops over the same memory.
const SIZES: [usize; 7] = [8, 64, 512, 4 << 10, 64 << 10, 256 << 10, MIB];

/// Measures 1 MiB under `name`; collective.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, name: &str, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, MIB)?;
    if world.rank() == 1 {
        let mine = Pages::new(MIB, 1.0);
        figures.add(name, sample(effort.samples, 2, || world.accumulate(SCALE, mine.numbers(), target.on(0)))?);
        world.fence(0)?;
    }
    target.free(world)
}

/// Measures `acc_N`, beside the loops; collective.
///
/// # Errors
/// What the operations say.
pub fn beside_loops(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, MIB)?;
    if world.rank() == 1 {
        let mine = Pages::new(MIB, 1.0);
        let there = target.address(world, 0)?;
        for bytes in SIZES {
            let mine = &mine.numbers()[..bytes / 8];
            let ours = side(|| world.accumulate(SCALE, mine, target.on(0)));
            let others = loops().into_iter().map(|(name, way)| {
                let call = move || {
                    // SAFETY: OWN-SPAN.
                    unsafe { way(there, mine.as_ptr(), mine.len()) };
                    Ok(())
                };
                (name, side(call))
            });
            let samples = (effort.samples / 4).max(15);
            beside::measure(figures, &format!("acc_{bytes}"), samples, batch_for(bytes), ours, others)?;
        }
    }
    target.free(world)
}
