//! Strided transfers.
//!
//! # Safety
//! C-BUFFER and C-ARRAY, as in `transfer`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use crate::abi::c_functions;
use crate::member::world;
use crate::transfer::{Scale, Shape, accumulate, get, put};

c_functions! {
    /// Copies a patch to `proc`.
    code fn ARMCI_PutS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int,
        dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY.
        || unsafe {
            let shape = Shape::strided(count, src_stride_ar, dst_stride_ar, stride_levels)?;
            put(world()?, src_ptr, dst_ptr, &shape, proc)
        };

    /// Copies a patch from `proc`.
    code fn ARMCI_GetS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int,
        dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY.
        || unsafe {
            let shape = Shape::strided(count, dst_stride_ar, src_stride_ar, stride_levels)?;
            get(world()?, src_ptr, dst_ptr, &shape, proc)
        };

    /// Adds `*scale` times a patch to that on `proc`.
    code fn ARMCI_AccS(
        datatype: c_int, scale: *mut c_void,
        src_ptr: *mut c_void, src_stride_ar: *mut c_int,
        dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY.
        || unsafe {
            let shape = Shape::strided(count, src_stride_ar, dst_stride_ar, stride_levels)?;
            accumulate(world()?, Scale { datatype, at: scale }, src_ptr, dst_ptr, &shape, proc)
        };
}
