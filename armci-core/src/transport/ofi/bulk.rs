//! The memory of an origin context that other ranks fetch from and store to: a few long buffers of its own, and what the
//! program lends for a call.
//!
//! Nothing is registered, and no memory taken, before the first long transfer by message. The buffers are registered
//! once. What is lent is registered for its call: some libfabric providers pin memory for that, and those keep
//! caches of what they have pinned; for the others it is an entry in a map.
//!
//! # Safety
//! BULK-BUFFER: a buffer that is claimed belongs to whoever claimed it, and, while a request that names it is under way, to
//! the target; they lie in one box, which is dropped after the endpoint, and stays for ever if a buffer is still claimed then:
//! the target may be at it through the service endpoint, which ends later.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;

use super::abi;
use super::domain::Domain;
use super::endpoint::Endpoint;
use super::library::Object;
use super::packet::{BULK_BYTES, Errand, Place, Through};
use crate::error::Result;
use crate::job::random;

/// Buffers of a context: as many as it may have landings at a target, and one to pack the next in.
const BULKS: usize = 4;
/// The bits of all of them.
const ALL: u32 = (1 << BULKS) - 1;

/// Registered memory of this process.
#[derive(Debug)]
struct Registered {
    object: Object<abi::Mr>,
    /// What its first byte is named by.
    base: u64,
}

impl Registered {
    /// # Safety
    /// The memory stays as long as this.
    unsafe fn new(domain: &Domain, endpoint: &Endpoint, access: u64, at: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        let object = unsafe { domain.register_for(access, at, len, random::<1>()?[0], endpoint)? };
        Ok(Registered { object, base: if domain.names_addresses() { at as u64 } else { 0 } })
    }

    fn place(&self, errand: Errand, through: Through, offset: usize, len: usize) -> Place {
        Place { errand, through, address: self.base + offset as u64, key: self.object.get().key, len }
    }
}

/// The long buffers of a context.
#[derive(Debug)]
pub(super) struct Buffers {
    /// As they are reached through the context's endpoint.
    registered: Option<Registered>,
    /// As they are reached through the service endpoint of the rank, unless memory belongs to one endpoint.
    served: Option<Registered>,
    /// [`BULKS`] of [`BULK_BYTES`]; a `Box` of their own, which nobody refers to.
    memory: NonNull<[u8]>,
    /// One bit per buffer that is free.
    free: Cell<u32>,
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.withdraw();
        // A rank that has not left in order may have operations under way, which nobody waits for any more.
        if self.free.get() == ALL {
            // SAFETY: BULK-BUFFER: it was a box, and nothing of it is under way.
            drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
        }
    }
}

impl Buffers {
    /// Those of a context whose endpoint this is; `service` is the domain of its rank's service endpoint.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn open(domain: &Domain, endpoint: &Endpoint, service: &Domain) -> Result<Self> {
        let mut buffers = Buffers::unregistered();
        let memory = buffers.memory;
        let access = abi::REMOTE_READ | abi::REMOTE_WRITE;
        // SAFETY: BULK-BUFFER.
        let register =
            |domain| unsafe { Registered::new(domain, endpoint, access, memory.as_ptr().cast(), BULKS * BULK_BYTES) };
        buffers.registered = Some(register(domain)?);
        if !service.binds_memory() {
            buffers.served = Some(register(service)?);
        }
        Ok(buffers)
    }

    /// Buffers that nobody reaches yet.
    fn unregistered() -> Self {
        let memory = NonNull::from(Box::leak(vec![0; BULKS * BULK_BYTES].into_boxed_slice()));
        Buffers { registered: None, served: None, memory, free: Cell::new(ALL) }
    }

    /// Before an endpoint ends that memory is bound to.
    pub(super) fn withdraw(&mut self) {
        self.registered = None;
        self.served = None;
    }

    pub(super) fn claim(&self) -> Option<usize> {
        let free = self.free.get();
        let buffer = (free != 0).then_some(free.trailing_zeros() as usize)?;
        self.free.set(free & !(1 << buffer));
        Some(buffer)
    }

    pub(super) fn release(&self, buffer: usize) {
        self.free.set(self.free.get() | 1 << buffer);
    }

    /// The memory of a buffer.
    pub(super) fn at(&self, buffer: usize) -> *mut u8 {
        assert!(buffer < BULKS);
        self.memory.as_ptr().cast::<u8>().wrapping_add(buffer * BULK_BYTES)
    }

    /// The first bytes of a buffer, as a place.
    pub(super) fn place(&self, errand: Errand, through: Through, buffer: usize, len: usize) -> Option<Place> {
        let registered = match through {
            Through::Line => &self.registered,
            Through::Service => &self.served,
        };
        Some(registered.as_ref()?.place(errand, through, buffer * BULK_BYTES, len))
    }
}

/// What is done with memory that is lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The target fetches from it.
    Fetched,
    /// It is written from.
    Written,
    /// It is read into.
    Read,
}

/// Memory of the program, registered until this is dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    registered: Registered,
}

impl Lent {
    /// # Safety
    /// The memory stays as long as this.
    pub(super) unsafe fn new(
        domain: &Domain,
        endpoint: &Endpoint,
        by: Purpose,
        at: *mut u8,
        len: usize,
    ) -> Result<Self> {
        // Nothing more than that: what is only read from may be memory that nobody may write.
        let access = match by {
            Purpose::Fetched => abi::REMOTE_READ,
            Purpose::Written => abi::WRITE,
            Purpose::Read => abi::READ,
        };
        // SAFETY: the caller's promise.
        Ok(Lent { registered: unsafe { Registered::new(domain, endpoint, access, at, len)? } })
    }

    /// `len` bytes of it, `offset` bytes behind its beginning, to be fetched while their owner stays in its call.
    pub(crate) fn place(&self, offset: usize, len: usize) -> Place {
        self.registered.place(Errand::Fetch, Through::Line, offset, len)
    }

    /// What an access of the own side names it by.
    pub(super) fn descriptor(&self) -> *mut std::ffi::c_void {
        self.registered.object.get().mem_desc
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_claimed_once() {
        let buffers = Buffers::unregistered();
        let claimed: Vec<_> = std::iter::from_fn(|| buffers.claim()).collect();
        assert_eq!(claimed, (0..BULKS).collect::<Vec<_>>());
        buffers.release(2);
        assert_eq!((buffers.claim(), buffers.claim()), (Some(2), None));
    }
}
