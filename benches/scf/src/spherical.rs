//! From Cartesian to real spherical functions, one index of a block at a time.
//!
//! The integral library's engines deliver Cartesian blocks. The rows of the transformation are
//! sparse (three of five for d have one or two entries), so they are kept as lists.

use integral::math::am::n_cart;
use integral::math::solid_harmonics::{c2s_matrix, monomial_to_raw_factor};

use crate::basis::{Functions, MAX_L};

/// For one angular momentum: each spherical function as a sum of Cartesian ones.
type Rows = Vec<Vec<(usize, f64)>>;

/// The transformations for all angular momenta, or none of them if the basis is Cartesian.
#[derive(Debug, Clone)]
pub struct Transform {
    rows: Vec<Option<Rows>>,
}

impl Transform {
    /// The transformation to `functions` from what the engines deliver.
    pub fn to(functions: Functions) -> Self {
        let rows = (0..=MAX_L).map(|l| (functions == Functions::Spherical && l > 1).then(|| rows(l))).collect();
        Self { rows }
    }

    /// Transforms the leading part of `block` (shells of angular momenta `l`, row-major) in
    /// place, with `other` as second buffer; returns the new length.
    pub fn apply<const N: usize>(&self, l: [usize; N], block: &mut Vec<f64>, other: &mut Vec<f64>) -> usize {
        let mut widths = l.map(n_cart);
        for axis in 0..N {
            let Some(rows) = self.rows[l[axis]].as_ref() else { continue };
            let outer: usize = widths[..axis].iter().product();
            let inner: usize = widths[axis + 1..].iter().product();
            let (old, new) = (widths[axis], rows.len());
            other.clear();
            other.resize(outer * new * inner, 0.0);
            for o in 0..outer {
                let from = &block[o * old * inner..(o + 1) * old * inner];
                let into = &mut other[o * new * inner..(o + 1) * new * inner];
                for (row, target) in rows.iter().zip(into.chunks_exact_mut(inner)) {
                    for &(cartesian, factor) in row {
                        let source = &from[cartesian * inner..(cartesian + 1) * inner];
                        target.iter_mut().zip(source).for_each(|(t, s)| *t += factor * s);
                    }
                }
            }
            std::mem::swap(block, other);
            widths[axis] = new;
        }
        widths.iter().product()
    }
}

/// The spherical functions of angular momentum `l`, over Cartesian ones whose x^l has unit norm.
pub fn rows(l: usize) -> Rows {
    let scale = monomial_to_raw_factor(l);
    let sparse = |row: &[f64]| {
        let entries = row.iter().enumerate().filter(|(_, c)| c.abs() > 1e-14);
        entries.map(|(i, c)| (i, c * scale)).collect()
    };
    c2s_matrix(l).chunks(n_cart(l)).map(sparse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_functions_shrink_from_six_to_five_on_the_right_axis() {
        let transform = Transform::to(Functions::Spherical);
        // x^2 + y^2 + z^2 has no d part: components are xx xy xz yy yz zz.
        let mut block = vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        let mut other = Vec::new();
        assert_eq!(transform.apply([2, 0], &mut block, &mut other), 5);
        assert!(block[..5].iter().all(|x| x.abs() < 1e-14));
        let mut block = vec![1.0; 18];
        assert_eq!(transform.apply([1, 2], &mut block, &mut other), 15);
    }

    #[test]
    fn cartesian_blocks_stay_as_they_are() {
        let mut block: Vec<f64> = (0..36).map(f64::from).collect();
        let before = block.clone();
        assert_eq!(Transform::to(Functions::Cartesian).apply([2, 2], &mut block, &mut Vec::new()), 36);
        assert_eq!(block, before);
    }
}
