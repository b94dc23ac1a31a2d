//! The owner word: of the threads that could serve a rank's inbox, one does at a time.
//!
//! # Protocol
//! The word is 0, or 1 while somebody serves. Who moves it to 1 (acquire) owns
//! the inbox, serves, and puts 0 back (release), so owners follow one another.
//! Who finds it taken moves on; nobody waits for it.
//!
//! *Nothing is left lying.* A thread that lost may go to sleep although a
//! message waits, as [`OwnerWord::is_free`] says no. So the owner, having put
//! the word back, looks at the inbox once more, behind a sequentially consistent
//! fence. The sleeper's own look stands behind such a fence too (see
//! `sync/bell.rs`): if that one comes first, the message the sleeper was woken
//! for is known to the owner's look; else the sleeper finds the word free.
//!
//! *A limit leaves something.* An owner that stops because it has served enough
//! does not look again. It must come back, or wake somebody who will.

use crate::primitive::{AtomicU32, Ordering, fence};

/// Who advances the service context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// The progress thread.
    ProgressThread,
    /// A thread of the rank that waits inside a call.
    Waiter,
}

/// Who serves: nobody (0) or somebody (1).
#[derive(Debug)]
pub(crate) struct OwnerWord(AtomicU32);

impl OwnerWord {
    /// Nobody serves.
    pub(crate) fn free() -> Self {
        OwnerWord(AtomicU32::new(0))
    }

    /// Whether nobody serves now.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Serves by `serve_one` while `has_message` says that something waits, unless somebody else is at it; says how
    /// many it served, at most `limit`. `serve_one` runs as the owner, and says whether there was a message.
    #[inline]
    pub(crate) fn serve(
        &self,
        limit: usize,
        has_message: impl Fn() -> bool,
        mut serve_one: impl FnMut() -> bool,
    ) -> usize {
        let mut served = 0;
        while served < limit && has_message() && self.take() {
            while served < limit && serve_one() {
                served += 1;
            }
            self.put_back();
        }
        served
    }

    /// Becomes the owner, unless there is one.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Is the owner no more; has to look at the inbox once more afterwards.
    #[inline]
    pub(crate) fn put_back(&self) {
        self.0.store(0, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_models {
    use super::*;
    use crate::sync::bell::Bell;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// A rank with a thread that serves asleep on a bell, and an inbox of numbered messages.
    struct Rank {
        owner: OwnerWord,
        bell: Bell,
        sent: AtomicU32,
        head: AtomicU32,
        /// What only owners touch.
        served: UnsafeCell<u32>,
    }

    const MESSAGES: u32 = 2;
    const PREEMPTIONS: usize = 3;

    impl Rank {
        fn has_message(&self) -> bool {
            self.sent.load(Ordering::Acquire) > self.head.load(Ordering::Relaxed)
        }

        /// As a ring does: what is being served waits no more. The last one wakes who waits for it, as a reply does.
        fn serve_one(&self) -> bool {
            let head = self.head.load(Ordering::Relaxed);
            if self.sent.load(Ordering::Acquire) == head {
                return false;
            }
            self.head.store(head + 1, Ordering::Relaxed);
            // SAFETY: SERVICE-OWNER; loom checks the exclusion that the word is to give.
            self.served.with_mut(|served| unsafe { *served += 1 });
            if head + 1 == MESSAGES {
                self.bell.ring();
            }
            true
        }

        fn serve(&self, limit: usize) -> usize {
            self.owner.serve(limit, || self.has_message(), || self.serve_one())
        }

        fn all_served(&self) -> bool {
            self.head.load(Ordering::Acquire) == MESSAGES
        }

        /// The progress thread, until all is served.
        fn serve_asleep(&self) {
            while !self.all_served() {
                if self.serve(2) == 0 {
                    self.bell.sleep_unless(|| (self.has_message() && self.owner.is_free()) || self.all_served());
                }
            }
        }
    }

    /// One message waits, another comes, while a waiter serves with this limit and a thread goes to sleep.
    fn a_message_comes_meanwhile(limit: usize) {
        let mut model = loom::model::Builder::new();
        // Three threads with a bell between them have too many schedules to try all.
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let rank = Arc::new(Rank {
                owner: OwnerWord::free(),
                bell: Bell::new(),
                sent: AtomicU32::new(1),
                head: AtomicU32::new(0),
                served: UnsafeCell::new(0),
            });
            let [thread, waiter] = [true, false].map(|asleep| {
                let rank = rank.clone();
                thread::spawn(move || {
                    if asleep {
                        return rank.serve_asleep();
                    }
                    if rank.serve(limit) == limit && rank.has_message() {
                        // What the limit has left is passed on.
                        rank.bell.ring();
                    }
                })
            });
            rank.sent.store(2, Ordering::Release);
            rank.bell.ring();
            waiter.join().unwrap();
            thread.join().unwrap();
            // SAFETY: the others are done.
            rank.served.with(|served| assert_eq!(unsafe { *served }, MESSAGES));
        });
    }

    #[test]
    fn nothing_is_left_lying() {
        a_message_comes_meanwhile(2);
    }

    #[test]
    fn what_a_limit_leaves_is_passed_on() {
        a_message_comes_meanwhile(1);
    }
}
