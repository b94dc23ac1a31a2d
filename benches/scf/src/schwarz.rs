//! Schwarz bounds: |(ij|kl)| <= bound(ij) bound(kl), what screening goes by.

use crate::eri::Evaluator;
use crate::pairs::{Pair, products, triangle};
use crate::shells::{Orbitals, Shell};

/// Schwarz bounds of the shell pairs whose number modulo `parts` is `part`, zero for the
/// others; the sum over all parts is the bounds, in the order of the triangle.
pub fn schwarz_part(orbitals: &Orbitals, part: usize, parts: usize) -> Vec<f64> {
    let n = orbitals.shells.len();
    let mut bounds = vec![0.0; n * (n + 1) / 2];
    let mut evaluator = Evaluator::new(orbitals);
    for (i, a) in orbitals.shells.iter().enumerate() {
        for (j, b) in orbitals.shells[..=i].iter().enumerate() {
            let number = triangle(i, j);
            if number % parts == part {
                bounds[number] = schwarz(&mut evaluator, a, b, i, j);
            }
        }
    }
    bounds
}

fn schwarz(evaluator: &mut Evaluator<'_>, a: &Shell, b: &Shell, i: usize, j: usize) -> f64 {
    let pair = Pair { first: i, second: j, bound: 0.0, class: 0, products: products(a, b) };
    let block = evaluator.one(&pair, &pair, true);
    let width = a.functions.len() * b.functions.len();
    let largest = (0..width).map(|k| block[k * width + k].abs()).fold(0.0, f64::max);
    largest.sqrt()
}
