//! Joining, leaving, giving up.
//!
//! # Safety
//! C-STRING: a message is NULL or ends with a zero byte.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};

use armci_core::{Error, Result};

use crate::abi::c_functions;
use crate::arguments::text;
use crate::member::{Threading, threading};
use crate::mpi::{MPI_Comm, mpi};
use crate::{entry, member};

c_functions! {
    /// Joins the job; further calls are counted.
    code fn ARMCI_Init = PARMCI_Init() -> c_int = || member::join(Threading::One, None);

    /// [`ARMCI_Init`]; the arguments of `main` are left as they are.
    code fn ARMCI_Init_args = PARMCI_Init_args(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int =
        || member::join(Threading::One, None);

    /// [`ARMCI_Init`]; with a level of at least `MPI_THREAD_SERIALIZED`, other threads may make calls that are not
    /// collective.
    code fn ARMCI_Init_thread = PARMCI_Init_thread(armci_requested: c_int) -> c_int =
        || member::join(threading(armci_requested)?, None);

    /// [`ARMCI_Init_thread`]; `comm` has all ranks of the job, in its order, and stands for them from here on.
    code fn ARMCI_Init_thread_comm = PARMCI_Init_thread_comm(armci_requested: c_int, comm: MPI_Comm) -> c_int =
        || join_as(comm, threading(armci_requested)?);

    /// [`ARMCI_Init_thread_comm`] without threads, as ComEx has it.
    code fn ARMCI_Init_mpi_comm = PARMCI_Init_mpi_comm(comm: MPI_Comm) -> c_int = || join_as(comm, Threading::One);

    /// Whether [`ARMCI_Init`] was called, and [`ARMCI_Finalize`] not yet as often. Any thread may ask.
    answer fn ARMCI_Initialized = PARMCI_Initialized() -> c_int = || Ok(member::is_joined().into());

    /// Leaves the job, at the call that matches the first [`ARMCI_Init`].
    code fn ARMCI_Finalize = PARMCI_Finalize() -> c_int = member::leave;

    /// Releases what would outlive a rank that gives up. The kernel takes everything back by itself, so there is
    /// nothing to do; being an emergency call, it meets no other rank and is no [`ARMCI_Finalize`].
    answer fn ARMCI_Cleanup() = || Ok(());

    /// Says why, and ends the job with `code`, or with 1 if the code would look like success. Any thread may.
    answer fn ARMCI_Error(msg: *const c_char, code: c_int) = || {
        // SAFETY: C-STRING.
        let text = if msg.is_null() { String::new() } else { text(unsafe { CStr::from_ptr(msg) }) };
        entry::say("ARMCI_Error", &format_args!("{text} (code {code})"));
        entry::end(code)
    };
}

/// Joins as a rank of a communicator.
fn join_as(comm: MPI_Comm, threading: Threading) -> Result<()> {
    let Some(mpi) = mpi().filter(|mpi| mpi.is_running()) else {
        return Err(Error::Job("a communicator was passed, but MPI is not there or not initialised".into()));
    };
    let comm = mpi.passed(comm);
    // Before the job is joined: who is refused may call again.
    mpi.check_order(comm)?;
    member::join(threading, Some(comm))
}
