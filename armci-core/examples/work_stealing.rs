//! Work stealing: all the work begins at one rank, and ranks without any ask others for half of theirs.
//!
//! A steal is an active message. Its handler runs at the victim without the victim's help: it pops tasks off the deque
//! that the victim works on from the other end, and the reply carries them away.
//!
//! `cargo run --release -p armci-core --example work_stealing` starts it on four ranks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use armci_core::{HandlerId, Reduce, Result, STAGING_BYTES, World, job};

/// A task: a number whose Collatz sequence is to be counted.
type Task = u64;
const TASKS: i64 = 20_000;
/// Tasks that a reply can carry.
const LOOT_MAX: usize = STAGING_BYTES / size_of::<Task>();

fn main() {
    job::launch(4, || match balance() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("work_stealing: {error}");
            1
        }
    })
}

/// The tasks of this rank: it works on the front, thieves take from the back.
#[derive(Clone, Default)]
struct Deque(Arc<Mutex<VecDeque<Task>>>);

impl Deque {
    fn with<R>(&self, change: impl FnOnce(&mut VecDeque<Task>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Half of what is there.
    fn half(&self) -> Vec<Task> {
        self.with(|tasks| {
            let loot = (tasks.len() / 2).min(LOOT_MAX);
            tasks.split_off(tasks.len() - loot).into()
        })
    }
}

fn balance() -> Result<()> {
    let world = World::init()?;
    let (me, size) = (world.rank(), world.size());
    let deque = Deque::default();
    let victim = deque.clone();
    let steal = world.register(move |_, reply| reply.set(bytemuck::cast_slice(&victim.half())))?;
    // Tasks done by anybody: the work is over when that is all.
    let region = world.allocate(if me == 0 { 8 } else { 0 })?;
    let done = region.at::<i64>(0, 0);
    if me == 0 {
        world.put_value(0i64, done)?;
        deque.with(|tasks| tasks.extend(1..=TASKS as Task));
    }
    world.barrier()?;

    let (mut steps, mut mine, mut steals) = (0, 0, 0);
    loop {
        while let Some(task) = deque.with(VecDeque::pop_front) {
            steps += collatz(task);
            mine += 1;
            world.fetch_add(done, 1)?;
        }
        if size > 1 && rob_somebody(&world, steal, &deque)? {
            steals += 1;
        } else if world.fetch_add(done, 0)? == TASKS {
            break;
        }
    }
    println!("rank {me}: {mine} tasks done, after {steals} steals");

    let mut total = [steps];
    world.all_reduce(&mut total, Reduce::Sum)?;
    let expected = (1..=TASKS as Task).map(collatz).sum();
    assert_eq!(total, [expected], "every task is done once");
    world.free(region)?;
    world.finalize()
}

/// Asks one rank after the other; whether one had something.
fn rob_somebody(world: &World, steal: HandlerId, deque: &Deque) -> Result<bool> {
    for distance in 1..world.size() {
        let loot = world.request((world.rank() + distance) % world.size(), steal, &[])?;
        if !loot.is_empty() {
            // The reply's bytes are aligned to nothing in particular.
            let tasks = loot.chunks_exact(size_of::<Task>()).map(bytemuck::pod_read_unaligned::<Task>);
            deque.with(|own| own.extend(tasks));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Steps from `n` to 1, two hundred times over, so that a task takes a while.
fn collatz(n: Task) -> i64 {
    (0..200).map(|_| std::hint::black_box(n)).fold(0, |_, mut n| {
        let mut steps = 0;
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    })
}
