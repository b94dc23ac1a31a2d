//! A megabyte in rows two lengths apart on rank 0, dense on rank 1, by the length of a row (paper 003, Fig. 9 and Eq. 9).

use armci_core::{Strided, World};

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::setup::{Notes, Setup};
use crate::stats::batches;
use crate::timing::Pages;

/// Lengths of a row in bytes.
const ROWS: [usize; 9] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB];

/// Measures; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let (effort, rows) = (setup.effort(), if setup.sizes.is_empty() { &ROWS[..] } else { &setup.sizes });
    let target = Target::allocate(world, 2 * MIB)?;
    if world.rank() == 1 {
        let mut mine = Pages::new(MIB, 2.0);
        for &row in rows.iter().filter(|row| MIB.is_multiple_of(**row)) {
            let (counts, dense, apart) = ([row / 8, MIB / row], [row / 8], [row / 4]);
            let shape = Strided { counts: &counts, local: &dense, remote: &apart };
            let limit = || setup.limit(format!("copy/{MIB}"));
            let samples = (effort.samples / 4).max(10);
            let put = batches(samples, effort.window, || world.put_strided(mine.numbers(), target.on(0), &shape))?;
            world.fence(0)?;
            notes.time("strided/put", "row bytes", row, put, limit());
            let get = batches(samples, effort.window, || world.get_strided(target.on(0), mine.numbers_mut(), &shape))?;
            notes.time("strided/get", "row bytes", row, get, limit());
        }
    }
    target.free(world)
}
