//! Remote completion.
//!
//! # Safety
//! EXPORT (see `abi`); nothing else here is unsafe.
#![allow(unsafe_code)]

use std::ffi::c_int;

use armci_core::{GlobalPtr, Result, World};

use crate::abi::c_functions;
use crate::arguments::rank;
use crate::member::{member, primary};

c_functions! {
    /// Completes at `proc` what this rank wrote there.
    answer fn ARMCI_Fence = PARMCI_Fence(proc: c_int) = || {
        let member = member()?;
        let rank = rank(&member.world, proc)?;
        member.aggregates.send();
        member.world.fence(rank)
    };

    /// Completes everywhere what this rank wrote.
    answer fn ARMCI_AllFence = PARMCI_AllFence() = || {
        let member = member()?;
        member.aggregates.send();
        member.world.fence_all()
    };

    /// [`ARMCI_AllFence`] on every rank, and all meet.
    answer fn ARMCI_Barrier = PARMCI_Barrier() = || {
        let (world, _) = primary()?;
        member()?.aggregates.send();
        world.barrier()
    };
}

/// Sets a flag behind what this thread wrote to its rank.
pub(crate) fn raise(world: &World, flag: GlobalPtr<c_int>, value: c_int) -> Result<()> {
    world.fence(flag.rank())?;
    // A read-modify-write, since that is a store with release on either path.
    world.swap(flag, value).map(drop)
}
