//! One-sided communication for Global-Arrays codes.
//!
//! A *rank* (a process) allocates memory that every other rank can `put` to,
//! `get` from, `accumulate` into and atomically update, without the owner
//! taking part.
//!
//! ```text
//!        rank 0                                        rank 1
//!   +----------------------------+               +----------------------------+
//!   | World                      |               |                     World  |
//!   |  put get accumulate rmw ---+---- RDMA -----+--> region (its part)       |
//!   |  origin context            |  (on a node:  |                            |
//!   |   request slots = credits -+- a copy, an   |  inbox --> service context |
//!   |                            |  atomic)      |            ^        |      |
//!   |  barrier, broadcast,       |               |   progress thread, or a    |
//!   |  all-reduce                |<-- replies ---+   thread that waits        |
//!   +----------------------------+               +----------------------------+
//!      one window: the memory of all ranks of a node, at one address everywhere
//! ```
//!
//! Start a program with `armci-run -n 4 PROGRAM`, or let it start its own ranks
//! with [`job::launch`]; without either it is a job of one rank, and everything works.
//!
//! ```
//! use armci_core::{Result, World};
//!
//! fn main() -> Result<()> {
//!     let world = World::init()?;
//!     // 1,000 numbers on every rank.
//!     let region = world.allocate(8 * 1000)?;
//!     let right = (world.rank() + 1) % world.size();
//!     // Into the neighbour's memory, without its help.
//!     world.put(&[1.0, 2.0, 3.0], region.at(right, 10))?;
//!     world.barrier()?;
//!     world.accumulate(0.5, &[2.0, 2.0, 2.0], region.at(right, 10))?;
//!     world.barrier()?;
//!     let mut row = [0.0; 3];
//!     world.get(region.at(right, 10), &mut row)?;
//!     assert_eq!(row, [2.0, 3.0, 4.0]);
//!     world.free(region)?;
//!     world.finalize()
//! }
//! ```
//!
//! # Completion
//! A put or accumulate is *locally complete* on return: its source may be
//! reused. [`World::fence`] and [`World::barrier`] complete it *remotely*. A get
//! or a read-modify-write is complete on return. Operations of one rank to the
//! same location take effect in program order (location consistency);
//! accumulates are atomic per element and commute.
//!
//! Every transfer also has a non-blocking form, with a handle that owns its buffer ([`World::get_nb`]), in a scope that
//! borrows ([`World::nonblocking`]), or collected with others ([`World::aggregate`]); waiting for it is local completion.
//!
//! # Messages
//! Where moving data is not enough, work moves: [`World::register`] a function, and
//! [`World::request`] runs it at another rank, with 104 bytes, 16 KiB or, by
//! [`World::request_long`], any amount of data. Two ranks that both know what
//! comes next talk by [`World::send_to`] and [`World::receive`].
//!
//! The system is that of "Building Scalable PGAS Communication Subsystem on
//! Blue Gene/Q"; the operations' semantics are those of ARMCI.

mod accumulate;
mod allocation;
mod am;
mod collectives;
pub mod config;
mod consistency;
mod context;
mod copy;
mod error;
mod handle;
pub mod job;
mod memory;
mod messages;
mod msg;
mod mutex;
mod node;
mod notify;
mod primitive;
mod rma;
mod rmw;
mod stats;
mod sync;
mod team;
pub mod topology;
mod transport;
mod watch;
mod world;

pub use accumulate::kernels::{Accumulate, ElementKind};
pub use allocation::{LocalRegion, Region, Registered};
pub use am::{Delivery, HandlerId, HeldService, Landed, Reply};
pub use collectives::{Arrival, Number, Reduce};
pub use config::Config;
pub use context::Threads;
pub use error::{Error, Result};
pub use handle::{Aggregate, Buffer, Handle, NbHandle, Scope, ScopedAggregate, ScopedHandle};
pub use memory::{GlobalPtr, RegionId};
pub use msg::{Received, Source, Tag};
pub use mutex::Mutexes;
pub use node::message::{INLINE_MAX, STAGING_BYTES};
pub use rma::{Segment, Segments, Strided};
pub use rmw::{SharedCounter, Word};
pub use stats::{CacheCounts, ConflictCounts, Statistics, Volume};
pub use team::Team;
pub use world::World;
