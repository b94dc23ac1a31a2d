//! An array is not destroyed while a transfer of one of its patches is under way.

use global_arrays::{GlobalArray, Result};

fn destroyed(array: GlobalArray<f64>) -> Result<()> {
    let get = array.get_nb([0..4, 0..4])?;
    array.destroy()?;
    get.wait()?;
    Ok(())
}

fn main() {}
