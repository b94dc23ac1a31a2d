//! The symmetric eigenproblem, by one rank: the matrix is gathered by rank 0 of its group, which solves it with `faer`, spreads
//! the vectors and tells the values. The others wait, asleep.

mod general;

pub(super) mod dense;

use ndarray::{Array1, Array2};

use super::operand::MatrixOperand;
use super::scalar::Scalar;
use crate::array::GlobalArray;
use crate::error::{Error, Result};

const OPERATION: &str = "an eigenproblem";

impl<T: Scalar> GlobalArray<T> {
    /// The eigenvalues of this symmetric (complex: Hermitian) matrix, ascending, on all ranks; and into `vectors` the
    /// eigenvectors, each a column, of length 1 and orthogonal to the others (`GA_Diag_std`, `GA_Diag_std_seq`). What lies above
    /// the diagonal is not looked at; `vectors` may be the array itself. Collective over its group.
    ///
    /// Rank 0 solves it alone, and needs memory for about five matrices: 1,000 rows take 0.1 s, time grows with
    /// the third power, memory with the second. More than some 10,000 rows want a distributed library.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the arrays are not square, of one shape and on the same ranks; [`Error::NoConvergence`]. On all
    /// ranks alike.
    #[track_caller]
    pub fn eigh(&self, vectors: &GlobalArray<T>) -> Result<Array1<T::Real>> {
        self.solve_eigen(None, Some(vectors))
    }

    /// The eigenvalues of this symmetric (complex: Hermitian) matrix, ascending, on all ranks. Otherwise as
    /// [`GlobalArray::eigh`].
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn eigvalsh(&self) -> Result<Array1<T::Real>> {
        self.solve_eigen(None, None)
    }

    /// The values `l`, ascending, on all ranks, for which `a x = l s x`, where `a` is this symmetric (complex:
    /// Hermitian) matrix and `s` is one that is positive definite too; and into `vectors` the `x`, each a column,
    /// with `xᴴ s x = 1` (`GA_Diag`, `GA_Diag_seq`). Otherwise as [`GlobalArray::eigh`].
    ///
    /// # Errors
    /// As there; [`Error::NotPositiveDefinite`] if `s` is not.
    #[track_caller]
    pub fn eigh_generalized(&self, s: &GlobalArray<T>, vectors: &GlobalArray<T>) -> Result<Array1<T::Real>> {
        self.solve_eigen(Some(s), Some(vectors))
    }

    #[track_caller]
    fn solve_eigen(
        &self,
        metric: Option<&GlobalArray<T>>,
        vectors: Option<&GlobalArray<T>>,
    ) -> Result<Array1<T::Real>> {
        let order = MatrixOperand::from(self).order(OPERATION)?;
        for other in metric.into_iter().chain(vectors) {
            if other.shape() != self.shape() || !other.group().same_ranks(self.group()) {
                let (a, b) = (self.name(), other.name());
                let why = format!("'{a}' and '{b}' differ in shape, or live on different ranks");
                return Err(Error::Mismatch { operation: OPERATION, why });
            }
        }
        let found = self.whole().together(|| {
            if self.group().rank() > 0 {
                return Ok(Found::Values(Vec::new()));
            }
            self.solve_here(metric, vectors)
        })?;
        let (told, values) = found.tell();
        let mut told = [told];
        let mut values = if self.group().rank() == 0 { values } else { vec![T::Real::of_real(0.0); order] };
        self.group().broadcast(0, &mut told).map_err(|source| self.runtime(source))?;
        match told[0] {
            SOLVED => {
                self.group().broadcast(0, &mut values).map_err(|source| self.runtime(source))?;
                Ok(Array1::from_vec(values))
            }
            DIVERGED => Err(Error::NoConvergence { array: self.name().into() }),
            pivot => {
                let array = metric.unwrap_or(self).name().into();
                Err(Error::NotPositiveDefinite { array, pivot: usize::try_from(pivot).unwrap_or(0) })
            }
        }
    }

    /// What rank 0 does.
    fn solve_here(&self, metric: Option<&GlobalArray<T>>, vectors: Option<&GlobalArray<T>>) -> Result<Found<T::Real>> {
        let mut matrix: Array2<T> = self.get(..)?;
        let factor = match metric {
            None => None,
            Some(metric) => match general::reduce(&mut matrix, metric.get(..)?) {
                Ok(factor) => Some(factor),
                Err(pivot) => return Ok(Found::NoFactor(pivot)),
            },
        };
        let solved = T::eigen(matrix.view(), vectors.is_some());
        // (What is no number may also come out as values that are none.)
        let Some((values, mut found)) =
            solved.filter(|(values, _)| values.iter().all(|value| value.size().is_finite()))
        else {
            return Ok(Found::Diverged);
        };
        if let Some(vectors) = vectors {
            if let Some(factor) = factor {
                general::turn_back(&factor, &mut found);
            }
            vectors.put(.., &found)?;
        }
        Ok(Found::Values(values))
    }
}

/// What rank 0 found.
enum Found<R> {
    Values(Vec<R>),
    NoFactor(usize),
    Diverged,
}

const SOLVED: i64 = -1;
const DIVERGED: i64 = -2;

impl<R> Found<R> {
    /// As ranks tell it: a pivot, or one of the above; and the values.
    fn tell(self) -> (i64, Vec<R>) {
        match self {
            Found::Values(values) => (SOLVED, values),
            Found::NoFactor(pivot) => (pivot as i64, Vec::new()),
            Found::Diverged => (DIVERGED, Vec::new()),
        }
    }
}
