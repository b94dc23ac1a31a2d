//! Shell pairs: their primitive products and classes.
//!
//! The two-electron engine evaluates four shell quartets at a time if they look alike: same sum
//! of angular momenta and same number of primitive products on either side. A pair's *class*
//! is that look, so a quartet's is (bra class, ket class).

use integral::engine::os_eri::{ShellPairData, ShellRef, shell_pair_data};
use integral::{Engine, select_engine};

use crate::shells::{Orbitals, Shell};

/// A pair of shells, the first not before the second.
#[derive(Debug)]
pub struct Pair {
    /// The later shell.
    pub first: usize,
    /// The earlier shell.
    pub second: usize,
    /// Square root of the largest (ab|ab) in the block.
    pub bound: f64,
    /// Index into the classes of [`Pairs`].
    pub class: usize,
    /// Primitive products.
    pub products: ShellPairData,
}

/// What two pairs must share to be evaluated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    momentum: usize,
    products: usize,
    primitives: usize,
}

/// All significant pairs of an orbital basis.
#[derive(Debug)]
pub struct Pairs<'a> {
    /// The basis.
    pub orbitals: &'a Orbitals,
    /// Pairs in the order of the triangle.
    pub list: Vec<Pair>,
    /// Number of classes.
    pub classes: usize,
    /// For (bra class, ket class): whether the quartet goes to the Obara-Saika engine (which
    /// works four at a time) rather than to Rys quadrature.
    pub batched: Vec<bool>,
}

/// The number of the pair (i, j), i >= j, in the triangle.
pub fn triangle(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

/// A shell as the engine takes it, but for its coefficients, which only matter in `products`.
pub fn shell_ref(shell: &Shell) -> ShellRef<'_> {
    ShellRef { center: shell.centre, l: shell.l, exps: &shell.exponents, coeffs: &shell.coefficients }
}

/// Each coefficient is multiplied by this before primitive products are made: the engine keeps
/// products whose prefactor reaches 1e-32, and thus those whose true prefactor reaches 2e-16.
/// A power of two, so that nothing is rounded.
const SHRINK: f64 = 1.0 / (1_u64 << 27) as f64;

/// What blocks made from such products must be multiplied by.
pub const GROW: f64 = 1.0 / (SHRINK * SHRINK * SHRINK * SHRINK);

/// The primitive products of two shells.
pub fn products(a: &Shell, b: &Shell) -> ShellPairData {
    let small = |shell: &Shell| shell.coefficients.iter().map(|c| c * SHRINK).collect::<Vec<_>>();
    let (first, second) = (small(a), small(b));
    shell_pair_data(ShellRef { coeffs: &first, ..shell_ref(a) }, ShellRef { coeffs: &second, ..shell_ref(b) })
}

impl<'a> Pairs<'a> {
    /// Collects the pairs that can matter: those whose bound times the largest bound reaches
    /// `negligible`. `bounds` is in the order of the triangle.
    pub fn new(orbitals: &'a Orbitals, bounds: &[f64], negligible: f64) -> Self {
        let largest = bounds.iter().copied().fold(0.0, f64::max);
        let mut classes: Vec<Class> = Vec::new();
        let mut list = Vec::new();
        for (i, a) in orbitals.shells.iter().enumerate() {
            for (j, b) in orbitals.shells[..=i].iter().enumerate() {
                let bound = bounds[triangle(i, j)];
                if bound * largest < negligible {
                    continue;
                }
                let products = products(a, b);
                let class = Class {
                    momentum: a.l + b.l,
                    products: products.len(),
                    primitives: a.exponents.len() * b.exponents.len(),
                };
                let index = classes.iter().position(|c| *c == class).unwrap_or_else(|| {
                    classes.push(class);
                    classes.len() - 1
                });
                list.push(Pair { first: i, second: j, bound, class: index, products });
            }
        }
        let engine = |bra: &Class, ket: &Class| {
            select_engine(bra.momentum, ket.momentum, bra.primitives * ket.primitives) == Engine::OsHgp
        };
        let batched = classes.iter().flat_map(|bra| classes.iter().map(move |ket| engine(bra, ket))).collect();
        Self { orbitals, list, classes: classes.len(), batched }
    }

    /// The shells of a pair.
    pub fn shells(&self, pair: &Pair) -> [&'a Shell; 2] {
        [&self.orbitals.shells[pair.first], &self.orbitals.shells[pair.second]]
    }
}
