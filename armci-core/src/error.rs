//! Everything that can go wrong, in one enum.
//!
//! Each message says what was asked, of whom, with the numbers, and what to do
//! about it. A caller that wants to react matches the variant; a caller that
//! gives up prints it.

use crate::memory::RegionId;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job could not be joined, started or left as it should.
    #[error("{0}")]
    Job(String),

    /// A system call failed.
    #[error("{call} failed: {source}")]
    System {
        /// The call, as the manual names it.
        call: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },

    /// A setting in the environment is not understood.
    #[error("setting {name}={value:?} is not understood: {expected}")]
    Setting {
        /// The environment variable.
        name: &'static str,
        /// What it held.
        value: String,
        /// What it may hold.
        expected: &'static str,
    },

    /// An argument is wrong in a way that no more specific variant names.
    #[error("{0}")]
    Argument(String),

    /// A rank outside the job or team.
    #[error("rank {rank} does not exist: the job has {size} ranks, 0 to {}", size - 1)]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// How many there are.
        size: usize,
    },

    /// The way to ranks of other nodes is not there, or is not understood.
    #[error("{0}")]
    Fabric(String),

    /// A transfer that leaves its region.
    #[error(
        "bytes {offset}..{} of region {region} on rank {rank} were asked for, but its part there has {len} bytes",
        offset.saturating_add(*bytes)
    )]
    Bounds {
        /// The region.
        region: RegionId,
        /// The rank whose part was addressed.
        rank: usize,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes that part has.
        len: u64,
    },

    /// A pointer into a region that has been freed, or that never existed.
    #[error("region {region} does not exist on rank {rank}: it was freed, or the pointer is not of this job")]
    NoRegion {
        /// The region named by the pointer.
        region: RegionId,
        /// The rank addressed.
        rank: usize,
    },

    /// An address in no region of the rank it was given with.
    #[error(
        "address {address:#x} lies in no region of rank {rank}: it was never allocated, was freed, or is another rank's"
    )]
    Address {
        /// The rank.
        rank: usize,
        /// The address.
        address: usize,
    },

    /// An address that is not a multiple of what the operation needs.
    #[error("offset {offset} in region {region} on rank {rank} is not a multiple of {align} bytes, as {what} needs")]
    Misaligned {
        /// The region.
        region: RegionId,
        /// The rank addressed.
        rank: usize,
        /// The offset asked for.
        offset: u64,
        /// The alignment needed.
        align: usize,
        /// The operation that needs it.
        what: &'static str,
    },

    /// A strided transfer whose description contradicts itself or its buffer.
    #[error("strided transfer: {0}")]
    Shape(String),

    /// A segment of a vector transfer that is wrong: the first such.
    #[error("segment {segment}: {error}")]
    Segment {
        /// Its number, from 0.
        segment: usize,
        /// What is wrong with it.
        error: Box<Error>,
    },

    /// The machine has not enough memory for an allocation.
    #[error(
        "rank {rank} asked for {asked} bytes, but the ranks of this node already hold {granted} of the {limit} bytes \
         they may use (ARMCI_MEMORY, or without it available memory and every cgroup limit, less a margin): use fewer \
         ranks per node, smaller arrays, or a node with more memory"
    )]
    Memory {
        /// The rank whose part could not be had.
        rank: usize,
        /// Bytes it asked for.
        asked: u64,
        /// Bytes the node's ranks already hold.
        granted: u64,
        /// Bytes they may hold.
        limit: u64,
    },

    /// A rank's slot of the memory window is full.
    #[error(
        "rank {rank} asked for {asked} bytes, but its slot of {slot} bytes has no free range of that size \
         ({free} bytes are free in all): raise ARMCI_SLOT, or free what is no longer used"
    )]
    SlotFull {
        /// The rank whose slot is full.
        rank: usize,
        /// Bytes asked for.
        asked: u64,
        /// The slot's size.
        slot: u64,
        /// Bytes free in it, in pieces.
        free: u64,
    },

    /// Too many regions are alive at once.
    #[error("{limit} regions are alive, which is all that fit: free some, or put several arrays into one region")]
    RegionTableFull {
        /// How many fit.
        limit: usize,
    },

    /// An active message was refused by its target.
    #[error("rank {rank} refused an active message for handler {handler}: {reason}{}", and_more(*more))]
    Refused {
        /// The target.
        rank: usize,
        /// The handler addressed.
        handler: u16,
        /// Why.
        reason: String,
        /// How many messages were refused besides, of those the failed call speaks for.
        more: u64,
    },

    /// Ranks have made different collective calls.
    #[error(
        "rank {rank} has allocated and freed regions in another order than rank 0: every rank must make the same \
         collective calls in the same order"
    )]
    Diverged {
        /// The first rank that differs from rank 0.
        rank: usize,
    },

    /// Ranks have described differently what they were to allocate together.
    #[error(
        "rank {rank} is to make something else than rank {first} in the same collective call (by its name, its shape or \
         its type): every rank must make the same collective calls with the same arguments in the same order"
    )]
    Unlike {
        /// The first rank of the world that differs from the first of those that called.
        rank: usize,
        /// That rank.
        first: usize,
    },

    /// A two-sided message that does not fit where it was to be received.
    #[error(
        "the message from rank {rank} with tag {tag} has {bytes} bytes, but the buffer to receive it has {room}: it \
         stays, to be received with a larger one"
    )]
    BufferTooShort {
        /// Who sent it.
        rank: usize,
        /// Its tag.
        tag: i32,
        /// Bytes it has.
        bytes: usize,
        /// Bytes the buffer has.
        room: usize,
    },

    /// An active message that does not fit.
    #[error(
        "an active message of {bytes} bytes was asked for, but at most {limit} fit: send it in pieces, or put the data and send its address"
    )]
    MessageTooLong {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes that fit.
        limit: usize,
    },
}

fn and_more(more: u64) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more messages were refused)") }
}

impl Error {
    /// The last error of the system call `call`, as this crate reports it.
    pub(crate) fn system(call: &'static str, errno: rustix::io::Errno) -> Self {
        Error::System { call, source: errno.into() }
    }
}
