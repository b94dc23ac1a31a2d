//! LU factors with partial pivoting, and what is solved with them.
//!
//! Right-looking, by panels: a panel's owner factors it and tells the pivots; each rank exchanges the rows of its columns
//! behind the panel, solves with the panel's triangle and subtracts the product of the panel and what it solved. Rows of
//! panels already factored are not exchanged any more: solving exchanges those of the right sides panel by panel.
//!
//! # Safety
//! OWN-COLUMNS (see `columns.rs`).
#![allow(unsafe_code)]

use ndarray::{ArrayViewMut2, Axis, Ix2, s};

use super::columns::{Columns, Panel};
use super::operand::MatrixOperand;
use super::scalar::Scalar;
use super::solve::Factors;
use super::triangular::{Diagonal, factor_lu, solve_lower, solve_upper, subtract_product, swap_rows};
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::slice::GlobalSlice;

/// The LU factors of a square matrix, with which any number of equations can be solved; of [`GlobalArray::lu`].
///
/// They are as large as the matrix, and lie in memory of the ranks of its group until [`Lu::destroy`].
#[derive(Debug)]
#[must_use = "factors that are not destroyed keep their memory until the job ends"]
pub struct Lu<T> {
    columns: Columns<T>,
    /// For each row, which it was exchanged with, counted from its panel's first.
    swaps: Vec<usize>,
}

impl<T: Scalar> GlobalArray<T> {
    /// The LU factors of the matrix, which stays as it is: [`MatrixOperand::lu`] of all of it. Collective.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn lu(&self) -> Result<Lu<T>> {
        MatrixOperand::from(self).lu()
    }

    /// Solves `a x = b`, where `a` is this array, and puts `x` in the place of `b` (`GA_Lu_solve`): [`MatrixOperand::lu_solve`] of
    /// all of it. Collective.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn lu_solve(&self, b: &GlobalArray<T>) -> Result<()> {
        MatrixOperand::from(self).lu_solve(b.whole())
    }
}

impl<T: Scalar> MatrixOperand<'_, T> {
    /// The LU factors, with partial pivoting, of this square matrix, which stays as it is. Collective.
    ///
    /// Factoring is spread over all ranks of the group; each needs memory for its share of a copy.
    /// Panels are factored by one rank at a time, which limits the speed: 2,048 rows of `f64` on two ranks run at a fifth of a
    /// product's.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if it is not square; [`Error::Singular`] if a pivot is zero, or is no number; if there is not
    /// enough memory. On all ranks alike.
    #[track_caller]
    pub fn lu(&self) -> Result<Lu<T>> {
        let order = self.order("LU factors")?;
        let mut lu = Lu { columns: Columns::copy(self, order)?, swaps: Vec::with_capacity(order) };
        match lu.factor() {
            Ok(None) => Ok(lu),
            Ok(Some(pivot)) => {
                lu.destroy()?;
                Err(Error::Singular { array: self.slice.array().name().into(), pivot })
            }
            Err(error) => {
                lu.destroy()?;
                Err(error)
            }
        }
    }

    /// Solves `a x = b`, where `a` is this square matrix and `b` has one column for each equation, and puts `x` in the
    /// place of `b` (`GA_Lu_solve`); `a.t()` solves with the transpose. Collective.
    ///
    /// # Errors
    /// As [`MatrixOperand::lu`] and [`Lu::solve`].
    #[track_caller]
    pub fn lu_solve(&self, b: GlobalSlice<'_, T, Ix2>) -> Result<()> {
        b.matches("LU factors", self.order("LU factors")?, self.slice.array().group())?;
        let lu = self.lu()?;
        let solved = lu.solve(b);
        lu.destroy()?;
        solved
    }
}

impl<T: Scalar> Lu<T> {
    /// Factors the copy; or finds the pivot that is zero.
    #[track_caller]
    fn factor(&mut self) -> Result<Option<usize>> {
        let mut outcome = Ok(());
        for panel in self.columns.panels() {
            // The pivots, and behind them, which there is not (or -1).
            let mut told = vec![-1; panel.cols.len() + 1];
            if self.columns.is_mine(&panel) && outcome.is_ok() {
                outcome = self.factor_panel(&panel, &mut told);
            }
            let owner = self.columns.owner(&panel);
            let heard = self.columns.group().broadcast(owner, &mut told);
            outcome = outcome.and(heard.map_err(|source| Error::Runtime { array: self.columns.name().into(), source }));
            let (missing, swaps) = (told.pop().unwrap_or(-1), told);
            if missing >= 0 {
                self.columns.agree(outcome)?;
                return Ok(Some(panel.cols.start + missing as usize));
            }
            // A rank that failed tells nothing of use, but goes on to meet the others.
            self.swaps.extend(swaps.iter().map(|swap| usize::try_from(*swap).unwrap_or(0)));
            if outcome.is_ok() && !swaps.contains(&-1) {
                outcome = self.update(&panel);
            }
        }
        self.columns.agree(outcome)?;
        Ok(None)
    }

    fn factor_panel(&self, panel: &Panel, told: &mut [i64]) -> Result<()> {
        let width = panel.cols.len();
        // SAFETY: OWN-COLUMNS: it was not told yet.
        let mut own = unsafe { self.columns.own(self.columns.within(panel))? };
        let mut swaps = vec![0; width];
        let factored = factor_lu(own.slice_mut(s![panel.cols.start.., ..]), &mut swaps);
        match factored {
            Ok(()) => told.iter_mut().zip(swaps).for_each(|(told, swap)| *told = swap as i64),
            Err(column) => told[width] = column as i64,
        }
        Ok(())
    }

    /// Brings this rank's columns behind a panel up to date.
    fn update(&self, panel: &Panel) -> Result<()> {
        let (columns, width) = (&self.columns, panel.cols.len());
        let factors = columns.panel(panel, panel.cols.start..columns.order())?;
        // SAFETY: OWN-COLUMNS: behind this panel none was told.
        let own = unsafe { columns.own(columns.behind(panel))? };
        let mut tail = own.slice_move(s![panel.cols.start.., ..]);
        if tail.ncols() > 0 {
            swap_rows(&mut tail, &self.swaps[panel.cols.clone()]);
            let (mut above, mut below) = tail.split_at(Axis(0), width);
            solve_lower(&factors.slice(s![..width, ..]), Diagonal::Ones, above.view_mut());
            subtract_product(&mut below, &factors.slice(s![width.., ..]), &above.view());
        }
        Ok(())
    }

    /// Rows, and columns, of the matrix.
    pub fn order(&self) -> usize {
        self.columns.order()
    }

    /// Solves `a x = b` for the matrix `a` of which these are the factors; `x` takes the place of `b`, of which each column
    /// is an equation. Collective over the group of `b`, which has the same ranks as that of `a`.
    ///
    /// Columns are dealt evenly to the ranks, each of which solves its own: for a single one, one rank reads all factors.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if `b` has not as many rows as the matrix; on all ranks alike, and nothing was done then.
    #[track_caller]
    pub fn solve(&self, b: GlobalSlice<'_, T, Ix2>) -> Result<()> {
        self.solve_in(b)
    }

    /// Frees the factors. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::destroy`].
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        self.columns.destroy()
    }
}

impl<T: Scalar> Factors<T> for Lu<T> {
    fn columns(&self) -> &Columns<T> {
        &self.columns
    }

    fn substitute(&self, mut x: ArrayViewMut2<'_, T>) -> Result<()> {
        let order = self.columns.order();
        for panel in self.columns.panels() {
            let factors = self.columns.panel(&panel, panel.cols.start..order)?;
            let width = panel.cols.len();
            let mut from_here = x.slice_mut(s![panel.cols.start.., ..]);
            swap_rows(&mut from_here, &self.swaps[panel.cols.clone()]);
            let (mut here, mut below) = from_here.split_at(Axis(0), width);
            solve_lower(&factors.slice(s![..width, ..]), Diagonal::Ones, here.view_mut());
            subtract_product(&mut below, &factors.slice(s![width.., ..]), &here.view());
        }
        for panel in self.columns.panels().rev() {
            let factors = self.columns.panel(&panel, 0..panel.cols.end)?;
            let (mut above, mut here) = x.slice_mut(s![..panel.cols.end, ..]).split_at(Axis(0), panel.cols.start);
            solve_upper(&factors.slice(s![panel.cols.start.., ..]), here.view_mut());
            subtract_product(&mut above, &factors.slice(s![..panel.cols.start, ..]), &here.view());
        }
        Ok(())
    }
}
