//! Location consistency: an operation sees this rank's earlier ones to the same place.
//!
//! On one path (all by remote memory access, or all by message to one target)
//! order is the path's. Where the path changes between an outstanding write and
//! a later operation to the *same region and target*, the later one waits
//! (paper 003, section III-E). To another region it does not: in a matrix
//! multiply, reads of A and B never wait for accumulates to C.
//!
//! A write by remote memory access is complete on return, as far as this rank
//! and its node can tell; so only writes by message can be outstanding, and
//! there are never more of them than request slots. [`Status`], the paper's 8
//! bits per region and target, is computed from those few instead of being
//! stored per region and rank: its space is that of the credits, whatever the
//! number of regions and ranks.

use crate::memory::RegionId;

/// What a message does to its region: the bits of a [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Access {
    /// Changes nothing there, or nobody knows what (a user's message): it orders nothing.
    Other = 0,
    Put = 1,
    Accumulate = 2,
}

/// Which writes to a region and target are outstanding: a set of [`Access`] bits.
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
    pub(crate) fn writes(self) -> bool {
        self != Status::CLEAN
    }
}

/// Counts what tracking per region saves over tracking per target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConflictCounts {
    /// Operations that waited for a write to the same region and target.
    pub waits: u64,
    /// Operations that a status per target would have made wait for nothing.
    pub avoided: u64,
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
        let of = |target, index| status(outstanding.into_iter(), target, region(index));
        assert!(of(1, 2).0.writes());
        assert!(!of(1, 3).0.writes() && of(1, 3).1.writes());
        assert!(!of(0, 2).0.writes() && !of(0, 2).1.writes());
    }
}
