//! A tour of the runtime: put, accumulate, a shared counter, an active message; then the report and the timeline of it.
//!
//! `cargo run --release -p armci-core --example tour` starts it on two ranks; `armci-run -n 4 target/release/examples/tour`
//! on four. The timeline goes to a file in the directory for temporary files; open it with <https://ui.perfetto.dev>.

use armci_core::{Config, Result, SharedCounter, World, job};

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
    // The settings of the environment, and that this run shall be seen (ARMCI_STATS=1 ARMCI_TRACE=... says the same).
    let timeline = std::env::temp_dir().join("armci-tour.json");
    let mut config = Config::from_env()?;
    config.stats = true;
    config.trace.get_or_insert_with(|| timeline.clone());
    let world = World::init_with(config)?;
    let (me, size) = (world.rank(), world.size());
    let right = (me + 1) % size;

    // Put: write a neighbour's memory without its help.
    let region = world.allocate(8 * 1024)?;
    world.put(&[me as f64; 8], region.at(right, 0))?;
    world.barrier()?;
    let mut mine = [0.0; 8];
    world.get(region.at(me, 0), &mut mine)?;
    println!("rank {me}: my left neighbour put {} here", mine[0]);
    world.put(&[0.0; 8], region.at(me, 100))?;
    world.barrier()?;

    // Accumulate: everybody adds into rank 0; the sum is exact.
    world.accumulate(2.0, &[1.0; 8], region.at(0, 100))?;
    world.barrier()?;
    if me == 0 {
        let sum: f64 = world.get_value(region.at(0, 100))?;
        println!("rank 0: {size} ranks added 2 each: {sum}");
    }

    // A shared counter hands out tasks, each exactly once.
    let counter = SharedCounter::create(&world)?;
    let mut done = 0.0;
    let mut tasks = 0;
    while let task @ 0..1000 = counter.next()? {
        done += (0..2000).map(|step| f64::from(step) * task as f64).sum::<f64>();
        tasks += 1;
    }
    println!("rank {me}: did {tasks} of 1000 tasks (result {done:e})");
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

    // Statistics, for the program itself; the report of the whole job comes with the end.
    world.free(region)?;
    let statistics = world.statistics();
    println!("rank {me}: drew {} times; messages served here: {}", statistics.rmw.calls, statistics.served_by_thread);
    if me == 0 {
        let file = world.config().trace.as_deref().unwrap_or(&timeline);
        println!("rank 0: a timeline of this is in {}: open it with https://ui.perfetto.dev", file.display());
    }
    world.finalize()
}
