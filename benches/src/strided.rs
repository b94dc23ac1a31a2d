//! Strided put and get of 1 MiB: dense rows here into rows two lengths apart there, beside the best loop written by
//! hand for rows of that length over the same memory.
//!
//! # Safety
//! OWN-SPAN: rank 1 alone works on the memory of both sides while it measures (rank 0 is in a barrier), and both are
//! two megabytes long, which a megabyte of rows two lengths apart does not exceed.
#![allow(unsafe_code)]

use armci_core::{Strided, World};

use crate::beside;
use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, Pages, Side, side};
use crate::ways::{Rows, rows};

/// Lengths of a row, in bytes.
const ROWS: [usize; 4] = [16, 64, 256, 4096];

/// Measures `put_rows_N` and `get_rows_N`, beside the loops; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let far = Target::allocate(world, 2 * MIB)?;
    if world.rank() == 1 {
        let mut mine = Pages::new(2 * MIB, 2.0);
        let (here, there) = (mine.numbers_mut().as_mut_ptr(), far.address(world, 0)?);
        for row in ROWS {
            let shape = Rows { row, count: MIB / row, to: 2 * row, from: row };
            let counts = [row / 8, shape.count];
            let (dense, apart) = ([row / 8], [row / 4]);
            let outward = Strided { counts: &counts, local: &dense, remote: &apart };
            let inward = Strided { counts: &counts, local: &apart, remote: &dense };
            // SAFETY: OWN-SPAN.
            let put = side(|| unsafe { world.put_strided_from(here, far.on(0), &outward) });
            // SAFETY: OWN-SPAN.
            let get = side(|| unsafe { world.get_strided_into(far.on(0), here, &inward) });
            let directions: [(&str, Side<'_, _>, _, _); 2] = [("put", put, there, here), ("get", get, here, there)];
            for (name, ours, to, from) in directions {
                let others = rows(row).into_iter().map(|(name, way)| {
                    let call = move || {
                        // SAFETY: OWN-SPAN.
                        unsafe { way(to.cast(), from.cast(), &shape) };
                        Ok(())
                    };
                    (name, side(call))
                });
                let samples = (effort.samples / 4).max(15);
                beside::measure(figures, &format!("{name}_rows_{row}"), samples, 1, ours, others)?;
            }
        }
    }
    far.free(world)
}
