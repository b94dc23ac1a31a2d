//! The handler table: what a user's active messages run at their target.
//!
//! Handlers are registered by every rank in the same order, which gives them
//! the same id everywhere. The table only grows, so serving reads it without a lock.
//!
//! # Safety
//! REQUEST-SLOT (see `transport/shm`): the reply's place belongs to the server
//! until the reply is complete, which is after the handler has returned.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::message::{REPLY_INLINE_MAX, STAGING_BYTES};
use crate::transport::Incoming;

/// Handlers a program may register.
const MAX_HANDLERS: usize = 256;
/// Ids below this belong to the crate.
pub(crate) const FIRST_USER_HANDLER: u16 = 64;

/// A registered handler: the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(pub(crate) u16);

/// A message as a handler sees it.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The rank that sent it.
    pub source: usize,
    /// What it sent.
    pub payload: &'a [u8],
}

/// The place for a handler's answer: at most [`STAGING_BYTES`](super::STAGING_BYTES).
#[derive(Debug)]
pub struct Reply<'a> {
    incoming: &'a Incoming<'a>,
    pub(crate) len: usize,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(incoming: &'a Incoming<'a>) -> Self {
        Reply { incoming, len: 0 }
    }

    /// Answers with `bytes`, instead of whatever was set before.
    ///
    /// # Errors
    /// A sentence, for the handler to return, if `bytes` are too many for one message.
    pub fn set(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() > STAGING_BYTES {
            return Err(format!("a reply of {} bytes was set, but at most {STAGING_BYTES} fit", bytes.len()));
        }
        let to = if bytes.len() <= REPLY_INLINE_MAX { self.incoming.reply_inline } else { self.incoming.reply_staged };
        // SAFETY: REQUEST-SLOT, and the length fits. The source may be the very payload (an echo): `copy` allows it.
        unsafe { std::ptr::copy(bytes.as_ptr(), to, bytes.len()) };
        self.len = bytes.len();
        Ok(())
    }
}

type Handler = Box<dyn Fn(Delivery<'_>, &mut Reply<'_>) -> Result<(), String> + Send + Sync>;

/// The handlers of this rank.
pub(crate) struct Handlers {
    table: Box<[OnceLock<Handler>]>,
    count: AtomicUsize,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handlers({})", self.count.load(Ordering::Relaxed))
    }
}

impl Handlers {
    pub(crate) fn new() -> Self {
        Handlers { table: (0..MAX_HANDLERS).map(|_| OnceLock::new()).collect(), count: AtomicUsize::new(0) }
    }

    /// Adds a handler; `None` if the table is full.
    pub(crate) fn register(&self, handler: Handler) -> Option<HandlerId> {
        let index = self.count.fetch_add(1, Ordering::Relaxed);
        let added = self.table.get(index)?.set(handler);
        debug_assert!(added.is_ok(), "each index is given out once");
        Some(HandlerId(FIRST_USER_HANDLER + index as u16))
    }

    /// Runs the handler a message is for.
    pub(crate) fn run(&self, incoming: &Incoming<'_>, reply: &mut Reply<'_>) -> Result<(), String> {
        let index = usize::from(incoming.handler).checked_sub(FIRST_USER_HANDLER.into());
        let handler = index.and_then(|index| self.table.get(index)?.get()).ok_or(
            "no such handler is registered there: every rank must register the same handlers, in the same order, \
             and pass a barrier before the first message",
        )?;
        let payload = if incoming.staged.is_empty() { incoming.inline } else { incoming.staged };
        handler(Delivery { source: incoming.source, payload }, reply)
    }
}
