//! Work that ranks share: tasks from counters, mutexes with guards, over the world and over teams.

use armci_core::Error;
use global_arrays::{GlobalArray, Group, Mutexes, SharedCounter};
use ndarray::{Ix1, s};
use tests::{for_each, matrix};

/// How often each task was done, by whoever.
fn tally(group: &Group, tasks: usize) -> GlobalArray<i64, Ix1> {
    GlobalArray::create(group, "tally", [tasks]).unwrap()
}

#[test]
fn each_task_is_somebodys_once() {
    matrix(|world| {
        let group = Group::from(world);
        let counter = SharedCounter::create(world).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..12 {
            let tasks = if round == 0 { 0 } else { random.usize(1..300) };
            let chunk = random.usize(1..20);
            let done = tally(&group, tasks);
            let mut last = None;
            for task in counter.tasks(tasks).in_chunks(chunk) {
                let task = task.unwrap();
                assert!(last < Some(task), "a rank's tasks rise");
                last = Some(task);
                done.accumulate(s![task..=task], 1, &ndarray::arr1(&[1])).unwrap();
            }
            done.sync().unwrap();
            assert!(done.get(..).unwrap().iter().all(|times| *times == 1));
            done.destroy().unwrap();
            counter.reset().unwrap();
        }
        counter.destroy().unwrap();
    });
}

#[test]
fn counters_live_on_any_rank_of_any_team() {
    matrix(|world| {
        let team = world.split(Some((world.rank() % 2) as i64), -(world.rank() as i64)).unwrap().unwrap();
        for home in 0..team.size() {
            let counter = SharedCounter::create_on(&team, home).unwrap();
            for tasks in [17, 40] {
                let mine = counter.tasks(tasks).map(|task| task.unwrap() as u64).sum::<u64>();
                let all = counter.group().sum(mine).unwrap();
                assert_eq!(all, (tasks * (tasks - 1) / 2) as u64, "each team has all its tasks");
                counter.reset().unwrap();
            }
            counter.destroy().unwrap();
        }
        let nobody = SharedCounter::create_on(&team, team.size());
        assert!(matches!(nobody, Err(Error::Rank { .. })));
        team.free().unwrap();
    });
}

#[test]
fn a_loop_on_a_used_up_counter_is_an_error_and_not_silence() {
    for_each(1..=3, |world| {
        let counter = SharedCounter::create(world).unwrap();
        assert_eq!(world.size(), Group::from(world).sum(1).unwrap());
        let mut tasks = counter.tasks(5);
        while tasks.next().is_some() {}
        assert!(tasks.next().is_none(), "fused");
        let mut again = counter.tasks(500);
        let error = again.next().unwrap().unwrap_err();
        assert!(error.to_string().contains("reset"), "{error}");
        assert!(again.next().is_none(), "an error ends the loop");
        counter.reset().unwrap();

        // A loop that was left is taken up again.
        let first = counter.tasks(1000).next().unwrap().unwrap();
        world.barrier().unwrap();
        let rest = counter.tasks(1000).map(Result::unwrap).collect::<Vec<_>>();
        assert!(!rest.contains(&first));
        let all = counter.group().sum(1 + rest.len()).unwrap();
        assert_eq!(all, 1000);
        counter.destroy().unwrap();
    });
}

#[test]
fn a_guard_keeps_others_out_until_it_is_dropped() {
    matrix(|world| {
        // Teams whose numbers of ranks are not the world's.
        let team = world.split(Some((world.rank() / 3) as i64), -(world.rank() as i64)).unwrap().unwrap();
        let mutexes = Mutexes::create(&team, 2).unwrap();
        let sums = GlobalArray::<i64, Ix1>::create(&team, "sums", [2]).unwrap();
        let last = team.size() - 1;
        for round in 0..20 {
            let guard = mutexes.guard(last, 1).unwrap();
            assert!(mutexes.lock(last, 1).is_err(), "this rank holds it");
            let both = sums.get(..).unwrap();
            assert_eq!(both[0], -both[1], "nobody is between the two");
            sums.put_element([0], both[0] + 1).unwrap();
            sums.put_element([1], both[1] - 1).unwrap();
            if round % 2 == 0 {
                guard.unlock().unwrap();
            }
        }
        sums.sync().unwrap();
        assert_eq!(sums.get_element([0]).unwrap(), 20 * team.size() as i64);
        // Also while a panic unwinds.
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = mutexes.guard(0, 0).unwrap();
            std::panic::resume_unwind(Box::new("nobody is to see this"));
        }));
        assert!(unwound.is_err());
        team.barrier().unwrap();
        if team.rank() == 0 {
            assert!(mutexes.try_lock(0, 0).unwrap());
            mutexes.unlock(0, 0).unwrap();
        }
        assert!(matches!(mutexes.guard(team.size(), 0), Err(Error::Rank { .. })));
        sums.destroy().unwrap();
        mutexes.destroy().unwrap();
        team.free().unwrap();
    });
}
