//! Contiguous transfers. The constants have ARMCI-MPI's values.
//!
//! # Safety
//! C-BUFFER, as in `transfer`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use crate::abi::{c_constants, c_functions};
use crate::member::world;
use crate::transfer::{Scale, Shape, accumulate, get, put};

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
    code fn ARMCI_Put(src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int) -> c_int =
        // SAFETY: C-BUFFER.
        || unsafe { put(world()?, src, dst, &Shape::row(size)?, target) };

    /// Copies `size` bytes from `src` on `target`.
    code fn ARMCI_Get(src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int) -> c_int =
        // SAFETY: C-BUFFER.
        || unsafe { get(world()?, src, dst, &Shape::row(size)?, target) };

    /// Adds `*scale` times the elements at `src` to those at `dst` on `proc`.
    code fn ARMCI_Acc(datatype: c_int, scale: *mut c_void, src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int) -> c_int =
        // SAFETY: C-BUFFER.
        || unsafe { accumulate(world()?, Scale { datatype, at: scale }, src, dst, &Shape::row(bytes)?, proc) };
}
