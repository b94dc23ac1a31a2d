//! The cache of places: which region of another node's rank lies at an address there, without asking its owner again.
//!
//! It is asked for private regions only, since symmetric ones are found by computing, and holds a fixed number of those
//! that this rank allocated together with the owner ([`Together`]): when one of these is freed, this rank takes part in it,
//! and so the next look-up forgets it, in whichever thread that is. So what is found is never out of date, though an
//! address may soon mean another region. When the cache is full, the region whose last use is longest ago gives way.
//!
//! As in `region_cache`, a use changes a number in place: a record in `order` holds when its entry was used when it was
//! filed, which is never later than the truth. If the least record is true, its entry is the victim; otherwise it is filed
//! again, which a use has paid for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZeroU32;

use super::RegionId;
use super::together::{Common, Together};

/// A region of another rank, and where it begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) region: RegionId,
    /// The address of its first byte, in its owner's process.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// What those that allocated it call it.
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    found: Found,
    used: u64,
}

/// The owner of a region, and where it begins.
type Key = (u32, u64);

/// What was learned of addresses and not forgotten.
#[derive(Debug)]
pub(crate) struct PlaceCache {
    capacity: usize,
    entries: BTreeMap<Key, Entry>,
    /// One record for each entry.
    order: BinaryHeap<Reverse<(u64, Key)>>,
    /// Uses so far: tells the time.
    now: u64,
    /// How many regions this rank had freed when entries were last looked through.
    freed: u64,
}

impl PlaceCache {
    /// A cache of so many regions, empty.
    pub(crate) fn new(capacity: NonZeroU32) -> Self {
        let (entries, order) = (BTreeMap::new(), BinaryHeap::new());
        PlaceCache { capacity: capacity.get() as usize, entries, order, now: 0, freed: 0 }
    }

    /// The region of `rank` that an address there lies in, if that is known.
    pub(crate) fn lookup(&mut self, rank: u32, address: u64, together: &Together) -> Option<Found> {
        self.forget_freed(together);
        let (_, entry) = self.entries.range_mut((rank, 0)..=(rank, address)).next_back()?;
        if address - entry.found.start >= entry.found.len {
            return None;
        }
        self.now += 1;
        entry.used = self.now;
        Some(entry.found)
    }

    /// Keeps what `rank` said, if this rank will hear when it is no longer true.
    pub(crate) fn insert(&mut self, rank: u32, found: Found, together: &Together) {
        self.forget_freed(together);
        if !together.has(found.common) {
            return;
        }
        let key = (rank, found.start);
        self.now += 1;
        let entry = Entry { found, used: self.now };
        if let Some(known) = self.entries.get_mut(&key) {
            *known = entry; // its record is older, which is all that it has to be
            return;
        }
        if self.entries.len() == self.capacity {
            self.drop_least_recent();
        }
        self.entries.insert(key, entry);
        self.order.push(Reverse((self.now, key)));
    }

    fn drop_least_recent(&mut self) {
        while let Some(Reverse((filed, key))) = self.order.pop() {
            let used = self.entries[&key].used;
            if used == filed {
                self.entries.remove(&key);
                return;
            }
            self.order.push(Reverse((used, key)));
        }
    }

    fn forget_freed(&mut self, together: &Together) {
        let freed = together.freed();
        if freed == self.freed {
            return;
        }
        self.freed = freed;
        let PlaceCache { entries, order, .. } = self;
        entries.retain(|_, entry| together.has(entry.found.common));
        order.retain(|Reverse((_, key))| entries.contains_key(key));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn common(number: u32) -> Common {
        Common { rank: 0, name: number.into() }
    }

    fn id(number: u32) -> RegionId {
        RegionId { index: number, generation: 1 }
    }

    /// Region `number` of a rank: they lie side by side, each of 100 bytes.
    fn found(number: u32) -> Found {
        Found { region: id(number), start: 100 * u64::from(number), len: 100, common: common(number) }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Lookup(u32, u32),
        Insert(u32, u32),
        Free(u32),
        Allocate(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0u32..3, 0u32..8).prop_map(|(rank, number)| Step::Lookup(rank, number)),
            6 => (0u32..3, 0u32..8).prop_map(|(rank, number)| Step::Insert(rank, number)),
            1 => (0u32..8).prop_map(Step::Free),
            1 => (0u32..8).prop_map(Step::Allocate),
        ]
    }

    proptest! {
        /// The same as a list of what was used, the latest last.
        #[test]
        fn finds_what_was_used_last_and_is_alive(
            capacity in 1u32..6,
            steps in prop::collection::vec(step(), 1..300),
        ) {
            let together = Together::default();
            (0..8).for_each(|number| together.enter(id(number), common(number)));
            let mut cache = PlaceCache::new(NonZeroU32::new(capacity).unwrap());
            let mut model: Vec<(u32, u32)> = Vec::new();
            for step in steps {
                match step {
                    Step::Lookup(rank, number) => {
                        let hit = cache.lookup(rank, 100 * u64::from(number) + 99, &together);
                        let known = model.iter().position(|known| *known == (rank, number));
                        prop_assert_eq!(hit, known.map(|_| found(number)));
                        if let Some(known) = known {
                            let used = model.remove(known);
                            model.push(used);
                        }
                    }
                    Step::Insert(rank, number) => {
                        cache.insert(rank, found(number), &together);
                        if together.has(common(number)) {
                            let known = model.iter().position(|known| *known == (rank, number));
                            if let Some(known) = known {
                                model.remove(known);
                            } else if model.len() == capacity as usize {
                                model.remove(0);
                            }
                            model.push((rank, number));
                        }
                    }
                    Step::Free(number) => {
                        together.leave(id(number));
                        // Names are never used again, so nothing comes back before this is heard.
                        cache.forget_freed(&together);
                        model.retain(|(_, known)| *known != number);
                    }
                    Step::Allocate(number) => together.enter(id(number), common(number)),
                }
                prop_assert!(cache.entries.len() <= capacity as usize);
                prop_assert_eq!(cache.entries.len(), cache.order.len());
            }
        }
    }

    #[test]
    fn what_a_rank_allocated_alone_is_not_kept() {
        let mut cache = PlaceCache::new(NonZeroU32::new(4).unwrap());
        let together = Together::default();
        cache.insert(0, Found { common: Common::NONE, ..found(0) }, &together);
        cache.insert(0, found(1), &together); // of others
        assert!(cache.entries.is_empty());
    }

    #[test]
    fn the_end_of_a_region_is_not_in_it() {
        let mut cache = PlaceCache::new(NonZeroU32::new(4).unwrap());
        let together = Together::default();
        together.enter(id(3), common(3));
        cache.insert(1, found(3), &together);
        assert_eq!(cache.lookup(1, 300, &together), Some(found(3)));
        assert_eq!(cache.lookup(1, 400, &together), None);
        assert_eq!(cache.lookup(1, 299, &together), None);
        assert_eq!(cache.lookup(2, 300, &together), None);
        assert_eq!(cache.lookup(0, 300, &together), None);
    }
}
