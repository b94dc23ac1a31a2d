//! Mutexes: one set at a time, some on each rank.
//!
//! # Safety
//! EXPORT (see `abi`); nothing else here is unsafe.
#![allow(unsafe_code)]

use std::ffi::c_int;

use armci_core::{Error, Mutexes, Result};

use crate::abi::c_functions;
use crate::arguments::{count, rank};
use crate::member::{member, primary};

c_functions! {
    /// Makes `count` mutexes on this rank. Collective; one set exists at a time.
    code fn ARMCI_Create_mutexes = PARMCI_Create_mutexes(number: c_int) -> c_int = || {
        let (world, primary) = primary()?;
        // Who is wrong asks for more than can be, so that all are told alike.
        let mine = if primary.mutexes.borrow().is_some() { None } else { usize::try_from(number).ok() };
        let created = Mutexes::create(world, mine.unwrap_or(usize::MAX));
        if mine.is_none() {
            count(number, "the number of mutexes")?;
            return Err(Error::Argument("mutexes exist already: destroy them first".into()));
        }
        *primary.mutexes.borrow_mut() = Some(created?);
        Ok(())
    };

    /// Frees the mutexes. Collective.
    code fn ARMCI_Destroy_mutexes = PARMCI_Destroy_mutexes() -> c_int = || {
        let (_, primary) = primary()?;
        let mutexes = primary.mutexes.borrow_mut().take();
        mutexes.ok_or_else(none)?.destroy()
    };

    /// Locks mutex `mutex` of `proc`.
    answer fn ARMCI_Lock = PARMCI_Lock(mutex: c_int, proc: c_int) =
        || with(mutex, proc, |mutexes, proc, mutex| mutexes.lock(proc, mutex));

    /// Unlocks it, after completing all that this rank wrote.
    answer fn ARMCI_Unlock = PARMCI_Unlock(mutex: c_int, proc: c_int) = || {
        member()?.aggregates.send();
        with(mutex, proc, |mutexes, proc, mutex| mutexes.unlock(proc, mutex))
    };
}

fn none() -> Error {
    Error::Argument("there are no mutexes: ARMCI_Create_mutexes makes some".into())
}

fn with(mutex: c_int, proc: c_int, run: impl FnOnce(&Mutexes, usize, usize) -> Result<()>) -> Result<()> {
    let (world, primary) = primary()?;
    let (proc, mutex) = (rank(world, proc)?, count(mutex, "the mutex")?);
    let mutexes = primary.mutexes.borrow();
    run(mutexes.as_ref().ok_or_else(none)?, proc, mutex)
}
