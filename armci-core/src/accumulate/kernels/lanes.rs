//! One vector register seen as elements: the parameter of the wide loops of accumulate.
//!
//! Guarantees that each element comes out as [`Arithmetic`](super::Arithmetic) spells it out, to the bit. A complex product in a register
//! of pairs is `ar * (xr, xi) + (-ai, ai) * (xi, xr)`: two products and one sum, each rounded by itself, and adding
//! the negated product is subtracting it. It does not check that the processor has the instructions.
//!
//! # Safety
//! **LANES-ENABLED**: a register type is used only inside a function whose `target_feature` covers it: AVX-512 F, BW,
//! DQ and VL for 64 bytes, AVX2 for the others. **IN-RANGE**: the caller vouches for the elements behind each pointer.
#![allow(unsafe_code)]

use num_complex::{Complex32, Complex64};
use std::arch::x86_64::*;

/// A vector register of elements.
///
/// # Safety
/// `load` and `store` touch exactly `N` elements.
pub(super) unsafe trait Lanes<T>: Copy {
    /// The register of half the size; the smallest is its own half.
    type Half: Lanes<T>;
    /// What a product needs of `alpha`, spread over registers.
    type Factor: Copy;
    /// Elements in a register.
    const N: usize;

    /// # Safety
    /// LANES-ENABLED.
    unsafe fn factor(alpha: T) -> Self::Factor;
    /// # Safety
    /// LANES-ENABLED, IN-RANGE for `N` elements at any alignment.
    unsafe fn load(from: *const T) -> Self;
    /// # Safety
    /// LANES-ENABLED, IN-RANGE for `N` elements at any alignment.
    unsafe fn store(self, to: *mut T);
    /// `self + x`.
    ///
    /// # Safety
    /// LANES-ENABLED.
    unsafe fn plus(self, x: Self) -> Self;
    /// `alpha * self`.
    ///
    /// # Safety
    /// LANES-ENABLED.
    unsafe fn times(self, factor: Self::Factor) -> Self;
}

/// What `alpha` of a complex product is spread to.
#[derive(Clone, Copy)]
pub(super) struct Pair<V> {
    /// `(ar, ar)`, again and again.
    re: V,
    /// `(-ai, ai)`, again and again.
    im: V,
}

/// The methods that differ only in names; `$times` makes a product, `$spread` what it needs.
macro_rules! lanes {
    ($t:ty, $v:ty, half $half:ty, $n:literal, $load:ident, $store:ident, $plus:ident,
     $factor:ty, |$alpha:ident| $spread:expr, |$x:ident, $f:ident| $times:expr) => {
        // SAFETY: `load` and `store` are one intrinsic each that touches the whole register, which is `N` elements.
        unsafe impl Lanes<$t> for $v {
            type Half = $half;
            type Factor = $factor;
            const N: usize = $n;

            #[inline(always)]
            unsafe fn factor($alpha: $t) -> $factor {
                // SAFETY: LANES-ENABLED.
                unsafe { $spread }
            }

            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: LANES-ENABLED, IN-RANGE.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: LANES-ENABLED, IN-RANGE.
                unsafe { $store(to.cast(), self) }
            }

            #[inline(always)]
            unsafe fn plus(self, x: Self) -> Self {
                // SAFETY: LANES-ENABLED.
                unsafe { $plus(self, x) }
            }

            #[inline(always)]
            unsafe fn times(self, $f: $factor) -> Self {
                let $x = self;
                // SAFETY: LANES-ENABLED.
                unsafe { $times }
            }
        }

        const _: () = assert!($n * size_of::<$t>() == size_of::<$v>());
    };
}

/// The product of a register of pairs; swapping exchanges the numbers of each.
macro_rules! complex {
    ($t:ty, $v:ty, half $half:ty, $n:literal, $load:ident, $store:ident, $plus:ident, $mul:ident, $set:ident,
     $swap:expr) => {
        lanes!(
            $t, $v, half $half, $n, $load, $store, $plus, Pair<$v>,
            |alpha| {
                let im = [<$t>::new(-alpha.im, alpha.im); $n];
                Pair { re: $set(alpha.re), im: $load(im.as_ptr().cast()) }
            },
            |x, f| $plus($mul(f.re, x), $mul(f.im, $swap(x)))
        );
    };
}

/// The product of a register of numbers.
macro_rules! plain {
    ($t:ty, $v:ty, half $half:ty, $n:literal, $load:ident, $store:ident, $plus:ident, $mul:ident, $set:ident) => {
        lanes!($t, $v, half $half, $n, $load, $store, $plus, $v, |alpha| $set(alpha), |x, f| $mul(f, x));
    };
}

plain!(f64, __m512d, half __m256d, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_set1_pd);
plain!(f64, __m256d, half __m128d, 4, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_mul_pd, _mm256_set1_pd);
plain!(f64, __m128d, half __m128d, 2, _mm_loadu_pd, _mm_storeu_pd, _mm_add_pd, _mm_mul_pd, _mm_set1_pd);

plain!(f32, __m512, half __m256, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_set1_ps);
plain!(f32, __m256, half __m128, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_set1_ps);
plain!(f32, __m128, half __m128, 4, _mm_loadu_ps, _mm_storeu_ps, _mm_add_ps, _mm_mul_ps, _mm_set1_ps);

plain!(i32, __m512i, half __m256i, 16, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32, _mm512_mullo_epi32,
    _mm512_set1_epi32);
plain!(i32, __m256i, half __m128i, 8, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32, _mm256_mullo_epi32,
    _mm256_set1_epi32);
plain!(i32, __m128i, half __m128i, 4, _mm_loadu_si128, _mm_storeu_si128, _mm_add_epi32, _mm_mullo_epi32, _mm_set1_epi32);

plain!(i64, __m512i, half __m256i, 8, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi64, _mm512_mullo_epi64,
    _mm512_set1_epi64);
plain!(i64, __m256i, half __m128i, 4, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi64, mullo_256,
    _mm256_set1_epi64x);
plain!(i64, __m128i, half __m128i, 2, _mm_loadu_si128, _mm_storeu_si128, _mm_add_epi64, mullo_128, _mm_set1_epi64x);

complex!(Complex64, __m512d, half __m256d, 4, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_mul_pd,
    _mm512_set1_pd, _mm512_permute_pd::<0b0101_0101>);
complex!(Complex64, __m256d, half __m128d, 2, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_mul_pd,
    _mm256_set1_pd, _mm256_permute_pd::<0b0101>);
complex!(Complex64, __m128d, half __m128d, 1, _mm_loadu_pd, _mm_storeu_pd, _mm_add_pd, _mm_mul_pd, _mm_set1_pd,
    _mm_permute_pd::<0b01>);

complex!(Complex32, __m512, half __m256, 8, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_mul_ps,
    _mm512_set1_ps, _mm512_permute_ps::<0b10_11_00_01>);
complex!(Complex32, __m256, half __m128, 4, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_mul_ps,
    _mm256_set1_ps, _mm256_permute_ps::<0b10_11_00_01>);
complex!(Complex32, __m128, half __m128, 2, _mm_loadu_ps, _mm_storeu_ps, _mm_add_ps, _mm_mul_ps, _mm_set1_ps,
    _mm_permute_ps::<0b10_11_00_01>);

/// The low halves of 64-bit products, which AVX2 has no instruction for: `low * low`, and the mixed products, of which
/// only the low halves count, above it.
macro_rules! mullo_epi64 {
    ($name:ident, $v:ty, $add:ident, $mul:ident, $right:ident, $left:ident) => {
        /// # Safety
        /// LANES-ENABLED.
        #[inline(always)]
        unsafe fn $name(a: $v, b: $v) -> $v {
            // SAFETY: LANES-ENABLED.
            unsafe {
                let mixed = $add($mul($right::<32>(a), b), $mul(a, $right::<32>(b)));
                $add($mul(a, b), $left::<32>(mixed))
            }
        }
    };
}

mullo_epi64!(mullo_256, __m256i, _mm256_add_epi64, _mm256_mul_epu32, _mm256_srli_epi64, _mm256_slli_epi64);
mullo_epi64!(mullo_128, __m128i, _mm_add_epi64, _mm_mul_epu32, _mm_srli_epi64, _mm_slli_epi64);
