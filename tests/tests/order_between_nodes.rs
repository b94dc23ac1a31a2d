//! The order of operations where ranks of one node and of others meet at one place: processors' atomics and messages,
//! remote memory access and messages, together. What is asked is what ARMCI promises: a rank's own operations on a place
//! in their order, atomic updates that are never lost, and data seen behind a flag that was set behind a fence.

use std::collections::VecDeque;

use armci_core::config::{Path, Protocol};
use armci_core::{GlobalPtr, Handle, Region, Segments, Source, Strided, Tag, World};
use fastrand::Rng;
use tests::Ranks;

const PATHS: [Path; 2] = [Path::Rma, Path::Am];

/// Runs `body` where each rank has a neighbour or only strangers, with and without progress thread.
fn in_each_job(body: impl Fn(&World)) {
    for (ranks, nodes) in [(2, 2), (4, 2), (5, 3)] {
        for progress in ["thread", "none"] {
            Ranks::new(ranks).nodes(nodes).env("ARMCI_PROGRESS", progress).run(&body);
        }
    }
}

fn any_protocol(random: &mut Rng) -> Protocol {
    let mut path = || PATHS[random.usize(..2)];
    Protocol { put: path(), get: path(), accumulate: path(), rmw: path() }
}

/// Words of each rank at each: so many that transfers of every kind happen, also by long messages.
const LINE: usize = 14_000;

/// A rank's own words at one rank, and what they should hold.
struct Line {
    first: GlobalPtr<i64>,
    model: Vec<i64>,
}

/// Gets under way, and what they must bring.
type Gets = VecDeque<(Handle<Vec<i64>>, Vec<i64>)>;

/// A length that is short most times, and now and then beyond what goes in one piece.
fn any_length(random: &mut Rng) -> usize {
    match random.usize(..10) {
        0 => random.usize(1..LINE / 2),
        1 => random.usize(1..600),
        _ => random.usize(1..20),
    }
}

/// One operation, drawn, at one rank; checked as far as it brings something back.
fn step(world: &World, random: &mut Rng, line: &mut Line, gets: &mut Gets) {
    let Line { first, model } = line;
    let len = any_length(random);
    let at = random.usize(..LINE - len);
    let place = first.add(at);
    let mut numbers = |len: usize| -> Vec<i64> { (0..len).map(|_| random.i64(-1000..1000)).collect() };
    match random_operation(&mut numbers) {
        0 => {
            let data = numbers(len);
            world.put(&data, place).unwrap();
            model[at..at + len].copy_from_slice(&data);
        }
        1 => {
            let data = numbers(len);
            world.accumulate(3, &data, place).unwrap();
            model[at..at + len].iter_mut().zip(data).for_each(|(word, more)| *word += 3 * more);
        }
        2 => {
            let mut found = vec![0; len];
            world.get(place, &mut found).unwrap();
            assert_eq!(found, model[at..at + len], "a get of {len} at {at}");
        }
        3 => {
            assert_eq!(world.fetch_add(place, 7).unwrap(), model[at], "a fetch-and-add at {at}");
            model[at] += 7;
        }
        4 => {
            assert_eq!(world.swap(place, -5).unwrap(), model[at], "a swap at {at}");
            model[at] = -5;
        }
        5 => gets.push_back((world.get_nb(place, vec![0; len]).unwrap(), model[at..at + len].to_vec())),
        6 => {
            let data = numbers(len);
            world.put_nb(data.clone(), place).unwrap().wait().unwrap();
            model[at..at + len].copy_from_slice(&data);
        }
        kind @ 7..=9 => {
            // Rows that lie apart, long enough for accesses of their own or not.
            let (row, rows) = [(600, 3), (3, 30), (300, 30)][len % 3];
            let apart = row + 7;
            let at = at % (LINE - rows * apart);
            let shape = Strided { counts: &[row, rows], local: &[row], remote: &[apart] };
            let mut data = numbers(row * rows);
            let place = first.add(at);
            let words = (0..row * rows).map(|number| at + number / row * apart + number % row);
            match kind {
                7 => {
                    world.put_strided(&data, place, &shape).unwrap();
                    words.zip(data).for_each(|(word, value)| model[word] = value);
                }
                8 => {
                    world.accumulate_strided(-1, &data, place, &shape).unwrap();
                    words.zip(data).for_each(|(word, value)| model[word] -= value);
                }
                _ => {
                    world.get_strided(place, &mut data, &shape).unwrap();
                    words.zip(data).for_each(|(word, value)| assert_eq!(value, model[word], "row word {word}"));
                }
            }
        }
        kind => {
            // Segments of three words, in no order.
            let local: Vec<usize> = (0..20).map(|number| 3 * number).collect();
            let places: Vec<usize> = (0..20).map(|number| 3 * ((number * 7 + at) % (LINE / 3))).collect();
            let remote: Vec<_> = places.iter().map(|word| first.add(*word)).collect();
            let segments = Segments { count: 3, local: &local, remote: &remote };
            let mut data = numbers(60);
            let words = (0..60).map(|number| places[number / 3] + number % 3);
            if kind == 10 {
                world.put_vector(&data, &segments).unwrap();
                words.zip(data).for_each(|(word, value)| model[word] = value);
            } else {
                world.get_vector(&mut data, &segments).unwrap();
                words.zip(data).for_each(|(word, value)| assert_eq!(value, model[word], "segment word {word}"));
            }
        }
    }
}

/// Which operation is next.
fn random_operation(numbers: &mut impl FnMut(usize) -> Vec<i64>) -> i64 {
    numbers(1)[0].rem_euclid(12)
}

/// Programs drawn at random, each rank on words of its own at every rank, by paths that change all the time.
#[test]
fn a_ranks_own_operations_are_in_order_wherever_the_target_is() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate_filled(LINE * size, 0i64).unwrap();
        let mut random = Rng::with_seed(71 + me as u64);
        let line = |rank| Line { first: region.at(rank, LINE * me), model: vec![0; LINE] };
        let mut lines: Vec<Line> = (0..size).map(line).collect();
        let mut gets = Gets::new();
        for _ in 0..600 {
            if random.usize(..4) == 0 {
                world.set_protocol(any_protocol(&mut random));
            }
            let target = random.usize(..size);
            step(world, &mut random, &mut lines[target], &mut gets);
            while gets.len() > random.usize(..10) {
                let (get, expected) = gets.pop_front().unwrap();
                assert!(get.wait().unwrap() == expected, "a get that was waited for later");
            }
            if random.usize(..50) == 0 {
                world.fence(target).unwrap();
            }
        }
        gets.into_iter().for_each(|(get, expected)| assert!(get.wait().unwrap() == expected));
        world.set_protocol(Protocol::all(Path::Rma));
        for line in &lines {
            let mut found = vec![0; LINE];
            world.get(line.first, &mut found).unwrap();
            assert!(found == line.model);
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// A region of zeros in which all ranks meet, before the paths of each are drawn for itself.
fn zeros(world: &World, words: usize) -> Region {
    world.set_protocol(Protocol::all(Path::Rma));
    world.allocate_filled(words, 0i64).unwrap()
}

/// Neighbours add by the processor, others by messages that the owner serves, or by messages all: nothing is lost, each
/// number is drawn once, and each rank's draws grow.
#[test]
fn words_that_near_and_far_ranks_change_lose_nothing() {
    const ROUNDS: usize = 300;
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = zeros(world, 200);
        let mut random = Rng::with_seed(5 + me as u64);
        let home = size - 1;
        let mut drawn = Vec::new();
        for round in 0..ROUNDS {
            if round % 16 == 0 {
                world.set_protocol(any_protocol(&mut random));
            }
            let number = world.fetch_add(region.at::<i64>(home, 0), 1).unwrap();
            assert!(drawn.last().is_none_or(|last| *last < number));
            drawn.push(number);
            let len = if round % 8 == 0 { 100 } else { 2 };
            world.accumulate(2, &vec![1i64; len], region.at(home, 10)).unwrap();
            // A lock-free sum: both 32-bit halves in one word.
            let word = region.at::<i64>(home, 1);
            let mut seen = world.get_value(word).unwrap();
            loop {
                let found = world.compare_swap(word, seen, seen + (1 << 32) + 3).unwrap();
                if found == seen {
                    break;
                }
                seen = found;
            }
        }
        world.barrier().unwrap();
        let mut all = world.all_gather(&drawn).unwrap();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..(ROUNDS * size) as i64));
        let many = (ROUNDS * size) as i64;
        let mut found = [0i64; 110];
        world.get(region.at(home, 0), &mut found).unwrap();
        assert_eq!(found[..2], [many, (many << 32) + 3 * many]);
        let often = 2 * (ROUNDS.div_ceil(8) * size) as i64;
        assert_eq!((found[10], found[11], found[12], found[109]), (2 * many, 2 * many, often, often));
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// One rank writes ever larger numbers to one byte, by paths that change; whoever reads, wherever it is, sees them grow.
/// (A byte, since no word is promised to arrive in one piece.)
#[test]
fn a_place_never_goes_back_for_any_reader() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = zeros(world, 1);
        let mut random = Rng::with_seed(me as u64);
        for home in 0..size {
            let place = region.at::<u8>(home, 0);
            let writer = (home + 1) % size;
            let mut last = 0;
            if me == writer {
                for number in 1..=250 {
                    world.set_protocol(any_protocol(&mut random));
                    world.put_value(number, place).unwrap();
                }
                world.fence(home).unwrap();
            }
            while last < 250 {
                world.set_protocol(any_protocol(&mut random));
                let seen = world.get_value(place).unwrap();
                assert!(seen >= last, "{seen} after {last}");
                last = seen;
            }
            world.set_protocol(Protocol::all(Path::Rma));
            world.barrier().unwrap();
        }
        world.free(region).unwrap();
    });
}

/// Data at one rank, then a flag at another: who finds the flag finds the data. All three may be near or far.
#[test]
fn data_is_there_before_a_flag_elsewhere() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        // Per writer: a line of data, and a flag.
        let data = zeros(world, 300 * size);
        let flags = zeros(world, size);
        let mut random = Rng::with_seed(40 + me as u64);
        for round in 1..60i64 {
            let keeper = (me + round as usize) % size;
            let reader = (me + 1 + round as usize / 7) % size;
            // Who wrote for me this round, and where.
            let writer = (me + 2 * size - 1 - round as usize / 7 % size) % size;
            let kept = (writer + round as usize) % size;
            world.set_protocol(any_protocol(&mut random));
            let line = data.at::<i64>(keeper, 300 * me);
            match round % 3 {
                0 => world.put(&[round; 300], line).unwrap(),
                // What the data were, is known: added to, by messages behind the put of half of them.
                1 => {
                    world.put(&[round - 2; 300], line).unwrap();
                    world.accumulate(2, &[1i64; 300], line).unwrap();
                }
                _ => {
                    let shape = Strided { counts: &[10, 30], local: &[10], remote: &[10] };
                    world.put_strided(&[round; 300], line, &shape).unwrap();
                }
            }
            world.set_protocol(any_protocol(&mut random));
            world.fence(keeper).unwrap();
            let flag = flags.at::<i64>(reader, me);
            match round % 4 {
                0 => world.put_value(round, flag).unwrap(),
                1 => _ = world.swap(flag, round).unwrap(),
                2 => world.notify(flag, round).unwrap(),
                _ => world.accumulate(1, &[round], flag).unwrap(),
            }
            // A flag is looked at by `fetch_add`, which sees words whole however they were written. Without a progress
            // thread, who looks must let itself be served, too.
            let mine = flags.at::<i64>(me, writer);
            while world.fetch_add(mine, 0).unwrap() < round {
                assert_eq!(world.probe(Source::Any, Tag::Any).unwrap(), None);
            }
            let mut seen = [0i64; 300];
            world.get(data.at(kept, 300 * writer), &mut seen).unwrap();
            assert_eq!(seen, [round; 300], "of rank {writer} at {kept}");
            world.barrier().unwrap();
            world.put_value(0i64, mine).unwrap();
            world.barrier().unwrap();
        }
        world.free(flags).unwrap();
        world.free(data).unwrap();
    });
}

/// A flag that comes with its data, at the same rank, needs no fence, however the data went there.
#[test]
fn a_notification_comes_behind_all_that_its_rank_put_there() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let data = zeros(world, 3_000 * size);
        let flags = zeros(world, size);
        let mut random = Rng::with_seed(90 + me as u64);
        for round in 1..40i64 {
            let step = 1 + round as usize % size;
            let (target, writer) = ((me + step) % size, (me + size - step % size) % size);
            world.set_protocol(any_protocol(&mut random));
            let len = [5, 300, 3_000][round as usize % 3];
            let line = data.at::<i64>(target, 3_000 * me);
            world.put(&vec![round; len], line).unwrap();
            world.set_protocol(any_protocol(&mut random));
            world.put_notify(&[round + 1], line.add(1), flags.at(target, me), round).unwrap();
            world.wait_value(flags.at(me, writer), round).unwrap();
            let mut seen = vec![0i64; len];
            world.get(data.at(me, 3_000 * writer), &mut seen).unwrap();
            assert!(
                seen[0] == round && seen[1] == round + 1 && seen[2..].iter().all(|word| *word == round),
                "{seen:?}"
            );
            world.barrier().unwrap();
            world.put_value(0i64, flags.at(me, writer)).unwrap();
            world.barrier().unwrap();
        }
        world.free(flags).unwrap();
        world.free(data).unwrap();
    });
}
