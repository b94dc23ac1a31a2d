//! A view that was lent to a transfer of a patch cannot be looked at before the wait, nor lent twice.

use armci_core::World;
use global_arrays::{GlobalArray, Result, nonblocking};
use ndarray::Array2;

fn looked_at(world: &World, array: &GlobalArray<f64>) -> Result<f64> {
    let mut buffer = Array2::zeros((4, 4));
    nonblocking(world, |scope| {
        scope.get(array, [0..4, 0..4], &mut buffer)?;
        Ok(buffer.sum())
    })
}

fn twice(world: &World, array: &GlobalArray<f64>) -> Result<()> {
    let mut buffer = Array2::zeros((4, 4));
    nonblocking(world, |scope| {
        scope.get(array, [0..4, 0..4], &mut buffer)?;
        scope.get(array, [0..4, 0..4], &mut buffer)?;
        Ok(())
    })
}

fn written(world: &World, array: &GlobalArray<f64>) -> Result<()> {
    let mut buffer = Array2::zeros((4, 4));
    nonblocking(world, |scope| {
        scope.put(array, [0..4, 0..4], &buffer)?;
        buffer[[0, 0]] = 1.0;
        Ok(())
    })
}

fn main() {}
