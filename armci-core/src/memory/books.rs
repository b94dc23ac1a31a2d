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
    ///
    /// Ranks compare sums of it (see `sync/barrier.rs`), so it must not be linear: of sizes in even steps the middle one
    /// is the mean, and one rank would find agreement where the others find none. Hence the shifts between the products
    /// (the finish of MurmurHash3).
    pub(crate) fn digest_with(&self, wish: u64) -> u64 {
        let mut digest = self.history ^ wish;
        for odd in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            digest = (digest ^ digest >> 33).wrapping_mul(odd);
        }
        (digest ^ digest >> 33) >> 16
    }
}

/// Takes a word into a digest. An odd multiplier and a rotation keep every bit's influence; nobody attacks it.
fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(ODD).rotate_left(29)
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// No wish's digest is the mean of its neighbours', after whatever calls.
    #[test]
    fn digests_of_even_steps_are_uneven() {
        let mut books = Books::new(1 << 20);
        for what in 0..50 {
            for (wish, step) in (0u64..200).flat_map(|wish| (1..20).map(move |step| (wish * 8 + 200, step * 8))) {
                let [low, middle, high] = [wish - step, wish, wish + step].map(|wish| books.digest_with(wish));
                let sum = low.wrapping_add(middle).wrapping_add(high);
                assert_ne!(sum << 16, middle.wrapping_mul(3) << 16, "{wish} and {step} more or less");
            }
            books.note(what, RegionId { index: what as u32, generation: 1 });
        }
    }
}
