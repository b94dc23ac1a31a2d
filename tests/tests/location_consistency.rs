//! A rank's operations to one place take effect in program order, also where the path changes in between.

use std::time::Duration;

use armci_core::config::{Conflicts, Path, Protocol};
use armci_core::{ConflictCounts, GlobalPtr, Strided, World};
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

fn at(world: &World, target: usize) -> GlobalPtr<i64> {
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

/// Rank 1, a neighbour, serves nobody while rank 0 runs `body`: messages to it are outstanding for certain, and its memory
/// is looked at all the same. Its hold ends by itself
/// after a while, so whoever waits for one of them does wait, and goes on.
fn while_messages_are_outstanding(world: &World, body: impl FnOnce()) {
    const WHILE: Duration = Duration::from_millis(500);
    // Rank 1 is looked at meanwhile, and serves nobody.
    world.set_protocol(Protocol::all(Path::Rma));
    let begun = world.allocate(8).unwrap();
    world.put_value(0i64, begun.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    match world.rank() {
        0 => {
            while world.get_value::<i64>(begun.at(1, 0)).unwrap() == 0 {
                std::thread::yield_now();
            }
            body();
        }
        1 => {
            let held = world.hold_service();
            world.put_value(1i64, begun.at(1, 0)).unwrap();
            std::thread::sleep(WHILE);
            drop(held);
        }
        _ => {}
    }
    world.barrier().unwrap();
    world.free(begun).unwrap();
}

/// What keeping order did since `before`: waits, waits avoided, waits for other regions.
fn since(world: &World, before: ConflictCounts) -> [u64; 3] {
    let now = world.statistics().conflicts;
    [now.waits - before.waits, now.avoided - before.avoided, now.false_waits - before.false_waits]
}

/// The pattern of a matrix multiply: accumulates to C by message, gets of A and B by remote memory access between
/// them; then a get of C.
fn multiply(world: &World) {
    let [a, b, c] = [1i64, 2, 0].map(|value| {
        let region = world.allocate(1 << 13).unwrap();
        world.put(&[value; 1 << 10], region.at(world.rank(), 0)).unwrap();
        region
    });
    world.barrier().unwrap();
    let by_message = Protocol { accumulate: Path::Am, ..Protocol::all(Path::Rma) };
    while_messages_are_outstanding(world, || {
        world.set_protocol(by_message);
        let before = world.statistics().conflicts;
        for _ in 0..10 {
            world.accumulate(1i64, &[1; 1 << 10], c.at(1, 0)).unwrap();
            for (from, value) in [(&a, 1), (&b, 2)] {
                let mut block = [0i64; 8];
                world.get(from.at(1, 0), &mut block).unwrap();
                assert_eq!(block, [value; 8]);
            }
        }
        match world.config().conflicts {
            Conflicts::Region => assert_eq!(since(world, before), [0, 20, 0], "gets of A and B waited"),
            Conflicts::Target => {
                let [waits, avoided, false_waits] = since(world, before);
                assert!(waits == 0 && avoided == 0 && false_waits > 0, "gets of A and B did not wait");
            }
            _ => {}
        }
        let mut block = [0i64; 8];
        world.get(c.at(1, 0), &mut block).unwrap();
        assert_eq!(block, [10; 8], "a get of C sees the accumulates before it");
        if world.config().conflicts == Conflicts::Region {
            assert_eq!(since(world, before), [1, 20, 0]);
        }
        world.set_protocol(world.config().protocol);
    });
    [c, b, a].into_iter().for_each(|region| world.free(region).unwrap());
}

#[test]
fn another_region_is_not_waited_for() {
    for progress in ["thread", "none"] {
        for ranks in [2, 3] {
            Ranks::new(ranks).on_one_node().env("ARMCI_PROGRESS", progress).run(multiply);
        }
    }
}

#[test]
fn tracking_by_target_waits_for_other_regions() {
    Ranks::new(2).on_one_node().env("ARMCI_CONFLICTS", "target").run(multiply);
}

/// The test above notices a tracker that does not track.
#[test]
fn a_broken_tracker_is_found_out() {
    let outcome = Ranks::new(2).on_one_node().env("ARMCI_CONFLICTS", "off").expect_failure(multiply);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(said.contains("a get of C sees the accumulates before it"), "{said}");
}

/// A get that is not waited for is an outstanding read: a later write by another path waits for it, a read does not.
fn read_then_write(world: &World) {
    let [region, other] = [7i64, 8].map(|value| {
        let region = world.allocate(1 << 10).unwrap();
        world.put(&[value; 1 << 7], region.at(world.rank(), 0)).unwrap();
        region
    });
    world.barrier().unwrap();
    let writes: [&dyn Fn(GlobalPtr<i64>); 4] = [
        &|place| world.put(&[0; 100], place).unwrap(),
        &|place| world.accumulate(1, &[1; 100], place).unwrap(),
        &|place| assert_eq!(world.fetch_add(place, 1).unwrap(), 7),
        &|place| world.notify(place, 1).unwrap(),
    ];
    for write in writes {
        while_messages_are_outstanding(world, || {
            let place = region.at::<i64>(1, 0);
            world.set_protocol(Protocol { get: Path::Am, ..Protocol::all(Path::Rma) });
            let get = world.get_nb(place, vec![0; 100]).unwrap();
            world.set_protocol(Protocol::all(Path::Rma));
            let before = world.statistics().conflicts;
            assert_eq!(world.get_value(place).unwrap(), 7);
            assert_eq!(since(world, before), [0, 0, 0], "a get waited for a get");
            world.put_value(9, other.at::<i64>(1, 0)).unwrap();
            assert_eq!(since(world, before)[0], 0, "a put waited for a get from another region");
            write(place);
            assert_eq!(get.wait().unwrap(), [7; 100], "a get sees no write behind it");
            if world.config().conflicts == Conflicts::Region {
                assert_eq!(since(world, before), [1, 1, 0]);
            }
            world.put(&[7; 100], place).unwrap();
        });
    }
    [other, region].into_iter().for_each(|region| world.free(region).unwrap());
}

#[test]
fn a_write_waits_for_the_get_before_it() {
    Ranks::new(2).on_one_node().run(read_then_write);
}

#[test]
fn a_tracker_that_forgets_reads_is_found_out() {
    let outcome = Ranks::new(2).on_one_node().env("ARMCI_CONFLICTS", "off").expect_failure(read_then_write);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(said.contains("a get sees no write behind it"), "{said}");
}
