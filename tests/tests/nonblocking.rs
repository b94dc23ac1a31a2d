//! Non-blocking operations: every kind, in flight by the hundred, waited for in any order, dropped, forgotten.
//!
//! # Safety
//! WAITED-FOR: what a raw get writes to is looked at, and goes, after the wait for it.
#![allow(unsafe_code)]

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};

use armci_core::config::{Path, Protocol};
use armci_core::{Error, GlobalPtr, Handle, NbHandle, Region, Segment, Segments, Strided, World};
use fastrand::Rng;
use tests::{Ranks, matrix};

/// Numbers on each rank.
const LEN: usize = 6_000;

/// A region of `LEN` numbers on each rank, 0 to `LEN`, and the rank to the right.
fn numbers(world: &World) -> (Region, usize) {
    let region = world.allocate(8 * LEN).unwrap();
    world.put(&(0..LEN as i64).collect::<Vec<_>>(), region.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    (region, (world.rank() + 1) % world.size())
}

fn any_protocol(random: &mut Rng) -> Protocol {
    let mut path = || if random.bool() { Path::Rma } else { Path::Am };
    Protocol { put: path(), get: path(), accumulate: path(), rmw: path() }
}

/// Which elements a transfer moves: (local, remote) pairs in order, and how it is described.
enum Shape {
    Contiguous { at: usize, count: usize },
    Strided { at: usize, counts: [usize; 2], local: usize, remote: usize },
    Vector { count: usize, local: Vec<usize>, remote: Vec<usize> },
}

impl Shape {
    fn random(random: &mut Rng) -> Self {
        match random.u8(..3) {
            0 => {
                let count = if random.bool() { random.usize(..10) } else { random.usize(..LEN) };
                Shape::Contiguous { at: random.usize(..=LEN - count), count }
            }
            1 => {
                let counts = [random.usize(1..60), random.usize(1..40)];
                let (local, remote) = (counts[0] + random.usize(..5), counts[0] + random.usize(..30));
                let span = (counts[1] - 1) * remote + counts[0];
                Shape::Strided { at: random.usize(..=LEN - span), counts, local, remote }
            }
            _ => {
                let count = random.usize(1..20);
                let mut local: Vec<_> = (0..random.usize(..100)).map(|index| index * count).collect();
                random.shuffle(&mut local);
                let remote = local.iter().map(|_| random.usize(..=LEN - count)).collect();
                Shape::Vector { count, local, remote }
            }
        }
    }

    fn pairs(&self) -> Vec<(usize, usize)> {
        match self {
            Shape::Contiguous { at, count } => (0..*count).map(|index| (index, at + index)).collect(),
            Shape::Strided { at, counts: [row, rows], local, remote } => (0..*rows)
                .flat_map(|r| (0..*row).map(move |index| (r * local + index, at + r * remote + index)))
                .collect(),
            Shape::Vector { count, local, remote } => {
                let starts = local.iter().zip(remote);
                starts.flat_map(|(local, remote)| (0..*count).map(move |at| (local + at, remote + at))).collect()
            }
        }
    }

    /// Elements of a local buffer for it.
    fn local_len(&self) -> usize {
        self.pairs().iter().map(|(local, _)| local + 1).max().unwrap_or(0)
    }

    fn places(&self, region: &Region, rank: usize) -> Vec<GlobalPtr<i64>> {
        match self {
            Shape::Vector { remote, .. } => remote.iter().map(|at| region.at(rank, *at)).collect(),
            _ => Vec::new(),
        }
    }
}

/// What is done with it: 0 put, 1 accumulate, 2 get.
fn start(world: &World, what: u8, buffer: Vec<i64>, shape: &Shape, region: &Region, rank: usize) -> Handle<Vec<i64>> {
    let places = shape.places(region, rank);
    let started = match shape {
        Shape::Contiguous { at, .. } => {
            let place = region.at(rank, *at);
            match what {
                0 => world.put_nb(buffer, place),
                1 => world.accumulate_nb(3, buffer, place),
                _ => world.get_nb(place, buffer),
            }
        }
        Shape::Strided { at, counts, local, remote } => {
            let place = region.at(rank, *at);
            let shape = Strided { counts, local: &[*local], remote: &[*remote] };
            match what {
                0 => world.put_strided_nb(buffer, place, &shape),
                1 => world.accumulate_strided_nb(3, buffer, place, &shape),
                _ => world.get_strided_nb(place, buffer, &shape),
            }
        }
        Shape::Vector { count, local, .. } => {
            let segments = Segments { count: *count, local, remote: &places };
            match what {
                0 => world.put_vector_nb(buffer, &segments),
                1 => world.accumulate_vector_nb(3, buffer, &segments),
                _ => world.get_vector_nb(buffer, &segments),
            }
        }
    };
    started.unwrap()
}

/// The same into memory that the caller vouches for.
///
/// # Safety
/// WAITED-FOR.
unsafe fn start_raw_get(
    world: &World,
    to: *mut i64,
    shape: &Shape,
    region: &Region,
    rank: usize,
    handle: Option<&mut NbHandle>,
) {
    // SAFETY: WAITED-FOR.
    let started = unsafe {
        match shape {
            Shape::Contiguous { at, count } => world.get_nb_into(region.at(rank, *at), to, *count, handle),
            Shape::Strided { at, counts, local, remote } => {
                let shape = Strided { counts, local: &[*local], remote: &[*remote] };
                world.get_strided_nb_into(region.at(rank, *at), to, &shape, handle)
            }
            Shape::Vector { count, local, remote } => {
                let both = local.iter().zip(remote);
                let segments = both.map(|(local, remote)| Segment {
                    local: to.wrapping_add(*local),
                    remote: region.at(rank, *remote),
                    count: *count,
                });
                world.get_vector_nb_into(segments, handle)
            }
        }
    };
    started.unwrap();
}

/// A get sees what was started before it and nothing that was started after it, whatever is waited for when, and
/// whichever path each takes.
#[test]
fn random_operations_in_flight_agree_with_the_reference() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let mut there: Vec<i64> = (0..LEN as i64).collect();
        let mut random = Rng::with_seed(7 + world.rank() as u64);
        let mut in_flight: Vec<(Handle<Vec<i64>>, Vec<i64>)> = Vec::new();
        for round in 0..700 {
            world.set_protocol(any_protocol(&mut random));
            let shape = Shape::random(&mut random);
            let what = random.u8(..4);
            let mut buffer: Vec<i64> = (0..shape.local_len()).map(|_| random.i64(0..1000)).collect();
            if what < 2 {
                for (local, remote) in shape.pairs() {
                    let before = if what == 0 { 0 } else { there[remote] };
                    there[remote] = before + if what == 0 { 1 } else { 3 } * buffer[local];
                }
                let sent = buffer.clone();
                let handle = start(world, what, buffer, &shape, &region, right);
                if random.bool() {
                    assert_eq!(handle.wait().unwrap(), sent);
                }
                continue;
            }
            let handle = start(world, what, buffer.clone(), &shape, &region, right);
            shape.pairs().iter().for_each(|(local, remote)| buffer[*local] = there[*remote]);
            in_flight.push((handle, buffer));
            // Now and then some, in any order.
            while in_flight.len() > 200 || (random.u8(..) < 20 && !in_flight.is_empty()) {
                let (handle, expected) = in_flight.swap_remove(random.usize(..in_flight.len()));
                match random.u8(..8) {
                    0 => drop(handle),
                    1 => forget(handle),
                    _ => assert_eq!(handle.wait().unwrap(), expected, "round {round}"),
                }
            }
        }
        random.shuffle(&mut in_flight);
        in_flight.into_iter().for_each(|(handle, expected)| assert_eq!(handle.wait().unwrap(), expected));
        world.set_protocol(world.config().protocol);
        world.barrier().unwrap();
        let mut found = vec![0; LEN];
        world.get(region.at(right, 0), &mut found).unwrap();
        assert_eq!(found, there);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn scopes_and_raw_handles_of_every_shape_agree_with_the_reference() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let mut random = Rng::with_seed(70 + world.rank() as u64);
        for _ in 0..60 {
            let shapes: Vec<_> = (0..4).map(|_| Shape::random(&mut random)).collect();
            let mut buffers: Vec<Vec<i64>> = shapes.iter().map(|shape| vec![-1; shape.local_len()]).collect();
            let expected = |shape: &Shape| {
                let mut expected = vec![-1; shape.local_len()];
                shape.pairs().iter().for_each(|(local, remote)| expected[*local] = *remote as i64);
                expected
            };
            world
                .nonblocking(|scope| {
                    for (index, (shape, buffer)) in shapes.iter().zip(&mut buffers).enumerate() {
                        let places = shape.places(&region, right);
                        let handle = match shape {
                            Shape::Contiguous { at, .. } => scope.get(region.at(right, *at), buffer),
                            Shape::Strided { at, counts, local, remote } => {
                                let shape = Strided { counts, local: &[*local], remote: &[*remote] };
                                scope.get_strided(region.at(right, *at), buffer, &shape)
                            }
                            Shape::Vector { count, local, .. } => {
                                scope.get_vector(buffer, &Segments { count: *count, local, remote: &places })
                            }
                        }?;
                        match index {
                            0 => assert_eq!(handle.wait()?, expected(shape)),
                            1 => while !handle.test() {},
                            2 => scope.wait_rank(right)?,
                            _ => {}
                        }
                    }
                    Ok(())
                })
                .unwrap();
            shapes.iter().zip(&buffers).for_each(|(shape, buffer)| assert_eq!(*buffer, expected(shape)));

            let (mut first, mut second) = (NbHandle::default(), NbHandle::default());
            buffers.iter_mut().for_each(|buffer| buffer.fill(-1));
            for (index, (shape, buffer)) in shapes.iter().zip(&mut buffers).enumerate() {
                let handle = match index {
                    1 => None,
                    2 => Some(&mut second),
                    _ => Some(&mut first),
                };
                // SAFETY: WAITED-FOR.
                unsafe { start_raw_get(world, buffer.as_mut_ptr(), shape, &region, right, handle) };
            }
            world.wait_rank(right).unwrap();
            assert_eq!(buffers[1], expected(&shapes[1]));
            while !world.test_for(&first) {}
            assert_eq!([&buffers[0], &buffers[3]], [&expected(&shapes[0]), &expected(&shapes[3])]);
            world.wait_for(&mut second).unwrap();
            assert_eq!(buffers[2], expected(&shapes[2]));
            world.wait_for(&mut first).unwrap();
            assert_eq!(first, NbHandle::default());
            world.wait_for(&mut first).unwrap();
            world.wait_all().unwrap();
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn more_handles_than_request_slots() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let mut handles: Vec<_> = (0..600)
            .map(|at| (at, world.get_nb(region.at::<i64>(right, 9 * at), vec![0; 5].into_boxed_slice()).unwrap()))
            .collect();
        Rng::with_seed(3).shuffle(&mut handles);
        for (at, handle) in handles {
            // Both neighbours may be asking: each serves the other meanwhile.
            while at % 3 == 0 && !handle.test() {}
            assert_eq!(*handle.wait().unwrap(), [0, 1, 2, 3, 4].map(|index| (9 * at) as i64 + index));
        }
        // Rank after rank, each in one get that is larger than all slots.
        let large = world.allocate(1 << 20).unwrap();
        let mine: Vec<i64> = (0..1 << 17).map(|index| index + world.rank() as i64).collect();
        world.put(&mine, large.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        let all: Vec<_> =
            (0..world.size()).map(|rank| world.get_nb(large.at::<i64>(rank, 0), vec![0; 1 << 17]).unwrap()).collect();
        for (rank, handle) in all.into_iter().enumerate().rev() {
            let found = handle.wait().unwrap();
            assert!(found.iter().enumerate().all(|(index, value)| *value == (index + rank) as i64), "rank {rank}");
        }
        world.barrier().unwrap();
        world.free(large).unwrap();
        world.free(region).unwrap();
    });
}

/// Memory that the program has again is written by nobody: what was dropped is complete, what was forgotten is leaked.
#[test]
fn a_dropped_or_forgotten_buffer_is_not_written_later() {
    matrix(|world| {
        let (region, right) = numbers(world);
        for round in 0..200i64 {
            let handle = world.get_nb(region.at::<i64>(right, 0), vec![-1; 100]).unwrap();
            if round % 2 == 0 {
                drop(handle);
            } else {
                forget(handle);
            }
            // The allocator likes to give the same memory again.
            let fresh: Vec<_> = (0..4).map(|_| vec![round; 100]).collect();
            world.get_nb(region.at::<i64>(right, 50), vec![0; 10]).unwrap().wait().unwrap();
            assert!(fresh.iter().flatten().all(|value| *value == round), "round {round}");
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn a_panic_in_a_scope_waits_for_its_gets() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let mut buffers = vec![vec![-1i64; 3000]; 20];
        let ends = catch_unwind(AssertUnwindSafe(|| {
            world.nonblocking(|scope| {
                for buffer in &mut buffers {
                    scope.get(region.at(right, 5), buffer)?;
                }
                if world.size() > 0 {
                    std::panic::resume_unwind(Box::new("enough"));
                }
                Ok(())
            })
        }));
        assert_eq!(*ends.unwrap_err().downcast::<&str>().unwrap(), "enough");
        assert!(buffers.iter().all(|buffer| buffer.iter().enumerate().all(|(at, value)| *value == at as i64 + 5)));
        // An error that is not the operations' own ends a scope early, too.
        let [first, second, ..] = &mut buffers[..] else { unreachable!("there are 20") };
        let failed = world.nonblocking(|scope| {
            scope.get(region.at(right, 0), first)?;
            scope.get(region.at(right, LEN), second).map(drop)
        });
        assert!(matches!(failed, Err(Error::Bounds { .. })));
        assert_eq!(buffers[0][2999], 2999);
        assert_eq!(buffers[1][0], 5, "nothing was written");
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// What refuses to be started says so at once, and nothing is in flight.
#[test]
fn a_bad_argument_is_an_error_of_the_start() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let end = region.at::<i64>(right, LEN - 1);
        assert!(matches!(world.get_nb(end, vec![0; 2]), Err(Error::Bounds { .. })));
        assert!(matches!(world.put_nb(vec![0; 2], end), Err(Error::Bounds { .. })));
        assert!(matches!(world.accumulate_nb(1, vec![0; 2], end), Err(Error::Bounds { .. })));
        let shape = Strided { counts: &[2, 2], local: &[2], remote: &[2] };
        assert!(matches!(world.get_strided_nb(region.at(right, 0), vec![0i64; 3], &shape), Err(Error::Shape(_))));
        let segments = Segments { count: 2, local: &[0], remote: &[region.at(right, 0)] };
        assert!(matches!(world.get_vector_nb(vec![0i64; 1], &segments), Err(Error::Segment { .. })));
        assert!(matches!(world.wait_rank(world.size()), Err(Error::Rank { .. })));
        let mut many = world.aggregate();
        assert!(matches!(many.put(&[0; 2], end), Err(Error::Bounds { .. })));
        assert!(matches!(many.accumulate(1, &[0; 2], end), Err(Error::Bounds { .. })));
        many.finish().unwrap();
        world.barrier().unwrap();
        assert_eq!(world.get_value(end).unwrap(), LEN as i64 - 1);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// The last rank serves nobody until it is told to, or for ten seconds, while `meanwhile` runs on rank 0.
fn while_the_last_is_held(world: &World, meanwhile: impl FnOnce(&dyn Fn())) {
    let last = world.size() - 1;
    let told = world.allocate(8).unwrap();
    let here = told.at::<i64>(world.rank(), 0);
    world.put_value(0, here).unwrap();
    world.barrier().unwrap();
    let held = (world.rank() == last).then(|| world.hold_service());
    world.synchronize().unwrap();
    if world.rank() == 0 {
        meanwhile(&|| {
            let before = world.protocol();
            world.set_protocol(Protocol::all(Path::Rma));
            world.put_value(1, told.at::<i64>(last, 0)).unwrap();
            world.set_protocol(before);
        });
    } else if world.rank() == last {
        let before = world.protocol();
        world.set_protocol(Protocol::all(Path::Rma));
        let since = std::time::Instant::now();
        while world.get_value(here).unwrap() == 0 && since.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        world.set_protocol(before);
    }
    drop(held);
    world.barrier().unwrap();
    world.free(told).unwrap();
}

#[test]
fn a_wait_for_one_rank_does_not_wait_for_others() {
    for progress in ["thread", "none"] {
        // Whoever is held is reached in place, so that it can be let go.
        Ranks::new(3).on_one_node().env("ARMCI_PROTOCOL", "am").env("ARMCI_PROGRESS", progress).run(|world| {
            let (region, _) = numbers(world);
            while_the_last_is_held(world, |release| {
                let (mut one, mut two, mut explicit) = ([-1i64; 3], [-1i64; 3], [-1i64; 3]);
                let mut handle = NbHandle::default();
                // SAFETY: WAITED-FOR.
                unsafe {
                    world.get_nb_into(region.at(2, 7), two.as_mut_ptr(), 3, None).unwrap();
                    world.get_nb_into(region.at(1, 5), one.as_mut_ptr(), 3, None).unwrap();
                    world.get_nb_into(region.at(2, 9), explicit.as_mut_ptr(), 3, Some(&mut handle)).unwrap();
                }
                world.wait_rank(1).unwrap();
                assert_eq!(one, [5, 6, 7]);
                world.wait_rank(0).unwrap();
                assert!(!world.test_for(&handle), "rank 2 has served although it was held back");
                let mut three = [-1i64; 3];
                world
                    .nonblocking(|scope| {
                        let early = scope.get(region.at(1, 0), &mut one)?;
                        let late = scope.get(region.at(2, 1), &mut three)?;
                        scope.wait_rank(1)?;
                        assert!(early.test() && !late.test());
                        release();
                        Ok(())
                    })
                    .unwrap();
                assert_eq!((one, three), ([0, 1, 2], [1, 2, 3]));
                world.wait_all().unwrap();
                assert_eq!(two, [7, 8, 9]);
                world.wait_for(&mut handle).unwrap();
                assert_eq!(explicit, [9, 10, 11]);
            });
            world.free(region).unwrap();
        });
    }
}

/// A get whose region is freed before it is served is refused, and the wait for it says so; others hear nothing.
#[test]
fn a_refused_get_is_the_error_of_its_own_wait() {
    // To meet over nodes, ranks must be served: whoever is held could not free a region.
    Ranks::new(2).on_one_node().env("ARMCI_PROTOCOL", "am").run(|world| {
        let (region, _) = numbers(world);
        let gone = world.allocate(8).unwrap();
        let place = gone.at::<i64>(1, 0);
        let held = (world.rank() == 1).then(|| world.hold_service());
        world.synchronize().unwrap();
        let mut handles = Vec::new();
        let mut kept = None;
        if world.rank() == 0 {
            handles.extend((0..3).map(|_| world.get_nb(place, vec![0; 1]).unwrap()));
            kept = Some(world.get_nb(region.at::<i64>(1, 8), vec![0; 1]).unwrap());
        }
        world.free(gone).unwrap();
        drop(held);
        if let Some(kept) = kept {
            assert_eq!(kept.wait().unwrap(), [8]);
            world.fence_all().unwrap();
            world.wait_all().unwrap();
            match handles.pop().unwrap().wait() {
                Err(Error::Refused { rank: 1, more: 0, .. }) => {}
                other => panic!("{other:?}"),
            }
            // One is never asked, one is forgotten.
            drop(handles.pop());
            handles.into_iter().for_each(forget);
            world.fence_all().unwrap();
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn aggregates_send_a_thousand_operations_in_a_message() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        const MANY: usize = 10_000;
        let region = world.allocate(8 * MANY).unwrap();
        world.put(&vec![0i64; MANY], region.at(me, 0)).unwrap();
        world.barrier().unwrap();
        let right = (me + 1) % size;
        let served = || {
            world.barrier().unwrap();
            let statistics = world.statistics();
            world.synchronize().unwrap();
            statistics.served_by_thread + statistics.served_by_main
        };
        // Between nodes everything that is scattered goes by message, and meetings and names of regions do, too.
        let node = |rank| world.node_of(rank).unwrap();
        let others = if world.nodes() == 1 { 0 } else { 8 };
        let by_message = world.protocol().put == Path::Am || node((me + size - 1) % size) != node(me);
        let check = |before: u64, what: &str| {
            let messages = served() - before;
            let most = if by_message { (MANY as u64).div_ceil(1000) } else { 0 };
            let enough = messages > 0 || !by_message;
            assert!(messages <= most + others && enough, "{messages} messages for {MANY} {what}");
        };
        let mut places: Vec<_> = (0..MANY).collect();
        Rng::with_seed(11).shuffle(&mut places);

        let before = served();
        let mut many = world.aggregate();
        places.iter().for_each(|place| many.put(&[*place as i64], region.at(right, *place)).unwrap());
        many.finish().unwrap();
        check(before, "puts");
        let before = served();
        let mut many = world.aggregate();
        places.iter().for_each(|place| many.accumulate(2, &[*place as i64], region.at(right, *place)).unwrap());
        drop(many);
        check(before, "accumulates");
        let before = served();
        let mut found = vec![0i64; MANY];
        world
            .nonblocking(|scope| {
                let mut many = scope.aggregate();
                for (place, number) in found.chunks_mut(1).enumerate() {
                    many.get(region.at(right, place), number)?;
                }
                many.finish()
            })
            .unwrap();
        check(before, "gets");
        assert!(found.iter().enumerate().all(|(place, number)| *number == 3 * place as i64));
        world.free(region).unwrap();
    });
}

/// Within an aggregate order is kept, whatever the kinds, lengths, ranks and paths are.
#[test]
fn aggregates_of_all_sorts_agree_with_the_reference() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let mut there: Vec<i64> = (0..LEN as i64).collect();
        let mut random = Rng::with_seed(17 + world.rank() as u64);
        for _ in 0..40 {
            let mut targets = vec![vec![-1i64; 40]; 30];
            let mut expected = targets.clone();
            world
                .nonblocking(|scope| {
                    let mut many = scope.aggregate();
                    for (target, expected) in targets.iter_mut().zip(&mut expected) {
                        for _ in 0..random.usize(..20) {
                            if random.u8(..) < 10 {
                                world.set_protocol(any_protocol(&mut random));
                            }
                            // Few places, so that they meet; sometimes more than a message.
                            let count = [1, 1, 1, 2, 0, 30, 3000][random.usize(..7)];
                            let at = random.usize(..40);
                            let source: Vec<_> = (0..count).map(|_| random.i64(0..100)).collect();
                            let place = region.at(right, at);
                            if random.bool() {
                                many.put(&source, place)?;
                                there[at..at + count].copy_from_slice(&source);
                            } else {
                                many.accumulate(5, &source, place)?;
                                there[at..at + count].iter_mut().zip(&source).for_each(|(to, by)| *to += 5 * by);
                            }
                        }
                        let at = random.usize(..40);
                        many.get(region.at(right, at), target)?;
                        expected.copy_from_slice(&there[at..at + 40]);
                        match random.u8(..9) {
                            0 => many.send(),
                            1 => many.wait()?,
                            _ => {}
                        }
                    }
                    Ok(())
                })
                .unwrap();
            assert_eq!(targets, expected);
        }
        world.set_protocol(world.config().protocol);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// Each thread waits for its own, and what it forgets is complete before its context goes to another.
#[test]
fn threads_have_their_own_operations_in_flight() {
    matrix(|world| {
        let (region, right) = numbers(world);
        let (places, threads) = ((0..400).map(|at| region.at::<i64>(right, at)).collect::<Vec<_>>(), world.threads());
        for _ in 0..5 {
            std::thread::scope(|scope| {
                for number in 0..3 {
                    let (threads, places) = (threads.clone(), &places);
                    scope.spawn(move || {
                        let world = threads.attach().unwrap();
                        let start = |at: usize| world.get_nb(places[at], vec![-1; 2000]).unwrap();
                        let handles: Vec<_> = (0..100).map(|at| start(at + 100 * number)).collect();
                        for (at, handle) in handles.into_iter().enumerate() {
                            match at % 10 {
                                0 => forget(handle),
                                _ => assert_eq!(handle.wait().unwrap()[1999], (at + 100 * number) as i64 + 1999),
                            }
                        }
                        forget(start(0));
                        if number == 0 {
                            world.detach().unwrap();
                        }
                    });
                }
            });
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

/// Handles outlive their rank's membership, complete.
#[test]
fn what_is_in_flight_is_complete_when_the_rank_leaves() {
    for protocol in ["rma", "am"] {
        Ranks::new(2).env("ARMCI_PROTOCOL", protocol).run_bare(|| {
            let world = World::init().unwrap();
            let (region, right) = numbers(&world);
            let handle = world.get_nb(region.at::<i64>(right, 0), vec![-1; LEN]).unwrap();
            world.finalize().unwrap();
            assert!(handle.test());
            assert_eq!(handle.wait().unwrap(), (0..LEN as i64).collect::<Vec<_>>());
        });
    }
}

/// An aggregate that outlives its thread's communication sends nothing, in slots that may be another thread's by then.
#[test]
fn an_aggregate_sends_nothing_once_its_thread_has_left() {
    Ranks::new(2).env("ARMCI_PROTOCOL", "am").run(|world| {
        let region = world.allocate(8).unwrap();
        let (place, right) = (region.at::<i64>(world.rank(), 0), 1 - world.rank());
        world.put_value(5i64, place).unwrap();
        world.barrier().unwrap();
        let (threads, there) = (world.threads(), region.at::<i64>(right, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let world = threads.attach().unwrap();
                let mut late = world.aggregate();
                late.put(&[6i64], there).unwrap();
                world.detach().unwrap();
                late.send();
                assert!(late.wait().is_err());
            });
        });
        world.barrier().unwrap();
        assert_eq!(world.get_value(place).unwrap(), 5);
        world.free(region).unwrap();
    });
}
