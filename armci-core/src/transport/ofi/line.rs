//! A line: how one origin context reaches ranks on other nodes.
//!
//! Each of the context's request slots carries one thing at a time: a message, whose reply comes back as a packet, or a
//! read or write of remote memory. Whatever it is, it ends as on a node: the slot's reply cell is complete, with the data
//! in the cell or in the staging chunk. So whoever waits for a slot need not know where its target is.
//!
//! # Protocol
//! A slot is complete when the provider has let go of what was sent *and* the reply is there: until then its memory is
//! not touched. A reply names the slot and the turn of its use; one that comes twice, or late, is told and dropped.
//! There are more buffers for replies than slots, so a reply finds one.
//!
//! # Safety
//! SINGLE-ORIGIN (see `am/origin.rs`): one thread uses a line. OPERATION-MEMORY (see `endpoint.rs`): tokens, heads and
//! buffers are boxed, and a slot's chunk lies in the window, so all stay where they are; the endpoint is closed first.
//! REQUEST-SLOT: a slot's cell and chunk are ours from [`Line::send`] until the cell is complete.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use super::abi;
use super::bulk::{Buffers, Lent, Purpose};
use super::domain::Domain;
use super::doubts::{Doubts, Then};
use super::endpoint::{Endpoint, Local, Target, Token, Trouble};
use super::fabric::Fabric;
use super::library::Object;
use super::names::Names;
use super::packet::{
    ADDRESS_MAX, Answer, Asker, BULK_BYTES, Errand, HEAD, PACKET_MAX, PLACE, Place, Reply, Standing, Through,
    write_question, write_request,
};
use crate::error::Result;
use crate::memory::region::Access;
use crate::node::message::{ContextBlock, INLINE_MAX, REPLY_INLINE_MAX, REQUEST_SLOTS, STAGING_BYTES, Status};
use crate::transport::{Again, Outgoing};

/// Buffers posted for replies.
const BUFFERS: usize = REQUEST_SLOTS + 1;
/// Memory of the program from so many bytes on is registered for its access, where the provider wants that; shorter one
/// is copied through chunks that are registered, which costs less than to pin its pages.
const LEND_FROM: usize = 4 * STAGING_BYTES;
/// Completions looked at in one go.
const BATCH: usize = 16;
/// Bytes of a request before its payload.
const FRONT: usize = HEAD + PLACE + ADDRESS_MAX + INLINE_MAX;
/// The front of a question, behind those of the slots.
const QUESTION: usize = REQUEST_SLOTS;
/// Its token, behind those of slots and buffers.
const QUESTION_TOKEN: usize = REQUEST_SLOTS + BUFFERS;

/// What a slot does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Nothing,
    /// A message to this rank: what is still to come, and how many bytes it may store here.
    Message {
        target: usize,
        stores: usize,
        sent: bool,
        answer: Option<(Status, usize)>,
    },
    /// A read or write of this rank's memory; a read into the chunk, of so many bytes.
    Access {
        target: usize,
        fetched: usize,
    },
}

/// An origin context's way to other nodes.
#[derive(Debug)]
pub(crate) struct Line {
    // In this order they are dropped: first what uses the rest.
    endpoint: Endpoint,
    registered: Option<[Object<abi::Mr>; 3]>,
    /// For what is longer than a chunk, once there is such a thing; none if the provider refuses.
    bulk: OnceCell<Option<Buffers>>,
    /// For each slot, memory of the program that is registered for its access; and how often there was such.
    lent: [RefCell<Option<Lent>>; REQUEST_SLOTS],
    lendings: Cell<u64>,
    domain: Arc<Domain>,
    names: Names,
    tokens: Box<[Token]>,
    fronts: Box<[u8]>,
    buffers: Box<[u8]>,
    fabric: Arc<Fabric>,
    /// Its number among the lines of this rank.
    number: u32,
    context: u16,
    block: NonNull<ContextBlock>,
    name: Vec<u8>,
    uses: [Cell<Use>; REQUEST_SLOTS],
    turns: [Cell<u16>; REQUEST_SLOTS],
    /// What memory is registered as, if it must be: fronts, buffers, chunks.
    descriptors: [*mut std::ffi::c_void; 3],
    /// Slots in use.
    under_way: Cell<usize>,
    doubts: Doubts,
    /// Whom a question is on its way to.
    questioned: Cell<Option<usize>>,
    /// A reply that tests have come again, late.
    late: RefCell<Vec<u8>>,
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.domain.binds_memory() {
            self.registered = None;
            self.lent = Default::default();
            if let Some(Some(bulk)) = self.bulk.get_mut() {
                bulk.withdraw();
            }
        }
    }
}

impl Line {
    /// A line of context `context`, whose block this is.
    ///
    /// # Errors
    /// [`Error::Fabric`](crate::Error::Fabric): what the provider has to say.
    pub(crate) fn open(fabric: &Arc<Fabric>, context: usize, block: &ContextBlock) -> Result<Self> {
        let domain = Arc::new(fabric.domain().beside()?);
        let endpoint = Endpoint::open(&domain)?;
        let name = endpoint.name()?;
        let mut fronts = vec![0; (REQUEST_SLOTS + 1) * FRONT].into_boxed_slice();
        let mut buffers = vec![0; BUFFERS * PACKET_MAX].into_boxed_slice();
        let mut descriptors = [ptr::null_mut(); 3];
        let mut registered = None;
        if domain.wants_local() {
            let block = (ptr::from_ref(block).cast_mut().cast::<u8>(), size_of::<ContextBlock>());
            let memory = [(fronts.as_mut_ptr(), fronts.len()), (buffers.as_mut_ptr(), buffers.len()), block];
            let register = |(at, len): (*mut u8, usize)| {
                let key = crate::job::random::<1>()?[0];
                // SAFETY: the memory is boxed or lies in the window, and stays longer than this.
                unsafe { domain.register(at, len, key, &endpoint) }
            };
            let all = [register(memory[0])?, register(memory[1])?, register(memory[2])?];
            descriptors = [&all[0], &all[1], &all[2]].map(|object| object.get().mem_desc);
            registered = Some(all);
        }
        let over_tcp = domain.provider().split(';').next() == Some("tcp");
        let line = Line {
            endpoint,
            registered,
            bulk: OnceCell::new(),
            lent: Default::default(),
            lendings: Cell::new(0),
            domain,
            names: Names::default(),
            tokens: (0..=QUESTION_TOKEN).map(|_| Token::default()).collect(),
            fronts,
            buffers,
            fabric: fabric.clone(),
            number: fabric.number_line(),
            context: context as u16,
            block: NonNull::from(block),
            name,
            uses: [const { Cell::new(Use::Nothing) }; REQUEST_SLOTS],
            turns: [const { Cell::new(0) }; REQUEST_SLOTS],
            descriptors,
            under_way: Cell::new(0),
            doubts: Doubts::new(over_tcp),
            questioned: Cell::new(None),
            late: RefCell::default(),
        };
        (0..BUFFERS).for_each(|buffer| line.post(buffer));
        Ok(line)
    }

    /// Slots in use.
    #[inline]
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.get()
    }

    /// What to wait for by, if the provider has such a thing.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.descriptor()
    }

    /// Whether one may go to sleep over the descriptor.
    pub(crate) fn may_sleep(&self) -> bool {
        self.endpoint.may_sleep()
    }

    /// How often in a row one might not.
    pub(crate) fn kept_awake(&self) -> u32 {
        self.endpoint.kept_awake()
    }

    fn block(&self) -> &ContextBlock {
        // SAFETY: CONTEXT-BLOCK (see `node`): it lies in the window, which the fabric's node keeps mapped.
        unsafe { self.block.as_ref() }
    }

    fn front(&self, slot: usize) -> *mut u8 {
        self.fronts[slot * FRONT..].as_ptr().cast_mut()
    }

    /// A buffer for a reply.
    fn buffer(&self, buffer: usize) -> *mut u8 {
        self.buffers[buffer * PACKET_MAX..].as_ptr().cast_mut()
    }

    /// The staging chunk of a slot.
    fn chunk(&self, slot: usize) -> Local {
        let at = self.block().staging[slot].0.with_mut(|chunk| chunk.cast());
        Local { at, desc: self.descriptors[2] }
    }

    /// Posts a buffer for a reply.
    fn post(&self, buffer: usize) {
        let token = &self.tokens[REQUEST_SLOTS + buffer];
        loop {
            let local = Local { at: self.buffer(buffer), desc: self.descriptors[1] };
            // SAFETY: OPERATION-MEMORY.
            match unsafe { self.endpoint.receive(local, PACKET_MAX, token) } {
                Ok(()) => return,
                Err(Trouble::Again) => std::thread::yield_now(),
                Err(Trouble::Error(code)) => {
                    let meaning = self.domain.library().meaning(code);
                    self.fabric.give_up(None, &format!("a buffer for replies is not taken: {meaning}"))
                }
            }
        }
    }

    fn taken(&self, slot: usize, by: Use, taken: std::result::Result<(), Trouble>) -> std::result::Result<(), Again> {
        match taken {
            Ok(()) => {
                self.uses[slot].set(by);
                self.under_way.set(self.under_way.get() + 1);
                Ok(())
            }
            Err(Trouble::Again) => Err(Again),
            Err(Trouble::Error(code)) => {
                let (Use::Message { target, .. } | Use::Access { target, .. }) = by else {
                    unreachable!("a slot's use")
                };
                self.fabric.give_up(Some(target), &self.domain.library().meaning(code))
            }
        }
    }

    /// What the provider calls a rank's service endpoint.
    fn name_of(&self, rank: usize) -> u64 {
        self.names.of(rank, &self.domain, &self.fabric)
    }

    /// How a rank's memory is named, whose access this is.
    fn place(&self, rank: usize, access: Access, offset: u64) -> Target {
        Target { endpoint: self.name_of(rank), address: access.address.wrapping_add(offset), key: access.key }
    }

    /// Sends a message to a rank of another node, whose payload lies at a place, or whose reply belongs there.
    ///
    /// # Errors
    /// [`Again`] if there is no room now; nothing was sent.
    pub(crate) fn send(
        &self,
        target: usize,
        message: &Outgoing<'_>,
        place: Option<&Place>,
    ) -> std::result::Result<(), Again> {
        let slot = message.slot;
        let turn = self.turns[slot].get().wrapping_add(1);
        let rank = self.fabric.node().who().rank as u32;
        let asker = Asker { rank, context: self.context, slot: slot as u16, turn };
        // SAFETY: SINGLE-ORIGIN: the slot is claimed and nothing of it is under way, so its front is ours.
        let front = unsafe { std::slice::from_raw_parts_mut(self.front(slot), FRONT) };
        let secret = self.fabric.secret();
        let Outgoing { handler, inline, staged_len, .. } = *message;
        let standing = Standing { line: self.number, number: self.names.requests(target) };
        let len = write_request(front, secret, asker, standing, handler, place, &self.name, inline, staged_len);
        let pieces =
            [(Local { at: self.front(slot), desc: self.descriptors[0] }, len), (self.chunk(slot), message.staged_len)];
        let sent = self.endpoint.loses_request();
        // SAFETY: OPERATION-MEMORY.
        let send = || unsafe { self.endpoint.send(self.name_of(target), pieces, &self.tokens[slot]) };
        let taken = if sent { Ok(()) } else { send() };
        let stores = place.filter(|place| place.errand == Errand::Store).map_or(0, |place| place.len);
        self.taken(slot, Use::Message { target, stores, sent, answer: None }, taken)?;
        self.turns[slot].set(turn);
        self.names.count_request(target);
        Ok(())
    }

    /// Writes from the slot's chunk, or from `from` if that is not null, to a rank's memory.
    ///
    /// # Safety
    /// The target's memory is there to be written; `from` stays readable until the slot is complete.
    ///
    /// # Errors
    /// [`Again`] if there is no room now.
    pub(crate) unsafe fn write(
        &self,
        slot: usize,
        target: usize,
        access: Access,
        offset: u64,
        from: *const u8,
        len: usize,
    ) -> std::result::Result<(), Again> {
        let to = self.place(target, access, offset);
        let local = if from.is_null() { self.chunk(slot) } else { self.programs(slot, from.cast_mut()) };
        // SAFETY: OPERATION-MEMORY, by the caller's promise or REQUEST-SLOT.
        let taken = unsafe { self.endpoint.write(to, local, len, &self.tokens[slot]) };
        self.taken(slot, Use::Access { target, fetched: 0 }, taken)
    }

    /// Reads a rank's memory into the slot's chunk, or into `to` if that is not null.
    ///
    /// # Safety
    /// `to` stays writable, and nobody else's, until the slot is complete.
    ///
    /// # Errors
    /// [`Again`] if there is no room now.
    pub(crate) unsafe fn read(
        &self,
        slot: usize,
        target: usize,
        access: Access,
        offset: u64,
        to: *mut u8,
        len: usize,
    ) -> std::result::Result<(), Again> {
        let from = self.place(target, access, offset);
        let local = if to.is_null() { self.chunk(slot) } else { self.programs(slot, to) };
        // SAFETY: OPERATION-MEMORY, by the caller's promise or REQUEST-SLOT.
        let taken = unsafe { self.endpoint.read(from, local, len, &self.tokens[slot]) };
        self.taken(slot, Use::Access { target, fetched: if to.is_null() { len } else { 0 } }, taken)
    }

    /// Memory of the program, for the access of a slot.
    fn programs(&self, slot: usize, at: *mut u8) -> Local {
        Local { at, desc: self.lent[slot].borrow().as_ref().map_or(ptr::null_mut(), Lent::descriptor) }
    }

    /// Whether memory of the program may be written from or read into by the next access of a claimed slot; otherwise only
    /// the slot's chunk. If need be it is registered for that access.
    ///
    /// # Safety
    /// It stays until the access is complete.
    pub(crate) unsafe fn reaches(&self, slot: usize, by: Purpose, at: *mut u8, len: usize) -> bool {
        if !self.domain.wants_local() {
            return true;
        }
        if len < LEND_FROM {
            return false;
        }
        // SAFETY: the caller's promise; and `finish` ends it.
        let lent = unsafe { self.lend(by, at, len) };
        let lends = lent.is_some();
        self.lendings.set(self.lendings.get() + u64::from(lends));
        *self.lent[slot].borrow_mut() = lent;
        lends
    }

    /// How often memory of the program was registered for an access, and how much of it is now.
    pub(crate) fn lendings(&self) -> (u64, u64) {
        let now = self.lent.iter().filter(|lent| lent.borrow().is_some()).count();
        (self.lendings.get(), now as u64)
    }

    /// Bytes of one access at most.
    pub(crate) fn largest_access(&self) -> usize {
        self.domain.largest()
    }

    /// Whether writes may be used: it is known when they are there.
    pub(crate) fn writes(&self) -> bool {
        self.domain.delivers()
    }

    /// Whether long payloads may be fetched from here, and, if it `stores`, long replies stored.
    pub(crate) fn takes_bulk(&self, stores: bool) -> bool {
        self.largest_access() >= BULK_BYTES && (!stores || self.writes()) && self.bulk().is_some()
    }

    /// Whether memory of this line may be reached through its rank's service endpoint, too.
    pub(crate) fn shares_memory(&self) -> bool {
        !self.domain.binds_memory()
    }

    fn bulk(&self) -> Option<&Buffers> {
        let open = || match Buffers::open(&self.domain, &self.endpoint, self.fabric.domain()) {
            Ok(buffers) => Some(buffers),
            Err(error) => {
                tracing::warn!("long messages go in short pieces: {error}");
                None
            }
        };
        self.bulk.get_or_init(open).as_ref()
    }

    /// A long buffer, if one is free.
    pub(crate) fn claim_bulk(&self) -> Option<usize> {
        self.bulk()?.claim()
    }

    /// Gives a long buffer back.
    pub(crate) fn release_bulk(&self, buffer: usize) {
        if let Some(bulk) = self.bulk() {
            bulk.release(buffer);
        }
    }

    /// The memory of a long buffer that was claimed.
    pub(crate) fn bulk_at(&self, buffer: usize) -> *mut u8 {
        self.bulk().map_or(ptr::null_mut(), |bulk| bulk.at(buffer))
    }

    /// The first bytes of a long buffer, as a place.
    pub(crate) fn bulk_place(&self, errand: Errand, through: Through, buffer: usize, len: usize) -> Option<Place> {
        self.bulk()?.place(errand, through, buffer, len)
    }

    /// Registers memory of the program, for a call or an access; none if the provider refuses.
    ///
    /// # Safety
    /// The memory stays as long as what this returns, which is dropped before the line.
    pub(crate) unsafe fn lend(&self, by: Purpose, at: *mut u8, len: usize) -> Option<Lent> {
        // SAFETY: the caller's promise.
        let lent = unsafe { Lent::new(&self.domain, &self.endpoint, by, at, len) };
        lent.map_err(|error| tracing::warn!("memory of {len} bytes goes through buffers: {error}")).ok()
    }

    /// [`Line::move_on`], if something of ours is under way.
    #[inline]
    pub(crate) fn poll(&self) -> bool {
        self.under_way.get() != 0 && self.move_on()
    }

    /// Moves on what can be moved on, and completes slots; whether there was anything. To be called also when nothing is
    /// under way yet, but was to be: it may be a connection that has to be made first.
    pub(crate) fn move_on(&self) -> bool {
        let mut room = [abi::Completion { context: ptr::null_mut(), flags: 0, len: 0 }; BATCH];
        match self.endpoint.poll(&mut room) {
            Ok(completions) => {
                completions.iter().for_each(|completion| self.complete(completion));
                !completions.is_empty()
            }
            Err(failed) if failed.is_too_long() => {
                tracing::warn!("a packet is dropped: {}", failed.reason);
                if let Some(buffer) = self.token(failed.context).and_then(|token| token.checked_sub(REQUEST_SLOTS))
                    && buffer < BUFFERS
                {
                    self.post(buffer);
                }
                true
            }
            Err(failed) => {
                let target = self.token(failed.context).and_then(|token| match self.uses.get(token).map(Cell::get) {
                    Some(Use::Message { target, .. } | Use::Access { target, .. }) => Some(target),
                    Some(Use::Nothing) => None,
                    None => self.questioned.get().filter(|_| token == QUESTION_TOKEN),
                });
                self.fabric.give_up_on(target, &failed)
            }
        }
    }

    /// To be called now and then by who waits: asks after answers that stay away (see `doubts.rs`).
    pub(crate) fn wonder(&self) {
        let now = Instant::now();
        let mut wondered = [usize::MAX; REQUEST_SLOTS];
        for slot in 0..REQUEST_SLOTS {
            let Use::Message { target, sent: true, answer: None, .. } = self.uses[slot].get() else { continue };
            // Of several the first will do: the question is whether anything is there.
            if wondered[..slot].contains(&target) {
                continue;
            }
            wondered[slot] = target;
            if let Then::Ask(round) = self.doubts.consider(slot, self.turns[slot].get(), now)
                && self.questioned.get().is_none()
            {
                let taken = self.ask(slot, target, round);
                self.then(target, self.doubts.asked(slot, taken, now));
            }
        }
    }

    /// Asks a rank whether anything of this context is there; whether the provider takes the question.
    fn ask(&self, slot: usize, target: usize, turn: u16) -> bool {
        let rank = self.fabric.node().who().rank as u32;
        let asker = Asker { rank, context: self.context, slot: slot as u16, turn };
        // SAFETY: SINGLE-ORIGIN: no question is under way, so its front is ours.
        let front = unsafe { std::slice::from_raw_parts_mut(self.front(QUESTION), FRONT) };
        let len = write_question(front, self.fabric.secret(), asker, self.number, &self.name);
        let nothing = Local { at: ptr::null_mut(), desc: ptr::null_mut() };
        let pieces = [(Local { at: self.front(QUESTION), desc: self.descriptors[0] }, len), (nothing, 0)];
        // SAFETY: OPERATION-MEMORY.
        match unsafe { self.endpoint.send(self.name_of(target), pieces, &self.tokens[QUESTION_TOKEN]) } {
            Ok(()) => {
                self.questioned.set(Some(target));
                true
            }
            Err(Trouble::Again) => false,
            Err(Trouble::Error(code)) => self.fabric.give_up(Some(target), &self.domain.library().meaning(code)),
        }
    }

    fn then(&self, target: usize, then: Then) {
        if let Then::GiveUp(reason) = then {
            self.fabric.give_up(Some(target), reason);
        }
    }

    /// Whose token lies at this address.
    fn token(&self, context: *mut std::ffi::c_void) -> Option<usize> {
        let distance = (context as usize).checked_sub(self.tokens.as_ptr() as usize)?;
        Some(distance / size_of::<Token>()).filter(|token| *token < self.tokens.len())
    }

    fn complete(&self, completion: &abi::Completion) {
        let Some(token) = self.token(completion.context) else {
            self.fabric.give_up(None, "libfabric has completed an operation that nobody began")
        };
        if token == QUESTION_TOKEN {
            return self.questioned.set(None);
        }
        if token >= REQUEST_SLOTS {
            let buffer = token - REQUEST_SLOTS;
            // SAFETY: the buffer is ours again, and that many bytes of it were written.
            let packet = unsafe { std::slice::from_raw_parts(self.buffer(buffer), completion.len.min(PACKET_MAX)) };
            if !self.late.borrow().is_empty() {
                self.take(&self.late.take());
            }
            if self.endpoint.repeats() {
                *self.late.borrow_mut() = packet.to_vec();
            }
            if !self.endpoint.loses_reply() {
                self.take(packet);
            }
            return self.post(buffer);
        }
        match self.uses[token].get() {
            Use::Access { fetched, .. } => {
                if fetched <= REPLY_INLINE_MAX {
                    self.block().replies[token].inline.with_mut(|inline| {
                        // SAFETY: REQUEST-SLOT: cell and chunk are ours, and both are that long.
                        unsafe { ptr::copy_nonoverlapping(self.chunk(token).at, inline.cast(), fetched) };
                    });
                }
                self.finish(token, Status::Done, fetched);
            }
            Use::Message { target, stores, answer, .. } => match answer {
                Some((status, len)) => self.finish(token, status, len),
                None => self.uses[token].set(Use::Message { target, stores, sent: true, answer }),
            },
            Use::Nothing => tracing::warn!("libfabric has completed an operation twice"),
        }
    }

    /// Takes a reply in.
    fn take(&self, packet: &[u8]) {
        let ranks = self.fabric.node().who().size as u32;
        let reply = match Reply::parse(packet, self.fabric.secret(), ranks) {
            Ok(reply) => reply,
            Err(reason) => return tracing::warn!("a packet is dropped: {reason}"),
        };
        let slot = usize::from(reply.slot);
        if reply.answer == Answer::Nothing {
            let (rank, turn) = (reply.source as usize, self.turns[slot].get());
            let waits = matches!(self.uses[slot].get(), Use::Message { target, sent: true, answer: None, .. } if target == rank);
            if waits {
                self.then(rank, self.doubts.answered(slot, turn, reply.turn, Instant::now()));
            }
            return;
        }
        let (target, stores, sent) = match self.uses[slot].get() {
            Use::Message { target, stores, sent, answer: None }
                if target == reply.source as usize && self.turns[slot].get() == reply.turn =>
            {
                (target, stores, sent)
            }
            _ => return tracing::warn!("a reply that nobody waits for is dropped: {reply:?}"),
        };
        let cell = &self.block().replies[slot];
        let mut status = reply.status;
        let len = match reply.answer {
            Answer::Data(data) if stores == 0 || reply.status == Status::Refused => {
                let len = data.len();
                let to = if len <= REPLY_INLINE_MAX {
                    cell.inline.with_mut(|inline| inline.cast())
                } else {
                    self.chunk(slot).at
                };
                // SAFETY: REQUEST-SLOT: the request was received, so its payload is not needed any more; the packet was
                // held to the size of a chunk.
                unsafe { ptr::copy_nonoverlapping(data.as_ptr(), to, len) };
                len
            }
            Answer::Stored(len) if (1..=stores).contains(&len) => len,
            Answer::Stored(0) if stores != 0 => 0,
            _ => {
                // Of another build, or of nobody good: whoever waits is not to wait for ever.
                tracing::warn!("a reply that was not asked for so is refused: {reply:?}");
                status = Status::Refused;
                0
            }
        };
        if sent {
            self.finish(slot, status, len);
        } else {
            self.uses[slot].set(Use::Message { target, stores, sent, answer: Some((status, len)) });
        }
    }

    fn finish(&self, slot: usize, status: Status, len: usize) {
        self.uses[slot].set(Use::Nothing);
        self.lent[slot].take();
        self.doubts.end(slot);
        self.under_way.set(self.under_way.get() - 1);
        self.block().replies[slot].complete(status, len);
    }
}
