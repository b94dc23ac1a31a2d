//! Memory that other ranks reach, allocated together.
//!
//! All calls are collective over the world or a group and fail on all its ranks alike, also if only one rank's
//! arguments are wrong.
//!
//! # Safety
//! POINTER-TABLE: a table that is not NULL has room for one pointer per rank of the world or group. C-GROUP, as in
//! `group`. C-STRING: a device's name is NULL or ends with a zero byte.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_long, c_void};

use armci_core::{Result, World};

use crate::abi::c_functions;
use crate::allocations::{self, NO_TABLE};
use crate::group::{ARMCI_Group, known};
use crate::groups::Group;
use crate::member::primary;

/// A size in bytes.
pub type armci_size_t = c_long;

c_functions! {
    /// Allocates `size` bytes here, and what they ask for on other ranks; writes where each part begins, or NULL
    /// for a part of 0 bytes.
    code fn ARMCI_Malloc = PARMCI_Malloc(base_ptrs: *mut *mut c_void, size: armci_size_t) -> c_int = || {
        let (world, primary) = primary()?;
        // SAFETY: POINTER-TABLE.
        unsafe { allocate(world, primary.groups.world(), base_ptrs, size) }
    };

    /// Frees what this rank's part begins at `ptr`; a rank whose part is empty passes NULL.
    code fn ARMCI_Free = PARMCI_Free(ptr: *mut c_void) -> c_int = || {
        let (world, primary) = primary()?;
        free(world, primary.groups.world(), ptr)
    };

    /// [`ARMCI_Malloc`] over a group; the table is by ranks of the group.
    code fn ARMCI_Malloc_group = PARMCI_Malloc_group(
        ptr_arr: *mut *mut c_void, bytes: armci_size_t, group: *mut ARMCI_Group
    ) -> c_int = || {
        let (world, primary) = primary()?;
        // SAFETY: C-GROUP, POINTER-TABLE.
        unsafe { allocate(world, &*known(primary, group)?, ptr_arr, bytes) }
    };

    /// [`ARMCI_Free`] over the group that it was allocated over.
    code fn ARMCI_Free_group = PARMCI_Free_group(ptr: *mut c_void, group: *mut ARMCI_Group) -> c_int = || {
        let (world, primary) = primary()?;
        // SAFETY: C-GROUP.
        free(world, &*unsafe { known(primary, group) }?, ptr)
    };

    /// [`ARMCI_Malloc`]; there is one kind of memory, whatever the device's name prefers.
    code fn ARMCI_Malloc_memdev = PARMCI_Malloc_memdev(
        ptr_arr: *mut *mut c_void, bytes: armci_size_t, _device: *const c_char
    ) -> c_int = || {
        let (world, primary) = primary()?;
        // SAFETY: POINTER-TABLE.
        unsafe { allocate(world, primary.groups.world(), ptr_arr, bytes) }
    };

    /// [`ARMCI_Malloc_group`]; there is one kind of memory, whatever the device's name prefers.
    code fn ARMCI_Malloc_group_memdev = PARMCI_Malloc_group_memdev(
        ptr_arr: *mut *mut c_void, bytes: armci_size_t, group: *mut ARMCI_Group, _device: *const c_char
    ) -> c_int = || {
        let (world, primary) = primary()?;
        // SAFETY: C-GROUP, POINTER-TABLE.
        unsafe { allocate(world, &*known(primary, group)?, ptr_arr, bytes) }
    };

    /// [`ARMCI_Free`].
    code fn ARMCI_Free_memdev = PARMCI_Free_memdev(ptr: *mut c_void) -> c_int = || {
        let (world, primary) = primary()?;
        free(world, primary.groups.world(), ptr)
    };
}

/// # Safety
/// POINTER-TABLE.
unsafe fn allocate(world: &World, group: &Group, table: *mut *mut c_void, size: armci_size_t) -> Result<()> {
    let size = if table.is_null() { NO_TABLE } else { size };
    let bases = allocations::allocate(world, group.ranks()?, &group.allocations, size)?;
    for (rank, base) in bases.into_iter().enumerate() {
        // SAFETY: POINTER-TABLE; had any rank passed NULL, that were an error of all.
        unsafe { table.add(rank).write(base) };
    }
    Ok(())
}

fn free(world: &World, group: &Group, ptr: *mut c_void) -> Result<()> {
    allocations::free(world, group.ranks()?, &group.allocations, ptr as usize)
}
