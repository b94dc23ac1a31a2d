//! Matrix by vector: `y = alpha a x + beta y`.
//!
//! Memory is what limits it, so the matrix is read once, where it lies: each rank takes its own blocks, with the whole of
//! `x`, and adds what comes of them to `y`. (The order in which ranks add is not determined, so neither is the last bit
//! of a sum that several contribute to.)
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): between two syncs either owners alone touch `y`, or it is accumulated to; the matrix and
//! `x` are read only.
#![allow(unsafe_code)]

use std::ops::Range;

use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, Ix1, Zip, s};

use super::operand::MatrixOperand;
use super::scalar::Scalar;
use super::share;
use super::split::{MOST, segments};
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::slice::GlobalSlice;

const OPERATION: &str = "a product of matrix and vector";

impl<T: Scalar> GlobalSlice<'_, T, Ix1> {
    /// Makes the patch `alpha a x + beta` times what it was (`NGA_Matmul_patch` with one column), where `a` is a matrix
    /// (`&array`), a patch of one, or either transposed or adjoint, and `x` a patch of a vector. Collective.
    ///
    /// If `beta` is zero, what the patch was is not looked at; if `alpha` is, neither are `a` and `x`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes do not go together, or the patch overlaps `x`: on all ranks alike, and nothing
    /// was done then. Else as [`GlobalArray::sync`].
    #[track_caller]
    pub fn assign_product<'b>(
        &self,
        alpha: T,
        a: impl Into<MatrixOperand<'b, T>>,
        x: GlobalSlice<'b, T, Ix1>,
        beta: T,
    ) -> Result<()> {
        let a = a.into();
        let [rows, cols] = a.shape();
        if self.shape() != [rows] || x.shape() != [cols] {
            let (y, a) = (format!("{} of '{}'", self.patch(), self.array().name()), a.describe());
            let why =
                format!("the shapes of {y} = {a}, times {} of '{}', do not go together", x.patch(), x.array().name());
            return Err(Error::Mismatch { operation: OPERATION, why });
        }
        if std::ptr::eq(self.array(), x.array()) && !self.patch().intersection(x.patch()).is_empty() {
            let (y, x, name) = (self.patch(), x.patch(), self.array().name());
            let why = format!("{y} and {x} of '{name}' overlap, of which one is written and the other read");
            return Err(Error::Mismatch { operation: OPERATION, why });
        }
        self.together(|| self.scale_by(beta))?;
        let added = if alpha.is_zero() || rows == 0 || cols == 0 { Ok(()) } else { self.add_product(alpha, &a, &x) };
        self.ended(added)
    }

    fn scale_by(&self, beta: T) -> Result<()> {
        for part in self.array().own_parts(self.patch())? {
            // SAFETY: OWN-BLOCK: its owner alone touches it.
            let mut part = unsafe { part.view_mut::<Ix1>() };
            if beta.is_zero() {
                part.fill(beta);
            } else if !beta.is_one() {
                part.mapv_inplace(|value| beta * value);
            }
        }
        Ok(())
    }

    /// Adds what comes of this rank's part of the matrix.
    fn add_product(&self, alpha: T, a: &MatrixOperand<'_, T>, x: &GlobalSlice<'_, T, Ix1>) -> Result<()> {
        let mine = self.parts_of(a)?;
        let ends = |range: &Range<usize>| (range.start, range.end);
        let touched = mine.iter().map(|[rows, _]| ends(rows)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some((first, last)) = touched else { return Ok(()) };
        let x = x.array().get(*x.patch())?;
        let mut sum = Array1::from_elem(last - first, T::zeroed());
        for [rows, cols] in &mine {
            let (x, sum) = (x.slice(s![cols.clone()]), sum.slice_mut(s![rows.start - first..rows.end - first]));
            // SAFETY: OWN-BLOCK: the matrix is read only.
            if let Some(part) = unsafe { a.in_place(rows, cols) } {
                add(part, a.is_conjugate(), x, sum);
            } else {
                // SAFETY: OWN-BLOCK: as above.
                add(unsafe { a.tile(rows, cols) }.arrived()?, false, x, sum);
            }
        }
        let start = self.patch().start()[0];
        self.array().accumulate(start + first..start + last, alpha, &sum)
    }

    /// The rows and columns of the matrix that this rank takes: those of its blocks, or an even share of the rows, if
    /// the matrix lives on other ranks than the vector.
    fn parts_of(&self, a: &MatrixOperand<'_, T>) -> Result<Vec<[Range<usize>; 2]>> {
        let group = self.array().group();
        if group.same_ranks(a.slice.array().group()) {
            let own = a.slice.array().own_parts(a.slice.patch())?;
            return Ok(own.map(|part| a.rows_and_cols(&part.patch)).collect());
        }
        let [rows, cols] = a.shape();
        let rows = segments(&share(rows, group), a.ends(0, &(0..rows)), MOST);
        let cols = segments(&(0..cols), a.ends(1, &(0..cols)), MOST);
        Ok(rows.iter().flat_map(|rows| cols.iter().map(|cols| [rows.clone(), cols.clone()])).collect())
    }
}

impl<T: Scalar> GlobalArray<T, Ix1> {
    /// Makes the vector `alpha a x + beta` times what it was: [`GlobalSlice::assign_product`] of all of it. Collective.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn assign_product<'b>(
        &self,
        alpha: T,
        a: impl Into<MatrixOperand<'b, T>>,
        x: &'b GlobalArray<T, Ix1>,
        beta: T,
    ) -> Result<()> {
        self.whole().assign_product(alpha, a, x.whole(), beta)
    }
}

/// `sum += part x`, going along the matrix as it lies in memory.
fn add<T: Scalar>(part: ArrayView2<'_, T>, conjugate: bool, x: ArrayView1<'_, T>, mut sum: ArrayViewMut1<'_, T>) {
    if part.strides()[1] == 1 && !conjugate {
        for (row, sum) in part.rows().into_iter().zip(&mut sum) {
            *sum = *sum + row.dot(&x);
        }
        return;
    }
    for (column, x) in part.columns().into_iter().zip(&x) {
        if conjugate {
            Zip::from(&mut sum).and(&column).for_each(|sum, value| *sum = *sum + value.conjugate() * *x);
        } else {
            sum.scaled_add(*x, &column);
        }
    }
}
