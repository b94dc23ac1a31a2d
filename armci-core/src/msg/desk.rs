//! The desk: where the thread that serves a rank's inbox and the thread that sends and receives meet.
//!
//! Three things lie on it. *Arrivals* go to the receiver through a channel. *The lent buffer* is where the data of the
//! one long message goes that is being received. *The open offer* is the one long message that is being sent.
//!
//! # Protocol
//! The serving thread puts something here and then rings the bell of the rank's waits; who waits looks here again
//! after it has announced its sleep (see `sync/bell.rs`). The channel's own fence stands between the two looks.
//!
//! The buffer is lent and taken back under a mutex, which the serving thread holds while it copies a piece. So once
//! [`Desk::lend`] returns, for whatever reason, nobody writes there any more. That all has arrived is told by a
//! counter, stored with release after each piece and read with acquire, so that waiting takes no lock. The mutex is
//! contended only if a buffer is taken back half full, which only an error does.
//!
//! # Safety
//! BUFFER-LENT: while a buffer lies in the slip, `lend` borrows it exclusively; it is written only by who holds the
//! slip's mutex, inside its length.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use super::{ASK, CLEAR, DATA, EAGER_MAX, HELD_MAX, Letter, MESSAGE, OFFER, Piece, charge};
use crate::am::builtin::arguments;
use crate::node::message::REPLY_INLINE_MAX;
use crate::transport::{Incoming, Transport};

/// A message that has come, or the news of one.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) source: usize,
    pub(super) tag: i32,
    /// Bytes of the message.
    pub(super) length: usize,
    pub(super) body: Body,
}

/// Where the message is.
#[derive(Debug)]
pub(super) enum Body {
    /// Here.
    Here(Box<[u8]>),
    /// With its sender, who knows it by this number.
    Offered(u64),
}

/// No offer is open. Serial numbers begin at 1.
const NONE: u64 = 0;

/// Whether an active message is for the desk.
pub(crate) fn serves(handler: u16) -> bool {
    (MESSAGE..=DATA).contains(&handler)
}

/// What the serving thread and the rank's own thread share.
#[derive(Debug)]
pub(crate) struct Desk {
    arrivals: Sender<Arrival>,
    /// What the messages that are here and not received cost.
    held: AtomicUsize,
    /// The buffer that the data of a long message goes to.
    slip: Mutex<Option<Slip>>,
    /// How much of that message is in place.
    arrived: AtomicUsize,
    /// The serial number of this rank's message that waits to be cleared, or [`NONE`].
    offer: AtomicU64,
}

/// A lent buffer, and the message it is for.
#[derive(Debug)]
struct Slip {
    source: usize,
    serial: u64,
    buffer: NonNull<u8>,
    length: usize,
}

// SAFETY: BUFFER-LENT: a slip is the exclusive borrow of bytes, which may be used by whichever thread has the mutex.
unsafe impl Send for Slip {}

impl Desk {
    /// A desk and the receiving end of its arrivals.
    pub(super) fn new() -> (Self, Receiver<Arrival>) {
        let (arrivals, receiver) = mpsc::channel();
        let desk = Desk {
            arrivals,
            held: AtomicUsize::new(0),
            slip: Mutex::new(None),
            arrived: AtomicUsize::new(0),
            offer: AtomicU64::new(NONE),
        };
        (desk, receiver)
    }

    /// Serves a message of this room; says how long the reply is.
    pub(crate) fn serve(&self, transport: &impl Transport, incoming: &Incoming<'_>) -> Result<usize, String> {
        let (wake, reply) = match incoming.handler {
            MESSAGE | ASK => {
                let (letter, data) = split::<Letter>(incoming)?;
                if data.len() as u64 != letter.length || data.len() > EAGER_MAX {
                    return Err(format!("{} bytes came for {letter:?}", data.len()));
                }
                let asked = incoming.handler == ASK;
                let taken = self.take(incoming.source, letter, data, asked)?;
                (true, if asked { answer(incoming, taken) } else { 0 })
            }
            OFFER => {
                let (letter, _) = split::<Letter>(incoming)?;
                self.hand_over(incoming.source, letter, Body::Offered(letter.serial))?;
                (true, 0)
            }
            CLEAR => {
                let (piece, _) = split::<Piece>(incoming)?;
                self.clear(piece.serial)?;
                (true, 0)
            }
            _ => {
                let (piece, data) = split::<Piece>(incoming)?;
                (self.land(incoming.source, piece, data)?, 0)
            }
        };
        if wake {
            transport.wake_waiters();
        }
        Ok(reply)
    }

    /// Takes a short message in; or, if it is one that may be refused and enough is held, the news of it. Says whether
    /// the message itself was taken.
    fn take(&self, source: usize, letter: Letter, data: &[u8], asked: bool) -> Result<bool, String> {
        // Only the serving thread adds; the other takes away. So the sum is never underestimated.
        let full = self.held.load(Ordering::Relaxed) + charge(data.len()) > HELD_MAX;
        if asked && full {
            self.hand_over(source, letter, Body::Offered(letter.serial))?;
            return Ok(false);
        }
        self.held.fetch_add(charge(data.len()), Ordering::Relaxed);
        self.hand_over(source, letter, Body::Here(data.into()))?;
        Ok(true)
    }

    fn hand_over(&self, source: usize, letter: Letter, body: Body) -> Result<(), String> {
        let length = usize::try_from(letter.length).map_err(|_| format!("no buffer can hold {letter:?}"))?;
        let arrival = Arrival { source, tag: letter.tag, length, body };
        self.arrivals.send(arrival).map_err(|_| "that rank receives no more".into())
    }

    /// A message that was here is with its receiver.
    pub(super) fn received(&self, bytes: usize) {
        self.held.fetch_sub(charge(bytes), Ordering::Relaxed);
    }

    /// Opens an offer; it is made by a message that is sent after this.
    pub(super) fn open_offer(&self, serial: u64) {
        self.offer.store(serial, Ordering::Release);
    }

    /// Closes the offer: it was never made.
    pub(super) fn close_offer(&self) {
        self.offer.store(NONE, Ordering::Relaxed);
    }

    /// Whether the offer that was opened has been cleared.
    pub(super) fn cleared(&self) -> bool {
        self.offer.load(Ordering::Acquire) == NONE
    }

    fn clear(&self, serial: u64) -> Result<(), String> {
        let cleared = self.offer.compare_exchange(serial, NONE, Ordering::AcqRel, Ordering::Relaxed);
        match cleared {
            Ok(_) if serial != NONE => Ok(()),
            _ => Err(format!("message {serial} of that rank is not on offer")),
        }
    }

    /// Lends `buffer` to message `serial` of `source` while `during` runs, which is given what has arrived so far.
    pub(super) fn lend<R>(
        &self,
        source: usize,
        serial: u64,
        buffer: &mut [u8],
        during: impl FnOnce(&AtomicUsize) -> R,
    ) -> R {
        /// Takes the buffer back, also from a panic.
        struct TakeBack<'a>(&'a Desk);
        impl Drop for TakeBack<'_> {
            fn drop(&mut self) {
                *self.0.slip() = None;
            }
        }
        self.arrived.store(0, Ordering::Relaxed);
        let slip = Slip { source, serial, length: buffer.len(), buffer: NonNull::from(buffer).cast() };
        let taken_back = TakeBack(self);
        *self.slip() = Some(slip);
        let result = during(&self.arrived);
        drop(taken_back);
        result
    }

    /// Copies a piece of a long message into the lent buffer; says whether that was the last.
    fn land(&self, source: usize, piece: Piece, data: &[u8]) -> Result<bool, String> {
        let slip = self.slip();
        let arrived = self.arrived.load(Ordering::Relaxed);
        let slip = slip
            .as_ref()
            .filter(|slip| (slip.source, slip.serial) == (source, piece.serial))
            .ok_or_else(|| format!("no buffer is lent to message {} of that rank", piece.serial))?;
        // What does not continue exactly where the last piece ended is nothing that we ever send.
        if piece.offset != arrived as u64 || data.len() > slip.length - arrived {
            return Err(format!(
                "{} bytes came as {piece:?} where {arrived} of {} bytes had arrived",
                data.len(),
                slip.length
            ));
        }
        // SAFETY: BUFFER-LENT: we hold the mutex, and the piece ends inside the length.
        unsafe { slip.buffer.add(arrived).as_ptr().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        self.arrived.store(arrived + data.len(), Ordering::Release);
        Ok(arrived + data.len() == slip.length)
    }

    fn slip(&self) -> MutexGuard<'_, Option<Slip>> {
        self.slip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fixed part of a message and its data, which follows or is staged.
fn split<'a, A: Pod>(incoming: &Incoming<'a>) -> Result<(A, &'a [u8]), String> {
    let (fixed, rest) = arguments(incoming)?;
    Ok((fixed, if incoming.staged.is_empty() { rest } else { incoming.staged }))
}

/// Answers an ASK.
fn answer(incoming: &Incoming<'_>, taken: bool) -> usize {
    const { assert!(REPLY_INLINE_MAX >= 1) };
    // SAFETY: REQUEST-SLOT (see `transport/shm.rs`): the reply is ours to write, and one byte fits.
    unsafe { incoming.reply_inline.write(taken.into()) };
    1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn letter(serial: u64, length: usize) -> Letter {
        Letter { tag: 7, zero: 0, serial, length: length as u64 }
    }

    #[test]
    fn a_desk_that_holds_enough_takes_only_the_news() {
        let (desk, arrivals) = Desk::new();
        let data = vec![1; EAGER_MAX];
        let mut held = 0;
        while desk.take(3, letter(held, EAGER_MAX), &data, true).unwrap() {
            held += 1;
        }
        assert_eq!(held, (HELD_MAX / charge(EAGER_MAX)) as u64);
        // What was not asked is taken all the same, and one message out makes room for one that is.
        assert!(desk.take(3, letter(held, 1), &[1], false).unwrap());
        assert!(!desk.take(3, letter(held, EAGER_MAX), &data, true).unwrap());
        desk.received(EAGER_MAX);
        desk.received(EAGER_MAX);
        assert!(desk.take(3, letter(held, EAGER_MAX), &data, true).unwrap());
        let news = arrivals.try_iter().filter(|arrival| matches!(arrival.body, Body::Offered(_))).count();
        assert_eq!(news, 2);
    }

    #[test]
    fn only_the_open_offer_is_cleared_and_only_once() {
        let (desk, _arrivals) = Desk::new();
        assert!(desk.clear(NONE).is_err());
        desk.open_offer(5);
        assert!(desk.clear(4).is_err() && !desk.cleared());
        desk.clear(5).unwrap();
        assert!(desk.cleared() && desk.clear(5).is_err());
    }

    #[test]
    fn only_what_continues_the_expected_message_lands() {
        let (desk, _arrivals) = Desk::new();
        let mut buffer = [0; 6];
        let piece = |serial, offset| Piece { serial, offset };
        assert!(desk.land(1, piece(9, 0), &[1]).is_err());
        desk.lend(1, 9, &mut buffer, |arrived| {
            assert_eq!(desk.land(1, piece(9, 0), &[1, 2, 3]), Ok(false));
            for (source, wrong, data) in [
                (2, piece(9, 3), &[9][..]),
                (1, piece(8, 3), &[9]),
                (1, piece(9, 0), &[9]),
                (1, piece(9, 4), &[9]),
                (1, piece(9, 3), &[9; 4]),
            ] {
                assert!(desk.land(source, wrong, data).is_err());
            }
            assert_eq!(arrived.load(Ordering::Acquire), 3);
            assert_eq!(desk.land(1, piece(9, 3), &[4, 5, 6]), Ok(true));
        });
        assert!(desk.land(1, piece(9, 6), &[]).is_err());
        assert_eq!(buffer, [1, 2, 3, 4, 5, 6]);
    }

    /// Buffers are lent and taken back, often half full, while pieces keep coming; whatever was taken back stays as it is.
    #[test]
    fn nothing_lands_in_a_buffer_that_was_taken_back() {
        const ROUNDS: u64 = 400;
        const PIECE: usize = 256;
        let (desk, _arrivals) = Desk::new();
        let round = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut serial, mut offset) = (0, 0);
                loop {
                    let now = round.load(Ordering::Acquire);
                    if now > ROUNDS {
                        break;
                    }
                    if now != serial {
                        (serial, offset) = (now, 0);
                    }
                    let piece = Piece { serial, offset: offset as u64 };
                    if desk.land(0, piece, &[serial as u8; PIECE]).is_ok() {
                        offset += PIECE;
                    }
                }
            });
            for serial in 1..=ROUNDS {
                let mut buffer = vec![0; 8 * PIECE];
                round.store(serial, Ordering::Release);
                let enough = if serial % 2 == 0 { buffer.len() } else { PIECE };
                desk.lend(0, serial, &mut buffer, |arrived| {
                    while arrived.load(Ordering::Acquire) < enough {
                        std::thread::yield_now();
                    }
                });
                // Whole pieces, from the beginning, of this round; and it stays so.
                let kept = buffer.clone();
                std::thread::yield_now();
                assert!(kept == buffer);
                let filled = kept.iter().take_while(|byte| **byte == serial as u8).count();
                let rest = if serial as u8 == 0 { 0 } else { kept[filled..].iter().filter(|byte| **byte != 0).count() };
                assert!(filled >= enough && filled % PIECE == 0 && rest == 0, "{filled} of {enough}");
            }
            round.store(ROUNDS + 1, Ordering::Release);
        });
    }
}
