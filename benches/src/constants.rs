//! The constants of paper 003's model, measured between two nodes, and what its equations make of them.
//!
//! ```text
//!   (2)  time of a context               (7)  get by remote access   o + L + (m - 1) G
//!   (4)  time of an endpoint             (8)  get by message         o + L + o + (m - 1) G
//!   (6)  time of a region                (9)  strided                o m / l0 + m G
//! ```
//!
//! `o` is how long the call that starts a get of 8 bytes keeps the processor, `L` what is missing from there to the whole
//! blocking get, `G` the time of a byte in a stream of megabytes. What equations predict from these three is held against
//! what was measured apart from them; the sizes, and the rows of the strided gets, are such that each row is a transfer
//! of its own. An endpoint's time is what a context's first get takes more than its later ones. Rank 0 is in a barrier.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::time::Instant;

use armci_core::config::{Path, Protocol};
use armci_core::{GlobalPtr, Strided, World};

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::footprint;
use crate::timing::{Effort, Pages, sample};

/// Bytes of the gets.
const SIZES: [usize; 6] = [64, 1 << 10, 8 << 10, 64 << 10, 256 << 10, MIB];
/// Bytes of the rows of a megabyte.
const LENGTHS: [usize; 3] = [16 << 10, 32 << 10, 64 << 10];
/// Contexts that are made beside each other.
const CONTEXTS: usize = 8;

/// Measures constants, and what is predicted from them later; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, 2 * MIB)?;
    if world.rank() == 1 {
        let there = target.on(0);
        constants(world, effort, there, figures)?;
        let default = world.protocol();
        for (name, protocol) in [("rdma", default), ("message", Protocol::all(Path::Am))] {
            world.set_protocol(protocol);
            gets(world, effort, there, name, figures)?;
        }
        world.set_protocol(default);
        strided(world, effort, there, figures)?;
        contexts(world, there, figures)?;
    }
    world.barrier()?;
    let mut regions = Vec::new();
    let taken = sample(effort.samples / 4, 1, || world.allocate(64).map(|region| regions.push(region)))?;
    regions.into_iter().try_for_each(|region| world.free(region))?;
    if world.rank() == 1 {
        figures.add("far_time_region", taken);
    }
    target.free(world)
}

fn constants(world: &World, effort: Effort, there: GlobalPtr<f64>, figures: &mut Figures) -> Result<()> {
    let mut word = vec![0.0];
    let (mut starts, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..5 * effort.samples {
        let begin = Instant::now();
        let get = world.get_nb(there, word)?;
        starts.push(begin.elapsed().as_secs_f64() * 1e9);
        word = get.wait()?;
        let begin = Instant::now();
        world.get(there, &mut word)?;
        whole.push(begin.elapsed().as_secs_f64() * 1e9);
    }
    let (o, whole) = (Figure::of(starts), Figure::of(whole));
    let latency = o.zip(whole).map(|(o, whole)| Figure::single(whole.median - o.median));
    figures.add("far_model_o", o);
    figures.add("far_model_l", latency);
    let mut idle: Vec<Vec<f64>> = (0..4).map(|_| vec![0.0; MIB / 8]).collect();
    let stream = sample(effort.samples / 20 + 5, 1, || {
        let mut under_way = VecDeque::new();
        for _ in 0..16 {
            if idle.is_empty()
                && let Some(oldest) = under_way.pop_front()
            {
                idle.push(armci_core::Handle::wait(oldest)?);
            }
            under_way.push_back(world.get_nb(there, idle.pop().unwrap_or_default())?);
        }
        under_way.into_iter().try_for_each(|get| get.wait().map(|buffer| idle.push(buffer)))
    })?;
    figures.add("far_model_g", stream.map(|stream| stream.scaled(1.0 / (16 * MIB) as f64)));
    Ok(())
}

/// Gets of each of [`SIZES`].
fn gets(world: &World, effort: Effort, there: GlobalPtr<f64>, name: &str, figures: &mut Figures) -> Result<()> {
    let mut here = Pages::new(MIB, 0.0);
    for bytes in SIZES {
        let taken = sample(effort.samples / 2, 1, || world.get(there, &mut here.numbers_mut()[..bytes / 8]))?;
        figures.add(format!("far_{name}_{bytes}"), taken);
    }
    Ok(())
}

/// A megabyte in rows of each of [`LENGTHS`].
fn strided(world: &World, effort: Effort, there: GlobalPtr<f64>, figures: &mut Figures) -> Result<()> {
    let mut here = Pages::new(2 * MIB, 0.0);
    for bytes in LENGTHS {
        let row = bytes / 8;
        let shape = Strided { counts: &[row, MIB / bytes], local: &[2 * row], remote: &[2 * row] };
        let taken = sample(effort.samples / 4, 1, || world.get_strided(there, here.numbers_mut(), &shape))?;
        figures.add(format!("far_rows_{bytes}"), taken);
    }
    Ok(())
}

/// What a thread's context takes to make, to get in touch, and of memory.
fn contexts(world: &World, there: GlobalPtr<f64>, figures: &mut Figures) -> Result<()> {
    let before = footprint::resident();
    // All have made theirs; they may go.
    let (made, seen) = (Barrier::new(CONTEXTS + 1), Barrier::new(CONTEXTS + 1));
    let threads = world.threads();
    let mine = || -> armci_core::Result<[f64; 3]> {
        let time = |from: Instant| from.elapsed().as_secs_f64() * 1e9;
        let begin = Instant::now();
        let context = threads.attach();
        let attached = time(begin);
        let gets = context.and_then(|context| {
            let mut word = [0.0];
            let mut get = || -> armci_core::Result<f64> {
                let begin = Instant::now();
                context.get(there, &mut word)?;
                Ok(time(begin))
            };
            Ok(([get()?, get()?], context))
        });
        made.wait();
        seen.wait();
        let ([first, second], _context) = gets?;
        Ok([attached, first, second])
    };
    let (after, taken) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONTEXTS).map(|_| scope.spawn(mine)).collect();
        made.wait();
        let after = footprint::resident();
        seen.wait();
        (after, threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<armci_core::Result<Vec<_>>>())
    });
    let taken = taken?;
    figures.add("far_time_context", Figure::of(taken.iter().map(|[attached, ..]| *attached).collect()));
    figures.add("far_time_endpoint", Figure::of(taken.iter().map(|[_, first, second]| first - second).collect()));
    let grown = before.zip(after).map(|(before, after)| Figure::single((after - before) / CONTEXTS as f64));
    figures.add("far_size_context", grown);
    Ok(())
}

/// What the equations say of the constants: `NAME_predicted` beside each `NAME`.
pub fn predict(figures: &mut Figures) {
    let [Some(o), Some(l), Some(g)] =
        ["far_model_o", "far_model_l", "far_model_g"].map(|name| figures.get(name).map(|figure| figure.median))
    else {
        return;
    };
    let mut add = |name: String, time: f64| figures.add(format!("{name}_predicted"), Some(Figure::single(time)));
    for m in SIZES {
        let bytes = (m - 1) as f64 * g;
        add(format!("far_rdma_{m}"), o + l + bytes);
        add(format!("far_message_{m}"), o + l + o + bytes);
    }
    for row in LENGTHS {
        add(format!("far_rows_{row}"), o * (MIB / row) as f64 + MIB as f64 * g);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_follow_the_equations() {
        let mut figures = Figures::default();
        predict(&mut figures);
        assert_eq!(figures, Figures::default(), "nothing follows from nothing");
        for (name, value) in [("far_model_o", 1000.0), ("far_model_l", 9000.0), ("far_model_g", 0.5)] {
            figures.add(name, Some(Figure::single(value)));
        }
        predict(&mut figures);
        let of = |name: &str| figures.get(&format!("{name}_predicted")).unwrap().median;
        assert_eq!(of("far_rdma_64"), 10_000.0 + 31.5);
        assert_eq!(of("far_message_64"), 11_000.0 + 31.5);
        assert_eq!(of("far_rows_65536"), 16_000.0 + 524_288.0);
    }
}
