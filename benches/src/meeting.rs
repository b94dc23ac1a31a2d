//! Collective allocation and release of a small region whose memory lies ready, beside the barrier of the same run.

use armci_core::World;

use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, in_turn, side};

/// Bytes of the region: small, as most arrays of a chemistry code are.
const BYTES: usize = 64;

/// Measures `allocate_free` and `allocate_barrier`; collective, rank 0 reports.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let mut sides = [side(|| world.allocate(BYTES).and_then(|region| world.free(region))), side(|| world.barrier())];
    // All ranks take the same number of samples, so all meet the same number of times.
    let taken = in_turn(effort.samples, 50, &mut sides)?;
    if world.rank() == 0 {
        figures.add("allocate_free", taken[0]);
        figures.add("allocate_barrier", taken[1]);
    }
    Ok(())
}
