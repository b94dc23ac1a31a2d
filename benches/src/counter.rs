//! The shared counter: rank 1 draws from a counter that rank 0 owns, while rank 0 waits in a barrier, sleeps outside
//! the library, or computes without calling anybody.
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

/// What the owner does while rank 1 draws.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// It waits in a barrier.
    Waits,
    /// It sleeps, in no call of ours.
    Sleeps,
    /// It computes.
    Computes,
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

/// Draws while the owner sleeps outside the library, so that its progress thread has the core; collective.
///
/// # Errors
/// What the operations say.
pub fn owner_asleep(world: &World, effort: Effort, pattern: Pattern, figures: &mut Figures) -> Result<()> {
    let counter = SharedCounter::create(world)?;
    let draws = in_window(world, &counter, Owner::Sleeps, effort.window, pattern)?;
    figures.add(format!("add_{}", pattern.name), Figure::of(draws));
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
            figures.add(format!("add_{}", pattern.name), Figure::of(draw(&counter, effort.window, pattern)?));
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

/// Draws back to back while the owner waits, sleeps and computes, in turn: `add_waits`, `add_sleeps`,
/// `add_computes`. Collective.
///
/// # Errors
/// What the operations say.
pub fn whatever_the_owner_does(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    const TURNS: u32 = 4;
    const OWNERS: [(&str, Owner); 3] =
        [("add_waits", Owner::Waits), ("add_sleeps", Owner::Sleeps), ("add_computes", Owner::Computes)];
    let pattern = Pattern { name: "", batch: 100, pace: None };
    let counter = SharedCounter::create(world)?;
    let mut draws = OWNERS.map(|_| Vec::new());
    for _ in 0..TURNS {
        for ((_, owner), draws) in OWNERS.iter().zip(&mut draws) {
            draws.extend(in_window(world, &counter, *owner, effort.window / TURNS, pattern)?);
        }
    }
    for ((name, _), draws) in OWNERS.iter().zip(draws) {
        figures.add(*name, Figure::of(draws));
    }
    Ok(counter.destroy()?)
}

/// How much the slowest of the three takes of the fastest's time: `add_spread`.
pub fn summarize(figures: &mut Figures) {
    let three = ["add_waits", "add_sleeps", "add_computes"].map(|name| figures.get(name).map(|figure| figure.median));
    if let [Some(a), Some(b), Some(c)] = three {
        figures.add("add_spread", Some(Figure::single(a.max(b).max(c) / a.min(b).min(c))));
    }
}

/// Rank 1's draws in a window in which the owner does this; collective.
fn in_window(
    world: &World,
    counter: &SharedCounter,
    owner: Owner,
    window: Duration,
    pattern: Pattern,
) -> Result<Vec<f64>> {
    world.barrier()?;
    let mut draws = Vec::new();
    match owner {
        _ if world.rank() == 1 => draws = draw(counter, window, pattern)?,
        Owner::Waits => {} // in the barrier that comes
        Owner::Sleeps => std::thread::sleep(window),
        Owner::Computes => drop(compute_for(window)),
    }
    world.barrier()?;
    Ok(draws)
}

/// Draws through the middle of the window.
fn draw(counter: &SharedCounter, window: Duration, pattern: Pattern) -> Result<Vec<f64>> {
    let begin = Instant::now();
    spin_for(window / 20);
    let mut samples = Vec::with_capacity(1 << 16);
    while begin.elapsed() < window * 9 / 10 {
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
