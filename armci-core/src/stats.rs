//! What a rank has done so far, counted.

use std::cell::Cell;

pub use crate::consistency::ConflictCounts;
pub use crate::memory::region_cache::CacheCounts;

/// Calls and bytes of one kind of operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// Calls.
    pub calls: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

/// A rank's counters, as [`World::statistics`](crate::World::statistics) reads them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Puts of this rank.
    pub put: Volume,
    /// Gets of this rank.
    pub get: Volume,
    /// Accumulates of this rank.
    pub accumulate: Volume,
    /// Read-modify-writes of this rank.
    pub rmw: Volume,
    /// Active messages to this rank that its progress thread served.
    pub served_by_thread: u64,
    /// Active messages to this rank that its own threads served while they waited in calls.
    pub served_by_main: u64,
    /// What keeping this rank's operations in order cost, and what tracking by region saved.
    pub conflicts: ConflictCounts,
    /// Look-ups of regions through this thread's cache, if `ARMCI_RESOLVE=cache`.
    pub region_cache: CacheCounts,
    /// Bytes that the ranks of this node have been granted together.
    pub node_memory: u64,
    /// Addresses of other ranks' threads that the provider between nodes keeps for this rank; none on one node.
    pub addresses: u64,
    /// How often this thread's memory was registered for a long put or get between nodes; never where the provider does
    /// not want that.
    pub registrations: u64,
    /// How many such registrations there are now.
    pub registered: u64,
}

/// The counters of the calling thread's operations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    put: Cell<Volume>,
    get: Cell<Volume>,
    accumulate: Cell<Volume>,
    rmw: Cell<Volume>,
}

#[inline]
fn count(of: &Cell<Volume>, bytes: usize) {
    let Volume { calls, bytes: before } = of.get();
    of.set(Volume { calls: calls + 1, bytes: before + bytes as u64 });
}

impl Counters {
    #[inline]
    pub(crate) fn put(&self, bytes: usize) {
        count(&self.put, bytes);
    }

    #[inline]
    pub(crate) fn get(&self, bytes: usize) {
        count(&self.get, bytes);
    }

    #[inline]
    pub(crate) fn accumulate(&self, bytes: usize) {
        count(&self.accumulate, bytes);
    }

    #[inline]
    pub(crate) fn rmw(&self, bytes: usize) {
        count(&self.rmw, bytes);
    }

    /// The four volumes, in a record whose other fields are left at zero.
    pub(crate) fn volumes(&self) -> Statistics {
        Statistics {
            put: self.put.get(),
            get: self.get.get(),
            accumulate: self.accumulate.get(),
            rmw: self.rmw.get(),
            ..Statistics::default()
        }
    }
}
