//! Groups of ranks, arrays on them, and handles that go in any order.

use armci_core::{Error as Refusal, World};
use global_arrays::{Error, GlobalArray, Group, Mutexes, Reduce, SharedCounter};
use ndarray::{Array2, s};
use tests::{Ranks, for_each, matrix};

/// Fills an array with the sum over its group's ranks of (number in the world + 1), and checks it.
fn works(group: &Group, shape: [usize; 2]) -> GlobalArray<i64> {
    let array = GlobalArray::<i64>::create(group, "of a group", shape).unwrap();
    let mine = group.world_rank(group.rank()).unwrap() as i64 + 1;
    array.accumulate(.., 1, &Array2::from_elem(shape, mine)).unwrap();
    array.sync().unwrap();
    assert_eq!(array.get(..).unwrap(), Array2::from_elem(shape, sum_of(group)));
    array
}

fn sum_of(group: &Group) -> i64 {
    group.ranks().iter().map(|rank| *rank as i64 + 1).sum()
}

#[test]
fn groups_number_their_ranks_and_translate() {
    for_each(1..=5, |world| {
        let all = Group::from(world);
        assert_eq!((all.rank(), all.size()), (world.rank(), world.size()));
        assert_eq!(all.ranks(), (0..world.size()).collect::<Vec<_>>());
        let backwards = all.split(Some(0), -(world.rank() as i64)).unwrap().unwrap();
        for rank in 0..world.size() {
            assert_eq!(backwards.world_rank(rank).unwrap(), world.size() - 1 - rank);
            assert_eq!(backwards.translate(rank, &all).unwrap(), Some(world.size() - 1 - rank));
            assert_eq!(all.translate(rank, &backwards).unwrap(), Some(world.size() - 1 - rank));
        }
        assert_eq!(all.rank_of(world.size()), None);
        assert!(matches!(all.translate(world.size(), &backwards), Err(Refusal::Rank { .. })));
        // Groups of a group's ranks, by its numbers.
        if backwards.rank() > 0 {
            let ranks: Vec<_> = (1..backwards.size()).collect();
            let rest = backwards.of_ranks(&ranks).unwrap();
            assert_eq!(rest.world_rank(0).unwrap(), world.size() - 2);
            assert_eq!(all.translate(world.size() - 1, &rest).unwrap(), None);
            assert_eq!(rest.sum(1).unwrap(), world.size() - 1);
            rest.free().unwrap();
        }
        assert!(matches!(backwards.of_ranks(&[world.size()]), Err(Refusal::Rank { .. })));
        backwards.free().unwrap();
        all.free().unwrap();
        assert!(world.barrier().is_ok(), "the world does not end so");
    });
}

#[test]
fn sums_and_broadcasts_are_an_arrays_groups() {
    for_each(1..=5, |world| {
        let half = Group::from(world).split(Some((world.rank() % 2) as i64), 0).unwrap().unwrap();
        let array = GlobalArray::<f64>::create(&half, "a", [3, 3]).unwrap();
        let mut values = [array.group().rank() as f64, 1.0];
        array.group().all_reduce(&mut values, Reduce::Sum).unwrap();
        let n = half.size() as f64;
        assert_eq!(values, [n * (n - 1.0) / 2.0, n]);
        let mut said = [world.rank()];
        array.group().broadcast(half.size() - 1, &mut said).unwrap();
        assert_eq!(said[0] % 2, world.rank() % 2);
        assert_eq!(half.rank_of(said[0]), Some(half.size() - 1));
        array.destroy().unwrap();
        half.free().unwrap();
    });
}

#[test]
fn arrays_on_disjoint_and_nested_groups_live_at_once() {
    matrix(|world| {
        let all = Group::from(world);
        let half = all.split(Some((world.rank() / 2) as i64), 0).unwrap().unwrap();
        let one = half.split(Some(half.rank() as i64), 0).unwrap().unwrap();
        let groups = [&all, &half, &one];
        // Different shapes on the halves.
        let rows = 5 + world.rank() / 2;
        let arrays = groups.map(|group| works(group, [if group.size() == world.size() { 9 } else { rows }, 7]));
        let again = works(&half, [3, 3]);
        let [on_all, on_half, on_one] = arrays;
        on_half.destroy().unwrap();
        let later = works(&one, [2, 40]);
        assert_eq!(on_all.get(s![0, ..]).unwrap().to_vec(), vec![sum_of(&all); 7]);
        on_all.destroy().unwrap();
        assert_eq!(again.get([1..2, 1..2]).unwrap()[[0, 0]], sum_of(&half));
        on_one.destroy().unwrap();
        again.destroy().unwrap();
        half.free().unwrap();
        // A nested group outlives the one that it was made from.
        assert_eq!(later.get([1..2, 39..40]).unwrap()[[0, 0]], world.rank() as i64 + 1);
        later.destroy().unwrap();
        one.free().unwrap();
    });
}

#[test]
fn an_array_whose_group_has_ended_is_an_error() {
    matrix(|world| {
        let team = world.split(Some(0), 0).unwrap().unwrap();
        let array = GlobalArray::<f64>::create(&team, "orphan", [4, 4]).unwrap();
        let counter = SharedCounter::create(&team).unwrap();
        team.free().unwrap();
        let named = |error: Error| assert!(error.to_string().contains("'orphan'"), "{error}");
        named(array.sync().unwrap_err());
        named(array.zero().unwrap_err());
        assert!(matches!(array.duplicate("copy"), Err(Error::Runtime { .. })));
        let nowhere = format!("nowhere-{}.npy", std::process::id());
        named(array.save(std::env::temp_dir().join(&nowhere)).unwrap_err());
        let left = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains(&nowhere)).collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(counter.reset().is_err());
        assert!(array.group().sum(1).is_err());
        named(array.destroy().unwrap_err());
        assert!(counter.destroy().is_err());
        world.barrier().unwrap();
    });
}

#[test]
fn handles_are_dropped_in_any_order() {
    for_each(1..=3, |world| {
        let team = world.split(Some(0), 0).unwrap().unwrap();
        let group = Group::from(&team);
        let make = || {
            let array = GlobalArray::<f64>::create(&group, "left", [6, 6]).unwrap();
            (array, SharedCounter::create(&group).unwrap(), Mutexes::create(&group, 1).unwrap())
        };
        // A slice and a guard keep what they are of: the compiler sees to that. Everything else goes as it likes.
        let (array, counter, mutexes) = make();
        drop(mutexes);
        drop(array);
        assert_eq!(counter.group().sum(1).unwrap(), world.size());
        drop(counter);
        let (array, counter, mutexes) = make();
        drop(group);
        drop(counter);
        array.fill(2.0).unwrap();
        assert_eq!(array.slice(s![2..4, ..]).unwrap().patch().len(), 12);
        drop(team);
        assert_eq!(array.get_element([5, 5]).unwrap(), 2.0);
        drop(array);
        mutexes.guard(0, 0).unwrap().unlock().unwrap();
        drop(mutexes);
        // What was dropped and not destroyed stands in nobody's way.
        let next = GlobalArray::<f64>::create(world, "next", [6, 6]).unwrap();
        assert_eq!(next.get(..).unwrap().sum(), 0.0);
        next.destroy().unwrap();
    });
}

#[test]
fn handles_outlive_the_job_and_are_refused() {
    for protocol in ["rma", "am"] {
        Ranks::new(3).env("ARMCI_PROTOCOL", protocol).run_bare(|| {
            let world = World::init().unwrap();
            let array = GlobalArray::<f64>::create(&world, "late", [5, 5]).unwrap();
            let team = world.split(Some(0), 0).unwrap().unwrap();
            let of_team = GlobalArray::<f64>::create(&team, "late too", [5, 5]).unwrap();
            let counter = SharedCounter::create(&world).unwrap();
            let mutexes = Mutexes::create(&world, 1).unwrap();
            let group = array.group().clone();
            world.finalize().unwrap();
            drop(world);
            let late = |result: Result<(), Error>| {
                let error = result.unwrap_err();
                assert!(
                    matches!(&error, Error::Runtime { source: Refusal::Job(_), .. } | Error::Transfer { .. }),
                    "{error}"
                );
            };
            for array in [&array, &of_team] {
                late(array.get(..).map(drop));
                late(array.put(s![0, ..], &ndarray::Array1::zeros(5)));
                late(array.get_element([1, 1]).map(drop));
                late(array.sync());
                late(array.fill(1.0));
                late(array.save(std::env::temp_dir().join("late.npy")));
                late(array.write_to(&mut Vec::new(), global_arrays::Layout::all()));
            }
            assert!(matches!(counter.tasks(5).next(), Some(Err(Refusal::Job(_)))));
            assert!(matches!(mutexes.guard(0, 0), Err(Refusal::Job(_))));
            drop(team);
            late(array.destroy());
            drop(group);
            drop(mutexes);
            drop(of_team);
            drop(counter);
        });
    }
}

#[test]
fn a_panic_unwinds_past_arrays_and_ends_the_job() {
    let outcome = Ranks::new(3).expect_failure(|world| {
        let array = GlobalArray::<f64>::create(world, "unlucky", [5, 5]).unwrap();
        let mutexes = Mutexes::create(world, 1).unwrap();
        let counter = SharedCounter::create(world).unwrap();
        if world.rank() == 1 {
            let slice = array.whole();
            let guard = mutexes.guard(0, 0).unwrap();
            assert!(slice.patch().is_empty() && guard.unlock().is_err(), "as a bug would");
        }
        // The others wait for a rank that is gone.
        array.sync().unwrap();
        counter.destroy().unwrap();
    });
    let failed = outcome.failed.unwrap();
    assert_eq!(failed.rank, 1);
    // By the panic, not by a second one while the first unwound, which would abort.
    assert!(failed.reason.to_string().contains("101"), "{}", failed.reason);
}

#[test]
fn what_is_dropped_costs_its_memory_and_no_more() {
    for_each([1, 2], |world| {
        let leaked = GlobalArray::<f64>::create(world, "leaked", [100, 100]).unwrap();
        drop(leaked);
        let settle = |world: &World| {
            world.barrier().unwrap();
            world.statistics().node_memory
        };
        let array = GlobalArray::<f64>::create(world, "a", [100, 100]).unwrap();
        array.destroy().unwrap();
        let before = settle(world);
        for _ in 0..200 {
            let array = GlobalArray::<f64>::create(world, "a", [100, 100]).unwrap();
            array.destroy().unwrap();
        }
        assert_eq!(settle(world), before, "those that are destroyed cost nothing");
        for _ in 0..20 {
            drop(GlobalArray::<f64>::create(world, "lost", [100, 100]).unwrap());
        }
        let cost = settle(world) - before;
        // (The first of them takes what the others before it gave back.)
        let here = 80_000 / world.nodes();
        assert!((19 * here..40 * here).contains(&(cost as usize)), "{cost}");
    });
}
