//! Pulay's DIIS: the combination of the latest Fock matrices whose residuals cancel best.

use std::collections::VecDeque;

use ndarray::Array2;

use crate::linalg;

/// Fock matrices kept at most.
const DEPTH: usize = 8;

/// The latest Fock matrices and their residuals.
#[derive(Debug, Default)]
pub struct Diis {
    entries: VecDeque<(Array2<f64>, Array2<f64>)>,
}

impl Diis {
    /// Adds a Fock matrix with its residual (FDS - SDF in an orthonormal basis) and returns the
    /// extrapolated matrix.
    pub fn extrapolate(&mut self, fock: Array2<f64>, residual: Array2<f64>) -> Array2<f64> {
        self.entries.push_back((fock, residual));
        if self.entries.len() > DEPTH {
            self.entries.pop_front();
        }
        loop {
            if let Some(weights) = self.weights() {
                let mut sum = Array2::zeros(self.entries[0].0.dim());
                for (weight, (fock, _)) in weights.iter().zip(&self.entries) {
                    sum.scaled_add(*weight, fock);
                }
                return sum;
            }
            self.entries.pop_front();
        }
    }

    /// Weights that sum to one and minimise the combined residual; none if the residuals are
    /// linearly dependent to working precision.
    fn weights(&self) -> Option<Vec<f64>> {
        let n = self.entries.len();
        if n == 1 {
            return Some(vec![1.0]);
        }
        let product = |i: usize, j: usize| (&self.entries[i].1 * &self.entries[j].1).sum();
        // Scaled by the latest residual: near convergence the entries span many orders.
        let scale = 1.0 / f64::max(product(n - 1, n - 1), f64::MIN_POSITIVE);
        let matrix = Array2::from_shape_fn((n + 1, n + 1), |(i, j)| match (i == n, j == n) {
            (true, true) => 0.0,
            (true, false) | (false, true) => 1.0,
            (false, false) => product(i, j) * scale,
        });
        let mut right = vec![0.0; n + 1];
        right[n] = 1.0;
        let mut weights = linalg::solve(&matrix, &right)?;
        weights.truncate(n);
        let sane = weights.iter().all(|w| w.abs() < 1e3) && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-6;
        sane.then_some(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn opposite_residuals_meet_in_the_middle() {
        let mut diis = Diis::default();
        diis.extrapolate(array![[1.0]], array![[0.3, 0.0]]);
        let mixed = diis.extrapolate(array![[2.0]], array![[-0.3, 0.0]]);
        assert!((mixed[[0, 0]] - 1.5).abs() < 1e-12);
    }

    #[test]
    fn equal_residuals_do_not_break_it() {
        let mut diis = Diis::default();
        diis.extrapolate(array![[1.0]], array![[0.1]]);
        let next = diis.extrapolate(array![[1.0]], array![[0.1]]);
        assert!((next[[0, 0]] - 1.0).abs() < 1e-6);
    }
}
