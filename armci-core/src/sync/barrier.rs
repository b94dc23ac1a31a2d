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

use crossbeam_utils::CachePadded;

use super::bell::Bell;
use crate::primitive::{AtomicU32, Ordering};

/// A barrier in shared memory, for a fixed number of ranks. All zero bytes are a barrier nobody waits at.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NodeBarrier {
    arrived: CachePadded<AtomicU32>,
    epoch: CachePadded<AtomicU32>,
    bell: CachePadded<Bell>,
}

impl NodeBarrier {
    /// Says that one more of `ranks` ranks is here, by each once; the epoch that is to [end](NodeBarrier::is_over) before
    /// it goes on, or none if it was the last. The last one rings the barrier's bell, and by `ring_others` those who
    /// sleep elsewhere.
    #[inline]
    pub(crate) fn arrive(&self, ranks: u32, ring_others: impl FnOnce()) -> Option<u32> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 < ranks {
            return Some(epoch);
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.epoch.store(epoch.wrapping_add(1), Ordering::Release);
        self.bell.ring();
        ring_others();
        None
    }

    /// Whether all had arrived in this epoch.
    #[inline]
    pub(crate) fn is_over(&self, epoch: u32) -> bool {
        self.epoch.load(Ordering::Acquire) != epoch
    }

    /// What the last one to arrive rings.
    #[inline]
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Brings a barrier to rest in memory of which nothing is known; by one rank, before the others know of it.
    pub(crate) fn reset(&self) {
        self.arrived.store(0, Ordering::Relaxed);
        self.epoch.store(0, Ordering::Release);
    }

    #[cfg(loom)]
    fn new() -> Self {
        NodeBarrier {
            arrived: CachePadded::new(AtomicU32::new(0)),
            epoch: CachePadded::new(AtomicU32::new(0)),
            bell: CachePadded::new(Bell::new()),
        }
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// Two rounds: what each wrote before a barrier, the other reads after it.
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
                let barrier = || {
                    // Rank 0 sleeps on the barrier's bell, rank 1 on its own.
                    let Some(epoch) = node.barrier.arrive(2, || node.bell.ring()) else { return };
                    let bell = if me == 0 { node.barrier.bell() } else { &node.bell };
                    while !node.barrier.is_over(epoch) {
                        bell.sleep_unless(|| node.barrier.is_over(epoch));
                    }
                };
                // SAFETY: loom checks the exclusion that the barrier is to give.
                node.data[me].with_mut(|mine| unsafe { *mine = 7 });
                barrier();
                // SAFETY: as above.
                node.data[1 - me].with(|other| assert_eq!(unsafe { *other }, 7));
                barrier();
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
