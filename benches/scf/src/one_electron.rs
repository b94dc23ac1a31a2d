//! Overlap, kinetic energy, nuclear attraction and dipole integrals.
//!
//! Matrices are filled shell pair by shell pair; which pairs is the caller's choice, so that
//! ranks can share the work and add up what they have.

use integral::engine::os::{self, Prim};
use integral::math::am::n_cart;
use ndarray::{Array2, s};

use crate::molecule::Molecule;
use crate::shells::{Orbitals, Shell};
use crate::spherical::Transform;

/// Overlap and core Hamiltonian (kinetic energy plus nuclear attraction).
#[derive(Debug, Clone)]
pub struct OneElectron {
    /// Overlap.
    pub overlap: Array2<f64>,
    /// Core Hamiltonian.
    pub core: Array2<f64>,
}

impl OneElectron {
    /// Fills the blocks of those shell pairs whose number modulo `parts` is `part`, symmetric
    /// halves included; the sum over all parts is the matrices. The pairs are dealt out in the
    /// order of the triangle, which spreads the contracted shells evenly.
    pub fn part(orbitals: &Orbitals, molecule: &Molecule, part: usize, parts: usize) -> Self {
        let n = orbitals.len();
        let mut out = Self { overlap: Array2::zeros((n, n)), core: Array2::zeros((n, n)) };
        let charges = molecule.point_charges();
        let mut blocks = Blocks::new(orbitals);
        let mut number = 0;
        for (i, a) in orbitals.shells.iter().enumerate() {
            for b in &orbitals.shells[..=i] {
                if number % parts == part {
                    blocks.fill(a, b, &mut out.overlap, os::overlap_into);
                    blocks.fill(a, b, &mut out.core, |p, q, scale, to| {
                        os::kinetic_into(p, q, scale, to);
                        os::nuclear_into(p, q, &charges, scale, to);
                    });
                }
                number += 1;
            }
        }
        out
    }
}

/// The three components of the electrons' position about `origin`.
pub fn dipole(orbitals: &Orbitals, origin: [f64; 3]) -> [Array2<f64>; 3] {
    let n = orbitals.len();
    let mut out = [0, 1, 2].map(|_| Array2::zeros((n, n)));
    let mut blocks = Blocks::new(orbitals);
    for (axis, matrix) in out.iter_mut().enumerate() {
        for (i, a) in orbitals.shells.iter().enumerate() {
            for b in &orbitals.shells[..=i] {
                blocks.fill(a, b, matrix, |p, q, scale, to| {
                    let mut rest = [vec![0.0; to.len()], vec![0.0; to.len()]];
                    let [first, second] = &mut rest;
                    match axis {
                        0 => os::dipole_into(p, q, origin, scale, to, first, second),
                        1 => os::dipole_into(p, q, origin, scale, first, to, second),
                        _ => os::dipole_into(p, q, origin, scale, first, second, to),
                    }
                });
            }
        }
    }
    out
}

/// Buffers for one shell pair after another.
struct Blocks {
    transform: Transform,
    block: Vec<f64>,
    other: Vec<f64>,
}

impl Blocks {
    fn new(orbitals: &Orbitals) -> Self {
        Self { transform: Transform::to(orbitals.functions), block: Vec::new(), other: Vec::new() }
    }

    /// Contracts `primitive` (which adds scale times the integrals of two primitives) over a
    /// shell pair and writes the block and its mirror image.
    fn fill(
        &mut self,
        a: &Shell,
        b: &Shell,
        matrix: &mut Array2<f64>,
        primitive: impl Fn(Prim, Prim, f64, &mut [f64]),
    ) {
        self.block.clear();
        self.block.resize(n_cart(a.l) * n_cart(b.l), 0.0);
        for (&x, &c) in a.exponents.iter().zip(&a.coefficients) {
            for (&y, &d) in b.exponents.iter().zip(&b.coefficients) {
                primitive(Prim::new(x, a.centre, a.l), Prim::new(y, b.centre, b.l), c * d, &mut self.block);
            }
        }
        let length = self.transform.apply([a.l, b.l], &mut self.block, &mut self.other);
        let (rows, columns) = (a.functions.clone(), b.functions.clone());
        let view = ndarray::ArrayView2::from_shape((rows.len(), columns.len()), &self.block[..length])
            .expect("a block has as many entries as its shells have functions");
        matrix.slice_mut(s![rows.clone(), columns.clone()]).assign(&view);
        matrix.slice_mut(s![columns, rows]).assign(&view.t());
    }
}
