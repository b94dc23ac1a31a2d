//! A tour of the runtime: put, accumulate, a shared counter, an active message, statistics.
//!
//! `cargo run --release -p armci-core --example tour` starts it on two ranks; `armci-run -n 4 target/release/examples/tour`
//! on four.

use armci_core::{Result, SharedCounter, World, job};

fn main() {
    job::launch(2, || match tour() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("tour: {error}");
            1
        }
    })
}

fn tour() -> Result<()> {
    let world = World::init()?;
    let (me, size) = (world.rank(), world.size());
    let right = (me + 1) % size;

    // Put: write a neighbour's memory without its help.
    let region = world.allocate(8 * 1024)?;
    world.put(&[me as f64; 8], region.at(right, 0))?;
    world.barrier()?;
    let mut mine = [0.0; 8];
    world.get(region.at(me, 0), &mut mine)?;
    println!("rank {me}: my left neighbour put {} here", mine[0]);
    world.barrier()?;

    // Accumulate: everybody adds into rank 0; the sum is exact.
    world.accumulate(2.0, &[1.0; 8], region.at(0, 100))?;
    world.barrier()?;
    if me == 0 {
        let sum: f64 = world.get_value(region.at(0, 100))?;
        println!("rank 0: {size} ranks added 2 each to what was there: {sum}");
    }

    // A shared counter hands out tasks, each exactly once.
    let counter = SharedCounter::create(&world)?;
    let mut tasks = 0;
    while counter.next()? < 1000 {
        tasks += 1;
    }
    println!("rank {me}: did {tasks} of 1000 tasks");
    counter.destroy()?;

    // An active message runs a function at its target.
    let reverse = world.register(|delivery, reply| {
        let mut text = delivery.payload.to_vec();
        text.reverse();
        reply.set(&text)
    })?;
    world.barrier()?;
    let answer = world.request(right, reverse, b"egassem evitca na")?;
    println!("rank {me}: rank {right} answered {:?}", String::from_utf8_lossy(&answer));

    world.free(region)?;
    let statistics = world.statistics();
    println!("rank {me}: {statistics:?}");
    world.finalize()
}
