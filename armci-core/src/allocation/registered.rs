//! A user's own memory, lent to other ranks.
//!
//! It lies in no window, so only its owner could reach it directly; everybody's operations on it, the owner's too, go
//! by active message and are carried out by whoever serves the owner.
//!
//! # Safety
//! LENT: from registration until the name is withdrawn and whoever was serving has stopped, the memory is owned by a
//! [`Registered`], which gives no reference to it. It is reached through raw pointers only.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use bytemuck::Pod;

use crate::context::Shared;
use crate::error::Result;
use crate::memory::region::Part;
use crate::memory::{GlobalPtr, RegionId};
use crate::world::World;

/// Memory of this process that other ranks may reach: what [`World::register_memory`] was given.
///
/// It comes back from [`Registered::unregister`]. Dropped, it is withdrawn and freed; forgotten, it stays lent for ever.
pub struct Registered<T: Pod> {
    shared: Arc<Shared>,
    id: RegionId,
    memory: *mut T,
    len: usize,
    capacity: usize,
}

// SAFETY: LENT: it owns its memory as a vector does, and plain old data may go to any thread.
unsafe impl<T: Pod> Send for Registered<T> {}

impl<T: Pod> fmt::Debug for Registered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registered(region {}, {} elements)", self.id, self.len)
    }
}

impl World {
    /// Lets every rank reach this memory, if it is given a [`GlobalPtr`]. Any thread of the rank may call this.
    ///
    /// Operations on it go by active message, whatever the settings say: memory from [`World::allocate_local`] is much
    /// faster to reach. Meanwhile its owner reads and writes it by gets and puts, or through
    /// [`Registered::as_ptr`].
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// use armci_core::{GlobalPtr, World};
    ///
    /// let world = World::init()?;
    /// let mine = world.register_memory(vec![0.0; 100])?;
    /// let places: Vec<GlobalPtr<f64>> = world.all_gather(&[mine.at(0)])?;
    /// let right = (world.rank() + 1) % world.size();
    /// world.put(&[2.5; 3], places[right].add(97))?;
    /// world.barrier()?; // everything is in place
    /// let mine = mine.unregister();
    /// assert_eq!(mine[96..], [0.0, 2.5, 2.5, 2.5]);
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::RegionTableFull`](crate::Error::RegionTableFull) if 4,096 are registered.
    pub fn register_memory<T: Pod>(&self, memory: Vec<T>) -> Result<Registered<T>> {
        self.check_open()?;
        let id = self.private().take_registered()?;
        let mut memory = ManuallyDrop::new(memory);
        let (at, len, capacity) = (memory.as_mut_ptr(), memory.len(), memory.capacity());
        let node = self.node();
        let slot = node.window().address(node.who().local_rank, 0) as u64;
        // It may lie below the slot: offsets wrap.
        let offset = (at.expose_provenance() as u64).wrapping_sub(slot);
        node.mine().regions.publish(id, Part { offset, len: (len * size_of::<T>()) as u64 });
        Ok(Registered { shared: self.shared().clone(), id, memory: at, len, capacity })
    }
}

impl<T: Pod> Registered<T> {
    /// A pointer to element `index`, for this rank and for any that it is sent to.
    pub fn at(&self, index: usize) -> GlobalPtr<T> {
        let rank = self.shared.node.who().rank as u32;
        GlobalPtr::new(self.id, rank, (index as u64).saturating_mul(size_of::<T>() as u64))
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it lies in this process. Others may write there at any time: it is for raw reads and writes, not for
    /// references.
    pub fn as_ptr(&self) -> *mut T {
        self.memory
    }

    /// Takes the memory back. That nobody reaches for it any more is for the program to know; who does later gets
    /// [`Error::Refused`](crate::Error::Refused) or [`Error::NoRegion`](crate::Error::NoRegion).
    ///
    /// Not to be called, nor what is registered dropped, by a handler, or while this thread holds the service back
    /// (`World::hold_service`): both would wait for themselves.
    pub fn unregister(self) -> Vec<T> {
        self.withdraw();
        let this = ManuallyDrop::new(self);
        // SAFETY: a field of a value that is not dropped is read out of it once, so that it is dropped once.
        drop(unsafe { std::ptr::read(&raw const this.shared) });
        // SAFETY: LENT: nobody else reaches it any more; these are the parts of the vector that was registered.
        unsafe { Vec::from_raw_parts(this.memory, this.len, this.capacity) }
    }

    /// Ends the loan.
    fn withdraw(&self) {
        self.shared.node.mine().regions.withdraw(self.id);
        // Who found the name before may still be at it, as the owner of the service context: wait until it is over. A
        // thread that waits for a flag there is waited for in the last step.
        drop(self.shared.service.hold());
        self.shared.private.give_registered_back(self.id);
        self.shared.service.ring_waiters();
    }
}

impl<T: Pod> Drop for Registered<T> {
    fn drop(&mut self) {
        self.withdraw();
        // SAFETY: as in `unregister`.
        drop(unsafe { Vec::from_raw_parts(self.memory, self.len, self.capacity) });
    }
}
