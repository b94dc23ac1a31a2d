//! A buffer that was lent to a scope cannot be used in it, but through its handle.

use armci_core::{GlobalPtr, Result, World};

fn sum(world: &World, source: GlobalPtr<f64>) -> Result<f64> {
    let mut buffer = [0.0; 10];
    world.nonblocking(|scope| {
        scope.get(source, &mut buffer)?;
        Ok(buffer.iter().sum())
    })
}

fn main() {}
