//! Contiguous transfers. The constants have ARMCI-MPI's values.
//!
//! # Safety
//! C-BUFFER and C-HANDLE, as in `transfer`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use crate::abi::{c_constants, c_functions};
use crate::arguments::flag;
use crate::handle::armci_hdl_t;
use crate::member::{member, world};
use crate::sync::raise;
use crate::transfer::{Scale, Shape, When, accumulate, accumulate_row, get, get_row, put, put_row};

c_constants! {
    /// `int`.
    ARMCI_ACC_INT = 0;
    /// `long`.
    ARMCI_ACC_LNG = 1;
    /// `float`.
    ARMCI_ACC_FLT = 2;
    /// `double`.
    ARMCI_ACC_DBL = 3;
    /// A pair of `float`.
    ARMCI_ACC_CPL = 4;
    /// A pair of `double`.
    ARMCI_ACC_DCP = 5;
}

c_functions! {
    /// Copies `size` bytes to `dst` on `target`.
    code fn ARMCI_Put = PARMCI_Put(src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int) -> c_int =
        // SAFETY: C-BUFFER.
        move || unsafe { put_row(world()?, src, dst, size, target, When::Now) };

    /// Copies `size` bytes from `src` on `target`.
    code fn ARMCI_Get = PARMCI_Get(src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int) -> c_int =
        // SAFETY: C-BUFFER.
        move || unsafe { get_row(world()?, src, dst, size, target, When::Now) };

    /// Adds `*scale` times the elements at `src` to those at `dst` on `proc`.
    code fn ARMCI_Acc = PARMCI_Acc(
        datatype: c_int, scale: *mut c_void, src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER.
        move || unsafe { accumulate_row(world()?, Scale { datatype, at: scale }, src, dst, bytes, proc, When::Now) };

    /// [`ARMCI_Put`], then sets `*flag` on `proc` to `value`: who finds the flag finds the data.
    code fn ARMCI_Put_flag = PARMCI_Put_flag(
        src: *mut c_void, dst: *mut c_void, size: c_int, flag_at: *mut c_int, value: c_int, proc: c_int
    ) -> c_int = move || {
        let world = world()?;
        let flag = flag(world, proc, flag_at)?;
        // SAFETY: C-BUFFER.
        unsafe { put_row(world, src, dst, size, proc, When::Now)? };
        raise(world, flag, value)
    };

    /// Starts [`ARMCI_Put`].
    code fn ARMCI_NbPut = PARMCI_NbPut(
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-BUFFER, C-HANDLE.
        move || unsafe {
            match When::Later(hdl) {
                later if later.collects() => put(member()?, src, dst, &Shape::row(bytes)?, proc, later),
                later => put_row(world()?, src, dst, bytes, proc, later),
            }
        };

    /// Starts [`ARMCI_Get`].
    code fn ARMCI_NbGet = PARMCI_NbGet(
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-BUFFER, C-HANDLE.
        move || unsafe {
            match When::Later(hdl) {
                later if later.collects() => get(member()?, src, dst, &Shape::row(bytes)?, proc, later),
                later => get_row(world()?, src, dst, bytes, proc, later),
            }
        };

    /// Starts [`ARMCI_Acc`].
    code fn ARMCI_NbAcc = PARMCI_NbAcc(
        datatype: c_int, scale: *mut c_void,
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-BUFFER, C-HANDLE.
        move || unsafe {
            let scale = Scale { datatype, at: scale };
            match When::Later(hdl) {
                later if later.collects() => {
                    accumulate(member()?, scale, src, dst, &Shape::row(bytes)?, proc, later)
                }
                later => accumulate_row(world()?, scale, src, dst, bytes, proc, later),
            }
        };
}
