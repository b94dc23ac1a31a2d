//! What is borrowed must live as long as the scope: a local of its body does not.

use armci_core::{GlobalPtr, Result, World};

fn local(world: &World, source: GlobalPtr<f64>) -> Result<()> {
    world.nonblocking(|scope| {
        let mut buffer = [0.0; 10];
        scope.get(source, &mut buffer)?;
        Ok(())
    })
}

fn main() {}
