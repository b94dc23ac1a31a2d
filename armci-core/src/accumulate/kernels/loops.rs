//! The loop of accumulate, compiled once for each width of vector.
//!
//! The loop is plain Rust, written once: it has no carried dependence and no reassociation, so the compiler turns
//! it into vectors of whatever the enclosing function enables, with the very same roundings; the narrow instance is
//! the scalar twin of the others. Guarantees the same bits at every level; it does not check for overlap beyond
//! what the compiler does for itself.
//!
//! # Safety
//! BOTH-MAPPED, RACY-BYTES and UPDATE-EXCLUSIVE as in [`super`].
#![allow(unsafe_code)]

use super::element::Arithmetic;
use crate::copy::isa::{Level, isa};

/// From here it pays to bring the target to a line's start first, so that no vector is split between two.
const ALIGN_FROM: usize = 1 << 10;

/// One element: a load, at most a product and a sum, a store.
///
/// # Safety
/// As [`super::Accumulate::accumulate`], one element.
#[inline(always)]
pub(super) unsafe fn one<T: Arithmetic>(dst: *mut T, src: *const T, alpha: T) {
    // SAFETY: BOTH-MAPPED; `dst` is aligned.
    unsafe {
        let x = src.read_unaligned();
        let x = if alpha == T::ONE { x } else { T::times(alpha, x) };
        dst.write(T::plus(dst.read(), x));
    }
}

/// Any number of elements, by the widest vectors there are.
///
/// # Safety
/// As [`super::Accumulate::accumulate`].
#[inline]
pub(super) unsafe fn many<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on; each function is called at its own level.
    unsafe {
        match isa().level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512(dst, src, n, alpha),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2(dst, src, n, alpha),
            _ => narrow(dst, src, n, alpha),
        }
    }
}

/// # Safety
/// As [`many`], at [`Level::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn avx512<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on.
    unsafe { scaled_or_not(dst, src, n, alpha) }
}

/// # Safety
/// As [`many`], at [`Level::Avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on.
    unsafe { scaled_or_not(dst, src, n, alpha) }
}

/// # Safety
/// As [`many`].
pub(super) unsafe fn narrow<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on.
    unsafe { scaled_or_not(dst, src, n, alpha) }
}

/// Decides by `alpha` alone, so that every path decides alike.
///
/// # Safety
/// As [`many`].
#[inline(always)]
unsafe fn scaled_or_not<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on.
    unsafe {
        if alpha == T::ONE {
            aligned(dst, src, n, |x| x);
        } else {
            aligned(dst, src, n, |x| T::times(alpha, x));
        }
    }
}

/// # Safety
/// As [`many`].
#[inline(always)]
unsafe fn aligned<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, scale: impl Fn(T) -> T + Copy) {
    let mut head = 0;
    if n * size_of::<T>() >= ALIGN_FROM {
        head = ((dst as usize).wrapping_neg() % 64) / size_of::<T>();
    }
    // SAFETY: passed on; `head` is less than 64 bytes of at least `ALIGN_FROM`.
    unsafe {
        each(dst, src, head, scale);
        each(dst.add(head), src.add(head), n - head, scale);
    }
}

/// The loop.
///
/// # Safety
/// As [`many`].
#[inline(always)]
unsafe fn each<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, scale: impl Fn(T) -> T) {
    for i in 0..n {
        // SAFETY: BOTH-MAPPED; `dst` is aligned, UPDATE-EXCLUSIVE.
        unsafe {
            let y = dst.add(i);
            y.write(T::plus(y.read(), scale(src.add(i).read_unaligned())));
        }
    }
}
