//! Single values.
//!
//! # Safety
//! EXPORT (see `abi`); nothing else here is unsafe.
#![allow(unsafe_code)]

use std::ffi::{c_double, c_float, c_int, c_long, c_void};

use crate::abi::c_functions;
use crate::arguments::place;
use crate::member::world;

/// The exports for one C type, by table.
macro_rules! values {
    ($($put:ident, $get:ident: $type:ty;)*) => {
        c_functions! {$(
            /// Stores one value at `dst` on `proc`.
            code fn $put(src: $type, dst: *mut c_void, proc: c_int) -> c_int = || {
                let world = world()?;
                world.put_value(src, place(world, proc, dst)?.cast())
            };

            /// Fetches the value at `src` on `proc`; has no way to fail but to end the job.
            answer fn $get(src: *mut c_void, proc: c_int) -> $type = || {
                let world = world()?;
                world.get_value(place(world, proc, src)?.cast())
            };
        )*}
    };
}

values! {
    ARMCI_PutValueInt, ARMCI_GetValueInt: c_int;
    ARMCI_PutValueLong, ARMCI_GetValueLong: c_long;
    ARMCI_PutValueFloat, ARMCI_GetValueFloat: c_float;
    ARMCI_PutValueDouble, ARMCI_GetValueDouble: c_double;
}
