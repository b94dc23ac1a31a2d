//! One vector register seen as bytes to be moved: the parameter of every copy loop.
//!
//! Guarantees that a copy loop exists once for all vector widths. It does not check that the processor has the
//! instructions: a loop over a [`Lane`] is inlined into a function that enables them.
//!
//! # Safety
//! **LANE-ENABLED**: a wide lane is used only inside a function whose `target_feature` covers it, and such a
//! function is called only at the [`Level`](super::isa::Level) that promises the feature. **IN-RANGE**: the caller
//! vouches for `SIZE` readable or writable bytes behind each pointer. The bytes may be written by other ranks
//! meanwhile; they are moved as opaque bits by single machine moves and never compared or branched upon.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A vector register.
///
/// # Safety
/// `load` and the two stores touch exactly `SIZE` bytes, and `SIZE` is a power of two.
pub(super) unsafe trait Lane: Copy {
    /// The next narrower lane; the narrowest is its own half.
    type Half: Lane;
    const SIZE: usize;

    /// # Safety
    /// LANE-ENABLED, and `from` has `SIZE` readable bytes at any alignment.
    unsafe fn load(from: *const u8) -> Self;
    /// # Safety
    /// LANE-ENABLED, and `to` has `SIZE` writable bytes at any alignment.
    unsafe fn store(self, to: *mut u8);
    /// A store past the caches, unordered until [`fence`].
    ///
    /// # Safety
    /// As [`Lane::store`], and `to` is aligned to `SIZE`.
    unsafe fn stream(self, to: *mut u8);
}

/// Orders streamed stores before everything that follows.
#[inline(always)]
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `sfence` belongs to SSE, which every x86-64 processor has.
    unsafe {
        _mm_sfence();
    }
}

/// Asks for the line at `at` to be brought in for writing; a hint, harmless at any address.
#[inline(always)]
pub(super) fn prefetch_for_writing(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address; a processor without this one takes it for a no-op. (The
    // intrinsic would become a prefetch for reading, as the feature is not in the baseline.)
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for the line at `at` to be brought in; a hint, harmless at any address.
#[inline(always)]
pub(super) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86_lane {
    ($lane:ty, half $half:ty, $size:literal, $load:ident, $store:ident, $stream:ident) => {
        // SAFETY: each method is one intrinsic that touches exactly `$size` bytes.
        unsafe impl Lane for $lane {
            type Half = $half;
            const SIZE: usize = $size;

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: LANE-ENABLED, IN-RANGE.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: LANE-ENABLED, IN-RANGE.
                unsafe { $store(to.cast(), self) }
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: LANE-ENABLED, IN-RANGE, and the caller vouches for the alignment.
                unsafe { $stream(to.cast(), self) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_lane!(__m128i, half __m128i, 16, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128);
#[cfg(target_arch = "x86_64")]
x86_lane!(__m256i, half __m128i, 32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256);
#[cfg(target_arch = "x86_64")]
x86_lane!(__m512i, half __m256i, 64, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512);

/// The lane every processor of the architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) type Narrow = __m128i;

/// Two words, for architectures without a lane of their own: the compiler makes one vector register of them.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Narrow([u64; 2]);

#[cfg(not(target_arch = "x86_64"))]
// SAFETY: each method reads or writes one value of 16 bytes.
unsafe impl Lane for Narrow {
    type Half = Narrow;
    const SIZE: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: IN-RANGE.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: IN-RANGE.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: IN-RANGE; without a streaming store a plain one keeps the promise.
        unsafe { self.store(to) }
    }
}
