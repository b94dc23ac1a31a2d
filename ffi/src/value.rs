//! Single values.
//!
//! # Safety
//! EXPORT (see `abi`). C-HANDLE, as in `handle`.
#![allow(unsafe_code)]

use std::ffi::{c_double, c_float, c_int, c_long, c_void};

use crate::abi::c_functions;
use crate::arguments::place;
use crate::handle::{armci_hdl_t, start};
use crate::member::{member, world};

/// The exports for one C type, by table.
macro_rules! values {
    ($($put:ident = $pput:ident, $nbput:ident = $pnbput:ident, $get:ident = $pget:ident: $type:ty;)*) => {
        c_functions! {$(
            /// Stores one value at `dst` on `proc`.
            code fn $put = $pput(src: $type, dst: *mut c_void, proc: c_int) -> c_int = || {
                let world = world()?;
                world.put_value(src, place(world, proc, dst)?.cast())
            };

            /// Starts to store one value at `dst` on `proc`, which is passed and so locally complete at once.
            code fn $nbput = $pnbput(src: $type, dst: *mut c_void, proc: c_int, hdl: *mut armci_hdl_t) -> c_int = || {
                let member = member()?;
                let place = place(&member.world, proc, dst)?.cast();
                // SAFETY: C-HANDLE.
                unsafe {
                    start(member, hdl, |start| {
                        start.alone();
                        member.world.put_value(src, place)
                    })
                }
            };

            /// Fetches the value at `src` on `proc`; has no way to fail but to end the job.
            answer fn $get = $pget(src: *mut c_void, proc: c_int) -> $type = || {
                let world = world()?;
                world.get_value(place(world, proc, src)?.cast())
            };
        )*}
    };
}

values! {
    ARMCI_PutValueInt = PARMCI_PutValueInt, ARMCI_NbPutValueInt = PARMCI_NbPutValueInt,
        ARMCI_GetValueInt = PARMCI_GetValueInt: c_int;
    ARMCI_PutValueLong = PARMCI_PutValueLong, ARMCI_NbPutValueLong = PARMCI_NbPutValueLong,
        ARMCI_GetValueLong = PARMCI_GetValueLong: c_long;
    ARMCI_PutValueFloat = PARMCI_PutValueFloat, ARMCI_NbPutValueFloat = PARMCI_NbPutValueFloat,
        ARMCI_GetValueFloat = PARMCI_GetValueFloat: c_float;
    ARMCI_PutValueDouble = PARMCI_PutValueDouble, ARMCI_NbPutValueDouble = PARMCI_NbPutValueDouble,
        ARMCI_GetValueDouble = PARMCI_GetValueDouble: c_double;
}
