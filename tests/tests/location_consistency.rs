//! A rank's operations to one place take effect in program order, also where the path changes in between.

use armci_core::config::{Path, Protocol};
use armci_core::{Statistics, Strided, World};
use tests::{Ranks, for_each};

const PATHS: [Path; 2] = [Path::Rma, Path::Am];

/// Runs `first` by one path and `second` by another, for all four pairs of paths, against every rank: one that serves
/// at once, and one that serves only while it waits itself.
fn litmus(first: impl Fn(&World, usize, i64), second: impl Fn(&World, usize, i64)) {
    for (ranks, progress) in [1, 2, 3, 4].into_iter().flat_map(|ranks| ["thread", "none"].map(|how| (ranks, how))) {
        Ranks::new(ranks).env("ARMCI_PROGRESS", progress).run(|world| {
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

#[test]
fn a_get_sees_nothing_of_the_put_after_it() {
    litmus(
        |world, target, round| {
            let mut seen = [-1; 8];
            world.get(at(world, target), &mut seen).unwrap();
            // By the same rank: what it left there last, whole.
            assert!(seen[0] != round + 1 && seen == [seen[0]; 8], "{seen:?} in round {round}");
        },
        |world, target, round| world.put(&[round + 1; 8], at(world, target)).unwrap(),
    );
}

#[test]
fn an_accumulate_adds_to_the_put_before_it() {
    litmus(
        |world, target, round| world.put(&[100 * round; 8], at(world, target)).unwrap(),
        |world, target, round| {
            world.accumulate(3i64, &[4; 8], at(world, target)).unwrap();
            world.fence(target).unwrap();
            let mut seen = [-1; 8];
            world.get(at(world, target), &mut seen).unwrap();
            assert_eq!(seen, [100 * round + 12; 8]);
        },
    );
}

#[test]
fn a_put_overwrites_the_swap_before_it() {
    litmus(
        |world, target, round| _ = world.swap(at(world, target), -round).unwrap(),
        |world, target, round| {
            world.put_value(round, at(world, target)).unwrap();
            world.fence(target).unwrap();
            assert_eq!(world.fetch_add(at(world, target), 0).unwrap(), round);
        },
    );
}

#[test]
fn a_swap_takes_out_what_was_accumulated_before_it() {
    litmus(
        |world, target, round| {
            world.put_value(round, at(world, target)).unwrap();
            world.accumulate(2i64, &[round], at(world, target)).unwrap();
        },
        |world, target, round| assert_eq!(world.swap(at(world, target), -1).unwrap(), 3 * round),
    );
}

/// Operations of many messages each, over shapes that share places and nothing else.
#[test]
fn patches_and_rows_of_one_place_are_in_order() {
    const ROWS: usize = 40;
    const ROW: usize = 100;
    for_each([1, 2, 3, 4], |world| {
        let region = world.allocate(8 * ROWS * ROW * world.size()).unwrap();
        let shape = Strided { counts: &[ROW - 1, ROWS], local: &[ROW - 1], remote: &[ROW] };
        let mut seen = vec![0; ROWS * ROW];
        for round in 0..40i64 {
            let target = (world.rank() + round as usize) % world.size();
            let whole = region.at::<i64>(target, ROWS * ROW * world.rank());
            for paths in PATHS.into_iter().flat_map(|a| PATHS.map(|b| [a, b])) {
                world.set_protocol(Protocol::all(paths[0]));
                world.put(&[round; ROWS * ROW], whole).unwrap();
                world.set_protocol(Protocol::all(paths[1]));
                world.put_strided(&[-round; ROWS * ROW], whole, &shape).unwrap();
                world.set_protocol(Protocol::all(paths[0]));
                world.accumulate_strided(2, &[1; ROWS * ROW], whole.add(1), &shape).unwrap();
                world.set_protocol(Protocol::all(paths[1]));
                world.get(whole, &mut seen).unwrap();
                for row in seen.as_chunks::<ROW>().0 {
                    assert!(row[0] == -round && row[ROW - 1] == round + 2, "{row:?} in round {round}");
                    assert!(row[1..ROW - 1].iter().all(|value| *value == 2 - round), "{row:?} in round {round}");
                }
            }
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
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
