//! A handle of a patch may be forgotten, so it takes no view; what it was given is back when it was waited for.

use global_arrays::{GlobalArray, Result};
use ndarray::{Array2, ArrayViewMut2};

fn borrowed(array: &GlobalArray<f64>, buffer: ArrayViewMut2<'_, f64>) {
    let _ = array.get_into_nb([0..4, 0..4], buffer);
}

fn given_away(array: &GlobalArray<f64>) -> Result<f64> {
    let buffer = Array2::ones((4, 4));
    let put = array.put_nb([0..4, 0..4], buffer)?;
    let sum = buffer.sum();
    put.wait()?;
    Ok(sum)
}

fn main() {}
