//! Applying an accumulate under the target's element locks.
//!
//! Rows are cut where lock stripes end; a lock is kept over consecutive rows of
//! one stripe and given up before the next is taken.
//!
//! # Safety
//! PATCH-MAPPED for both sides is the caller's; ELEMENT-LOCK: elements of a
//! rank's memory change under the lock of their stripe, by every accumulate.
#![allow(unsafe_code)]

use super::kernels::{ElementKind, accumulate_bytes};
use super::locks::{ElementLocks, STRIPE_BYTES};
use crate::copy::Patch;

/// Adds `alpha` times the patch at `src` to the patch at `dst`, which lies at `offset` of the slot that `locks` guard.
///
/// # Safety
/// PATCH-MAPPED on both sides; rows are whole elements of `kind`, aligned at `dst`.
#[inline]
pub(crate) unsafe fn apply_patch(
    locks: &ElementLocks,
    offset: u64,
    dst: *mut u8,
    src: *const u8,
    patch: &Patch,
    kind: ElementKind,
    alpha: &[u8; 16],
) {
    // SAFETY: passed on.
    unsafe {
        match patch.single_row() {
            Some(bytes) => apply_row(locks, offset, dst, src, bytes, kind, alpha),
            None => apply_rows(locks, offset as usize, dst, src, patch, kind, alpha),
        }
    }
}

/// [`apply_patch`] of one row.
///
/// # Safety
/// As [`apply_patch`].
#[inline]
pub(crate) unsafe fn apply_row(
    locks: &ElementLocks,
    offset: u64,
    dst: *mut u8,
    src: *const u8,
    bytes: usize,
    kind: ElementKind,
    alpha: &[u8; 16],
) {
    let offset = offset as usize;
    // Most accumulates: a row inside a stripe, here without a loop and without a patch.
    if offset % STRIPE_BYTES + bytes <= STRIPE_BYTES {
        if bytes > 0 {
            let _held = locks.of(offset).lock();
            // SAFETY: PATCH-MAPPED, ELEMENT-LOCK.
            unsafe { accumulate_bytes(kind, dst, src, bytes, alpha) };
        }
    } else {
        // SAFETY: passed on.
        unsafe { apply_rows(locks, offset, dst, src, &Patch::new(&[], &[], &[bytes]), kind, alpha) };
    }
}

/// Any patch, row by row and stripe by stripe.
///
/// # Safety
/// As [`apply_patch`].
#[inline(never)]
unsafe fn apply_rows(
    locks: &ElementLocks,
    offset: usize,
    dst: *mut u8,
    src: *const u8,
    patch: &Patch,
    kind: ElementKind,
    alpha: &[u8; 16],
) {
    let element = kind.size();
    let mut held = None;
    let visit = |row_dst: *mut u8, row_src: *const u8, bytes: usize| {
        let mut done = 0;
        while done < bytes {
            let at = offset + (row_dst as usize - dst as usize) + done;
            // A 16-byte element that two stripes share belongs to the one it begins in.
            let piece = (STRIPE_BYTES - at % STRIPE_BYTES).next_multiple_of(element).min(bytes - done);
            let stripe = at / STRIPE_BYTES;
            if !matches!(&held, Some((of, _)) if *of == stripe) {
                // First give up the old one: nobody holds two.
                drop(held.take());
                held = Some((stripe, locks.of(at).lock()));
            }
            // SAFETY: PATCH-MAPPED, ELEMENT-LOCK, and pieces are whole elements.
            unsafe { accumulate_bytes(kind, row_dst.add(done), row_src.add(done), piece, alpha) };
            done += piece;
        }
    };
    // SAFETY: PATCH-MAPPED.
    unsafe { patch.for_each_row(dst, src, visit) };
}
