//! What a report says, before it is written: the sums of all ranks' notes.

use bytemuck::{Pod, Zeroable};

use super::tally::{Counts, Tally};

/// What people read of each kind of message: those of this crate's operations, and the user's.
pub(crate) const NAMES: [&str; KINDS] =
    ["put", "get", "accumulate", "rmw", "notify", "describe", "send", "team", "user"];
/// How many kinds of messages there are.
pub(crate) const KINDS: usize = 9;
/// How many servers: the progress thread, and those who wait.
pub(crate) const SERVERS: usize = 2;

/// What a rank contributes to the report, besides its tallies.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(crate) struct Share {
    /// From joining to leaving.
    pub(crate) nanoseconds: u64,
    pub(crate) waits: u64,
    pub(crate) avoided: u64,
    pub(crate) false_waits: u64,
    pub(crate) fences: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) evictions: u64,
    /// Of the progress thread.
    pub(crate) rounds: u64,
    pub(crate) fruitful: u64,
    pub(crate) parks: u64,
    /// Of the node.
    pub(crate) granted: u64,
    pub(crate) peak: u64,
    /// That attached and have left.
    pub(crate) threads: u64,
    pub(crate) in_calls: u64,
    pub(crate) in_barriers: u64,
}

/// The messages served, by server and kind.
#[derive(Debug)]
pub(crate) struct Served(pub(super) Vec<Tally>);

impl Served {
    /// How many each server served.
    pub(crate) fn totals(&self) -> [u64; SERVERS] {
        let total = |server: usize| self.0[server * KINDS..][..KINDS].iter().map(|tally| tally.calls).sum();
        [total(0), total(1)]
    }

    /// Each kind of message, with what each server did.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, [&Tally; SERVERS])> {
        NAMES.iter().enumerate().map(|(kind, name)| (*name, [&self.0[kind], &self.0[KINDS + kind]]))
    }
}

/// All that a report says.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) nodes: usize,
    pub(crate) node: usize,
    pub(crate) first_rank: usize,
    pub(crate) counts: Counts,
    pub(crate) served: Served,
    pub(crate) shares: Vec<Share>,
}
