//! `y += alpha * x` on raw memory: what accumulate does once the element locks are held.
//!
//! Guarantees the arithmetic of [`ElementKind`]'s types to the bit on every path: vectors of any width and the
//! plain loop give the same results, and `alpha == 1` adds `x` as it is. Each aligned element is read and written
//! whole, so a concurrent get never sees half of one. It does not make the update atomic: two accumulates to the
//! same elements must exclude each other, which is the caller's affair, as is the walk over a strided patch
//! ([`Patch::for_each_row`](crate::copy::Patch::for_each_row)).
//!
//! # Safety
//! **UPDATE-EXCLUSIVE**: nobody else updates the target's elements while the call runs (the caller holds the locks
//! of their stripes); others may read them. **BOTH-MAPPED** and **RACY-BYTES** as in [`crate::copy`]: source and
//! target are reached through raw pointers only. Source and target may be the same elements, but must not overlap
//! otherwise.
#![allow(unsafe_code)]

mod element;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod loops;

pub use element::{Arithmetic, ElementKind};

use num_complex::{Complex32, Complex64};

/// An element type that can be accumulated.
pub trait Accumulate: Arithmetic {
    /// Its number on the wire.
    const KIND: ElementKind;

    /// `dst[i] += alpha * src[i]` for `n` elements.
    ///
    /// # Safety
    /// BOTH-MAPPED for `n` elements, UPDATE-EXCLUSIVE; `dst` is aligned to the element, `src` need not be.
    #[inline(always)]
    unsafe fn accumulate(dst: *mut Self, src: *const Self, n: usize, alpha: Self) {
        debug_assert!(dst.is_aligned());
        // SAFETY: passed on.
        unsafe {
            if n == 1 {
                loops::one(dst, src, alpha);
            } else {
                loops::many(dst, src, n, alpha);
            }
        }
    }
}

macro_rules! accumulate {
    ($($t:ty => $kind:ident),* $(,)?) => { $(
        impl Accumulate for $t {
            const KIND: ElementKind = ElementKind::$kind;
        }

        const _: () = assert!(size_of::<$t>() == ElementKind::$kind.size() && align_of::<$t>() == ElementKind::$kind.align());
    )* };
}

accumulate!(i32 => I32, i64 => I64, f32 => F32, f64 => F64, Complex32 => C32, Complex64 => C64);

/// [`Accumulate::accumulate`] for an element type known only by its number, as it comes in a message: `bytes` of
/// elements, and `alpha` in the first `kind.size()` of its bytes. Bytes beyond the last whole element are left out.
///
/// # Safety
/// As [`Accumulate::accumulate`], for the elements of `kind`.
#[inline]
pub unsafe fn accumulate_bytes(kind: ElementKind, dst: *mut u8, src: *const u8, bytes: usize, alpha: &[u8; 16]) {
    // SAFETY: passed on.
    unsafe {
        match kind {
            ElementKind::I32 => typed::<i32>(dst, src, bytes, alpha),
            ElementKind::I64 => typed::<i64>(dst, src, bytes, alpha),
            ElementKind::F32 => typed::<f32>(dst, src, bytes, alpha),
            ElementKind::F64 => typed::<f64>(dst, src, bytes, alpha),
            ElementKind::C32 => typed::<Complex32>(dst, src, bytes, alpha),
            ElementKind::C64 => typed::<Complex64>(dst, src, bytes, alpha),
        }
    }
}

/// # Safety
/// As [`accumulate_bytes`].
#[inline(always)]
unsafe fn typed<T: Accumulate>(dst: *mut u8, src: *const u8, bytes: usize, alpha: &[u8; 16]) {
    let alpha = bytemuck::pod_read_unaligned(&alpha[..size_of::<T>()]);
    // SAFETY: passed on; whole elements only.
    unsafe { T::accumulate(dst.cast(), src.cast(), bytes / size_of::<T>(), alpha) }
}

/// `alpha` as [`accumulate_bytes`] wants it.
#[inline]
pub fn alpha_bytes<T: Accumulate>(alpha: T) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&alpha));
    bytes
}

#[cfg(test)]
mod tests;
