//! What the operations need of an element.
//!
//! Sums and products are the runtime's own (those of accumulate): integers wrap, a complex product is not fused. Of
//! complex numbers, the larger is that of the larger modulus, and the absolute value is the modulus, as a complex number.

use std::cmp::Ordering;

use armci_core::{Accumulate, Number};
use num_complex::{Complex32, Complex64};

/// An element that mathematics is done with: `i32`, `i64`, `f32`, `f64`, `Complex32`, `Complex64`.
pub trait Element: Number + Accumulate {
    /// Whether quotients of these numbers by zero are none (of integers; others follow IEEE 754).
    const NEEDS_DIVISOR: bool;

    /// The absolute value; of a complex number its modulus, without imaginary part. (Of the least integer: itself.)
    fn absolute(self) -> Self;

    /// The absolute value, as a real number.
    fn magnitude(self) -> f64;

    /// The complex conjugate; of a real number, itself.
    fn conjugate(self) -> Self;

    /// The quotient. Integers are cut towards zero, wrap, and give 0 where the divisor is 0.
    fn divided_by(self, divisor: Self) -> Self;

    /// Which is larger; complex numbers go by their modulus. Nothing if either is not a number.
    fn compare(self, other: Self) -> Option<Ordering>;

    /// A count, as such a number: rounded, or (integers) wrapped.
    fn from_count(count: usize) -> Self;

    /// The larger of two; `other` where they are equal, and that which is a number where one is none.
    #[inline]
    fn larger(self, other: Self) -> Self {
        self.preferred(other, Ordering::Greater)
    }

    /// The smaller of two; as [`Element::larger`].
    #[inline]
    fn smaller(self, other: Self) -> Self {
        self.preferred(other, Ordering::Less)
    }

    /// `self` if it compares so, or if `other` is not a number; else `other`.
    #[inline]
    fn preferred(self, other: Self, order: Ordering) -> Self {
        match self.compare(other) {
            Some(found) if found == order => self,
            Some(_) => other,
            None if other.compare(other).is_none() => self,
            None => other,
        }
    }

    /// Whether it is zero, of either sign.
    #[inline]
    fn vanishes(self) -> bool {
        self == Self::zeroed()
    }
}

macro_rules! integers {
    ($($number:ty),*) => {$(
        impl Element for $number {
            const NEEDS_DIVISOR: bool = true;

            #[inline]
            fn absolute(self) -> Self {
                self.wrapping_abs()
            }

            #[inline]
            fn magnitude(self) -> f64 {
                self.unsigned_abs() as f64
            }

            #[inline]
            fn conjugate(self) -> Self {
                self
            }

            #[inline]
            fn divided_by(self, divisor: Self) -> Self {
                if divisor == 0 { 0 } else { self.wrapping_div(divisor) }
            }

            #[inline]
            fn compare(self, other: Self) -> Option<Ordering> {
                Some(self.cmp(&other))
            }

            #[inline]
            fn from_count(count: usize) -> Self {
                count as $number
            }
        }
    )*};
}
integers!(i32, i64);

macro_rules! reals {
    ($($number:ty),*) => {$(
        impl Element for $number {
            const NEEDS_DIVISOR: bool = false;

            #[inline]
            fn absolute(self) -> Self {
                self.abs()
            }

            #[inline]
            fn magnitude(self) -> f64 {
                self.abs().into()
            }

            #[inline]
            fn conjugate(self) -> Self {
                self
            }

            #[inline]
            fn divided_by(self, divisor: Self) -> Self {
                self / divisor
            }

            #[inline]
            fn compare(self, other: Self) -> Option<Ordering> {
                self.partial_cmp(&other)
            }

            // (These two as processors have them for many numbers at once.)
            #[inline]
            fn larger(self, other: Self) -> Self {
                if self > other || other.is_nan() { self } else { other }
            }

            #[inline]
            fn smaller(self, other: Self) -> Self {
                if self < other || other.is_nan() { self } else { other }
            }

            #[inline]
            fn from_count(count: usize) -> Self {
                count as $number
            }
        }
    )*};
}
reals!(f32, f64);

macro_rules! complexes {
    ($($number:ident of $real:ty),*) => {$(
        impl Element for $number {
            const NEEDS_DIVISOR: bool = false;

            #[inline]
            fn absolute(self) -> Self {
                $number::new(self.norm(), 0.0)
            }

            #[inline]
            fn magnitude(self) -> f64 {
                self.norm().into()
            }

            #[inline]
            fn conjugate(self) -> Self {
                self.conj()
            }

            /// By the ratio of the divisor's parts (R. L. Smith's way), since the square of its modulus may overflow.
            #[inline]
            fn divided_by(self, divisor: Self) -> Self {
                if divisor.re.abs() >= divisor.im.abs() {
                    let ratio = if divisor.re == 0.0 { 0.0 } else { divisor.im / divisor.re };
                    let whole = divisor.re + divisor.im * ratio;
                    $number::new((self.re + self.im * ratio) / whole, (self.im - self.re * ratio) / whole)
                } else {
                    let ratio = divisor.re / divisor.im;
                    let whole = divisor.re * ratio + divisor.im;
                    $number::new((self.re * ratio + self.im) / whole, (self.im * ratio - self.re) / whole)
                }
            }

            #[inline]
            fn compare(self, other: Self) -> Option<Ordering> {
                self.norm().partial_cmp(&other.norm())
            }

            #[inline]
            fn from_count(count: usize) -> Self {
                $number::new(count as $real, 0.0)
            }
        }
    )*};
}
complexes!(Complex32 of f32, Complex64 of f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_gives_way() {
        assert_eq!(f64::NAN.larger(1.0), 1.0);
        assert_eq!(1.0.smaller(f64::NAN), 1.0);
        assert!(f64::NAN.larger(f64::NAN).is_nan());
        let odd = Complex64::new(0.0, f64::NAN);
        assert_eq!(odd.larger(Complex64::new(0.5, 0.0)), Complex64::new(0.5, 0.0));
        assert_eq!(Complex64::new(3.0, 0.0).larger(Complex64::new(0.0, 4.0)), Complex64::new(0.0, 4.0));
    }

    #[test]
    fn quotients_do_not_overflow_on_the_way() {
        let huge = Complex64::new(1e300, -1e300);
        assert_eq!(huge.divided_by(huge), Complex64::new(1.0, 0.0));
        assert_eq!(Complex64::new(-4.0, 2.0).divided_by(Complex64::new(0.0, 2.0)), Complex64::new(1.0, 2.0));
        assert_eq!(Complex32::new(1.0, 0.0).divided_by(Complex32::new(0.0, 0.0)).re, f32::INFINITY);
        assert_eq!(i32::MIN.divided_by(-1), i32::MIN);
        assert_eq!(7i64.divided_by(0), 0);
        assert_eq!(1.0f64.divided_by(0.0), f64::INFINITY);
    }
}
