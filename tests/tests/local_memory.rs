//! Memory that one rank takes or lends by itself, and the cache of remote regions.

use armci_core::config::{Path, Protocol};
use armci_core::{Error, GlobalPtr, Strided, World};
use tests::{Ranks, for_each, matrix};

#[test]
fn local_regions_are_reached_by_all_and_not_after_their_end() {
    matrix(|world| {
        let mine: Vec<_> = (0..20).map(|number| world.allocate_local(100 * number + 8).unwrap()).collect();
        for (number, region) in mine.iter().enumerate() {
            let places = world.all_gather(&[region.at::<i64>(0)]).unwrap();
            let right = (world.rank() + 1) % world.size();
            world.put_value((1000 * world.rank() + number) as i64, places[right]).unwrap();
            assert!(matches!(
                world.put_value(0i64, places[right].add(100 * number / 8 + 1)),
                Err(Error::Bounds { .. })
            ));
        }
        world.barrier().unwrap();
        let left = (world.rank() + world.size() - 1) % world.size();
        for (number, region) in mine.into_iter().enumerate() {
            let place = region.at::<i64>(0);
            assert_eq!(world.get_value(place).unwrap(), (1000 * left + number) as i64);
            let address = world.address_of(place).unwrap();
            assert_eq!(world.locate(world.rank(), address).unwrap().rank(), world.rank());
            world.free_local(region).unwrap();
            assert!(matches!(world.get_value(place), Err(Error::NoRegion { .. })));
            assert!(matches!(world.locate(world.rank(), address.wrapping_add(1)), Err(Error::Address { .. })));
        }
        world.barrier().unwrap();
    });
}

/// All operations on memory that lies in no window.
#[test]
fn registered_memory_is_reached_by_all_and_comes_back() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        for len in [4, 100, 50_000] {
            let mine = world.register_memory(vec![me as i64; len]).unwrap();
            let places: Vec<GlobalPtr<i64>> = world.all_gather(&[mine.at(0)]).unwrap();
            let place = places[right];
            let numbers: Vec<i64> = (0..len as i64).map(|at| at + 1000 * me as i64).collect();
            world.put(&numbers, place).unwrap();
            world.accumulate(2, &numbers, place).unwrap();
            let shape = Strided { counts: &[1, 2], local: &[1], remote: &[2] };
            world.put_strided(&[-1, -2], place, &shape).unwrap();
            assert_eq!(world.fetch_add(place.add(3), 5).unwrap(), 3 * numbers[3]);
            let mut back = vec![0; len];
            world.get(place, &mut back).unwrap();
            let expected = |of: usize, at: usize| match at {
                0 => -1,
                2 => -2,
                _ => 3 * (at + 1000 * of) as i64 + if at == 3 { 5 } else { 0 },
            };
            assert!(back.iter().enumerate().all(|(at, value)| *value == expected(me, at)));
            assert_eq!(world.address_of(mine.at(0)).unwrap(), mine.as_ptr().cast());
            let elsewhere = world.address_of(place);
            let near = world.node_of(right).unwrap() == world.node_of(me).unwrap();
            match elsewhere {
                Ok(_) => assert_eq!(size, 1),
                Err(Error::Argument(_)) => assert_ne!(size, 1),
                Err(error) => panic!("{error}"),
            }
            let beyond = world.put(&numbers, place.add(1));
            assert!(matches!(beyond, Err(Error::Bounds { .. })), "{beyond:?}");
            world.barrier().unwrap();
            let mine = mine.unregister();
            assert!(mine.iter().enumerate().all(|(at, value)| *value == expected(left, at)));
            world.barrier().unwrap();
            // Whoever takes memory back from ranks of other nodes must know that they forget it.
            assert!(!near || matches!(world.get_value(place), Err(Error::NoRegion { .. })));
            world.barrier().unwrap();
        }
        // Dropped, and forgotten.
        let place = world.register_memory(vec![0u8; 10]).unwrap().at(0);
        assert!(matches!(world.get_value(place), Err(Error::NoRegion { .. })));
        std::mem::forget(world.register_memory(vec![0u8; 10]).unwrap());
    });
}

/// Every flag-like use too: notify into registered memory by message, and mixed paths in order.
#[test]
fn a_flag_in_registered_memory_is_waited_for() {
    for_each([2, 3], |world| {
        let flag = world.register_memory(vec![0i64; 1]).unwrap();
        let data = world.allocate(8 * 1000).unwrap();
        let flags = world.all_gather(&[flag.at(0)]).unwrap();
        let right = (world.rank() + 1) % world.size();
        for round in 1..50 {
            world.put_notify(&[round; 1000], data.at(right, 0), flags[right], round).unwrap();
            world.wait_value(flag.at(0), round).unwrap();
            assert_eq!(world.get_value::<i64>(data.at(world.rank(), 999)).unwrap(), round);
            world.barrier().unwrap();
        }
        world.free(data).unwrap();
    });
}

/// What is registered may be taken back by another thread while a flag in it is waited for: nobody looks there again.
#[test]
fn a_flag_in_memory_that_is_taken_back_is_an_error() {
    for_each([1, 2], |world| {
        for pause in [0, 1, 10, 50] {
            let flag = world.register_memory(vec![0i64; 1 << 16]).unwrap();
            let place = flag.at(1 << 15);
            let looks = std::sync::atomic::AtomicU32::new(0);
            let found = std::thread::scope(|scope| {
                let looks = &looks;
                scope.spawn(move || {
                    while looks.load(std::sync::atomic::Ordering::Relaxed) == 0 {
                        std::thread::yield_now();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(pause));
                    drop(flag);
                    // Unmapped, and used for something else.
                    looks.store(1 << 20, std::sync::atomic::Ordering::Relaxed);
                });
                world.wait_until(place, |value| {
                    assert_eq!(value, 0);
                    looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 1 << 20
                })
            });
            assert!(matches!(found, Err(Error::NoRegion { .. })), "{found:?}");
            world.barrier().unwrap();
        }
    });
}

/// Of the two heaps of a slot, neither keeps room from the other that it does not use.
#[test]
fn a_slot_is_divided_as_it_is_used() {
    const MANY: usize = 60 << 20;
    const MORE: usize = 100 << 20;
    Ranks::new(2).env("ARMCI_SLOT", "128M").env("ARMCI_MEMORY", "300M").run(|world| {
        // Refused on one rank: the other has its room still.
        let mine = (world.rank() == 1).then(|| world.allocate_local(MANY).unwrap());
        world.barrier().unwrap();
        assert!(matches!(world.allocate(MORE), Err(Error::SlotFull { rank: 1, .. })));
        let mine = mine.unwrap_or_else(|| world.allocate_local(MANY).unwrap());
        // Free, and kept for later; but there is a better use for it, both of the room and of the memory.
        world.free_local(mine).unwrap();
        world.barrier().unwrap();
        let region = world.allocate(MORE).unwrap();
        world.put_value(1u8, region.at(1 - world.rank(), MORE - 1)).unwrap();
        world.free(region).unwrap();
        world.barrier().unwrap();
    });
}

/// Through a cache of every small capacity, everything is found where it is, and what was freed is not.
#[test]
fn regions_are_found_through_a_cache_of_any_capacity() {
    for capacity in ["1", "2", "3", "100"] {
        for ranks in [2, 3, 4] {
            let job = Ranks::new(ranks).env("ARMCI_RESOLVE", "cache").env("ARMCI_REGION_CACHE", capacity);
            job.run(|world| through_the_cache(world, capacity.parse().unwrap()));
        }
    }
}

fn through_the_cache(world: &World, capacity: u64) {
    let (me, size) = (world.rank(), world.size());
    let regions: Vec<_> = (0..10).map(|number| world.allocate(8 * (10 + number)).unwrap()).collect();
    let start = world.statistics().region_cache;
    for round in 0..5i64 {
        for path in [Path::Rma, Path::Am] {
            world.set_protocol(Protocol::all(path));
            for (number, region) in regions.iter().enumerate() {
                for rank in 0..size {
                    let place = region.at::<i64>(rank, 9 + number - me);
                    world.put_value(round + number as i64, place).unwrap();
                    assert_eq!(world.fetch_add(place, 3).unwrap(), round + number as i64);
                    world.accumulate(2, &[4], place).unwrap();
                    assert_eq!(world.get_value(place).unwrap(), round + number as i64 + 11);
                    let beyond = world.put_value(0i64, region.at(rank, 10 + number));
                    assert!(matches!(beyond, Err(Error::Bounds { .. })));
                }
            }
        }
    }
    let counts = world.statistics().region_cache;
    let lookups = counts.hits + counts.misses - start.hits - start.misses;
    let resolved = 5 * 2 * 10 * 5 * size as u64;
    // How a part of another node is reached is looked up beside where it lies.
    assert!(if world.nodes() == 1 { lookups == resolved } else { lookups >= resolved }, "{counts:?}");
    let pairs = 10 * size as u64;
    let misses = counts.misses - start.misses;
    // A sweep over more than fits evicts, by whichever rule, something it comes to again.
    assert!(if capacity >= pairs { misses == pairs } else { misses > pairs }, "{counts:?}");
    assert!(capacity >= pairs || counts.evictions > 0, "{counts:?}");
    world.barrier().unwrap();
    let stale: Vec<GlobalPtr<i64>> = regions.iter().map(|region| region.at(size - 1, 0)).collect();
    for region in regions {
        world.free(region).unwrap();
    }
    world.barrier().unwrap();
    // The same names, larger parts.
    let regions: Vec<_> = (0..10).map(|number| world.allocate(16 * (10 + number)).unwrap()).collect();
    for (region, stale) in regions.iter().zip(stale) {
        assert!(matches!(world.put_value(0, stale), Err(Error::NoRegion { .. })));
        world.put_value(1i64, region.at((me + 1) % size, 19)).unwrap();
    }
    // Parts of a team, whose names differ from rank to rank.
    let team = world.split(Some(0), -(me as i64)).unwrap().unwrap();
    let extra = (me == 0).then(|| world.allocate_local(8).unwrap());
    let region = team.allocate(8 * size).unwrap();
    for member in 0..size {
        world.put_value(me as i64, region.at(member, team.rank())).unwrap();
    }
    team.barrier().unwrap();
    for member in 0..size {
        let from = team.world_rank(member).unwrap() as i64;
        assert_eq!(world.get_value::<i64>(region.at(team.rank(), member)).unwrap(), from);
    }
    team.barrier().unwrap();
    let stale = region.at::<i64>((team.rank() + 1) % size, 0);
    world.free(region).unwrap();
    assert!(matches!(world.get_value(stale), Err(Error::NoRegion { .. })));
    world.barrier().unwrap();
    extra.into_iter().for_each(|extra| world.free_local(extra).unwrap());
    team.free().unwrap();
}
