//! The cache of remote regions between nodes, where it holds a sixteenth of the regions that are used: how often a get
//! finds its region there, and what it costs when it does not.
//!
//! Three ways to choose the next region are tried. *Evenly*, each as likely as any other: then no cache can do better than
//! its share. *Skewed*, the k-th region with a likelihood of 1/k: then a cache that keeps what is used often does much
//! better than its share. *Turned*, the same the other way round afterwards: then it has to forget what was used often. Whether a get missed is read off the cache's own count, before and after.

use std::time::Instant;

use armci_core::{Region, World};

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::Effort;

/// Regions in use, and how many the cache holds.
const REGIONS: usize = 256;
/// As the setting.
pub const CAPACITY: &str = "16";

/// Measures all ways; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let regions = (0..REGIONS).map(|_| world.allocate(64)).collect::<std::result::Result<Vec<_>, _>>()?;
    world.barrier()?;
    if world.rank() == 1 {
        let even = vec![1.0; REGIONS];
        let skewed: Vec<f64> = (1..=REGIONS).map(|k| 1.0 / k as f64).collect();
        let turned: Vec<f64> = skewed.iter().rev().copied().collect();
        for (name, weights) in [("skewed", skewed), ("turned", turned), ("even", even)] {
            run(world, effort, &regions, &Likelihoods::of(&weights), name, figures)?;
        }
    }
    world.barrier()?;
    Ok(regions.into_iter().try_for_each(|region| world.free(region))?)
}

fn run(
    world: &World,
    effort: Effort,
    regions: &[Region],
    likelihoods: &Likelihoods,
    name: &str,
    figures: &mut Figures,
) -> Result<()> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut found, mut missed) = (Vec::new(), Vec::new());
    let gets = 20 * effort.samples;
    for turn in 0..gets + gets / 5 {
        let region = &regions[likelihoods.pick(random.next())];
        let before = world.statistics().region_cache.misses;
        let start = Instant::now();
        world.get_value::<u64>(region.at(0, 0))?;
        let took = start.elapsed().as_secs_f64() * 1e9;
        if turn >= gets / 5 {
            if world.statistics().region_cache.misses == before { &mut found } else { &mut missed }.push(took);
        }
    }
    let rate = found.len() as f64 / gets as f64;
    figures.add(format!("far_cache_{name}_hits"), Some(Figure::single(rate)));
    let mut all: Vec<f64> = found.iter().chain(&missed).copied().collect();
    all.sort_by(f64::total_cmp);
    for percent in [10, 50, 90, 99] {
        figures.add(
            format!("far_cache_{name}_p{percent}"),
            all.get(all.len() * percent / 100).copied().map(Figure::single),
        );
    }
    let (hit, miss) = (Figure::of(found), Figure::of(missed));
    let cost = hit.zip(miss).map(|(hit, miss)| Figure::single(miss.median - hit.median));
    figures.add(format!("far_cache_{name}_hit"), hit);
    figures.add(format!("far_cache_{name}_cost"), cost);
    // What a miss should cost: a message and its answer, to the same rank that is in the same barrier.
    if name == "even" {
        let asks =
            crate::timing::sample(5 * effort.samples, 1, || world.fetch_add(regions[0].at::<i64>(0, 1), 0).map(drop))?;
        figures.add("far_cache_ask", asks);
    }
    Ok(())
}

/// Numbers without an order that anybody would miss.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How likely each of several is, added up.
struct Likelihoods(Vec<f64>);

impl Likelihoods {
    fn of(weights: &[f64]) -> Self {
        let all: f64 = weights.iter().sum();
        let add = |sum: &mut f64, weight: &f64| {
            *sum += weight / all;
            Some(*sum)
        };
        Likelihoods(weights.iter().scan(0.0, add).collect())
    }

    /// The one that a number from 0 to 1 stands for.
    fn pick(&self, number: f64) -> usize {
        self.0.partition_point(|sum| *sum <= number).min(self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_picked_as_often_as_its_weight_says() {
        let likelihoods = Likelihoods::of(&[1.0, 2.0, 1.0]);
        let mut random = Random(1);
        let mut picked = [0; 3];
        (0..40_000).for_each(|_| picked[likelihoods.pick(random.next())] += 1);
        let near = |count: i32, expected: i32| (count - expected).abs() < 600;
        assert!(near(picked[0], 10_000) && near(picked[1], 20_000) && near(picked[2], 10_000), "{picked:?}");
        assert_eq!((likelihoods.pick(0.0), likelihoods.pick(1.0)), (0, 2));
    }
}
