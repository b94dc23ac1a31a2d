//! Landings: where the reception keeps what is too long for a packet, between the memory of whoever asks and the handler.
//!
//! There are [`LANDINGS`] of them. A request that names a place takes one, is fetched into it and then served from there; or is
//! served into it, and its reply is stored from there and then answered. Whatever happens, the landing is free again
//! when the request was answered. Taken first when such a request comes, the memory costs nothing where none does.
//!
//! A landing depends on the progress of whoever asks, and on nobody else's: so an asker may have no more of them than are
//! free, as with packets for replies (see `replies.rs`). That is also why a place is reached through an
//! endpoint that somebody looks at as long as the request is under way: the context that asks stays in its call, or
//! its rank's progress thread looks (see `am/origin/bulk.rs`).
//!
//! # Safety
//! SERVICE-OWNER (see `am/service.rs`): all of this belongs to the holder of the service context. LANDING-MEMORY: the buffers are
//! boxed, made once, and dropped after the endpoint; one that is taken belongs to its job.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ptr;

use super::abi;
use super::domain::Domain;
use super::endpoint::{Endpoint, Local, Target};
use super::library::Object;
use super::packet::{Asker, BULK_BYTES};
use crate::error::Result;

/// Fetched or stored at once; the rest waits. One asker may have three: one that is served, one that is under way, one that
/// is next; more would only compete for the same processor and wire. Two that hold on to theirs leave one to others.
pub(super) const LANDINGS: usize = 6;

/// What goes on in a landing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) asker: Asker,
    /// The packet that is kept for the reply.
    pub(super) reply: usize,
    /// The place.
    pub(super) place: Target,
    pub(super) stage: Stage,
}

/// How far a job has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// So many bytes are being fetched, for the request that is kept.
    Fetching { len: usize },
    /// So many bytes of a reply are being stored.
    Storing { len: usize },
}

/// The landings of a rank.
#[derive(Debug)]
pub(super) struct Landings {
    memory: Option<Memory>,
    free: Vec<usize>,
    jobs: [Option<Job>; LANDINGS],
    /// Who has each of those that are taken, by number.
    taken_by: [Option<usize>; LANDINGS],
    /// The requests whose payloads are being fetched.
    requests: [Vec<u8>; LANDINGS],
    /// Those whose access the provider has not taken yet.
    unbegun: VecDeque<usize>,
    /// Those whose payload is there.
    fetched: VecDeque<usize>,
}

#[derive(Debug)]
struct Memory {
    // In this order they are dropped: what is registered stays until it is not.
    registered: Option<Object<abi::Mr>>,
    buffers: Box<[u8]>,
}

impl Landings {
    pub(super) fn new() -> Self {
        Landings {
            memory: None,
            free: (0..LANDINGS).collect(),
            jobs: [None; LANDINGS],
            taken_by: [None; LANDINGS],
            requests: Default::default(),
            unbegun: VecDeque::with_capacity(LANDINGS),
            fetched: VecDeque::with_capacity(LANDINGS),
        }
    }

    /// Makes the memory, if there is none.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn open(&mut self, domain: &Domain, endpoint: &Endpoint) -> Result<()> {
        if self.memory.is_none() {
            let mut buffers = vec![0; LANDINGS * BULK_BYTES].into_boxed_slice();
            let mut registered = None;
            if domain.wants_local() {
                let key = crate::job::random::<1>()?[0];
                // SAFETY: LANDING-MEMORY.
                registered = Some(unsafe { domain.register(buffers.as_mut_ptr(), buffers.len(), key, endpoint)? });
            }
            self.memory = Some(Memory { registered, buffers });
        }
        Ok(())
    }

    /// Before an endpoint ends that memory is bound to.
    pub(super) fn withdraw(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.registered = None;
        }
    }

    /// Whether this asker may have one more.
    pub(super) fn may_take(&self, asker: usize) -> bool {
        self.taken_by.iter().filter(|by| **by == Some(asker)).count() < self.free.len()
    }

    /// Whether there is something to do that nothing will tell of.
    pub(super) fn has_left_over(&self) -> bool {
        !self.unbegun.is_empty() || !self.fetched.is_empty()
    }

    /// Whether anybody may have one.
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes one, if its asker may have one more.
    pub(super) fn take(&mut self, asker: usize) -> Option<usize> {
        let landing = if self.may_take(asker) { self.free.pop()? } else { return None };
        self.taken_by[landing] = Some(asker);
        Some(landing)
    }

    /// Gives one back.
    pub(super) fn put_back(&mut self, landing: usize) {
        (self.jobs[landing], self.taken_by[landing]) = (None, None);
        self.free.push(landing);
    }

    /// The memory of one that is taken: [`BULK_BYTES`].
    pub(super) fn local(&self, landing: usize) -> Local {
        let Some(memory) = &self.memory else { return Local { at: ptr::null_mut(), desc: ptr::null_mut() } };
        let desc = memory.registered.as_ref().map_or(ptr::null_mut(), |object| object.get().mem_desc);
        Local { at: memory.buffers[landing * BULK_BYTES..].as_ptr().cast_mut(), desc }
    }

    /// Lets a job begin in one that is taken, and keeps its request.
    pub(super) fn begin(&mut self, landing: usize, job: Job, request: Vec<u8>) {
        self.jobs[landing] = Some(job);
        self.requests[landing] = request;
        self.unbegun.push_back(landing);
    }

    /// Lends each job whose access was not begun to `begin`, which says whether it is now.
    pub(super) fn begin_accesses(&mut self, mut begin: impl FnMut(usize, Local, &Job) -> bool) {
        let mut unbegun = std::mem::take(&mut self.unbegun);
        unbegun.retain(|landing| {
            let begun = self.job(*landing).is_none_or(|job| begin(*landing, self.local(*landing), &job));
            !begun
        });
        self.unbegun = unbegun;
    }

    /// What goes on in a landing.
    pub(super) fn job(&self, landing: usize) -> Option<Job> {
        self.jobs.get(landing).copied().flatten()
    }

    /// The request of a job, which is kept no longer.
    pub(super) fn request(&mut self, landing: usize) -> Vec<u8> {
        std::mem::take(&mut self.requests[landing])
    }

    /// The payload of a job is there.
    pub(super) fn arrived(&mut self, landing: usize) {
        self.fetched.push_back(landing);
    }

    /// How many payloads are there.
    pub(super) fn arrivals(&self) -> usize {
        self.fetched.len()
    }

    /// The job that is to be served next.
    pub(super) fn arrival(&mut self) -> Option<(usize, Job)> {
        let landing = self.fetched.pop_front()?;
        Some((landing, self.job(landing)?))
    }
}
