//! What a progress thread counts. Only the thread writes; anybody may read, and sees each number a
//! moment late.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a progress thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Units of work done: the sum of what `advance` returned.
    pub served: u64,
    /// Calls of `advance`.
    pub rounds: u64,
    /// Calls of `advance` that did something.
    pub fruitful: u64,
    /// Times the thread went to sleep.
    pub parks: u64,
}

/// On cache lines of its own, so that counting disturbs nobody's neighbours (two lines: processors
/// fetch them in pairs).
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    served: AtomicU64,
    rounds: AtomicU64,
    fruitful: AtomicU64,
    parks: AtomicU64,
}

impl Counters {
    pub(crate) fn round(&self, served: usize) {
        add(&self.rounds, 1);
        if served > 0 {
            add(&self.served, served as u64);
            add(&self.fruitful, 1);
        }
    }

    pub(crate) fn park(&self) {
        add(&self.parks, 1);
    }

    pub(crate) fn read(&self) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            served: read(&self.served),
            rounds: read(&self.rounds),
            fruitful: read(&self.fruitful),
            parks: read(&self.parks),
        }
    }
}

/// There is one writer, so a load and a store do what a locked instruction would.
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}
