//! The element locks: what makes accumulates atomic against each other.
//!
//! Each rank has [`STRIPES`] locks for its memory, [`STRIPE_BYTES`] of it to a
//! lock, round and round. Whoever applies an accumulate, the origin in place or
//! whoever serves the target, takes the lock of each stripe it enters and
//! leaves it at the stripe's end; so accumulates to different stripes run side
//! by side, and those to the same one exclude each other whatever path they
//! came by. No one holds two locks at a time.
//!
//! # Protocol
//! One word: 0 free, 1 taken, 2 taken and perhaps somebody sleeps. `lock`
//! takes 0 to 1; failing that it spins briefly, then puts 2 in and sleeps while
//! it stays 2; whoever wakes takes the lock as 2, since others may sleep still.
//! `unlock` puts 0 in and wakes one sleeper if it found 2. Taking acquires and
//! leaving releases, so an element added under the lock is seen by the next holder.

use crate::primitive::{AtomicU32, Ordering, futex, spin_loop};

/// Locks per rank.
pub(crate) const STRIPES: usize = 64;
/// Consecutive bytes of a rank's memory that share a lock.
pub(crate) const STRIPE_BYTES: usize = 16 << 10;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const CONTENDED: u32 = 2;
/// Looks at a taken lock before sleeping: about the time of one stripe's work.
const SPINS: u32 = if cfg!(loom) { 1 } else { 200 };

/// One lock on a line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct ElementLock {
    state: AtomicU32,
}

/// All locks of a rank.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ElementLocks([ElementLock; STRIPES]);

impl ElementLocks {
    /// The lock of the stripe that `offset` of the rank's slot lies in.
    #[inline]
    pub(crate) fn of(&self, offset: usize) -> &ElementLock {
        &self.0[offset / STRIPE_BYTES % STRIPES]
    }
}

/// The lock, held.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a ElementLock);

impl ElementLock {
    /// Takes the lock, sleeping if it must.
    #[inline]
    pub(crate) fn lock(&self) -> Held<'_> {
        if self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended();
        }
        Held(self)
    }

    #[cold]
    fn lock_contended(&self) {
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
            spin_loop();
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex::wait(&self.state, CONTENDED);
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        ElementLock { state: AtomicU32::new(FREE) }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.state.swap(FREE, Ordering::Release) == CONTENDED {
            futex::wake(&self.0.state, 1);
        }
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// Two holders, twice each: either sees what the other did, and nobody sleeps on.
    #[test]
    fn holders_exclude_each_other() {
        loom::model(|| {
            let shared = Arc::new((ElementLock::new(), UnsafeCell::new(0)));
            let add_twice = |shared: &(ElementLock, UnsafeCell<i32>)| {
                for _ in 0..2 {
                    let held = shared.0.lock();
                    // SAFETY: loom checks the exclusion that the lock is to give.
                    shared.1.with_mut(|sum| unsafe { *sum += 1 });
                    drop(held);
                }
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || add_twice(&shared))
            };
            add_twice(&shared);
            other.join().unwrap();
            // SAFETY: the other is done.
            shared.1.with(|sum| assert_eq!(unsafe { *sum }, 4));
        });
    }
}
