//! Watching calls: what statistics, timelines and the checker see of them.
//!
//! A call that is watched runs inside [`World::watched`], which reads the clock before and after and tells it to
//! whoever was asked for by the settings. Where nobody watches, which is the rule, a call pays nothing: that the thread
//! is watched is one of the reasons why it is not [plain](World::is_plain), which operations look at anyway. The
//! watched form of each operation is out of line as a whole, because what a closure lends to a function out of line
//! would have to lie in memory for everybody.

pub(crate) mod tally;

use std::panic::Location;

use crate::config::Config;
use crate::copy::Patch;
use crate::error::Result;
use crate::memory::{GlobalPtr, RegionId};
use crate::world::World;
use tally::Tallies;

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
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a node share.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What watches a thread's calls.
#[derive(Debug)]
pub(crate) struct Watch {
    me: usize,
    pub(crate) tallies: Option<Tallies>,
}

impl Watch {
    /// What the settings ask for, if anything.
    pub(crate) fn asked(config: &Config, me: usize) -> Option<Box<Self>> {
        let tallies = config.stats.then(Tallies::new);
        tallies.is_some().then(|| Box::new(Watch { me, tallies }))
    }

    /// Tells a call that began then and is over now.
    fn tell(&self, begin: u64, call: &Call<'_>) {
        let nanoseconds = now() - begin;
        if let Some(tallies) = &self.tallies {
            tallies.add(self.me, call, nanoseconds);
        }
    }
}

impl World {
    /// An operation on another rank's memory.
    #[track_caller]
    pub(crate) fn call_on<'a>(&self, kind: Kind, place: GlobalPtr<u8>, bytes: usize, extent: Extent<'a>) -> Call<'a> {
        let GlobalPtr { region, offset, .. } = place;
        let direct = match kind {
            Kind::Get => &self.direct().get,
            Kind::Accumulate => &self.direct().accumulate,
            Kind::Rmw => &self.direct().rmw,
            Kind::Notify => &self.direct().signal,
            _ => &self.direct().put,
        };
        let (target, direct, site) = (Some(place.rank()), region.index < direct.get(), Location::caller());
        Call { kind, target, region: Some(region), offset, bytes, extent, direct, site }
    }

    /// Tells who cares for single bytes what a part of a larger call touches.
    pub(crate) fn touched(&self, _call: &Call<'_>) {}

    /// Runs a call, and tells who watches what it was, once it has succeeded.
    pub(crate) fn watched<T>(&self, call: &Call<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(watch) = self.watch() else { return run() };
        let begin = now();
        let done = run()?;
        watch.tell(begin, call);
        Ok(done)
    }
}
