//! The innermost two levels of a strided copy: many rows of one length.
//!
//! Guarantees that each row is moved like [`copy`](super::copy) moves it. Lengths that codes use (a few numbers, a
//! line, some lines) have loops of their own in which the row is a fixed handful of vectors; all others share a
//! loop per width of vector, without a call per row up to eight vectors.
//!
//! # Safety
//! **PLANE-MAPPED**: `plane.rows` rows of `plane.row` bytes, `dst_stride` and `src_stride` apart, are mapped behind
//! both pointers. LANE-ENABLED as in [`Lane`]; RACY-BYTES as in [`copy`](super::copy).
#![allow(unsafe_code)]

use super::contiguous::{copy_long, copy_short};
use super::isa::Level;
use super::lane::{Lane, Narrow, prefetch, prefetch_for_writing};
use super::patch::Plane;
use super::{copy, move_8};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

/// Copies one plane: requires PLANE-MAPPED, and the row and level it was chosen for.
pub(super) type CopyPlane = unsafe fn(*mut u8, *const u8, &Plane);

/// The loop for rows of `row` bytes with the vectors of `level`.
pub(super) fn choose(row: usize, level: Level) -> CopyPlane {
    match row {
        8 => at::<Fixed<8>>(level),
        16 => at::<Fixed<16>>(level),
        24 => at::<Fixed<24>>(level),
        32 => at::<Fixed<32>>(level),
        40 => at::<Fixed<40>>(level),
        48 => at::<Fixed<48>>(level),
        64 => at::<Fixed<64>>(level),
        96 => at::<Fixed<96>>(level),
        128 => at::<Fixed<128>>(level),
        256 => at::<Fixed<256>>(level),
        ..=16 => at::<Tiny>(level),
        _ => at::<Any>(level),
    }
}

fn at<R: Row>(level: Level) -> CopyPlane {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => plane_avx512::<R>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => plane_avx2::<R>,
        _ => plane::<Narrow, R>,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn plane_avx512<R: Row>(dst: *mut u8, src: *const u8, shape: &Plane) {
    // SAFETY: PLANE-MAPPED; LANE-ENABLED by this function's feature.
    unsafe { plane::<__m512i, R>(dst, src, shape) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn plane_avx2<R: Row>(dst: *mut u8, src: *const u8, shape: &Plane) {
    // SAFETY: PLANE-MAPPED; LANE-ENABLED by this function's feature.
    unsafe { plane::<__m256i, R>(dst, src, shape) }
}

/// The loop over rows. Strides defeat the hardware's prefetching where rows are short, so the row `R::AHEAD` further
/// on is asked for on both sides, once in `R::GROUP` rows, as long as there is such a row.
///
/// # Safety
/// PLANE-MAPPED, LANE-ENABLED for `V`, and `R` can move rows of this length.
#[inline(always)]
unsafe fn plane<V: Lane, R: Row>(mut dst: *mut u8, mut src: *const u8, shape: &Plane) {
    let ahead = (shape.dst_stride.wrapping_mul(R::AHEAD), shape.src_stride.wrapping_mul(R::AHEAD));
    let mut left = shape.rows;
    while left > R::AHEAD + R::GROUP {
        ask(dst.wrapping_add(ahead.0), src.wrapping_add(ahead.1), R::asked(shape.row));
        for _ in 0..R::GROUP {
            // SAFETY: PLANE-MAPPED, more than `GROUP` rows are left.
            unsafe { step::<V, R>(&mut dst, &mut src, shape) };
        }
        left -= R::GROUP;
    }
    for _ in 0..left {
        // SAFETY: PLANE-MAPPED.
        unsafe { step::<V, R>(&mut dst, &mut src, shape) };
    }
}

/// Moves a row and goes to the next. (A closure would not do: it would not inherit the vector features.)
///
/// # Safety
/// As [`plane`], and a row is left.
#[inline(always)]
unsafe fn step<V: Lane, R: Row>(dst: &mut *mut u8, src: &mut *const u8, shape: &Plane) {
    // SAFETY: PLANE-MAPPED.
    unsafe { R::move_row::<V>(*dst, *src, shape) };
    *dst = dst.wrapping_add(shape.dst_stride);
    *src = src.wrapping_add(shape.src_stride);
}

/// Prefetches a row of `bytes`, line by line.
#[inline(always)]
fn ask(dst: *const u8, src: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        prefetch(src.wrapping_add(line));
        prefetch_for_writing(dst.wrapping_add(line));
    }
}

/// How one row is moved.
trait Row {
    /// How many rows ahead to ask.
    const AHEAD: usize;
    /// In how many rows to ask once.
    const GROUP: usize;

    /// The bytes to ask for of a row of `row` bytes.
    #[inline(always)]
    fn asked(row: usize) -> usize {
        row
    }

    /// # Safety
    /// BOTH-MAPPED for `row` bytes, LANE-ENABLED for `V`, and a length the implementor is for.
    unsafe fn move_row<V: Lane>(dst: *mut u8, src: *const u8, shape: &Plane);
}

/// Rows of exactly `BYTES`, a multiple of 8: vectors of falling width, no loop left after inlining.
struct Fixed<const BYTES: usize>;

impl<const BYTES: usize> Row for Fixed<BYTES> {
    const AHEAD: usize = if BYTES <= 16 {
        32
    } else if BYTES <= 64 {
        16
    } else {
        8
    };
    const GROUP: usize = if BYTES <= 16 { 4 } else { 1 };

    #[inline(always)]
    fn asked(_row: usize) -> usize {
        BYTES
    }

    #[inline(always)]
    unsafe fn move_row<V: Lane>(dst: *mut u8, src: *const u8, shape: &Plane) {
        debug_assert_eq!(shape.row, BYTES);
        // SAFETY: BOTH-MAPPED: the pieces follow one another and end at `BYTES`.
        unsafe {
            let at = pieces::<V, BYTES>(dst, src, 0);
            let at = pieces::<V::Half, BYTES>(dst, src, at);
            let at = pieces::<Narrow, BYTES>(dst, src, at);
            if at < BYTES {
                move_8(dst.add(at), src.add(at));
            }
        }
    }
}

/// As many whole vectors as fit between `at` and `BYTES`; returns where they end.
///
/// # Safety
/// As [`Row::move_row`].
#[inline(always)]
unsafe fn pieces<V: Lane, const BYTES: usize>(dst: *mut u8, src: *const u8, mut at: usize) -> usize {
    while at + V::SIZE <= BYTES {
        // SAFETY: BOTH-MAPPED, within `BYTES`.
        unsafe { V::load(src.add(at)).store(dst.add(at)) };
        at += V::SIZE;
    }
    at
}

/// Rows of up to 16 bytes.
struct Tiny;

impl Row for Tiny {
    const AHEAD: usize = 32;
    const GROUP: usize = 4;

    #[inline(always)]
    unsafe fn move_row<V: Lane>(dst: *mut u8, src: *const u8, shape: &Plane) {
        // SAFETY: passed on.
        unsafe { copy(dst, src, shape.row) }
    }
}

/// Rows of more than 16 bytes.
struct Any;

impl Row for Any {
    const AHEAD: usize = 4;
    const GROUP: usize = 1;

    /// Long rows give the hardware time to see them.
    #[inline(always)]
    fn asked(row: usize) -> usize {
        if row <= 1024 { row } else { 0 }
    }

    #[inline(always)]
    unsafe fn move_row<V: Lane>(dst: *mut u8, src: *const u8, shape: &Plane) {
        // SAFETY: passed on, each within its range of lengths.
        unsafe {
            if shape.row <= 8 * V::SIZE {
                copy_short::<V>(dst, src, shape.row);
            } else {
                copy_long(dst, src, shape.row, shape.whole);
            }
        }
    }
}
