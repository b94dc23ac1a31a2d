//! A handle may be forgotten, so it takes no buffer that somebody else will have again.

use armci_core::{GlobalPtr, World};

fn borrowed(world: &World, source: GlobalPtr<f64>, buffer: &mut [f64]) {
    let _ = world.get_nb(source, buffer);
}

fn main() {}
