//! What programs do wrong with arrays: each is an error that says so, on every rank that it concerns; nobody hangs, and
//! what is right works afterwards.

use armci_core::{Team, World};
use global_arrays::{Distribution, Error, GlobalArray, Group, Patch};
use ndarray::{Array1, Array2, Ix1, IxDyn, array, s};
use tests::{for_each, on_ranks};

/// An array of the group can be made, and every rank reaches all of it.
fn works(group: &Group) {
    let a = GlobalArray::<i64, Ix1>::builder(group, "after", 17).filled(3).create().unwrap();
    assert_eq!(a.get(..).unwrap().sum(), 51);
    a.destroy().unwrap();
}

#[test]
fn arrays_that_differ_between_ranks_are_refused_on_all() {
    type Make = fn(&Group, bool) -> Result<GlobalArray<f64>, Error>;
    // (The last one differs, or has an error before it meets the others.)
    let ways: [Make; 7] = [
        |group, last| GlobalArray::create(group, if last { "b" } else { "a" }, [20, 30]),
        |group, last| GlobalArray::create(group, "a", if last { [30, 20] } else { [20, 30] }),
        |group, last| GlobalArray::create(group, "a", if last { [2000, 300] } else { [20, 30] }),
        |group, last| GlobalArray::create(group, "a", if last { [usize::MAX, 2] } else { [20, 30] }),
        |group, last| GlobalArray::builder(group, "a", [20, 30]).periodic(&[last, false]).create(),
        |group, last| GlobalArray::builder(group, "a", [20, 30]).block_cyclic(&[5, usize::from(!last) * 5]).create(),
        |group, last| {
            let builder = GlobalArray::builder(group, "a", [20, 30]);
            if last { builder.create() } else { builder.scalapack(&[4, 4], &[1, 1]).create() }
        },
    ];
    for_each(2..=4, |world| {
        let pairs = world.split(Some((world.rank() % 2) as i64), 0).unwrap().unwrap();
        for group in [Group::from(world), Group::from(&pairs)] {
            for (number, make) in ways.iter().enumerate().filter(|_| group.size() > 1) {
                let last = group.rank() + 1 == group.size();
                let error = make(&group, last).map(drop).expect_err("an array that is not the same everywhere");
                if !(last && matches!(error, Error::TooLarge { .. } | Error::Distribution { .. })) {
                    let unlike = matches!(&error, Error::Runtime { source: armci_core::Error::Unlike { rank, .. }, .. }
                        if *rank == group.world_rank(group.size() - 1).unwrap());
                    assert!(unlike, "{number}: {error}");
                }
                works(&group);
            }
        }
        // All with the same error: nobody is unlike the others.
        let refused = GlobalArray::<f64>::create(world, "a", [usize::MAX, 2]);
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        pairs.free().unwrap();
    });
}

#[test]
fn indices_of_another_number_of_axes_are_outside() {
    on_ranks(2, |world| {
        let a = GlobalArray::<f64, IxDyn>::create(world, "seven", &[2; 7][..]).unwrap();
        for axes in [0, 1, 6, 8, 9] {
            let list = Array2::<usize>::zeros((2, axes));
            let error = a.gather(&list).unwrap_err();
            assert!(matches!(error, Error::OutOfBounds { .. }), "{axes}: {error}");
            assert!(a.gather(&list.slice(s![..0, ..])).unwrap().is_empty());
        }
        assert_eq!(a.gather(&Array2::<usize>::ones((3, 7))).unwrap().len(), 3);
        a.destroy().unwrap();
    });
}

#[test]
fn steps_may_be_longer_than_can_be_counted() {
    for_each([1, 3], |world| {
        let a = GlobalArray::<f64>::builder(world, "a", [7, 9]).create().unwrap();
        let plain = Array2::from_shape_fn((7, 9), |(row, col)| (10 * row + col) as f64);
        if world.rank() == 0 {
            a.put(.., &plain).unwrap();
        }
        a.sync().unwrap();
        for step in [isize::MAX, -isize::MAX, 1 << 62, 9, -9] {
            let slice = s![2..;step, ..;step];
            assert_eq!(a.get(slice).unwrap(), plain.slice(slice));
            assert_eq!(a.get_nb(slice).unwrap().wait().unwrap(), plain.slice(slice));
        }
        a.destroy().unwrap();
    });
}

#[test]
#[allow(clippy::single_range_in_vec_init)]
fn nobody_owns_what_is_outside() {
    let regular = Distribution::regular(&[5, 6], 6, &[1, 1]);
    let whole: Vec<_> = regular.owners(&Patch::whole(&[5, 6])).collect();
    assert_eq!(regular.owners(&Patch::whole(&[50, 60])).collect::<Vec<_>>(), whole);
    assert_eq!(regular.owners(&Patch::from([5..9, 0..6])).count(), 0);
    assert_eq!(regular.owners(&Patch::new(&[0..5])).count(), 0);
    assert_eq!(regular.owners(&Patch::new(&[0..5, 0..6, 0..1])).count(), 0);
}

/// All that an array does and that needs nobody else, which is refused.
fn is_dead(a: &GlobalArray<i64>) {
    let refused: [Result<(), Error>; 12] = [
        a.get(..).map(drop),
        a.put(s![0, ..], &Array1::zeros(4)),
        a.accumulate(s![0, ..], 1, &Array1::ones(4)),
        a.get_nb([0..1, 0..4]).and_then(|handle| handle.wait()).map(drop),
        a.get_element([1, 2]).map(drop),
        a.put_element([1, 2], 7),
        a.read_increment([1, 2], 1).map(drop),
        a.gather(&[[1, 2]]).map(drop),
        a.periodic_get([-1..1, -1..1]).map(drop),
        a.sync(),
        a.update_ghosts(),
        a.map_inplace(|value| *value = 0),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        let error = refused.expect_err(&format!("call {number}")).to_string();
        assert!(error.contains("'late'") && error.contains("rank 0"), "{number}: {error}");
    }
    let named = a.get_element([1, 2]).unwrap_err().to_string();
    assert!(named.contains("element [1, 2] of array 'late'"), "{named}");
}

#[test]
fn an_array_outlives_its_job_and_refuses_everything() {
    let world = World::init().unwrap();
    let a = GlobalArray::<i64>::create(&world, "late", [3, 4]).unwrap();
    let list = a.elements(&[[1, 2]]).unwrap();
    world.finalize().unwrap();
    is_dead(&a);
    assert!(list.gather().is_err() && list.scatter(&array![1]).is_err());
    let made = GlobalArray::<i64>::create(a.group(), "later", [3, 4]);
    assert!(made.is_err() && a.duplicate("again").is_err());
    assert!(a.destroy().is_err());
}

#[test]
fn an_array_of_a_freed_team_is_still_reached_and_not_freed() {
    for_each(1..=3, |world| {
        let team: Team = world.split(Some(0), 0).unwrap().unwrap();
        let a = GlobalArray::<f64>::builder(&team, "a", [6, 6]).filled(2.0).create().unwrap();
        team.free().unwrap();
        assert!(a.sync().is_err());
        assert_eq!(a.get(..).unwrap().sum(), 72.0);
        assert!(a.update_ghosts().is_err() && a.duplicate("b").is_err());
        world.barrier().unwrap();
        assert!(a.destroy().is_err());
        works(&Group::from(world));
    });
}
