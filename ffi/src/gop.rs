//! The message layer: global operations.
//!
//! # Safety
//! C-BUFFER, as in `collective`. C-STRING: an operation's name ends with a zero byte. C-GROUP, as in `group`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_double, c_float, c_int, c_long, c_void};

use armci_core::{Error, Number, Reduce, Result};

use crate::abi::{LongLong, c_constants, c_functions};
use crate::arguments::{present, text, unknown};
use crate::collective::{SCOPE_ALL, SCOPE_NODE, elements, scope};
use crate::group::{ARMCI_Group, known};
use crate::groups::Group;
use crate::member::primary;

c_constants! {
    /// `int`.
    ARMCI_INT = 0;
    /// `long`.
    ARMCI_LONG = 1;
    /// `long long`.
    ARMCI_LONG_LONG = 2;
    /// `float`.
    ARMCI_FLOAT = 3;
    /// `double`.
    ARMCI_DOUBLE = 4;
}

/// The exports for one C type, by table.
macro_rules! operations {
    ($($all:ident, $group:ident, $node:ident: $type:ty = $kind:ident;)*) => {
        c_functions! {$(
            /// Combines elements of all ranks.
            answer fn $all(x: *mut $type, n: c_int, op: *mut c_char) =
                // SAFETY: C-BUFFER, C-STRING.
                || unsafe { combine(primary()?.1.groups.world(), SCOPE_ALL, x.cast(), n, op, $kind) };

            /// Combines elements of the ranks of a group.
            answer fn $group(x: *mut $type, n: c_int, op: *mut c_char, group: *mut ARMCI_Group) =
                // SAFETY: C-BUFFER, C-STRING, C-GROUP.
                || unsafe { combine(&*known(primary()?.1, group)?, SCOPE_ALL, x.cast(), n, op, $kind) };

            /// Combines elements of the ranks of this node.
            answer fn $node(x: *mut $type, n: c_int, op: *mut c_char) =
                // SAFETY: C-BUFFER, C-STRING.
                || unsafe { combine(primary()?.1.groups.world(), SCOPE_NODE, x.cast(), n, op, $kind) };
        )*

            /// Combines elements of the ranks of a scope.
            answer fn armci_msg_gop_scope(of: c_int, x: *mut c_void, n: c_int, op: *mut c_char, kind: c_int) =
                // SAFETY: C-BUFFER, C-STRING.
                || unsafe { combine(primary()?.1.groups.world(), of, x, n, op, kind) };

            /// Combines elements of the ranks of a group that are of a scope.
            answer fn armci_msg_group_gop_scope(
                of: c_int, x: *mut c_void, n: c_int, op: *mut c_char, kind: c_int, group: *mut ARMCI_Group
            ) =
                // SAFETY: C-BUFFER, C-STRING, C-GROUP.
                || unsafe { combine(&*known(primary()?.1, group)?, of, x, n, op, kind) };

            /// Combines elements of all ranks. The first rank is promised the result; all have it.
            answer fn armci_msg_reduce(x: *mut c_void, n: c_int, op: *mut c_char, kind: c_int) =
                // SAFETY: C-BUFFER, C-STRING.
                || unsafe { combine(primary()?.1.groups.world(), SCOPE_ALL, x, n, op, kind) };

            /// [`armci_msg_reduce`] among the ranks of a scope.
            answer fn armci_msg_reduce_scope(of: c_int, x: *mut c_void, n: c_int, op: *mut c_char, kind: c_int) =
                // SAFETY: C-BUFFER, C-STRING.
                || unsafe { combine(primary()?.1.groups.world(), of, x, n, op, kind) };
        }
    };
}

operations! {
    armci_msg_igop, armci_msg_group_igop, armci_msg_clus_igop: c_int = ARMCI_INT;
    armci_msg_lgop, armci_msg_group_lgop, armci_msg_clus_lgop: c_long = ARMCI_LONG;
    armci_msg_llgop, armci_msg_group_llgop, armci_msg_clus_llgop: LongLong = ARMCI_LONG_LONG;
    armci_msg_fgop, armci_msg_group_fgop, armci_msg_clus_fgop: c_float = ARMCI_FLOAT;
    armci_msg_dgop, armci_msg_group_dgop, armci_msg_clus_dgop: c_double = ARMCI_DOUBLE;
}

/// Combines elements of a type by its number.
///
/// # Safety
/// C-BUFFER, C-STRING.
unsafe fn combine(
    group: &Group,
    scope_of: c_int,
    x: *mut c_void,
    n: c_int,
    op: *const c_char,
    kind: c_int,
) -> Result<()> {
    let combine = match kind {
        ARMCI_INT => combine_as::<i32>,
        ARMCI_LONG | ARMCI_LONG_LONG => combine_as::<i64>,
        ARMCI_FLOAT => combine_as::<f32>,
        ARMCI_DOUBLE => combine_as::<f64>,
        other => return unknown(other, "type", "ARMCI_INT (0), _LONG, _LONG_LONG, _FLOAT and _DOUBLE (4)"),
    };
    // SAFETY: passed on.
    unsafe { combine(group, scope_of, x, n, op) }
}

/// # Safety
/// C-BUFFER, C-STRING.
unsafe fn combine_as<T: Number>(
    group: &Group,
    scope_of: c_int,
    x: *mut c_void,
    n: c_int,
    op: *const c_char,
) -> Result<()> {
    present(op, "the operation's name")?;
    // SAFETY: C-STRING.
    let reduce = operation::<T>(unsafe { CStr::from_ptr(op) })?;
    // SAFETY: C-BUFFER.
    let x = unsafe { elements(x.cast::<T>(), n)? };
    let (world, _) = primary()?;
    match group.scoped(world, scope(scope_of)?)? {
        Some(ranks) => ranks.all_reduce(x, reduce),
        None => Ok(()),
    }
}

/// What an operation's name asks for. As in ARMCI, what follows a known name does not matter: Fortran pads with blanks.
fn operation<T: Number>(name: &CStr) -> Result<Reduce> {
    // A longer name before its beginning.
    const NAMES: [(&str, Reduce); 15] = [
        ("+", Reduce::Sum),
        ("*", Reduce::Product),
        ("max", Reduce::Max),
        ("min", Reduce::Min),
        ("absmax", Reduce::AbsMax),
        ("absmin", Reduce::AbsMin),
        ("or", Reduce::Or),
        ("bor", Reduce::Or),
        ("band", Reduce::And),
        ("land", Reduce::All),
        ("lor", Reduce::Any),
        ("&&", Reduce::All),
        ("||", Reduce::Any),
        ("&", Reduce::And),
        ("|", Reduce::Or),
    ];
    let ours = || NAMES.iter().filter(|(_, reduce)| T::combines(*reduce));
    let known = ours().find(|(prefix, _)| name.to_bytes().starts_with(prefix.as_bytes()));
    known.map(|(_, reduce)| *reduce).ok_or_else(|| {
        let all: Vec<&str> = ours().map(|(name, _)| *name).collect();
        Error::Argument(format!("operation {:?} is unknown: there are {}", text(name), all.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_by_their_first_letters() {
        let of = |name: &CStr| operation::<f64>(name).ok();
        assert_eq!(of(c"+"), Some(Reduce::Sum));
        assert_eq!(of(c"max   "), Some(Reduce::Max));
        assert_eq!(of(c"absmin"), Some(Reduce::AbsMin));
        assert_eq!(of(c"or"), None);
        assert_eq!(operation::<i32>(c"or").ok(), Some(Reduce::Or));
        assert_eq!(operation::<i64>(c"&&").ok(), Some(Reduce::All));
        assert_eq!(operation::<i64>(c"& ").ok(), Some(Reduce::And));
        assert_eq!(operation::<i64>(c"||").ok(), Some(Reduce::Any));
        assert_eq!(operation::<i64>(c"|").ok(), Some(Reduce::Or));
        assert_eq!(of(c""), None);
    }
}
