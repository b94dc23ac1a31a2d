//! How a call is told to who watches.

use super::{Call, Extent, Kind, now};
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::rma::far;
use crate::world::World;

impl World {
    /// An operation on another rank's memory.
    #[track_caller]
    pub(crate) fn call_on<'a>(&self, kind: Kind, place: GlobalPtr<u8>, bytes: usize, extent: Extent<'a>) -> Call<'a> {
        let GlobalPtr { region, offset, .. } = place;
        let direct = match kind {
            Kind::Get => &self.direct().get,
            Kind::Accumulate => &self.direct().accumulate,
            Kind::Rmw => &self.direct().rmw,
            Kind::Notify | Kind::Wait => &self.direct().signal,
            _ => &self.direct().put,
        };
        let beyond = self.is_beyond(place.rank());
        let direct = region.index < direct.get() && (!beyond || far::goes_by_access(kind, bytes, &extent));
        let (target, site) = (Some(place.rank()), self.call_site());
        Call { kind, target, region: Some(region), offset, bytes, extent, direct, site }
    }

    /// Whether a rank is on another node.
    fn is_beyond(&self, rank: usize) -> bool {
        self.node().slot_of(rank).is_none()
    }

    /// Tells who cares for single bytes what a part of a larger call touches.
    pub(crate) fn touched(&self, call: &Call<'_>) {
        self.check_touched(call);
    }

    /// Runs a call, and tells who watches what it was, once it has succeeded.
    pub(crate) fn watched<T>(&self, call: &Call<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let run = || self.checked(call, run);
        self.watched_as(|_| *call, run)
    }

    /// As [`World::watched`], for a call that is known only by what it returns.
    pub(crate) fn watched_as<'a, T>(
        &self,
        call: impl FnOnce(&T) -> Call<'a>,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(watch) = self.watch().filter(|watch| !watch.inside.get()) else { return run() };
        let begin = now();
        watch.inside.set(true);
        let done = run();
        watch.inside.set(false);
        let done = done?;
        let call = call(&done);
        watch.tell(begin, &call, call.target.is_some_and(|rank| self.is_beyond(rank)));
        Ok(done)
    }
}
