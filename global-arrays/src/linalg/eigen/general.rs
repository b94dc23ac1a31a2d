//! From `a x = l s x` to an eigenproblem with the identity, and back, by the Cholesky factor of `s`.

use ndarray::Array2;

use crate::linalg::scalar::Scalar;
use crate::linalg::triangular::{Diagonal, adjoint, factor_cholesky, solve_lower, solve_upper};

/// Replaces `a`, of which the lower triangle is looked at, by `l⁻¹ a l⁻ᴴ`, where `s = l lᴴ`, and gives `l`. Or says which pivot
/// of that is not positive.
pub(super) fn reduce<T: Scalar>(a: &mut Array2<T>, mut s: Array2<T>) -> Result<Array2<T>, usize> {
    factor_cholesky(s.view_mut())?;
    for row in 0..a.nrows() {
        for col in row + 1..a.ncols() {
            a[[row, col]] = a[[col, row]].conjugate();
        }
    }
    solve_lower(&s.view(), Diagonal::Stored, a.view_mut());
    // `(l⁻¹ a)ᴴ = a l⁻ᴴ`, of which the rows are contiguous again.
    *a = adjoint(a.view()).as_standard_layout().into_owned();
    solve_lower(&s.view(), Diagonal::Stored, a.view_mut());
    Ok(s)
}

/// Replaces eigenvectors of what [`reduce`] made by those of the problem that it was given.
pub(super) fn turn_back<T: Scalar>(l: &Array2<T>, vectors: &mut Array2<T>) {
    solve_upper(&adjoint(l.view()).view(), vectors.view_mut());
}
