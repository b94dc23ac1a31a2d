//! The reception: where requests from other nodes arrive, are served, and are answered.
//!
//! # Protocol
//! A request is served only if its asker may have a packet for its reply (see `replies.rs`), and a reply that the provider
//! does not take now waits in its asker's queue, which is tried again each time. So serving waits for nobody, no asker for
//! another that takes no answers, and nothing is served twice or lost: what has come and cannot be served yet lies in its
//! buffer, or was put off.
//!
//! Requests of a line are let through in the order in which they were sent (see `askers.rs`), whatever the provider does.
//!
//! A request that names a place (see `packet.rs`) takes a landing. What comes behind it does not wait for it: who asks
//! minds the order. If its asker may have no landing now it is kept, and goes before later ones of its kind.
//!
//! # Safety
//! SERVICE-OWNER (see `am/service.rs`): only the holder of the service context comes in here. OPERATION-MEMORY (see
//! `endpoint.rs`): buffers and tokens are boxed; the endpoint is closed first.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::abi;
use super::askers::{Askers, Turn};
use super::endpoint::{Endpoint, Local, Target, Token, Trouble};
use super::fabric::Fabric;
use super::landings::{Job, LANDINGS, Landings, Stage};
use super::library::Object;
use super::names::Names;
use super::packet::{Asker, Errand, HEAD, PACKET_MAX, Request, Standing, Through, write_nothing, write_reply};
use super::replies::{REPLIES, Replies, Unsent, Way};
use crate::error::Result;
use crate::memory::RegionId;
use crate::memory::region::{Access, Part};
use crate::node::message::{REQUEST_SLOTS, STAGING_BYTES, Status};
use crate::transport::{Incoming, Served};

/// Buffers posted for requests.
const BUFFERS: usize = 64;
/// Completions looked at in one go.
const BATCH: usize = 16;

/// A rank's service endpoint.
#[derive(Debug)]
pub(crate) struct Reception {
    // In this order they are dropped: first what uses the rest.
    endpoint: Endpoint,
    registered: Option<Object<abi::Mr>>,
    /// Has the landings, and what they are registered as.
    state: UnsafeCell<State>,
    /// Buffers for requests, then packets for replies.
    packets: Box<[u8]>,
    tokens: Box<[Token]>,
    fabric: Arc<Fabric>,
    descriptor: *mut std::ffi::c_void,
    /// Packets for replies that are not free.
    answering: AtomicUsize,
}

/// What only the owner of the service context touches.
#[derive(Debug)]
struct State {
    /// Requests that have come and were not served: buffer and length.
    waiting: VecDeque<(usize, usize)>,
    /// Those that came too early, were kept without their buffers, and whose turn it is now.
    following: VecDeque<Vec<u8>>,
    /// Those that named a place and have no landing yet, without their buffers; and the numbers of their askers.
    unlanded: VecDeque<(usize, Vec<u8>)>,
    landings: Landings,
    replies: Replies,
    /// Ranks whose memory was reached through their service endpoints.
    names: Names,
    askers: Askers,
}

// SAFETY: SERVICE-OWNER: one thread at a time, one after the other; the rest is boxes and what is safe for threads.
unsafe impl Send for Reception {}
// SAFETY: as above.
unsafe impl Sync for Reception {}

impl Drop for Reception {
    fn drop(&mut self) {
        self.fabric.withdraw_what_is_bound();
        if self.fabric.domain().binds_memory() {
            self.registered = None;
            self.state.get_mut().landings.withdraw();
        }
    }
}

impl Reception {
    /// Opens it on an endpoint.
    ///
    /// # Errors
    /// [`Error::Fabric`](crate::Error::Fabric): what the provider has to say.
    pub(crate) fn open(fabric: &Arc<Fabric>, endpoint: Endpoint) -> Result<Self> {
        let mut packets = vec![0; (BUFFERS + REPLIES) * PACKET_MAX].into_boxed_slice();
        let mut registered = None;
        if fabric.domain().wants_local() {
            let key = crate::job::random::<1>()?[0];
            // SAFETY: the memory is boxed, and stays longer than this.
            registered =
                Some(unsafe { fabric.domain().register(packets.as_mut_ptr(), packets.len(), key, &endpoint)? });
        }
        let descriptor = registered.as_ref().map_or(ptr::null_mut(), |object| object.get().mem_desc);
        let state = State {
            waiting: VecDeque::with_capacity(BUFFERS),
            following: VecDeque::new(),
            unlanded: VecDeque::new(),
            landings: Landings::new(),
            replies: Replies::new(),
            names: Names::default(),
            askers: Askers::default(),
        };
        let reception = Reception {
            endpoint,
            registered,
            packets,
            tokens: (0..BUFFERS + REPLIES + LANDINGS).map(|_| Token::default()).collect(),
            fabric: fabric.clone(),
            descriptor,
            state: UnsafeCell::new(state),
            answering: AtomicUsize::new(0),
        };
        (0..BUFFERS).for_each(|buffer| reception.post(buffer));
        Ok(reception)
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

    /// How others reach a part of a region of this rank.
    pub(crate) fn export(&self, id: RegionId, part: Part) -> Option<Access> {
        self.fabric.export(&self.endpoint, id, part)
    }

    fn packet(&self, packet: usize) -> *mut u8 {
        self.packets[packet * PACKET_MAX..].as_ptr().cast_mut()
    }

    fn local(&self, packet: usize) -> Local {
        Local { at: self.packet(packet), desc: self.descriptor }
    }

    fn post(&self, buffer: usize) {
        loop {
            // SAFETY: OPERATION-MEMORY.
            match unsafe { self.endpoint.receive(self.local(buffer), PACKET_MAX, &self.tokens[buffer]) } {
                Ok(()) => return,
                Err(Trouble::Again) => std::thread::yield_now(),
                Err(Trouble::Error(code)) => {
                    let meaning = self.fabric.domain().library().meaning(code);
                    self.fabric.give_up(None, &format!("a buffer for requests is not taken: {meaning}"))
                }
            }
        }
    }

    /// Moves on what can be moved on, and serves what has come; says how many requests, at most `limit`.
    ///
    /// # Safety
    /// SERVICE-OWNER.
    pub(crate) unsafe fn serve(&self, limit: usize, serve: &mut dyn FnMut(&Incoming<'_>) -> Served) -> usize {
        // SAFETY: SERVICE-OWNER; handlers do not come back in here.
        let state = unsafe { &mut *self.state.get() };
        let mut served = 0;
        loop {
            let mut room = [abi::Completion { context: ptr::null_mut(), flags: 0, len: 0 }; BATCH];
            let taken = match self.endpoint.poll(&mut room) {
                Ok(completions) => {
                    completions.iter().for_each(|completion| self.complete(state, completion));
                    completions.len()
                }
                Err(failed) if failed.is_too_long() => {
                    tracing::warn!("a packet is dropped: {}", failed.reason);
                    if let Some(buffer) = self.token(failed.context).filter(|token| *token < BUFFERS) {
                        self.post(buffer);
                    }
                    1
                }
                Err(failed)
                    if self.reply_of(failed.context).is_some_and(|reply| state.replies.is_dispensable(reply)) =>
                {
                    tracing::debug!("an answer that may be for nobody did not arrive: {}", failed.reason);
                    if let Some(reply) = self.reply_of(failed.context) {
                        self.free_packet(state, reply);
                    }
                    1
                }
                Err(failed) => {
                    let rank = self.token(failed.context).and_then(|token| {
                        let packet = token.checked_sub(BUFFERS)?;
                        let landing = || Some(state.landings.job(packet.checked_sub(REPLIES)?)?.reply);
                        Some(state.replies.way(if packet < REPLIES { packet } else { landing()? }).rank)
                    });
                    self.fabric.give_up_on(rank, &failed)
                }
            };
            self.flush(state);
            // Before those whose payloads are there, and not in their place: some of these only begin to fetch, and what they
            // fetch comes while others are served.
            while served + state.landings.arrivals() < limit && state.replies.has_free() {
                if let Some((asker, packet)) = state.next_to_land().and_then(|next| state.unlanded.remove(next)) {
                    served += usize::from(self.land(state, asker, packet, serve));
                } else if let Some(packet) = state.replies.resume() {
                    served += usize::from(self.answer(state, &packet, Came::Resumed, serve));
                } else if let Some(packet) = state.following.pop_front() {
                    served += usize::from(self.answer(state, &packet, Came::InTurn, serve));
                } else if let Some((buffer, len)) = state.waiting.pop_front() {
                    // SAFETY: the buffer is ours until it is posted again, and that many bytes of it were written.
                    let packet = unsafe { std::slice::from_raw_parts(self.packet(buffer), len) };
                    served += usize::from(self.answer(state, packet, Came::JustNow, serve));
                    self.post(buffer);
                } else {
                    break;
                }
            }
            let arrived = state.landings.arrival();
            if let Some((landing, job)) = arrived {
                self.serve_fetched(state, landing, &job, serve);
                served += 1;
            }
            if served >= limit || (taken < BATCH && arrived.is_none()) {
                return served;
            }
        }
    }

    /// Whether something that has come was left, or could not be sent.
    ///
    /// # Safety
    /// SERVICE-OWNER.
    pub(crate) unsafe fn has_left_over(&self) -> bool {
        // SAFETY: SERVICE-OWNER.
        let state = unsafe { &*self.state.get() };
        let unserved = !state.waiting.is_empty() || !state.following.is_empty();
        let unserved = unserved || state.replies.can_resume() || state.next_to_land().is_some();
        unserved || state.replies.has_unsent() || state.landings.has_left_over()
    }

    /// Whether all replies have gone.
    pub(crate) fn is_settled(&self) -> bool {
        self.answering.load(Ordering::Acquire) == 0
    }

    /// Whose token lies at this address.
    fn token(&self, context: *mut std::ffi::c_void) -> Option<usize> {
        let distance = (context as usize).checked_sub(self.tokens.as_ptr() as usize)?;
        Some(distance / size_of::<Token>()).filter(|token| *token < self.tokens.len())
    }

    /// The packet for a reply whose token lies there.
    fn reply_of(&self, context: *mut std::ffi::c_void) -> Option<usize> {
        self.token(context)?.checked_sub(BUFFERS).filter(|reply| *reply < REPLIES)
    }

    fn complete(&self, state: &mut State, completion: &abi::Completion) {
        match self.token(completion.context) {
            Some(token) if token < BUFFERS => {
                let request = (token, completion.len.min(PACKET_MAX));
                if self.endpoint.lets_overtake() {
                    state.waiting.push_front(request);
                } else {
                    state.waiting.push_back(request);
                }
            }
            Some(token) if token < BUFFERS + REPLIES => self.free_packet(state, token - BUFFERS),
            Some(token) => self.accessed(state, token - BUFFERS - REPLIES),
            None => self.fabric.give_up(None, "libfabric has completed an operation that nobody began"),
        }
    }

    fn free_packet(&self, state: &mut State, packet: usize) {
        state.replies.put_back(packet);
        self.answering.store(state.replies.taken(), Ordering::Release);
    }

    /// Takes a packet for a reply, if its asker may have one more.
    fn take_packet(&self, state: &mut State, way: Way) -> Option<usize> {
        let packet = state.replies.take(way)?;
        self.answering.store(state.replies.taken(), Ordering::Release);
        Some(packet)
    }

    /// The request in a packet.
    fn request<'a>(&self, packet: &'a [u8]) -> std::result::Result<Request<'a>, String> {
        Request::parse(packet, self.fabric.secret(), self.fabric.node().who().size as u32)
    }

    /// Serves the request in a packet, and sends the reply, or puts it off, unless it has come before its turn. If it was not
    /// put off before, it goes behind those of its asker that were.
    fn answer(
        &self,
        state: &mut State,
        packet: &[u8],
        came: Came,
        serve: &mut dyn FnMut(&Incoming<'_>) -> Served,
    ) -> bool {
        let request = match self.request(packet) {
            Ok(request) => request,
            Err(reason) => {
                tracing::warn!("a packet is dropped: {reason}");
                return false;
            }
        };
        if request.is_question && state.askers.is_over(request.asker, request.standing.line) {
            return false;
        }
        let way = self.way(state, request.asker, request.address);
        if request.is_question {
            self.answer_question(state, way, request.asker);
            return false;
        }
        if came == Came::JustNow {
            let Some(order) = state.askers.order(request.asker) else { unreachable!("an asker that has a way") };
            match order.turn(request.standing, packet) {
                Turn::Now => state.following.extend(std::iter::from_fn(|| order.follow())),
                Turn::Later => return false,
                Turn::Never => {
                    let (Asker { rank, context, .. }, Standing { line, number }) = (request.asker, request.standing);
                    tracing::warn!(
                        "request {number} of line {line} of rank {rank}, context {context}, is out of turn: dropped"
                    );
                    return false;
                }
            }
        }
        let behind = came != Came::Resumed && state.replies.is_behind(way.asker);
        if !behind && request.place.is_some() {
            // Its buffer is needed: some providers read nothing behind a packet for which there is none, not even what is
            // fetched from the same rank.
            if state.unlanded.iter().filter(|(asker, _)| *asker == way.asker).count() < REQUEST_SLOTS {
                state.unlanded.push_back((way.asker, packet.to_vec()));
            } else {
                tracing::warn!("a request of rank {} is dropped: it has more under way than slots", way.rank);
            }
            return false;
        }
        let reply = if behind { None } else { self.take_packet(state, way) };
        let Some(reply) = reply else {
            // Its buffer is needed here, too: for those who take their answers.
            if let Err(reason) = state.replies.put_off(way.asker, packet) {
                tracing::warn!("a request of rank {} is dropped: {reason}", way.rank);
            }
            return false;
        };
        let data = self.packet(BUFFERS + reply).wrapping_add(HEAD);
        let done = serve(&incoming(&request, request.payload, data, STAGING_BYTES));
        self.reply(state, reply, request.asker, done, false);
        true
    }

    /// Tells who asks after its requests if nothing of it is here (see `doubts.rs`).
    fn answer_question(&self, state: &mut State, way: Way, asker: Asker) {
        let waits = state.unlanded.iter().any(|(unlanded, _)| *unlanded == way.asker);
        if waits || state.replies.has_some_of(way.asker) {
            return;
        }
        if let Some(reply) = self.take_packet(state, way) {
            // SAFETY: OPERATION-MEMORY: the packet is not under way, so it is ours.
            let head = unsafe { std::slice::from_raw_parts_mut(self.packet(BUFFERS + reply), HEAD) };
            write_nothing(head, self.fabric.secret(), self.fabric.node().who().rank as u32, asker);
            // Who asked may have had its answer meanwhile, and its endpoint be gone: then this is for nobody. Else it asks again.
            state.replies.dispense_with(reply);
            if !self.send(way, (reply, HEAD)) {
                self.free_packet(state, reply);
            }
        }
    }

    /// Gives a request that names a place a landing, which its asker may have; whether it was served at once.
    fn land(
        &self,
        state: &mut State,
        asker: usize,
        packet: Vec<u8>,
        serve: &mut dyn FnMut(&Incoming<'_>) -> Served,
    ) -> bool {
        if let Err(error) = state.landings.open(self.fabric.domain(), &self.endpoint) {
            self.fabric.give_up(None, &format!("there is no memory for long requests: {error}"));
        }
        let Ok(request) = self.request(&packet) else { unreachable!("a request that was understood before") };
        let Some(place) = request.place else { unreachable!("a request that names a place") };
        let way = self.way(state, request.asker, request.address);
        let Some(landing) = state.landings.take(asker) else { unreachable!("looked at before a request is") };
        let Some(reply) = self.take_packet(state, way) else { unreachable!("looked at before a request is") };
        let endpoint = match place.through {
            Through::Line => way.endpoint,
            Through::Service => state.names.of(way.rank, self.fabric.domain(), &self.fabric),
        };
        let target = Target { endpoint, address: place.address, key: place.key };
        let job = |stage| Job { asker: request.asker, reply, place: target, stage };
        match place.errand {
            Errand::Fetch => {
                let job = job(Stage::Fetching { len: place.len });
                state.landings.begin(landing, job, packet);
                self.begin_accesses(state);
                false
            }
            Errand::Store => {
                let room = state.landings.local(landing).at;
                let (status, len) = serve(&incoming(&request, request.payload, room, place.len));
                if status == Status::Done && (1..=place.len).contains(&len) {
                    state.landings.begin(landing, job(Stage::Storing { len }), Vec::new());
                    self.begin_accesses(state);
                    return true;
                }
                let done = if status == Status::Done && len != 0 {
                    // It is longer than the place: nobody who sends such a thing has asked for what is stored.
                    (Status::Refused, 0)
                } else {
                    (status, len.min(STAGING_BYTES))
                };
                // SAFETY: OPERATION-MEMORY: the packet is ours; LANDING-MEMORY: a handler wrote as much there.
                unsafe { ptr::copy_nonoverlapping(room, self.packet(BUFFERS + reply).wrapping_add(HEAD), done.1) };
                state.landings.put_back(landing);
                self.reply(state, reply, request.asker, done, true);
                true
            }
        }
    }

    /// The access of a landing is over.
    fn accessed(&self, state: &mut State, landing: usize) {
        let Some(job) = state.landings.job(landing) else {
            return tracing::warn!("libfabric has completed an operation twice");
        };
        match job.stage {
            Stage::Fetching { .. } => state.landings.arrived(landing),
            Stage::Storing { len } => {
                state.landings.put_back(landing);
                self.reply(state, job.reply, job.asker, (Status::Done, len), true);
            }
        }
    }

    /// Serves the request whose payload has come to a landing, and sends the reply.
    fn serve_fetched(
        &self,
        state: &mut State,
        landing: usize,
        job: &Job,
        serve: &mut dyn FnMut(&Incoming<'_>) -> Served,
    ) {
        let Stage::Fetching { len } = job.stage else { unreachable!("a payload that was fetched") };
        let packet = state.landings.request(landing);
        let data = self.packet(BUFFERS + job.reply).wrapping_add(HEAD);
        let done = match self.request(&packet) {
            Ok(request) => {
                // SAFETY: LANDING-MEMORY: the landing is this job's, and so many bytes of it were written.
                let payload = unsafe { std::slice::from_raw_parts(state.landings.local(landing).at, len) };
                serve(&incoming(&request, payload, data, STAGING_BYTES))
            }
            Err(_) => unreachable!("a request that was understood before"),
        };
        state.landings.put_back(landing);
        self.reply(state, job.reply, job.asker, done, false);
    }

    /// Sends a reply, whose data are in its packet unless they were `stored`.
    fn reply(&self, state: &mut State, reply: usize, to: Asker, (status, len): Served, stored: bool) {
        let travels = if stored && status == Status::Done { 0 } else { len.min(STAGING_BYTES) };
        let told = if stored && status == Status::Done { len } else { travels };
        // SAFETY: OPERATION-MEMORY: the packet is not under way, so it is ours.
        let head = unsafe { std::slice::from_raw_parts_mut(self.packet(BUFFERS + reply), HEAD) };
        let me = self.fabric.node().who().rank as u32;
        write_reply(head, self.fabric.secret(), me, to, status, told, stored);
        let unsent = (reply, HEAD + travels);
        if state.replies.is_behind_unsent(reply) || !self.send(state.replies.way(reply), unsent) {
            state.replies.keep_unsent(unsent);
        }
    }

    /// Where the answers to whoever asks go.
    fn way(&self, state: &mut State, asker: Asker, address: &[u8]) -> Way {
        let (domain, rank) = (self.fabric.domain(), asker.rank as usize);
        let found = state.askers.find(domain, asker, address);
        state.askers.tidy(domain, |retired| state.replies.go_to(retired));
        let (asker, endpoint) = found.unwrap_or_else(|error| {
            self.fabric.give_up(Some(rank), &format!("where it wants its answers is not understood: {error}"))
        });
        Way { asker, rank, endpoint }
    }

    /// Begins and sends what waits for that, as far as the provider takes it.
    fn flush(&self, state: &mut State) {
        self.begin_accesses(state);
        if state.replies.has_unsent() {
            state.replies.send(|way, unsent| self.send(way, unsent));
        }
    }

    /// Sends a reply; whether the provider takes it.
    fn send(&self, way: Way, (reply, len): Unsent) -> bool {
        if self.endpoint.withholds(way.rank, len) {
            return false;
        }
        let nothing = Local { at: ptr::null_mut(), desc: ptr::null_mut() };
        let pieces = [(self.local(BUFFERS + reply), len), (nothing, 0)];
        // SAFETY: OPERATION-MEMORY.
        let taken = unsafe { self.endpoint.send(way.endpoint, pieces, &self.tokens[BUFFERS + reply]) };
        self.is_taken(way.rank, taken)
    }

    /// Begins to fetch and to store what landings are for, as far as the provider takes it.
    fn begin_accesses(&self, state: &mut State) {
        state.landings.begin_accesses(|landing, local, job| {
            let (rank, token) = (job.asker.rank as usize, &self.tokens[BUFFERS + REPLIES + landing]);
            let (Stage::Fetching { len } | Stage::Storing { len }) = job.stage;
            if self.endpoint.withholds(rank, len) {
                return false;
            }
            // SAFETY: OPERATION-MEMORY, by LANDING-MEMORY; the place belongs to whoever asks, who keeps it until it is
            // answered.
            let taken = unsafe {
                match job.stage {
                    Stage::Fetching { .. } => self.endpoint.read(job.place, local, len, token),
                    Stage::Storing { .. } => self.endpoint.write(job.place, local, len, token),
                }
            };
            self.is_taken(rank, taken)
        });
    }

    /// Whether the provider has taken an operation, or will later.
    fn is_taken(&self, rank: usize, taken: std::result::Result<(), Trouble>) -> bool {
        match taken {
            Ok(()) => true,
            Err(Trouble::Again) => false,
            Err(Trouble::Error(code)) => self.fabric.give_up(Some(rank), &self.fabric.domain().library().meaning(code)),
        }
    }
}

/// How a request comes to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// It has just arrived, and may be early.
    JustNow,
    /// It was early.
    InTurn,
    /// It was put off.
    Resumed,
}

impl State {
    /// The first request that names a place and whose asker may have a landing and a packet now.
    fn next_to_land(&self) -> Option<usize> {
        if !self.landings.has_free() {
            return None;
        }
        let may = |asker| self.landings.may_take(asker) && self.replies.may_take(asker);
        self.unlanded.iter().position(|(asker, _)| may(*asker))
    }
}

/// A request as it is served: with this payload, and room for a reply at `data`, that may have `room` bytes of data.
fn incoming<'a>(request: &Request<'a>, payload: &'a [u8], data: *mut u8, room: usize) -> Incoming<'a> {
    Incoming {
        handler: request.handler,
        source: request.asker.rank as usize,
        inline: request.inline,
        staged: payload,
        reply_inline: data,
        reply_staged: data,
        reply_room: room,
    }
}
