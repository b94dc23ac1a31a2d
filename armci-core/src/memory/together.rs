//! Which private regions of a rank were allocated together with other ranks, and are freed together.
//!
//! Whoever knows of another node's region where it lies must hear when it is freed, before something else lies there. Of a
//! region that a team allocated every member hears, for freeing is collective; of one that a rank allocated alone nobody
//! hears. So an owner that is asked where an address leads says under which *name* the region was allocated: the first
//! member's rank and what the region is called there, the same on all members. Who is a member has the name, too, and may
//! keep the answer as long as it has it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::RegionId;

/// What all members call a region that they allocated together: the first member's rank, and its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Common {
    pub(crate) rank: u64,
    pub(crate) name: u64,
}

impl Common {
    /// Of a region that its owner allocated alone.
    pub(crate) const NONE: Common = Common { rank: u64::MAX, name: u64::MAX };
}

/// The regions of this rank that were allocated together with ranks of other nodes.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// By index.
    names: Mutex<BTreeMap<u32, (RegionId, Common)>>,
    /// How many were freed so far.
    freed: AtomicU64,
}

impl Together {
    fn names(&self) -> MutexGuard<'_, BTreeMap<u32, (RegionId, Common)>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a region; before the members meet, so before anybody can ask.
    pub(crate) fn enter(&self, id: RegionId, common: Common) {
        self.names().insert(id.index, (id, common));
    }

    /// Notes that a region is being freed, if it was noted; before the members meet, so before its memory is another's.
    pub(crate) fn leave(&self, id: RegionId) {
        if self.names().remove(&id.index).is_some() {
            // Release pairs with `freed`: who sees the number finds the name gone.
            self.freed.fetch_add(1, Ordering::Release);
        }
    }

    /// What its members call a region.
    pub(crate) fn common(&self, id: RegionId) -> Common {
        self.names().get(&id.index).filter(|(known, _)| *known == id).map_or(Common::NONE, |(_, common)| *common)
    }

    /// Whether this rank is a member of whoever allocated that.
    pub(crate) fn has(&self, common: Common) -> bool {
        common != Common::NONE && self.names().values().any(|(_, known)| *known == common)
    }

    /// How many were freed so far: as long as it stays the same, so does what is had.
    pub(crate) fn freed(&self) -> u64 {
        self.freed.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_had_until_its_region_is_freed() {
        let together = Together::default();
        let id = |index, generation| RegionId { index, generation };
        let common = Common { rank: 3, name: id(7, 1).to_bits() };
        together.enter(id(9, 1), common);
        assert_eq!((together.common(id(9, 1)), together.has(common), together.freed()), (common, true, 0));
        // Alone, of another generation, or never allocated.
        assert_eq!(together.common(id(9, 2)), Common::NONE);
        assert_eq!(together.common(id(8, 1)), Common::NONE);
        assert!(!together.has(Common::NONE));
        together.leave(id(8, 1));
        assert_eq!(together.freed(), 0);
        together.leave(id(9, 1));
        assert_eq!((together.common(id(9, 1)), together.has(common), together.freed()), (Common::NONE, false, 1));
    }
}
