//! Ten lines of Global Arrays, in Rust: what `ten_lines.c` and `ten_lines.F90` beside this file do
//! (see `docs/global-arrays-compared.md`). A job of one rank, or `armci-run -n 2 target/debug/examples/ten_lines`.

use global_arrays::{GlobalArray, SharedCounter, World};
use ndarray::{arr2, s};

const N: usize = 100;
const TASKS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let world = World::init()?;

    // create, fill
    let a = GlobalArray::<f64>::create(&world, "a", [N, N])?;
    let (b, c) = (a.duplicate("b")?, a.duplicate("c")?);
    let counter = SharedCounter::create(&world)?;
    a.fill(2.0)?;
    b.fill(0.5)?;

    // put, accumulate, get of a patch
    let patch = arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    if world.rank() == 0 {
        a.put(s![10..12, 40..43], &patch)?;
        a.accumulate(s![10..12, 40..43], 0.5, &patch)?;
    }
    a.sync()?;
    let patch = a.get(s![10..12, 40..43])?;

    // share out tasks
    let mut done = 0.0;
    for task in counter.tasks(TASKS) {
        done += task? as f64;
    }
    let done = a.group().sum(done)?;

    // multiply, dot
    counter.reset()?;
    let mut product = 0.0;
    for row in counter.tasks(N) {
        let row = row?;
        let of_c = a.get(s![row, ..])?.dot(&b.get(..)?);
        product += of_c.dot(&b.get(s![row, ..])?);
        c.put(s![row, ..], &of_c)?;
    }
    let product = a.group().sum(product)?;

    if world.rank() == 0 {
        println!("{:.1} {:.1} {:.1}", patch[[1, 2]], done, product);
    }
    counter.destroy()?;
    c.destroy()?;
    b.destroy()?;
    a.destroy()?;
    world.finalize()?;
    Ok(())
}
