//! Two gets in flight cannot have one target, nor may a put's source be written.

use armci_core::{GlobalPtr, Result, World};

fn twice(world: &World, place: GlobalPtr<f64>) -> Result<()> {
    let mut buffer = [0.0; 10];
    world.nonblocking(|scope| {
        scope.get(place, &mut buffer)?;
        scope.get(place, &mut buffer)?;
        Ok(())
    })
}

fn overwritten(world: &World, place: GlobalPtr<f64>) -> Result<()> {
    let mut buffer = [0.0; 10];
    world.nonblocking(|scope| {
        scope.put(&buffer, place)?;
        buffer[0] = 1.0;
        Ok(())
    })
}

fn main() {}
