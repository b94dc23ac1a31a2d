//! The service context: the one place where a rank's inbox is emptied.
//!
//! It is advanced by whoever wins the [owner word](OwnerWord): the progress
//! thread, or a thread of the rank that waits inside a call. The loser moves on;
//! nobody waits for it, and no lock guards what it touches.
//!
//! # Safety
//! SERVICE-OWNER: only the thread that moved the owner word from free to taken,
//! and has not moved it back, takes messages from the inbox.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use progress_thread::Advance;

use super::builtin;
use super::handlers::{FIRST_USER_HANDLER, Handlers, Reply};
use super::owner::{OwnerWord, Server};
use super::parcels::{self, Parcels};
use crate::msg::{self, Desk};
use crate::node::Node;
use crate::node::message::Status;
use crate::transport::{Incoming, Served, Transport, Wire};
use crate::watch::served::ServedWatch;

/// Messages served before the owner word is given up.
const BATCH: usize = 64;
/// Of so many looks at the inbox, a waiting thread takes one beyond the node; and where a progress thread does so, too.
const LOOKS_BEYOND: u32 = 16;
const LOOKS_BEYOND_BESIDE: u32 = 64;

/// A rank's service context.
#[derive(Debug)]
pub(crate) struct Service {
    owner: CachePadded<OwnerWord>,
    node: Arc<Node>,
    transport: Wire,
    handlers: Handlers,
    desk: Desk,
    parcels: Parcels,
    served_by_thread: AtomicU64,
    served_by_waiters: AtomicU64,
    stopping: AtomicBool,
    threaded: bool,
    /// Whether the progress thread shares its core with the rank's own thread.
    shares: bool,
    /// Threads of the rank that sleep in a wait; and those of them that sleep elsewhere than on the rank's own bell.
    sleeping: AtomicU32,
    sleeping_elsewhere: AtomicU32,
    /// How often a waiting thread could have looked beyond the node.
    looks: AtomicU32,
    /// What notes the messages served, if anything does.
    watch: Option<Box<ServedWatch>>,
}

impl Service {
    /// The context of `node`'s rank here; `threaded` says whether a
    /// progress thread serves, `shares` that it has no core of its own.
    pub(crate) fn new(
        node: Arc<Node>,
        transport: Wire,
        desk: Desk,
        threaded: bool,
        shares: bool,
        watch: Option<Box<ServedWatch>>,
    ) -> Self {
        Service {
            owner: CachePadded::new(OwnerWord::free()),
            node,
            transport,
            handlers: Handlers::new(),
            desk,
            parcels: Parcels::default(),
            served_by_thread: AtomicU64::new(0),
            served_by_waiters: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            threaded,
            shares,
            sleeping: AtomicU32::new(0),
            sleeping_elsewhere: AtomicU32::new(0),
            looks: AtomicU32::new(0),
            watch,
        }
    }

    /// Runs `sleep`, in which a thread of the rank sleeps, on its own bell or over a descriptor, and leaves its core to
    /// whoever serves.
    pub(crate) fn while_waiter_sleeps<R>(&self, sleep: impl FnOnce() -> R) -> R {
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        let woken = sleep();
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
        woken
    }

    /// The same, where it sleeps on another bell.
    pub(crate) fn while_waiter_sleeps_elsewhere(&self, sleep: impl FnOnce()) {
        self.sleeping_elsewhere.fetch_add(1, Ordering::Relaxed);
        self.while_waiter_sleeps(sleep);
        self.sleeping_elsewhere.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the core that the progress thread shares with its rank is free: who sleeps in a wait has not been woken.
    /// Nobody tells a thread that spins that its core is wanted, until its time slice ends.
    fn has_core_for_itself(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed) != 0
            && (self.sleeping_elsewhere.load(Ordering::Relaxed) != 0 || !self.transport.has_called_waiter())
    }

    /// Wakes the rank's own threads that wait inside a call, to look at what they wait for.
    pub(crate) fn ring_waiters(&self) {
        self.node.mine().main_bell.ring();
    }

    /// The user's handlers.
    pub(crate) fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    /// Where two-sided messages arrive.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// What leaders of other nodes have sent.
    pub(crate) fn parcels(&self) -> &Parcels {
        &self.parcels
    }

    /// Whether a progress thread serves this rank.
    #[inline]
    pub(crate) fn has_thread(&self) -> bool {
        self.threaded
    }

    /// Whether a message waits.
    #[inline]
    pub(crate) fn has_message(&self) -> bool {
        self.transport.has_message()
    }

    /// Whether a message waits and nobody is at it.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.has_message() && self.owner.is_free()
    }

    /// Takes the service context, once whoever has it gives it up, and serves nothing until the guard is dropped.
    pub(crate) fn hold(&self) -> HeldService<'_> {
        while !self.owner.take() {
            std::thread::yield_now();
        }
        HeldService { service: self }
    }

    /// Serves what waits, if nobody else is at it; says how many messages that were.
    #[inline]
    pub(crate) fn advance(&self, server: Server) -> usize {
        // SAFETY: SERVICE-OWNER: the owner runs this.
        let serve_one = || unsafe { self.transport.serve_one(&mut |incoming| self.serve(incoming, server)) };
        // Before the inbox, at which every owner looks once more.
        let beyond = if self.transport.has_beyond() { self.serve_beyond(server) } else { 0 };
        let served = self.owner.serve(BATCH, || self.has_message(), serve_one);
        self.count(served, server);
        beyond + served
    }

    /// Adds to what was served so far.
    #[inline]
    fn count(&self, served: usize, server: Server) {
        if served != 0 {
            let count = match server {
                Server::ProgressThread => &self.served_by_thread,
                Server::Waiter => &self.served_by_waiters,
            };
            count.fetch_add(served as u64, Ordering::Relaxed);
        }
    }

    /// Moves on what is between nodes, and serves what has come from there, unless somebody else is at it. A thread that
    /// waits does so now and then only: a look is a system call for some fabrics.
    fn serve_beyond(&self, server: Server) -> usize {
        let every = if self.threaded { LOOKS_BEYOND_BESIDE } else { LOOKS_BEYOND };
        let now = server == Server::ProgressThread || self.looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(every);
        if now { self.look_beyond(server) } else { 0 }
    }

    /// The same, now.
    pub(crate) fn look_beyond(&self, server: Server) -> usize {
        if !self.owner.take() {
            return 0;
        }
        // SAFETY: SERVICE-OWNER: we are.
        let served = unsafe { self.transport.serve_beyond(BATCH, &mut |incoming| self.serve(incoming, server)) };
        self.owner.put_back();
        self.count(served, server);
        // A waiter may not come back, and the thread that sleeps does not know that something is left.
        if server == Server::Waiter && self.threaded && self.transport.has_left_over() {
            self.transport.pass_on();
        }
        served
    }

    /// Serves until all that was answered is on its way, and nothing has come.
    pub(crate) fn settle(&self) {
        while self.transport.has_beyond() && !self.transport.is_settled() {
            self.advance(Server::Waiter);
            std::thread::yield_now();
        }
    }

    /// Requests served so far: by the progress thread, by the rank's own threads.
    pub(crate) fn served(&self) -> (u64, u64) {
        (self.served_by_thread.load(Ordering::Relaxed), self.served_by_waiters.load(Ordering::Relaxed))
    }

    /// What notes the messages served, if anything does.
    pub(crate) fn watch(&self) -> Option<&ServedWatch> {
        self.watch.as_deref()
    }

    fn serve(&self, incoming: &Incoming<'_>, server: Server) -> Served {
        match &self.watch {
            None => self.handle(incoming),
            Some(watch) => self.serve_watched(watch, incoming, server),
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_watched(&self, watch: &ServedWatch, incoming: &Incoming<'_>, server: Server) -> Served {
        watch.note(incoming, server, || self.handle(incoming))
    }

    #[inline(always)]
    fn handle(&self, incoming: &Incoming<'_>) -> Served {
        let result = if msg::serves(incoming.handler) {
            self.desk.serve(&self.transport, incoming)
        } else if parcels::serves(incoming.handler) {
            let served = self.parcels.serve(incoming);
            self.transport.wake_waiters();
            served
        } else if incoming.handler < FIRST_USER_HANDLER {
            builtin::serve(&self.node, &self.transport, incoming)
        } else {
            self.handlers.run(&self.node, incoming)
        };
        match result {
            Ok(len) => (Status::Done, len),
            Err(reason) => (Status::Refused, Reply::of(reason.as_bytes()).deliver(incoming)),
        }
    }
}

/// Keeps a rank's messages from being served; see [`World::hold_service`](crate::World::hold_service).
#[derive(Debug)]
#[must_use = "dropping it ends the hold"]
pub struct HeldService<'a> {
    service: &'a Service,
}

impl Drop for HeldService<'_> {
    fn drop(&mut self) {
        self.service.owner.put_back();
        // As every owner does: what came meanwhile woke nobody.
        while self.service.advance(Server::Waiter) != 0 {}
    }
}

impl Advance for Service {
    fn advance(&self) -> usize {
        Service::advance(self, Server::ProgressThread)
    }

    fn park(&self) {
        let may_spin = self.may_spin();
        let stopping = || self.stopping.load(Ordering::Acquire);
        if !may_spin && self.transport.has_beyond() && !self.owner.is_free() && !stopping() {
            // This thread has interrupted who serves, on the core that they share: what has come keeps it awake until
            // that one goes on.
            return self.transport.give_way();
        }
        // Of who sleeps in a wait and was called, the core is wanted now.
        let wanted = !may_spin && self.sleeping.load(Ordering::Relaxed) != 0;
        if !wanted && self.transport.is_busy(may_spin) && !stopping() {
            return;
        }
        self.transport.sleep_as_server_unless(|| self.has_work() || stopping());
        if !may_spin && self.transport.is_kept_awake() {
            self.transport.give_way();
        }
    }

    fn may_spin(&self) -> bool {
        !self.shares || self.has_core_for_itself()
    }

    fn wake(&self) {
        self.stopping.store(true, Ordering::Release);
        self.transport.wake_server();
    }
}
