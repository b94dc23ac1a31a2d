//! The message layer: selection. Of records that ranks contribute, all get the one with the largest or smallest first
//! element; among equals, that of the lowest rank.
//!
//! # Safety
//! C-BUFFER, as in `collective`. C-STRING: an operation's name ends with a zero byte.
#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};

use armci_core::{Error, Result};

use crate::abi::c_functions;
use crate::arguments::{present, text, unknown};
use crate::collective::{SCOPE_ALL, elements, scope};
use crate::gop::{ARMCI_DOUBLE, ARMCI_FLOAT, ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG};
use crate::member::primary;

c_functions! {
    /// Selects among the records of all ranks, of `n` bytes each.
    answer fn armci_msg_sel(x: *mut c_void, n: c_int, op: *mut c_char, kind: c_int, contribute: c_int) =
        // SAFETY: C-BUFFER, C-STRING.
        || unsafe { select(SCOPE_ALL, x, n, op, kind, contribute != 0) };

    /// Selects among the records of the ranks of a scope.
    answer fn armci_msg_sel_scope(
        of: c_int, x: *mut c_void, n: c_int, op: *mut c_char, kind: c_int, contribute: c_int
    ) =
        // SAFETY: C-BUFFER, C-STRING.
        || unsafe { select(of, x, n, op, kind, contribute != 0) };
}

/// A first element, of whichever type, as bits; and how such bits compare.
type Compare = fn(u64, u64) -> Ordering;

/// How many bytes the first element has, and how it compares.
fn key(kind: c_int) -> Result<(usize, Compare)> {
    match kind {
        ARMCI_INT => Ok((4, |a, b| (a as i32).cmp(&(b as i32)))),
        ARMCI_LONG | ARMCI_LONG_LONG => Ok((8, |a, b| (a as i64).cmp(&(b as i64)))),
        ARMCI_FLOAT => Ok((4, |a, b| f32::from_bits(a as u32).total_cmp(&f32::from_bits(b as u32)))),
        ARMCI_DOUBLE => Ok((8, |a, b| f64::from_bits(a).total_cmp(&f64::from_bits(b)))),
        other => unknown(other, "type", "ARMCI_INT (0), _LONG, _LONG_LONG, _FLOAT and _DOUBLE (4)"),
    }
}

/// The member whose record is selected, of (whether it contributes, first element) of all; none if nobody contributes.
fn selected(all: &[[u64; 2]], largest: bool, compare: Compare) -> Option<usize> {
    let mut best: Option<(usize, u64)> = None;
    for (member, [contributes, first]) in all.iter().enumerate() {
        let better = |best: u64| compare(*first, best) == if largest { Ordering::Greater } else { Ordering::Less };
        if *contributes != 0 && best.is_none_or(|(_, best)| better(best)) {
            best = Some((member, *first));
        }
    }
    best.map(|(member, _)| member)
}

/// # Safety
/// C-BUFFER, C-STRING.
unsafe fn select(
    scope_of: c_int,
    x: *mut c_void,
    n: c_int,
    op: *const c_char,
    kind: c_int,
    contribute: bool,
) -> Result<()> {
    let (world, primary) = primary()?;
    present(op, "the operation's name")?;
    // SAFETY: C-STRING.
    let name = text(unsafe { CStr::from_ptr(op) });
    let largest = match name {
        ref name if name.starts_with("max") => true,
        ref name if name.starts_with("min") => false,
        name => return Err(Error::Argument(format!("operation {name:?} is unknown: there are max, min"))),
    };
    let (bytes, compare) = key(kind)?;
    // SAFETY: C-BUFFER.
    let record = unsafe { elements(x.cast::<u8>(), n)? };
    if record.len() < bytes {
        return Err(Error::Argument(format!("records of {n} bytes have no first element of {bytes} bytes")));
    }
    let Some(ranks) = primary.groups.world().scoped(world, scope(scope_of)?)? else { return Ok(()) };
    let mut first = [0; 8];
    first[..bytes].copy_from_slice(&record[..bytes]);
    let all = ranks.all_gather(&[u64::from(contribute), u64::from_ne_bytes(first)])?;
    match selected(all.as_chunks().0, largest, compare) {
        Some(member) => ranks.broadcast(member, record),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_equals_is_selected_among_those_that_contribute() {
        let doubles = |values: &[(bool, f64)]| -> Vec<[u64; 2]> {
            values.iter().map(|(contributes, value)| [(*contributes).into(), value.to_bits()]).collect()
        };
        let (_, compare) = key(ARMCI_DOUBLE).unwrap();
        let all = doubles(&[(false, 9.0), (true, -3.0), (true, 5.0), (true, 5.0)]);
        assert_eq!(selected(&all, true, compare), Some(2));
        assert_eq!(selected(&all, false, compare), Some(1));
        assert_eq!(selected(&doubles(&[(false, 1.0)]), true, compare), None);
    }

    #[test]
    fn numbers_compare_as_what_they_are() {
        let (bytes, compare) = key(ARMCI_INT).unwrap();
        assert_eq!((bytes, compare(-1i32 as u32 as u64, 1)), (4, Ordering::Less));
        let (bytes, compare) = key(ARMCI_FLOAT).unwrap();
        assert_eq!((bytes, compare((-1f32).to_bits().into(), 1f32.to_bits().into())), (4, Ordering::Less));
        assert!(key(5).is_err());
    }
}
