//! Cholesky factors, and what is solved with them.
//!
//! By panels, as LU: a panel's owner factors it; each rank subtracts from its columns behind the panel, from the diagonal
//! down, the product of the panel and its adjoint. Nothing above the diagonal is computed.
//!
//! # Safety
//! OWN-COLUMNS (see `columns.rs`).
#![allow(unsafe_code)]

use ndarray::{Array2, ArrayViewMut2, Axis, Ix2, s};

use super::columns::{Columns, Panel};
use super::operand::MatrixOperand;
use super::scalar::Scalar;
use super::share;
use super::solve::{AT_ONCE, Factors};
use super::triangular::{Diagonal, adjoint, factor_cholesky, solve_lower, solve_upper, subtract_product};
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::slice::GlobalSlice;

/// The lower Cholesky factor of a symmetric (complex: Hermitian) positive definite matrix, with which any number of
/// equations can be solved; of [`GlobalArray::cholesky`].
///
/// It takes as much memory as the matrix, of the ranks of its group, until [`Cholesky::destroy`].
#[derive(Debug)]
#[must_use = "factors that are not destroyed keep their memory until the job ends"]
pub struct Cholesky<T> {
    columns: Columns<T>,
}

impl<T: Scalar> GlobalArray<T> {
    /// The Cholesky factor of the matrix, which stays as it is: [`MatrixOperand::cholesky`] of all of it. Collective.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Cholesky<T>> {
        MatrixOperand::from(self).cholesky()
    }

    /// Solves `a x = b`, where `a` is this array, symmetric (complex: Hermitian) and positive definite, and puts `x` in the
    /// place of `b` (`GA_Llt_solve`): [`MatrixOperand::cholesky_solve`] of all of it. Collective.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn cholesky_solve(&self, b: &GlobalArray<T>) -> Result<()> {
        MatrixOperand::from(self).cholesky_solve(b.whole())
    }

    /// Replaces this symmetric (complex: Hermitian) positive definite matrix by its inverse (`GA_Spd_invert`). Collective.
    ///
    /// # Errors
    /// As [`MatrixOperand::cholesky`]; the matrix is as it was then.
    #[track_caller]
    pub fn spd_invert(&self) -> Result<()> {
        let factor = self.cholesky()?;
        let inverted = self.whole().together(|| factor.inverse_into(self));
        factor.destroy()?;
        inverted
    }
}

impl<T: Scalar> MatrixOperand<'_, T> {
    /// The lower Cholesky factor of this symmetric (complex: Hermitian) positive definite matrix, which stays as it is.
    /// What lies above its diagonal is not looked at. Collective.
    ///
    /// Factoring is spread over all ranks of the group; each needs memory for its share of a copy.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if it is not square; [`Error::NotPositiveDefinite`]; if there is not enough memory. On all
    /// ranks alike.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Cholesky<T>> {
        let order = self.order("a Cholesky factor")?;
        let cholesky = Cholesky { columns: Columns::copy(self, order)? };
        match cholesky.factor() {
            Ok(None) => Ok(cholesky),
            Ok(Some(pivot)) => {
                cholesky.destroy()?;
                Err(Error::NotPositiveDefinite { array: self.slice.array().name().into(), pivot })
            }
            Err(error) => {
                cholesky.destroy()?;
                Err(error)
            }
        }
    }

    /// Solves `a x = b`, where `a` is this symmetric (complex: Hermitian) positive definite matrix and `b` has one column for
    /// each equation, and puts `x` in the place of `b` (`GA_Llt_solve`). Collective.
    ///
    /// # Errors
    /// As [`MatrixOperand::cholesky`] and [`Cholesky::solve`].
    #[track_caller]
    pub fn cholesky_solve(&self, b: GlobalSlice<'_, T, Ix2>) -> Result<()> {
        b.matches("a Cholesky factor", self.order("a Cholesky factor")?, self.slice.array().group())?;
        let cholesky = self.cholesky()?;
        let solved = cholesky.solve(b);
        cholesky.destroy()?;
        solved
    }
}

impl<T: Scalar> Cholesky<T> {
    /// Factors the copy; or finds the pivot that is not positive.
    #[track_caller]
    fn factor(&self) -> Result<Option<usize>> {
        let mut outcome = Ok(());
        for panel in self.columns.panels() {
            // Which pivot there is not (or -1).
            let mut told = [-1];
            if self.columns.is_mine(&panel) && outcome.is_ok() {
                outcome = self.factor_panel(&panel, &mut told[0]);
            }
            let owner = self.columns.owner(&panel);
            let heard = self.columns.group().broadcast(owner, &mut told);
            outcome = outcome.and(heard.map_err(|source| Error::Runtime { array: self.columns.name().into(), source }));
            if let Ok(missing) = usize::try_from(told[0]) {
                self.columns.agree(outcome)?;
                return Ok(Some(panel.cols.start + missing));
            }
            // A rank that failed goes on to meet the others.
            if outcome.is_ok() {
                outcome = self.update(&panel);
            }
        }
        self.columns.agree(outcome)?;
        Ok(None)
    }

    fn factor_panel(&self, panel: &Panel, told: &mut i64) -> Result<()> {
        // SAFETY: OWN-COLUMNS: it was not told yet.
        let mut own = unsafe { self.columns.own(self.columns.within(panel))? };
        if let Err(pivot) = factor_cholesky(own.slice_mut(s![panel.cols.start.., ..])) {
            *told = pivot as i64;
        }
        Ok(())
    }

    /// Brings this rank's columns behind a panel up to date.
    fn update(&self, panel: &Panel) -> Result<()> {
        let columns = &self.columns;
        let factor = columns.panel(panel, panel.cols.end..columns.order())?;
        // SAFETY: OWN-COLUMNS: behind this panel none was told.
        let mut own = unsafe { columns.own(columns.behind(panel))? };
        let mut at = 0;
        for mine in columns.panels().skip(panel.number + 1).filter(|mine| columns.is_mine(mine)) {
            let width = mine.cols.len();
            let from = mine.cols.start - panel.cols.end;
            let across = adjoint(factor.slice(s![from..from + width, ..]));
            let mut target = own.slice_mut(s![mine.cols.start.., at..at + width]);
            subtract_product(&mut target, &factor.slice(s![from.., ..]), &across.view());
            at += width;
        }
        Ok(())
    }

    /// Rows, and columns, of the matrix.
    pub fn order(&self) -> usize {
        self.columns.order()
    }

    /// Solves `a x = b` for the matrix `a` of which this is the factor; `x` takes the place of `b`, of which each column is
    /// an equation. Collective over the group of `b`, which has the same ranks as that of `a`.
    ///
    /// Columns are dealt evenly to the ranks, each of which solves its own: for a single one, one rank reads all of the factor.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if `b` has not as many rows as the matrix; on all ranks alike, and nothing was done then.
    #[track_caller]
    pub fn solve(&self, b: GlobalSlice<'_, T, Ix2>) -> Result<()> {
        self.solve_in(b)
    }

    /// Frees the factor. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::destroy`].
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        self.columns.destroy()
    }

    /// Computes this rank's columns of the inverse.
    fn inverse_into(&self, inverse: &GlobalArray<T>) -> Result<()> {
        let order = self.columns.order();
        let mine = share(order, self.columns.group());
        for first in mine.clone().step_by(AT_ONCE) {
            let cols = first..(first + AT_ONCE).min(mine.end);
            let unit = |(row, col): (usize, usize)| if row == first + col { T::one() } else { T::zero() };
            let mut x = Array2::from_shape_fn((order, cols.len()), unit);
            self.substitute(x.view_mut())?;
            inverse.put([0..order, cols], &x)?;
        }
        Ok(())
    }
}

impl<T: Scalar> Factors<T> for Cholesky<T> {
    fn columns(&self) -> &Columns<T> {
        &self.columns
    }

    fn substitute(&self, mut x: ArrayViewMut2<'_, T>) -> Result<()> {
        let order = self.columns.order();
        for panel in self.columns.panels() {
            let factor = self.columns.panel(&panel, panel.cols.start..order)?;
            let width = panel.cols.len();
            let (mut here, mut below) = x.slice_mut(s![panel.cols.start.., ..]).split_at(Axis(0), width);
            solve_lower(&factor.slice(s![..width, ..]), Diagonal::Stored, here.view_mut());
            subtract_product(&mut below, &factor.slice(s![width.., ..]), &here.view());
        }
        for panel in self.columns.panels().rev() {
            let factor = self.columns.panel(&panel, panel.cols.start..order)?;
            let across = adjoint(factor.view());
            let width = panel.cols.len();
            let (mut here, below) = x.slice_mut(s![panel.cols.start.., ..]).split_at(Axis(0), width);
            subtract_product(&mut here, &across.slice(s![.., width..]), &below.view());
            solve_upper(&across.slice(s![.., ..width]), here);
        }
        Ok(())
    }
}
