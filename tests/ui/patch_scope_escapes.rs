//! Neither a transfer of a patch nor a view that lives too short leaves, or enters, its scope.

use armci_core::World;
use global_arrays::{GlobalArray, Result, nonblocking};
use ndarray::{Array2, ArrayViewMut2};

fn returned(world: &World, array: &GlobalArray<f64>, buffer: ArrayViewMut2<'_, f64>) {
    let _ = nonblocking(world, |scope| scope.get(array, [0..4, 0..4], buffer));
}

fn too_short(world: &World, array: &GlobalArray<f64>) -> Result<()> {
    nonblocking(world, |scope| {
        let mut buffer = Array2::zeros((4, 4));
        scope.get(array, [0..4, 0..4], &mut buffer)?;
        Ok(())
    })
}

fn main() {}
