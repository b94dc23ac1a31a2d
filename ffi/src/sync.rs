//! Remote completion.
//!
//! # Safety
//! EXPORT (see `abi`); nothing else here is unsafe.
#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::abi::c_functions;
use crate::arguments::rank;
use crate::member::world;

c_functions! {
    /// Completes at `proc` what this rank wrote there.
    answer fn ARMCI_Fence(proc: c_int) = || {
        let world = world()?;
        world.fence(rank(world, proc)?)
    };

    /// Completes everywhere what this rank wrote.
    answer fn ARMCI_AllFence() = || world()?.fence_all();

    /// [`ARMCI_AllFence`] on every rank, and all meet.
    answer fn ARMCI_Barrier() = || world()?.barrier();
}
