//! The numbers of linear algebra.

use std::fmt::Debug;
use std::ops::Neg;

use ndarray::{Array2, ArrayView2, LinalgScalar};
use num_complex::{Complex, Complex32, Complex64};

use super::eigen::dense;
use crate::math::Element;

/// A number that linear algebra is done with: `f32`, `f64`, `Complex32`, `Complex64`.
///
/// All that elements do ([`Element`]), and what factors and eigenvalues are computed with.
pub trait Scalar: Element + LinalgScalar + Neg<Output = Self> + Debug + sealed::Sealed {
    /// The real numbers of this precision.
    type Real: Scalar<Real = Self::Real>;

    /// Whether there are others than the real ones.
    const IS_COMPLEX: bool;

    /// The sum of the absolute values of real and imaginary part: what pivots are chosen by, as LAPACK does.
    fn size(self) -> f64;

    /// The real part.
    fn real(self) -> f64;

    /// A real number.
    fn of_real(value: f64) -> Self;

    /// The eigenvalues, ascending, and if wanted the eigenvectors, as columns, of the Hermitian matrix whose lower
    /// triangle this is.
    #[doc(hidden)]
    fn eigen(lower: ArrayView2<'_, Self>, vectors: bool) -> Option<(Vec<Self::Real>, Array2<Self>)>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($number:ident),*) => {$(
        impl sealed::Sealed for $number {}
        impl Scalar for $number {
            type Real = $number;
            const IS_COMPLEX: bool = false;

            #[inline]
            fn size(self) -> f64 {
                f64::from(self.abs())
            }

            #[inline]
            fn real(self) -> f64 {
                f64::from(self)
            }

            #[inline]
            fn of_real(value: f64) -> Self {
                value as $number
            }

            fn eigen(lower: ArrayView2<'_, Self>, vectors: bool) -> Option<(Vec<Self>, Array2<Self>)> {
                dense::eigen(lower, vectors, |value| value)
            }
        }

        impl sealed::Sealed for Complex<$number> {}
        impl Scalar for Complex<$number> {
            type Real = $number;
            const IS_COMPLEX: bool = true;

            #[inline]
            fn size(self) -> f64 {
                f64::from(self.l1_norm())
            }

            #[inline]
            fn real(self) -> f64 {
                f64::from(self.re)
            }

            #[inline]
            fn of_real(value: f64) -> Self {
                Complex::new(value as $number, 0.0)
            }

            fn eigen(lower: ArrayView2<'_, Self>, vectors: bool) -> Option<(Vec<$number>, Array2<Self>)> {
                dense::eigen(lower, vectors, |value| value.re)
            }
        }
    )*};
}
scalars!(f32, f64);

const _: fn() = || {
    fn is<T: Scalar>() {}
    is::<Complex32>();
    is::<Complex64>();
};
