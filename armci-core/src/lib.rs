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
//!   |  origin context, one for   |  (on a node:  |                            |
//!   |   each thread: request    -+- a copy, an   |  inbox --> service context |
//!   |   slots are its credits    |  atomic)      |            ^        |      |
//!   |  barrier, broadcast,       |               |   progress thread, or a    |
//!   |  all-reduce, teams         |<-- replies ---+   thread that waits        |
//!   +----------------------------+               +----------------------------+
//!      one window: the memory of all ranks of a node, at one address everywhere
//! ```
//!
//! Start a program with `armci-run -n 4 PROGRAM`, or let it start its own ranks
//! with [`job::launch`]; without either it is a job of one rank, and everything works.
//! Each of the examples below is a whole program.
//!
//! # Memory and transfers
//! [`World::allocate`] is collective; each rank brings its own size. A [`GlobalPtr`] names a place on a rank, and may
//! be sent to others. Transfers are contiguous, strided ([`World::put_strided`]: up to seven levels), lists of segments
//! ([`World::put_vector`]) or single values. Memory of one rank alone: [`World::allocate_local`]; a user's own vector:
//! [`World::register_memory`].
//! ```
//! use armci_core::{Result, Strided, World};
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
//!     // Two rows of three, into rows of ten.
//!     let shape = Strided { counts: &[3, 2], local: &[3], remote: &[10] };
//!     world.put_strided(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], region.at(right, 100), &shape)?;
//!     world.free(region)?;
//!     world.finalize()
//! }
//! ```
//!
//! # Completion
//! A put or accumulate is *locally complete* on return: its source may be
//! reused. [`World::fence`] and [`World::barrier`] complete it *remotely*. A get
//! or a read-modify-write is complete on return. Operations of one thread of a rank to the
//! same location take effect in program order (location consistency);
//! accumulates are atomic per element and commute.
//!
//! Every transfer also has a non-blocking form: with a handle that owns its buffer ([`World::get_nb`]), in a scope that
//! borrows ([`World::nonblocking`]), or collected with others ([`World::aggregate`]). Waiting for it is local completion.
//! ```
//! # use armci_core::{Result, World};
//! # fn main() -> Result<()> {
//! let world = World::init()?;
//! let region = world.allocate(8 * 200)?;
//! let right = (world.rank() + 1) % world.size();
//! world.put(&[1i64; 200], region.at(right, 0))?;
//! world.barrier()?;
//! // The handle owns the buffer until the data are there.
//! let first = world.get_nb(region.at(right, 0), vec![0i64; 100])?;
//! let mut second = [0i64; 100];
//! world.nonblocking(|scope| scope.get(region.at(right, 100), &mut second).map(drop))?;
//! assert_eq!(first.wait()?, second);
//! world.free(region)?;
//! world.finalize()
//! # }
//! ```
//!
//! # Counters, flags, mutexes
//! [`World::fetch_add`], [`World::swap`], [`World::compare_swap`], [`World::add`], [`World::fetch`] change or read one
//! word as one; [`SharedCounter`] hands out tasks. [`World::put_notify`] puts data and sets a flag behind it, for which
//! [`World::wait_until`] sleeps. [`Mutexes`] are fair, and complete what their holders wrote.
//! ```
//! # use armci_core::{Mutexes, Result, SharedCounter, World};
//! # fn main() -> Result<()> {
//! let world = World::init()?;
//! let counter = SharedCounter::create(&world)?;
//! let mutexes = Mutexes::create(&world, 1)?;
//! let sum = world.allocate(8)?;
//! world.put_value(0i64, sum.at(world.rank(), 0))?;
//! world.barrier()?;
//! for task in counter.tasks(100) {
//!     let task = task? as i64;
//!     let guard = mutexes.guard(0, 0)?;
//!     let so_far: i64 = world.get_value(sum.at(0, 0))?;
//!     world.put_value(so_far + task, sum.at(0, 0))?;
//!     guard.unlock()?;
//! }
//! world.barrier()?;
//! assert_eq!(world.get_value::<i64>(sum.at(0, 0))?, 99 * 100 / 2);
//! world.free(sum)?;
//! mutexes.destroy()?;
//! counter.destroy()?;
//! world.finalize()
//! # }
//! ```
//!
//! # Messages
//! Where moving data is not enough, work moves: [`World::register`] a function, and
//! [`World::request`] runs it at another rank, with 104 bytes, 16 KiB or, by
//! [`World::request_long`], any amount of data. Two ranks that both know what
//! comes next talk by [`World::send_to`] and [`World::receive`].
//! ```
//! # use armci_core::{Result, Source, Tag, World};
//! # fn main() -> Result<()> {
//! let world = World::init()?;
//! let count = world.register(|delivery, reply| reply.set(&delivery.payload.len().to_ne_bytes()))?;
//! world.barrier()?;
//! let right = (world.rank() + 1) % world.size();
//! assert_eq!(world.request(right, count, b"how many?")?, 9usize.to_ne_bytes());
//!
//! world.send_to(right, 7, &[world.rank() as i64])?;
//! let mut from = [-1i64];
//! let received = world.receive(Source::Any, Tag::Is(7), &mut from)?;
//! assert_eq!(from, [received.source as i64]);
//! world.finalize()
//! # }
//! ```
//!
//! # Teams and collectives
//! Barrier (also split in two: [`World::begin_barrier`]), broadcast, all-reduce, all-gather and exchange work over the
//! world and over a [`Team`], which is made by its members ([`World::create_team`]) or by colours ([`World::split`]), and
//! has regions of its own. A [`Group`] is either, for what does not care which.
//! ```
//! # use armci_core::{Reduce, Result, World};
//! # fn main() -> Result<()> {
//! let world = World::init()?;
//! let team = world.split(Some((world.rank() / 2) as i64), 0)?.expect("every rank has a colour");
//! let mut largest = [world.rank() as i64];
//! team.all_reduce(&mut largest, Reduce::Max)?;
//! assert_eq!(largest[0] as usize, team.world_rank(team.size() - 1)?);
//! team.free()?;
//! world.finalize()
//! # }
//! ```
//!
//! # Threads
//! Other threads of a rank communicate by themselves, each through a context of its own, with no lock between them:
//! see [`World::threads`] and [`Threads`], which has the example.
//!
//! # Seeing it
//! `ARMCI_STATS=1` has a report written when the job ends, `ARMCI_TRACE=FILE` a timeline for Perfetto, `ARMCI_CHECK=1`
//! looks for conflicting accesses; [`World::statistics`] is for the program itself. All settings are in
//! [`config::SETTINGS`], and in the README.
//!
//! The system is that of "Building Scalable PGAS Communication Subsystem on
//! Blue Gene/Q", with contexts as in PAMI; the operations' semantics are those of ARMCI.

mod accumulate;
mod allocation;
mod am;
mod collectives;
pub mod config;
mod consistency;
mod context;
mod copy;
mod counter;
mod error;
mod gathering;
mod group;
mod handle;
pub mod job;
mod life;
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
mod threads;
pub mod topology;
mod transport;
mod watch;
mod world;

#[doc(hidden)]
pub use transport::ofi::abi as libfabric_abi;
#[doc(hidden)]
pub use transport::ofi::fuzzed as fuzzing;

pub use accumulate::kernels::{Accumulate, ElementKind};
pub use allocation::{LocalRegion, Region, Registered};
pub use am::{Delivery, HandlerId, HeldService, Landed, Reply};
pub use collectives::{Arrival, Number, Reduce};
pub use config::Config;
pub use counter::{SharedCounter, Tasks};
pub use error::{Error, Result};
pub use group::Group;
pub use handle::{Aggregate, Buffer, Handle, NbHandle, Scope, ScopedAggregate, ScopedHandle};
pub use memory::{GlobalPtr, RegionId};
pub use msg::{Received, Source, Tag};
pub use mutex::{MutexGuard, Mutexes};
pub use node::message::{INLINE_MAX, STAGING_BYTES};
pub use rma::{Segment, Segments, Strided, copy_strided};
pub use rmw::Word;
pub use stats::{CacheCounts, ConflictCounts, Statistics, Volume};
pub use team::Team;
pub use threads::Threads;
pub use transport::ofi::BULK_BYTES;
pub use world::World;
