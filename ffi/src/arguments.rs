//! C's arguments, checked and in our types.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Display;

use armci_core::{Error, GlobalPtr, Result, World};

/// The rank that `proc` names.
#[inline(always)]
pub(crate) fn rank(world: &World, proc: c_int) -> Result<usize> {
    match usize::try_from(proc) {
        Ok(rank) if rank < world.size() => Ok(rank),
        _ => Err(no_rank(world.size(), proc)),
    }
}

#[cold]
#[inline(never)]
fn no_rank(size: usize, proc: c_int) -> Error {
    match usize::try_from(proc) {
        Ok(rank) => Error::Rank { rank, size },
        Err(_) => Error::Argument(format!("rank {proc} does not exist: the job has {size} ranks")),
    }
}

/// A length or number that must not be negative.
#[inline(always)]
pub(crate) fn count<N: TryInto<usize> + Display + Copy>(number: N, what: &str) -> Result<usize> {
    match number.try_into() {
        Ok(count) => Ok(count),
        Err(_) => Err(negative(number, what)),
    }
}

// By value: a number that is only passed on stays in its register where nothing is wrong with it.
#[cold]
#[inline(never)]
fn negative<N: Display>(number: N, what: &str) -> Error {
    Error::Argument(format!("{what} is {number}, which is negative"))
}

/// Refuses a null pointer.
#[inline(always)]
pub(crate) fn present<T>(pointer: *const T, what: &str) -> Result<()> {
    if pointer.is_null() { Err(null(what)) } else { Ok(()) }
}

#[cold]
#[inline(never)]
fn null(what: &str) -> Error {
    Error::Argument(format!("{what} is NULL"))
}

/// The place of `address` in the memory of `proc`.
// Always: handed over in memory, field by field, and read as a whole, it would take longer than finding it.
#[inline(always)]
pub(crate) fn place(world: &World, proc: c_int, address: *mut c_void) -> Result<GlobalPtr<u8>> {
    world.locate(rank(world, proc)?, address.cast())
}

/// The flag at `address` in the memory of `proc`, which must be an aligned `int`.
#[inline]
pub(crate) fn flag(world: &World, proc: c_int, address: *mut c_int) -> Result<GlobalPtr<c_int>> {
    if !address.is_aligned() {
        return Err(Error::Argument(format!(
            "the flag at {address:?} is not aligned to its {} bytes",
            size_of::<c_int>()
        )));
    }
    Ok(place(world, proc, address.cast())?.cast())
}

/// Refuses a number that no name of `what` has.
pub(crate) fn unknown<T>(number: c_int, what: &str, known: &str) -> Result<T> {
    Err(Error::Argument(format!("{number} is no {what}: there are {known}")))
}

/// How C text reads in a message.
pub(crate) fn text(text: &CStr) -> String {
    text.to_string_lossy().trim_end().into()
}
