//! Watching calls: what statistics, timelines and the checker see of them.
//!
//! ```text
//!   a thread's calls --> Watch (tallies, events) --.   when it detaches
//!   another thread's --> Watch --------------------+--> Watching::gone --.
//!   messages served  --> ServedWatch ------------------------------------+--> ending: all ranks show theirs,
//!                                                                             the first of the node writes
//! ```
//!
//! A call that is watched runs inside `World::watched` (`calls.rs`), which reads the clock before and after and tells it to
//! whoever was asked for by the settings. Where nobody watches, which is the rule, a call pays nothing: that the thread
//! is watched is one of the reasons why it is not [plain](crate::context::Context::is_plain), which operations look at anyway. The
//! watched form of each operation is out of line as a whole, because what a closure lends to a function out of line
//! would have to lie in memory for everybody.
//!
//! Calls that a watched call makes are parts of it and not told: a barrier is a barrier, and no fence. A call that
//! fails is not told either.

pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod ending;
pub(crate) mod report;
pub(crate) mod served;
pub(crate) mod summary;
pub(crate) mod tally;
pub(crate) mod timeline;

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::am::origin::Origin;
use crate::config::Config;
use crate::copy::Patch;
use crate::memory::RegionId;
use crate::memory::region_cache::RegionCache;
use crate::stats::{CacheCounts, ConflictCounts};
use tally::{Counts, Tallies};
use timeline::{Event, Room};

/// A kind of call that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Put,
    Get,
    Accumulate,
    Rmw,
    /// A flag set.
    Notify,
    /// A flag waited for.
    Wait,
    /// A message of the user's.
    Message,
    Send,
    Receive,
    Fence,
    Barrier,
    Collective,
    Allocate,
    Free,
}

impl Kind {
    /// How many kinds there are.
    pub(crate) const CALLS: usize = Kind::Free as usize + 1;

    /// What people read, by number.
    pub(crate) const NAMES: [&str; Kind::CALLS] = [
        "put",
        "get",
        "accumulate",
        "rmw",
        "notify",
        "wait",
        "message",
        "send",
        "receive",
        "fence",
        "barrier",
        "collective",
        "allocate",
        "free",
    ];
}

/// Which bytes of the target's memory an operation touches, from its place on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent<'a> {
    /// None, or many places (which are told one by one).
    Elsewhere,
    /// As many as it moves, one after the other.
    Bytes,
    /// The remote rows of a patch; `outward` if the remote side is its target.
    Rows { patch: &'a Patch, outward: bool },
}

/// A call, as it is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) kind: Kind,
    /// The other side, if one rank is.
    pub(crate) target: Option<usize>,
    pub(crate) region: Option<RegionId>,
    /// Where in the target's part of the region it begins.
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    pub(crate) extent: Extent<'a>,
    /// Whether it went by remote memory access.
    pub(crate) direct: bool,
    /// Where the program made it.
    pub(crate) site: &'static Location<'static>,
}

impl Call<'_> {
    /// A call of several ranks together, or of no memory in particular.
    #[track_caller]
    pub(crate) fn of_all(kind: Kind, region: Option<RegionId>, bytes: usize) -> Self {
        let (extent, site) = (Extent::Elsewhere, Location::caller());
        Call { kind, target: None, region, offset: 0, bytes, extent, direct: false, site }
    }

    /// A call that concerns one rank, but no memory of it in particular.
    #[track_caller]
    pub(crate) fn to(kind: Kind, target: usize, bytes: usize) -> Self {
        Call { target: Some(target), ..Call::of_all(kind, None, bytes) }
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a node share.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What watches a rank: what its threads and whoever serves it share.
#[derive(Debug)]
pub(crate) struct Watching {
    me: usize,
    /// When it joined.
    pub(crate) joined: u64,
    stats: bool,
    /// Room for events, if they are kept.
    room: Option<Arc<Room>>,
    gone: Mutex<Gone>,
}

/// What threads that have detached leave behind.
#[derive(Debug, Default)]
struct Gone {
    counts: Option<Counts>,
    events: Vec<Event>,
    threads: u64,
    own: Own,
}

/// What a thread counts whether it is watched or not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Own {
    pub(crate) conflicts: ConflictCounts,
    pub(crate) cache: CacheCounts,
}

impl Own {
    /// What is in the books of a thread.
    pub(crate) fn of(origin: &Origin, cache: Option<&RefCell<RegionCache>>) -> Self {
        let cache = cache.map(|cache| cache.borrow().counts()).unwrap_or_default();
        Own { conflicts: origin.conflicts(), cache }
    }

    fn add(&mut self, other: Own) {
        let (conflicts, cache) = (&mut self.conflicts, &mut self.cache);
        conflicts.waits += other.conflicts.waits;
        conflicts.avoided += other.conflicts.avoided;
        conflicts.false_waits += other.conflicts.false_waits;
        conflicts.fences += other.conflicts.fences;
        cache.hits += other.cache.hits;
        cache.misses += other.cache.misses;
        cache.evictions += other.cache.evictions;
    }
}

impl Watching {
    /// What the settings ask for, of rank `me`.
    pub(crate) fn asked(config: &Config, me: usize) -> Arc<Self> {
        let room = config.trace.is_some().then(|| Arc::new(Room::new(config.trace_events)));
        Arc::new(Watching { me, joined: now(), stats: config.stats, room, gone: Mutex::default() })
    }

    fn gone(&self) -> MutexGuard<'_, Gone> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a thread that is about to detach leaves behind.
    pub(crate) fn leave(&self, watch: Option<&Watch>, own: Own) {
        let Some(watch) = watch else { return };
        let mut gone = self.gone();
        gone.threads += 1;
        gone.own.add(own);
        if let Some(tallies) = &watch.tallies {
            tallies.add_to(gone.counts.get_or_insert_with(Counts::new));
        }
        gone.events.append(&mut watch.events.borrow_mut());
    }
}

/// What watches a thread's calls.
#[derive(Debug)]
pub(crate) struct Watch {
    me: usize,
    /// The number of its context.
    thread: usize,
    pub(crate) tallies: Option<Tallies>,
    room: Option<Arc<Room>>,
    events: RefCell<Vec<Event>>,
    /// Whether a watched call is under way.
    pub(super) inside: Cell<bool>,
}

impl Watch {
    /// What the settings ask for, if anything, for the thread whose context has this number.
    pub(crate) fn asked(watching: &Watching, thread: usize) -> Option<Box<Self>> {
        let &Watching { me, stats, ref room, .. } = watching;
        let (tallies, room) = (stats.then(Tallies::new), room.clone());
        let (events, inside) = (RefCell::default(), Cell::new(false));
        (tallies.is_some() || room.is_some()).then(|| Box::new(Watch { me, thread, tallies, room, events, inside }))
    }

    /// Tells a call that began then and is over now; `beyond` says that its other side is on another node.
    pub(super) fn tell(&self, begin: u64, call: &Call<'_>, beyond: bool) {
        let nanoseconds = now() - begin;
        if let Some(tallies) = &self.tallies {
            tallies.add(self.me, call, beyond, nanoseconds);
        }
        if let Some(room) = &self.room
            && room.take()
        {
            self.events.borrow_mut().push(Event::of_call(begin, nanoseconds, self.thread, call));
        }
    }
}
