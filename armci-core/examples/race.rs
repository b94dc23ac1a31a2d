//! A mistake that `ARMCI_CHECK=1` finds: `ARMCI_CHECK=1 cargo run --release -p armci-core --example race`.

use armci_core::{Result, World, job};

fn main() {
    job::launch(2, || match race() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("race: {error}");
            1
        }
    })
}

fn race() -> Result<()> {
    let world = World::init()?;
    let sums = world.allocate(8 * 100)?;
    world.put(&[0.0; 100], sums.at(world.rank(), 0))?;
    world.barrier()?;

    // Accumulates need nothing between them, whoever makes them.
    world.accumulate(1.0, &[1.0; 100], sums.at(0, 0))?;
    // But here a barrier is missing: the other rank may still be adding.
    let total: f64 = world.get_value(sums.at(0, 99))?;

    println!("rank {}: {total}", world.rank());
    world.free(sums)?;
    world.finalize()
}
