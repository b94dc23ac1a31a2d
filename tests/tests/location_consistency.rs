//! A rank's operations to one place take effect in program order, also where the path changes in between.

use armci_core::config::{Path, Protocol};
use armci_core::{Statistics, World};
use tests::{Ranks, for_each};

const PATHS: [Path; 2] = [Path::Rma, Path::Am];

/// Runs `first` by one path and `second` by another, for all four pairs of paths, against every rank.
fn litmus(first: impl Fn(&World, usize, i64), second: impl Fn(&World, usize, i64)) {
    for_each([1, 2, 3, 4], |world| {
        for paths in PATHS.into_iter().flat_map(|a| PATHS.map(|b| [a, b])) {
            for round in 0..200 {
                let target = (world.rank() + round) % world.size();
                world.set_protocol(Protocol::all(paths[0]));
                first(world, target, round as i64);
                world.set_protocol(Protocol::all(paths[1]));
                second(world, target, round as i64);
            }
        }
        world.barrier().unwrap();
    });
}

/// A region with one line of eight words per rank on every rank: each rank has its own line everywhere.
fn own_line(world: &World) -> armci_core::Region {
    let region = world.allocate(64 * world.size()).unwrap();
    world.put(&vec![0i64; 8 * world.size()], region.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    region
}

thread_local! {
    static LINE: std::cell::OnceCell<armci_core::Region> = const { std::cell::OnceCell::new() };
}

fn at(world: &World, target: usize) -> armci_core::GlobalPtr<i64> {
    LINE.with(|line| line.get_or_init(|| own_line(world)).at(target, 8 * world.rank()))
}

#[test]
fn a_get_sees_the_put_before_it() {
    litmus(
        |world, target, round| world.put(&[round; 8], at(world, target)).unwrap(),
        |world, target, round| {
            let mut seen = [-1; 8];
            world.get(at(world, target), &mut seen).unwrap();
            assert_eq!(seen, [round; 8]);
        },
    );
}

#[test]
fn the_later_put_wins() {
    litmus(
        |world, target, round| world.put(&[-round; 8], at(world, target)).unwrap(),
        |world, target, round| {
            world.put(&[round; 8], at(world, target)).unwrap();
            world.fence(target).unwrap();
            assert_eq!(world.get_value(at(world, target).add(7)).unwrap(), round);
        },
    );
}

#[test]
fn a_get_sees_the_accumulate_before_it() {
    litmus(
        |world, target, round| {
            world.put(&[round; 8], at(world, target)).unwrap();
            world.accumulate(2i64, &[5; 8], at(world, target)).unwrap();
        },
        |world, target, round| {
            let mut seen = [-1; 8];
            world.get(at(world, target), &mut seen).unwrap();
            assert_eq!(seen, [round + 10; 8]);
        },
    );
}

#[test]
fn a_fetch_and_add_sees_the_put_before_it() {
    litmus(
        |world, target, round| world.put_value(100 * round, at(world, target)).unwrap(),
        |world, target, round| assert_eq!(world.fetch_add(at(world, target), 1).unwrap(), 100 * round),
    );
}

#[test]
fn a_put_overwrites_the_accumulate_before_it() {
    litmus(
        |world, target, _| world.accumulate(1i64, &[1_000_000; 8], at(world, target)).unwrap(),
        |world, target, round| {
            world.put(&[round; 8], at(world, target)).unwrap();
            world.fence(target).unwrap();
            assert_eq!(world.get_value(at(world, target)).unwrap(), round);
        },
    );
}

/// What was fenced is seen by whoever is told so afterwards.
#[test]
fn a_fenced_put_is_there_before_the_flag() {
    for_each([2, 3, 4], |world| {
        for path in PATHS {
            world.set_protocol(Protocol { put: path, ..Protocol::all(Path::Rma) });
            let data = world.allocate(8 * 1000).unwrap();
            let flag = world.allocate(8).unwrap();
            world.put_value(0i64, flag.at(world.rank(), 0)).unwrap();
            world.barrier().unwrap();
            let (right, me) = ((world.rank() + 1) % world.size(), world.rank());
            for round in 1..100i64 {
                world.put(&[round; 1000], data.at(right, 0)).unwrap();
                world.fence(right).unwrap();
                world.fetch_add(flag.at(right, 0), 1).unwrap();
                while world.fetch_add(flag.at(me, 0), 0i64).unwrap() < round {
                    std::hint::spin_loop();
                }
                let mut seen = [0i64; 1000];
                world.set_protocol(Protocol::all(Path::Rma));
                world.get(data.at(me, 0), &mut seen).unwrap();
                world.set_protocol(Protocol { put: path, ..Protocol::all(Path::Rma) });
                assert!(seen.iter().all(|value| *value >= round), "round {round}");
                world.barrier().unwrap();
            }
            world.free(flag).unwrap();
            world.free(data).unwrap();
        }
    });
}

/// The matrix-multiply pattern: gets of A by the other path wait for nothing while accumulates to C are under way.
#[test]
fn another_region_is_not_waited_for() {
    for ranks in [2, 3, 4] {
        // Without progress threads, messages are under way for certain.
        Ranks::new(ranks).env("ARMCI_PROGRESS", "none").run(|world| {
            let (a, c) = (world.allocate(1 << 16).unwrap(), world.allocate(1 << 16).unwrap());
            world.put(&[0i64; 1 << 13], c.at(world.rank(), 0)).unwrap();
            world.barrier().unwrap();
            world.set_protocol(Protocol { accumulate: Path::Am, ..Protocol::all(Path::Rma) });
            let right = (world.rank() + 1) % world.size();
            let before: Statistics = world.statistics();
            let mut block = [0i64; 8];
            for _ in 0..500 {
                world.accumulate(1i64, &[1; 1024], c.at(right, 0)).unwrap();
                world.get(a.at(right, 0), &mut block).unwrap();
            }
            let after = world.statistics();
            assert_eq!(after.conflicts.waits, before.conflicts.waits, "reads of another region waited");
            assert!(
                after.conflicts.avoided > before.conflicts.avoided,
                "no accumulate was under way: nothing was tested"
            );
            // But a get of C waits, and sees all of them.
            world.get(c.at(right, 0), &mut block).unwrap();
            assert_eq!(block, [500; 8]);
            world.barrier().unwrap();
            world.free(c).unwrap();
            world.free(a).unwrap();
        });
    }
}
