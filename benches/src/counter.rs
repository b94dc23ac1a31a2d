//! The shared counter: rank 1 draws from a counter that rank 0 owns, while rank 0 waits in a barrier, and while it
//! computes without calling anybody.
//!
//! Two patterns of drawing matter when a thread serves: *back to back*, and *paced*, with 200 microseconds between
//! two draws, as tasks leave it; then the server has gone to sleep each time. What rank 0 kept of its speed is
//! measured beside, against the same computation undisturbed just before.

use std::time::{Duration, Instant};

use armci_core::{SharedCounter, World};

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::{Effort, compute_for, sample, spin_for};

/// The time between two paced draws.
pub const PACE: Duration = Duration::from_micros(200);

/// How rank 1 draws.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Names the figures: `add_<name>` and `kept_<name>`.
    pub name: &'static str,
    /// Draws per sample: more than one where a draw is shorter than a look at the clock.
    pub batch: usize,
    /// The pause between two samples.
    pub pace: Option<Duration>,
}

/// Draws while the owner waits in a call; collective.
///
/// # Errors
/// What the operations say.
pub fn owner_idle(world: &World, effort: Effort, pattern: Pattern, figures: &mut Figures) -> Result<()> {
    let counter = SharedCounter::create(world)?;
    if world.rank() == 1 {
        let draws = sample(10 * effort.samples, pattern.batch, || counter.next().map(drop))?;
        figures.add(format!("add_{}", pattern.name), draws);
    }
    Ok(counter.destroy()?)
}

/// Draws while the owner computes; collective.
///
/// # Errors
/// What the operations say.
pub fn owner_computing(world: &World, effort: Effort, pattern: Pattern, figures: &mut Figures) -> Result<()> {
    let counter = SharedCounter::create(world)?;
    let mut rates = [0.0; 2];
    for (draws, rate) in [false, true].into_iter().zip(&mut rates) {
        world.barrier()?;
        if world.rank() == 0 {
            *rate = compute_for(effort.window);
        } else if draws {
            figures.add(format!("add_{}", pattern.name), Figure::of(draw(&counter, effort, pattern)?));
        } else {
            std::thread::sleep(effort.window);
        }
    }
    world.barrier()?;
    if world.rank() == 0 {
        figures.add(format!("kept_{}", pattern.name), Some(Figure::single(rates[1] / rates[0])));
    }
    Ok(counter.destroy()?)
}

/// Draws through the middle of the window in which rank 0 computes.
fn draw(counter: &SharedCounter, effort: Effort, pattern: Pattern) -> Result<Vec<f64>> {
    let begin = Instant::now();
    spin_for(effort.window / 20);
    let mut samples = Vec::with_capacity(1 << 16);
    while begin.elapsed() < effort.window * 9 / 10 {
        if let Some(pause) = pattern.pace {
            spin_for(pause);
        }
        let start = Instant::now();
        for _ in 0..pattern.batch {
            counter.next()?;
        }
        let elapsed = start.elapsed();
        // Beyond a million, more of them say nothing new.
        if samples.len() < 1 << 20 {
            samples.push(elapsed.as_secs_f64() * 1e9 / pattern.batch as f64);
        }
    }
    Ok(samples)
}
