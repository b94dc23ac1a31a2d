//! Handles of non-blocking operations, and waiting for them.
//!
//! An `armci_hdl_t` is 64 bits in the caller's memory: the number of an [`NbHandle`], or, with the highest bit set, that
//! of something that [aggregates](crate::aggregate). All zero it stands for nothing.
//!
//! # Safety
//! C-HANDLE: a handle that is not NULL is an `armci_hdl_t` of the caller's, initialised.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::offset_of;

use armci_core::{NbHandle, Result};

use crate::abi::{Layout, c_functions, spelled};
use crate::aggregate::Collected;
use crate::arguments::{present, rank};
use crate::member::{Member, member, world};

/// A handle, with ARMCI-MPI's names for its halves.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct armci_hdl_t {
    /// The lower half.
    pub target: c_int,
    /// The upper half.
    pub aggregate: c_int,
}
spelled! { armci_hdl_t = "armci_hdl_t" }

pub(crate) const LAYOUT: Layout = Layout {
    name: "armci_hdl_t",
    size: size_of::<armci_hdl_t>(),
    fields: &[("target", offset_of!(armci_hdl_t, target)), ("aggregate", offset_of!(armci_hdl_t, aggregate))],
};

/// Set in a handle that aggregates.
const AGGREGATES: u64 = 1 << 63;

impl armci_hdl_t {
    #[inline]
    fn of(bits: u64) -> Self {
        armci_hdl_t { target: bits as u32 as c_int, aggregate: (bits >> 32) as c_int }
    }

    #[inline]
    fn bits(self) -> u64 {
        u64::from(self.target as u32) | u64::from(self.aggregate as u32) << 32
    }
}

c_functions! {
    /// Makes a handle stand for nothing.
    answer fn ARMCI_INIT_HANDLE(hdl: *mut armci_hdl_t) = || {
        present(hdl, "the handle")?;
        // SAFETY: C-HANDLE.
        unsafe { hdl.write(armci_hdl_t::of(0)) };
        Ok(())
    };

    /// Lets the operations of a handle be collected and sent together.
    answer fn ARMCI_SET_AGGREGATE_HANDLE(handle: *mut armci_hdl_t) = || {
        present(handle, "the handle")?;
        let member = member()?;
        // SAFETY: C-HANDLE.
        unsafe {
            // What was started with it so far is complete from here on.
            wait(member, handle)?;
            if collecting(member, handle.read().bits()).is_none() {
                handle.write(armci_hdl_t::of(AGGREGATES | member.aggregates.open(&member.world)));
            }
        }
        Ok(())
    };

    /// Ends that; waits for what was collected.
    answer fn ARMCI_UNSET_AGGREGATE_HANDLE(handle: *mut armci_hdl_t) = || {
        present(handle, "the handle")?;
        let member = member()?;
        // SAFETY: C-HANDLE.
        let bits = unsafe { handle.read() }.bits();
        if bits & AGGREGATES != 0 {
            // SAFETY: C-HANDLE.
            unsafe { handle.write(armci_hdl_t::of(0)) };
            member.aggregates.close(&member.world, bits & !AGGREGATES)?;
        }
        Ok(())
    };

    /// Waits for local completion of a handle's operations.
    code fn ARMCI_Wait = PARMCI_Wait(hdl: *mut armci_hdl_t) -> c_int = || {
        present(hdl, "the handle")?;
        // SAFETY: C-HANDLE.
        unsafe { wait(member()?, hdl) }
    };

    /// Whether a handle's operations are complete (0), or not yet (1).
    answer fn ARMCI_Test = PARMCI_Test(hdl: *mut armci_hdl_t) -> c_int = || {
        present(hdl, "the handle")?;
        // SAFETY: C-HANDLE.
        unsafe { test(member()?, hdl) }
    };

    /// Waits for local completion of all that this thread started with `proc`.
    code fn ARMCI_WaitProc = PARMCI_WaitProc(proc: c_int) -> c_int = || {
        let member = member()?;
        let rank = rank(&member.world, proc)?;
        member.aggregates.send();
        member.world.wait_any_handle(Some(rank))
    };

    /// Waits for local completion of all that this thread started.
    code fn ARMCI_WaitAll = PARMCI_WaitAll() -> c_int = || {
        let member = member()?;
        member.aggregates.send();
        member.world.wait_any_handle(None)
    };
}

/// What a handle collects, if it does.
#[inline]
fn collecting(member: &Member, bits: u64) -> Option<std::cell::RefMut<'_, Collected>> {
    (bits & AGGREGATES != 0).then(|| member.aggregates.get(bits & !AGGREGATES)).flatten()
}

/// # Safety
/// C-HANDLE, not NULL.
#[inline]
unsafe fn wait(member: &Member, hdl: *mut armci_hdl_t) -> Result<()> {
    // SAFETY: C-HANDLE.
    let bits = unsafe { hdl.read() }.bits();
    if let Some(mut collected) = collecting(member, bits) {
        return collected.wait(&member.world);
    }
    // SAFETY: C-HANDLE.
    unsafe { hdl.write(armci_hdl_t::of(0)) };
    member.world.wait_for(&mut NbHandle::from_bits(bits & !AGGREGATES))
}

/// # Safety
/// C-HANDLE, not NULL.
unsafe fn test(member: &Member, hdl: *mut armci_hdl_t) -> Result<c_int> {
    // SAFETY: C-HANDLE.
    let bits = unsafe { hdl.read() }.bits();
    if let Some(mut collected) = collecting(member, bits) {
        // What has not been sent can only be waited for.
        collected.wait(&member.world)?;
        return Ok(0);
    }
    Ok((!world()?.test_for(&NbHandle::from_bits(bits & !AGGREGATES))).into())
}

/// Whether operations with this handle, if it is not NULL, are collected.
///
/// # Safety
/// C-HANDLE.
#[inline(always)]
pub(crate) unsafe fn aggregates(hdl: *mut armci_hdl_t) -> bool {
    // SAFETY: C-HANDLE.
    !hdl.is_null() && unsafe { hdl.read() }.bits() & AGGREGATES != 0
}

/// Starts an operation that is not collected, with a handle, or with the implicit one for NULL.
///
/// # Safety
/// C-HANDLE.
#[inline(always)]
pub(crate) unsafe fn with_handle(
    hdl: *mut armci_hdl_t,
    start: impl FnOnce(Option<&mut NbHandle>) -> Result<()>,
) -> Result<()> {
    if hdl.is_null() {
        return start(None);
    }
    // SAFETY: C-HANDLE.
    let mut handle = NbHandle::from_bits(unsafe { hdl.read() }.bits() & !AGGREGATES);
    let started = start(Some(&mut handle));
    // SAFETY: C-HANDLE.
    unsafe { hdl.write(armci_hdl_t::of(handle.to_bits())) };
    started
}

/// How an operation with a handle begins.
pub(crate) enum Start<'a> {
    /// By itself; without a handle it has the implicit one.
    Alone(Option<&'a mut NbHandle>),
    /// Together with others.
    Collected(&'a mut Collected),
}

impl<'a> Start<'a> {
    /// The handle for an operation that is not collected; what was goes first.
    pub(crate) fn alone(self) -> Option<&'a mut NbHandle> {
        match self {
            Start::Alone(handle) => handle,
            Start::Collected(collected) => {
                collected.aggregate.send();
                Some(&mut collected.others)
            }
        }
    }
}

/// Starts an operation with a handle, or with the implicit one for NULL.
///
/// # Safety
/// C-HANDLE.
#[inline]
pub(crate) unsafe fn start(
    member: &Member,
    hdl: *mut armci_hdl_t,
    start: impl FnOnce(Start<'_>) -> Result<()>,
) -> Result<()> {
    // SAFETY: C-HANDLE.
    unsafe {
        if aggregates(hdl)
            && let Some(mut collected) = collecting(member, hdl.read().bits())
        {
            return start(Start::Collected(&mut collected));
        }
        with_handle(hdl, |handle| start(Start::Alone(handle)))
    }
}
