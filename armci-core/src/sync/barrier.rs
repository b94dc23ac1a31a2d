//! The barrier of a node: everybody arrives, then everybody leaves.
//!
//! # Protocol
//! One counter, one epoch. Each rank remembers the epoch, adds itself to
//! `arrived`, and waits for the epoch to change; the last one resets the
//! counter, moves the epoch on (release) and rings whoever fell asleep. The
//! additions are acquire and release, so what any rank wrote before it arrived
//! is seen by all after they leave. The counter is reset before the epoch
//! moves, so nobody can arrive for the next round too early. All sleepers sleep
//! on one bell and are woken by one system call, except those who must also be
//! woken for messages.
//!
//! One counter for all suits a node: the last to arrive wakes the sleepers, so
//! with more ranks than cores each is scheduled once per barrier, where the
//! rounds of a dissemination barrier would schedule each several times.
//!
//! *Agreement.* Each rank may bring a digest, which travels in the upper bits of
//! the counter, added up. The last one stores the sum beside the epoch, where
//! all find it on a line they read anyway: a rank whose own digest times the
//! number of ranks is that sum may take it that all brought the same. The sum
//! is overwritten only after all have arrived once more, and so have read it.

use crossbeam_utils::CachePadded;

use super::bell::Bell;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// A barrier in shared memory, for a fixed number of ranks. All zero bytes are a barrier nobody waits at.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NodeBarrier {
    /// How many are here, and above [`COUNT_BITS`] the sum of what they brought.
    arrived: CachePadded<AtomicU64>,
    end: CachePadded<End>,
    bell: CachePadded<Bell>,
}

/// What all wait for.
#[repr(C)]
#[derive(Debug)]
struct End {
    epoch: AtomicU32,
    /// The sum of what all brought to the epoch that ended last.
    sum: AtomicU64,
    /// How many split-phase barriers all other nodes have come to.
    beyond: AtomicU64,
}

/// Bits of the counter that count ranks.
const COUNT_BITS: u32 = 16;

impl NodeBarrier {
    /// Says that one more of `ranks` ranks is here, with a digest, by each once; the epoch that is to [end](NodeBarrier::is_over) before
    /// it goes on, or none if it was the last. The last one rings the barrier's bell, and by `ring_others` those who
    /// sleep elsewhere.
    #[inline]
    pub(crate) fn arrive(&self, ranks: u32, digest: u64, ring_others: impl FnOnce()) -> Option<u32> {
        let epoch = self.end.epoch.load(Ordering::Relaxed);
        let mine = 1 + (digest << COUNT_BITS);
        let arrived = self.arrived.fetch_add(mine, Ordering::AcqRel).wrapping_add(mine);
        if arrived & ((1 << COUNT_BITS) - 1) < u64::from(ranks) {
            return Some(epoch);
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.end.sum.store(arrived >> COUNT_BITS, Ordering::Relaxed);
        self.end.epoch.store(epoch.wrapping_add(1), Ordering::Release);
        self.bell.ring();
        ring_others();
        None
    }

    /// Whether all had arrived in this epoch.
    #[inline]
    pub(crate) fn is_over(&self, epoch: u32) -> bool {
        self.end.epoch.load(Ordering::Acquire) != epoch
    }

    /// Whether all of `ranks` ranks brought this digest to the epoch that has just ended for the caller, too.
    #[inline]
    pub(crate) fn agreed(&self, ranks: u32, digest: u64) -> bool {
        let all = digest.wrapping_mul(u64::from(ranks));
        self.end.sum.load(Ordering::Relaxed) == (all << COUNT_BITS) >> COUNT_BITS
    }

    /// How many split-phase barriers all other nodes have come to.
    pub(crate) fn beyond(&self) -> u64 {
        self.end.beyond.load(Ordering::Acquire)
    }

    /// Says so, and rings.
    pub(crate) fn come_beyond(&self, phases: u64) {
        self.end.beyond.store(phases, Ordering::Release);
        self.bell.ring();
    }

    /// What the last one to arrive rings.
    #[inline]
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Brings a barrier to rest in memory of which nothing is known; by one rank, before the others know of it.
    pub(crate) fn reset(&self) {
        self.arrived.store(0, Ordering::Relaxed);
        self.end.beyond.store(0, Ordering::Relaxed);
        self.end.epoch.store(0, Ordering::Release);
    }

    #[cfg(loom)]
    fn new() -> Self {
        NodeBarrier {
            arrived: CachePadded::new(AtomicU64::new(0)),
            end: CachePadded::new(End { epoch: AtomicU32::new(0), sum: AtomicU64::new(0), beyond: AtomicU64::new(0) }),
            bell: CachePadded::new(Bell::new()),
        }
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// Two rounds: what each wrote before a barrier, the other reads after it; and both know whether they agree.
    #[test]
    fn writes_before_are_seen_after() {
        loom::model(|| {
            struct Node {
                barrier: NodeBarrier,
                bell: Bell,
                data: [UnsafeCell<u32>; 2],
            }
            let node = Arc::new(Node {
                barrier: NodeBarrier::new(),
                bell: Bell::new(),
                data: [UnsafeCell::new(0), UnsafeCell::new(0)],
            });
            let rank = |me: usize, node: &Node| {
                let barrier = |digest: u64| {
                    // Rank 0 sleeps on the barrier's bell, rank 1 on its own.
                    let Some(epoch) = node.barrier.arrive(2, digest, || node.bell.ring()) else {
                        return node.barrier.agreed(2, digest);
                    };
                    let bell = if me == 0 { node.barrier.bell() } else { &node.bell };
                    while !node.barrier.is_over(epoch) {
                        bell.sleep_unless(|| node.barrier.is_over(epoch));
                    }
                    node.barrier.agreed(2, digest)
                };
                // SAFETY: loom checks the exclusion that the barrier is to give.
                node.data[me].with_mut(|mine| unsafe { *mine = 7 });
                assert!(barrier(5));
                // SAFETY: as above.
                node.data[1 - me].with(|other| assert_eq!(unsafe { *other }, 7));
                assert!(!barrier(me as u64));
                // SAFETY: as above.
                node.data[me].with_mut(|mine| unsafe { *mine = 8 });
            };
            let other = {
                let node = node.clone();
                thread::spawn(move || rank(1, &node))
            };
            rank(0, &node);
            other.join().unwrap();
        });
    }
}
