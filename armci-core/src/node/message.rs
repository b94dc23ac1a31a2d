//! What travels: the layout of an active message and of its reply.
//!
//! A message is one cell of the target's inbox: a header of 16 bytes and up to
//! [`INLINE_MAX`] bytes of arguments. A larger payload lies in the *staging
//! chunk* that belongs to the origin's request slot and travels beside it. The
//! reply comes to the request slot's reply cell, a larger one to its staging
//! chunk. Each origin context has [`REQUEST_SLOTS`] of them in a
//! [`ContextBlock`]. A request slot is a credit: who has none left waits for a reply, so
//! replies always have a place to go and serving never waits for anybody.
//!
//! # Protocol
//! A slot (its reply cell and its staging chunk) belongs to its origin, or to
//! whoever serves the message that was sent in it. The origin
//! [opens](ReplyCell::open) the cell, then sends: what it wrote to the slot
//! before is released by the inbox's stamp, and acquired by the server's look
//! at it. The server writes its reply, then [completes](ReplyCell::complete) the
//! cell with release; the origin finds it [done](ReplyCell::status) with
//! acquire, so it finds the reply too, and everything else that serving wrote.
//! From then on the server touches neither cell nor chunk. Opening needs no
//! order of its own: it precedes the sending, and a completion follows that.

use bytemuck::{Pod, Zeroable};

use crate::primitive::{AtomicU32, Cell, Ordering};

/// Bytes of arguments that a message carries itself.
pub const INLINE_MAX: usize = 104;
/// Bytes that travel in a staging chunk: the most a single message can carry. With what comes before them they are a
/// message that most fabrics send at once, without asking the target first.
pub const STAGING_BYTES: usize = (16 << 10) - 256;
/// Request slots of an origin context: messages it may have under way at once.
pub(crate) const REQUEST_SLOTS: usize = 32;
/// Bytes of a reply that its cell carries itself.
pub(crate) const REPLY_INLINE_MAX: usize = 48;

/// A message as it lies in the target's inbox.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct Message {
    /// Which handler it is for.
    pub(crate) handler: u16,
    /// Bytes used of `inline`.
    pub(crate) inline_len: u16,
    /// The rank that sent it.
    pub(crate) source: u32,
    /// The origin context of the source that waits for the reply, and its request slot.
    pub(crate) context: u16,
    pub(crate) slot: u16,
    /// Bytes used of the slot's staging chunk.
    pub(crate) staged_len: u32,
    /// The arguments.
    pub(crate) inline: [u8; INLINE_MAX],
}

/// Where the reply to one request slot arrives, in the origin's own memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct ReplyCell {
    /// [`PENDING`] until the reply is complete; then its [`Status`].
    state: AtomicU32,
    /// Bytes of the reply.
    len: AtomicU32,
    /// A short reply; a long one lies in the staging chunk.
    pub(crate) inline: Cell<[u8; REPLY_INLINE_MAX]>,
}

/// The state of a reply cell before the reply is there.
const PENDING: u32 = 0;

impl ReplyCell {
    /// For the origin, before it sends: no reply is there yet.
    #[inline]
    pub(crate) fn open(&self) {
        self.state.store(PENDING, Ordering::Relaxed);
    }

    /// For the server, once the reply of `len` bytes is written: gives the slot back to its origin.
    #[inline]
    pub(crate) fn complete(&self, status: Status, len: usize) {
        self.len.store(len as u32, Ordering::Relaxed);
        // Release: the reply, and whatever serving wrote, is seen by who finds this state.
        self.state.store(status.to_state(), Ordering::Release);
    }

    /// For the origin: what became of the request; `None` while the slot is the server's.
    #[inline]
    pub(crate) fn status(&self) -> Option<Status> {
        Status::from_state(self.state.load(Ordering::Acquire))
    }

    /// Bytes of the reply, once there is a status.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Served; the reply holds the result.
    Done,
    /// Refused; the reply holds the reason in words.
    Refused,
}

impl Status {
    /// As stored in a reply cell; never [`PENDING`].
    fn to_state(self) -> u32 {
        match self {
            Status::Done => 1,
            Status::Refused => 2,
        }
    }

    /// The reverse; `None` while pending.
    fn from_state(state: u32) -> Option<Self> {
        match state {
            PENDING => None,
            1 => Some(Status::Done),
            _ => Some(Status::Refused),
        }
    }
}

/// One staging chunk.
#[repr(C, align(4096))]
#[derive(Debug)]
pub(crate) struct Staging(pub(crate) Cell<[u8; STAGING_BYTES]>);

/// What an origin context keeps in its rank's slot: its request slots. All zero bytes are a block never used.
#[repr(C, align(4096))]
#[derive(Debug)]
pub(crate) struct ContextBlock {
    /// Replies to its requests.
    pub(crate) replies: [ReplyCell; REQUEST_SLOTS],
    /// Payloads of its requests and of their replies.
    pub(crate) staging: [Staging; REQUEST_SLOTS],
}

/// Origin contexts that a rank may have at once: one per thread that communicates.
pub(crate) const MAX_CONTEXTS: usize = 256;

#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod loom_models {
    use super::*;
    use crate::node::ring::Ring;
    use crate::sync::bell::Bell;
    use loom::{sync::Arc, thread};

    /// An origin with one slot, a server with its inbox.
    struct Pair {
        cell: ReplyCell,
        chunk: Cell<u8>,
        bell: Bell,
        inbox: Ring<u8, 2>,
    }

    impl Pair {
        fn request(&self, number: u8) {
            // SAFETY: REQUEST-SLOT: the slot is ours; loom checks it.
            self.chunk.with_mut(|chunk| unsafe { *chunk = number });
            self.cell.open();
            // SAFETY: the place is ours between claim and stamp.
            let sent = self.inbox.push(|place| unsafe { *place = number });
            assert!(sent.is_ok());
            while self.cell.status().is_none() {
                self.bell.sleep_unless(|| self.cell.status().is_some());
            }
            assert_eq!((self.cell.status(), self.cell.len()), (Some(Status::Refused), number as usize));
            // SAFETY: REQUEST-SLOT: the slot is ours again; loom checks it.
            self.cell.inline.with(|inline| assert_eq!(unsafe { (*inline)[0] }, number + 10));
            // SAFETY: as above.
            self.chunk.with(|chunk| assert_eq!(unsafe { *chunk }, number + 20));
        }

        fn serve(&self) {
            let serve = |number: &u8| {
                // SAFETY: REQUEST-SLOT: the slot is ours until we complete the cell; loom checks it.
                self.chunk.with(|chunk| assert_eq!(unsafe { *chunk }, *number));
                // SAFETY: as above.
                self.cell.inline.with_mut(|inline| unsafe { (*inline)[0] = number + 10 });
                // SAFETY: as above.
                self.chunk.with_mut(|chunk| unsafe { *chunk = number + 20 });
                self.cell.complete(Status::Refused, (*number).into());
                self.bell.ring();
            };
            // SAFETY: RING-SINGLE-CONSUMER: only this thread pops.
            while unsafe { self.inbox.pop(serve) }.is_none() {
                thread::yield_now();
            }
        }
    }

    /// A slot goes to the server and comes back, twice, with all that either wrote to it.
    #[test]
    fn a_slot_belongs_to_one_side_at_a_time() {
        let mut model = loom::model::Builder::new();
        // All schedules of a bell and an inbox together are too many.
        model.preemption_bound = Some(4);
        model.check(|| {
            let pair = Arc::new(Pair {
                cell: ReplyCell {
                    state: AtomicU32::new(PENDING),
                    len: AtomicU32::new(0),
                    inline: Cell::new([0; REPLY_INLINE_MAX]),
                },
                chunk: Cell::new(0),
                bell: Bell::new(),
                inbox: Ring::new(0),
            });
            let server = {
                let pair = pair.clone();
                thread::spawn(move || (0..2).for_each(|_| pair.serve()))
            };
            pair.request(1);
            pair.request(2);
            server.join().unwrap();
        });
    }
}
