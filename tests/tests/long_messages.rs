//! Long messages between nodes, which the target fetches or stores: their bounds, many at once, and who moves them on.
//!
//! # Safety
//! WORD: aligned, in a region that lives for the whole body, and changed by read-modify-writes only while it is read.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering};

use armci_core::config::{Path, Protocol};
use armci_core::{BULK_BYTES, STAGING_BYTES, Strided, World};
use fastrand::Rng;
use tests::Ranks;

/// Words of a staging chunk, and of a long buffer.
const CHUNK: usize = STAGING_BYTES / 8;
const LONG: usize = BULK_BYTES / 8;

/// Runs `body` in jobs of several nodes, with and without progress thread.
fn in_each_job(body: impl Fn(&World)) {
    for (ranks, nodes, progress) in [(2, 2, "thread"), (2, 2, "none"), (4, 2, "thread"), (3, 3, "none")] {
        Ranks::new(ranks).nodes(nodes).env("ARMCI_PROGRESS", progress).run(&body);
    }
}

/// A patch of words: how many at each level, and how far apart here and there.
struct Shape {
    counts: Vec<usize>,
    local: Vec<usize>,
    remote: Vec<usize>,
}

impl Shape {
    /// Rows of `counts[0]` words, with gaps drawn at random at each level.
    fn of(counts: &[usize], random: &mut Rng) -> Self {
        let mut apart = || {
            let mut reach = counts[0];
            let levels = counts[1..].iter().map(|count| {
                let stride = reach + random.usize(..4);
                reach = stride * count;
                stride
            });
            levels.collect::<Vec<_>>()
        };
        Shape { counts: counts.to_vec(), local: apart(), remote: apart() }
    }

    fn strided(&self) -> Strided<'_> {
        Strided { counts: &self.counts, local: &self.local, remote: &self.remote }
    }

    /// Where each word lies, by the strides of one side.
    fn words(&self, strides: &[usize]) -> Vec<usize> {
        let mut words: Vec<usize> = (0..self.counts[0]).collect();
        for (count, stride) in self.counts[1..].iter().zip(strides) {
            words = (0..*count).flat_map(|row| words.iter().map(move |word| row * stride + word)).collect();
        }
        words
    }
}

/// Patches around what goes by short messages, by one long message and by several, of rows of all lengths.
fn shapes(random: &mut Rng) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for words in [3 * CHUNK - 1, 3 * CHUNK, LONG, LONG + 1, 6 * LONG + 77] {
        shapes.push(Shape::of(&[words], random));
    }
    for (row, rows) in [(1, 3 * CHUNK), (8, 3 * CHUNK / 8 + 1), (7, 7_000), (1_000, 49), (1_000, 131), (1_023, 60)] {
        shapes.push(Shape::of(&[row, rows], random));
    }
    // Planes that fit a chunk, that are a little longer, and that are not much more than a long buffer.
    for planes in [[10, 100, 30], [10, 210, 20], [100, 170, 3]] {
        shapes.push(Shape::of(&planes, random));
    }
    // Many levels: as many as a message names, one more, and all there may be; and many rows of a word.
    for counts in
        [&[16, 16, 16, 16][..], &[6, 7, 8, 9, 10], &[3, 7, 5, 6, 7, 8], &[3, 5, 4, 3, 5, 4, 4, 4], &[1, 30, 30, 31]]
    {
        shapes.push(Shape::of(counts, random));
    }
    shapes
}

#[test]
fn patches_of_all_lengths_arrive_whole_and_nothing_beside_them() {
    in_each_job(|world| {
        const LINE: usize = 6 * LONG + 10_000;
        let (me, size) = (world.rank(), world.size());
        let mut random = Rng::with_seed(17 + me as u64);
        let region = world.allocate_filled(LINE * size, 0i64).unwrap();
        // Contiguous puts and gets go by message only when asked.
        for path in [Path::Rma, Path::Am] {
            for (number, shape) in shapes(&mut random).iter().enumerate() {
                let target = (me + 1 + number) % size;
                let line = region.at::<i64>(target, LINE * me);
                let mut model = vec![0; LINE];
                world.set_protocol(Protocol::all(Path::Rma));
                world.put(&model, line).unwrap();
                world.set_protocol(Protocol::all(path));
                let (here, there) = (shape.words(&shape.local), shape.words(&shape.remote));
                let extent = here.iter().max().unwrap() + 1;
                let data: Vec<i64> = (0..extent).map(|_| random.i64(-1000..1000)).collect();
                let at = random.usize(..LINE - there.iter().max().unwrap());
                let place = line.add(at);
                world.put_strided(&data, place, &shape.strided()).unwrap();
                world.accumulate_strided(3, &data, place, &shape.strided()).unwrap();
                // And with handles, which are read and added to behind one another.
                let added = world.accumulate_strided_nb(-5, data.clone(), place, &shape.strided()).unwrap();
                let got = world.get_strided_nb(place, vec![7; extent], &shape.strided()).unwrap();
                let behind = world.put_nb(vec![at as i64], place).unwrap();
                let mut expected = vec![7; extent];
                for (here, there) in here.iter().zip(&there) {
                    model[at + there] = -data[*here];
                    expected[*here] = -data[*here];
                }
                model[at] = at as i64;
                assert!(got.wait().unwrap() == expected, "shape {number}: a get behind accumulates");
                assert!(added.wait().unwrap() == data);
                behind.wait().unwrap();
                let mut found = vec![7; extent];
                world.get_strided(place, &mut found, &shape.strided()).unwrap();
                expected[0] = at as i64;
                assert!(found == expected, "shape {number}: a get behind a put of one word");
                let mut whole = vec![1; LINE];
                world.get(line, &mut whole).unwrap();
                assert!(whole == model, "shape {number}: all around it");
            }
        }
        world.set_protocol(Protocol::all(Path::Rma));
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// More than a target has landings for, from several ranks and nodes, all to one place.
#[test]
fn many_at_once_lose_nothing() {
    for (ranks, nodes, progress) in [(5, 5, "thread"), (5, 5, "none"), (6, 2, "thread")] {
        Ranks::new(ranks).nodes(nodes).env("ARMCI_PROGRESS", progress).run(|world| {
            const WORDS: usize = 3 * LONG;
            const ROUNDS: i64 = 8;
            let region = world.allocate_filled(WORDS, 0i64).unwrap();
            let (me, home) = (world.rank(), world.size() - 1);
            let ones = vec![1i64; WORDS];
            let rows = Strided { counts: &[50, WORDS / 50], local: &[50], remote: &[50] };
            let place = region.at::<i64>(home, 0);
            if me != home {
                world
                    .nonblocking(|scope| {
                        for _ in 0..ROUNDS {
                            scope.accumulate(1, &ones, place)?;
                            scope.accumulate_strided(2, &ones, place, &rows)?;
                        }
                        Ok(())
                    })
                    .unwrap();
                world.accumulate(4, &ones, place).unwrap();
                let mut found = vec![0; WORDS];
                world.get_strided(place, &mut found, &rows).unwrap();
                let least = 3 * ROUNDS + 4;
                assert!(found[..WORDS / 50 * 50].iter().all(|word| *word >= least), "own additions are seen");
            }
            world.barrier().unwrap();
            let mut found = vec![0; WORDS];
            world.get(place, &mut found).unwrap();
            let others = home as i64;
            for (at, word) in found.iter().enumerate() {
                let in_rows = if at < WORDS / 50 * 50 { 2 * ROUNDS } else { 0 };
                assert_eq!(*word, others * (ROUNDS + in_rows + 4), "word {at}");
            }
            world.barrier().unwrap();
            world.free(region).unwrap();
        });
    }
}

/// A rank begins long accumulates and then computes, until it sees in its own memory that another rank's, to the same
/// target, are complete: they do not wait behind it.
#[test]
fn nobody_waits_behind_a_rank_that_computes() {
    Ranks::new(3).nodes(3).env("ARMCI_PROGRESS", "thread").run(|world| {
        const WORDS: usize = 2 * LONG;
        let region = world.allocate_filled(WORDS, 0i64).unwrap();
        let flag = world.allocate_filled(1, 0i64).unwrap();
        let ones = vec![1i64; WORDS];
        let place = region.at::<i64>(0, 0);
        world.barrier().unwrap();
        match world.rank() {
            1 => {
                let handles: Vec<_> = (0..6).map(|_| world.accumulate_nb(1, ones.clone(), place).unwrap()).collect();
                world.notify(flag.at(2, 0), 1).unwrap();
                world.fence(2).unwrap();
                let (mine, _) = world.local_part(&flag).unwrap();
                // SAFETY: WORD.
                let done = unsafe { AtomicI64::from_ptr(mine.cast()) };
                // In none of our calls: what goes on here is the progress thread's.
                while done.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                handles.into_iter().for_each(|handle| drop(handle.wait().unwrap()));
            }
            2 => {
                world.wait_value(flag.at::<i64>(2, 0), 1).unwrap();
                for _ in 0..4 {
                    world.accumulate(1, &ones, place).unwrap();
                    let rows = Strided { counts: &[64, WORDS / 64], local: &[64], remote: &[64] };
                    let mut found = vec![0; WORDS];
                    world.get_strided(place, &mut found, &rows).unwrap();
                }
                world.fence_all().unwrap();
                world.swap(flag.at::<i64>(1, 0), 1).unwrap();
            }
            _ => (),
        }
        world.barrier().unwrap();
        let mut found = vec![0; WORDS];
        world.get(place, &mut found).unwrap();
        assert!(found.iter().all(|word| *word == 10));
        world.barrier().unwrap();
        world.free(flag).unwrap();
        world.free(region).unwrap();
    });
}

/// A flag that is set behind a long accumulate or put with a handle tells of all of it, without a fence.
#[test]
fn a_flag_comes_behind_long_messages() {
    in_each_job(|world| {
        const WORDS: usize = 2 * LONG;
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate_filled(WORDS * size, 0i64).unwrap();
        let flags = world.allocate_filled(size, 0i64).unwrap();
        let rows = Strided { counts: &[100, WORDS / 100], local: &[100], remote: &[100] };
        for round in 1..20i64 {
            let (target, writer) = ((me + 1) % size, (me + size - 1) % size);
            let line = region.at::<i64>(target, WORDS * me);
            let data = vec![round; WORDS];
            if round % 2 == 1 {
                drop(world.put_strided_nb(data, line, &rows).unwrap().wait().unwrap());
            } else {
                drop(world.accumulate_strided_nb(1, vec![1; WORDS], line, &rows).unwrap().wait().unwrap());
            }
            world.notify(flags.at(target, me), round).unwrap();
            world.wait_value(flags.at(me, writer), round).unwrap();
            let mut seen = vec![0i64; WORDS / 100 * 100];
            world.get(region.at(me, WORDS * writer), &mut seen).unwrap();
            assert!(seen.iter().all(|word| *word == round), "round {round}");
            world.barrier().unwrap();
            world.put_value(0i64, flags.at(me, writer)).unwrap();
            world.barrier().unwrap();
        }
        world.free(flags).unwrap();
        world.free(region).unwrap();
    });
}
