//! Accumulate of a megabyte of `f64` by the length of a row, by several protocols (paper 003, Fig. 11):
//!
//! - the runtime's own, by the path that was asked for: in place by the origin, or by message, applied by the target;
//! - *source-driven*: the origin gets, adds, and puts, under a mutex of the target, since nothing else would keep other
//!   ranks' accumulates out. At once, or in pieces of which the next is fetched while one is added (*pipelined*).
//!
//! As in the paper, no fence follows each call: a megabyte by message keeps the target busy while the origin goes on,
//! up to its credits; so a loop of them runs at the rate of the target.

use armci_core::{Handle, Mutexes, Strided, World};

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::setup::{Notes, Setup};
use crate::stats::batches;
use crate::timing::Pages;
use crate::ways::SCALE;

/// Lengths of a row in bytes.
const ROWS: [usize; 5] = [64, 1 << 10, 16 << 10, 256 << 10, MIB];
/// Bytes of a piece, or one row if that is longer.
const PIECE: usize = 64 << 10;

/// Measures; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let (effort, rows) = (setup.effort(), if setup.sizes.is_empty() { &ROWS[..] } else { &setup.sizes });
    let target = Target::allocate(world, 2 * MIB)?;
    let mutexes = Mutexes::create(world, 1)?;
    if world.rank() == 1 {
        let mine = Pages::new(MIB, 1.0);
        let numbers = mine.numbers();
        for &row in rows.iter().filter(|row| MIB.is_multiple_of(**row)) {
            let samples = (effort.samples / 8).max(10);
            let limit = || setup.limit(format!("axpy/{MIB}"));
            let (counts, dense, apart) = ([row / 8, MIB / row], [row / 8], [row / 4]);
            let shape = Strided { counts: &counts, local: &dense, remote: &apart };
            let own =
                batches(samples, effort.window, || world.accumulate_strided(SCALE, numbers, target.on(0), &shape))?;
            world.fence(0)?;
            notes.time("acc/runtime", "row bytes", row, own, limit());
            // Whether in pieces is the origin's affair: the path of get and put is the paths' own.
            for (id, piece) in [("acc/source_driven", MIB), ("acc/source_driven_pipelined", PIECE.max(row))] {
                let mut buffers: [Vec<f64>; 2] = [vec![0.0; piece / 8], vec![0.0; piece / 8]];
                let driven = batches(samples, effort.window, || {
                    mutexes.lock(0, 0)?;
                    by_origin(world, &target, numbers, row, piece, &mut buffers)?;
                    world.fence(0)?;
                    mutexes.unlock(0, 0)
                })?;
                notes.time(id, "row bytes", row, driven, limit());
            }
        }
    }
    mutexes.destroy()?;
    target.free(world)
}

/// Gets, adds, puts back: piece by piece, the next on its way while one is added.
fn by_origin(
    world: &World,
    target: &Target,
    mine: &[f64],
    row: usize,
    piece: usize,
    buffers: &mut [Vec<f64>; 2],
) -> armci_core::Result<()> {
    let (counts, dense, apart) = ([row / 8, piece / row], [row / 8], [row / 4]);
    let shape = Strided { counts: &counts, local: &dense, remote: &apart };
    // Rows lie two lengths apart there: pieces do, too.
    let place = |index: usize| target.on(0).add(2 * index * piece / 8);
    let [first, second] = buffers;
    let (mut spare, pieces) = (std::mem::take(second), MIB / piece);
    let mut coming: Handle<Vec<f64>> = world.get_strided_nb(place(0), std::mem::take(first), &shape)?;
    for (index, added) in mine.chunks_exact(piece / 8).enumerate() {
        let mut here = coming.wait()?;
        let next = if index + 1 < pieces {
            Some(world.get_strided_nb(place(index + 1), std::mem::take(&mut spare), &shape)?)
        } else {
            None
        };
        for (sum, value) in here.iter_mut().zip(added) {
            *sum += SCALE * value;
        }
        world.put_strided(&here, place(index), &shape)?;
        match next {
            Some(next) => (coming, spare) = (next, here),
            None => {
                (*first, *second) = (here, spare);
                return Ok(());
            }
        }
    }
    Ok(())
}
