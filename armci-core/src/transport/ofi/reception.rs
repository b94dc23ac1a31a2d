//! The reception: where requests from other nodes arrive, are served, and are answered.
//!
//! # Protocol
//! A request is served only if a packet for its reply is free, and a reply that the provider does not take now waits in
//! a queue, which is tried first each time. So serving waits for nobody, and nothing is served twice or lost: what has
//! come and cannot be served yet lies in its buffer.
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
use super::askers::Askers;
use super::endpoint::{Endpoint, Local, Token, Trouble};
use super::fabric::Fabric;
use super::library::Object;
use super::packet::{Asker, HEAD, PACKET_MAX, Request, write_reply};
use crate::error::Result;
use crate::memory::RegionId;
use crate::memory::region::{Access, Part};
use crate::node::message::STAGING_BYTES;
use crate::transport::{Incoming, Served};

/// Buffers posted for requests.
const BUFFERS: usize = 64;
/// Replies under way.
const REPLIES: usize = 32;
/// Completions looked at in one go.
const BATCH: usize = 16;

/// A rank's service endpoint.
#[derive(Debug)]
pub(crate) struct Reception {
    // In this order they are dropped: first what uses the rest.
    endpoint: Endpoint,
    registered: Option<Object<abi::Mr>>,
    /// Buffers for requests, then packets for replies.
    packets: Box<[u8]>,
    tokens: Box<[Token]>,
    fabric: Arc<Fabric>,
    descriptor: *mut std::ffi::c_void,
    state: UnsafeCell<State>,
    /// Packets for replies that are not free.
    answering: AtomicUsize,
}

/// What only the owner of the service context touches.
#[derive(Debug)]
struct State {
    /// Requests that have come and were not served: buffer and length.
    waiting: VecDeque<(usize, usize)>,
    /// Packets for replies that are free.
    free: Vec<usize>,
    /// Replies that the provider has not taken yet: packet, length, address, rank.
    unsent: VecDeque<(usize, usize, u64, usize)>,
    /// To which rank each packet goes.
    rank_of: [usize; REPLIES],
    /// To which endpoint, while it is on its way.
    goes_to: [u64; REPLIES],
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
            free: (0..REPLIES).collect(),
            unsent: VecDeque::with_capacity(REPLIES),
            rank_of: [0; REPLIES],
            goes_to: [abi::ADDR_UNSPEC; REPLIES],
            askers: Askers::default(),
        };
        let reception = Reception {
            endpoint,
            registered,
            packets,
            tokens: (0..BUFFERS + REPLIES).map(|_| Token::default()).collect(),
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
                Err(failed) => {
                    let rank = self
                        .token(failed.context)
                        .and_then(|token| state.rank_of.get(token.checked_sub(BUFFERS)?).copied());
                    self.fabric.give_up_on(rank, &failed)
                }
            };
            self.flush(state);
            while served < limit && !state.waiting.is_empty() && !state.free.is_empty() {
                let Some((buffer, len)) = state.waiting.pop_front() else { break };
                served += usize::from(self.answer(state, buffer, len, serve));
                self.post(buffer);
            }
            if taken < BATCH || served >= limit {
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
        !state.waiting.is_empty() || !state.unsent.is_empty()
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

    fn complete(&self, state: &mut State, completion: &abi::Completion) {
        match self.token(completion.context) {
            Some(token) if token < BUFFERS => state.waiting.push_back((token, completion.len.min(PACKET_MAX))),
            Some(token) => {
                state.free.push(token - BUFFERS);
                state.goes_to[token - BUFFERS] = abi::ADDR_UNSPEC;
                self.answering.store(REPLIES - state.free.len(), Ordering::Release);
            }
            None => self.fabric.give_up(None, "libfabric has completed an operation that nobody began"),
        }
    }

    /// Serves the request in a buffer, and sends the reply; whether it was one.
    fn answer(
        &self,
        state: &mut State,
        buffer: usize,
        len: usize,
        serve: &mut dyn FnMut(&Incoming<'_>) -> Served,
    ) -> bool {
        // SAFETY: the buffer is ours, and that many bytes of it were written.
        let packet = unsafe { std::slice::from_raw_parts(self.packet(buffer), len) };
        let who = self.fabric.node().who();
        let request = match Request::parse(packet, self.fabric.secret(), who.size as u32) {
            Ok(request) => request,
            Err(reason) => {
                tracing::warn!("a packet is dropped: {reason}");
                return false;
            }
        };
        let Some(address) = self.address(state, request.asker, request.address) else { return false };
        let Some(reply) = state.free.pop() else { return false };
        self.answering.store(REPLIES - state.free.len(), Ordering::Release);
        let rank = request.asker.rank as usize;
        (state.rank_of[reply], state.goes_to[reply]) = (rank, address);
        let place = self.packet(BUFFERS + reply);
        let data = place.wrapping_add(HEAD);
        let incoming = Incoming {
            handler: request.handler,
            source: rank,
            inline: request.inline,
            staged: request.payload,
            reply_inline: data,
            reply_staged: data,
        };
        let (status, len) = serve(&incoming);
        let len = len.min(STAGING_BYTES);
        // SAFETY: OPERATION-MEMORY: the packet is free, so it is ours.
        let head = unsafe { std::slice::from_raw_parts_mut(place, HEAD) };
        write_reply(head, self.fabric.secret(), who.rank as u32, request.asker, status, len);
        state.unsent.push_back((reply, HEAD + len, address, rank));
        self.flush(state);
        true
    }

    /// What the provider calls the endpoint of whoever asks.
    fn address(&self, state: &mut State, asker: Asker, address: &[u8]) -> Option<u64> {
        let domain = self.fabric.domain();
        let name = state.askers.name(domain, asker, address);
        state.askers.tidy(domain, |retired| state.goes_to.contains(&retired));
        let dropped = |error| {
            tracing::warn!("a request of rank {} is dropped, since it cannot be answered: {error}", asker.rank);
        };
        name.map_err(dropped).ok()
    }

    /// Sends what waits to be sent, as far as the provider takes it.
    fn flush(&self, state: &mut State) {
        while let Some(&(reply, len, to, rank)) = state.unsent.front() {
            let nothing = Local { at: ptr::null_mut(), desc: ptr::null_mut() };
            let pieces = [(self.local(BUFFERS + reply), len), (nothing, 0)];
            // SAFETY: OPERATION-MEMORY.
            match unsafe { self.endpoint.send(to, pieces, &self.tokens[BUFFERS + reply]) } {
                Ok(()) => drop(state.unsent.pop_front()),
                Err(Trouble::Again) => return,
                Err(Trouble::Error(code)) => {
                    self.fabric.give_up(Some(rank), &self.fabric.domain().library().meaning(code))
                }
            }
        }
    }
}
