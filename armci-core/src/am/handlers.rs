//! The handler table: what a user's active messages run at their target.
//!
//! Handlers are registered by every rank in the same order, which gives them
//! the same id everywhere. The table only grows, so serving reads it without a lock.
//!
//! # Safety
//! REQUEST-SLOT (see `transport/shm.rs`): the reply's place belongs to the
//! server until the reply is complete. It may be the very place of the payload,
//! which a handler holds by reference; so a reply is gathered elsewhere and
//! delivered after the handler has returned. REGION-LIVE: what lies inside the
//! bounds that the region table gives is mapped; what a region occupied stays so
//! after it was freed (WINDOW-MAPPED, see `memory/window.rs`).
#![allow(unsafe_code)]

use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};

use super::builtin::arguments;
use crate::copy::copy_overlapping;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::Node;
use crate::node::message::{REPLY_INLINE_MAX, STAGING_BYTES};
use crate::transport::Incoming;

/// Handlers a program may register.
const MAX_HANDLERS: usize = 256;
/// Ids below this belong to the crate.
pub(crate) const FIRST_USER_HANDLER: u16 = 64;
/// Set in the id that a long message is sent with.
pub(crate) const LONG: u16 = 1 << 15;

/// A registered handler: the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(pub(crate) u16);

/// A message as a handler sees it.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The rank that sent it.
    pub source: usize,
    /// What it sent; of a long message, the arguments.
    pub payload: &'a [u8],
    /// Of a long message: where its data lies.
    pub data: Option<Landed<'a>>,
}

/// The fixed part of a long message, whose arguments follow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct LongArgs {
    pub(crate) region: u64,
    /// First byte, in the target's part of the region.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl LongArgs {
    /// Where the data of a message to this rank lies.
    fn landed<'a>(self, node: &Node) -> Result<Landed<'a>, String> {
        let LongArgs { region, offset, bytes } = self;
        let id = RegionId::from_bits(region);
        let who = node.who();
        let part = node.mine().regions.part(id).ok_or_else(|| format!("region {id} does not exist there"))?;
        if offset.checked_add(bytes).is_none_or(|end| end > part.len) {
            return Err(format!("{self:?} leave region {id}, which has {} bytes there", part.len));
        }
        let address = node.window().address(who.local_rank, part.offset + offset);
        let place = GlobalPtr::new(id, who.rank as u32, offset);
        Ok(Landed { address, len: bytes as usize, place, message: PhantomData })
    }
}

/// The data of a long message, in this rank's part of the region it was put to, where it stays.
///
/// Other ranks may write there at any time, so it is no slice: what is needed is copied out, or reached by
/// [`Landed::as_ptr`].
#[derive(Debug, Clone, Copy)]
pub struct Landed<'a> {
    address: *mut u8,
    len: usize,
    place: GlobalPtr<u8>,
    message: PhantomData<&'a [u8]>,
}

impl Landed<'_> {
    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it lies: [`Landed::len`] bytes, mapped while this rank is a member of its job.
    pub fn as_ptr(&self) -> *mut u8 {
        self.address
    }

    /// Where it lies, as any rank can name it.
    pub fn place(&self) -> GlobalPtr<u8> {
        self.place
    }

    /// Copies its bytes from `first` on into `target`.
    ///
    /// # Errors
    /// A sentence, for the handler to return, if it has not so many.
    pub fn read<T: Pod>(&self, first: usize, target: &mut [T]) -> Result<(), String> {
        let bytes = size_of_val(target);
        if first.checked_add(bytes).is_none_or(|end| end > self.len) {
            return Err(format!("{bytes} bytes were read from byte {first} of data of {} bytes", self.len));
        }
        // SAFETY: REGION-LIVE, as `landed` has found; the bytes are inside, and the target is ours alone.
        unsafe { copy_overlapping(target.as_mut_ptr().cast(), self.address.add(first), bytes) };
        Ok(())
    }

    /// A copy of it, as far as it is whole elements.
    pub fn to_vec<T: Pod>(&self) -> Vec<T> {
        let mut copy = vec![T::zeroed(); self.len.checked_div(size_of::<T>()).unwrap_or(0)];
        // As many elements as fit are there.
        let _ = self.read(0, &mut copy);
        copy
    }
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
    pub(crate) fn run(&self, node: &Node, incoming: &Incoming<'_>) -> Result<usize, String> {
        let index = usize::from(incoming.handler & !LONG).checked_sub(FIRST_USER_HANDLER.into());
        let handler = index.and_then(|index| self.table.get(index)?.get()).ok_or(
            "no such handler is registered there: every rank must register the same handlers, in the same order, \
             and pass a barrier before the first message",
        )?;
        let (data, inline) = if incoming.handler & LONG == 0 {
            (None, incoming.inline)
        } else {
            let (fixed, rest) = arguments::<LongArgs>(incoming)?;
            (Some(fixed.landed(node)?), rest)
        };
        let payload = if incoming.staged.is_empty() { inline } else { incoming.staged };
        let mut reply = Reply::empty();
        let run = || handler(Delivery { source: incoming.source, payload, data }, &mut reply);
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
