//! The product of two matrices by the arrays' own `assign_product`. Its operands are sums of small integers along rows and
//! columns, so every element of the product is known, and exact.

use armci_core::World;
use global_arrays::GlobalArray;

use crate::error::{Error, Result};
use crate::kernel::{note_times, scaled};
use crate::setup::{Notes, Setup};
use crate::stats::in_step;
use crate::study::Wanted;

/// Strong and weak.
pub fn jobs(wanted: &Wanted) -> Vec<Setup> {
    scaled(wanted, "matmul", if wanted.quick { 512 } else { 1536 }, 1, &[""])
}

fn small(at: usize, modulus: usize) -> f64 {
    (at % modulus) as f64 - (modulus / 2) as f64
}

/// Multiplies, checks, and notes the time; collective.
///
/// # Errors
/// What the operations say; [`Error::Wrong`] if an element is not what it must be.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let n = setup.n;
    let make = |name| GlobalArray::<f64>::create(world, name, [n, n]);
    let (a, b, c) = (make("a")?, make("b")?, make("c")?);
    a.indexed_map_inplace(|(i, k), value| *value = small(i, 7) + small(k, 5))?;
    b.indexed_map_inplace(|(k, j), value| *value = small(k, 3) + small(j, 11))?;
    let samples = if setup.quick { 3 } else { 7 };
    let took = in_step(samples, 1, || c.assign_product(1.0, &a, &b, 0.0))?;
    let sum = |of: &dyn Fn(usize) -> f64| (0..n).map(of).sum::<f64>();
    let (along_a, along_b) = (sum(&|k| small(k, 5)), sum(&|k| small(k, 3)));
    let both = sum(&|k| small(k, 5) * small(k, 3));
    c.indexed_map_inplace(|(i, j), value| {
        let (left, right) = (small(i, 7), small(j, 11));
        *value -= n as f64 * left * right + left * along_b + right * along_a + both;
    })?;
    let worst = c.norm_max()?;
    [a, b, c].into_iter().try_for_each(|array| array.destroy())?;
    if worst != 0.0 {
        return Err(Error::Wrong(format!("a product of {n} x {n}: an element is off by {worst}")));
    }
    let seconds = took.map_or(f64::NAN, |took| took.median * 1e-9);
    note_times(world, setup, notes, &[("", seconds)], ("GFLOP/s", 2.0 * (n as f64).powi(3) * 1e-9, "gemm"))
}
