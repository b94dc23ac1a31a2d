//! The loops of accumulate: one for all widths of vector, and the plain one that they are held against.
//!
//! [`each`] is the arithmetic spelled out; it is what [`narrow`] runs, and so the scalar twin of the wide loop,
//! [`sweep`], which is written once over [`Lanes`]. (Left to the compiler, complex products reach 0.6 to 0.8 of this.)
//! Guarantees the same bits at every level; it does not check for overlap.
//!
//! # Safety
//! BOTH-MAPPED, RACY-BYTES and UPDATE-EXCLUSIVE as in [`super`].
#![allow(unsafe_code)]

use super::element::Arithmetic;
#[cfg(target_arch = "x86_64")]
use super::lanes::Lanes;
use crate::copy::isa::{Level, isa};

/// From here it pays to bring the target to a line's start first, so that no vector is split between two.
#[cfg(target_arch = "x86_64")]
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
    // SAFETY: passed on; LANES-ENABLED by this function's features.
    unsafe {
        if alpha == T::ONE {
            sweep::<T, T::Of64, false>(dst, src, n, alpha);
        } else {
            sweep::<T, T::Of64, true>(dst, src, n, alpha);
        }
    }
}

/// # Safety
/// As [`many`], at [`Level::Avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on; LANES-ENABLED by this function's feature.
    unsafe {
        if alpha == T::ONE {
            sweep::<T, T::Of32, false>(dst, src, n, alpha);
        } else {
            sweep::<T, T::Of32, true>(dst, src, n, alpha);
        }
    }
}

/// # Safety
/// As [`many`].
#[inline(never)] // it would make the frame of whoever chooses among the three
pub(super) unsafe fn narrow<T: Arithmetic>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: passed on.
    unsafe {
        if alpha == T::ONE {
            each::<T, false>(dst, src, n, alpha);
        } else {
            each::<T, true>(dst, src, n, alpha);
        }
    }
}

/// Four registers at a time, then one, then what is left; whether to scale is decided by `alpha` alone, so that every
/// path decides alike.
///
/// # Safety
/// As [`many`], LANES-ENABLED for `V`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sweep<T: Arithmetic, V: Lanes<T>, const SCALED: bool>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    // SAFETY: BOTH-MAPPED: `at` only grows, and whatever is done ends at or before `n`; the head is less than a
    // register of at least `ALIGN_FROM` bytes. UPDATE-EXCLUSIVE. No closures: they would not inherit the features.
    unsafe {
        let factor = V::factor(alpha);
        let mut at = 0;
        if n * size_of::<T>() >= ALIGN_FROM {
            at = (dst as usize).wrapping_neg() % size_of::<V>() / size_of::<T>();
            if at > 0 {
                rest::<T, V, SCALED>(dst, src, at, alpha);
            }
        }
        while at + 4 * V::N <= n {
            let mut four = [V::load(src.add(at)); 4];
            for (i, y) in four.iter_mut().enumerate() {
                *y = update::<T, V, SCALED>(dst.add(at + i * V::N), src.add(at + i * V::N), factor);
            }
            for (i, y) in four.into_iter().enumerate() {
                y.store(dst.add(at + i * V::N));
            }
            at += 4 * V::N;
        }
        while at + V::N <= n {
            update::<T, V, SCALED>(dst.add(at), src.add(at), factor).store(dst.add(at));
            at += V::N;
        }
        if at < n {
            rest::<T, V, SCALED>(dst.add(at), src.add(at), n - at, alpha);
        }
    }
}

/// Fewer elements than a register holds: by smaller registers, then one by one. (Masks would do with one step, but
/// what a masked store wrote is not forwarded to the next load of it.)
///
/// # Safety
/// As [`sweep`], `n < V::N`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn rest<T: Arithmetic, V: Lanes<T>, const SCALED: bool>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    debug_assert!(n < V::N);
    // SAFETY: passed on, piece by piece up to `n`.
    unsafe {
        let at = piece::<T, V::Half, SCALED>(dst, src, 0, n, alpha);
        let at = piece::<T, <V::Half as Lanes<T>>::Half, SCALED>(dst, src, at, n, alpha);
        each::<T, SCALED>(dst.add(at), src.add(at), n - at, alpha);
    }
}

/// A register's worth from `at`, if there is as much before `n`; returns where it ends.
///
/// # Safety
/// As [`sweep`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn piece<T: Arithmetic, V: Lanes<T>, const SCALED: bool>(
    dst: *mut T,
    src: *const T,
    at: usize,
    n: usize,
    alpha: T,
) -> usize {
    if at + V::N > n {
        return at;
    }
    // SAFETY: BOTH-MAPPED up to `n`, UPDATE-EXCLUSIVE, LANES-ENABLED.
    unsafe { update::<T, V, SCALED>(dst.add(at), src.add(at), V::factor(alpha)).store(dst.add(at)) };
    at + V::N
}

/// The new content of a register's worth of elements.
///
/// # Safety
/// As [`sweep`], `V::N` elements.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn update<T: Arithmetic, V: Lanes<T>, const SCALED: bool>(dst: *mut T, src: *const T, factor: V::Factor) -> V {
    // SAFETY: BOTH-MAPPED, LANES-ENABLED.
    unsafe {
        let x = V::load(src);
        V::load(dst).plus(if SCALED { x.times(factor) } else { x })
    }
}

/// The arithmetic, element by element.
///
/// # Safety
/// As [`many`].
#[inline(always)]
pub(super) unsafe fn each<T: Arithmetic, const SCALED: bool>(dst: *mut T, src: *const T, n: usize, alpha: T) {
    for i in 0..n {
        // SAFETY: BOTH-MAPPED; `dst` is aligned, UPDATE-EXCLUSIVE.
        unsafe {
            let (y, x) = (dst.add(i), src.add(i).read_unaligned());
            y.write(T::plus(y.read(), if SCALED { T::times(alpha, x) } else { x }));
        }
    }
}
