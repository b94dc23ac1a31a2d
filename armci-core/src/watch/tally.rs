//! What a thread counts with `ARMCI_STATS=1`: per kind of call, and per region, how many, how large, which way, and how
//! long.
//!
//! Times lie in a histogram of fixed size, whose bins are an eighth of a doubling wide, and the sum of all ranks'
//! histograms is that of the job. So a percentile is known to an eighth of itself; the longest time is known exactly.
//! A thread tells up to [`REGIONS`] regions apart, and counts all further ones as one.

use std::cell::RefCell;
use std::collections::HashMap;

use bytemuck::{Pod, Zeroable};

use super::{Call, Kind};
use crate::memory::RegionId;

/// Bins of a doubling, as a power of two.
const FINE: u32 = 3;
/// Times from two to the power of this on, more than four minutes, share the last bin.
const TOP: u32 = 38;
/// Bins of a histogram: one for each number below a doubling's bins, then doubling by doubling.
const BINS: usize = (((TOP - FINE + 1) << FINE) + 1) as usize;
/// Regions that a thread tells apart.
const REGIONS: usize = 1024;

/// How often calls took how long, in nanoseconds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Histogram {
    bins: [u64; BINS],
    longest: u64,
    total: u64,
}

/// The bin of a time.
fn bin_of(time: u64) -> usize {
    if time < 1 << FINE {
        return time as usize;
    }
    let exponent = time.ilog2();
    if exponent >= TOP {
        return BINS - 1;
    }
    let eighth = (time >> (exponent - FINE)) as usize & ((1 << FINE) - 1);
    (((exponent - FINE + 1) as usize) << FINE) + eighth
}

/// The longest time of a bin.
fn end_of(bin: usize) -> u64 {
    if bin < 1 << FINE {
        return bin as u64;
    }
    if bin == BINS - 1 {
        return u64::MAX;
    }
    let (doubling, eighth) = ((bin >> FINE) - 1, bin & ((1 << FINE) - 1));
    (((1 << FINE) + eighth as u64 + 1) << doubling) - 1
}

impl Histogram {
    fn add(&mut self, nanoseconds: u64) {
        self.bins[bin_of(nanoseconds)] += 1;
        self.longest = self.longest.max(nanoseconds);
        self.total += nanoseconds;
    }

    /// Takes others' times in.
    fn merge(&mut self, other: &Histogram) {
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
        self.longest = self.longest.max(other.longest);
        self.total += other.total;
    }

    /// A time that `percent` of 100 calls do not exceed: the upper end of their bin.
    pub(crate) fn percentile(&self, percent: u64) -> u64 {
        let calls: u64 = self.bins.iter().sum();
        let wanted = (calls * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.bins.iter().position(|bin| {
            seen += bin;
            seen >= wanted
        });
        reached.map_or(0, |bin| end_of(bin).min(self.longest))
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

/// What is known of one kind of call, or of the calls on one region.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    /// Calls whose target was the rank itself.
    pub(crate) to_itself: u64,
    /// Calls whose target was on another node.
    pub(crate) beyond: u64,
    /// Calls that went by remote memory access.
    pub(crate) direct: u64,
    pub(crate) times: Histogram,
}

impl Tally {
    /// Counts one call.
    pub(crate) fn count(&mut self, bytes: usize, [to_itself, beyond]: [bool; 2], direct: bool, nanoseconds: u64) {
        self.calls += 1;
        self.bytes += bytes as u64;
        self.to_itself += u64::from(to_itself);
        self.beyond += u64::from(beyond);
        self.direct += u64::from(direct);
        self.times.add(nanoseconds);
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.to_itself += other.to_itself;
        self.beyond += other.beyond;
        self.direct += other.direct;
        self.times.merge(&other.times);
    }
}

/// Which region: its name, and whose name that is, as regions that not all ranks have are named by each rank for itself.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
pub(crate) struct Place {
    /// The rank that gave the name; [`Place::EVERYBODY`] if all did.
    pub(crate) owner: u64,
    name: u64,
}

impl Place {
    pub(crate) const EVERYBODY: u64 = u64::MAX;
    /// The regions that are not told apart.
    pub(crate) const FURTHER: Place = Place { owner: u64::MAX, name: u64::MAX };

    /// The region `id` at a rank.
    fn of(id: RegionId, rank: usize) -> Self {
        let owner = if id.is_symmetric() { Place::EVERYBODY } else { rank as u64 };
        Place { owner, name: id.to_bits() }
    }

    pub(crate) fn region(self) -> RegionId {
        RegionId::from_bits(self.name)
    }
}

/// What is known of the calls on one region.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct RegionTally {
    pub(crate) place: Place,
    /// Bytes allocated.
    pub(crate) size: u64,
    /// Calls of each kind.
    pub(crate) kinds: [u64; Kind::CALLS],
    pub(crate) all: Tally,
}

impl RegionTally {
    fn new(place: Place) -> Self {
        RegionTally { place, ..RegionTally::zeroed() }
    }

    pub(crate) fn merge(&mut self, other: &RegionTally) {
        self.size += other.size;
        for (calls, more) in self.kinds.iter_mut().zip(&other.kinds) {
            *calls += more;
        }
        self.all.merge(&other.all);
    }
}

/// A tally for each kind of call and for each region.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) kinds: Vec<Tally>,
    regions: HashMap<Place, Box<RegionTally>>,
    /// Regions told apart at most.
    limit: usize,
}

impl Counts {
    /// Of one rank.
    pub(crate) fn new() -> Self {
        Counts { kinds: vec![Tally::zeroed(); Kind::CALLS], regions: HashMap::new(), limit: REGIONS }
    }

    /// Of a whole job, which tells as many regions apart as its ranks do.
    pub(crate) fn of_all() -> Self {
        Counts { limit: usize::MAX, ..Counts::new() }
    }

    fn region(&mut self, place: Place) -> &mut RegionTally {
        let known = self.regions.len() < self.limit || self.regions.contains_key(&place);
        let place = if known { place } else { Place::FURTHER };
        self.regions.entry(place).or_insert_with(|| Box::new(RegionTally::new(place)))
    }

    /// Counts a call of rank `me`.
    fn add(&mut self, me: usize, call: &Call<'_>, beyond: bool, nanoseconds: u64) {
        let (bytes, to) = (call.bytes, [call.target == Some(me), beyond]);
        self.kinds[call.kind as usize].count(bytes, to, call.direct, nanoseconds);
        let Some(id) = call.region else { return };
        let region = self.region(Place::of(id, call.target.unwrap_or(me)));
        match call.kind {
            Kind::Allocate => region.size += bytes as u64,
            // Who waits for a flag moves nothing.
            Kind::Free | Kind::Wait => {}
            kind => {
                region.kinds[kind as usize] += 1;
                region.all.count(bytes, to, call.direct, nanoseconds);
            }
        }
    }

    /// Takes another's calls of one kind in.
    pub(crate) fn merge_kind(&mut self, kind: usize, tally: &Tally) {
        self.kinds[kind].merge(tally);
    }

    /// Takes another's calls on one region in.
    pub(crate) fn merge_region(&mut self, tally: &RegionTally) {
        self.region(tally.place).merge(tally);
    }

    pub(crate) fn merge(&mut self, other: &Counts) {
        other.kinds.iter().enumerate().for_each(|(kind, tally)| self.merge_kind(kind, tally));
        other.regions.values().for_each(|region| self.merge_region(region));
    }

    /// What is known of each region, in no order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &RegionTally> {
        self.regions.values().map(|region| &**region)
    }
}

/// What a thread counts.
#[derive(Debug)]
pub(crate) struct Tallies(RefCell<Counts>);

impl Tallies {
    pub(crate) fn new() -> Self {
        Tallies(RefCell::new(Counts::new()))
    }

    /// Counts a call of rank `me`.
    pub(crate) fn add(&self, me: usize, call: &Call<'_>, beyond: bool, nanoseconds: u64) {
        self.0.borrow_mut().add(me, call, beyond, nanoseconds);
    }

    /// Adds all that was counted to `sum`.
    pub(crate) fn add_to(&self, sum: &mut Counts) {
        sum.merge(&self.0.borrow());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bin_that_ends_an_eighth_later_at_most() {
        let mut before = 0;
        for time in
            (0..5000).chain((13..TOP).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + (1 << bits) / 3]))
        {
            let bin = bin_of(time);
            assert!((time..=time + time / 8).contains(&end_of(bin)), "{time}: bin {bin} ends at {}", end_of(bin));
            assert!(time == 0 || bin >= bin_of(time - 1), "{time}");
            before = before.max(bin);
        }
        assert!(before < BINS - 1);
        assert_eq!([1 << TOP, u64::MAX].map(bin_of), [BINS - 1; 2]);
    }

    #[test]
    fn percentiles_are_right_to_an_eighth() {
        let mut times = Histogram::zeroed();
        assert_eq!((times.percentile(50), times.longest()), (0, 0));
        (1..=1000).for_each(|time| times.add(time));
        for percent in [1, 50, 99] {
            let exact = percent * 10;
            assert!((exact..=exact + exact / 8).contains(&times.percentile(percent)), "{percent}");
        }
        assert_eq!((times.percentile(100), times.longest(), times.total()), (1000, 1000, 500_500));
        let mut both = times;
        both.merge(&times);
        assert_eq!((both.percentile(50), both.total()), (times.percentile(50), 2 * times.total()));
        both.add(u64::MAX - both.total);
        assert_eq!(both.longest(), u64::MAX - 1_001_000);
    }

    #[test]
    fn regions_beyond_the_limit_are_counted_together() {
        let mut counts = Counts { limit: 2, ..Counts::new() };
        let call =
            |index| Call { target: Some(1), ..Call::of_all(Kind::Put, Some(RegionId { index, generation: 1 }), 8) };
        for index in [0, 1, 2, 3, 1] {
            counts.add(1, &call(index), false, 10);
        }
        let of = |place: Place| counts.regions().find(|region| region.place == place).map(|region| region.all.calls);
        let place = |index| Place::of(RegionId { index, generation: 1 }, 1);
        assert_eq!([place(0), place(1), place(2), Place::FURTHER].map(of), [Some(1), Some(2), None, Some(2)]);
        assert_eq!((counts.kinds[Kind::Put as usize].calls, counts.kinds[Kind::Put as usize].to_itself), (5, 5));
    }
}
