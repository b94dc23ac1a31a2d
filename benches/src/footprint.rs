//! What a thousand allocations cost a rank of a large job: memory, page tables, descriptors.
//!
//! Resident memory counts what lies in other ranks' slots too, where this rank has touched it; window memory is what
//! the ranks of the node were granted, shared evenly.

use std::fs;

use armci_core::{Reduce, Region, World};

use crate::error::Result;
use crate::figure::{Figure, Figures};

/// Allocations between the two looks.
pub const ALLOCATIONS: usize = 1000;
/// Bytes of each on each rank.
const BYTES: usize = 1024;

/// The names of what is measured, in the order of [`take`].
const NAMES: [&str; 4] = ["resident", "tables", "descriptors", "window"];

/// Measures each of [`NAMES`] as `NAME_before` and `NAME_after`, the worst rank's; collective, rank 0 reports.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, figures: &mut Figures) -> Result<()> {
    note(world, "before", figures)?;
    let regions: Vec<Region> =
        (0..ALLOCATIONS).map(|_| world.allocate(BYTES)).collect::<std::result::Result<_, _>>()?;
    // Each rank knows its neighbours' parts only once it has used them.
    let right = (world.rank() + 1) % world.size();
    regions.iter().try_for_each(|region| world.put_value(1u64, region.at(right, 0)))?;
    note(world, "after", figures)?;
    regions.into_iter().try_for_each(|region| world.free(region))?;
    Ok(())
}

fn note(world: &World, when: &str, figures: &mut Figures) -> Result<()> {
    world.barrier()?;
    let mine = take(world);
    let mut worst = mine.map(|value| value.unwrap_or(-1.0));
    world.all_reduce(&mut worst, Reduce::Max)?;
    if world.rank() == 0 {
        for (name, value) in NAMES.iter().zip(worst) {
            figures.add(format!("{name}_{when}"), (value >= 0.0).then(|| Figure::single(value)));
        }
    }
    Ok(())
}

/// This rank's figures at this moment; what the kernel does not say is none.
fn take(world: &World) -> [Option<f64>; 4] {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // The directory itself is open while it is read.
    let descriptors = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64 - 1.0);
    let window = world.statistics().node_memory as f64 / world.size() as f64;
    [kibibytes(&status, "VmRSS:"), kibibytes(&status, "VmPTE:"), descriptors, Some(window)]
}

/// Resident memory of this process, if the kernel says.
pub fn resident() -> Option<f64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// A line of `/proc/PID/status`, in bytes.
fn kibibytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_status_is_found() {
        let status = "Name:\tx\nVmRSS:\t    1904 kB\nVmPTE:\t      60 kB\n";
        assert_eq!(kibibytes(status, "VmPTE:"), Some(61_440.0));
        assert_eq!(kibibytes(status, "VmSwap:"), None);
    }
}
