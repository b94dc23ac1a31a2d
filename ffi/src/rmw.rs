//! Read-modify-write. The constants have ARMCI-MPI's values.
//!
//! # Safety
//! C-WORD: an `int` or a `long`, as the operation says, may be read and written at `ploc`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};

use armci_core::{GlobalPtr, Result, Word, World};

use crate::abi::{c_constants, c_functions};
use crate::arguments::{place, present, unknown};
use crate::member::world;

c_constants! {
    /// Adds to an `int`.
    ARMCI_FETCH_AND_ADD = 0;
    /// Adds to a `long`.
    ARMCI_FETCH_AND_ADD_LONG = 1;
    /// Exchanges an `int`.
    ARMCI_SWAP = 2;
    /// Exchanges a `long`.
    ARMCI_SWAP_LONG = 3;
}

c_functions! {
    /// Changes the word at `prem` on `proc` and writes what it held to `ploc`: adds `value` to it, or puts there
    /// what `ploc` held.
    code fn ARMCI_Rmw = PARMCI_Rmw(op: c_int, ploc: *mut c_void, prem: *mut c_void, value: c_int, proc: c_int) -> c_int = move || {
        let world = world()?;
        present(ploc, "the local address")?;
        // SAFETY: C-WORD.
        unsafe {
            match op {
                ARMCI_FETCH_AND_ADD => fetch_add::<c_int>(world, ploc, place(world, proc, prem)?, value),
                ARMCI_FETCH_AND_ADD_LONG => fetch_add::<c_long>(world, ploc, place(world, proc, prem)?, value),
                ARMCI_SWAP => swap::<c_int>(world, ploc, place(world, proc, prem)?),
                ARMCI_SWAP_LONG => swap::<c_long>(world, ploc, place(world, proc, prem)?),
                other => unknown(
                    other,
                    "read-modify-write operation",
                    "ARMCI_FETCH_AND_ADD (0), _LONG (1), ARMCI_SWAP (2) and ARMCI_SWAP_LONG (3)",
                ),
            }
        }
    };
}

/// # Safety
/// C-WORD.
#[inline(always)]
unsafe fn fetch_add<T: Word + From<c_int>>(
    world: &World,
    ploc: *mut c_void,
    prem: GlobalPtr<u8>,
    value: c_int,
) -> Result<()> {
    let held = world.fetch_add(prem.cast::<T>(), value.into())?;
    // SAFETY: C-WORD, at any alignment.
    unsafe { ploc.cast::<T>().write_unaligned(held) };
    Ok(())
}

/// # Safety
/// C-WORD.
#[inline(always)]
unsafe fn swap<T: Word>(world: &World, ploc: *mut c_void, prem: GlobalPtr<u8>) -> Result<()> {
    // SAFETY: C-WORD, at any alignment.
    let mine = unsafe { ploc.cast::<T>().read_unaligned() };
    let held = world.swap(prem.cast::<T>(), mine)?;
    // SAFETY: C-WORD, at any alignment.
    unsafe { ploc.cast::<T>().write_unaligned(held) };
    Ok(())
}
