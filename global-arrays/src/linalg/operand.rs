//! A matrix as a factor of a product or the left side of equations: as it is, transposed, or adjoint.

use std::ops::Range;

use bytemuck::Pod;
use ndarray::Ix2;

use super::scalar::Scalar;
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::slice::GlobalSlice;

/// A patch of a matrix as it is (of `&array` or a slice), transposed ([`GlobalArray::t`]) or adjoint ([`GlobalArray::h`]).
///
/// Nothing is moved for it.
#[derive(Debug)]
pub struct MatrixOperand<'a, T> {
    pub(super) slice: GlobalSlice<'a, T, Ix2>,
    turn: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    Transposed,
    Adjoint,
    Conjugate,
}

impl<T> Clone for MatrixOperand<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for MatrixOperand<'_, T> {}

impl<'a, T> From<GlobalSlice<'a, T, Ix2>> for MatrixOperand<'a, T> {
    fn from(slice: GlobalSlice<'a, T, Ix2>) -> Self {
        MatrixOperand { slice, turn: Turn::None }
    }
}

impl<'a, T: Pod> From<&'a GlobalArray<T>> for MatrixOperand<'a, T> {
    fn from(array: &'a GlobalArray<T>) -> Self {
        array.whole().into()
    }
}

impl<'a, T: Scalar> GlobalSlice<'a, T, Ix2> {
    /// The patch transposed, as an operand.
    pub fn t(&self) -> MatrixOperand<'a, T> {
        MatrixOperand::from(*self).t()
    }

    /// The patch transposed and its elements conjugated, as an operand.
    pub fn h(&self) -> MatrixOperand<'a, T> {
        MatrixOperand::from(*self).h()
    }
}

impl<T: Scalar> GlobalArray<T> {
    /// The matrix transposed, as an operand.
    pub fn t(&self) -> MatrixOperand<'_, T> {
        self.whole().t()
    }

    /// The matrix transposed and its elements conjugated, as an operand.
    pub fn h(&self) -> MatrixOperand<'_, T> {
        self.whole().h()
    }
}

impl<T: Scalar> MatrixOperand<'_, T> {
    /// This, transposed.
    #[must_use]
    pub fn t(self) -> Self {
        let turn = match self.turn {
            Turn::None => Turn::Transposed,
            Turn::Transposed => Turn::None,
            Turn::Adjoint => Turn::Conjugate,
            Turn::Conjugate => Turn::Adjoint,
        };
        MatrixOperand { turn, ..self }
    }

    /// This, transposed and conjugated.
    #[must_use]
    pub fn h(self) -> Self {
        let turn = match self.turn {
            // Of real numbers the conjugates are themselves, which need not be copied.
            _ if !T::IS_COMPLEX => return self.t(),
            Turn::None => Turn::Adjoint,
            Turn::Transposed => Turn::Conjugate,
            Turn::Adjoint => Turn::None,
            Turn::Conjugate => Turn::Transposed,
        };
        MatrixOperand { turn, ..self }
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        let shape = self.slice.shape();
        [shape[self.axis(0)], shape[self.axis(1)]]
    }

    /// Whether rows are the columns of the array.
    pub(super) fn is_transposed(&self) -> bool {
        matches!(self.turn, Turn::Transposed | Turn::Adjoint)
    }

    /// Whether elements are the conjugates of the array's.
    pub(super) fn is_conjugate(&self) -> bool {
        matches!(self.turn, Turn::Adjoint | Turn::Conjugate)
    }

    /// The axis of the array that is the rows (0) or columns (1) of this.
    fn axis(&self, axis: usize) -> usize {
        if self.is_transposed() { 1 - axis } else { axis }
    }

    /// Rows and columns of this, as a patch of the array.
    pub(super) fn patch(&self, rows: &Range<usize>, cols: &Range<usize>) -> Patch {
        let ranges = [rows, cols];
        let start = self.slice.patch().start();
        Patch::from_fn(2, |axis| {
            let range = ranges[self.axis(axis)];
            start[axis] + range.start..start[axis] + range.end
        })
    }

    /// A patch of the array, which lies in the operand's, as rows and columns of this.
    pub(super) fn rows_and_cols(&self, patch: &Patch) -> [Range<usize>; 2] {
        let within = patch.relative_to(&self.slice.patch().start());
        [within.range(self.axis(0)), within.range(self.axis(1))]
    }

    /// Where blocks of the array end within a range of rows (axis 0) or columns (axis 1).
    pub(super) fn ends(&self, axis: usize, range: &Range<usize>) -> Vec<usize> {
        ends(&self.slice, self.axis(axis), range)
    }

    /// As messages call it.
    pub(super) fn describe(&self) -> String {
        let turned = match self.turn {
            Turn::None => "",
            Turn::Transposed => ", transposed",
            Turn::Adjoint => ", adjoint",
            Turn::Conjugate => ", conjugated",
        };
        format!("{} of '{}'{turned}", self.slice.patch(), self.slice.array().name())
    }

    /// The number of rows, if it has as many columns.
    pub(super) fn order(&self, operation: &'static str) -> Result<usize> {
        let [rows, cols] = self.shape();
        if rows == cols {
            return Ok(rows);
        }
        Err(Error::Mismatch { operation, why: format!("{} is not square", self.describe()) })
    }
}

/// Where blocks end within a range along an axis of a patch, counted from the patch's beginning.
pub(super) fn ends<T: Pod>(slice: &GlobalSlice<'_, T, Ix2>, axis: usize, range: &Range<usize>) -> Vec<usize> {
    let first = slice.patch().start()[axis];
    let pieces = slice.array().distribution().pieces_along(axis, first + range.start..first + range.end);
    pieces.map(|piece| piece.end - first).filter(|end| *end < range.end).collect()
}

/// Refuses to write where an operand is read.
pub(super) fn apart<T: Pod>(
    operation: &'static str,
    written: &GlobalSlice<'_, T, Ix2>,
    read: &MatrixOperand<'_, T>,
) -> Result<()> {
    let (a, b) = (written, &read.slice);
    if !std::ptr::eq(a.array(), b.array()) || a.patch().intersection(b.patch()).is_empty() {
        return Ok(());
    }
    let name = a.array().name();
    let why =
        format!("{} and {} of '{name}' overlap, of which one is written and the other read", a.patch(), b.patch());
    Err(Error::Mismatch { operation, why })
}
