//! Loads and stores of a rank in its own part of what was allocated.
//!
//! Memory is one for puts, gets, loads and stores here, so there is nothing to be copied to and fro: beginning and ending
//! check the pointer, and order what comes before against what comes after.
//!
//! # Safety
//! EXPORT (see `abi`); nothing else here is unsafe.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};

use armci_core::Result;

use crate::abi::c_functions;
use crate::arguments::place;
use crate::member::world;

c_functions! {
    /// Before this rank reads and writes its part at `ptr` itself: what was put there and completed is seen.
    answer fn ARMCI_Access_begin = PARMCI_Access_begin(ptr: *mut c_void) = || order(ptr);

    /// After that: what it wrote is got by others.
    answer fn ARMCI_Access_end = PARMCI_Access_end(ptr: *mut c_void) = || order(ptr);
}

fn order(ptr: *mut c_void) -> Result<()> {
    let world = world()?;
    place(world, world.rank() as c_int, ptr)?;
    // What this thread itself wrote there by message comes first.
    world.fence(world.rank())?;
    fence(Ordering::SeqCst);
    Ok(())
}
