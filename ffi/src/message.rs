//! The message layer: who is there, and collectives.
//!
//! # Safety
//! C-BUFFER: the elements that buffer and length name are the caller's alone during the call, as `armci.h` demands: no
//! rank transfers to or from them, either, so they are a slice here. C-STRING: an
//! operation's name ends with a zero byte.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_double, c_float, c_int, c_long, c_void};

use armci_core::{Error, Number, Reduce, Result};

use crate::abi::{LongLong, c_functions};
use crate::arguments::{count, present, rank};
use crate::entry;
use crate::member::world;

c_functions! {
    /// This rank.
    answer fn armci_msg_me() -> c_int = || world().map(|world| world.rank() as c_int);

    /// How many ranks there are.
    answer fn armci_msg_nproc() -> c_int = || world().map(|world| world.size() as c_int);

    /// All ranks meet. Completes their transfers, too, which ARMCI does not promise here.
    answer fn armci_msg_barrier() = || world()?.barrier();

    /// Ends the job with `code`, or with 1 if the code would look like success. Any thread may.
    answer fn armci_msg_abort(code: c_int) = || {
        entry::say("armci_msg_abort", &format_args!("code {code}"));
        entry::end(code)
    };

    /// Gives every rank the bytes that `root` has.
    // SAFETY: C-BUFFER.
    answer fn armci_msg_brdcst(buffer: *mut c_void, len: c_int, root: c_int) = || unsafe { broadcast(buffer, len, root) };

    /// [`armci_msg_brdcst`] by its other name.
    // SAFETY: C-BUFFER.
    answer fn armci_msg_bcast(buffer: *mut c_void, len: c_int, root: c_int) = || unsafe { broadcast(buffer, len, root) };

    /// Combines the `int`s of all ranks, element by element.
    // SAFETY: C-BUFFER, C-STRING.
    answer fn armci_msg_igop(x: *mut c_int, n: c_int, op: *mut c_char) = || unsafe { reduce(x, n, op, i32::wrapping_abs) };

    /// Combines the `long`s of all ranks.
    // SAFETY: C-BUFFER, C-STRING.
    answer fn armci_msg_lgop(x: *mut c_long, n: c_int, op: *mut c_char) = || unsafe { reduce(x, n, op, i64::wrapping_abs) };

    /// Combines the `long long`s of all ranks.
    answer fn armci_msg_llgop(x: *mut LongLong, n: c_int, op: *mut c_char) =
        // SAFETY: C-BUFFER, C-STRING.
        || unsafe { reduce(x.cast::<i64>(), n, op, i64::wrapping_abs) };

    /// Combines the `float`s of all ranks.
    // SAFETY: C-BUFFER, C-STRING.
    answer fn armci_msg_fgop(x: *mut c_float, n: c_int, op: *mut c_char) = || unsafe { reduce(x, n, op, f32::abs) };

    /// Combines the `double`s of all ranks.
    // SAFETY: C-BUFFER, C-STRING.
    answer fn armci_msg_dgop(x: *mut c_double, n: c_int, op: *mut c_char) = || unsafe { reduce(x, n, op, f64::abs) };
}

/// # Safety
/// C-BUFFER.
unsafe fn broadcast(buffer: *mut c_void, len: c_int, root: c_int) -> Result<()> {
    let world = world()?;
    let root = rank(world, root)?;
    // SAFETY: C-BUFFER.
    world.broadcast(root, unsafe { elements(buffer.cast::<u8>(), len)? })
}

/// Combines; `magnitude` is what `absmax` and `absmin` see of an element.
///
/// # Safety
/// C-BUFFER, C-STRING.
unsafe fn reduce<T: Number>(x: *mut T, n: c_int, op: *const c_char, magnitude: fn(T) -> T) -> Result<()> {
    let world = world()?;
    present(op, "the operation's name")?;
    // SAFETY: C-STRING.
    let (reduce, of_magnitudes) = operation(unsafe { CStr::from_ptr(op) })?;
    // SAFETY: C-BUFFER.
    let x = unsafe { elements(x, n)? };
    if of_magnitudes {
        x.iter_mut().for_each(|x| *x = magnitude(*x));
    }
    world.all_reduce(x, reduce)
}

/// What an operation's name asks for, and whether of the elements' magnitudes. As in ARMCI, what follows a known
/// name does not matter: Fortran pads with blanks.
fn operation(name: &CStr) -> Result<(Reduce, bool)> {
    const NAMES: [(&[u8], Reduce, bool); 6] = [
        (b"+", Reduce::Sum, false),
        (b"*", Reduce::Product, false),
        (b"max", Reduce::Max, false),
        (b"min", Reduce::Min, false),
        (b"absmax", Reduce::Max, true),
        (b"absmin", Reduce::Min, true),
    ];
    let known = NAMES.iter().find(|(prefix, ..)| name.to_bytes().starts_with(prefix));
    let unknown =
        || Error::Argument(format!("operation {name:?} is unknown: there are +, *, max, min, absmax, absmin"));
    known.map(|(_, reduce, of_magnitudes)| (*reduce, *of_magnitudes)).ok_or_else(unknown)
}

/// A buffer as a slice.
///
/// # Safety
/// C-BUFFER.
unsafe fn elements<'a, T>(buffer: *mut T, number: c_int) -> Result<&'a mut [T]> {
    let number = count(number, "the number of elements")?;
    if number == 0 {
        return Ok(&mut []);
    }
    present(buffer, "the buffer")?;
    if !buffer.is_aligned() {
        return Err(Error::Argument(format!(
            "the buffer at {buffer:?} is not aligned to its {}-byte elements",
            size_of::<T>()
        )));
    }
    // SAFETY: C-BUFFER; not NULL, aligned.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer, number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_by_their_first_letters() {
        let of = |name: &CStr| operation(name).ok();
        assert_eq!(of(c"+"), Some((Reduce::Sum, false)));
        assert_eq!(of(c"max   "), Some((Reduce::Max, false)));
        assert_eq!(of(c"absmin"), Some((Reduce::Min, true)));
        assert_eq!(of(c"or"), None);
        assert_eq!(of(c""), None);
    }
}
