//! A buffer that was given to an operation is back when the operation was waited for.

use armci_core::{GlobalPtr, Result, World};

fn given_away(world: &World, target: GlobalPtr<f64>) -> Result<f64> {
    let buffer = vec![1.0; 10];
    let put = world.put_nb(buffer, target)?;
    let sum = buffer.iter().sum();
    put.wait()?;
    Ok(sum)
}

fn main() {}
