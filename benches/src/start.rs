//! How long a job takes to start: from before its launch to the end of its first barrier.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use armci_core::World;

use crate::error::Result;
use crate::figure::{Figure, Figures};

/// Where ranks find when their launch began.
pub const VARIABLE: &str = "ARMCI_BENCH_BEGIN";

/// Nanoseconds of the clock that all processes of a machine share.
fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The present time, as a variable holds it.
pub fn now() -> String {
    clock().as_nanos().to_string()
}

/// Measures `start_N` for N ranks; the first thing a rank does after it has joined. Collective, rank 0 reports.
///
/// # Errors
/// What the barrier says.
pub fn measure(world: &World, figures: &mut Figures) -> Result<()> {
    world.barrier()?;
    let begun = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).map(Duration::from_nanos);
    // A clock that was set back meanwhile gives no figure.
    let took = begun.and_then(|begun| clock().checked_sub(begun));
    if world.rank() == 0 {
        figures.add(format!("start_{}", world.size()), took.map(|took| Figure::single(took.as_secs_f64() * 1e9)));
    }
    Ok(())
}
