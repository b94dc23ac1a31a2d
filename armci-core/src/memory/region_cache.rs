//! The cache of remote regions: where other ranks' parts lie, without asking their owners again.
//!
//! It holds a fixed number of parts. When it is full, the one that was used
//! least often gives way, and among equals the one whose last use is longest
//! ago: exactly, not about. Everything is allocated when the cache is made. A
//! hit changes two numbers in place; what order they imply is found out at a
//! miss.
//!
//! ```text
//!   key --hash--> index: slot numbers, open addressing      order: one record per entry,
//!                   |                                       the least (uses, used) on top
//!                   v                                            |
//!                 entries: key, part, uses, used  <--------------+
//! ```
//!
//! *Why late is early enough.* An entry's record in `order` holds the uses and
//! the time that were true when it was filed. Both only grow, so a record is
//! never above its entry's truth. If the least record is still true, every
//! other entry's truth is above its own record and so above this one: it is the
//! victim. If not, it is filed again as what is true now, and the next least is
//! looked at. Each such step is paid for by at least one hit before it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::num::NonZeroU32;

use super::region::{Access, Known, Part, RegionId};

/// What a cache has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Look-ups that found their part.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Parts that gave way to another.
    pub evictions: u64,
}

/// Whose part of which region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) rank: u32,
    pub(crate) region: RegionId,
}

/// A part that is known. A line of its own, so that a hit touches one.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Entry {
    key: Key,
    known: Known,
    /// How often it was used, being inserted included.
    uses: u64,
    /// When it was used last.
    used: u64,
}

/// Of an entry that holds nothing.
const NOTHING: Known = Known { part: Part { offset: 0, len: 0 }, access: Access::NONE };

/// What was true of an entry when this was filed. Ordered by what makes a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    uses: u64,
    used: u64,
    entry: u32,
}

/// The parts of remote regions that were asked for and not forgotten.
#[derive(Debug)]
pub(crate) struct RegionCache {
    index: Index,
    /// All of them from the start; those that `free` names hold nothing.
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// One record for each entry that holds something.
    order: BinaryHeap<Reverse<Record>>,
    /// Uses so far: tells the time.
    now: u64,
    counts: CacheCounts,
}

impl RegionCache {
    /// A cache of so many parts, empty.
    pub(crate) fn new(capacity: NonZeroU32) -> Self {
        let vacant = Entry {
            key: Key { rank: 0, region: RegionId { index: 0, generation: 0 } },
            known: NOTHING,
            uses: 0,
            used: 0,
        };
        RegionCache {
            index: Index::new(capacity),
            entries: vec![vacant; capacity.get() as usize],
            free: (0..capacity.get()).rev().collect(),
            order: BinaryHeap::with_capacity(capacity.get() as usize),
            now: 0,
            counts: CacheCounts::default(),
        }
    }

    /// Where `rank`'s part of `region` lies, if that is known.
    #[inline]
    pub(crate) fn lookup(&mut self, rank: u32, region: RegionId) -> Option<Known> {
        let Some(entry) = self.index.find(&self.entries, Key { rank, region }) else {
            self.counts.misses += 1;
            return None;
        };
        self.counts.hits += 1;
        let now = self.tick();
        let entry = &mut self.entries[entry as usize];
        entry.uses += 1;
        entry.used = now;
        Some(entry.known)
    }

    /// The same for who has just looked it up: no use of it.
    #[inline]
    pub(crate) fn again(&self, rank: u32, region: RegionId) -> Option<Known> {
        let entry = self.index.find(&self.entries, Key { rank, region })?;
        Some(self.entries[entry as usize].known)
    }

    /// Keeps what the owner said after a miss; returns what had to give way. A part that is known already is
    /// replaced, which is no use of it.
    pub(crate) fn insert(&mut self, rank: u32, region: RegionId, known: Known) -> Option<Key> {
        let key = Key { rank, region };
        if let Some(entry) = self.index.find(&self.entries, key) {
            self.entries[entry as usize].known = known;
            return None;
        }
        let (entry, victim) = match self.free.pop() {
            Some(entry) => (entry, None),
            None => {
                let entry = self.take_victim();
                let victim = self.entries[entry as usize].key;
                self.index.remove(&self.entries, victim);
                self.counts.evictions += 1;
                (entry, Some(victim))
            }
        };
        let now = self.tick();
        self.entries[entry as usize] = Entry { key, known, uses: 1, used: now };
        self.index.add(&self.entries, entry);
        self.order.push(Reverse(Record { uses: 1, used: now, entry }));
        victim
    }

    /// Forgets all ranks' parts of a region that was freed.
    pub(crate) fn forget(&mut self, region: RegionId) {
        let RegionCache { index, entries, free, order, .. } = self;
        order.retain(|Reverse(record)| {
            let key = entries[record.entry as usize].key;
            if key.region == region {
                index.remove(entries, key);
                free.push(record.entry);
            }
            key.region != region
        });
    }

    /// What it has done so far.
    pub(crate) fn counts(&self) -> CacheCounts {
        self.counts
    }

    /// Takes the record of the entry that is to give way out of the order. The cache is full.
    fn take_victim(&mut self) -> u32 {
        loop {
            let mut least = self.order.peek_mut().expect("a full cache has at least one entry");
            let Entry { uses, used, .. } = self.entries[least.0.entry as usize];
            if (least.0.uses, least.0.used) == (uses, used) {
                return PeekMut::pop(least).0.entry;
            }
            // The heap files it anew when `least` is dropped.
            least.0 = Record { uses, used, ..least.0 };
        }
    }

    #[inline]
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

/// From keys to entries: slot numbers in a table that is at most half full, each in the first free place at or after
/// the one its key hashes to.
///
/// Nothing is marked deleted: what follows a gap moves up into it, so a search ends at the first free place.
#[derive(Debug)]
struct Index {
    places: Vec<u32>,
    /// How far a hash is shifted to give a place.
    shift: u32,
}

/// A place without an entry; the largest entry number is one less.
const FREE: u32 = u32::MAX;

impl Index {
    fn new(capacity: NonZeroU32) -> Self {
        let places = 2 * (capacity.get() as usize).next_power_of_two();
        Index { places: vec![FREE; places], shift: u64::BITS - places.ilog2() }
    }

    /// The place that a key belongs at.
    #[inline]
    fn home(&self, key: Key) -> usize {
        // Two odd multipliers, so that neither consecutive ranks nor consecutive regions pile up; the upper bits of
        // a product depend on all bits of its factors. Nobody attacks this hash.
        let mixed = key.region.to_bits() ^ u64::from(key.rank).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    #[inline]
    fn find(&self, entries: &[Entry], key: Key) -> Option<u32> {
        let mut place = self.home(key);
        loop {
            match self.places[place] {
                FREE => return None,
                entry if entries[entry as usize].key == key => return Some(entry),
                _ => place = self.after(place),
            }
        }
    }

    /// Adds an entry whose key is not there yet.
    fn add(&mut self, entries: &[Entry], entry: u32) {
        let mut place = self.home(entries[entry as usize].key);
        while self.places[place] != FREE {
            place = self.after(place);
        }
        self.places[place] = entry;
    }

    /// Removes a key that is there.
    fn remove(&mut self, entries: &[Entry], key: Key) {
        let mut gap = self.home(key);
        while entries[self.places[gap] as usize].key != key {
            gap = self.after(gap);
        }
        let mut place = self.after(gap);
        while self.places[place] != FREE {
            let home = self.home(entries[self.places[place] as usize].key);
            // Whoever would be searched for at the gap, on the way from its home to its place, belongs there.
            let wrap = self.places.len() - 1;
            if place.wrapping_sub(home) & wrap >= place.wrapping_sub(gap) & wrap {
                self.places[gap] = self.places[place];
                gap = place;
            }
            place = self.after(place);
        }
        self.places[gap] = FREE;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by definition: a list that is scanned.
    #[derive(Default)]
    struct Model {
        capacity: usize,
        entries: Vec<Entry>,
        now: u64,
        counts: CacheCounts,
    }

    impl Model {
        fn lookup(&mut self, key: Key) -> Option<Known> {
            self.now += 1;
            let Some(found) = self.entries.iter_mut().find(|entry| entry.key == key) else {
                self.counts.misses += 1;
                return None;
            };
            self.counts.hits += 1;
            found.uses += 1;
            found.used = self.now;
            Some(found.known)
        }

        fn insert(&mut self, key: Key, known: Known) -> Option<Key> {
            self.now += 1;
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
                entry.known = known;
                return None;
            }
            let mut victim = None;
            if self.entries.len() == self.capacity {
                let least = (0..self.capacity).min_by_key(|at| (self.entries[*at].uses, self.entries[*at].used));
                victim = Some(self.entries.remove(least.unwrap()).key);
                self.counts.evictions += 1;
            }
            self.entries.push(Entry { key, known, uses: 1, used: self.now });
            victim
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// A look-up, and what follows a miss.
        Use(Key),
        Lookup(Key),
        Insert(Key),
        Forget(RegionId),
    }

    fn region() -> impl Strategy<Value = RegionId> {
        (0u32..4, 1u32..3).prop_map(|(index, generation)| RegionId { index, generation })
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = || (0u32..4, region()).prop_map(|(rank, region)| Key { rank, region });
        prop_oneof![
            20 => key().prop_map(Step::Use),
            4 => key().prop_map(Step::Lookup),
            4 => key().prop_map(Step::Insert),
            1 => region().prop_map(Step::Forget),
        ]
    }

    fn cache(capacity: u32) -> RegionCache {
        RegionCache::new(NonZeroU32::new(capacity).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The same hits, the same parts, the same victims; and no more memory than at first.
        #[test]
        fn hits_and_victims_are_those_of_the_definition(
            capacity in 1u32..12,
            steps in prop::collection::vec(step(), 1..400),
        ) {
            let mut cache = cache(capacity);
            let mut model = Model { capacity: capacity as usize, ..Model::default() };
            let room = |cache: &RegionCache| {
                (cache.entries.capacity(), cache.free.capacity(), cache.order.capacity(), cache.index.places.capacity())
            };
            let at_first = room(&cache);
            for (number, step) in steps.into_iter().enumerate() {
                let part = part(number as u64);
                match step {
                    Step::Use(key) => {
                        let found = cache.lookup(key.rank, key.region);
                        prop_assert_eq!(found, model.lookup(key));
                        if found.is_none() {
                            prop_assert_eq!(cache.insert(key.rank, key.region, part), model.insert(key, part));
                        }
                    }
                    Step::Lookup(key) => prop_assert_eq!(cache.lookup(key.rank, key.region), model.lookup(key)),
                    Step::Insert(key) => {
                        prop_assert_eq!(cache.insert(key.rank, key.region, part), model.insert(key, part));
                    }
                    Step::Forget(region) => {
                        cache.forget(region);
                        model.entries.retain(|entry| entry.key.region != region);
                    }
                }
                prop_assert_eq!(cache.counts(), model.counts);
            }
            prop_assert_eq!(room(&cache), at_first);
        }
    }

    const REGION: RegionId = RegionId { index: 3, generation: 1 };

    fn part(offset: u64) -> Known {
        Known { part: Part { offset, len: 8 }, access: Access { address: offset, key: 7 } }
    }

    #[test]
    fn a_cache_of_one_holds_the_last() {
        let mut cache = cache(1);
        for rank in 0..5 {
            assert_eq!(cache.lookup(rank, REGION), None);
            let before = rank.checked_sub(1).map(|rank| Key { rank, region: REGION });
            assert_eq!(cache.insert(rank, REGION, part(rank.into())), before);
            assert_eq!(cache.lookup(rank, REGION), Some(part(rank.into())));
        }
        cache.forget(REGION);
        assert_eq!(cache.lookup(4, REGION), None);
        assert_eq!(cache.counts(), CacheCounts { hits: 5, misses: 6, evictions: 4 });
    }

    #[test]
    fn another_generation_is_another_region() {
        let mut cache = cache(2);
        cache.insert(0, REGION, part(1));
        assert_eq!(cache.lookup(0, RegionId { generation: 2, ..REGION }), None);
        cache.forget(RegionId { generation: 2, ..REGION });
        assert_eq!(cache.lookup(0, REGION), Some(part(1)));
    }
}
