//! Fetch-and-add on a counter of rank 0 by all other ranks at once (paper 003, Fig. 10): directly, or by message, with
//! and without a progress thread; while rank 0 waits in a barrier, or computes in pieces of 300 us and draws in between,
//! as a rank of a program does that takes tasks itself.
//!
//! The value is what a draw took a rank on average, as in the paper, the median over ranks; the bad end is the worst
//! rank's.

use std::time::{Duration, Instant};

use armci_core::{SharedCounter, World};

use crate::error::Result;
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::stats::Stats;
use crate::study::Wanted;
use crate::timing::compute_unit;

/// A piece of rank 0's computation.
const PIECE: Duration = Duration::from_micros(300);

/// By message with and without a thread, and directly.
pub fn jobs(wanted: &Wanted) -> Vec<Setup> {
    let ranks: &[usize] = if wanted.quick { &[2, 4] } else { &[2, 3, 4, 8, 16] };
    let mut jobs = wanted.each("rmw", ranks, &["rma"], &["thread"]);
    for job in wanted.each("rmw", ranks, &["am"], &["thread", "none"]) {
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    jobs
}

/// Measures; collective.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let window = setup.effort().window;
    let counter = SharedCounter::create(world)?;
    for (id, computes) in [("rmw/owner_waits", false), ("rmw/owner_computes", true)] {
        world.barrier()?;
        let begin = Instant::now();
        let (mut draws, mut longest) = (0u64, 0.0f64);
        if world.rank() != 0 {
            // One more than the window allows: a rank that draws once has drawn.
            while draws == 0 || begin.elapsed() < window {
                let start = Instant::now();
                counter.next()?;
                longest = longest.max(start.elapsed().as_secs_f64() * 1e9);
                draws += 1;
            }
        } else if computes {
            while begin.elapsed() < window {
                let piece = Instant::now();
                let mut x = 1.0;
                while piece.elapsed() < PIECE {
                    x = compute_unit(x);
                }
                counter.next()?;
            }
        }
        let took = begin.elapsed().as_secs_f64() * 1e9;
        let all = world.all_gather(&[if draws == 0 { -1.0 } else { took / draws as f64 }, longest])?;
        if world.rank() == 0 {
            let others: Vec<&[f64]> = all.chunks_exact(2).skip(1).collect();
            let means = others.iter().map(|rank| rank[0]).collect();
            if let Some(stats) = Stats::of(means) {
                let longest = others.iter().map(|rank| rank[1]).fold(0.0, f64::max);
                let record = Record::time(id, stats).at("ranks", world.size() as f64).against(setup.limit("line"));
                notes.add(Record { p99: Some(longest), ..record }.remark("bad end: the longest draw of any rank"));
            }
            // Each by its own clock: rank 0's ends when it has nothing to do.
            let all_draws: f64 = others.iter().filter(|rank| rank[0] > 0.0).map(|rank| 1e9 / rank[0]).sum();
            let rate = Record::new(format!("{id}/rate"), all_draws, "1/s");
            notes.add(rate.at("ranks", world.size() as f64));
        }
    }
    Ok(counter.destroy()?)
}
