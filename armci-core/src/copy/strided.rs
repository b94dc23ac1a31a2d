//! Strided copies: a patch of rows between two layouts.
//!
//! Guarantees what [`copy`](super::copy) guarantees, for every row. The row loop that suits the (merged) row length
//! is chosen once, then every plane of the patch runs through it. It does not look for a better order of the
//! levels: the caller's innermost level is the inner loop.
//!
//! # Safety
//! PATCH-MAPPED as in [`Patch`](super::Patch), RACY-BYTES as in [`copy`](super::copy).
#![allow(unsafe_code)]

use super::copy;
use super::isa::isa;
use super::patch::Patch;
use super::rows::choose;

/// Copies a patch from `src` to `dst`.
///
/// Source and target must not overlap, and target rows must not overlap one another, or the
/// overlapped bytes end up as some mixture.
///
/// # Safety
/// PATCH-MAPPED: every row `patch` describes is readable from `src` and writable from `dst`.
pub unsafe fn copy_patch(dst: *mut u8, src: *const u8, patch: &Patch) {
    let plane = patch.plane();
    if plane.rows == 1 {
        // SAFETY: PATCH-MAPPED: the only row, or one of an empty patch, which has no bytes.
        return unsafe { copy(dst, src, plane.row) };
    }
    let copy_plane = choose(plane.row, isa().level);
    // SAFETY: PATCH-MAPPED, the row loop was chosen for this row and level.
    patch.for_each_plane(dst, src, |to, from| unsafe { copy_plane(to, from, &plane) });
}
