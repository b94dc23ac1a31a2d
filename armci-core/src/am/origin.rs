//! The origin context: how one thread of a rank sends messages and learns what became of them.
//!
//! It owns [`REQUEST_SLOTS`] request slots, which are its credits: each holds
//! one message under way, with a staging chunk for its payload and a reply cell
//! for its answer. A *detached* message (a put, an accumulate, a get) is not
//! waited for by its slot: whoever looks at the slots next finds its reply,
//! unpacks it if it is data, and gives the slot back. A put that was refused is
//! the next fence's error, a get that of the wait for it. An *awaited* message (a
//! fetch-and-add) is collected by whoever sent it.
//!
//! A wait for a get, for all of a group, or for all before a fence is one thing:
//! a look at the records of the slots, of which there are 32, until none is left
//! that concerns it. So a handle is a number, and what is forgotten costs nothing.
//!
//! # Safety
//! REQUEST-SLOT: a free slot's chunk and cell belong to this context; from
//! [`Origin::post`] until the cell's state has a status they belong to the
//! server. SINGLE-ORIGIN: a context, and the block of its number, belong to one thread.
//! LANDING (see `am/landing.rs`): [`Origin::post_get`] was promised it.
#![allow(unsafe_code)]

mod bulk;
mod order;
mod sent;

use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use self::sent::{Answer, By, Sent};
use super::builtin;
use super::handlers::LONG;
use super::landing::{Group, Landing, Tag, Which};
use super::owner::Server;
use super::parcels::{Exchange, Parcels};
use super::service::Service;
use crate::config::Conflicts;
use crate::consistency::{Access, ConflictCounts, Outstanding};
use crate::error::{Error, Result};
use crate::memory::{RegionId, region};
use crate::node::Node;
use crate::node::message::{ContextBlock, REPLY_INLINE_MAX, REQUEST_SLOTS, STAGING_BYTES, Status};
use crate::sync::bell::Bell;
use crate::sync::wait::{Help, Patience, wait_until};
use crate::transport::ofi::Line;
use crate::transport::{Again, Outgoing, Transport, Wire};

/// Attempts to send into a full inbox before a short sleep: nobody rings for room.
const ATTEMPTS: u32 = 200;
/// How long ranks that all wait for each other, on too few cores, hand the cores around before they sleep.
const YIELD: Duration = Duration::from_micros(200);
const FULL_INBOX_SLEEP: Duration = Duration::from_micros(50);

/// Slots one operation may hold at once, so that others can still be sent.
pub(crate) const PIPELINE: usize = REQUEST_SLOTS / 2;

/// Detached messages that a target refused.
#[derive(Debug)]
struct Refusal {
    rank: usize,
    /// The get that was refused, if it was one.
    tag: Option<Tag>,
    handler: u16,
    reason: String,
    /// Messages refused besides.
    more: u64,
}

impl Refusal {
    fn into_error(self, more_elsewhere: u64) -> Error {
        let Refusal { rank, tag: _, handler, reason, more } = self;
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
    node: Arc<Node>,
    transport: Wire,
    /// The way to other nodes, once there was something to do there: an endpoint costs milliseconds and megabytes, which
    /// threads that stay on their node need not pay.
    line: OnceCell<Line>,
    service: Arc<Service>,
    /// For waits for one rank, and for waits of all for all.
    patience: Patience,
    patience_with_all: Patience,
    /// One bit per slot that is free.
    free: Cell<u32>,
    /// Whether something was complete that nobody has taken note of.
    moved: Cell<bool>,
    /// What each taken slot was used for.
    sent: RefCell<[Option<Sent>; REQUEST_SLOTS]>,
    /// Detached messages and accesses under way; and those of them that are to this node, which alone an access in
    /// place may have to wait for.
    detached: Cell<usize>,
    detached_near: Cell<usize>,
    /// For each slot, the long buffer that its message names, if it does.
    bulk: [Cell<Option<usize>>; REQUEST_SLOTS],
    /// For each slot, the places that a list of segments lands at.
    places: [RefCell<Vec<*mut u8>>; REQUEST_SLOTS],
    /// The number of the operation, or scope, that began last.
    last: Cell<u64>,
    /// Refusals of detached messages that nobody has asked for yet: per target and get the first, and how many more.
    refused: RefCell<Vec<Refusal>>,
    /// How far the order of operations is kept apart.
    tracking: Conflicts,
    conflicts: Cell<ConflictCounts>,
}

impl Origin {
    /// Context number `context` of this rank, of a thread that spins for `spin` before it sleeps; `crowded` says that
    /// cores are scarce, `tracking` how far its operations are kept apart.
    pub(crate) fn new(
        context: usize,
        node: Arc<Node>,
        transport: Wire,
        service: Arc<Service>,
        spin: Duration,
        crowded: bool,
        tracking: Conflicts,
    ) -> Self {
        const { assert!(REQUEST_SLOTS == u32::BITS as usize) };
        let block = node.context(node.who().rank, context);
        Origin {
            context,
            block: NonNull::from(block),
            node,
            transport,
            line: OnceCell::new(),
            service,
            patience: Patience::spinning(spin),
            patience_with_all: if crowded { Patience::yielding(YIELD) } else { Patience::spinning(spin) },
            moved: Cell::new(false),
            free: Cell::new(u32::MAX),
            sent: RefCell::new([None; REQUEST_SLOTS]),
            detached: Cell::new(0),
            detached_near: Cell::new(0),
            bulk: Default::default(),
            places: Default::default(),
            last: Cell::new(0),
            refused: RefCell::new(Vec::new()),
            tracking,
            conflicts: Cell::new(ConflictCounts::default()),
        }
    }

    /// Opens the way to other nodes now, if there are any, so that the one who asks hears why it cannot be had.
    ///
    /// # Errors
    /// [`Error::Fabric`]: what the provider has to say.
    pub(crate) fn open_line(&self) -> Result<()> {
        if let (Some(fabric), None) = (self.transport.fabric(), self.line.get()) {
            let line = Line::open(fabric, self.context, self.block())?;
            self.line.get_or_init(|| line);
        }
        Ok(())
    }

    /// The way to a rank, if it is on another node.
    #[inline]
    fn line_to(&self, rank: usize) -> Option<&Line> {
        if self.node.slot_of(rank).is_some() { None } else { self.line() }
    }

    /// The way to other nodes, if there are any.
    #[inline]
    pub(crate) fn line(&self) -> Option<&Line> {
        self.line.get().or_else(|| self.first_line())
    }

    /// The same, at the first use. An operation that has begun cannot go back: if there is no way, the job ends.
    #[cold]
    #[inline(never)]
    fn first_line(&self) -> Option<&Line> {
        let fabric = self.transport.fabric()?;
        if let Err(error) = self.open_line() {
            fabric.give_up(None, &format!("thread {} of the rank cannot reach other nodes: {error}", self.context));
        }
        self.line.get()
    }

    /// Moves on what is between nodes; whether anything came.
    #[inline]
    fn poll(&self) -> bool {
        self.line.get().is_some_and(Line::poll)
    }

    /// A number for an operation or a scope that begins now; never 0.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// A tag for an operation that begins now.
    #[inline]
    pub(crate) fn tag(&self, group: Group) -> Tag {
        Tag { op: self.number(), group }
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

    /// The places that a list in this slot lands at.
    pub(crate) fn places(&self, slot: usize) -> RefMut<'_, Vec<*mut u8>> {
        self.places[slot].borrow_mut()
    }

    /// Sends a message in a claimed slot; waits, serving, while the target's inbox is full.
    pub(crate) fn post(&self, message: &Outgoing<'_>, what: Outstanding, detached: bool) {
        self.post_for(message, what, if detached { Answer::Acknowledgement } else { Answer::Awaited });
    }

    /// As [`Origin::post`], detached, for a message whose reply is to be unpacked.
    ///
    /// # Safety
    /// LANDING, for `landing` and the slot's places.
    pub(crate) unsafe fn post_get(&self, message: &Outgoing<'_>, what: Outstanding, tag: Tag, landing: Landing) {
        self.post_for(message, what, Answer::Data { tag, landing });
    }

    fn post_for(&self, message: &Outgoing<'_>, what: Outstanding, answer: Answer) {
        debug_assert!(message.staged_len <= STAGING_BYTES);
        let handler = message.handler & !LONG;
        let line = self.line_to(what.target);
        let sent = Sent { what, handler, answer, by: By::Message, near: line.is_none() };
        match line {
            None => self.begin(message.slot, sent, || self.transport.send(self.context, what.target, message)),
            Some(line) => {
                self.order_behind_accesses(handler, &what);
                self.begin(message.slot, sent, || line.send(what.target, message, None));
            }
        }
    }

    /// Begins what `send` begins, in a claimed slot; waits, serving, while there is no room for it.
    #[inline]
    fn begin(&self, slot: usize, sent: Sent, send: impl Fn() -> std::result::Result<(), Again>) {
        self.block().replies[slot].open();
        self.sent.borrow_mut()[slot] = Some(sent);
        if sent.detached() {
            self.detached.set(self.detached.get() + 1);
            self.detached_near.set(self.detached_near.get() + usize::from(sent.near));
        }
        let mut attempts = 0;
        while send() == Err(Again) {
            match self.line_to(sent.what.target) {
                Some(line) => line.move_on(),
                None => self.poll(),
            };
            self.service.advance(Server::Waiter);
            attempts += 1;
            if attempts < ATTEMPTS {
                std::hint::spin_loop();
            } else {
                if let Some(line) = self.line_to(sent.what.target) {
                    line.wonder();
                }
                std::thread::sleep(FULL_INBOX_SLEEP);
            }
        }
        // Serving stopped at a limit, perhaps, after the server had found us at it and gone to sleep.
        if attempts != 0 && self.service.has_message() {
            self.transport.pass_on();
        }
    }

    /// Writes `len` bytes of a claimed slot's chunk, or of `from` if that is not null, to `offset` of a part of a region
    /// on another node. From the chunk it is locally complete at once, otherwise when its tag has been waited for.
    ///
    /// # Safety
    /// The place is there to be written; `from` is readable until it was waited for.
    pub(crate) unsafe fn write(
        &self,
        slot: usize,
        what: Outstanding,
        access: region::Access,
        offset: u64,
        (from, len): (*const u8, usize),
        tag: Tag,
    ) {
        let Some(line) = self.line_to(what.target) else { unreachable!("a rank of this node") };
        // Nothing lands here.
        let landing = Landing::Rows { first: std::ptr::null_mut(), stride: 0, row: 0, rows: 0 };
        let answer = if from.is_null() { Answer::Acknowledgement } else { Answer::Data { tag, landing } };
        let sent = Sent { what, handler: builtin::PUT, answer, by: By::Access(len), near: false };
        // SAFETY: the caller's promise.
        self.begin(slot, sent, || unsafe { line.write(slot, what.target, access, offset, from, len) });
    }

    /// Reads `len` bytes at `offset` of a part of a region on another node: `straight` to `to`, which the line reaches, or
    /// through the slot's chunk, which it must fit then.
    ///
    /// # Safety
    /// LANDING, for `len` bytes at `to`.
    pub(crate) unsafe fn read(
        &self,
        slot: usize,
        (what, tag): (Outstanding, Tag),
        access: region::Access,
        offset: u64,
        (to, len): (*mut u8, usize),
        straight: bool,
    ) {
        let Some(line) = self.line_to(what.target) else { unreachable!("a rank of this node") };
        // What is straight is not unpacked.
        let rows = usize::from(!straight);
        let landing = Landing::Rows { first: to, stride: len, row: len, rows };
        let answer = Answer::Data { tag, landing };
        let sent = Sent { what, handler: builtin::GET, answer, by: By::Access(len), near: false };
        let to = if straight { to } else { std::ptr::null_mut() };
        // SAFETY: the caller's promise.
        self.begin(slot, sent, || unsafe { line.read(slot, what.target, access, offset, to, len) });
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

    /// Waits until no message of this context that changes something at `target` (or at anybody) is under way.
    ///
    /// # Errors
    /// [`Error::Refused`] if such a message since the last fence was refused.
    pub(crate) fn fence(&self, target: Option<usize>) -> Result<()> {
        let at_target = |rank| target.is_none_or(|target| target == rank);
        if self.detached.get() != 0 {
            let concerns = |sent: &Sent| sent.changes() && at_target(sent.what.target);
            self.reap();
            if self.any_sent(concerns) {
                let mut counts = self.conflicts.get();
                counts.fences += 1;
                self.conflicts.set(counts);
                self.wait_for(concerns);
            }
        }
        self.report(|refusal| refusal.tag.is_none() && at_target(refusal.rank))
    }

    /// Waits until the data of these gets are where they belong.
    ///
    /// # Errors
    /// [`Error::Refused`] if one of them was refused, and no wait has said so yet.
    #[inline]
    pub(crate) fn complete(&self, which: Which) -> Result<()> {
        if self.detached.get() == 0 && self.refused.borrow().is_empty() {
            Ok(())
        } else {
            self.complete_messages(which)
        }
    }

    fn complete_messages(&self, which: Which) -> Result<()> {
        // Of a put that is locally complete nothing is waited for, so nothing need be looked at either.
        if self.any_sent(|sent| sent.is_of(which)) {
            self.wait_for(|sent| sent.is_of(which));
        }
        self.report(|refusal| refusal.tag.is_some_and(|tag| which.includes(tag, refusal.rank)))
    }

    /// Whether the data of these gets are where they belong, or were refused; serves this rank's inbox if not.
    pub(crate) fn is_complete(&self, which: Which) -> bool {
        let complete = || {
            self.reap();
            !self.any_sent(|sent| sent.is_of(which))
        };
        self.detached.get() == 0 || complete() || {
            self.serve();
            complete()
        }
    }

    /// Waits until an operation has fewer than [`PIPELINE`] messages under way.
    pub(crate) fn narrow(&self, op: u64) {
        let narrow = || self.count_sent(|sent| sent.is_of(Which::Op(op))) < PIPELINE;
        self.wait(|| {
            narrow() || {
                self.reap();
                narrow()
            }
        });
    }

    /// Waits until nothing of this context is under way; what was refused remains to be reported.
    pub(crate) fn quiesce(&self) {
        self.wait_for(Sent::detached);
    }

    /// Takes the refusals that `concerns` out, as one error.
    fn report(&self, concerns: impl Fn(&Refusal) -> bool) -> Result<()> {
        let mut refused = self.refused.borrow_mut();
        let mut concerned = refused.extract_if(.., |refusal| concerns(refusal));
        let Some(first) = concerned.next() else { return Ok(()) };
        let elsewhere = concerned.map(|refusal| refusal.more + 1).sum();
        Err(first.into_error(elsewhere))
    }

    /// Keeps a refusal for the fence or the wait that asks for it.
    fn note(&self, refusal: Refusal) {
        let mut refused = self.refused.borrow_mut();
        match refused.iter_mut().find(|known| known.rank == refusal.rank && known.tag == refusal.tag) {
            Some(known) => known.more += 1,
            None => refused.push(refusal),
        }
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
            let sends = self.line.get().is_some_and(|line| line.under_way() != 0);
            if threaded && !sends {
                // Messages are the progress thread's: nobody need wake us for them. What this thread has sent may be fetched
                // only while it looks at its line.
                self.service.while_waiter_sleeps_elsewhere(|| bell.sleep_unless(ready));
                true
            } else {
                self.sleep_unless(ready)
            }
        };
        wait_until(&self.patience_with_all, self, sleep, ready);
    }

    /// What leaders of nodes have sent this one.
    pub(crate) fn parcels(&self) -> &Parcels {
        self.service.parcels()
    }

    /// Waits, serving, for a parcel of at most `limit` bytes.
    pub(crate) fn receive_parcel(&self, source: usize, exchange: Exchange, limit: usize) -> Vec<u8> {
        let mut parcel = None;
        self.wait(|| {
            parcel = parcel.take().or_else(|| self.parcels().take(source, exchange, limit));
            parcel.is_some()
        });
        parcel.unwrap_or_default()
    }

    /// Serves what waits in this rank's inbox, if nobody is at it.
    pub(crate) fn serve(&self) {
        // A progress thread is woken by the fabric itself; a look costs up to a microsecond.
        if self.transport.has_beyond() && !self.service.has_thread() {
            self.service.look_beyond(Server::Waiter);
        }
        if self.service.has_message() {
            self.service.advance(Server::Waiter);
            // Serving stopped at a limit, perhaps, after the server had found us at it and gone to sleep.
            if self.service.has_message() {
                self.transport.pass_on();
            }
        }
    }

    /// Sleeps until `ready` may hold or there is a message to serve; whether anything has told so.
    fn sleep_unless(&self, ready: &mut dyn FnMut() -> bool) -> bool {
        let awake = || ready() || self.service.has_work();
        let line = self.line.get().filter(|line| line.under_way() != 0);
        let serves = self.transport.has_beyond() && !self.service.has_thread();
        if let Some(line) = line {
            line.wonder();
        }
        self.service.while_waiter_sleeps(|| {
            if line.is_some() || serves {
                self.transport.nap(line, serves, awake)
            } else {
                self.transport.sleep_unless(awake);
                true
            }
        })
    }

    /// Waits until no message that `concerns` is under way.
    fn wait_for(&self, concerns: impl Fn(&Sent) -> bool) {
        self.wait(|| {
            self.reap();
            !self.any_sent(&concerns)
        });
    }

    /// The slots that are taken.
    fn slots(&self) -> impl Iterator<Item = usize> + use<> {
        let mut taken = !self.free.get();
        std::iter::from_fn(move || {
            let slot = (taken != 0).then_some(taken.trailing_zeros() as usize);
            taken &= taken.wrapping_sub(1);
            slot
        })
    }

    /// How many messages that `concerns` are under way.
    fn count_sent(&self, concerns: impl Fn(&Sent) -> bool) -> usize {
        let sent = self.sent.borrow();
        self.slots().filter(|slot| sent[*slot].as_ref().is_some_and(&concerns)).count()
    }

    fn any_sent(&self, concerns: impl Fn(&Sent) -> bool) -> bool {
        let sent = self.sent.borrow();
        self.slots().any(|slot| sent[slot].as_ref().is_some_and(&concerns))
    }

    /// Deals with the replies to detached messages, and gives their slots back.
    fn reap(&self) {
        if self.poll() {
            self.moved.set(true);
        }
        for slot in self.slots() {
            let Some(sent) = self.sent.borrow()[slot].filter(Sent::detached) else { continue };
            if !self.is_done(slot) {
                continue;
            }
            if let Err(refusal) = self.settle(slot, &sent) {
                self.note(refusal);
            }
            self.detached.set(self.detached.get() - 1);
            self.detached_near.set(self.detached_near.get() - usize::from(sent.near));
            self.release(slot);
        }
    }

    /// Unpacks the reply in a slot, if it is data.
    fn settle(&self, slot: usize, sent: &Sent) -> std::result::Result<(), Refusal> {
        self.reply(slot, |status, reply| match (status, sent.answer) {
            (Status::Refused, _) => Err(self.refusal(slot, reply)),
            (Status::Done, Answer::Data { landing, .. }) => {
                let places = self.places[slot].borrow();
                let expected = landing.bytes(&places);
                if reply.len() != expected {
                    return Err(self.refusal(slot, wrong_length(expected, reply.len()).as_bytes()));
                }
                // SAFETY: LANDING, which whoever posted the get promised; the length was checked.
                unsafe { landing.unpack(&places, reply) };
                Ok(())
            }
            (Status::Done, Answer::Acknowledgement | Answer::Awaited) => Ok(()),
        })
    }

    fn is_done(&self, slot: usize) -> bool {
        self.block().replies[slot].status().is_some()
    }

    fn release(&self, slot: usize) {
        self.sent.borrow_mut()[slot] = None;
        if let (Some(buffer), Some(line)) = (self.bulk[slot].take(), self.line.get()) {
            line.release_bulk(buffer);
        }
        self.free.set(self.free.get() | 1 << slot);
    }

    /// Lends the complete reply in a slot.
    fn reply<R>(&self, slot: usize, read: impl FnOnce(Status, &[u8]) -> R) -> R {
        let cell = &self.block().replies[slot];
        let status = cell.status().unwrap_or(Status::Refused);
        if let Some(stored) = self.stored(slot, status, cell.len()) {
            // SAFETY: BULK-BUFFER (see `transport/ofi/bulk.rs`): the cell has a status, so the buffer is ours again.
            return read(status, unsafe { std::slice::from_raw_parts(stored, cell.len()) });
        }
        let len = cell.len().min(STAGING_BYTES);
        let from = if len <= REPLY_INLINE_MAX {
            cell.inline.with(|inline| inline.cast::<u8>())
        } else {
            self.staging(slot).cast_const()
        };
        // SAFETY: REQUEST-SLOT: the cell has a status, so it and chunk are ours again.
        read(status, unsafe { std::slice::from_raw_parts(from, len) })
    }

    fn refusal(&self, slot: usize, reason: &[u8]) -> Refusal {
        let sent = self.sent.borrow()[slot];
        let (rank, handler) = sent.map_or((0, 0), |sent| (sent.what.target, sent.handler));
        let tag = sent.and_then(|sent| sent.tag());
        Refusal { rank, tag, handler, reason: String::from_utf8_lossy(reason).into_owned(), more: 0 }
    }
}

/// What is wrong with a reply that does not fit its request.
pub(crate) fn wrong_length(expected: usize, found: usize) -> String {
    format!("its reply has {found} bytes, {expected} were expected: do all ranks run the same build?")
}

impl Help for Origin {
    fn enter(&self) {
        self.transport.begin_looking();
    }

    fn help(&self) -> bool {
        // What a wait asks for may have moved things on, too.
        self.moved.take() | self.poll() | (self.service.advance(Server::Waiter) != 0)
    }

    fn leave(&self) {
        self.transport.end_looking();
        // A sender may have seen us looking just before: its message is ours to serve, or to pass on.
        self.serve();
    }
}

/// What a user's message or one of ours does, for the conflict tracker.
pub(crate) fn outstanding(target: usize, region: RegionId, access: Access) -> Outstanding {
    Outstanding { target, region: Some(region), access }
}
