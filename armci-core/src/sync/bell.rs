//! The bell: how a rank that sleeps in the kernel is woken by a peer.
//!
//! # Protocol
//! A sleeper (1) reads `seq`, (2) raises `asleep`, (3) looks once more at what
//! it waits for, (4) sleeps in the kernel while `seq` is unchanged. A peer (a)
//! publishes what the sleeper waits for, (b) looks at `asleep`, and only if it
//! is raised (c) lowers it, (d) bumps `seq` and (e) wakes everybody on it.
//!
//! *Lost wake-up.* Between 2 and 3 and between a and b stands a sequentially
//! consistent fence. If the peer's fence comes first, step 3 sees what was
//! published; else step b sees the flag. Either way nobody sleeps on.
//!
//! *Early wake.* When d happens between 1 and 4, the kernel refuses to sleep.
//! When another sleeper raised the flag that the peer then lowers, both are
//! woken and look again.
//!
//! A peer that finds nobody asleep pays for one fence and one load of a line
//! that only sleepers write.

use crate::primitive::{AtomicU32, Ordering, fence, futex};

/// A futex word with a flag that says whether ringing it is worth a system call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Bell {
    /// Bumped by each ring that wakes; the word that sleepers sleep on.
    seq: AtomicU32,
    /// Not zero while somebody sleeps, or is about to.
    asleep: AtomicU32,
}

impl Bell {
    /// Wakes whoever sleeps here. To be called after what they wait for was published.
    #[inline]
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Relaxed suffices for the flag: what it guards was published before the fence in `ring`.
        if self.asleep.swap(0, Ordering::Relaxed) != 0 {
            self.seq.fetch_add(1, Ordering::Release);
            futex::wake(&self.seq, i32::MAX as u32);
        }
    }

    /// Whether somebody sleeps here, or is about to, and has not been rung for.
    pub(crate) fn is_awaited(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until rung, unless `ready` holds; may return early.
    pub(crate) fn sleep_unless(&self, ready: impl FnOnce() -> bool) {
        let seq = self.seq.load(Ordering::Acquire);
        self.asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Finding it ready, the flag stays up: lowering it could strand another sleeper.
        if !ready() {
            futex::wait(&self.seq, seq);
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Bell { seq: AtomicU32::new(0), asleep: AtomicU32::new(0) }
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::{sync::Arc, thread};

    #[test]
    fn nobody_sleeps_through_a_ring() {
        loom::model(|| {
            let shared = Arc::new((Bell::new(), AtomicU32::new(0)));
            let sleeper = {
                let shared = shared.clone();
                thread::spawn(move || {
                    while shared.1.load(Ordering::Acquire) == 0 {
                        shared.0.sleep_unless(|| shared.1.load(Ordering::Acquire) != 0);
                    }
                })
            };
            shared.1.store(1, Ordering::Release);
            shared.0.ring();
            sleeper.join().unwrap();
        });
    }
}
