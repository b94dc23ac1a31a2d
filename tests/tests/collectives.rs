//! Barrier, broadcast, all-reduce, gather; allocation and freeing, with memory that runs out.

use armci_core::{Error, Reduce};
use tests::{Ranks, for_each, matrix, on_ranks};

#[test]
fn broadcast_and_gather_move_any_length() {
    matrix(|world| {
        for len in [0, 1, 100, 2048, 2049, 10_000] {
            for root in 0..world.size() {
                let mut values: Vec<i64> = (0..len).map(|at| at * (world.rank() as i64 + 1)).collect();
                world.broadcast(root, &mut values).unwrap();
                assert!(values.iter().enumerate().all(|(at, value)| *value == (at * (root + 1)) as i64));
            }
            let mine = vec![world.rank() as u16; len as usize];
            let all = world.all_gather(&mine).unwrap();
            let expected: Vec<u16> = (0..world.size()).flat_map(|rank| vec![rank as u16; len as usize]).collect();
            assert_eq!(all, expected);
        }
        assert!(matches!(world.broadcast(world.size(), &mut [0u8]), Err(Error::Rank { .. })));
    });
}

#[test]
fn reductions_give_everybody_the_same_bits() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        for len in [1, 7, 5_000] {
            let mine: Vec<f64> = (0..len).map(|at| 0.1 * (at + me * len) as f64).collect();
            let reference = |combine: fn(f64, f64) -> f64| -> Vec<f64> {
                (0..len)
                    .map(|at| (0..size).map(|rank| 0.1 * (at + rank * len) as f64).reduce(combine).unwrap())
                    .collect()
            };
            for (reduce, combine) in [
                (Reduce::Sum, (|a, b| a + b) as fn(f64, f64) -> f64),
                (Reduce::Product, |a, b| a * b),
                (Reduce::Min, f64::min),
                (Reduce::Max, f64::max),
            ] {
                let mut values = mine.clone();
                world.all_reduce(&mut values, reduce).unwrap();
                assert_eq!(values, reference(combine), "{reduce:?}");
            }
        }
        let mut counts = [1u64, me as u64];
        world.all_reduce(&mut counts, Reduce::Sum).unwrap();
        assert_eq!(counts, [size as u64, (size * (size - 1) / 2) as u64]);
    });
}

#[test]
fn thirty_two_ranks_on_few_cores_finish() {
    Ranks::new(32).run(|world| {
        for round in 0..50u64 {
            let mut sum = [round + world.rank() as u64];
            world.all_reduce(&mut sum, Reduce::Sum).unwrap();
            assert_eq!(sum, [32 * round + 31 * 16]);
        }
    });
}

#[test]
fn memory_is_used_again_and_given_back() {
    for_each([1, 2, 3, 4], |world| {
        let start = world.statistics().node_memory;
        for round in 0..300 {
            let region = world.allocate(100 + round * 10).unwrap();
            world.put(&[round as u8; 100], region.at(world.rank(), 0)).unwrap();
            world.free(region).unwrap();
        }
        let grown = world.statistics().node_memory - start;
        assert!(grown < (1 << 20) * world.size() as u64, "300 small regions, one at a time, took {grown} bytes");

        // Live regions do not touch each other, in whatever order they are freed.
        let mut live = Vec::new();
        for round in 0..200usize {
            let region = world.allocate(64 + 37 * round).unwrap();
            world.put(&vec![round as u8; 64 + 37 * round], region.at(world.rank(), 0)).unwrap();
            live.push((round, region));
            if round % 3 == 2 {
                let (_, region) = live.remove(live.len() / 2);
                world.free(region).unwrap();
            }
        }
        for (round, region) in live {
            let mut content = vec![0u8; 64 + 37 * round];
            world.get(region.at(world.rank(), 0), &mut content).unwrap();
            assert!(content.iter().all(|byte| *byte == round as u8));
            world.free(region).unwrap();
        }
    });
}

#[test]
fn too_much_memory_is_an_error_on_every_rank() {
    for ranks in [1, 2, 3, 4] {
        Ranks::new(ranks).env("ARMCI_MEMORY", "64M").run(|world| {
            let held = world.statistics().node_memory;
            for asked in [1usize << 27, 1 << 44] {
                // Only the last rank asks for much; all hear of it.
                let mine = if world.rank() + 1 == world.size() { asked } else { 8 };
                let error = world.allocate(mine).unwrap_err();
                match &error {
                    Error::Memory { asked: wanted, limit, .. } => {
                        assert_eq!((*wanted, *limit), (asked as u64, 64 << 20));
                    }
                    Error::SlotFull { .. } => assert_eq!(asked, 1 << 44),
                    other => panic!("{other}"),
                }
                assert!(error.to_string().contains(&asked.to_string()), "{error}");
            }
            assert_eq!(world.statistics().node_memory, held, "nothing was taken");
            // And it goes on.
            let region = world.allocate(1 << 20).unwrap();
            world.barrier().unwrap();
            world.free(region).unwrap();
        });
    }
}

/// What was freed stays resident, but not at the price of a refusal.
#[test]
fn free_memory_is_not_held_hostage() {
    for ranks in [1, 2, 3, 4] {
        Ranks::new(ranks).env("ARMCI_MEMORY", "100M").run(|world| {
            const MIB: usize = 1 << 20;
            let pieces: Vec<_> = (0..5).map(|_| world.allocate(4 * MIB).unwrap()).collect();
            let kept = world.allocate(8).unwrap();
            world.put_value(7u8, kept.at(world.rank(), 0)).unwrap();
            pieces.into_iter().for_each(|piece| world.free(piece).unwrap());
            // 20 MiB are free and resident on each rank, in one range; 22 fit only elsewhere.
            let large = world.allocate(22 * MIB).unwrap();
            world.put_value(9u8, large.at(world.rank(), 22 * MIB - 1)).unwrap();
            assert_eq!(world.get_value::<u8>(kept.at(world.rank(), 0)).unwrap(), 7);
            world.free(large).unwrap();
            world.free(kept).unwrap();
        });
    }
}

#[test]
fn unequal_collective_calls_are_found_out() {
    Ranks::new(3).run(|world| {
        let (a, b) = (world.allocate(64).unwrap(), world.allocate(128).unwrap());
        let (first, second) = if world.rank() == 1 { (b, a) } else { (a, b) };
        world.free(first).unwrap();
        world.free(second).unwrap();
        assert!(matches!(world.allocate(64), Err(Error::Diverged { rank: 1 })));
    });
}

#[test]
fn regions_beyond_the_table_are_an_error() {
    // Between nodes, each of the allocations is a meeting over the network.
    Ranks::new(2).timeout(std::time::Duration::from_secs(180)).run(|world| {
        let mut live = Vec::new();
        let error = loop {
            match world.allocate(8) {
                Ok(region) => live.push(region),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::RegionTableFull { limit } if limit == live.len()), "{error}");
        for region in live {
            world.free(region).unwrap();
        }
        let region = world.allocate(8).unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn nothing_can_be_asked_after_finalize() {
    Ranks::new(2).run_bare(|| {
        let world = armci_core::World::init().unwrap();
        let counter = armci_core::SharedCounter::create(&world).unwrap();
        let region = world.allocate(64).unwrap();
        world.finalize().unwrap();
        assert!(world.barrier().unwrap_err().to_string().contains("finalize"));
        assert!(counter.next().is_err());
        assert!(counter.destroy().is_err());
        assert!(world.put(&[1u8], region.at(0, 0)).is_err());
        assert!(world.get_value::<u8>(region.at(0, 0)).is_err());
        assert!(world.fence(0).is_err() && world.fence_all().is_err());
        assert!(world.finalize().is_err(), "a rank leaves once");
        assert!(world.allocate(8).is_err());
        assert!(armci_core::World::init().is_err(), "a process joins once");
    });
}

#[test]
fn reductions_of_all_types_and_kinds() {
    use num_complex::{Complex32, Complex64};

    for_each([1, 2, 3, 4, 5], |world| {
        let (me, size) = (world.rank() as i64, world.size() as i64);
        let signed = |rank: i64| if rank % 2 == 0 { -rank - 1 } else { rank + 1 };
        // From 256 numbers on, ranks share the work.
        for len in [1, 8, 300, 5000] {
            macro_rules! check {
                ($number:ty, $reduce:ident, $expected:expr) => {{
                    let mut values = vec![signed(me) as $number; len];
                    world.all_reduce(&mut values, Reduce::$reduce).unwrap();
                    assert!(values.iter().all(|value| *value == $expected as $number), "{:?}", &values[..1]);
                }};
            }
            let all = || (0..size).map(signed);
            macro_rules! of_type {
                ($($number:ty),*) => {$(
                    check!($number, Sum, all().sum::<i64>());
                    check!($number, Product, all().product::<i64>());
                    check!($number, Min, all().min().unwrap());
                    check!($number, Max, all().max().unwrap());
                    check!($number, AbsMin, 1);
                    check!($number, AbsMax, size);
                )*};
            }
            of_type!(i32, i64, f32, f64);
            check!(i32, And, all().reduce(|a, b| a & b).unwrap());
            check!(i64, Or, all().reduce(|a, b| a | b).unwrap());
            check!(u64, Or, all().reduce(|a, b| a | b).unwrap());
            for (first, others) in [(0, 0), (5, 0), (0, -5), (5, -5)] {
                let any = first != 0 || (others != 0 && size > 1);
                let all = first != 0 && (others != 0 || size == 1);
                for (reduce, expected) in [(Reduce::Any, any), (Reduce::All, all)] {
                    let mut values = vec![if me == 0 { first } else { others }; len];
                    world.all_reduce(&mut values, reduce).unwrap();
                    assert!(values.iter().all(|value| *value == i64::from(expected)), "{reduce:?} {values:?}");
                }
            }
            let mut small = vec![Complex32::new(1.0, me as f32); len];
            world.all_reduce(&mut small, Reduce::Sum).unwrap();
            assert!(small.iter().all(|value| *value == Complex32::new(size as f32, (size * (size - 1) / 2) as f32)));
            let mut large = vec![Complex64::new(0.0, 1.0); len];
            world.all_reduce(&mut large, Reduce::Product).unwrap();
            assert!(large.iter().all(|value| *value == Complex64::new(0.0, 1.0).powu(size as u32)));
        }
        assert!(matches!(world.all_reduce(&mut [1.0f64], Reduce::And), Err(Error::Argument(_))));
        assert!(matches!(world.all_reduce(&mut [Complex64::default()], Reduce::Max), Err(Error::Argument(_))));
    });
}

#[test]
fn an_exchange_gives_each_its_share() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        for len in [0usize, 1, 5, 1000, 6000] {
            let mine: Vec<u32> = (0..len * size).map(|at| (1_000_000 * me + at) as u32).collect();
            let theirs = world.exchange(&mine).unwrap();
            let expected: Vec<u32> =
                (0..len * size).map(|at| (1_000_000 * (at / len) + me * len + at % len) as u32).collect();
            assert_eq!(theirs, expected);
        }
        if size > 1 {
            assert!(matches!(world.exchange(&vec![0u8; size + 1]), Err(Error::Argument(_))));
        }
    });
}

#[test]
fn a_split_barrier_completes_and_does_not_hold_up() {
    matrix(|world| {
        let region = world.allocate(8 * world.size()).unwrap();
        let (me, right) = (world.rank(), (world.rank() + 1) % world.size());
        for round in 0..200i64 {
            world.put_value(round, region.at(right, me)).unwrap();
            let mut arrival = world.begin_barrier().unwrap();
            if !arrival.test() {
                let refusal = world.barrier().unwrap_err().to_string();
                assert!(refusal.contains("split-phase"), "{refusal}");
            }
            match round % 3 {
                0 => arrival.wait().unwrap(),
                1 => {
                    while !arrival.test() {
                        // Something else to do: serve, by a call that waits for nothing.
                        world.fence_all().unwrap();
                        std::thread::yield_now();
                    }
                }
                _ => drop(arrival),
            }
            let left = (me + world.size() - 1) % world.size();
            assert_eq!(world.get_value::<i64>(region.at(me, left)).unwrap(), round);
            world.barrier().unwrap();
        }
        world.free(region).unwrap();
    });
}

/// Whoever comes first or last: what is called during a split-phase barrier is refused to all, and harms nobody.
#[test]
fn calls_during_a_split_barrier_are_refused_to_all() {
    matrix(|world| {
        for round in 0..100 {
            let region = world.allocate(64).unwrap();
            let arrival = world.begin_barrier().unwrap();
            assert!(world.begin_barrier().is_err() && world.finalize().is_err() && world.synchronize().is_err());
            assert!(world.free(region).is_err());
            if round % 2 == 0 {
                arrival.wait().unwrap();
            } else {
                drop(arrival);
            }
            world.barrier().unwrap();
        }
    });
}

/// A large part on one rank costs the others nothing.
#[test]
fn parts_that_differ_much_are_taken_separately() {
    for_each([2, 3, 4], |world| {
        const LARGE: usize = 64 << 20;
        let start = world.statistics().node_memory;
        world.synchronize().unwrap();
        let mine = if world.rank() + 1 == world.size() { LARGE } else { 8 * world.rank() };
        let region = world.allocate(mine).unwrap();
        let taken = world.statistics().node_memory - start;
        let last = world.size() - 1;
        let node = |rank| world.node_of(rank).unwrap();
        // Of other nodes, none takes anything to speak of.
        let large = if node(last) == node(world.rank()) { LARGE as u64 } else { 0 };
        assert!((large..large + (1 << 20)).contains(&taken), "{taken} bytes were taken");
        world.put_value(world.rank() as i64, region.at(last, LARGE / 8 - 1 - world.rank())).unwrap();
        assert!(matches!(world.put_value(1u8, region.at(0, 0)), Err(Error::Bounds { len: 0, .. })));
        world.barrier().unwrap();
        for rank in 0..world.size() {
            assert_eq!(world.get_value::<i64>(region.at(last, LARGE / 8 - 1 - rank)).unwrap(), rank as i64);
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// Three ranks that ask for sizes in even steps: what the middle one asks for is the mean of all three, which shall not
/// pass for agreement with it, at no size.
#[test]
fn sizes_in_even_steps_are_no_agreement() {
    on_ranks(3, |world| {
        // From here on a block of that size class lies ready.
        world.free(world.allocate(1024).unwrap()).unwrap();
        for base in 970..1016 {
            for step in 1..8 {
                let mine = base - step + step * world.rank();
                let region = world.allocate(mine).unwrap();
                assert_eq!(world.local_part(&region).unwrap().1, mine);
                world.free(region).unwrap();
            }
        }
    });
}
