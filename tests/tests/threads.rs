//! Threads of a rank that communicate at once, each through a context of its own.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use armci_core::{Error, Result, World};
use tests::{Ranks, matrix};

const THREADS: usize = 4;

/// Runs `body` on the joining thread's and on each attached thread's world, at once; gives each its number.
fn on_threads(world: &World, body: impl Fn(&World, usize) -> Result<()> + Sync) {
    let threads = world.threads();
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (threads, body) = (threads.clone(), &body);
            scope.spawn(move || {
                let world = threads.attach().unwrap();
                body(&world, number).unwrap();
                world.detach().unwrap();
            });
        }
    });
}

#[test]
fn all_threads_of_all_ranks_hammer_one_counter_and_one_sum() {
    matrix(|world| {
        const DRAWS: i64 = 300;
        let region = world.allocate(8 * 65).unwrap();
        world.put(&[0i64; 65], region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        let last = AtomicI64::new(-1);
        let (counter, sums) = (region.at::<i64>(0, 0), region.at::<i64>(0, 1));
        on_threads(world, |world, _| {
            let mut previous = -1;
            for _ in 0..DRAWS {
                let drawn = world.fetch_add(counter, 1)?;
                assert!(drawn > previous, "a thread drew {drawn} after {previous}");
                previous = drawn;
                world.accumulate(1i64, &[1; 64], sums)?;
            }
            last.fetch_max(previous, Ordering::Relaxed);
            Ok(())
        });
        world.barrier().unwrap();
        let mut found = [0i64; 65];
        world.get(region.at(0, 0), &mut found).unwrap();
        let total = DRAWS * (THREADS * world.size()) as i64;
        assert_eq!(found, [total; 65]);
        assert!(last.into_inner() < total);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn each_thread_finds_its_own_order() {
    matrix(|world| {
        let each = 8 * THREADS;
        let region = world.allocate(8 * each * world.size()).unwrap();
        world.barrier().unwrap();
        let me = world.rank();
        let region = &region;
        let places: Vec<Vec<_>> = (0..THREADS)
            .map(|number| (0..world.size()).map(|rank| region.at::<i64>(rank, me * each + 8 * number)).collect())
            .collect();
        on_threads(world, |world, number| {
            for round in 0..200i64 {
                let place = places[number][(round as usize + number) % world.size()];
                world.put(&[round; 8], place)?;
                world.accumulate(1, &[number as i64; 8], place)?;
                let mut seen = [0i64; 8];
                world.get(place, &mut seen)?;
                assert_eq!(seen, [round + number as i64; 8]);
            }
            Ok(())
        });
        world.barrier().unwrap();
    });
}

#[test]
fn long_transfers_of_all_threads_arrive_whole() {
    matrix(|world| {
        const LEN: usize = 20_000;
        let region = world.allocate(8 * LEN * THREADS).unwrap();
        world.barrier().unwrap();
        let right = (world.rank() + 1) % world.size();
        let places: Vec<_> = (0..THREADS).map(|number| region.at::<i64>(right, LEN * number)).collect();
        on_threads(world, |world, number| {
            let mine: Vec<i64> = (0..LEN).map(|index| (index * (number + 1)) as i64).collect();
            world.put(&mine, places[number])?;
            let mut back = vec![0; LEN];
            world.get(places[number], &mut back)?;
            assert_eq!(back, mine);
            Ok(())
        });
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn contexts_are_given_out_again() {
    Ranks::new(2).run(|world| {
        let region = world.allocate(8).unwrap();
        let place = region.at::<i64>(0, 0);
        world.put_value(0i64, region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        // Those of another node's rank each come with an endpoint, which costs milliseconds.
        let rounds = if world.nodes() == 1 { 200 } else { 50 };
        for _ in 0..rounds {
            on_threads(world, |world, _| world.accumulate(1i64, &[1], place));
        }
        world.barrier().unwrap();
        assert_eq!(world.get_value(place).unwrap(), 2 * rounds * THREADS as i64);
        world.barrier().unwrap();
    });
}

#[test]
fn what_is_collective_is_refused_to_attached_threads() {
    Ranks::new(2).run(|world| {
        let threads = world.threads();
        let refused = |result: Result<()>| match result {
            Err(Error::Argument(reason)) => assert!(reason.contains("collective"), "{reason}"),
            other => panic!("{other:?}"),
        };
        let (kept, refused) = (threads.clone(), &refused);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let world = threads.attach().unwrap();
                refused(world.barrier());
                refused(world.synchronize());
                refused(world.allocate(8).map(drop));
                refused(world.all_gather(&[1u8]).map(drop));
                refused(world.finalize());
            });
        });
        assert!(matches!(world.clone().detach(), Err(Error::Argument(_))));
        world.barrier().unwrap();
        drop(kept);
    });
}

#[test]
fn a_rank_does_not_leave_while_threads_are_attached() {
    Ranks::new(2).run(|world| {
        let attached = world.threads();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let world = attached.attach().unwrap();
            ready.send(()).unwrap();
            gone.recv().unwrap();
            drop(world);
        });
        is_ready.recv().unwrap();
        let refusal = world.finalize().unwrap_err().to_string();
        assert!(refusal.contains("1 threads"), "{refusal}");
        go.send(()).unwrap();
        thread.join().unwrap();
    });
}

/// A thread that serves stops after a batch and goes to do something else: what is left is served by the one that
/// sleeps in a wait, which nobody else wakes.
#[test]
fn what_a_batch_leaves_is_served_by_the_thread_that_sleeps() {
    Ranks::new(4).env("ARMCI_PROGRESS", "none").env("ARMCI_PROTOCOL", "am").run(|world| {
        let flags = world.allocate(8 * world.size()).unwrap();
        let slow_is_done = std::sync::Arc::new(AtomicI64::new(0));
        let done = slow_is_done.clone();
        let slow = world
            .register(move |_, _| {
                std::thread::sleep(Duration::from_millis(200));
                done.store(1, Ordering::Relaxed);
                Ok(())
            })
            .unwrap();
        let quick = world.register(|_, _| Ok(())).unwrap();
        world.put(&[0i64; 4], flags.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        if world.rank() != 0 {
            // Rank 1 first, then all of them more than a batch, with a flag at the end.
            std::thread::sleep(Duration::from_millis(if world.rank() == 1 { 50 } else { 120 }));
            if world.rank() == 1 {
                world.send(0, slow, &[]).unwrap();
                std::thread::sleep(Duration::from_millis(70));
            }
            (0..30).for_each(|_| world.send(0, quick, &[]).unwrap());
            world.notify(flags.at(0, world.rank()), 1).unwrap();
        } else {
            let (threads, mine) = (world.threads(), [1, 2, 3].map(|rank| flags.at::<i64>(0, rank)));
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let world = threads.attach().unwrap();
                    mine.into_iter().for_each(|flag| world.wait_value(flag, 1).unwrap());
                    world.detach().unwrap();
                });
                // Serves one batch, in which the slow one is, unless the other thread was faster.
                while slow_is_done.load(Ordering::Relaxed) == 0 {
                    world.probe(1, 0).unwrap();
                }
            });
        }
        world.barrier().unwrap();
        world.free(flags).unwrap();
    });
}
