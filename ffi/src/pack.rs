//! Patches gathered into a dense buffer and scattered out of it, within this process.
//!
//! # Safety
//! C-BUFFER and C-ARRAY, as in `transfer`.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use armci_core::{Result, copy_strided};

use crate::abi::c_functions;
use crate::arguments::present;
use crate::transfer::Shape;

c_functions! {
    /// Copies the patch at `ptr` into `buf`, densely. (The patch is what is written out.)
    answer fn armci_write_strided(
        ptr: *mut c_void, stride_levels: c_int, stride_arr: *mut c_int, count: *mut c_int, buf: *mut c_char
    ) =
        // SAFETY: C-BUFFER, C-ARRAY.
        || unsafe {
            let shape = shape(ptr, stride_levels, stride_arr, count, buf)?.dense_there();
            copy_strided(buf.cast::<u8>(), ptr.cast::<u8>(), &shape.as_strided())
        };

    /// Copies what lies densely in `buf` into the patch at `ptr`. (The patch is what is read in.)
    answer fn armci_read_strided(
        ptr: *mut c_void, stride_levels: c_int, stride_arr: *mut c_int, count: *mut c_int, buf: *mut c_char
    ) =
        // SAFETY: C-BUFFER, C-ARRAY.
        || unsafe {
            let shape = shape(ptr, stride_levels, stride_arr, count, buf)?.dense_here();
            copy_strided(ptr.cast::<u8>(), buf.cast::<u8>(), &shape.as_strided())
        };
}

/// # Safety
/// C-ARRAY.
unsafe fn shape(
    patch: *const c_void,
    levels: c_int,
    strides: *const c_int,
    counts: *const c_int,
    dense: *const c_char,
) -> Result<Shape> {
    // SAFETY: C-ARRAY.
    let shape = unsafe { Shape::strided(counts, strides, strides, levels)? };
    if !shape.is_empty() {
        present(patch, "the patch")?;
        present(dense, "the buffer")?;
    }
    Ok(shape)
}
