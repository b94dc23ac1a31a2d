//! An operation is waited for by the thread that started it.

use armci_core::{GlobalPtr, Result, World};

fn elsewhere(world: &World, source: GlobalPtr<f64>) -> Result<()> {
    let get = world.get_nb(source, vec![0.0; 10])?;
    std::thread::spawn(move || get.wait());
    Ok(())
}

fn main() {}
