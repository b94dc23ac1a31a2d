//! Two-electron integrals over shell quartets, one at a time or four alike at once.
//!
//! This is the one place that calls the two-electron engines of the crate `integral`
//! (Obara-Saika/Head-Gordon-Pople and Rys quadrature; its own measured rule chooses).
//! Blocks come out row-major in the order of the two pairs: (first bra, second bra | first ket,
//! second ket).

use integral::engine::os_eri::{self, EriBatch4Scratch, EriScratch, ShellRef, coulomb_shell_batch4_pairs_into_scratch};
use integral::engine::{os::Prim, rys};
use integral::math::am::n_cart;

use crate::pairs::{GROW, Pair, shell_ref};
use crate::shells::{Orbitals, Shell};
use crate::spherical::Transform;

/// Evaluates quartets; owns the buffers.
pub struct Evaluator<'a> {
    orbitals: &'a Orbitals,
    transform: Transform,
    blocks: [Vec<f64>; 4],
    other: Vec<f64>,
    batch: EriBatch4Scratch,
    single: EriScratch,
}

impl<'a> Evaluator<'a> {
    /// An evaluator for quartets of these shells.
    pub fn new(orbitals: &'a Orbitals) -> Self {
        Self {
            orbitals,
            transform: Transform::to(orbitals.functions),
            blocks: Default::default(),
            other: Vec::new(),
            batch: EriBatch4Scratch::default(),
            single: EriScratch::new(),
        }
    }

    /// The block (bra|ket). `recursive` chooses Obara-Saika, otherwise Rys quadrature.
    pub fn one(&mut self, bra: &Pair, ket: &Pair, recursive: bool) -> &[f64] {
        let shells = self.shells(bra, ket);
        let block = &mut self.blocks[0];
        clear(block, shells);
        if recursive {
            let [a, b, c, d] = shells.map(shell_ref);
            os_eri::coulomb_shell_pairs_into_scratch(&mut self.single, a, b, c, d, &bra.products, &ket.products, block);
            block.iter_mut().for_each(|x| *x *= GROW);
        } else {
            quadrature(shells, block);
        }
        let length = self.transform.apply(shells.map(|s| s.l), block, &mut self.other);
        &self.blocks[0][..length]
    }

    /// The blocks of four quartets of the same class.
    pub fn four(&mut self, quartets: [(&Pair, &Pair); 4], mut each: impl FnMut(usize, &[f64])) {
        let shells = quartets.map(|(bra, ket)| self.shells(bra, ket));
        for (block, shells) in self.blocks.iter_mut().zip(shells) {
            clear(block, shells);
        }
        let [a, b, c, d] = &mut self.blocks;
        let references: [[ShellRef<'_>; 4]; 4] = shells.map(|quartet| quartet.map(shell_ref));
        coulomb_shell_batch4_pairs_into_scratch(
            &mut self.batch,
            &references,
            quartets.map(|q| &q.0.products),
            quartets.map(|q| &q.1.products),
            &mut [a, b, c, d],
        );
        for (lane, block) in self.blocks.iter_mut().enumerate() {
            block.iter_mut().for_each(|x| *x *= GROW);
            let length = self.transform.apply(shells[lane].map(|s| s.l), block, &mut self.other);
            each(lane, &block[..length]);
        }
    }

    fn shells(&self, bra: &Pair, ket: &Pair) -> [&'a Shell; 4] {
        [bra.first, bra.second, ket.first, ket.second].map(|i| &self.orbitals.shells[i])
    }
}

/// Makes `block` a zeroed Cartesian block for these shells.
fn clear(block: &mut Vec<f64>, shells: [&Shell; 4]) {
    block.clear();
    block.resize(shells.iter().map(|s| n_cart(s.l)).product(), 0.0);
}

/// Rys quadrature, primitive by primitive.
fn quadrature([a, b, c, d]: [&Shell; 4], block: &mut [f64]) {
    let primitives = |shell: &Shell| {
        let (centre, l) = (shell.centre, shell.l);
        let list = shell.exponents.iter().zip(&shell.coefficients);
        list.map(|(&x, &c)| (Prim::new(x, centre, l), c)).collect::<Vec<_>>()
    };
    let [a, b, c, d] = [a, b, c, d].map(primitives);
    for &(p, x) in &a {
        for &(q, y) in &b {
            for &(r, z) in &c {
                for &(s, w) in &d {
                    rys::coulomb_into(p, q, r, s, x * y * z * w, block);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::{self, BasisSet, Functions};
    use crate::molecule::Molecule;
    use crate::pairs::Pairs;
    use crate::schwarz::schwarz_part;

    fn orbitals(file: &str, name: &str, functions: Functions) -> Orbitals {
        let molecule = Molecule::from_xyz("m", file, 0).unwrap();
        let set = BasisSet::parse(&basis::find(name).unwrap()).unwrap();
        Orbitals::new(&molecule, &set, functions).unwrap()
    }

    /// The textbook's H2 in STO-3G at 1.4 bohr (Szabo and Ostlund, section 3.5.2).
    #[test]
    fn hydrogen_molecule_has_the_textbook_integrals() {
        let length = 1.4 / crate::molecule::BOHR_PER_ANGSTROM;
        let orbitals = orbitals(&format!("2\n\nH 0 0 0\nH 0 0 {length}\n"), "sto-3g", Functions::Spherical);
        let pairs = Pairs::new(&orbitals, &schwarz_part(&orbitals, 0, 1), 0.0);
        let mut evaluator = Evaluator::new(&orbitals);
        // Pairs in the order 11, 21, 22.
        for (bra, ket, value) in [(0, 0, 0.7746), (0, 2, 0.5697), (1, 0, 0.4441), (1, 1, 0.2970)] {
            let found = evaluator.one(&pairs.list[bra], &pairs.list[ket], true)[0];
            assert!((found - value).abs() < 5e-5, "{bra} {ket}: {found}");
        }
    }

    #[test]
    fn both_engines_and_the_batch_agree_and_obey_schwarz() {
        for functions in [Functions::Cartesian, Functions::Spherical] {
            let orbitals = orbitals(include_str!("../molecules/h2o.xyz"), "6-31g**", functions);
            let pairs = Pairs::new(&orbitals, &schwarz_part(&orbitals, 0, 1), 0.0);
            let mut first = Evaluator::new(&orbitals);
            let mut second = Evaluator::new(&orbitals);
            for (number, bra) in pairs.list.iter().enumerate().step_by(5) {
                for ket in pairs.list[..=number].iter().step_by(3) {
                    let one = first.one(bra, ket, true).to_vec();
                    let other = second.one(bra, ket, false);
                    let close = |x: &[f64]| one.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-12);
                    assert!(one.len() == other.len() && close(other));
                    assert!(one.iter().all(|g| g.abs() <= bra.bound * ket.bound * (1.0 + 1e-9) + 1e-15));
                    second.four([(bra, ket); 4], |_, block| assert!(close(block)));
                }
            }
        }
    }
}
