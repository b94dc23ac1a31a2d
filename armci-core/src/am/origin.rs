//! The origin context: how one thread of a rank sends messages and learns what became of them.
//!
//! It owns [`REQUEST_SLOTS`] request slots, which are its credits: each holds
//! one message under way, with a staging chunk for its payload and a reply cell
//! for its answer. A *detached* message (a put, an accumulate) is not waited
//! for: its slot is given back when its reply is found, and should it have been
//! refused, the next fence says so. An *awaited* one (a get, a fetch-and-add) is
//! collected by whoever sent it.
//!
//! # Safety
//! REQUEST-SLOT: a free slot's chunk and cell belong to this context; from
//! [`Origin::post`] until the cell's state leaves `PENDING` they belong to the
//! server. SINGLE-ORIGIN: a context, and the block of its number, belong to one thread.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::service::{Server, Service};
use crate::consistency::{self, Access, ConflictCounts, Outstanding};
use crate::error::{Error, Result};
use crate::memory::RegionId;
use crate::node::Node;
use crate::node::message::{ContextBlock, PENDING, REPLY_INLINE_MAX, REQUEST_SLOTS, STAGING_BYTES, Status};
use crate::sync::bell::Bell;
use crate::sync::wait::{Help, Patience, wait_until};
use crate::transport::{Again, Outgoing, Transport, Wire};

/// Attempts to send into a full inbox before a short sleep: nobody rings for room.
const ATTEMPTS: u32 = 200;
/// How long ranks that all wait for each other, on too few cores, hand the cores around before they sleep.
const YIELD: Duration = Duration::from_micros(200);
const FULL_INBOX_SLEEP: Duration = Duration::from_micros(50);

/// Slots one operation may hold at once, so that others can still be sent.
pub(crate) const PIPELINE: usize = REQUEST_SLOTS / 2;

/// A message under way.
#[derive(Debug, Clone, Copy)]
struct Sent {
    what: Outstanding,
    handler: u16,
    detached: bool,
}

/// Detached messages that a target refused.
#[derive(Debug)]
struct Refusal {
    rank: usize,
    handler: u16,
    reason: String,
    /// Messages refused besides.
    more: u64,
}

impl Refusal {
    fn into_error(self, more_elsewhere: u64) -> Error {
        let Refusal { rank, handler, reason, more } = self;
        Error::Refused { rank, handler, reason, more: more + more_elsewhere }
    }
}

/// The origin context of a thread.
#[derive(Debug)]
pub(crate) struct Origin {
    /// Its number in its rank, and the block of that number.
    context: usize,
    block: NonNull<ContextBlock>,
    /// Keeps the block mapped.
    _node: Arc<Node>,
    transport: Wire,
    service: Arc<Service>,
    /// For waits for one rank, and for waits of all for all.
    patience: Patience,
    patience_with_all: Patience,
    /// One bit per slot that is free.
    free: Cell<u32>,
    /// What each taken slot was used for.
    sent: RefCell<[Option<Sent>; REQUEST_SLOTS]>,
    /// Detached messages under way.
    detached: Cell<usize>,
    /// Refusals of detached messages since the last fence: per target the first, and how many more.
    refused: RefCell<Vec<Refusal>>,
    conflicts: Cell<ConflictCounts>,
}

impl Origin {
    /// Context number `context` of this rank, of a thread that spins for `spin` before it sleeps; `crowded` says that
    /// cores are scarce.
    pub(crate) fn new(
        context: usize,
        node: Arc<Node>,
        transport: Wire,
        service: Arc<Service>,
        spin: Duration,
        crowded: bool,
    ) -> Self {
        const { assert!(REQUEST_SLOTS == u32::BITS as usize) };
        Origin {
            context,
            block: NonNull::from(node.context(node.who().rank, context)),
            _node: node,
            transport,
            service,
            patience: Patience::spinning(spin),
            patience_with_all: if crowded { Patience::yielding(YIELD) } else { Patience::spinning(spin) },
            free: Cell::new(u32::MAX),
            sent: RefCell::new([None; REQUEST_SLOTS]),
            detached: Cell::new(0),
            refused: RefCell::new(Vec::new()),
            conflicts: Cell::new(ConflictCounts::default()),
        }
    }

    /// The request slots in shared memory.
    #[inline]
    fn block(&self) -> &ContextBlock {
        // SAFETY: CONTEXT-BLOCK (see `node`): it lies in the window, which `_node` keeps mapped.
        unsafe { self.block.as_ref() }
    }

    /// Takes a free slot, waiting for one if all are under way.
    pub(crate) fn claim(&self) -> usize {
        if self.free.get() == 0 {
            self.reap();
            self.wait(|| {
                self.free.get() != 0 || {
                    self.reap();
                    self.free.get() != 0
                }
            });
        }
        let slot = self.free.get().trailing_zeros() as usize;
        self.free.set(self.free.get() & !(1 << slot));
        slot
    }

    /// The staging chunk of a claimed slot: [`STAGING_BYTES`] to be filled before [`Origin::post`].
    pub(crate) fn staging(&self, slot: usize) -> *mut u8 {
        self.block().staging[slot].0.with_mut(|chunk| chunk.cast())
    }

    /// Fills the staging chunk of a claimed slot.
    pub(crate) fn stage(&self, slot: usize, payload: &[u8]) {
        assert!(payload.len() <= STAGING_BYTES);
        // SAFETY: REQUEST-SLOT: the slot is claimed, so its chunk is ours; the length was checked.
        unsafe { self.staging(slot).copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
    }

    /// Sends a message in a claimed slot; waits, serving, while the target's inbox is full.
    pub(crate) fn post(&self, message: &Outgoing<'_>, what: Outstanding, detached: bool) {
        debug_assert!(message.staged_len <= STAGING_BYTES);
        let slot = message.slot;
        self.block().replies[slot].state.store(PENDING, Ordering::Relaxed);
        self.sent.borrow_mut()[slot] = Some(Sent { what, handler: message.handler, detached });
        if detached {
            self.detached.set(self.detached.get() + 1);
        }
        let mut attempts = 0;
        while self.transport.send(self.context, what.target, message) == Err(Again) {
            self.service.advance(Server::Waiter);
            attempts += 1;
            if attempts < ATTEMPTS {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(FULL_INBOX_SLEEP);
            }
        }
    }

    /// Waits for the reply to an awaited message, lends it to `read`, and gives the slot back.
    ///
    /// # Errors
    /// [`Error::Refused`] if the target did not serve it.
    pub(crate) fn collect<R>(&self, slot: usize, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.wait(|| self.is_done(slot));
        let result = self.reply(slot, |status, reply| match status {
            Status::Done => Ok(read(reply)),
            Status::Refused => Err(self.refusal(slot, reply).into_error(0)),
        });
        self.release(slot);
        result
    }

    /// Waits until no message of this context to `target` (or to anybody) is under way.
    ///
    /// # Errors
    /// [`Error::Refused`] if a detached message since the last fence was refused.
    pub(crate) fn fence(&self, target: Option<usize>) -> Result<()> {
        if self.detached.get() != 0 {
            let concerns = |sent: &Sent| sent.detached && target.is_none_or(|target| target == sent.what.target);
            self.wait_for(concerns);
        }
        let mut refused = self.refused.borrow_mut();
        let mut concerned = refused.extract_if(.., |refusal| target.is_none_or(|target| target == refusal.rank));
        let Some(first) = concerned.next() else { return Ok(()) };
        let elsewhere = concerned.map(|refusal| refusal.more + 1).sum();
        Err(first.into_error(elsewhere))
    }

    /// Keeps a refusal for the fence that asks for it.
    fn note(&self, refusal: Refusal) {
        let mut refused = self.refused.borrow_mut();
        match refused.iter_mut().find(|known| known.rank == refusal.rank) {
            Some(known) => known.more += 1,
            None => refused.push(refusal),
        }
    }

    /// Before an operation by remote memory access: waits for what its order demands.
    #[inline]
    pub(crate) fn order(&self, target: usize, region: RegionId) {
        if self.detached.get() != 0 {
            self.order_behind_messages(target, region);
        }
    }

    fn order_behind_messages(&self, target: usize, region: RegionId) {
        self.reap();
        let (of_region, of_target) = {
            let sent = self.sent.borrow();
            let outstanding = sent.iter().flatten().filter(|sent| sent.detached).map(|sent| sent.what);
            consistency::status(outstanding, target, region)
        };
        let mut counts = self.conflicts.get();
        if of_region.writes() {
            counts.waits += 1;
            self.wait_for(|sent| sent.detached && sent.what.target == target && sent.what.region == Some(region));
        } else if of_target.writes() {
            counts.avoided += 1;
        }
        self.conflicts.set(counts);
    }

    /// What tracking conflicts per region has cost and saved.
    pub(crate) fn conflicts(&self) -> ConflictCounts {
        self.conflicts.get()
    }

    /// Waits until `ready`, serving this rank's inbox meanwhile.
    #[inline]
    pub(crate) fn wait(&self, ready: impl FnMut() -> bool) {
        let sleep = |ready: &mut dyn FnMut() -> bool| self.sleep_unless(ready);
        wait_until(&self.patience, self, sleep, ready);
    }

    /// As [`Origin::wait`], where all ranks of the node wait for each other and `bell` will ring.
    #[inline]
    pub(crate) fn wait_with_all(&self, bell: &Bell, ready: impl FnMut() -> bool) {
        let threaded = self.service.has_thread();
        let sleep = |ready: &mut dyn FnMut() -> bool| {
            if threaded {
                // Messages are the progress thread's: nobody need wake us for them.
                self.service.while_waiter_sleeps(|| bell.sleep_unless(ready));
            } else {
                self.sleep_unless(ready);
            }
        };
        wait_until(&self.patience_with_all, self, sleep, ready);
    }

    /// Sleeps until `ready` may hold or there is a message to serve.
    fn sleep_unless(&self, ready: &mut dyn FnMut() -> bool) {
        let awake = || ready() || self.service.has_work();
        self.service.while_waiter_sleeps(|| self.transport.sleep_unless(awake));
    }

    /// Waits until no message that `concerns` is under way.
    fn wait_for(&self, concerns: impl Fn(&Sent) -> bool) {
        self.wait(|| {
            self.reap();
            !self.sent.borrow().iter().flatten().any(&concerns)
        });
    }

    /// Gives back the slots of detached messages that have been served.
    fn reap(&self) {
        let mut taken = !self.free.get();
        while taken != 0 {
            let slot = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            let detached = self.sent.borrow()[slot].is_some_and(|sent| sent.detached);
            if detached && self.is_done(slot) {
                let refusal = self.reply(slot, |status, reason| match status {
                    Status::Done => None,
                    Status::Refused => Some(self.refusal(slot, reason)),
                });
                if let Some(refusal) = refusal {
                    self.note(refusal);
                }
                self.detached.set(self.detached.get() - 1);
                self.release(slot);
            }
        }
    }

    fn is_done(&self, slot: usize) -> bool {
        self.block().replies[slot].state.load(Ordering::Acquire) != PENDING
    }

    fn release(&self, slot: usize) {
        self.sent.borrow_mut()[slot] = None;
        self.free.set(self.free.get() | 1 << slot);
    }

    /// Lends the complete reply in a slot.
    fn reply<R>(&self, slot: usize, read: impl FnOnce(Status, &[u8]) -> R) -> R {
        let cell = &self.block().replies[slot];
        let status = Status::from_state(cell.state.load(Ordering::Acquire)).unwrap_or(Status::Refused);
        let len = (cell.len.load(Ordering::Relaxed) as usize).min(STAGING_BYTES);
        let from = if len <= REPLY_INLINE_MAX {
            cell.inline.with(|inline| inline.cast::<u8>())
        } else {
            self.staging(slot).cast_const()
        };
        // SAFETY: REQUEST-SLOT: the state has left PENDING, so cell and chunk are ours again.
        read(status, unsafe { std::slice::from_raw_parts(from, len) })
    }

    fn refusal(&self, slot: usize, reason: &[u8]) -> Refusal {
        let (rank, handler) = self.sent.borrow()[slot].map_or((0, 0), |sent| (sent.what.target, sent.handler));
        Refusal { rank, handler, reason: String::from_utf8_lossy(reason).into_owned(), more: 0 }
    }
}

impl Help for Origin {
    fn enter(&self) {
        self.transport.begin_looking();
    }

    fn help(&self) -> bool {
        self.service.advance(Server::Waiter) != 0
    }

    fn leave(&self) {
        self.transport.end_looking();
        // A sender may have seen us looking just before: its message is ours to serve, or to pass on.
        if self.service.has_message() {
            self.service.advance(Server::Waiter);
            if self.service.has_message() {
                self.transport.pass_on();
            }
        }
    }
}

/// What a user's message or one of ours does, for the conflict tracker.
pub(crate) fn outstanding(target: usize, region: RegionId, access: Access) -> Outstanding {
    Outstanding { target, region: Some(region), access }
}
