//! Transfers of many segments.
//!
//! Segments go one after the other. The first that is wrong stops the call; the line it writes names it, and those
//! before it have been transferred.
//!
//! # Safety
//! C-ARRAY: `iov_len` descriptors, each with `ptr_array_len` addresses on either side. C-BUFFER for each segment.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use armci_core::{Error, Result};

use crate::abi::{Layout, c_functions};
use crate::arguments::{count, present, rank};
use crate::member::world;
use crate::transfer::{Scale, Shape, accumulate, get, put};

/// Segments of one length.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct armci_giov_t {
    /// Where each segment comes from.
    pub src_ptr_array: *mut *mut c_void,
    /// Where each goes.
    pub dst_ptr_array: *mut *mut c_void,
    /// How long each is.
    pub bytes: c_int,
    /// How many there are.
    pub ptr_array_len: c_int,
}

pub(crate) const LAYOUT: Layout = Layout {
    name: "armci_giov_t",
    size: size_of::<armci_giov_t>(),
    fields: &[
        ("src_ptr_array", offset_of!(armci_giov_t, src_ptr_array)),
        ("dst_ptr_array", offset_of!(armci_giov_t, dst_ptr_array)),
        ("bytes", offset_of!(armci_giov_t, bytes)),
        ("ptr_array_len", offset_of!(armci_giov_t, ptr_array_len)),
    ],
};

c_functions! {
    /// Copies segments to `proc`.
    code fn ARMCI_PutV(iov: *mut armci_giov_t, iov_len: c_int, proc: c_int) -> c_int = || {
        let world = world()?;
        rank(world, proc)?;
        // SAFETY: C-ARRAY, C-BUFFER.
        unsafe { for_each_segment(iov, iov_len, |src, dst, shape| put(world, src, dst, shape, proc)) }
    };

    /// Copies segments from `proc`.
    code fn ARMCI_GetV(iov: *mut armci_giov_t, iov_len: c_int, proc: c_int) -> c_int = || {
        let world = world()?;
        rank(world, proc)?;
        // SAFETY: C-ARRAY, C-BUFFER.
        unsafe { for_each_segment(iov, iov_len, |src, dst, shape| get(world, src, dst, shape, proc)) }
    };

    /// Adds `*scale` times the elements of segments to those on `proc`.
    code fn ARMCI_AccV(datatype: c_int, scale: *mut c_void, iov: *mut armci_giov_t, iov_len: c_int, proc: c_int) -> c_int = || {
        let world = world()?;
        rank(world, proc)?;
        let scale = Scale { datatype, at: scale };
        // SAFETY: C-ARRAY, C-BUFFER.
        unsafe { for_each_segment(iov, iov_len, |src, dst, shape| accumulate(world, scale, src, dst, shape, proc)) }
    };
}

/// Calls `transfer(src, dst, shape)` for every segment, up to the first that fails.
///
/// # Safety
/// C-ARRAY.
unsafe fn for_each_segment(
    iov: *const armci_giov_t,
    iov_len: c_int,
    transfer: impl Fn(*mut c_void, *mut c_void, &Shape) -> Result<()>,
) -> Result<()> {
    let descriptors = count(iov_len, "the number of descriptors")?;
    if descriptors > 0 {
        present(iov, "the array of descriptors")?;
    }
    for index in 0..descriptors {
        // SAFETY: C-ARRAY.
        let vector = unsafe { iov.add(index).read() };
        let segments = count(vector.ptr_array_len, "the number of segments")?;
        if segments > 0 {
            present(vector.src_ptr_array, "the array of sources")?;
            present(vector.dst_ptr_array, "the array of destinations")?;
        }
        let shape = Shape::row(vector.bytes)?;
        for segment in 0..segments {
            // SAFETY: C-ARRAY.
            let (src, dst) = unsafe { (*vector.src_ptr_array.add(segment), *vector.dst_ptr_array.add(segment)) };
            transfer(src, dst, &shape)
                .map_err(|error| Error::Argument(format!("descriptor {index}, segment {segment}: {error}")))?;
        }
    }
    Ok(())
}
