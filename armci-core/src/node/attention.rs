//! Who has to be woken when a message arrives at a rank.
//!
//! A rank that waits inside a call serves its inbox itself while it spins. A
//! sender that knows so need not wake the progress thread, which would cost it
//! a system call of some 10 us for nothing.
//!
//! # Protocol
//! Spinning waiters count themselves in `spinning`. A sender pushes its
//! message, then (behind a sequentially consistent fence) reads the count, and
//! wakes the server only if it is zero. A waiter that stops spinning takes
//! itself out, then (behind such a fence) looks at the inbox once more, and
//! serves it, or wakes the server, if something is there. Whichever fence comes
//! first, one of the two sees the other.

use crate::primitive::{AtomicU32, Ordering, fence};

/// How a rank is to be told of a message. All zero bytes: nobody spins, the rank's own threads serve.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Attention {
    /// Threads of the rank that spin in a wait and serve the inbox.
    spinning: AtomicU32,
    /// Whether a progress thread serves (1), or the rank's own threads (0).
    threaded: AtomicU32,
}

impl Attention {
    /// Says whether a progress thread serves this rank.
    pub(crate) fn set_threaded(&self, threaded: bool) {
        self.threaded.store(threaded.into(), Ordering::SeqCst);
    }

    /// Whether a progress thread serves this rank.
    #[inline]
    pub(crate) fn threaded(&self) -> bool {
        self.threaded.load(Ordering::Relaxed) != 0
    }

    /// For a sender, after its push: whether the inbox is being looked at already.
    #[inline]
    pub(crate) fn somebody_looks(&self) -> bool {
        fence(Ordering::SeqCst);
        self.spinning.load(Ordering::Relaxed) != 0
    }

    /// A thread begins to look at the inbox.
    #[inline]
    pub(crate) fn enter(&self) {
        self.spinning.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread stops looking; it must look once more afterwards.
    #[inline]
    pub(crate) fn leave(&self) {
        self.spinning.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use crate::sync::bell::Bell;
    use loom::{sync::Arc, thread};

    /// A message sent while a waiter leaves is served by the waiter or by the thread on the bell, never by nobody.
    #[test]
    fn a_message_is_never_left_lying() {
        loom::model(|| {
            struct Rank {
                attention: Attention,
                bell: Bell,
                inbox: AtomicU32,
            }
            let rank = Arc::new(Rank {
                attention: Attention { spinning: AtomicU32::new(1), threaded: AtomicU32::new(1) },
                bell: Bell::new(),
                inbox: AtomicU32::new(0),
            });
            let server = {
                let rank = rank.clone();
                thread::spawn(move || {
                    while rank.inbox.load(Ordering::Acquire) != 2 {
                        if rank.inbox.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                            rank.bell.sleep_unless(|| rank.inbox.load(Ordering::Acquire) != 0);
                        }
                    }
                })
            };
            let waiter = {
                let rank = rank.clone();
                thread::spawn(move || {
                    rank.attention.leave();
                    if rank.inbox.load(Ordering::Acquire) == 1 {
                        rank.bell.ring();
                    }
                })
            };
            rank.inbox.store(1, Ordering::Release);
            if !rank.attention.somebody_looks() {
                rank.bell.ring();
            }
            waiter.join().unwrap();
            server.join().unwrap();
        });
    }
}
