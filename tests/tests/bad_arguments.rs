//! Wrong arguments to any call are an error that names what is wrong, on whichever path; nothing is written, nothing
//! is counted, and the ranks go on together.
//!
//! # Safety
//! LOCAL-BUFFER: raw local sides point to a buffer as long as the transfer, which outlives the call.
#![allow(unsafe_code)]

use armci_core::{Error, GlobalPtr, Mutexes, Region, Result, STAGING_BYTES, Segment, Segments, SharedCounter};
use armci_core::{Statistics, Strided, World};
use tests::Ranks;

/// Runs `body` on two and three ranks, over both protocols.
fn few(body: impl Fn(&World)) {
    for (ranks, protocol) in [(2, "rma"), (2, "am"), (3, "rma"), (3, "am")] {
        Ranks::new(ranks).env("ARMCI_PROTOCOL", protocol).run(&body);
    }
}

/// What a call that is given a place needs of it.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Bytes,
    Aligned,
    /// Aligned, and of the calling rank.
    Own,
}

/// Words that each call of the table transfers.
const WORDS: usize = 4;
/// Words of the region that must stay as it is.
const LEN: usize = 32;
/// What it holds.
const KEPT: i64 = 0x7a11;

type Call = (&'static str, Needs, fn(&World, &Region, GlobalPtr<i64>) -> Result<()>);

/// A get by `read` leaves its target alone if it fails.
fn reads(read: impl FnOnce(&mut [i64; WORDS]) -> Result<()>) -> Result<()> {
    let mut target = [5; WORDS];
    let result = read(&mut target);
    assert!(result.is_ok() || target == [5; WORDS], "a refused get has written");
    result
}

const SOURCE: [i64; WORDS] = [1; WORDS];
/// Two rows of two words.
const SHAPE: Strided<'_> = Strided { counts: &[2, 2], local: &[2], remote: &[2] };

/// The last of two segments is at `place`, the first in order.
fn at_last(region: &Region, place: GlobalPtr<i64>) -> [GlobalPtr<i64>; 2] {
    [region.at(place.rank(), 0), place]
}

/// As [`at_last`], between a buffer and those places.
fn segments(region: &Region, place: GlobalPtr<i64>, buffer: *mut i64) -> impl Iterator<Item = Segment<i64>> + Clone {
    let segment = move |remote| Segment { local: buffer, remote, count: WORDS };
    at_last(region, place).into_iter().map(segment)
}

/// Every call that takes a place in the memory of a rank; of put-with-flag, each of the two places.
const CALLS: &[Call] = &[
    ("put", Needs::Bytes, |world, _, place| world.put(&SOURCE, place)),
    ("put_value", Needs::Bytes, |world, _, place| world.put_value(1, place)),
    // SAFETY: LOCAL-BUFFER.
    ("put_from", Needs::Bytes, |world, _, place| unsafe { world.put_from(SOURCE.as_ptr(), WORDS, place) }),
    ("get", Needs::Bytes, |world, _, place| reads(|target| world.get(place, target))),
    ("get_value", Needs::Bytes, |world, _, place| world.get_value(place).map(drop)),
    ("get_into", Needs::Bytes, |world, _, place| {
        // SAFETY: LOCAL-BUFFER.
        reads(|target| unsafe { world.get_into(place, target.as_mut_ptr(), WORDS) })
    }),
    ("accumulate", Needs::Aligned, |world, _, place| world.accumulate(1, &SOURCE, place)),
    ("accumulate_from", Needs::Aligned, |world, _, place| {
        // SAFETY: LOCAL-BUFFER.
        unsafe { world.accumulate_from(1, SOURCE.as_ptr(), WORDS, place) }
    }),
    ("put_strided", Needs::Bytes, |world, _, place| world.put_strided(&SOURCE, place, &SHAPE)),
    ("put_strided_from", Needs::Bytes, |world, _, place| {
        // SAFETY: LOCAL-BUFFER.
        unsafe { world.put_strided_from(SOURCE.as_ptr(), place, &SHAPE) }
    }),
    ("get_strided", Needs::Bytes, |world, _, place| reads(|target| world.get_strided(place, target, &SHAPE))),
    ("get_strided_into", Needs::Bytes, |world, _, place| {
        // SAFETY: LOCAL-BUFFER.
        reads(|target| unsafe { world.get_strided_into(place, target.as_mut_ptr(), &SHAPE) })
    }),
    ("accumulate_strided", Needs::Aligned, |world, _, place| world.accumulate_strided(1, &SOURCE, place, &SHAPE)),
    ("accumulate_strided_from", Needs::Aligned, |world, _, place| {
        // SAFETY: LOCAL-BUFFER.
        unsafe { world.accumulate_strided_from(1, SOURCE.as_ptr(), place, &SHAPE) }
    }),
    ("put_vector", Needs::Bytes, |world, region, place| {
        let remote = &at_last(region, place);
        world.put_vector(&SOURCE, &Segments { count: WORDS, local: &[0, 0], remote })
    }),
    ("put_vector_from", Needs::Bytes, |world, region, place| {
        // SAFETY: LOCAL-BUFFER; it is only read.
        unsafe { world.put_vector_from(segments(region, place, SOURCE.as_ptr().cast_mut())) }
    }),
    ("get_vector", Needs::Bytes, |world, region, place| {
        let remote = &at_last(region, place);
        reads(|target| world.get_vector(target, &Segments { count: WORDS, local: &[0, 0], remote }))
    }),
    ("get_vector_into", Needs::Bytes, |world, region, place| {
        // SAFETY: LOCAL-BUFFER.
        reads(|target| unsafe { world.get_vector_into(segments(region, place, target.as_mut_ptr())) })
    }),
    ("accumulate_vector", Needs::Aligned, |world, region, place| {
        let remote = &at_last(region, place);
        world.accumulate_vector(1, &SOURCE, &Segments { count: WORDS, local: &[0, 0], remote })
    }),
    ("accumulate_vector_from", Needs::Aligned, |world, region, place| {
        // SAFETY: LOCAL-BUFFER; it is only read.
        unsafe { world.accumulate_vector_from(1, segments(region, place, SOURCE.as_ptr().cast_mut())) }
    }),
    ("fetch_add", Needs::Aligned, |world, _, place| world.fetch_add(place, 1).map(drop)),
    ("swap", Needs::Aligned, |world, _, place| world.swap(place, 1).map(drop)),
    ("compare_swap", Needs::Aligned, |world, _, place| world.compare_swap(place, KEPT, 1).map(drop)),
    ("put_notify, data", Needs::Bytes, |world, region, place| {
        world.put_notify(&SOURCE, place, region.at(place.rank(), LEN - 1), 1)
    }),
    ("put_notify, flag", Needs::Aligned, |world, region, place| {
        world.put_notify(&SOURCE, region.at(place.rank(), 0), place, 1)
    }),
    ("notify", Needs::Aligned, |world, _, place| world.notify(place, 1)),
    ("wait_until", Needs::Own, |world, _, place| world.wait_until(place, |_| true).map(drop)),
    ("wait_value", Needs::Own, |world, _, place| world.wait_value(place, KEPT)),
];

/// What is wrong with a place, as the error says it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Rank,
    NoRegion,
    Bounds,
    Misaligned,
}

fn told(error: Error) -> Option<Wrong> {
    match error {
        Error::Segment { error, .. } => told(*error),
        Error::Rank { .. } => Some(Wrong::Rank),
        Error::NoRegion { .. } => Some(Wrong::NoRegion),
        Error::Bounds { .. } => Some(Wrong::Bounds),
        Error::Misaligned { .. } => Some(Wrong::Misaligned),
        _ => None,
    }
}

/// What a rank has done, without what it served.
fn done(world: &World) -> [armci_core::Volume; 4] {
    let Statistics { put, get, accumulate, rmw, .. } = world.statistics();
    [put, get, accumulate, rmw]
}

#[test]
fn no_call_takes_a_wrong_place() {
    few(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * LEN).unwrap();
        // Rank 0 has no part of this one.
        let uneven = world.allocate(if me == 0 { 0 } else { 64 }).unwrap();
        let freed = world.allocate(8 * LEN).unwrap();
        let dangling: Vec<_> = (0..size).map(|rank| freed.at::<i64>(rank, 0)).collect();
        world.free(freed).unwrap();
        // Its place and its number are in use again.
        let again = world.allocate(8 * LEN).unwrap();
        for region in [&region, &again] {
            world.put(&[KEPT; LEN], region.at(me, 0)).unwrap();
        }
        world.barrier().unwrap();

        let mut places = vec![
            ("no such rank", Wrong::Rank, region.at(size, 0)),
            ("the largest rank", Wrong::Rank, region.at(usize::MAX, 0)),
            ("a rank beyond 32 bits", Wrong::Rank, region.at(1 << 32, 0)),
            ("no part", Wrong::Bounds, uneven.at(0, 0)),
        ];
        for (rank, dangling) in dangling.into_iter().enumerate() {
            places.extend([
                ("the end", Wrong::Bounds, region.at(rank, LEN)),
                ("half behind the end", Wrong::Bounds, region.at::<u8>(rank, 8 * LEN - 4).cast()),
                ("far behind the end", Wrong::Bounds, region.at(rank, 1 << 40)),
                ("where offsets overflow", Wrong::Bounds, region.at::<u8>(rank, usize::MAX - 7).cast()),
                ("the largest index", Wrong::Bounds, region.at(rank, usize::MAX)),
                ("a freed region", Wrong::NoRegion, dangling),
                ("between words", Wrong::Misaligned, region.at::<u8>(rank, 4).cast()),
            ]);
        }
        let before = done(world);
        for (call, needs, make) in CALLS {
            for (what, wrong, place) in &places {
                if *wrong == Wrong::Misaligned && *needs == Needs::Bytes {
                    continue;
                }
                let error = make(world, &region, *place).expect_err(&format!("{call} took {what}, {place:?}"));
                let text = error.to_string();
                let elsewhere = *needs == Needs::Own && place.rank() < size && place.rank() != me;
                let as_expected = match told(error) {
                    Some(found) => found == *wrong,
                    // That it is another rank's is said first, or last.
                    None => elsewhere,
                };
                assert!(as_expected, "{call} of {what}, {place:?}: {text}");
            }
        }
        assert_eq!(done(world), before, "a refused call was counted");
        world.barrier().unwrap();
        for region in [&region, &again] {
            let mut kept = [0; LEN];
            world.get(region.at(me, 0), &mut kept).unwrap();
            assert_eq!(kept, [KEPT; LEN]);
        }
        // And the last good place is good for all.
        let last = region.at::<i64>(me, LEN - WORDS);
        for (call, _, make) in CALLS {
            if *call == "wait_value" {
                world.put_value(KEPT, last).unwrap();
            }
            make(world, &region, last).unwrap_or_else(|error| panic!("{call}: {error}"));
        }
        world.barrier().unwrap();
        for region in [again, uneven, region] {
            world.free(region).unwrap();
        }
    });
}

/// Everything is refused once a rank has left, and nothing panics or hangs.
#[test]
fn no_call_is_taken_after_finalize() {
    for protocol in ["rma", "am"] {
        Ranks::new(2).env("ARMCI_PROTOCOL", protocol).run_bare(|| {
            let world = World::init().unwrap();
            let region = world.allocate(8 * LEN).unwrap();
            let mutexes = Mutexes::create(&world, 1).unwrap();
            let counter = SharedCounter::create(&world).unwrap();
            let handler = world.register(|_, _| Ok(())).unwrap();
            world.finalize().unwrap();
            let left = |what: &str, result: Result<()>| {
                let error = result.expect_err(what);
                assert!(matches!(error, Error::Job(_)), "{what}: {error}");
            };
            for (call, _, make) in CALLS {
                for rank in 0..2 {
                    let result = make(&world, &region, region.at(rank, 0));
                    left(
                        call,
                        result.map_err(|error| match error {
                            Error::Segment { error, .. } => *error,
                            error => error,
                        }),
                    );
                }
            }
            left("lock", mutexes.lock(0, 0));
            left("try_lock", mutexes.try_lock(0, 0).map(drop));
            left("unlock", mutexes.unlock(0, 0));
            left("destroy", mutexes.destroy());
            left("Mutexes::create", Mutexes::create(&world, 1).map(drop));
            left("next", counter.next().map(drop));
            left("next_chunk", counter.next_chunk(1).map(drop));
            left("reset", counter.reset());
            left("SharedCounter::create", SharedCounter::create(&world).map(drop));
            left("request", world.request(0, handler, &[]).map(drop));
            left("send", world.send(0, handler, &[]));
            left("fence", world.fence(0));
            left("fence_all", world.fence_all());
            left("barrier", world.barrier());
            left("synchronize", world.synchronize());
            left("broadcast", world.broadcast(0, &mut [0u8]));
            left("all_reduce", world.all_reduce(&mut [0i64], armci_core::Reduce::Sum));
            left("all_gather", world.all_gather(&[0u8]).map(drop));
            left("allocate", world.allocate(8).map(drop));
            left("free", world.free(region));
            left("finalize", world.finalize());
        });
    }
}

#[test]
fn no_call_takes_a_wrong_rank_or_a_message_too_long() {
    few(|world| {
        let (me, size) = (world.rank(), world.size());
        let handler = world.register(|_, _| Err("nobody was to call this".into())).unwrap();
        let long = world.register(|_, reply| reply.set(&vec![1; STAGING_BYTES + 1])).unwrap();
        world.barrier().unwrap();
        let region = world.allocate(64).unwrap();
        for wrong in [size, 1 << 32, usize::MAX] {
            let no_rank = |result: Result<()>| {
                assert!(
                    matches!(result, Err(Error::Rank { rank, size: of }) if rank == wrong && of == size),
                    "{result:?}"
                );
            };
            no_rank(world.fence(wrong));
            no_rank(world.request(wrong, handler, &[]).map(drop));
            no_rank(world.send(wrong, handler, &[]));
            no_rank(world.send(wrong, handler, &vec![0; STAGING_BYTES + 1]));
            no_rank(world.broadcast(wrong, &mut [0u8; 3]));
            no_rank(world.broadcast::<u8>(wrong, &mut []));
            no_rank(world.address(&region, wrong).map(drop));
            no_rank(world.locate(wrong, world.address(&region, me).unwrap()).map(drop));
        }
        for target in 0..size {
            for bytes in [STAGING_BYTES + 1, 10 * STAGING_BYTES] {
                let too_long = |result: Result<()>| {
                    let told =
                        matches!(result, Err(Error::MessageTooLong { bytes: of, limit: STAGING_BYTES }) if of == bytes);
                    assert!(told, "{result:?}");
                };
                too_long(world.request(target, handler, &vec![0; bytes]).map(drop));
                too_long(world.send(target, handler, &vec![0; bytes]));
            }
            let error = world.request(target, long, &[]).unwrap_err();
            assert!(error.to_string().contains(&(STAGING_BYTES + 1).to_string()), "{error}");
        }
        // Nothing was sent that a fence would have to complain of.
        world.barrier().unwrap();
        // The table of handlers ends with an error; what was registered before goes on working.
        let error = loop {
            if let Err(error) = world.register(|_, _| Ok(())) {
                break error;
            }
        };
        assert!(matches!(&error, Error::Argument(text) if text.contains("256")), "{error}");
        assert!(world.register(|_, _| Ok(())).is_err());
        assert!(world.request(me, handler, &[]).unwrap_err().to_string().contains("nobody was to call this"));
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn an_address_is_located_where_it_is_allocated_and_nowhere_else() {
    few(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * LEN).unwrap();
        let freed = world.allocate(8 * LEN).unwrap();
        let freed_at: Vec<_> = (0..size).map(|rank| world.address(&freed, rank).unwrap()).collect();
        world.free(freed).unwrap();
        world.barrier().unwrap();
        let on_the_stack = 0u8;
        for (rank, freed_at) in freed_at.into_iter().enumerate() {
            let start = world.address(&region, rank).unwrap();
            let nowhere = |what: &str, address: *const u8| {
                let result = world.locate(rank, address);
                let told = matches!(result, Err(Error::Address { rank: of, address: at }) if of == rank && at == address.addr());
                assert!(told, "{what}: {result:?}");
            };
            nowhere("null", std::ptr::null());
            nowhere("the stack", &raw const on_the_stack);
            nowhere("the last address", std::ptr::without_provenance(usize::MAX));
            nowhere("another rank's", world.address(&region, (rank + 1) % size).unwrap());
            nowhere("behind the region", start.wrapping_add(8 * LEN + 1));
            nowhere("before all regions", start.wrapping_sub(8192));
            nowhere("freed", freed_at.wrapping_add(1));
            let found = world.locate(rank, start.wrapping_add(24)).unwrap();
            assert_eq!(format!("{found:?}"), format!("{:?}", region.at::<u8>(rank, 24)));
            // The end may be named, as in C, but holds nothing.
            let end = world.locate(rank, start.wrapping_add(8 * LEN)).unwrap();
            assert!(matches!(world.put_value(1u8, end), Err(Error::Bounds { .. })));
        }
        let (mine, bytes) = world.local_part(&region).unwrap();
        assert_eq!((mine, bytes), (world.address(&region, me).unwrap(), 8 * LEN));
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn absurd_sizes_are_refused_on_all_ranks_alike() {
    few(|world| {
        let held = world.statistics().node_memory;
        for bytes in [usize::MAX, usize::MAX - 4096, 1 << 63, isize::MAX as usize, 1 << 48] {
            for mine in [bytes, if world.rank() == 0 { bytes } else { 8 }] {
                let error = world.allocate(mine).map(drop).unwrap_err();
                assert!(matches!(error, Error::SlotFull { .. } | Error::Memory { .. }), "{bytes}: {error}");
            }
        }
        for mine in [usize::MAX, usize::MAX / 2 + 1, (1 << 20) + 1] {
            assert!(matches!(Mutexes::create(world, mine), Err(Error::Argument(_))));
        }
        assert_eq!(world.statistics().node_memory, held);
        let region = world.allocate(64).unwrap();
        world.put_value(1u8, region.at(world.rank(), 63)).unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn a_counter_is_not_moved_by_wrong_draws_nor_a_mutex_by_wrong_locks() {
    few(|world| {
        let (me, size) = (world.rank(), world.size());
        let counter = SharedCounter::create(world).unwrap();
        for count in [0, -1, i64::MIN] {
            let error = counter.next_chunk(count).unwrap_err();
            assert!(matches!(&error, Error::Argument(text) if text.contains(&count.to_string())), "{error}");
        }
        world.barrier().unwrap();
        if me == 0 {
            assert_eq!(counter.next().unwrap(), 0);
        }
        world.barrier().unwrap();
        counter.destroy().unwrap();

        // Rank 0 has none.
        let mutexes = Mutexes::create(world, me).unwrap();
        let wrong =
            [(size, 0), (usize::MAX, 0), (0, 0), (0, usize::MAX), (1, 1), (size - 1, size - 1), (1, usize::MAX)];
        for (rank, index) in wrong {
            let refusals =
                [mutexes.lock(rank, index), mutexes.try_lock(rank, index).map(drop), mutexes.unlock(rank, index)];
            for refused in refusals {
                match refused {
                    Err(Error::Rank { rank: of, .. }) => assert!(rank >= size && of == rank),
                    Err(Error::Argument(_)) => assert!(rank < size),
                    other => panic!("mutex {index} of rank {rank}: {other:?}"),
                }
            }
        }
        mutexes.lock(1, 0).unwrap();
        mutexes.unlock(1, 0).unwrap();
        mutexes.destroy().unwrap();
    });
}

#[test]
fn nothing_of_no_size_goes_everywhere() {
    few(|world| {
        let region = world.allocate(0).unwrap();
        let none: [[u64; 0]; 3] = [[]; 3];
        let place = region.at::<[u64; 0]>(world.rank(), 9);
        world.put(&none, place).unwrap();
        world.get(place, &mut [[]; 3]).unwrap();
        world.put(&[0u8; 0], region.at(0, 0)).unwrap();
        world.broadcast(0, &mut [[0u64; 0]; 3]).unwrap();
        world.broadcast::<u8>(0, &mut []).unwrap();
        assert_eq!(world.all_gather(&none).unwrap().len(), 3 * world.size());
        assert!(world.all_gather::<u64>(&[]).unwrap().is_empty());
        world.all_reduce::<f64>(&mut [], armci_core::Reduce::Sum).unwrap();
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}
