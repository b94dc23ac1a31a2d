//! The books: what is allocated, equal on every rank without talking.
//!
//! Every rank makes the same collective calls in the same order, so all books
//! are equal; a digest of the calls so far lets ranks find out when they are not.

use super::heap::{Block, Heap};
use super::region::{Names, RegionId};

/// What is allocated: equal on every rank.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) heap: Heap,
    pub(crate) names: Names,
    /// A digest of all allocations and frees so far, to be compared between ranks.
    pub(crate) history: u64,
}

impl Books {
    /// The books of a heap of `capacity` bytes in which nothing is allocated.
    pub(crate) fn new(capacity: u64) -> Self {
        Books { heap: Heap::new(capacity), names: Names::symmetric(), history: 0 }
    }

    /// The name and block that the next allocation of `bytes` gets, if a resident block lies ready for it.
    pub(crate) fn ready(&self, bytes: u64) -> Option<(RegionId, Block)> {
        let block = self.heap.ready(bytes.max(1))?;
        Some((self.names.next()?, block))
    }

    /// Takes note of an allocation or a free: of `what`, under this name.
    pub(crate) fn note(&mut self, what: u64, id: RegionId) {
        self.history = mix(mix(self.history, what), id.to_bits());
    }

    /// A digest of all calls so far and of a wish.
    pub(crate) fn digest_with(&self, wish: u64) -> u64 {
        // The upper bits of a product have every bit's influence.
        (self.history ^ wish).wrapping_mul(ODD) >> 16
    }
}

/// Takes a word into a digest. An odd multiplier and a rotation keep every bit's influence; nobody attacks it.
fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(ODD).rotate_left(29)
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
