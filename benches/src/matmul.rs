//! The product of two arrays, beside the same product by the local library alone: two ranks, each with its half of it in
//! its own memory, on both cores at once.

use armci_core::World;
use global_arrays::GlobalArray;
use ndarray::Array2;
use ndarray::linalg::general_mat_mul;

use crate::error::{Error, Result};
use crate::figure::Figures;
use crate::timing::{Effort, in_turn, side};

/// The length of each axis.
const LENGTH: usize = 2048;
/// Additions and multiplications of a product.
pub const OPERATIONS: usize = 2 * LENGTH * LENGTH * LENGTH;

/// Measures `matmul`, and `matmul_local` by the library; collective.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let make = |name| GlobalArray::<f64>::builder(world, name, [LENGTH, LENGTH]).filled(1.0).create();
    let (a, b, c) = (make("a")?, make("b")?, make("c")?);
    let half = || Array2::<f64>::ones((LENGTH / world.size(), LENGTH));
    let (left, right, mut product) = (half(), Array2::<f64>::ones((LENGTH, LENGTH)), half());
    let mut sides = [
        side(|| Ok::<_, Error>(c.assign_product(1.0, &a, &b, 0.0)?)),
        side(|| {
            world.barrier()?;
            general_mat_mul(1.0, &left, &right, 0.0, &mut product);
            Ok(world.barrier()?)
        }),
    ];
    let taken = in_turn((effort.samples / 40).max(5), 1, &mut sides)?;
    drop(sides);
    if world.rank() == 1 {
        figures.add("matmul", taken[0]);
        figures.add("matmul_local", taken[1]);
    }
    [a, b, c].into_iter().try_for_each(|array| Ok(array.destroy()?))
}
