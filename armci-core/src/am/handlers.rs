//! The handler table: what a user's active messages run at their target.
//!
//! Handlers are registered by every rank in the same order, which gives them
//! the same id everywhere. The table only grows, so serving reads it without a lock.
//!
//! # Safety
//! REQUEST-SLOT (see `transport/shm.rs`): the reply's place belongs to the
//! server until the reply is complete. It may be the very place of the payload,
//! which a handler holds by reference; so a reply is gathered elsewhere and
//! delivered after the handler has returned.
#![allow(unsafe_code)]

use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::node::message::{REPLY_INLINE_MAX, STAGING_BYTES};
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

/// A handler's answer: at most [`STAGING_BYTES`](crate::STAGING_BYTES).
#[derive(Debug)]
pub struct Reply {
    short: [u8; REPLY_INLINE_MAX],
    long: Vec<u8>,
    len: usize,
}

impl Reply {
    fn empty() -> Self {
        Reply { short: [0; REPLY_INLINE_MAX], long: Vec::new(), len: 0 }
    }

    /// Answers with `bytes`, instead of whatever was set before.
    ///
    /// # Errors
    /// A sentence, for the handler to return, if `bytes` are too many for one message.
    pub fn set(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() > STAGING_BYTES {
            return Err(format!("a reply of {} bytes was set, but at most {STAGING_BYTES} fit", bytes.len()));
        }
        if let Some(short) = self.short.get_mut(..bytes.len()) {
            short.copy_from_slice(bytes);
        } else {
            self.long.clear();
            self.long.extend_from_slice(bytes);
        }
        self.len = bytes.len();
        Ok(())
    }

    /// A reply of `bytes`, or of as many of them as fit.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut reply = Reply::empty();
        // What was cut fits.
        let _ = reply.set(&bytes[..bytes.len().min(STAGING_BYTES)]);
        reply
    }

    /// Puts the answer where the sender will look for it; says how long it is.
    pub(crate) fn deliver(&self, incoming: &Incoming<'_>) -> usize {
        let (from, to) = if self.len <= REPLY_INLINE_MAX {
            (&self.short[..self.len], incoming.reply_inline)
        } else {
            (&self.long[..], incoming.reply_staged)
        };
        // SAFETY: REQUEST-SLOT; the lengths fit, and nobody holds the payload any more.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        self.len
    }
}

type Handler = Box<dyn Fn(Delivery<'_>, &mut Reply) -> Result<(), String> + Send + Sync>;

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

    /// Runs the handler a message is for, and delivers its reply, whose length it returns.
    ///
    /// A handler that panics ends the process: others depend on this rank being served, and what it left half done
    /// nobody knows.
    pub(crate) fn run(&self, incoming: &Incoming<'_>) -> Result<usize, String> {
        let index = usize::from(incoming.handler).checked_sub(FIRST_USER_HANDLER.into());
        let handler = index.and_then(|index| self.table.get(index)?.get()).ok_or(
            "no such handler is registered there: every rank must register the same handlers, in the same order, \
             and pass a barrier before the first message",
        )?;
        let mut reply = Reply::empty();
        let run = || {
            let payload = if incoming.staged.is_empty() { incoming.inline } else { incoming.staged };
            handler(Delivery { source: incoming.source, payload }, &mut reply)
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result?,
            Err(_) => {
                // The panic's own message has been printed by the panic hook. Standard error may be gone.
                let _ =
                    writeln!(io::stderr(), "an active-message handler panicked while serving rank {}", incoming.source);
                std::process::abort();
            }
        }
        Ok(reply.deliver(incoming))
    }
}
