//! Ten lines of Global Arrays, in Rust: what `ten_lines.c` and `ten_lines.F90` beside this file do
//! (see `docs/global-arrays-compared.md`). A job of one rank, or `armci-run -n 2 target/debug/examples/ten_lines`.

use global_arrays::{GlobalArray, SharedCounter, World};
use ndarray::{arr2, s};

const N: usize = 100;
const TASKS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let world = World::init()?;
    let [patch, done, product] = ten_lines(&world)?;
    if world.rank() == 0 {
        println!("{patch:.1} {done:.1} {product:.1}");
    }
    world.finalize()?;
    Ok(())
}

/// An element of the patch, the sum of all tasks' numbers, and `(a b) . b`.
///
/// # Errors
/// Whatever goes wrong.
pub fn ten_lines(world: &World) -> Result<[f64; 3], Box<dyn std::error::Error>> {
    // create, fill
    let a = GlobalArray::<f64>::create(world, "a", [N, N])?;
    let (b, c) = (a.duplicate("b")?, a.duplicate("c")?);
    let counter = SharedCounter::create(world)?;
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
    c.assign_product(1.0, &a, &b, 0.0)?;
    let product = c.dot(&b)?;

    counter.destroy()?;
    for array in [a, b, c] {
        array.destroy()?;
    }
    Ok([patch[[1, 2]], done, product])
}
