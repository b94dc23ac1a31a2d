//! Equations: what solving has in common for all factors, and the solver that chooses among them.

use ndarray::{ArrayViewMut2, Ix2};

use super::columns::Columns;
use super::operand::MatrixOperand;
use super::scalar::Scalar;
use super::share;
use super::split::MOST;
use crate::agree::parts_of_all;
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::slice::GlobalSlice;
use armci_core::Group;

/// Right sides that a rank solves at once: enough for products at full speed, and a bound of the buffer.
pub(super) const AT_ONCE: usize = 128;

/// Factors of a matrix, spread over ranks.
pub(super) trait Factors<T: Scalar> {
    fn columns(&self) -> &Columns<T>;

    /// Replaces right sides, whole columns of this rank's alone, by the solutions.
    fn substitute(&self, x: ArrayViewMut2<'_, T>) -> Result<()>;

    #[track_caller]
    fn solve_in(&self, b: GlobalSlice<'_, T, Ix2>) -> Result<()> {
        b.matches("a solution", self.columns().order(), self.columns().group())?;
        let start = b.patch().start();
        b.together(|| {
            let [rows, mine] = [b.patch().range(0), share(b.shape()[1], b.array().group())];
            for first in mine.clone().step_by(AT_ONCE) {
                let at = [rows.clone(), start[1] + first..start[1] + (first + AT_ONCE).min(mine.end)];
                let mut x = b.array().get(at.clone())?;
                self.substitute(x.view_mut())?;
                b.array().put(at, &x)?;
            }
            Ok(())
        })
    }
}

impl<T: Scalar> GlobalSlice<'_, T, Ix2> {
    /// Refuses right sides that do not go with a matrix.
    pub(super) fn matches(&self, operation: &'static str, order: usize, group: &Group) -> Result<()> {
        let (patch, name) = (self.patch(), self.array().name());
        if self.shape()[0] != order {
            let why = format!("{patch} of '{name}' has not as many rows as the matrix, which has {order}");
            return Err(Error::Mismatch { operation, why });
        }
        if !self.array().group().same_ranks(group) {
            let why = format!("'{name}' and the matrix live on different ranks");
            return Err(Error::Mismatch { operation, why });
        }
        Ok(())
    }
}

impl<T: Scalar> GlobalArray<T> {
    /// Solves `a x = b`, where `a` is this array, and puts `x` in the place of `b` (`GA_Solve`): [`MatrixOperand::solve`] of all of it.
    /// Collective.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn solve(&self, b: &GlobalArray<T>) -> Result<()> {
        MatrixOperand::from(self).solve(b.whole())
    }
}

impl<T: Scalar> MatrixOperand<'_, T> {
    /// Solves `a x = b`, where `a` is this square matrix and `b` has one column for each equation, and puts `x` in the
    /// place of `b` (`GA_Solve`): with the Cholesky factor if `a` is symmetric (complex: Hermitian), exactly, and positive
    /// definite, else with LU factors. Collective.
    ///
    /// # Errors
    /// As [`MatrixOperand::lu_solve`].
    #[track_caller]
    pub fn solve(&self, b: GlobalSlice<'_, T, Ix2>) -> Result<()> {
        let order = self.order("a solution")?;
        b.matches("a solution", order, self.slice.array().group())?;
        if self.is_hermitian(order)? {
            match self.cholesky() {
                Err(Error::NotPositiveDefinite { .. }) => (),
                Err(error) => return Err(error),
                Ok(cholesky) => {
                    let solved = cholesky.solve(b);
                    cholesky.destroy()?;
                    return solved;
                }
            }
        }
        self.lu_solve(b)
    }

    /// Whether it equals its adjoint. Collective, and known to all.
    #[track_caller]
    fn is_hermitian(&self, order: usize) -> Result<bool> {
        let (array, adjoint) = (self.slice.array(), self.h());
        let mine = share(order, array.group());
        let compared = self.slice.together(|| {
            for first in mine.clone().step_by(AT_ONCE) {
                let rows = first..(first + AT_ONCE).min(mine.end);
                for start in (0..rows.end).step_by(MOST) {
                    let cols = start..(start + MOST).min(rows.end);
                    let (mut here, mut there) = (self.copy(&rows, &cols), adjoint.copy(&rows, &cols));
                    if here.arrived()? != there.arrived()? {
                        return Ok(1);
                    }
                }
            }
            Ok(0)
        });
        let differ = compared.map(|differ: u64| (differ, 0));
        let all = parts_of_all(array.group(), "a comparison with the adjoint", array.name(), differ)?;
        Ok(all.iter().all(|(differ, _)| *differ == 0))
    }
}
