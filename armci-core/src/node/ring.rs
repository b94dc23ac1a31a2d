//! The ring: a rank's inbox for active messages from its node.
//!
//! Any rank of the node pushes, one service context pops. Bounded, in place,
//! in the receiver's memory: its size does not depend on how many ranks send.
//!
//! # Protocol
//! Cell `i` carries a stamp. A position `p` (counted from the beginning of
//! time) lives in cell `p % N`. Stamp `p`: free for the sender of position `p`.
//! Stamp `p + 1`: holds message `p`. The receiver frees the cell with stamp
//! `p + N`. A sender claims position `p` by moving `tail` from `p` to `p + 1`,
//! which only one can; writes; and stamps `p + 1` with release, so that the
//! receiver, which reads stamps with acquire, sees the whole message. Likewise
//! the receiver's stamp `p + N` releases its reads before the cell is written
//! again. Stamps are stored less the cell's index: memory fresh from the kernel
//! (all zero) is a valid, empty ring.
//!
//! *Order.* Messages of one sender arrive in the order sent: its claims grow.
//! *A slow sender* between claim and stamp holds up those behind it, as a
//! scheduler does; a dead one ends the job.
//!
//! # Safety
//! RING-SINGLE-CONSUMER: only the holder of the service context pops; then the
//! stamps give each cell to one party at a time, which is what every block
//! below relies on.
#![allow(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::primitive::{AtomicU64, Cell, Ordering};

/// One message place with its stamp: two lines, fetched together.
#[repr(C, align(128))]
#[derive(Debug)]
struct Slot<M> {
    stamp: AtomicU64,
    message: Cell<M>,
}

/// A bounded inbox of `N` messages.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ring<M, const N: usize> {
    tail: CachePadded<AtomicU64>,
    head: CachePadded<AtomicU64>,
    slots: [Slot<M>; N],
}

/// The ring has no free place now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<M: Copy, const N: usize> Ring<M, N> {
    /// Puts a message in; `write` fills its place.
    ///
    /// # Errors
    /// [`Full`] if the receiver is `N` messages behind; `write` was not called.
    #[inline]
    pub(crate) fn push(&self, write: impl FnOnce(*mut M)) -> Result<(), Full> {
        // With one cell, "holds message p" and "free for p + 1" would be the same stamp.
        const { assert!(N >= 2) };
        let mut position = self.tail.load(Ordering::Relaxed);
        loop {
            let (slot, lap) = self.place(position);
            let stamp = slot.stamp.load(Ordering::Acquire);
            if stamp == lap {
                let claim =
                    self.tail.compare_exchange_weak(position, position + 1, Ordering::Relaxed, Ordering::Relaxed);
                match claim {
                    Ok(_) => {
                        slot.message.with_mut(write);
                        slot.stamp.store(lap + 1, Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => position = now,
                }
            } else if stamp < lap {
                return Err(Full);
            } else {
                position = self.tail.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the oldest message out and lends it to `read` in place.
    ///
    /// # Safety
    /// RING-SINGLE-CONSUMER: no other thread pops at the same time.
    #[inline]
    pub(crate) unsafe fn pop<R>(&self, read: impl FnOnce(&M) -> R) -> Option<R> {
        let position = self.head.load(Ordering::Relaxed);
        let (slot, lap) = self.place(position);
        if slot.stamp.load(Ordering::Acquire) != lap + 1 {
            return None;
        }
        let result = slot.message.with(|message| {
            // What is being served waits no more: `has_message` looks behind it from here on.
            self.head.store(position + 1, Ordering::Relaxed);
            // SAFETY: RING-SINGLE-CONSUMER and the stamp give this cell to us until we stamp it again.
            read(unsafe { &*message })
        });
        slot.stamp.store(lap + N as u64, Ordering::Release);
        Some(result)
    }

    /// Whether a message waits to be popped.
    #[inline]
    pub(crate) fn has_message(&self) -> bool {
        let (slot, lap) = self.place(self.head.load(Ordering::Relaxed));
        slot.stamp.load(Ordering::Acquire) == lap + 1
    }

    /// The slot of a position and the stamp, less the slot's index, that makes it free for that position.
    #[inline]
    fn place(&self, position: u64) -> (&Slot<M>, u64) {
        let index = position % N as u64;
        (&self.slots[index as usize], position - index)
    }

    #[cfg(loom)]
    pub(crate) fn new(empty: M) -> Self {
        Ring {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            slots: std::array::from_fn(|_| Slot { stamp: AtomicU64::new(0), message: Cell::new(empty) }),
        }
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::{sync::Arc, thread};

    /// Two senders of two messages each into a ring of two: every message arrives once, each sender's in order.
    #[test]
    fn messages_arrive_once_and_in_order() {
        loom::model(|| {
            let ring = Arc::new(Ring::<(u32, u32), 2>::new((0, 0)));
            let senders: Vec<_> = (1..=2u32)
                .map(|sender| {
                    let ring = ring.clone();
                    thread::spawn(move || {
                        let mut sent = 0;
                        for number in 1..=2u32 {
                            // SAFETY: the place is ours between claim and stamp.
                            match ring.push(|place| unsafe { *place = (sender, number) }) {
                                Ok(()) => sent = number,
                                Err(Full) => break,
                            }
                        }
                        sent
                    })
                })
                .collect();
            let mut seen = [0u32; 3];
            let drain = |seen: &mut [u32; 3]| {
                // SAFETY: RING-SINGLE-CONSUMER: only this thread pops.
                while let Some((sender, number)) = unsafe { ring.pop(|message| *message) } {
                    assert_eq!(number, seen[sender as usize] + 1);
                    seen[sender as usize] = number;
                }
            };
            drain(&mut seen);
            let sent: Vec<u32> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
            drain(&mut seen);
            assert_eq!(seen[1..], sent[..]);
        });
    }

    /// One sender, three messages, two places: the first is read before the third is written over it.
    #[test]
    fn a_place_is_used_again_only_after_it_was_read() {
        loom::model(|| {
            let ring = Arc::new(Ring::<u32, 2>::new(0));
            let sender = {
                let ring = ring.clone();
                thread::spawn(move || {
                    for number in 1..=3 {
                        // SAFETY: the place is ours between claim and stamp.
                        while ring.push(|place| unsafe { *place = number }).is_err() {
                            thread::yield_now();
                        }
                    }
                })
            };
            for number in 1..=3 {
                // SAFETY: RING-SINGLE-CONSUMER: only this thread pops.
                while unsafe { ring.pop(|message| assert_eq!(*message, number)) }.is_none() {
                    thread::yield_now();
                }
            }
            sender.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn zeroed() -> Box<Ring<u64, 8>> {
        // SAFETY: a ring of zero bytes is a valid empty ring, as its protocol says.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn push(ring: &Ring<u64, 8>, value: u64) -> Result<(), Full> {
        // SAFETY: the place is ours between claim and stamp.
        ring.push(|place| unsafe { *place = value })
    }

    #[test]
    fn a_full_ring_refuses_and_loses_nothing() {
        let ring = zeroed();
        for lap in 0..5 {
            for value in 0..8 {
                push(&ring, lap * 8 + value).unwrap();
            }
            assert_eq!(push(&ring, 99), Err(Full));
            for value in 0..8 {
                // SAFETY: RING-SINGLE-CONSUMER: only this thread pops.
                assert_eq!(unsafe { ring.pop(|message| *message) }, Some(lap * 8 + value));
            }
            assert!(!ring.has_message());
        }
    }

    #[test]
    fn four_senders_lose_nothing_and_keep_their_order() {
        let ring = zeroed();
        let each = 20_000u64;
        std::thread::scope(|scope| {
            for sender in 0..4u64 {
                let ring = &ring;
                scope.spawn(move || {
                    for number in 0..each {
                        while push(ring, sender << 32 | number).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0u64; 4];
            while next.iter().sum::<u64>() < 4 * each {
                // SAFETY: RING-SINGLE-CONSUMER: only this thread pops.
                match unsafe { ring.pop(|message| *message) } {
                    Some(message) => {
                        let sender = (message >> 32) as usize;
                        assert_eq!(message & 0xffff_ffff, next[sender]);
                        next[sender] += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}
