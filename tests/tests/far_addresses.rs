//! Places named by (rank, address) on other nodes: found where they are allocated, and nowhere else, also when something
//! else has come to lie there.

use armci_core::{Error, GlobalPtr, World};
use tests::Ranks;

/// Runs `body` on virtual nodes.
fn in_each_job(body: impl Fn(&World)) {
    for (ranks, nodes) in [(2, 2), (4, 2), (3, 3)] {
        for protocol in ["rma", "am"] {
            Ranks::new(ranks).nodes(nodes).env("ARMCI_PROTOCOL", protocol).run(&body);
        }
    }
}

/// Holds `address` to be that of byte `offset` from `start` on, for every rank.
fn is_found(world: &World, rank: usize, address: *mut u8, place: GlobalPtr<u8>) {
    let found = world.locate(rank, address).unwrap();
    assert_eq!(format!("{found:?}"), format!("{place:?}"));
    assert_eq!(world.address_of(place).unwrap(), address);
}

fn is_nowhere(world: &World, rank: usize, address: *const u8, what: &str) {
    match world.locate(rank, address) {
        Err(Error::Address { rank: of, address: at }) => assert_eq!((of, at), (rank, address.addr()), "{what}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn symmetric_parts_are_found_at_their_owners_addresses() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        // Of different lengths, but alike enough to lie at one place.
        let bytes = |rank: usize| 1000 - 100 * rank;
        let first = world.allocate(64).unwrap();
        let region = world.allocate(bytes(me)).unwrap();
        let addresses = world.addresses(&region).unwrap();
        let own = world.all_gather(&[world.local_part(&region).unwrap().0 as u64]).unwrap();
        for rank in 0..size {
            let start = addresses[rank];
            assert_eq!((start as u64, start), (own[rank], world.address(&region, rank).unwrap()));
            for offset in [0, 17, bytes(rank) - 1, bytes(rank)] {
                is_found(world, rank, start.wrapping_add(offset), region.at(rank, offset));
            }
            let end = world.locate(rank, start.wrapping_add(bytes(rank))).unwrap();
            assert!(matches!(world.put_value(1u8, end), Err(Error::Bounds { .. })));
            is_nowhere(world, rank, start.wrapping_add(bytes(rank) + 1), "behind the part");
            is_nowhere(world, rank, std::ptr::null(), "null");
            is_nowhere(world, rank, std::ptr::without_provenance(usize::MAX), "the last address");
            is_nowhere(world, rank, (&raw const own).cast(), "the stack");
            let wrong = (rank + 1) % size;
            is_nowhere(world, wrong, start, "another rank's");
            assert!(matches!(world.locate(size, start), Err(Error::Rank { .. })));
        }
        assert!(matches!(world.address(&region, size), Err(Error::Rank { .. })));
        world.put_value(me as u8, world.locate((me + 1) % size, addresses[(me + 1) % size]).unwrap()).unwrap();
        world.barrier().unwrap();
        assert_eq!(world.get_value::<u8>(region.at(me, 0)).unwrap() as usize, (me + size - 1) % size);
        world.barrier().unwrap();
        world.free(region).unwrap();
        // Each rank withdraws its own part.
        world.barrier().unwrap();
        (0..size).for_each(|rank| is_nowhere(world, rank, addresses[rank].wrapping_add(1), "freed"));
        world.free(first).unwrap();
    });
}

#[test]
fn parts_that_lie_apart_are_found_also_when_others_took_their_place() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let all: Vec<usize> = (0..size).rev().collect();
        let team = world.create_team(&all).unwrap();
        let mut seen: Vec<Vec<*mut u8>> = Vec::new();
        for round in 0..4usize {
            // The second one takes the place of the first, and goes on to another offset from it.
            let before = team.allocate(64 * (round + 1)).unwrap();
            let region = team.allocate(4096).unwrap();
            let addresses = world.addresses(&region).unwrap();
            for (member, start) in addresses.iter().enumerate() {
                let rank = team.world_rank(member).unwrap();
                assert_eq!(*start, world.address(&region, member).unwrap());
                for offset in [0, 4095, 8] {
                    is_found(world, rank, start.wrapping_add(offset), region.at(member, offset));
                }
                is_found(world, rank, world.address(&before, member).unwrap(), before.at(member, 0));
            }
            team.barrier().unwrap();
            let right = (team.rank() + 1) % size;
            let to = world.locate(team.world_rank(right).unwrap(), addresses[right].wrapping_add(16)).unwrap();
            world.put_value((100 * round + me) as u64, to.cast()).unwrap();
            team.barrier().unwrap();
            let left = team.world_rank((team.rank() + size - 1) % size).unwrap();
            assert_eq!(world.get_value::<u64>(region.at(team.rank(), 16 / 8)).unwrap() as usize, 100 * round + left);
            team.barrier().unwrap();
            world.free(region).unwrap();
            world.free(before).unwrap();
            seen.push(addresses);
        }
        // Places were used again, or this would show nothing.
        let again = (1..4).any(|round| (0..round).any(|earlier| seen[round][0] == seen[earlier][0]));
        assert!(again, "{seen:?}");
        team.free().unwrap();
    });
}

#[test]
fn what_a_rank_allocates_alone_is_found_as_it_is_now() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let right = (me + 1) % size;
        let mut reused = false;
        let mut last = std::ptr::null_mut();
        for round in 0..5usize {
            let mine = world.allocate_local(100 + round).unwrap();
            let address = world.address_of(mine.at::<u8>(0)).unwrap();
            reused |= address == last;
            last = address;
            let told = world.all_gather(&[address.expose_provenance() as u64]).unwrap();
            let names = world.all_gather(&[mine.at::<u8>(0)]).unwrap();
            let theirs = std::ptr::without_provenance_mut::<u8>(told[right] as usize);
            is_found(world, right, theirs.wrapping_add(3), names[right].add(3));
            is_found(world, right, theirs.wrapping_add(100 + round), names[right].add(100 + round));
            // The last byte is there only in this round's.
            world.put_value(round as u8, world.locate(right, theirs.wrapping_add(99 + round)).unwrap()).unwrap();
            world.barrier().unwrap();
            assert_eq!(world.get_value::<u8>(mine.at(99 + round)).unwrap() as usize, round);
            world.barrier().unwrap();
            world.free_local(mine).unwrap();
            world.barrier().unwrap();
            is_nowhere(world, right, theirs, "freed");
            world.barrier().unwrap();
        }
        assert!(reused, "places were used again, or this would show nothing");
    });
}

#[test]
fn other_threads_find_what_lies_there_now() {
    Ranks::new(2).nodes(2).run(|world| {
        let (me, size) = (world.rank(), world.size());
        let team = world.create_team(&[0, 1]).unwrap();
        let (ask, asked) = std::sync::mpsc::channel::<(usize, String)>();
        let (answer, answered) = std::sync::mpsc::channel();
        let threads = world.threads();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let world = threads.attach().unwrap();
                for (address, wanted) in asked {
                    let found = world.locate((me + 1) % size, std::ptr::without_provenance(address));
                    let found = format!("{:?}", found.unwrap());
                    let put = world
                        .put_value(7u8, world.locate((me + 1) % size, std::ptr::without_provenance(address)).unwrap());
                    answer.send((found == wanted && put.is_ok(), found, wanted)).unwrap();
                }
                world.detach().unwrap();
            });
            let mut last = None;
            for round in 0..4 {
                let region = team.allocate(256).unwrap();
                let theirs = world.addresses(&region).unwrap()[(me + 1) % size].addr();
                ask.send((theirs, format!("{:?}", region.at::<u8>((me + 1) % size, 0)))).unwrap();
                let (right, found, wanted) = answered.recv().unwrap();
                assert!(right, "round {round}: {found} was found, and should be {wanted}");
                assert!(last.is_none_or(|last| last == theirs), "places are used again, or this would show nothing");
                last = Some(theirs);
                team.barrier().unwrap();
                world.free(region).unwrap();
            }
            drop(ask);
        });
        team.free().unwrap();
    });
}
