//! The starting density: neutral, spherically averaged atoms put side by side.
//!
//! Each element's atom is solved in the molecule's own basis, restricted to spherical functions,
//! with the electrons of every open shell spread evenly over its components and both spins.
//! Its density is then placed on the diagonal blocks. Accuracy does not matter here, speed does:
//! an atom takes milliseconds.

use std::collections::BTreeMap;

use ndarray::Array2;

use crate::basis::{BasisSet, Functions};
use crate::diis::Diis;
use crate::elements::Element;
use crate::eri::Evaluator;
use crate::error::Result;
use crate::linalg::Orthogonal;
use crate::molecule::{Atom, Molecule};
use crate::one_electron::OneElectron;
use crate::pairs::Pairs;
use crate::schwarz::schwarz_part;
use crate::shells::{Orbitals, Shell};
use crate::spherical;

/// Densities of single atoms, in the functions the molecule uses.
#[derive(Debug, Default)]
pub struct Atoms {
    densities: BTreeMap<Element, Array2<f64>>,
}

/// The distinct elements of a molecule, in a fixed order, each with its number of functions.
pub fn elements(molecule: &Molecule, orbitals: &Orbitals) -> Vec<(Element, usize)> {
    let mut sizes = BTreeMap::<Element, usize>::new();
    for (index, atom) in molecule.atoms.iter().enumerate() {
        sizes.entry(atom.element).or_insert_with(|| functions_of(orbitals, index).len());
    }
    sizes.into_iter().collect()
}

impl Atoms {
    /// Adds an element's density.
    pub fn insert(&mut self, element: Element, density: Array2<f64>) {
        self.densities.insert(element, density);
    }

    /// The sum of the atoms' densities in the molecule.
    pub fn superpose(&self, molecule: &Molecule, orbitals: &Orbitals) -> Array2<f64> {
        let n = orbitals.len();
        let mut density = Array2::zeros((n, n));
        for (index, atom) in molecule.atoms.iter().enumerate() {
            let Some(block) = self.densities.get(&atom.element) else { continue };
            let places = functions_of(orbitals, index);
            for ((i, j), value) in block.indexed_iter() {
                density[[places[i], places[j]]] = *value;
            }
        }
        density
    }
}

/// The functions on an atom; they have the same order as those of the atom alone.
fn functions_of(orbitals: &Orbitals, atom: usize) -> Vec<usize> {
    orbitals.shells.iter().filter(|s| s.atom == atom).flat_map(|s| s.functions.clone()).collect()
}

/// Solves one element's atom; the density is over `functions`.
///
/// # Errors
/// The element is not in the basis set.
pub fn atom(element: Element, set: &BasisSet, functions: Functions) -> Result<Array2<f64>> {
    let nucleus = Atom { element, position: [0.0; 3] };
    let molecule = Molecule { atoms: vec![nucleus], comment: String::new(), charge: 0 };
    let orbitals = Orbitals::new(&molecule, set, Functions::Spherical)?;
    let density = solve(element, &molecule, &orbitals);
    Ok(match functions {
        Functions::Spherical => density,
        Functions::Cartesian => to_cartesian(&orbitals, &density),
    })
}

/// Rewrites a density over spherical functions as one over Cartesian ones.
fn to_cartesian(orbitals: &Orbitals, density: &Array2<f64>) -> Array2<f64> {
    let width = |shell: &Shell| crate::shells::width(shell.l, Functions::Cartesian);
    let total = orbitals.shells.iter().map(width).sum();
    let mut map = Array2::zeros((orbitals.len(), total));
    let mut column = 0;
    for shell in &orbitals.shells {
        for (k, row) in shell.functions.clone().enumerate() {
            if shell.l < 2 {
                map[[row, column + k]] = 1.0;
            } else {
                for &(cartesian, factor) in &spherical::rows(shell.l)[k] {
                    map[[row, column + cartesian]] = factor;
                }
            }
        }
        column += width(shell);
    }
    map.t().dot(density).dot(&map)
}

/// A spin- and space-averaged Hartree-Fock for one atom.
fn solve(element: Element, molecule: &Molecule, orbitals: &Orbitals) -> Array2<f64> {
    let n = orbitals.len();
    let matrices = OneElectron::part(orbitals, molecule, 0, 1);
    let integrals = dense(orbitals);
    let shells = element.shells();
    let momenta: Vec<Channel> = (0..shells.len()).map(|l| Channel::new(orbitals, &matrices.overlap, l)).collect();

    let mut density = Array2::zeros((n, n));
    let mut fock = matrices.core.clone();
    let mut diis = Diis::default();
    for _ in 0..30 {
        let mut next = Array2::zeros((n, n));
        for (channel, electrons) in momenta.iter().zip(&shells) {
            channel.occupy(&fock, electrons, &mut next);
        }
        let change = (&next - &density).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        density = next;
        if change < 1e-5 {
            break;
        }
        fock = &matrices.core + &two_electron(&integrals, &density);
        let product = fock.dot(&density).dot(&matrices.overlap);
        let residual = &product - &product.t();
        fock = diis.extrapolate(fock, residual);
    }
    density
}

/// The radial functions of one angular momentum.
struct Channel {
    l: usize,
    /// First function of each shell.
    places: Vec<usize>,
    orthogonal: Option<Orthogonal>,
}

impl Channel {
    fn new(orbitals: &Orbitals, overlap: &Array2<f64>, l: usize) -> Self {
        let own = orbitals.shells.iter().filter(|s| s.l == l);
        let places: Vec<usize> = own.map(|s| s.functions.start).collect();
        let orthogonal = (!places.is_empty()).then(|| {
            let radial = Array2::from_shape_fn((places.len(), places.len()), |(i, j)| overlap[[places[i], places[j]]]);
            Orthogonal::new(&radial, 1e-8)
        });
        Self { l, places, orthogonal }
    }

    /// Fills the lowest orbitals of this angular momentum, `electrons[k]` into the k-th.
    fn occupy(&self, fock: &Array2<f64>, electrons: &[f64], density: &mut Array2<f64>) {
        let Some(orthogonal) = &self.orthogonal else { return };
        let (places, components) = (&self.places, 2 * self.l + 1);
        // The mean over the components, which differ only by rounding.
        let radial = Array2::from_shape_fn((places.len(), places.len()), |(i, j)| {
            (0..components).map(|m| fock[[places[i] + m, places[j] + m]]).sum::<f64>() / components as f64
        });
        let (_, vectors) = orthogonal.solve(&radial);
        for (orbital, count) in vectors.columns().into_iter().zip(electrons) {
            let occupation = count / components as f64;
            for (i, &p) in places.iter().enumerate() {
                for (j, &q) in places.iter().enumerate() {
                    for m in 0..components {
                        density[[p + m, q + m]] += occupation * orbital[i] * orbital[j];
                    }
                }
            }
        }
    }
}

/// All two-electron integrals of a small basis: (pq|rs) at row pq, column rs.
pub(crate) fn dense(orbitals: &Orbitals) -> Array2<f64> {
    let n = orbitals.len();
    let pairs = Pairs::new(orbitals, &schwarz_part(orbitals, 0, 1), 0.0);
    let mut evaluator = Evaluator::new(orbitals);
    let mut out = Array2::zeros((n * n, n * n));
    for (number, bra) in pairs.list.iter().enumerate() {
        for ket in &pairs.list[..=number] {
            let mut block = evaluator.one(bra, ket, pairs.batched[bra.class * pairs.classes + ket.class]).iter();
            let [a, b] = pairs.shells(bra);
            let [c, d] = pairs.shells(ket);
            for p in a.functions.clone() {
                for q in b.functions.clone() {
                    for r in c.functions.clone() {
                        for (s, &value) in d.functions.clone().zip(block.by_ref()) {
                            for row in [p * n + q, q * n + p] {
                                for column in [r * n + s, s * n + r] {
                                    out[[row, column]] = value;
                                    out[[column, row]] = value;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    out
}

/// Coulomb minus half exchange of a density, from dense integrals.
pub(crate) fn two_electron(integrals: &Array2<f64>, density: &Array2<f64>) -> Array2<f64> {
    let n = density.nrows();
    let flat = density.iter().copied().collect::<ndarray::Array1<f64>>();
    let mut out = integrals.dot(&flat).into_shape_with_order((n, n)).expect("n^2 entries");
    for p in 0..n {
        for q in 0..n {
            let row = integrals.row(p * n + q);
            // (pq|rs) D_qs is the exchange between p and r.
            for r in 0..n {
                let sum: f64 = (0..n).map(|s| row[r * n + s] * density[[q, s]]).sum();
                out[[p, r]] -= 0.5 * sum;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis;

    #[test]
    fn atoms_hold_their_electrons() {
        let set = BasisSet::parse(&basis::find("6-31g*").unwrap()).unwrap();
        let molecule = Molecule::from_xyz("m", "2\n\nO 0 0 0\nCl 0 0 3\n", 0).unwrap();
        for functions in [Functions::Cartesian, Functions::Spherical] {
            let orbitals = Orbitals::new(&molecule, &set, functions).unwrap();
            let mut atoms = Atoms::default();
            for (element, size) in elements(&molecule, &orbitals) {
                let density = atom(element, &set, functions).unwrap();
                assert_eq!(density.nrows(), size);
                atoms.insert(element, density);
            }
            let density = atoms.superpose(&molecule, &orbitals);
            let overlap = OneElectron::part(&orbitals, &molecule, 0, 1).overlap;
            let electrons = (&density * &overlap).sum();
            assert!((electrons - 25.0).abs() < 1e-6, "{functions}: {electrons}");
        }
    }
}
