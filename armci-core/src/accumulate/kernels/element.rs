//! The six element types of accumulate, and their arithmetic.
//!
//! Guarantees that `y + alpha * x` means the same numbers on every path, processor and rank: one multiplication,
//! then one addition, each rounded by itself, never fused; a complex product is `(ar*xr - ai*xi, ar*xi + ai*xr)`;
//! integers wrap. Not guaranteed is which NaN results where both operands are one (IEEE 754 leaves that open).

use bytemuck::Pod;
use num_complex::{Complex32, Complex64};

/// The element types on the wire and in C's `ARMCI_ACC_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ElementKind {
    /// `i32`, `ARMCI_ACC_INT`.
    I32 = 0,
    /// `i64`, `ARMCI_ACC_LNG`.
    I64 = 1,
    /// `f32`, `ARMCI_ACC_FLT`.
    F32 = 2,
    /// `f64`, `ARMCI_ACC_DBL`.
    F64 = 3,
    /// A pair of `f32`, `ARMCI_ACC_CPL`.
    C32 = 4,
    /// A pair of `f64`, `ARMCI_ACC_DCP`.
    C64 = 5,
}

impl ElementKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [ElementKind; 6] = [Self::I32, Self::I64, Self::F32, Self::F64, Self::C32, Self::C64];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    /// The alignment a target must have.
    #[inline]
    pub const fn align(self) -> usize {
        match self {
            Self::I32 | Self::F32 | Self::C32 => 4,
            Self::I64 | Self::F64 | Self::C64 => 8,
        }
    }

    /// The kind whose number came in a message, or nothing if there is none such.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        if (number as usize) < Self::ALL.len() { Some(Self::ALL[number as usize]) } else { None }
    }
}

/// The arithmetic of one element type; sealed, as the kinds are numbered.
pub trait Arithmetic: Pod + PartialEq {
    /// The number that leaves `x` as it is.
    const ONE: Self;
    /// `y + x`.
    fn plus(y: Self, x: Self) -> Self;
    /// `alpha * x`.
    fn times(alpha: Self, x: Self) -> Self;
    /// 64 bytes of them in a register.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    #[allow(private_bounds)] // sealed: nobody names it
    type Of64: super::lanes::Lanes<Self>;
    /// 32 bytes of them in a register.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    #[allow(private_bounds)]
    type Of32: super::lanes::Lanes<Self>;
}

macro_rules! integer {
    ($($t:ident: $of_64:ident, $of_32:ident);*) => { $(
        impl Arithmetic for $t {
            #[cfg(target_arch = "x86_64")]
            type Of64 = std::arch::x86_64::$of_64;
            #[cfg(target_arch = "x86_64")]
            type Of32 = std::arch::x86_64::$of_32;
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(y: Self, x: Self) -> Self {
                y.wrapping_add(x)
            }
            #[inline(always)]
            fn times(alpha: Self, x: Self) -> Self {
                alpha.wrapping_mul(x)
            }
        }
    )* };
}

macro_rules! real {
    ($($t:ident: $of_64:ident, $of_32:ident);*) => { $(
        impl Arithmetic for $t {
            #[cfg(target_arch = "x86_64")]
            type Of64 = std::arch::x86_64::$of_64;
            #[cfg(target_arch = "x86_64")]
            type Of32 = std::arch::x86_64::$of_32;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn plus(y: Self, x: Self) -> Self {
                y + x
            }
            #[inline(always)]
            fn times(alpha: Self, x: Self) -> Self {
                alpha * x
            }
        }
    )* };
}

macro_rules! complex {
    ($($t:ident: $of_64:ident, $of_32:ident);*) => { $(
        impl Arithmetic for $t {
            #[cfg(target_arch = "x86_64")]
            type Of64 = std::arch::x86_64::$of_64;
            #[cfg(target_arch = "x86_64")]
            type Of32 = std::arch::x86_64::$of_32;
            const ONE: Self = $t::new(1.0, 0.0);
            #[inline(always)]
            fn plus(y: Self, x: Self) -> Self {
                $t::new(y.re + x.re, y.im + x.im)
            }
            #[inline(always)]
            fn times(alpha: Self, x: Self) -> Self {
                $t::new(alpha.re * x.re - alpha.im * x.im, alpha.re * x.im + alpha.im * x.re)
            }
        }
    )* };
}

integer!(i32: __m512i, __m256i; i64: __m512i, __m256i);
real!(f32: __m512, __m256; f64: __m512d, __m256d);
complex!(Complex32: __m512, __m256; Complex64: __m512d, __m256d);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_agree() {
        for (number, kind) in ElementKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(ElementKind::from_number(number as u8), Some(kind));
            assert_eq!(kind.size() % kind.align(), 0);
        }
        assert_eq!(ElementKind::from_number(6), None);
    }
}
