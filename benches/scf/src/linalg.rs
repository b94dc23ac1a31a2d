//! Dense symmetric algebra on one rank: eigenvectors (faer) and orthogonalisation.

use faer::prelude::Solve;
use faer::{Mat, Side};
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Eigenvalues in rising order and the eigenvectors as columns. A matrix with an element that is
/// not finite has no eigenvalues: they come out as NaN.
pub fn eigen(matrix: ArrayView2<'_, f64>) -> (Array1<f64>, Array2<f64>) {
    let n = matrix.nrows();
    let none = || (Array1::from_elem(n, f64::NAN), Array2::eye(n));
    if n == 0 || matrix.iter().any(|x| !x.is_finite()) {
        return none();
    }
    let mean = Mat::from_fn(n, n, |i, j| 0.5 * (matrix[[i, j]] + matrix[[j, i]]));
    let Ok(eigen) = mean.self_adjoint_eigen(Side::Lower) else { return none() };
    let values = eigen.S().column_vector().iter().copied().collect();
    (values, Array2::from_shape_fn((n, n), |(i, k)| eigen.U()[(i, k)]))
}

/// Orthonormal combinations of a basis.
#[derive(Debug, Clone)]
pub struct Orthogonal {
    /// Basis functions by combinations: X with X^T S X = 1.
    pub vectors: Array2<f64>,
    /// The smallest eigenvalue of the overlap matrix.
    pub smallest: f64,
}

impl Orthogonal {
    /// Canonical orthogonalisation: eigenvectors of the overlap matrix divided by the root of
    /// their eigenvalue, without those below `threshold`. The overlap is first scaled to a unit
    /// diagonal, so that the threshold means the same for Cartesian d functions.
    pub fn new(overlap: &Array2<f64>, threshold: f64) -> Self {
        let scale: Array1<f64> = overlap.diag().iter().map(|s| 1.0 / s.sqrt()).collect();
        let scaled = Array2::from_shape_fn(overlap.dim(), |(i, j)| overlap[[i, j]] * scale[i] * scale[j]);
        let (values, vectors) = eigen(scaled.view());
        let kept: Vec<usize> = (0..values.len()).filter(|&k| values[k] > threshold).collect();
        let mut out = vectors.select(Axis(1), &kept);
        for (mut column, &k) in out.columns_mut().into_iter().zip(&kept) {
            column *= 1.0 / values[k].sqrt();
        }
        for (mut row, &factor) in out.rows_mut().into_iter().zip(&scale) {
            row *= factor;
        }
        Self { vectors: out, smallest: values.first().copied().unwrap_or(0.0) }
    }

    /// Solves F C = S C e: orbital energies and orbitals.
    pub fn solve(&self, fock: &Array2<f64>) -> (Array1<f64>, Array2<f64>) {
        let (energies, vectors) = eigen(self.vectors.t().dot(fock).dot(&self.vectors).view());
        (energies, self.vectors.dot(&vectors))
    }
}

/// The solution of a small linear system, or none if it is singular.
pub fn solve(matrix: &Array2<f64>, right: &[f64]) -> Option<Vec<f64>> {
    let n = right.len();
    let lu = Mat::from_fn(n, n, |i, j| matrix[[i, j]]).full_piv_lu();
    let solution = lu.solve(Mat::from_fn(n, 1, |i, _| right[i]));
    // (Where the last pivot is zero, this has divided by it.)
    let solution: Vec<f64> = (0..n).map(|i| solution[(i, 0)]).collect();
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn orthogonal_combinations_leave_out_what_is_dependent() {
        let overlap = array![[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0]];
        let x = Orthogonal::new(&overlap, 1e-8);
        assert_eq!(x.vectors.ncols(), 2);
        let one = x.vectors.t().dot(&overlap).dot(&x.vectors);
        assert!((one - Array2::<f64>::eye(2)).iter().all(|d| d.abs() < 1e-12));
    }

    #[test]
    fn an_empty_matrix_and_one_of_nan_do_no_harm() {
        assert_eq!(eigen(Array2::zeros((0, 0)).view()).0.len(), 0);
        assert!(eigen(array![[f64::NAN]].view()).0[0].is_nan());
    }

    #[test]
    fn a_singular_system_has_no_solution() {
        assert_eq!(solve(&array![[2.0, 1.0], [1.0, 1.0]], &[3.0, 2.0]), Some(vec![1.0, 1.0]));
        assert_eq!(solve(&array![[1.0, 1.0], [1.0, 1.0]], &[1.0, 2.0]), None);
        assert_eq!(solve(&Array2::zeros((3, 3)), &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn eigenvalues_rise() {
        let (values, vectors) = eigen(array![[2.0, 1.0], [1.0, 2.0]].view());
        assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
        assert!((vectors[[0, 0]] + vectors[[1, 0]]).abs() < 1e-14);
    }
}
