//! Places found through the cache of remote regions, as they will be between nodes: puts of 8 bytes to one region after
//! the other, all of which fit, or of which only one does.

use armci_core::World;

use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, sample};

/// Regions that take turns.
const REGIONS: usize = 64;

/// Measures `put_<name>`; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, name: &str, figures: &mut Figures) -> Result<()> {
    let regions = (0..REGIONS).map(|_| world.allocate(64)).collect::<std::result::Result<Vec<_>, _>>()?;
    world.barrier()?;
    if world.rank() == 1 {
        let mut turn = 0;
        let puts = sample(effort.samples, 2 * REGIONS, || {
            turn = (turn + 1) % REGIONS;
            world.put_value(1i64, regions[turn].at(0, 0))
        })?;
        figures.add(format!("put_{name}"), puts);
    }
    world.barrier()?;
    Ok(regions.into_iter().try_for_each(|region| world.free(region))?)
}
