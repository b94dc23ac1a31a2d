//! The queue lock of Mellor-Crummey and Scott, over words that may lie in other ranks' memories.
//!
//! Guaranteed: one holder at a time; first come, first served; who locks sees
//! what the last holder did. How words are reached is somebody else's
//! ([`Words`]): `mutex.rs` reaches them through the world, the models below in place.
//!
//! # Protocol
//! A lock is one word, the *tail*: 0, or the number of who came last (numbers
//! begin with 1). Everybody has a *node* of two words in memory of its own:
//! `next`, the number of who came after it, or 0; and `turn`, 1 once the lock
//! was handed to it.
//!
//! ```text
//!   tail --> 4                             unlock by the holder, 2:
//!                                            next = 0, and the tail still its own: tail = 0
//!   2   node: next = 4                       else wait for next, and set that one's turn
//!   4   node: turn = 0, waits
//! ```
//!
//! *Lock*: clear the own node; swap the own number into the tail; if somebody
//! was there, tell it by its `next` and wait for the own `turn`. *Try*: clear
//! the own node; compare-and-swap the tail from 0. *Unlock*: as in the picture.
//!
//! *Orderings.* The node is cleared by relaxed stores in the own memory before
//! the swap, which releases them; who comes next acquires them by its own swap
//! before it sets `next`. So `next` and `turn` are never cleared over what
//! somebody else wrote. Nor can a notice of an earlier turn come late: each is
//! set at most once between two clearings, and is awaited before the turn ends:
//! `turn` before the lock is entered, `next` unless the tail proves that there
//! is none. From one holder to the entry of the next leads the release of the
//! tail (a swap that finds 0 acquires what the unlock's compare-and-swap
//! wrote), or the release of `turn`, read with acquire.
//!
//! *Nobody is left waiting.* Once a number has been swapped into the tail, its
//! owner tells its predecessor, come what may: [`Words::raise`] must not be kept
//! from it. Unlocking waits for such a rank only.

use crate::error::Result;

/// A word of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Who came after the node's owner.
    Next,
    /// Whether it is its turn.
    Turn,
}

/// The words of one lock, as one who may lock it reaches them. Every error ends the job, or comes before anything
/// was changed.
pub(crate) trait Words {
    /// Stores 0 in a word of the own node; needs no order.
    fn clear(&self, word: Word) -> Result<()>;
    /// What a word of the own node holds; needs no order.
    fn glance(&self, word: Word) -> Result<i64>;
    /// Waits until `holds` says yes to a word of the own node; acquires what was released with it.
    fn wait(&self, word: Word, holds: impl Fn(i64) -> bool) -> Result<i64>;
    /// Stores `value` in a word of another's node, with release, and wakes it.
    fn raise(&self, word: Word, of: i64, value: i64) -> Result<()>;
    /// Puts `value` into the tail and returns what it held; acquires and releases.
    fn swap_tail(&self, value: i64) -> Result<i64>;
    /// Puts `value` into the tail if it holds `expected`; returns what it held; acquires and releases.
    fn compare_swap_tail(&self, expected: i64, value: i64) -> Result<i64>;
}

/// Locks, as number `me`.
pub(crate) fn lock(words: &impl Words, me: i64) -> Result<()> {
    clear_node(words)?;
    let predecessor = words.swap_tail(me)?;
    if predecessor != 0 {
        words.raise(Word::Next, predecessor, me)?;
        words.wait(Word::Turn, |turn| turn == 1)?;
    }
    Ok(())
}

/// Locks if it is free, as number `me`; says whether it was.
pub(crate) fn try_lock(words: &impl Words, me: i64) -> Result<bool> {
    clear_node(words)?;
    Ok(words.compare_swap_tail(0, me)? == 0)
}

/// Lets the next one in, or leaves the lock free; for its holder, number `me`.
pub(crate) fn unlock(words: &impl Words, me: i64) -> Result<()> {
    // If somebody is there, the wait below reads it again with acquire.
    let nobody = words.glance(Word::Next)? == 0;
    if nobody && words.compare_swap_tail(me, 0)? == me {
        return Ok(());
    }
    let successor = words.wait(Word::Next, |next| next != 0)?;
    words.raise(Word::Turn, successor, 1)
}

fn clear_node(words: &impl Words) -> Result<()> {
    words.clear(Word::Next)?;
    words.clear(Word::Turn)
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_models {
    use super::*;
    use crate::primitive::{AtomicU64, Ordering};
    use crate::sync::bell::Bell;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    struct Node {
        next: AtomicU64,
        turn: AtomicU64,
        bell: Bell,
    }

    /// A lock, the nodes of who may lock it, and what it guards.
    struct Shared<const N: usize> {
        tail: AtomicU64,
        nodes: [Node; N],
        sum: UnsafeCell<i64>,
    }

    /// The words as number `me` reaches them: the accesses that the shared-memory transport and `notify.rs` make.
    struct Reach<'a, const N: usize>(&'a Shared<N>, i64);

    impl<const N: usize> Reach<'_, N> {
        fn node(&self, of: i64) -> &Node {
            &self.0.nodes[of as usize - 1]
        }

        fn word(&self, word: Word, of: i64) -> &AtomicU64 {
            match word {
                Word::Next => &self.node(of).next,
                Word::Turn => &self.node(of).turn,
            }
        }
    }

    impl<const N: usize> Words for Reach<'_, N> {
        fn clear(&self, word: Word) -> Result<()> {
            self.word(word, self.1).store(0, Ordering::Relaxed);
            Ok(())
        }

        fn glance(&self, word: Word) -> Result<i64> {
            Ok(self.word(word, self.1).load(Ordering::Relaxed) as i64)
        }

        fn wait(&self, word: Word, holds: impl Fn(i64) -> bool) -> Result<i64> {
            let look = || self.word(word, self.1).load(Ordering::Acquire) as i64;
            loop {
                let value = look();
                if holds(value) {
                    return Ok(value);
                }
                self.node(self.1).bell.sleep_unless(|| holds(look()));
            }
        }

        fn raise(&self, word: Word, of: i64, value: i64) -> Result<()> {
            self.word(word, of).store(value as u64, Ordering::Release);
            self.node(of).bell.ring();
            Ok(())
        }

        fn swap_tail(&self, value: i64) -> Result<i64> {
            Ok(self.0.tail.swap(value as u64, Ordering::AcqRel) as i64)
        }

        fn compare_swap_tail(&self, expected: i64, value: i64) -> Result<i64> {
            let tail = &self.0.tail;
            let found = tail.compare_exchange(expected as u64, value as u64, Ordering::AcqRel, Ordering::Acquire);
            Ok(found.unwrap_or_else(|found| found) as i64)
        }
    }

    /// `N` at one lock, `rounds` times each; returns what they have counted under it.
    fn count<const N: usize>(preemptions: usize, rounds: usize, enter: fn(&Reach<'_, N>, i64) -> bool) {
        let mut model = loom::model::Builder::new();
        // All schedules are too many where each has a bell.
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let node = |_| Node { next: AtomicU64::new(0), turn: AtomicU64::new(0), bell: Bell::new() };
            let shared = Arc::new(Shared::<N> {
                tail: AtomicU64::new(0),
                nodes: std::array::from_fn(node),
                sum: UnsafeCell::new(0),
            });
            let run = move |shared: &Shared<N>, me: i64| {
                let words = Reach(shared, me);
                let mut entered = 0;
                for _ in 0..rounds {
                    if enter(&words, me) {
                        // SAFETY: loom checks the exclusion that the lock is to give.
                        shared.sum.with_mut(|sum| unsafe { *sum += 1 });
                        entered += 1;
                        unlock(&words, me).unwrap();
                    }
                }
                entered
            };
            let others: Vec<_> = (2..=N as i64)
                .map(|me| {
                    let shared = shared.clone();
                    thread::spawn(move || run(&shared, me))
                })
                .collect();
            let mine = run(&shared, 1);
            let entered = others.into_iter().map(|other| other.join().unwrap()).sum::<i64>() + mine;
            // SAFETY: the others are done.
            shared.sum.with(|sum| assert_eq!(unsafe { *sum }, entered));
            assert_eq!(shared.tail.load(Ordering::Relaxed), 0, "it is free in the end");
        });
    }

    /// Twice each: nodes are used again.
    #[test]
    fn two_exclude_each_other() {
        count::<2>(4, 2, |words, me| lock(words, me).is_ok());
    }

    /// A queue: the one in the middle is told, and tells.
    #[test]
    fn three_are_served_one_after_the_other() {
        count::<3>(2, 1, |words, me| lock(words, me).is_ok());
    }

    /// The first only tries.
    #[test]
    fn a_try_is_a_lock_or_nothing() {
        count::<2>(4, 2, |words, me| if me == 1 { try_lock(words, me).unwrap() } else { lock(words, me).is_ok() });
    }
}
