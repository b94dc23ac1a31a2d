//! Neither a handle nor an aggregate leaves its scope.

use armci_core::{GlobalPtr, Result, World};

fn returned(world: &World, source: GlobalPtr<f64>, buffer: &mut [f64]) {
    let _ = world.nonblocking(|scope| scope.get(source, buffer));
}

fn stored(world: &World, source: GlobalPtr<f64>, buffer: &mut [f64]) -> Result<()> {
    let mut kept = None;
    world.nonblocking(|scope| {
        kept = Some(scope.get(source, buffer)?);
        Ok(())
    })
}

fn aggregate(world: &World) {
    let _ = world.nonblocking(|scope| Ok(scope.aggregate()));
}

fn main() {}
