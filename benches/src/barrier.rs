//! The barrier, of however many ranks the job has.

use armci_core::World;

use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, sample};

/// Measures `barrier_N` for N ranks, in batches of `batch`; collective, rank 0 reports.
///
/// # Errors
/// What the barrier says.
pub fn measure(world: &World, effort: Effort, batch: usize, figures: &mut Figures) -> Result<()> {
    // All ranks take the same number of samples, so all meet the same number of times.
    let figure = sample(effort.samples, batch, || world.barrier())?;
    if world.rank() == 0 {
        figures.add(format!("barrier_{}", world.size()), figure);
    }
    Ok(())
}
