//! What travels: the layout of an active message and of its reply.
//!
//! A message is one cell of the target's inbox: a header of 16 bytes and up to
//! [`INLINE_MAX`] bytes of arguments. A larger payload lies in the *staging
//! chunk* that belongs to the origin's request slot and travels beside it. The
//! reply comes to the request slot's reply cell, a larger one to its staging
//! chunk. Each origin context has [`REQUEST_SLOTS`] of them in a
//! [`ContextBlock`]. A request slot is a credit: who has none left waits for a reply, so
//! replies always have a place to go and serving never waits for anybody.

use bytemuck::{Pod, Zeroable};

use crate::primitive::{AtomicU32, Cell};

/// Bytes of arguments that a message carries itself.
pub const INLINE_MAX: usize = 104;
/// Bytes that travel in a staging chunk: the most a single message can carry.
pub const STAGING_BYTES: usize = 16 << 10;
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
    pub(crate) state: AtomicU32,
    /// Bytes of the reply.
    pub(crate) len: AtomicU32,
    /// A short reply; a long one lies in the staging chunk.
    pub(crate) inline: Cell<[u8; REPLY_INLINE_MAX]>,
}

/// The state of a reply cell before the reply is there.
pub(crate) const PENDING: u32 = 0;

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
    pub(crate) fn to_state(self) -> u32 {
        match self {
            Status::Done => 1,
            Status::Refused => 2,
        }
    }

    /// The reverse; `None` while pending.
    pub(crate) fn from_state(state: u32) -> Option<Self> {
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
