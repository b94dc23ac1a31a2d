//! Arithmetic, element by element: each operation one line over [`GlobalSlice::apply`] and [`GlobalSlice::combine`].

use std::cell::Cell;

use ndarray::Dimension;

use crate::error::{Error, Result};
use crate::math::element::Element;
use crate::math::operand::Operand;
use crate::math::whole::on_slices_and_arrays;
use crate::slice::GlobalSlice;

on_slices_and_arrays! {
    <T: Element, D where D: Dimension>

    /// Multiplies each element by `alpha` (`GA_Scale`, `NGA_Scale_patch`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn scale(&self, alpha: T) -> Result<()> {
        self.apply(|x| T::times(alpha, x))
    }

    /// Adds `alpha` to each element (`GA_Add_constant`, `GA_Add_constant_patch`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn add_constant(&self, alpha: T) -> Result<()> {
        self.apply(|x| T::plus(x, alpha))
    }

    /// Replaces each element by its absolute value; a complex one by its modulus (`GA_Abs_value`,
    /// `GA_Abs_value_patch`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn abs_value(&self) -> Result<()> {
        self.apply(T::absolute)
    }

    /// Replaces each element by its reciprocal (`GA_Recip`, `GA_Recip_patch`). Collective.
    ///
    /// Unlike Global Arrays, which ends the program at a zero, this follows IEEE 754: the reciprocal of a zero is
    /// infinite. Integers have none: they become 0, and all ranks have the error.
    ///
    /// # Errors
    /// [`Error::DivisionByZero`], [`Error::Elsewhere`], of integers; as [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn reciprocal(&self) -> Result<()> {
        divided(self, |zero| self.apply(|x| {
            if T::NEEDS_DIVISOR && x.vanishes() {
                zero.set(true);
            }
            T::ONE.divided_by(x)
        }))
    }

    /// Makes each element `alpha` times that of `a` plus `beta` times that of `b` (`GA_Add`, `NGA_Add_patch`). Either may be
    /// what is changed. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn add(&self, alpha: T, a: impl Operand<T, D>, beta: T, b: impl Operand<T, D>) -> Result<()> {
        self.combine(a, b, |a, b| T::plus(T::times(alpha, a), T::times(beta, b)))
    }

    /// Makes each element the product of those of `a` and `b` (`GA_Elem_multiply`, `GA_Elem_multiply_patch`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn multiply(&self, a: impl Operand<T, D>, b: impl Operand<T, D>) -> Result<()> {
        self.combine(a, b, T::times)
    }

    /// Makes each element that of `a` divided by that of `b` (`GA_Elem_divide`, `GA_Elem_divide_patch`). Collective.
    ///
    /// Unlike Global Arrays, which ends the program at a zero, this follows IEEE 754: infinite, or not a number. Integers
    /// become 0 where they were to be divided by zero, and all ranks have the error.
    ///
    /// # Errors
    /// [`Error::DivisionByZero`], [`Error::Elsewhere`], of integers; as [`GlobalSlice::assign_from`].
    pub fn divide(&self, a: impl Operand<T, D>, b: impl Operand<T, D>) -> Result<()> {
        divided(self, |zero| self.combine(a, b, |a: T, b: T| {
            if T::NEEDS_DIVISOR && b.vanishes() {
                zero.set(true);
            }
            a.divided_by(b)
        }))
    }

    /// Makes each element the larger of those of `a` and `b` (`GA_Elem_maximum`, `GA_Elem_maximum_patch`); of complex
    /// numbers that of the larger modulus, `b`'s where they are equal. What is not a number gives way. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn maximum(&self, a: impl Operand<T, D>, b: impl Operand<T, D>) -> Result<()> {
        self.combine(a, b, T::larger)
    }

    /// Makes each element the smaller of those of `a` and `b` (`GA_Elem_minimum`, `GA_Elem_minimum_patch`); as
    /// [`GlobalSlice::maximum`]. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    pub fn minimum(&self, a: impl Operand<T, D>, b: impl Operand<T, D>) -> Result<()> {
        self.combine(a, b, T::smaller)
    }

    /// Counts through the elements, last axis fastest: element `i` becomes `start + i * step` (`GA_Patch_enum`).
    /// Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn enumerate(&self, start: T, step: T) -> Result<()> {
        let (origin, shape) = (self.patch().start(), self.shape());
        self.between_syncs(|between| self.each_row(between, |at, row| {
            let before = (0..shape.len()).fold(0, |count, axis| count * shape[axis] + at[axis] - origin[axis]);
            for (count, cell) in (before..).zip(row) {
                cell.set(T::plus(start, T::times(T::from_count(count), step)));
            }
        }))
    }
}

/// Does what divides; of integers, all ranks come to know of a zero among the divisors of any.
#[track_caller]
fn divided<T: Element, D: Dimension>(
    target: &GlobalSlice<'_, T, D>,
    divide: impl FnOnce(&Cell<bool>) -> Result<()>,
) -> Result<()> {
    let zero = Cell::new(false);
    let done = divide(&zero);
    if !T::NEEDS_DIVISOR {
        return done;
    }
    if matches!(done, Err(Error::Mismatch { .. })) {
        // All ranks have found this alike, before any of them did anything.
        return done;
    }
    let refused = || {
        let (array, patch) = (target.array().name().into(), target.patch().to_string());
        if zero.get() { Err(Error::DivisionByZero { array, patch }) } else { Ok((0u64, 0)) }
    };
    target.contributed("a division", |_| done.and_then(|()| refused())).map(drop)
}
