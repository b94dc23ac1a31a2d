//! Memory of one rank, allocated by it alone: local buffers, which other ranks may reach too.
//!
//! Any thread of the rank may allocate and free; so the table of what there is lies behind a lock, as the private heap
//! itself does.
//!
//! # Safety
//! C-BUFFER: `size` bytes may be read at `src` and written at `dst`.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use armci_core::{Error, LocalRegion};

use crate::abi::c_functions;
use crate::arguments::{count, present};
use crate::member::world;
use crate::memory::armci_size_t;

/// What is allocated, by address.
static REGIONS: Mutex<BTreeMap<usize, LocalRegion>> = Mutex::new(BTreeMap::new());

c_functions! {
    /// Allocates `size` bytes of this rank's memory, without asking others; NULL for none,
    /// and, after a line that says why, if there is no memory.
    pointer fn ARMCI_Malloc_local = PARMCI_Malloc_local(size: armci_size_t) -> *mut c_void = || {
        let world = world()?;
        let size = count(size, "the size")?;
        if size == 0 {
            return Ok(ptr::null_mut());
        }
        let region = world.allocate_local(size)?;
        let address = world.address_of(region.at::<u8>(0))?;
        REGIONS.lock().unwrap_or_else(PoisonError::into_inner).insert(address as usize, region);
        Ok(address.cast())
    };

    /// Frees what [`ARMCI_Malloc_local`] gave; NULL is nothing.
    code fn ARMCI_Free_local = PARMCI_Free_local(ptr: *mut c_void) -> c_int = || {
        let world = world()?;
        if ptr.is_null() {
            return Ok(());
        }
        let region = REGIONS.lock().unwrap_or_else(PoisonError::into_inner).remove(&(ptr as usize));
        let unknown = || Error::Argument(format!("{ptr:?} is not what ARMCI_Malloc_local gave, or was freed before"));
        world.free_local(region.ok_or_else(unknown)?)
    };

    /// Copies within this rank's memory; the two may overlap.
    answer fn ARMCI_Copy(src: *mut c_void, dst: *mut c_void, size: c_int) = || {
        let size = count(size, "the size")?;
        if size > 0 {
            present(src, "the source")?;
            present(dst, "the destination")?;
            // SAFETY: C-BUFFER.
            unsafe { ptr::copy(src.cast::<u8>(), dst.cast::<u8>(), size) };
        }
        Ok(())
    };
}
