//! What reductions combine, and how.

use std::ops::{Add, Mul};

use bytemuck::Pod;
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result};

/// How a reduction combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduce {
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Product,
    /// The smallest. Not of complex numbers.
    Min,
    /// The largest. Not of complex numbers.
    Max,
    /// The smallest absolute value. Not of complex numbers.
    AbsMin,
    /// The largest absolute value. Not of complex numbers.
    AbsMax,
    /// Bit by bit, whether it is set in all. Integers only.
    And,
    /// Bit by bit, whether it is set in any. Integers only.
    Or,
    /// 1 if none is 0, otherwise 0. Integers only.
    All,
    /// 1 if any is not 0, otherwise 0. Integers only.
    Any,
}

/// A number that reductions combine: `i32`, `i64`, `u64`, `f32`, `f64`, `Complex32`, `Complex64`.
pub trait Number: Pod + sealed::Sealed {
    /// `self` and `other`, combined; `self` where there is no such combination of these numbers.
    fn combine(self, reduce: Reduce, other: Self) -> Self;

    /// Whether there is such a combination.
    fn combines(reduce: Reduce) -> bool;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integers {
    ($($number:ty: $abs:expr);* $(;)?) => {$(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            #[inline]
            fn combine(self, reduce: Reduce, other: Self) -> Self {
                let abs: fn($number) -> $number = $abs;
                match reduce {
                    Reduce::Sum => self.wrapping_add(other),
                    Reduce::Product => self.wrapping_mul(other),
                    Reduce::Min => self.min(other),
                    Reduce::Max => self.max(other),
                    Reduce::AbsMin => abs(self).min(abs(other)),
                    Reduce::AbsMax => abs(self).max(abs(other)),
                    Reduce::And => self & other,
                    Reduce::Or => self | other,
                    Reduce::All => <$number>::from(self != 0 && other != 0),
                    Reduce::Any => <$number>::from(self != 0 || other != 0),
                }
            }

            fn combines(_: Reduce) -> bool {
                true
            }
        }
    )*};
}
integers! {
    i32: i32::wrapping_abs;
    i64: i64::wrapping_abs;
    u64: |value| value;
    usize: |value| value;
}

macro_rules! reals {
    ($($number:ty),*) => {$(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            #[inline]
            fn combine(self, reduce: Reduce, other: Self) -> Self {
                match reduce {
                    Reduce::Sum => self.add(other),
                    Reduce::Product => self.mul(other),
                    Reduce::Min => self.min(other),
                    Reduce::Max => self.max(other),
                    Reduce::AbsMin => self.abs().min(other.abs()),
                    Reduce::AbsMax => self.abs().max(other.abs()),
                    Reduce::And | Reduce::Or | Reduce::All | Reduce::Any => self,
                }
            }

            fn combines(reduce: Reduce) -> bool {
                !matches!(reduce, Reduce::And | Reduce::Or | Reduce::All | Reduce::Any)
            }
        }
    )*};
}
reals!(f32, f64);

macro_rules! complexes {
    ($($number:ty),*) => {$(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            #[inline]
            fn combine(self, reduce: Reduce, other: Self) -> Self {
                match reduce {
                    Reduce::Sum => self + other,
                    Reduce::Product => self * other,
                    _ => self,
                }
            }

            fn combines(reduce: Reduce) -> bool {
                matches!(reduce, Reduce::Sum | Reduce::Product)
            }
        }
    )*};
}
complexes!(Complex32, Complex64);

/// Refuses a combination that there is none of.
pub(super) fn check<T: Number>(reduce: Reduce) -> Result<()> {
    if T::combines(reduce) {
        return Ok(());
    }
    Err(Error::Argument(format!("{} cannot be reduced by {reduce:?}", std::any::type_name::<T>())))
}
