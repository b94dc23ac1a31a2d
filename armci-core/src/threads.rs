//! Other threads of a rank: how they come to communicate.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::context::{CLOSED, Context, Shared, has_left};
use crate::error::Result;
use crate::world::World;

/// Lets other threads of this rank communicate, each by itself.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// use armci_core::World;
///
/// let world = World::init()?;
/// let region = world.allocate(8 * 4)?;
/// world.put(&[0i64; 4], region.at(world.rank(), 0))?;
/// world.barrier()?;
/// let right = (world.rank() + 1) % world.size();
/// let threads = world.threads();
/// std::thread::scope(|scope| {
///     for number in 0..4 {
///         let (threads, place) = (threads.clone(), region.at::<i64>(right, number));
///         scope.spawn(move || {
///             let world = threads.attach()?;
///             world.accumulate(1, &[number as i64 + 1], place)?;
///             world.detach() // completes what this thread did
///         });
///     }
/// });
/// world.barrier()?;
/// let mut sums = [0i64; 4];
/// world.get(region.at(world.rank(), 0), &mut sums)?;
/// assert_eq!(sums, [1, 2, 3, 4]);
/// world.free(region)?;
/// world.finalize()
/// # }
/// ```
#[derive(Clone)]
pub struct Threads {
    shared: Arc<Shared>,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, attached) = (self.shared.node.who(), self.shared.attached.load(Ordering::Relaxed));
        write!(f, "Threads(rank {} of {}, {attached} attached)", who.rank, who.size)
    }
}

impl Threads {
    /// A context for the calling thread, which begins with the settings that the rank joined with.
    ///
    /// With the [`World`] it gets, a thread does all that is not collective: transfers, read-modify-writes, messages,
    /// fences. Memory to be reached is allocated by the thread that joined.
    ///
    /// # Errors
    /// If 256 threads communicate already, or memory for the context's request slots (half a MiB) is not to be had;
    /// or if the rank has left the job.
    pub fn attach(&self) -> Result<World> {
        // Counted first: who finalizes finds either the count or the closed gate.
        let attached = self.shared.attached.fetch_add(1, Ordering::AcqRel);
        if attached >= CLOSED {
            self.shared.attached.fetch_sub(1, Ordering::AcqRel);
            return Err(has_left(self.shared.node.who().rank));
        }
        let context = Context::new(&self.shared, None).inspect_err(|_| {
            self.shared.attached.fetch_sub(1, Ordering::AcqRel);
        })?;
        Ok(World::of(context))
    }
}

impl World {
    /// What lets other threads of this rank communicate.
    pub fn threads(&self) -> Threads {
        Threads { shared: self.shared().clone() }
    }
}
