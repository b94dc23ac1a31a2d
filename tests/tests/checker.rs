//! The checker: each kind of conflict is found, with the two places that make it, and each kind of synchronisation
//! makes it go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use armci_core::{GlobalPtr, Mutexes, Reduce, Region, Segments, SharedCounter, Source, Strided, Tag, World};
use global_arrays::GlobalArray;
use ndarray::Array2;
use tests::Ranks;

/// What the checker says of a job, on each path.
fn check(ranks: usize, body: impl Fn(&World), judge: impl Fn(&Said)) {
    for protocol in ["rma", "am"] {
        let job = Ranks::new(ranks).env("ARMCI_CHECK", "1").env("ARMCI_PROTOCOL", protocol);
        if let Some(stderr) = job.run_for_stderr(&body) {
            judge(&Said::read(&stderr));
        }
    }
}

/// As [`check`], of a job in which nothing is to be found.
fn clean(ranks: usize, body: impl Fn(&World)) {
    check(ranks, body, Said::nothing);
}

/// What the checker has said.
struct Said {
    /// Conflicts, one a line.
    conflicts: Vec<String>,
    summary: String,
}

impl Said {
    fn read(stderr: &str) -> Self {
        let said = stderr.lines().filter_map(|line| Some(line.split_once("ARMCI_CHECK: ")?.1.to_owned()));
        let (conflicts, others): (Vec<_>, Vec<_>) = said.partition(|line| line.contains(" both touch "));
        let summary = others.first().expect("a summary").clone();
        Said { conflicts, summary }
    }

    fn nothing(&self) {
        assert!(self.conflicts.is_empty(), "{:#?}", self.conflicts);
        assert!(self.summary.starts_with("no conflicts in "), "{}", self.summary);
    }

    /// The one line about these two places.
    fn one(&self, first: (&str, u32), second: (&str, u32)) -> &str {
        let at = |line: &str, (verb, number): (&str, u32)| {
            let name = format!("checker.rs:{number} ");
            line.split(" and ").filter(|part| part.starts_with(verb) && format!("{part} ").contains(&name)).count()
        };
        let wanted = if first == second { 2 } else { 1 };
        let mut lines = self.conflicts.iter().filter(|line| at(line, first) == wanted && at(line, second) == wanted);
        let line = lines.next().unwrap_or_else(|| panic!("{first:?} and {second:?} in {:#?}", self.conflicts));
        assert!(lines.next().is_none(), "{:#?}", self.conflicts);
        line
    }
}

type Place = GlobalPtr<i64>;

const PUT: u32 = line!() + 2;
fn put(world: &World, place: Place) {
    world.put(&[7; 4], place).unwrap();
}

const GET: u32 = line!() + 2;
fn get(world: &World, place: Place) {
    world.get(place, &mut [0; 4]).unwrap();
}

const ACCUMULATE: u32 = line!() + 2;
fn accumulate(world: &World, place: Place) {
    world.accumulate(1, &[1; 4], place).unwrap();
}

const RMW: u32 = line!() + 2;
fn rmw(world: &World, place: Place) {
    world.fetch_add(place.add(1), 1).unwrap();
}

const NOTIFY: u32 = line!() + 2;
fn notify(world: &World, place: Place) {
    world.notify(place.add(1), 1).unwrap();
}

type Operation = (&'static str, u32, fn(&World, Place));
const OPERATIONS: [Operation; 5] = [
    ("put", PUT, put),
    ("get", GET, get),
    ("accumulate", ACCUMULATE, accumulate),
    ("read-modify-write", RMW, rmw),
    ("notify", NOTIFY, notify),
];

/// Whether two of these need to be ordered.
fn conflicts(first: &str, second: &str) -> bool {
    let atomic = |verb| verb == "read-modify-write" || verb == "notify";
    let harmless = first == second && first != "put" || atomic(first) && atomic(second);
    !harmless
}

/// Zeroed words on every rank, which all have come to know.
fn words(world: &World, count: usize) -> Region {
    let region = world.allocate(8 * count).unwrap();
    world.put(&vec![0i64; count], region.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    region
}

fn pairs() -> impl Iterator<Item = (usize, Operation, Operation)> {
    let all =
        OPERATIONS.iter().enumerate().flat_map(|(at, first)| OPERATIONS[at..].iter().map(|second| (*first, *second)));
    all.enumerate().map(|(number, (first, second))| (number, first, second))
}

#[test]
fn each_pair_of_operations_conflicts_or_does_not() {
    for ranks in [2, 3] {
        let body = |world: &World| {
            let region = words(world, 4 * pairs().count());
            for (number, first, second) in pairs() {
                let place = region.at(world.size() - 1, 4 * number);
                match world.rank() {
                    0 => first.2(world, place),
                    1 => second.2(world, place),
                    _ => {}
                }
                world.barrier().unwrap();
            }
            world.free(region).unwrap();
        };
        check(ranks, body, |said| {
            let expected: Vec<_> = pairs().filter(|(_, first, second)| conflicts(first.0, second.0)).collect();
            for (number, first, second) in &expected {
                let line = said.one((first.0, first.1), (second.0, second.1));
                let word = |verb: &str| verb != "put" && verb != "get" && verb != "accumulate";
                let (start, end) = if word(first.0) || word(second.0) { (8, 16) } else { (0, 32) };
                let (start, end) = (32 * number + start, 32 * number + end);
                assert!(line.contains(&format!(" bytes {start}..{end} of region ")), "{line}");
                assert!(line.ends_with(&format!("on rank {}, and nothing orders them", ranks - 1)), "{line}");
            }
            assert_eq!(said.conflicts.len(), expected.len(), "{:#?}", said.conflicts);
            let count = expected.len();
            assert!(said.summary.starts_with(&format!("{count} conflicts in {count} pairs of places, in ")));
        });
    }
}

#[test]
fn a_pair_of_places_is_reported_once_and_counted() {
    let body = |world: &World| {
        let region = words(world, 100);
        for round in 0..10 {
            if world.rank() == 0 {
                put(world, region.at(2, 4 * round));
            } else {
                get(world, region.at(2, 4 * round));
            }
            world.barrier().unwrap();
        }
    };
    check(4, body, |said| {
        said.one(("put", PUT), ("get", GET));
        assert_eq!(said.conflicts.len(), 1);
        // Each of three ranks, in each round.
        assert!(said.summary.starts_with("30 conflicts in 1 pair of places, in "), "{}", said.summary);
    });
}

/// Rank 0 puts, `between` makes all know, the last rank gets.
fn ordered_by(between: impl Fn(&World)) {
    for ranks in [2, 3] {
        clean(ranks, |world| {
            let region = words(world, 4);
            let place = region.at(world.size() / 2, 0);
            for _ in 0..3 {
                if world.rank() == 0 {
                    put(world, place);
                }
                between(world);
                if world.rank() == world.size() - 1 {
                    get(world, place);
                }
                world.barrier().unwrap();
            }
            world.free(region).unwrap();
        });
    }
}

#[test]
fn a_barrier_orders() {
    ordered_by(|world| world.barrier().unwrap());
}

#[test]
fn a_split_phase_barrier_orders() {
    ordered_by(|world| world.begin_barrier().unwrap().wait().unwrap());
    ordered_by(|world| {
        let mut arrival = world.begin_barrier().unwrap();
        while !arrival.test() {
            std::thread::yield_now();
        }
        arrival.wait().unwrap();
    });
}

#[test]
fn a_fence_and_any_collective_call_order() {
    ordered_by(|world| {
        world.fence_all().unwrap();
        world.synchronize().unwrap();
    });
    ordered_by(|world| {
        world.fence_all().unwrap();
        world.all_reduce(&mut [1i64], Reduce::Sum).unwrap();
    });
}

#[test]
fn a_team_barrier_orders_its_members() {
    ordered_by(|world| {
        let last = world.size() - 1;
        if world.rank() == 0 || world.rank() == last {
            let team = world.create_team(&[last, 0]).unwrap();
            team.barrier().unwrap();
            team.free().unwrap();
        }
    });
}

#[test]
fn a_team_barrier_orders_nobody_else() {
    let body = |world: &World| {
        let region = words(world, 4);
        if world.rank() == 0 {
            put(world, region.at(0, 0));
        }
        if world.rank() < 2 {
            let team = world.create_team(&[0, 1]).unwrap();
            team.barrier().unwrap();
            team.free().unwrap();
        }
        if world.rank() == 2 {
            get(world, region.at(0, 0));
        }
        world.barrier().unwrap();
    };
    check(3, body, |said| assert!(!said.one(("put", PUT), ("get", GET)).is_empty()));
}

#[test]
fn a_flag_orders_who_waits_for_it() {
    // By hand, with a fence, since the data lie elsewhere than the flag.
    for ranks in [2, 3] {
        clean(ranks, |world| {
            let (region, flags) = (words(world, 4), words(world, 1));
            let last = world.size() - 1;
            for round in 1..4 {
                if world.rank() == 0 {
                    put(world, region.at(0, 0));
                    world.fence(0).unwrap();
                    world.notify(flags.at(last, 0), round).unwrap();
                } else if world.rank() == last {
                    world.wait_value(flags.at(last, 0), round).unwrap();
                    get(world, region.at(0, 0));
                }
                world.barrier().unwrap();
            }
        });
    }
    // In a ring, which needs no barrier.
    clean(3, |world| {
        let (region, flags) = (words(world, 4), words(world, 2));
        let (me, size) = (world.rank(), world.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        for round in 1..20 {
            world.put_notify(&[round; 4], region.at(right, 0), flags.at(right, 0), round).unwrap();
            world.wait_value(flags.at(me, 0), round).unwrap();
            get(world, region.at(me, 0));
            // Room for the next one.
            world.notify(flags.at(left, 1), round).unwrap();
            world.wait_value(flags.at(me, 1), round).unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_flag_orders_nothing_elsewhere_that_was_not_fenced() {
    let body = |world: &World| {
        let (region, flags) = (words(world, 4), words(world, 1));
        if world.rank() == 0 {
            put(world, region.at(2, 0));
            world.notify(flags.at(1, 0), 1).unwrap();
        } else if world.rank() == 1 {
            world.wait_value(flags.at(1, 0), 1).unwrap();
            get(world, region.at(2, 0));
        }
        world.barrier().unwrap();
    };
    check(3, body, |said| {
        let line = said.one(("put", PUT), ("get", GET));
        assert!(line.ends_with("and no fence completes the put before what orders them"), "{line}");
        assert_eq!(said.conflicts.len(), 1);
    });
}

#[test]
fn a_mutex_orders() {
    for ranks in [2, 4] {
        clean(ranks, |world| {
            let region = words(world, 4);
            let mutexes = Mutexes::create(world, 1).unwrap();
            for _ in 0..5 {
                mutexes.lock(world.size() - 1, 0).unwrap();
                get(world, region.at(0, 0));
                put(world, region.at(0, 0));
                mutexes.unlock(world.size() - 1, 0).unwrap();
            }
            world.barrier().unwrap();
            mutexes.destroy().unwrap();
        });
    }
}

#[test]
fn two_mutexes_do_not() {
    let body = |world: &World| {
        let region = words(world, 4);
        let mutexes = Mutexes::create(world, 1).unwrap();
        mutexes.lock(world.rank(), 0).unwrap();
        put(world, region.at(0, 0));
        mutexes.unlock(world.rank(), 0).unwrap();
        world.barrier().unwrap();
        mutexes.destroy().unwrap();
    };
    check(2, body, |said| assert!(!said.one(("put", PUT), ("put", PUT)).is_empty()));
}

#[test]
fn a_message_orders_its_receiver() {
    for len in [1, 20_000] {
        ordered_by(|world| {
            let last = world.size() - 1;
            if world.rank() == 0 {
                world.fence_all().unwrap();
                world.send_to(last, 5, &vec![1u8; len]).unwrap();
            } else if world.rank() == last {
                world.receive(Source::Any, 5, &mut vec![0u8; len]).unwrap();
            }
        });
    }
}

#[test]
fn read_modify_writes_of_one_word_order() {
    clean(4, |world| {
        let (region, turn) = (words(world, 4), words(world, 1));
        // A token that goes around, and whose last holder takes it back by a put.
        while world.fetch(turn.at::<i64>(0, 0)).unwrap() != world.rank() as i64 {
            std::thread::yield_now();
        }
        get(world, region.at(1, 0));
        put(world, region.at(1, 0));
        world.fence_all().unwrap();
        world.add(turn.at(0, 0), 1i64).unwrap();
        world.barrier().unwrap();
        // The last to come resets the count, and nobody else looks.
        if world.fetch_add(turn.at(1, 0), 1i64).unwrap() == world.size() as i64 - 1 {
            world.put_value(0i64, turn.at(1, 0)).unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_message_to_a_handler_orders_what_its_rank_does_then() {
    clean(2, |world| {
        let region = words(world, 4);
        let come = Arc::new(AtomicBool::new(false));
        let told = come.clone();
        let handler = world.register(move |_, _| {
            told.store(true, Ordering::Release);
            Ok(())
        });
        let handler = handler.unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            put(world, region.at(0, 0));
            world.fence_all().unwrap();
            world.request(1, handler, b"").unwrap();
        } else {
            while !come.load(Ordering::Acquire) {
                // By a call that waits for nothing: without a progress thread it is what serves.
                assert!(world.probe(Source::Any, Tag::Any).unwrap().is_none());
            }
            get(world, region.at(0, 0));
        }
        world.barrier().unwrap();
    });
}

#[test]
fn what_comes_between_the_phases_of_a_barrier_is_not_ordered() {
    let body = |world: &World| {
        let region = words(world, 4);
        if world.rank() == 0 {
            put(world, region.at(1, 0));
        }
        let arrival = world.begin_barrier().unwrap();
        if world.rank() == 1 {
            get(world, region.at(1, 0));
        }
        arrival.wait().unwrap();
    };
    check(2, body, |said| assert!(!said.one(("put", PUT), ("get", GET)).is_empty()));
}

/// Columns of a matrix of eight: those from `first` on, `count` of them.
const STRIDED: u32 = line!() + 4;
fn put_columns(world: &World, region: &Region, first: usize, count: usize) {
    let shape = Strided { counts: &[count, 8], local: &[count], remote: &[8] };
    let columns = vec![1i64; 8 * count];
    world.put_strided(&columns, region.at(0, first), &shape).unwrap();
}

const VECTOR: u32 = line!() + 4;
fn put_words(world: &World, region: &Region, words: &[usize]) {
    let places: Vec<Place> = words.iter().map(|word| region.at(0, *word)).collect();
    let local: Vec<usize> = (0..words.len()).collect();
    world.put_vector(&vec![1i64; words.len()], &Segments { count: 1, local: &local, remote: &places }).unwrap();
}

#[test]
fn rows_that_interleave_do_not_conflict_and_those_that_overlap_do() {
    clean(4, |world| {
        let region = words(world, 64);
        put_columns(world, &region, 2 * world.rank(), 2);
        world.barrier().unwrap();
        put_words(world, &region, &[world.rank(), 60 + world.rank(), 12 + world.rank()]);
        world.barrier().unwrap();
    });
    let body = |world: &World| {
        let region = words(world, 64);
        put_columns(world, &region, world.rank(), 2);
        world.barrier().unwrap();
        put_words(world, &region, &[world.rank(), 60 + world.rank(), 12]);
        world.barrier().unwrap();
    };
    check(2, body, |said| {
        let line = said.one(("put", STRIDED), ("put", STRIDED));
        assert!(line.contains(" bytes 8..16 of region "), "{line}");
        let line = said.one(("put", VECTOR), ("put", VECTOR));
        assert!(line.contains(" bytes 96..104 of region "), "{line}");
        assert_eq!(said.conflicts.len(), 2, "{:#?}", said.conflicts);
    });
}

#[test]
fn programs_without_conflicts_are_found_to_have_none() {
    clean(3, |world| {
        let counter = SharedCounter::create(world).unwrap();
        for _ in 0..3 {
            while counter.next().unwrap() < 20 {}
            counter.reset().unwrap();
        }
        counter.destroy().unwrap();
    });
    clean(4, |world| {
        let array = GlobalArray::<f64>::create(world, "a", [13, 17]).unwrap();
        array.zero().unwrap();
        let ones = Array2::from_elem((13, 17), 1.0);
        array.accumulate([0..13, 0..17], 1.0, ones.view()).unwrap();
        array.sync().unwrap();
        let all = array.get([0..13, 0..17]).unwrap();
        assert!(all.iter().all(|sum| *sum == world.size() as f64));
        array.sync().unwrap();
        // Each its own column.
        let column = Array2::from_elem((13, 1), 2.0);
        array.put([0..13, world.rank()..world.rank() + 1], column.view()).unwrap();
        array.destroy().unwrap();
    });
}

const NONBLOCKING: u32 = line!() + 3;
fn put_nonblocking(world: &World, place: Place) {
    // Not where this is waited for.
    let put = world.put_nb(vec![1i64; 4], place).unwrap();
    put.wait().unwrap();
}

const SCOPED: u32 = line!() + 4;
fn put_scoped(world: &World, place: Place) {
    world
        .nonblocking(|scope| {
            scope.put(&[1i64; 4], place)?;
            Ok(())
        })
        .unwrap();
}

const AGGREGATED: u32 = line!() + 3;
fn put_aggregated(world: &World, place: Place) {
    let mut all = world.aggregate();
    all.put(&[1i64; 4], place).unwrap();
    all.finish().unwrap();
}

#[test]
fn operations_in_flight_are_found_at_the_line_that_started_them() {
    let ways: [fn(&World, Place); 3] = [put_nonblocking, put_scoped, put_aggregated];
    let body = |world: &World| {
        let region = words(world, 12);
        for (number, way) in ways.iter().enumerate() {
            if world.rank() == 0 {
                way(world, region.at(0, 4 * number));
            } else {
                get(world, region.at(0, 4 * number));
            }
            world.barrier().unwrap();
        }
    };
    check(2, body, |said| {
        for line in [NONBLOCKING, SCOPED, AGGREGATED] {
            assert!(!said.one(("put", line), ("get", GET)).is_empty());
        }
        assert_eq!(said.conflicts.len(), 3, "{:#?}", said.conflicts);
    });
}

const ARRAY_PUT: u32 = line!() + 2;
fn put_row(array: &GlobalArray<f64>, row: usize) {
    array.put([row..row + 1, 0..6], Array2::from_elem((1, 6), 1.0).view()).unwrap();
}

const ARRAY_GET: u32 = line!() + 2;
fn get_column(array: &GlobalArray<f64>) {
    array.get([0..6, 2..3]).unwrap();
}

#[test]
fn conflicts_in_an_array_are_found_at_the_line_that_used_it() {
    let body = |world: &World| {
        let array = GlobalArray::<f64>::create(world, "a", [6, 6]).unwrap();
        array.sync().unwrap();
        if world.rank() == 0 {
            put_row(&array, 3);
        } else {
            get_column(&array);
        }
        array.destroy().unwrap();
    };
    check(2, body, |said| {
        let line = said.one(("put", ARRAY_PUT), ("get", ARRAY_GET));
        assert!(line.contains("both touch"));
        assert_eq!(said.conflicts.len(), 1, "{:#?}", said.conflicts);
    });
}

#[test]
fn what_memory_held_before_it_was_freed_conflicts_with_nothing() {
    clean(3, |world| {
        for round in 0..20 {
            let region = world.allocate(32).unwrap();
            if world.rank() == round % 3 {
                put(world, region.at(1, 0));
            }
            world.free(region).unwrap();
        }
    });
}

#[test]
fn what_a_thread_does_its_rank_does() {
    let body = |world: &World| {
        let region = words(world, 8);
        let (shared, own) = (region.at(0, 0), region.at(world.rank(), 4));
        let threads = world.threads();
        put(world, own);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let threads = threads.clone();
                scope.spawn(move || {
                    let world = threads.attach().unwrap();
                    // Ordered with the other threads of the rank by what is not seen; not with the other rank.
                    get(&world, own);
                    accumulate(&world, shared);
                    world.detach().unwrap();
                });
            }
        });
        if world.rank() == 1 {
            get(world, shared);
        }
        world.barrier().unwrap();
    };
    check(2, body, |said| {
        assert!(!said.one(("accumulate", ACCUMULATE), ("get", GET)).is_empty());
        assert_eq!(said.conflicts.len(), 1, "{:#?}", said.conflicts);
    });
}
