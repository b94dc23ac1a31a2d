//! C's arguments, checked and in our types.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Display;

use armci_core::{Error, GlobalPtr, Result, World};

/// The rank that `proc` names.
#[inline]
pub(crate) fn rank(world: &World, proc: c_int) -> Result<usize> {
    let size = world.size();
    match usize::try_from(proc) {
        Ok(rank) if rank < size => Ok(rank),
        Ok(rank) => Err(Error::Rank { rank, size }),
        Err(_) => Err(Error::Argument(format!("rank {proc} does not exist: the job has {size} ranks"))),
    }
}

/// A length or number that must not be negative.
#[inline]
pub(crate) fn count<N: TryInto<usize> + Display + Copy>(number: N, what: &str) -> Result<usize> {
    number.try_into().map_err(|_| Error::Argument(format!("{what} is {number}, which is negative")))
}

/// Refuses a null pointer.
#[inline]
pub(crate) fn present<T>(pointer: *const T, what: &str) -> Result<()> {
    if pointer.is_null() { Err(Error::Argument(format!("{what} is NULL"))) } else { Ok(()) }
}

/// The place of `address` in the memory of `proc`.
#[inline]
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
