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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::{self, BasisSet, Functions};

    fn orbitals(file: &str, name: &str) -> (Molecule, Orbitals) {
        let molecule = Molecule::from_xyz("m", file, 0).unwrap();
        let set = BasisSet::parse(&basis::find(name).unwrap()).unwrap();
        let orbitals = Orbitals::new(&molecule, &set, Functions::Spherical).unwrap();
        (molecule, orbitals)
    }

    /// The textbook's H2 in STO-3G at 1.4 bohr (Szabo and Ostlund, section 3.5.2).
    #[test]
    fn hydrogen_molecule_has_the_textbook_integrals() {
        let length = 1.4 / crate::molecule::BOHR_PER_ANGSTROM;
        let (molecule, orbitals) = orbitals(&format!("2\n\nH 0 0 0\nH 0 0 {length}\n"), "sto-3g");
        let all = OneElectron::part(&orbitals, &molecule, 0, 1);
        assert!((all.overlap[[0, 0]] - 1.0).abs() < 1e-14);
        assert!((all.overlap[[0, 1]] - 0.6593).abs() < 5e-5);
        // T + V: 0.7600 - 1.2266 - 0.6538 and 0.2365 - 0.5974 - 0.5974.
        assert!((all.core[[0, 0]] + 1.1204).abs() < 1.1e-4);
        assert!((all.core[[0, 1]] + 0.9584).abs() < 1.1e-4);
    }

    #[test]
    fn parts_add_up_and_functions_have_unit_norm() {
        let (molecule, orbitals) = orbitals(include_str!("../molecules/h2o.xyz"), "cc-pvtz");
        let whole = OneElectron::part(&orbitals, &molecule, 0, 1);
        let sum = (0..3).map(|p| OneElectron::part(&orbitals, &molecule, p, 3).core).reduce(|a, b| a + b).unwrap();
        assert!((&sum - &whole.core).iter().all(|d| d.abs() < 1e-13));
        assert!(whole.overlap.diag().iter().all(|s| (s - 1.0).abs() < 1e-12));
    }

    #[test]
    fn the_dipole_of_a_function_is_where_it_sits() {
        let (_, orbitals) = orbitals("1\n\nHe 0 0 1\n", "6-31g**");
        let [x, _, z] = dipole(&orbitals, [0.0; 3]);
        assert!((z[[0, 0]] - crate::molecule::BOHR_PER_ANGSTROM).abs() < 1e-12 && x[[0, 0]].abs() < 1e-14);
    }
}
