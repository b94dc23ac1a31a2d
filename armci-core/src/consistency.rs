//! Location consistency: an operation sees this rank's earlier ones to the same place.
//!
//! On one path (all by remote memory access, or all by message to one target)
//! order is the path's. Where the path changes between an outstanding operation
//! and a later one to the *same region and target*, the later one waits, unless
//! both only read (paper 003, section III-E). To another region it does not: in a
//! matrix multiply, reads of A and B never wait for accumulates to C.
//!
//! | outstanding, by message | later, by remote memory access: get | put, accumulate, read-modify-write, flag |
//! |---|---|---|
//! | put, accumulate, flag | waits | waits |
//! | get (non-blocking) | goes ahead | waits |
//!
//! What goes by remote memory access is complete on return, as far as this rank
//! and its node can tell; so only messages can be outstanding, and
//! there are never more of them than request slots. [`Status`], the paper's 8
//! bits per region and target, is computed from those few instead of being
//! stored per region and rank: its space is that of the credits, whatever the
//! number of regions and ranks.
//!
//! The paper's naive scheme, a status per target, is there for study
//! ([`Conflicts::Target`](crate::config::Conflicts)): it is the same computation without a look at the region.

use crate::memory::RegionId;

/// What a message does to its region: the bits of a [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Access {
    /// Changes nothing there, or nobody knows what (a user's message): it orders nothing.
    Other = 0,
    Put = 1,
    Accumulate = 2,
    Get = 4,
    ReadModifyWrite = 8,
}

impl Access {
    /// The accesses that a later one of this kind waits for.
    fn waits_for(self) -> u8 {
        let writes = Access::Put as u8 | Access::Accumulate as u8 | Access::ReadModifyWrite as u8;
        match self {
            Access::Other => 0,
            Access::Get => writes,
            Access::Put | Access::Accumulate | Access::ReadModifyWrite => writes | Access::Get as u8,
        }
    }

    /// Whether a later access to the same place, by another path, has to wait for this one.
    pub(crate) fn holds_up(self, later: Access) -> bool {
        Status::CLEAN.with(self).holds_up(later)
    }
}

/// Which accesses to a region and target are outstanding: a set of [`Access`] bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Status(u8);

impl Status {
    /// Nothing outstanding.
    pub(crate) const CLEAN: Status = Status(0);

    /// Adds an outstanding access.
    pub(crate) fn with(self, access: Access) -> Self {
        Status(self.0 | access as u8)
    }

    /// Whether a later operation by another path has to wait.
    pub(crate) fn holds_up(self, later: Access) -> bool {
        self.0 & later.waits_for() != 0
    }
}

/// Counts what keeping this thread's operations in order cost, and what tracking them by region saved.
///
/// The naive scheme of paper 003, a status per target, fences `waits + avoided` times what tracking by region fences
/// `waits` times. (Run so, by `ARMCI_CONFLICTS=target`, it reports `waits + false_waits`; that is less if one fence
/// made the next unnecessary.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConflictCounts {
    /// Fences that order needed: operations that waited for an earlier one to the same region and target.
    pub waits: u64,
    /// Fences spared: operations that went ahead where a status per target would have made them wait, for an earlier
    /// one to another region.
    pub avoided: u64,
    /// Operations that waited for an earlier one to another region; only where conflicts are tracked per target.
    pub false_waits: u64,
    /// Fences that the program asked for (by a fence, a barrier or a flag) and that found messages to wait for.
    pub fences: u64,
}

/// One outstanding message, as far as order is concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outstanding {
    pub(crate) target: usize,
    pub(crate) region: Option<RegionId>,
    pub(crate) access: Access,
}

/// The status of a region at a target, and that of the target as a whole, which the naive scheme would go by.
pub(crate) fn status(
    outstanding: impl Iterator<Item = Outstanding>,
    target: usize,
    region: RegionId,
) -> (Status, Status) {
    let (mut of_region, mut of_target) = (Status::CLEAN, Status::CLEAN);
    for message in outstanding.filter(|message| message.target == target) {
        of_target = of_target.with(message.access);
        if message.region == Some(region) {
            of_region = of_region.with(message.access);
        }
    }
    (of_region, of_target)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn region(index: u32) -> RegionId {
        RegionId { index, generation: 1 }
    }

    #[test]
    fn only_writes_to_the_same_region_and_target_conflict() {
        let outstanding = [
            Outstanding { target: 1, region: Some(region(2)), access: Access::Accumulate },
            Outstanding { target: 1, region: Some(region(3)), access: Access::Other },
            Outstanding { target: 1, region: None, access: Access::Other },
        ];
        let of = |target, index| {
            let (of_region, of_target) = status(outstanding.into_iter(), target, region(index));
            [of_region.holds_up(Access::Get), of_target.holds_up(Access::Get)]
        };
        assert_eq!(of(1, 2), [true, true]);
        assert_eq!(of(1, 3), [false, true]);
        assert_eq!(of(0, 2), [false, false]);
    }

    #[test]
    fn reads_pass_reads_and_nothing_else() {
        use Access::{Accumulate, Get, Other, Put, ReadModifyWrite};
        for earlier in [Put, Accumulate, Get, ReadModifyWrite] {
            for later in [Put, Accumulate, Get, ReadModifyWrite] {
                assert_eq!(earlier.holds_up(later), (earlier, later) != (Get, Get), "{earlier:?}, then {later:?}");
            }
            assert!(!earlier.holds_up(Other) && !Other.holds_up(earlier));
        }
    }
}
