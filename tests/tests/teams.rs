//! Teams: created by their members, split, translated, freed; collectives and memory of their own.

use armci_core::{Error, GlobalPtr, Reduce, Team, World};
use tests::{Ranks, for_each, matrix, on_ranks};

/// All collectives of a team against what its members should find.
fn collectives_work(team: &Team) {
    let (me, size, ranks) = (team.rank(), team.size(), team.ranks());
    for len in [1usize, 7, 3000] {
        let mine: Vec<i64> = (0..len).map(|at| (at * (ranks[me] + 1)) as i64).collect();
        let mut sum = mine.clone();
        team.all_reduce(&mut sum, Reduce::Sum).unwrap();
        let factor: usize = ranks.iter().map(|rank| rank + 1).sum();
        assert!(sum.iter().enumerate().all(|(at, value)| *value == (at * factor) as i64));
        for (root, rank) in ranks.iter().enumerate() {
            let mut values = mine.clone();
            team.broadcast(root, &mut values).unwrap();
            assert!(values.iter().enumerate().all(|(at, value)| *value == (at * (rank + 1)) as i64));
        }
        let all = team.all_gather(&mine).unwrap();
        let blocks: Vec<i64> = (0..len * size).map(|at| (at % len * (ranks[at / len] + 1)) as i64).collect();
        assert_eq!(all, blocks);
        let outward: Vec<i64> = (0..len * size).map(|at| (1_000_000 * me + at) as i64).collect();
        let inward = team.exchange(&outward).unwrap();
        let expected: Vec<i64> =
            (0..len * size).map(|at| (1_000_000 * (at / len) + me * len + at % len) as i64).collect();
        assert_eq!(inward, expected);
    }
    team.barrier().unwrap();
}

/// Every member puts to every other's part, and finds what the others put.
fn memory_works(world: &World, team: &Team, bytes: impl Fn(usize) -> usize) {
    let region = team.allocate(bytes(team.rank())).unwrap();
    for member in 0..team.size() {
        let last = bytes(member) / 8 - 1;
        world.put_value(team.rank() as i64 + 100, region.at(member, last - team.rank())).unwrap();
        let beyond = world.put_value(0i64, region.at(member, last + 1));
        assert!(matches!(beyond, Err(Error::Bounds { .. })), "{beyond:?}");
        let rank = team.world_rank(member).unwrap();
        let address = world.address(&region, member).unwrap();
        let found = world.locate(rank, address.wrapping_add(8 * last)).unwrap();
        assert_eq!(world.address_of(found).unwrap(), address.wrapping_add(8 * last));
    }
    team.barrier().unwrap();
    for member in 0..team.size() {
        let place = region.at(team.rank(), bytes(team.rank()) / 8 - 1 - member);
        assert_eq!(world.get_value::<i64>(place).unwrap(), member as i64 + 100);
    }
    let stale: GlobalPtr<i64> = region.at(0, 0);
    assert!(matches!(world.put_value(0, region.at(team.size(), 0)), Err(Error::Rank { .. })));
    team.barrier().unwrap();
    world.free(region).unwrap();
    team.barrier().unwrap();
    assert!(matches!(world.put_value(0, stale), Err(Error::NoRegion { .. })));
    team.barrier().unwrap();
}

#[test]
fn teams_split_and_work_by_themselves() {
    matrix(|world| {
        for round in 0..3 {
            let colour = (world.rank() % 2) as i64;
            let team = world.split(Some(colour), -(world.rank() as i64)).unwrap().unwrap();
            let mut expected: Vec<usize> = (0..world.size()).filter(|rank| rank % 2 == world.rank() % 2).collect();
            expected.reverse();
            assert_eq!(team.ranks(), expected);
            assert_eq!(team.member(world.rank()), Some(team.rank()));
            assert_eq!(team.world_rank(team.rank()).unwrap(), world.rank());
            assert!(matches!(team.world_rank(team.size()), Err(Error::Rank { .. })));
            // The other colour makes more or fewer calls meanwhile.
            for _ in 0..round * (1 + 2 * world.rank() % 2) {
                collectives_work(&team);
            }
            memory_works(world, &team, |member| 8 * (world.size() + 100 * member));
            collectives_work(&team);
            team.free().unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn members_alone_create_a_team() {
    for_each([2, 3, 4], |world| {
        let size = world.size();
        // Every pair of neighbours in the ring, all at once where they do not overlap.
        for first in 0..size {
            let pair = [first, (first + 1) % size];
            if pair.contains(&world.rank()) {
                let team = world.create_team(&pair).unwrap();
                assert_eq!(team.ranks(), pair);
                collectives_work(&team);
                memory_works(world, &team, |_| 1 << 20);
                team.free().unwrap();
            }
        }
        let alone = world.create_team(&[world.rank()]).unwrap();
        collectives_work(&alone);
        memory_works(world, &alone, |_| 64);
        alone.free().unwrap();
        world.barrier().unwrap();
    });
}

#[test]
fn teams_of_teams_overlap_and_translate() {
    for_each([3, 4], |world| {
        let all: Vec<usize> = (0..world.size()).rev().collect();
        let everyone = world.create_team(&all).unwrap();
        let without_last = everyone.split((everyone.rank() != everyone.size() - 1).then_some(3), 0).unwrap();
        assert_eq!(without_last.is_some(), world.rank() != 0);
        if let Some(some) = &without_last {
            for member in 0..some.size() {
                let there = some.translate(member, &everyone).unwrap().unwrap();
                assert_eq!(everyone.world_rank(there).unwrap(), some.world_rank(member).unwrap());
            }
            collectives_work(some);
            // Memory of the smaller team, reached from outside it too.
        }
        let last = everyone.translate(everyone.size() - 1, &everyone).unwrap();
        assert_eq!(last, Some(everyone.size() - 1));
        collectives_work(&everyone);
        if let Some(some) = without_last {
            some.free().unwrap();
        }
        everyone.free().unwrap();
        world.barrier().unwrap();
    });
}

#[test]
fn ranks_outside_reach_the_memory_of_a_team() {
    for_each([2, 3, 4], |world| {
        let team = world.split((world.rank() != 0).then_some(0), 0).unwrap();
        let region = team.as_ref().map(|team| team.allocate(8 * 10).unwrap());
        let mut place = [region.as_ref().map_or_else(GlobalPtr::default, |region| region.at::<i64>(0, 3))];
        world.broadcast(1, &mut place).unwrap();
        if world.rank() == 0 {
            world.put_value(77i64, place[0]).unwrap();
        }
        world.barrier().unwrap();
        assert_eq!(world.get_value(place[0]).unwrap(), 77);
        world.barrier().unwrap();
        if let (Some(team), Some(region)) = (team, region) {
            world.free(region).unwrap();
            team.free().unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn what_is_no_team_is_refused() {
    Ranks::new(2).run(|world| {
        assert!(matches!(world.create_team(&[0, 2]), Err(Error::Rank { rank: 2, size: 2 })));
        assert!(matches!(world.create_team(&[0, 1, 0]), Err(Error::Argument(_))));
        assert!(matches!(world.create_team(&[1 - world.rank()]), Err(Error::Argument(_))));
        assert!(world.split(None, 0).unwrap().is_none());
        world.barrier().unwrap();
    });
}

#[test]
fn teams_and_their_memory_are_given_back() {
    for_each([2, 3, 4], |world| {
        let start = world.statistics().node_memory;
        for _ in 0..100 {
            let team = world.split(Some((world.rank() / 2) as i64), 0).unwrap().unwrap();
            let region = team.allocate(1 << 16).unwrap();
            world.free(region).unwrap();
            team.free().unwrap();
        }
        world.barrier().unwrap();
        let grown = world.statistics().node_memory - start;
        assert!(grown < (1 << 20) * world.size() as u64, "100 teams, one at a time, took {grown} bytes");
        world.barrier().unwrap();
    });
}

/// Whatever was allocated before, what members of a team share is aligned as it must be.
#[test]
fn teams_among_small_regions() {
    for_each([1, 3], |world| {
        let mut held = Vec::new();
        for lines in 1..12 {
            held.push(world.allocate_local(64 * lines).unwrap());
            let team = world.split(Some(0), 0).unwrap().unwrap();
            collectives_work(&team);
            team.free().unwrap();
        }
        held.into_iter().for_each(|region| world.free_local(region).unwrap());
    });
}

#[test]
fn what_a_team_has_under_way_outlasts_no_team() {
    for_each([1, 2, 3], |world| {
        for _ in 0..20 {
            // Ended during its barrier: refused, to all.
            let team = world.split(Some(0), 0).unwrap().unwrap();
            let arrival = team.begin_barrier().unwrap();
            assert!(matches!(team.free(), Err(Error::Argument(_))));
            arrival.wait().unwrap();
            // Its memory freed after its end: refused, whatever lies where it met by now.
            let team = world.split(Some(0), 0).unwrap().unwrap();
            let region = team.allocate(100).unwrap();
            team.free().unwrap();
            let instead = world.split(Some(0), 0).unwrap().unwrap();
            assert!(matches!(world.free(region), Err(Error::Argument(_))));
            instead.barrier().unwrap();
            instead.free().unwrap();
        }
    });
}

/// One member's table is full: all hear of it, as what it is.
#[test]
fn a_full_table_is_an_error_for_all() {
    on_ranks(2, |world| {
        let team = world.split(Some(0), 0).unwrap().unwrap();
        let mut held = Vec::new();
        let full = loop {
            match world.allocate_local(if team.rank() == 0 { usize::MAX } else { 1 }) {
                Ok(region) => held.push(region),
                Err(error) => break error,
            }
        };
        assert_eq!(team.rank() == 1, matches!(full, Error::RegionTableFull { .. }));
        let refused = team.allocate(8);
        assert!(matches!(refused, Err(Error::RegionTableFull { .. })), "{refused:?}");
        held.into_iter().for_each(|region| world.free_local(region).unwrap());
        team.barrier().unwrap();
        world.free(team.allocate(8).unwrap()).unwrap();
        team.free().unwrap();
    });
}

#[test]
fn a_team_that_has_no_memory_is_an_error_for_all() {
    for ranks in [2, 3] {
        Ranks::new(ranks).env("ARMCI_MEMORY", "64M").run(|world| {
            let team = world.split(Some(0), 0).unwrap().unwrap();
            let mine = if team.rank() == 1 { 1 << 27 } else { 4096 };
            let held = world.statistics().node_memory;
            team.barrier().unwrap();
            assert!(matches!(team.allocate(mine), Err(Error::Memory { rank: 1, limit: 0x400_0000, .. })));
            team.barrier().unwrap();
            assert!(world.statistics().node_memory <= held, "something was taken");
            team.barrier().unwrap();
            memory_works(world, &team, |_| 1 << 20);
            team.free().unwrap();
        });
    }
}

#[test]
fn many_teams_on_few_cores() {
    Ranks::new(16).run(|world| {
        let team = world.split(Some((world.rank() % 3) as i64), 0).unwrap().unwrap();
        for _ in 0..50 {
            collectives_work(&team);
        }
        team.free().unwrap();
        world.barrier().unwrap();
    });
}
