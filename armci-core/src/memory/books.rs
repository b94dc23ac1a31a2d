//! The books: what is allocated, equal on every rank without talking.
//!
//! Every rank makes the same collective calls in the same order, so all books
//! are equal; a digest of the calls so far lets ranks find out when they are not.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::heap::Heap;
use super::region::{Names, RegionId};

/// What is allocated: equal on every rank.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) heap: Heap,
    pub(crate) names: Names,
    /// Which region begins where in every slot.
    pub(crate) by_offset: BTreeMap<u64, RegionId>,
    /// A digest of all allocations and frees so far, to be compared between ranks.
    pub(crate) history: u64,
}

impl Books {
    /// The books of a heap of `capacity` bytes in which nothing is allocated.
    pub(crate) fn new(capacity: u64) -> Self {
        Books { heap: Heap::new(capacity), names: Names::default(), by_offset: BTreeMap::new(), history: 0 }
    }

    /// Takes note of an allocation or a free.
    pub(crate) fn note(&mut self, what: u64, id: RegionId) {
        let mut hasher = DefaultHasher::new();
        (self.history, what, id).hash(&mut hasher);
        self.history = hasher.finish();
    }
}
