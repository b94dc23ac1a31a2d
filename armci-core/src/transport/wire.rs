//! The wires of this process: that of its node, and, if the job has several, that between nodes.
//!
//! Memory is reached directly on the node only ([`Shm`]); what origin contexts do beyond it, they do through lines of
//! their own ([`ofi::Line`]). What is common to both is here: who serves what has come, and how threads sleep.
//!
//! # Safety
//! What a caller of each `unsafe` method promises is said at the trait; SERVICE-OWNER (see `am/service.rs`).
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ofi::{self, Fabric};
use super::shm::Shm;
use super::{Again, Capabilities, Incoming, Outgoing, Remote, Rmw, Served, Transport};
use crate::accumulate::kernels::ElementKind;
use crate::copy::Patch;
use crate::error::Result;
use crate::memory::RegionId;
use crate::memory::region::{Access, Part};
use crate::node::{Node, doorbell};

/// How long a thread sleeps at most that is woken by what it does not sleep over.
const NAP: Duration = Duration::from_micros(500);
/// How long the progress thread sleeps at most: a neighbour that has no descriptor left cannot wake it.
const LONG_NAP: Duration = Duration::from_millis(100);
/// How long it sleeps while a reply waits for room, or while the provider says for no reason that something has come.
const BRIEFLY: Duration = Duration::from_micros(50);

/// After so many times in a row one has been kept from sleep for no reason, where others want the core, and where not.
const SELDOM: u32 = 4;
const OFTEN: u32 = 200;

/// How long the progress thread stays awake because it has slept too early: each time in a row twice as long.
#[derive(Debug)]
struct Pace {
    /// Woken by the fabric within this, it has slept too early.
    soon: Duration,
    /// So many times that is let pass.
    lenient: u32,
    first: Duration,
    most: Duration,
}

/// Where nobody else wants its core. A round trip in which both sides have to be woken takes nearly as long as this `soon`,
/// and would go on doing so.
const ALONE: Pace = Pace {
    soon: Duration::from_micros(500),
    lenient: 0,
    first: Duration::from_micros(200),
    most: Duration::from_millis(2),
};
/// Beside a computation: only in a stream, between whose pieces a sleep lasts some 30 us, half of which is waking up. (Of 1 MiB
/// over TCP on loopback; with 30 us here nothing was gained, and 100 were no better than 60.) Once is no sign of a stream: a
/// rank that was answered asks for more at once, and then computes.
const BESIDE: Pace = Pace {
    soon: Duration::from_micros(60),
    lenient: 1,
    first: Duration::from_micros(30),
    most: Duration::from_micros(200),
};

impl Pace {
    /// How long, after so many times in a row.
    fn stay(&self, times: u32) -> Duration {
        let doubled = |more: u32| self.first.saturating_mul(1 << more.min(16)).min(self.most);
        times.checked_sub(self.lenient + 1).map_or(Duration::ZERO, doubled)
    }
}

/// What this process is joined by.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    near: Shm,
    far: Option<Arc<Far>>,
}

/// The part of this rank in what is between nodes.
#[derive(Debug)]
struct Far {
    reception: ofi::Reception,
    fabric: Arc<Fabric>,
    node: Arc<Node>,
    /// Where neighbours ring for the progress thread.
    bell: OwnedFd,
    /// What was left when the reception was looked at last.
    left_over: AtomicBool,
    /// How long to sleep where nothing tells of what comes.
    period: Duration,
    /// What a waiting thread sleeps over, or one of the two below.
    pillow: AtomicI32,
    /// Where nobody else wants the progress thread's core, and beside a computation.
    alone: Vigil,
    beside: Vigil,
}

/// No waiting thread sleeps, unless on the bell of its rank.
const AWAKE: RawFd = -1;
/// One sleeps for a while.
const BLIND: RawFd = -2;

/// Until when the progress thread stays awake, at a pace. Remote memory access is served by looking, and leaves no other
/// trace; so how soon a sleep was ended tells how dense the traffic is.
#[derive(Debug)]
struct Vigil {
    pace: &'static Pace,
    began: Instant,
    /// In nanoseconds since then.
    until: AtomicU64,
    /// Sleeps in a row that were too early.
    times: AtomicU32,
}

impl Vigil {
    fn at(pace: &'static Pace) -> Self {
        Vigil { pace, began: Instant::now(), until: AtomicU64::new(0), times: AtomicU32::new(0) }
    }

    /// Whether it is too early to sleep.
    fn lasts(&self) -> bool {
        (self.began.elapsed().as_nanos() as u64) < self.until.load(Ordering::Relaxed)
    }

    /// After a sleep of this length, which the fabric ended, or not.
    fn judge(&self, slept: Duration, by_fabric: bool) {
        let early = by_fabric && slept < self.pace.soon;
        let times = if early { self.times.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.times.store(times, Ordering::Relaxed);
        let until = self.began.elapsed() + self.pace.stay(times);
        self.until.store(until.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Wire {
    /// That of a node.
    pub(crate) fn near(node: Arc<Node>) -> Self {
        Wire { near: Shm::new(node), far: None }
    }

    /// The same, with that between nodes.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub(crate) fn with(
        self,
        node: Arc<Node>,
        fabric: Arc<Fabric>,
        reception: ofi::Reception,
        period: Duration,
    ) -> Result<Self> {
        let bell = node.mine().service_bell.open()?;
        let left_over = AtomicBool::new(false);
        let pillow = AtomicI32::new(AWAKE);
        let (alone, beside) = (Vigil::at(&ALONE), Vigil::at(&BESIDE));
        let far = Far { reception, fabric, node, bell, left_over, period, pillow, alone, beside };
        Ok(Wire { far: Some(Arc::new(far)), ..self })
    }

    /// What joins the nodes, if there are several.
    pub(crate) fn fabric(&self) -> Option<&Arc<Fabric>> {
        self.far.as_ref().map(|far| &far.fabric)
    }

    /// How ranks of other nodes reach a part of a region of this rank; `None` if they cannot.
    pub(crate) fn export(&self, id: RegionId, part: Part) -> Option<Access> {
        self.far.as_ref()?.reception.export(id, part)
    }

    /// Tells that a region of this rank is no more.
    pub(crate) fn withdraw(&self, id: RegionId) {
        if let Some(far) = &self.far {
            far.fabric.withdraw(id);
        }
    }

    /// Whether something that has come from other nodes was left, or could not be answered yet.
    pub(crate) fn has_left_over(&self) -> bool {
        self.far.as_ref().is_some_and(|far| far.left_over.load(Ordering::Relaxed))
    }

    /// Whether the progress thread had better not sleep yet; `alone` says that nobody else wants its core.
    pub(crate) fn is_busy(&self, alone: bool) -> bool {
        self.far.as_ref().is_some_and(|far| if alone { &far.alone } else { &far.beside }.lasts())
    }

    /// Whether all replies have gone to other nodes.
    pub(crate) fn is_settled(&self) -> bool {
        self.far.as_ref().is_none_or(|far| far.reception.is_settled())
    }

    /// Whether there are other nodes, whose requests [`Wire::serve_beyond`] serves.
    #[inline]
    pub(crate) fn has_beyond(&self) -> bool {
        self.far.is_some()
    }

    /// Moves on what is between nodes, and serves what has come from there; says how many requests, at most `limit`.
    ///
    /// # Safety
    /// SERVICE-OWNER.
    pub(crate) unsafe fn serve_beyond(&self, limit: usize, serve: &mut dyn FnMut(&Incoming<'_>) -> Served) -> usize {
        let Some(far) = &self.far else { return 0 };
        // SAFETY: SERVICE-OWNER.
        unsafe {
            let served = far.reception.serve(limit, serve);
            far.left_over.store(far.reception.has_left_over(), Ordering::Relaxed);
            served
        }
    }

    /// Sleeps, as a thread that waits inside a call for what comes over `line`, or that serves this rank because nobody
    /// else does: until something has come, or a moment later, since neighbours ring elsewhere. Says whether anything may
    /// have come: not if it would have been told.
    pub(crate) fn nap(&self, line: Option<&ofi::Line>, serves: bool, ready: impl FnOnce() -> bool) -> bool {
        let Some(far) = &self.far else { return true };
        if ready() {
            return true;
        }
        let reception = serves.then_some(&far.reception);
        let quiet = line.is_none_or(ofi::Line::may_sleep) && reception.is_none_or(ofi::Reception::may_sleep);
        let descriptors = [line.and_then(ofi::Line::descriptor), reception.and_then(ofi::Reception::descriptor)];
        let blind = (line.is_some() && descriptors[0].is_none()) || (serves && descriptors[1].is_none());
        if !quiet {
            let kept_awake = [line.map(ofi::Line::kept_awake), reception.map(ofi::Reception::kept_awake)];
            if kept_awake.into_iter().flatten().any(|times| times > OFTEN) {
                sleep([].into_iter(), BRIEFLY);
            }
            true
        } else {
            let limit = if blind { far.period } else { NAP };
            let over = descriptors[0].filter(|_| !blind).map_or(BLIND, |descriptor| descriptor.as_raw_fd());
            far.pillow.store(over, Ordering::Relaxed);
            let told = sleep(descriptors.into_iter().flatten(), far.at_most(limit));
            far.pillow.store(AWAKE, Ordering::Relaxed);
            blind || told.is_some()
        }
    }

    /// Whether the provider keeps the progress thread from sleeping.
    pub(crate) fn is_kept_awake(&self) -> bool {
        self.far.as_ref().is_some_and(|far| far.reception.kept_awake() > SELDOM)
    }

    /// Sleeps briefly, as the progress thread, whatever comes from other nodes: somebody else wants its core.
    pub(crate) fn give_way(&self) {
        if let Some(far) = &self.far {
            far.sleep_until_called(None, BRIEFLY);
        }
    }

    /// Whether what a thread of this rank that sleeps in a wait sleeps over has called it: between its waking and its
    /// running the progress thread may have their core. Of several such threads the last is looked at.
    pub(crate) fn has_called_waiter(&self) -> bool {
        let Some(far) = &self.far else { return false };
        match far.pillow.load(Ordering::Relaxed) {
            AWAKE => !far.node.mine().main_bell.is_awaited(),
            // Nothing tells when its sleep ends.
            BLIND => true,
            // SAFETY: whatever it is by now, its number is only asked about.
            over => sleep([unsafe { BorrowedFd::borrow_raw(over) }].into_iter(), Duration::ZERO).is_some(),
        }
    }
}

impl Far {
    /// How long one may sleep.
    fn at_most(&self, limit: Duration) -> Duration {
        if self.left_over.load(Ordering::Relaxed) { BRIEFLY.min(limit) } else { limit }
    }

    /// Sleeps until a neighbour rings, or something comes over `descriptor`; whether it was that.
    fn sleep_until_called(&self, descriptor: Option<BorrowedFd<'_>>, limit: Duration) -> bool {
        let rung = sleep([self.bell.as_fd()].into_iter().chain(descriptor), limit);
        if rung == Some(0) {
            doorbell::drain(self.bell.as_fd());
        }
        rung == Some(1)
    }

    /// Sleeps as the progress thread.
    fn sleep_as_server_unless(&self, ready: impl FnOnce() -> bool) {
        let door = &self.node.mine().service_bell;
        door.sleep_unless(ready, || {
            if !self.reception.may_sleep() {
                if self.reception.kept_awake() > OFTEN {
                    self.sleep_until_called(None, BRIEFLY);
                }
                return;
            }
            let descriptor = self.reception.descriptor();
            let limit = match (descriptor.is_some(), self.left_over.load(Ordering::Relaxed)) {
                (true, false) => LONG_NAP,
                (true, true) => BRIEFLY,
                (false, left_over) => {
                    if left_over {
                        BRIEFLY.min(self.period)
                    } else {
                        self.period
                    }
                }
            };
            let slept = Instant::now();
            let by_fabric = self.sleep_until_called(descriptor, limit);
            let slept = slept.elapsed();
            self.alone.judge(slept, by_fabric);
            self.beside.judge(slept, by_fabric);
        });
    }
}

/// Sleeps until one of these is readable, or this long; the first that is.
fn sleep<'a>(descriptors: impl Iterator<Item = BorrowedFd<'a>>, limit: Duration) -> Option<usize> {
    let mut polled = Vec::with_capacity(2);
    polled.extend(descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    // However it ends, whoever slept looks again.
    let _ = poll(&mut polled, Some(&limit));
    polled.iter().position(|fd| !fd.revents().is_empty())
}

impl Transport for Wire {
    #[inline]
    fn capabilities(&self) -> Capabilities {
        self.near.capabilities()
    }

    #[inline]
    unsafe fn put(&self, to: Remote, from: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.near.put(to, from, len) };
    }

    #[inline]
    unsafe fn get(&self, from: Remote, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.near.get(from, to, len) };
    }

    #[inline]
    unsafe fn put_patch(&self, to: Remote, from: *const u8, patch: &Patch) {
        // SAFETY: the caller's promise.
        unsafe { self.near.put_patch(to, from, patch) };
    }

    #[inline]
    unsafe fn get_patch(&self, from: Remote, to: *mut u8, patch: &Patch) {
        // SAFETY: the caller's promise.
        unsafe { self.near.get_patch(from, to, patch) };
    }

    #[inline]
    unsafe fn accumulate(&self, to: Remote, from: *const u8, patch: &Patch, kind: ElementKind, alpha: &[u8; 16]) {
        // SAFETY: the caller's promise.
        unsafe { self.near.accumulate(to, from, patch, kind, alpha) };
    }

    #[inline]
    unsafe fn accumulate_row(&self, to: Remote, from: *const u8, len: usize, kind: ElementKind, alpha: &[u8; 16]) {
        // SAFETY: the caller's promise.
        unsafe { self.near.accumulate_row(to, from, len, kind, alpha) };
    }

    #[inline]
    unsafe fn rmw(&self, at: Remote, rmw: Rmw) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.near.rmw(at, rmw) }
    }

    #[inline]
    unsafe fn signal(&self, to: Remote, value: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.near.signal(to, value) };
    }

    #[inline]
    fn fence(&self) {
        self.near.fence();
    }

    #[inline]
    fn send(&self, context: usize, target: usize, message: &Outgoing<'_>) -> std::result::Result<(), Again> {
        self.near.send(context, target, message)
    }

    #[inline]
    unsafe fn serve_one(&self, serve: &mut dyn FnMut(&Incoming<'_>) -> Served) -> bool {
        // SAFETY: SERVICE-OWNER.
        unsafe { self.near.serve_one(serve) }
    }

    #[inline]
    fn has_message(&self) -> bool {
        self.near.has_message()
    }

    fn begin_looking(&self) {
        self.near.begin_looking();
    }

    fn end_looking(&self) {
        self.near.end_looking();
    }

    fn pass_on(&self) {
        self.near.pass_on();
    }

    fn sleep_unless(&self, ready: impl FnOnce() -> bool) {
        self.near.sleep_unless(ready);
    }

    #[inline]
    fn wake_waiters(&self) {
        self.near.wake_waiters();
    }

    fn sleep_as_server_unless(&self, ready: impl FnOnce() -> bool) {
        match &self.far {
            None => self.near.sleep_as_server_unless(ready),
            Some(far) => far.sleep_as_server_unless(ready),
        }
    }

    fn wake_server(&self) {
        self.near.wake_server();
    }
}
