//! Read-modify-write: every draw is somebody's, once.

use std::time::{Duration, Instant};

use armci_core::SharedCounter;
use tests::{Ranks, matrix};

#[test]
fn every_number_is_drawn_exactly_once() {
    matrix(|world| {
        const DRAWS: usize = 2_000;
        let counter = SharedCounter::create(world).unwrap();
        let drawn = world.allocate(8 * DRAWS).unwrap();
        for round in 0..2 {
            world.put(&vec![0i64; DRAWS], drawn.at(world.rank(), 0)).unwrap();
            counter.reset().unwrap();
            let mut last = -1;
            loop {
                let number = if round == 0 { counter.next().unwrap() } else { counter.next_chunk(1).unwrap().start };
                assert!(number > last, "a rank's draws grow");
                last = number;
                if number >= DRAWS as i64 {
                    break;
                }
                world.accumulate(1i64, &[1], drawn.at(0, number as usize)).unwrap();
            }
            world.barrier().unwrap();
            let mut counts = vec![0i64; DRAWS];
            world.get(drawn.at(0, 0), &mut counts).unwrap();
            assert!(counts.iter().all(|count| *count == 1));
            world.barrier().unwrap();
        }
        counter.destroy().unwrap();
        world.free(drawn).unwrap();
    });
}

#[test]
fn words_of_every_type_wrap_swap_and_compare() {
    matrix(|world| {
        let region = world.allocate(64).unwrap();
        let me = world.rank();
        let small = region.at::<i32>(me, 0);
        world.put_value(i32::MAX, small).unwrap();
        assert_eq!(world.fetch_add(small, 2).unwrap(), i32::MAX);
        assert_eq!(world.get_value(small).unwrap(), i32::MIN + 1);
        let wide = region.at::<u64>(me, 1);
        world.put_value(5u64, wide).unwrap();
        assert_eq!(world.swap(wide, u64::MAX).unwrap(), 5);
        assert_eq!(world.compare_swap(wide, 5, 6).unwrap(), u64::MAX);
        assert_eq!(world.compare_swap(wide, u64::MAX, 6).unwrap(), u64::MAX);
        assert_eq!(world.fetch_add(wide, 0).unwrap(), 6);
        world.free(region).unwrap();
    });
}

/// All ranks bang on one word by compare-and-swap: a lock-free sum.
#[test]
fn compare_and_swap_loses_no_update() {
    matrix(|world| {
        let region = world.allocate(8).unwrap();
        let word = region.at::<i64>(0, 0);
        if world.rank() == 0 {
            world.put_value(0i64, word).unwrap();
        }
        world.barrier().unwrap();
        for _ in 0..200 {
            let mut seen = world.get_value(word).unwrap();
            loop {
                let found = world.compare_swap(word, seen, seen + 3).unwrap();
                if found == seen {
                    break;
                }
                seen = found;
            }
        }
        world.barrier().unwrap();
        assert_eq!(world.get_value(word).unwrap(), 600 * world.size() as i64);
        world.free(region).unwrap();
    });
}

/// The owner computes and never calls in: the progress thread alone serves its messages.
#[test]
fn a_computing_owner_is_served_by_its_progress_thread() {
    for ranks in [2, 3, 4] {
        Ranks::new(ranks).env("ARMCI_PROGRESS", "thread").env("ARMCI_PROTOCOL", "rmw=am").run(|world| {
            const DRAWS: u64 = 100;
            // Words on rank 0: the counter, how many are done; on the others: whether to start.
            let region = world.allocate(16).unwrap();
            world.put(&[0i64, 0], region.at(world.rank(), 0)).unwrap();
            // Ranks of other nodes ask once where a part lies: that is not to be counted below.
            (0..world.size()).for_each(|rank| _ = world.get_value::<i64>(region.at(rank, 0)).unwrap());
            world.barrier().unwrap();
            // A direct get only looks at memory: it serves nobody.
            let look = |word| world.get_value::<i64>(region.at(world.rank(), word)).unwrap();
            let deadline = Instant::now() + Duration::from_secs(20) * tests::mode::patience();
            let compute_until = |done: &dyn Fn() -> bool| {
                while !done() {
                    assert!(Instant::now() < deadline, "nobody serves a computing owner");
                    std::hint::spin_loop();
                }
            };
            if world.rank() == 0 {
                let before = world.statistics();
                (1..world.size()).for_each(|rank| world.put_value(1i64, region.at(rank, 0)).unwrap());
                let others = world.size() as u64 - 1;
                compute_until(&|| look(1) == others as i64);
                // Who comes from another node to the meeting below sends a message, too.
                let most = (DRAWS + 1) * others + if world.nodes() == 1 { 0 } else { others };
                compute_until(&|| {
                    let served = world.statistics().served_by_thread - before.served_by_thread;
                    ((DRAWS + 1) * others..=most).contains(&served)
                });
                assert_eq!(world.statistics().served_by_main, before.served_by_main);
            } else {
                compute_until(&|| look(0) == 1);
                for _ in 0..DRAWS {
                    world.fetch_add(region.at::<i64>(0, 0), 1).unwrap();
                }
                world.fetch_add(region.at::<i64>(0, 1), 1).unwrap();
            }
            world.barrier().unwrap();
            assert_eq!(world.get_value::<i64>(region.at(0, 0)).unwrap(), (DRAWS * (world.size() as u64 - 1)) as i64);
            world.free(region).unwrap();
        });
    }
}
