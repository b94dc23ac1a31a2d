//! What a rank counts with `ARMCI_STATS=1`: per kind of call how many, how large, which way, and how long.
//!
//! Times lie in a histogram of powers of two of a nanosecond: of fixed size, and the sum of all ranks' histograms is
//! that of the job. So a percentile is known to a factor of two; the longest time is known exactly.

use std::cell::RefCell;

use bytemuck::{Pod, Zeroable};

use super::{Call, Kind};

/// Bins of a histogram; the last one takes all of more than four minutes.
const BINS: usize = 39;

/// Bin `b` counts the times from 2^(b-1) to below 2^b nanoseconds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Histogram {
    bins: [u64; BINS],
    longest: u64,
    total: u64,
}

impl Histogram {
    fn add(&mut self, nanoseconds: u64) {
        let bin = (u64::BITS - nanoseconds.leading_zeros()) as usize;
        self.bins[bin.min(BINS - 1)] += 1;
        self.longest = self.longest.max(nanoseconds);
        self.total += nanoseconds;
    }

    /// Takes another rank's times in.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
        self.longest = self.longest.max(other.longest);
        self.total += other.total;
    }

    /// A time that `percent` of 100 calls do not exceed: the upper end of their bin.
    pub(crate) fn percentile(&self, percent: u64) -> u64 {
        let calls: u64 = self.bins.iter().sum();
        let wanted = (calls * percent).div_ceil(100);
        let mut seen = 0;
        let reached = self.bins.iter().position(|bin| {
            seen += bin;
            seen >= wanted
        });
        reached.map_or(self.longest, |bin| (1 << bin).min(self.longest))
    }

    /// The longest time.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// All times together.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

/// What is known of one kind of call.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    /// Calls whose target was the rank itself.
    pub(crate) to_itself: u64,
    /// Calls that went by remote memory access.
    pub(crate) direct: u64,
    pub(crate) times: Histogram,
}

/// A tally per kind of call.
#[derive(Debug)]
pub(crate) struct Tallies(RefCell<[Tally; Kind::CALLS]>);

impl Tallies {
    pub(crate) fn new() -> Self {
        Tallies(RefCell::new([Tally::zeroed(); Kind::CALLS]))
    }

    /// Counts a call of rank `me`.
    pub(crate) fn add(&self, me: usize, call: &Call<'_>, nanoseconds: u64) {
        let tally = &mut self.0.borrow_mut()[call.kind as usize];
        tally.calls += 1;
        tally.bytes += call.bytes as u64;
        tally.to_itself += u64::from(call.target == Some(me));
        tally.direct += u64::from(call.direct);
        tally.times.add(nanoseconds);
    }

    pub(crate) fn read(&self) -> [Tally; Kind::CALLS] {
        *self.0.borrow()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_factor_of_two() {
        let mut times = Histogram::zeroed();
        assert_eq!((times.percentile(50), times.longest()), (0, 0));
        (1..=1000).for_each(|time| times.add(time));
        for percent in [1, 50, 99] {
            let exact = percent * 10;
            assert!((exact..=2 * exact).contains(&times.percentile(percent)), "{percent}");
        }
        assert_eq!((times.percentile(100), times.longest(), times.total()), (1000, 1000, 500_500));
        let mut both = times;
        both.merge(&times);
        assert_eq!((both.percentile(50), both.total()), (times.percentile(50), 2 * times.total()));
        both.add(u64::MAX - both.total);
        assert_eq!(both.longest(), u64::MAX - 1_001_000);
    }
}
