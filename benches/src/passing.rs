//! A fetch-and-add on a line that the other core has just changed: the two ranks add to one word in turn, by the
//! processor's instruction and by the runtime's call, batches of each in turn.
//!
//! # Safety
//! LONE-WORD: the word lies in a region that lives while both ranks use it, is aligned, and everybody reaches it by
//! atomics only.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use armci_core::World;

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::Effort;

/// Turns of each rank in a sample.
const TURNS: i64 = 500;

/// Measures `line_passed`, a line that passes by the processor's instruction, and `add_passed`, by the runtime's
/// call, one way each; collective, rank 1 reports.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let region = world.allocate(128)?;
    let (place, address) = (region.at::<i64>(0, 0), world.address(&region, 0)?);
    // SAFETY: LONE-WORD.
    let word = unsafe { AtomicI64::from_ptr(address.cast()) };
    if world.rank() == 0 {
        word.store(0, Ordering::Relaxed);
    }
    let mut samples = [Vec::new(), Vec::new()];
    let mut first = world.rank() as i64;
    for _ in 0..effort.samples / 2 {
        for (by_call, samples) in [false, true].into_iter().zip(&mut samples) {
            world.barrier()?;
            let start = Instant::now();
            for turn in 0..TURNS {
                while word.load(Ordering::Relaxed) != first + 2 * turn {
                    std::hint::spin_loop();
                }
                if by_call {
                    world.fetch_add(place, 1)?;
                } else {
                    word.fetch_add(1, Ordering::AcqRel);
                }
            }
            samples.push(start.elapsed().as_secs_f64() * 1e9 / (2 * TURNS) as f64);
            first += 2 * TURNS;
        }
    }
    if world.rank() == 1 {
        for (name, samples) in ["line_passed", "add_passed"].into_iter().zip(samples) {
            figures.add(name, Figure::of(samples));
        }
    }
    Ok(world.free(region)?)
}
