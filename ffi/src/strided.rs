//! Strided transfers.
//!
//! # Safety
//! C-BUFFER, C-ARRAY and C-HANDLE, as in `transfer`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use armci_core::Result;

use crate::abi::c_functions;
use crate::arguments::flag;
use crate::handle::armci_hdl_t;
use crate::member::{member, world};
use crate::sync::raise;
use crate::transfer::{self, MAX_LEVELS, Scale, Shape, When, accumulate_row, get_row, put_row};

/// One side of a patch: where it begins, and its strides.
#[derive(Clone, Copy)]
struct Side(*mut c_void, *const c_int);

/// How much: counts, and levels.
#[derive(Clone, Copy)]
struct Extent(*const c_int, c_int);

c_functions! {
    /// Copies a patch to `proc`.
    code fn ARMCI_PutS = PARMCI_PutS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY.
        move || unsafe {
            put(Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar), Extent(count, stride_levels), proc, When::Now)
        };

    /// Copies a patch from `proc`.
    code fn ARMCI_GetS = PARMCI_GetS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY.
        move || unsafe {
            get(Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar), Extent(count, stride_levels), proc, When::Now)
        };

    /// Adds `*scale` times a patch to that on `proc`.
    code fn ARMCI_AccS = PARMCI_AccS(
        datatype: c_int, scale: *mut c_void,
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY.
        move || unsafe {
            let (from, to) = (Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar));
            accumulate(Scale { datatype, at: scale }, from, to, Extent(count, stride_levels), proc, When::Now)
        };

    /// [`ARMCI_PutS`], then sets `*flag` on `proc` to `value`: who finds the flag finds the data.
    code fn ARMCI_PutS_flag = PARMCI_PutS_flag(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, flag_at: *mut c_int, value: c_int, proc: c_int
    ) -> c_int = move || {
        let world = &member()?.world;
        let flag = flag(world, proc, flag_at)?;
        let (from, to) = (Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar));
        // SAFETY: C-BUFFER, C-ARRAY.
        unsafe { put(from, to, Extent(count, stride_levels), proc, When::Now)? };
        raise(world, flag, value)
    };

    /// Starts [`ARMCI_PutS`].
    code fn ARMCI_NbPutS = PARMCI_NbPutS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int, hdl: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY, C-HANDLE.
        move || unsafe {
            let (from, to) = (Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar));
            put(from, to, Extent(count, stride_levels), proc, When::Later(hdl))
        };

    /// Starts [`ARMCI_GetS`].
    code fn ARMCI_NbGetS = PARMCI_NbGetS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int, hdl: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY, C-HANDLE.
        move || unsafe {
            let (from, to) = (Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar));
            get(from, to, Extent(count, stride_levels), proc, When::Later(hdl))
        };

    /// Starts [`ARMCI_AccS`].
    code fn ARMCI_NbAccS = PARMCI_NbAccS(
        datatype: c_int, scale: *mut c_void,
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void, dst_stride_ar: *mut c_int,
        count: *mut c_int, stride_levels: c_int, proc: c_int, hdl: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-BUFFER, C-ARRAY, C-HANDLE.
        move || unsafe {
            let (from, to) = (Side(src_ptr, src_stride_ar), Side(dst_ptr, dst_stride_ar));
            accumulate(Scale { datatype, at: scale }, from, to, Extent(count, stride_levels), proc, When::Later(hdl))
        };
}

impl Extent {
    /// How many bytes it has, if it is one row, as most transfers of small patches are.
    ///
    /// # Safety
    /// C-ARRAY.
    #[inline]
    unsafe fn row(self) -> Option<c_int> {
        let Extent(counts, levels) = self;
        if counts.is_null() || !(0..=MAX_LEVELS as c_int).contains(&levels) {
            return None;
        }
        // SAFETY: C-ARRAY, not NULL.
        unsafe { (1..=levels as usize).all(|level| counts.add(level).read() == 1).then(|| counts.read()) }
    }
}

/// # Safety
/// C-BUFFER, C-ARRAY, C-HANDLE.
#[inline(always)]
unsafe fn put(from: Side, to: Side, extent: Extent, proc: c_int, when: When) -> Result<()> {
    // SAFETY: passed on.
    unsafe {
        if let Some(bytes) = extent.row()
            && !when.collects()
        {
            return put_row(world()?, from.0, to.0, bytes, proc, when);
        }
        let Extent(counts, levels) = extent;
        let mut shape = Shape::nothing();
        shape.describe(counts, from.1, to.1, levels)?;
        transfer::put(member()?, from.0, to.0, &shape, proc, when)
    }
}

/// # Safety
/// C-BUFFER, C-ARRAY, C-HANDLE.
#[inline(always)]
unsafe fn get(from: Side, to: Side, extent: Extent, proc: c_int, when: When) -> Result<()> {
    // SAFETY: passed on.
    unsafe {
        if let Some(bytes) = extent.row()
            && !when.collects()
        {
            return get_row(world()?, from.0, to.0, bytes, proc, when);
        }
        let Extent(counts, levels) = extent;
        let mut shape = Shape::nothing();
        shape.describe(counts, to.1, from.1, levels)?;
        transfer::get(member()?, from.0, to.0, &shape, proc, when)
    }
}

/// # Safety
/// C-BUFFER, C-ARRAY, C-HANDLE; one element is readable at the scale.
#[inline]
unsafe fn accumulate(scale: Scale, from: Side, to: Side, extent: Extent, proc: c_int, when: When) -> Result<()> {
    // SAFETY: passed on.
    unsafe {
        if let Some(bytes) = extent.row()
            && !when.collects()
        {
            return accumulate_row(world()?, scale, from.0, to.0, bytes, proc, when);
        }
        let Extent(counts, levels) = extent;
        let mut shape = Shape::nothing();
        shape.describe(counts, from.1, to.1, levels)?;
        transfer::accumulate(member()?, scale, from.0, to.0, &shape, proc, when)
    }
}
