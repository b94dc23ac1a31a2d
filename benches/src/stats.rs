//! What samples come to, and how they are taken where nobody else has to keep pace.
//!
//! A call is repeated in batches, long enough that reading the clock does not show, and what a reading takes is
//! subtracted. The first batches find that length and warm everything; they do not count. What is told is the median
//! and the ends, never a mean: others on the machine make tails, and a mean is made of them.

use std::time::{Duration, Instant};

/// How long a batch is at least, unless one call takes longer.
const BATCH: Duration = Duration::from_micros(20);
/// The most calls of a batch.
const MOST: usize = 1 << 16;
/// Fewer samples than this say nothing of the ends.
const LEAST: usize = 5;

/// What samples come to, in nanoseconds per call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The fastest.
    pub least: f64,
    /// 5 of 100 are below.
    pub low: f64,
    /// Half are below.
    pub median: f64,
    /// 95 of 100 are below.
    pub high: f64,
    /// 99 of 100 are below.
    pub p99: f64,
    /// How many there were.
    pub count: usize,
}

impl Stats {
    /// Of these samples; none has no statistics.
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let last = samples.len().checked_sub(1)?;
        // Between two samples, by their distance: a median of an even number is their middle.
        let at = |share: f64| {
            let place = share * last as f64;
            let (below, above) = (samples[place.floor() as usize], samples[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Some(Stats { least: at(0.0), low: at(0.05), median: at(0.5), high: at(0.95), p99: at(0.99), count: last + 1 })
    }

    /// In another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let Stats { least, low, median, high, p99, count } = self;
        let by = |value: f64| value * factor;
        Stats { least: by(least), low: by(low), median: by(median), high: by(high), p99: by(p99), count }
    }
}

/// What two readings of the clock, one right after the other, are apart, in nanoseconds.
pub fn clock() -> f64 {
    let samples = (0..200).map(|_| Instant::now().elapsed().as_nanos() as f64).collect();
    Stats::of(samples).map_or(0.0, |stats| stats.median)
}

/// Takes at most `samples` batches of calls, for at most `budget`, after those that find how long a batch is.
///
/// # Errors
/// The first error of a call.
pub fn batches<E>(
    samples: usize,
    budget: Duration,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<Option<Stats>, E> {
    let clock = clock();
    let mut timed = |batch: usize| {
        let start = Instant::now();
        for _ in 0..batch {
            call()?;
        }
        Ok(start.elapsed())
    };
    let mut batch = 1;
    while timed(batch)? < BATCH && batch < MOST {
        batch *= 2;
    }
    for _ in 0..samples / 20 + 1 {
        timed(batch)?;
    }
    let (begin, mut taken) = (Instant::now(), Vec::with_capacity(samples));
    while taken.len() < samples && (taken.len() < LEAST || begin.elapsed() < budget) {
        taken.push((timed(batch)?.as_nanos() as f64 - clock).max(0.0) / batch as f64);
    }
    Ok(Stats::of(taken))
}

/// Takes so many batches of so many calls: for what all ranks do together, who therefore must agree how often.
///
/// # Errors
/// The first error of a call.
pub fn in_step<E>(samples: usize, batch: usize, mut call: impl FnMut() -> Result<(), E>) -> Result<Option<Stats>, E> {
    let clock = clock();
    let warm = samples / 10 + 2;
    let mut taken = Vec::with_capacity(samples);
    for round in 0..samples + warm {
        let start = Instant::now();
        for _ in 0..batch {
            call()?;
        }
        let elapsed = start.elapsed();
        if round >= warm {
            taken.push((elapsed.as_nanos() as f64 - clock).max(0.0) / batch as f64);
        }
    }
    Ok(Stats::of(taken))
}

/// A straight line through points, as (value at 0, slope), that weighs relative distances: small values count as much
/// as large ones. None of fewer than two places.
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(x, y) in points.iter().filter(|(_, y)| *y > 0.0) {
        let weight = 1.0 / (y * y);
        (w, wx, wy) = (w + weight, wx + weight * x, wy + weight * y);
        (wxx, wxy) = (wxx + weight * x * x, wxy + weight * x * y);
    }
    let determinant = w * wxx - wx * wx;
    if determinant.abs() <= 1e-12 * w * wxx || !determinant.is_finite() {
        return None;
    }
    let slope = (w * wxy - wx * wy) / determinant;
    Some(((wy - slope * wx) / w, slope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn the_middle_and_the_ends_of_known_samples() {
        let stats = Stats::of((0..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!(stats, Stats { least: 0.0, low: 5.0, median: 50.0, high: 95.0, p99: 99.0, count: 101 });
        assert_eq!(Stats::of(vec![4.0, 2.0]).unwrap().median, 3.0);
        assert_eq!(Stats::of(Vec::new()), None);
        assert_eq!(stats.scaled(0.5).high, 47.5);
    }

    #[test]
    fn calls_are_counted_once_they_are_warm_and_the_budget_ends_them() {
        let mut calls = 0;
        let slow = batches(1000, Duration::from_millis(5), || {
            calls += 1;
            std::thread::sleep(Duration::from_millis(1));
            Ok::<(), Infallible>(())
        });
        let stats = slow.unwrap().unwrap();
        assert!(stats.count >= LEAST && stats.count < 50, "{stats:?}");
        assert!(stats.least >= 1e6 * 0.9, "a call sleeps a millisecond: {stats:?}");
        assert!(calls > stats.count, "the first do not count");
        let step = in_step(10, 3, || Ok::<(), Infallible>(())).unwrap().unwrap();
        assert_eq!(step.count, 10);
        assert_eq!(batches(10, Duration::ZERO, || Err::<(), u8>(7)), Err(7));
    }

    #[test]
    fn a_line_is_found_again() {
        let points: Vec<(f64, f64)> = [16.0, 256.0, 65536.0, 1048576.0].map(|m| (m, 40.0 + 0.02 * m)).to_vec();
        let (at_zero, slope) = line(&points).unwrap();
        assert!((at_zero - 40.0).abs() < 1e-6 && (slope - 0.02).abs() < 1e-9, "{at_zero} {slope}");
        assert_eq!(line(&[(1.0, 2.0)]), None);
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
