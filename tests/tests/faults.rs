//! A rank that dies takes its job down, at once and by name, whatever the others are waiting for.

use std::time::{Duration, Instant};

use armci_core::{Mutexes, Region, World};
use tests::{Ranks, mode};

/// Ends the calling rank as `kill -9` would.
fn die() -> ! {
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
    unreachable!("SIGKILL does not return")
}

/// Runs a job in which rank 1 dies once everybody is there, while the others wait in `wait`.
fn others_wait_in(progress: &str, wait: impl FnOnce(&World, &Region)) {
    others_wait_for(progress, |world| world.allocate(64).unwrap(), |world, region| wait(world, &region));
}

/// The same, with something that all ranks have prepared.
fn others_wait_for<P>(progress: &str, prepare: impl FnOnce(&World) -> P, wait: impl FnOnce(&World, P)) {
    let started = Instant::now();
    let outcome = Ranks::new(4).env("ARMCI_PROGRESS", progress).env("ARMCI_PROTOCOL", "am").expect_failure(|world| {
        let prepared = prepare(world);
        world.barrier().unwrap();
        if world.rank() == 1 {
            std::thread::sleep(Duration::from_millis(50));
            die();
        }
        wait(world, prepared);
        panic!("rank {} was not waiting for rank 1", world.rank());
    });
    let failure = outcome.failed.expect("a rank failed");
    assert_eq!(failure.rank, 1);
    assert!(failure.reason.contains("SIGKILL"), "{}", failure.reason);
    // Between nodes a job begins later, and who sees a broken connection leaves its launcher the first word for a second.
    let limit = if mode::nodes().is_some() { 8 } else { 2 } * u64::from(mode::patience());
    assert!(started.elapsed() < Duration::from_secs(limit), "took {:?}", started.elapsed());
}

#[test]
fn in_a_barrier() {
    others_wait_in("thread", |world, _| world.barrier().unwrap());
}

#[test]
fn in_a_barrier_without_progress_thread() {
    others_wait_in("none", |world, _| world.barrier().unwrap());
}

#[test]
fn for_a_reply() {
    others_wait_in("thread", |world, region| {
        // Alive, rank 1 answers at once; dead, it never does.
        loop {
            world.get_value::<u64>(region.at(1, 0)).unwrap();
        }
    });
}

#[test]
fn for_room_in_its_inbox() {
    others_wait_in("none", |world, region| {
        loop {
            world.put_value(1u64, region.at(1, 0)).unwrap();
        }
    });
}

#[test]
fn for_a_mutex_that_it_holds() {
    let held = |world: &World| {
        let mutexes = Mutexes::create(world, 1).unwrap();
        if world.rank() == 1 {
            mutexes.lock(0, 0).unwrap();
        }
        mutexes
    };
    others_wait_for("thread", held, |_, mutexes| mutexes.lock(0, 0).unwrap());
}

#[test]
fn for_its_team() {
    let team = |world: &World| world.split(Some((world.rank() / 2) as i64), 0).unwrap().unwrap();
    others_wait_for("thread", team, |world, team| {
        // Rank 0 waits for its neighbour; the others are merely there.
        match world.rank() {
            0 => team.barrier().unwrap(),
            _ => std::thread::sleep(Duration::from_secs(30)),
        }
    });
}

#[test]
fn for_its_letter() {
    others_wait_for(
        "thread",
        |_| (),
        |world, ()| {
            world.receive(1, 7, &mut [0u8; 8]).unwrap();
        },
    );
}

#[test]
fn for_a_flag() {
    let flags = |world: &World| {
        let flags = world.allocate(8).unwrap();
        world.put_value(0i64, flags.at(world.rank(), 0)).unwrap();
        flags
    };
    others_wait_for("thread", flags, |world, flags| world.wait_value(flags.at(world.rank(), 0), 1).unwrap());
}

#[test]
fn for_data_in_flight() {
    others_wait_in("none", |world, region| {
        loop {
            let handles: Vec<_> = (0..40).map(|_| world.get_nb(region.at::<u64>(1, 0), vec![0; 8]).unwrap()).collect();
            handles.into_iter().for_each(|handle| drop(handle.wait().unwrap()));
        }
    });
}

#[test]
fn computing() {
    others_wait_in("thread", |_, _| std::thread::sleep(Duration::from_secs(30)));
}

#[test]
fn a_panic_names_its_rank() {
    let outcome = Ranks::new(3).expect_failure(|world| {
        world.barrier().unwrap();
        assert_ne!(world.rank(), 2, "rank 2 has had enough");
        world.barrier().unwrap();
    });
    assert_eq!(outcome.failed.unwrap().rank, 2);
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("rank 2 has had enough"));
}

#[test]
fn a_panic_in_a_handler_ends_the_job() {
    let outcome = Ranks::new(2).expect_failure(|world| {
        let bad = world.register(|_, _| panic!("the handler broke")).unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            world.request(1, bad, &[]).unwrap();
        }
        // The progress thread serves rank 1's inbox.
        std::thread::sleep(Duration::from_secs(30));
    });
    assert_eq!(outcome.failed.unwrap().rank, 1);
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("the handler broke"));
}

/// The same where the rank's own thread serves, in the middle of a barrier, and would catch the panic.
#[test]
fn a_panic_in_a_handler_cannot_be_caught_by_who_happens_to_serve_it() {
    let outcome = Ranks::new(2).env("ARMCI_PROGRESS", "none").expect_failure(|world| {
        let bad = world.register(|_, _| panic!("the handler broke")).unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            world.request(1, bad, &[]).unwrap();
        }
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.barrier()));
    });
    assert_eq!(outcome.failed.unwrap().rank, 1);
}

#[test]
fn leaving_without_finalize_is_an_error() {
    let outcome = Ranks::new(2).expect_failure_bare(|| {
        let world = World::init().unwrap();
        if world.rank() == 0 {
            std::process::exit(0);
        }
        world.barrier().unwrap();
    });
    let failure = outcome.failed.unwrap();
    assert_eq!(failure.rank, 0);
    assert!(failure.reason.contains("finalize"), "{}", failure.reason);
}

#[test]
fn a_setting_that_is_not_understood_is_named() {
    let outcome = Ranks::new(2).env("ARMCI_PROTOCOL", "carrier-pigeon").expect_failure(|_| ());
    let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(text.contains("ARMCI_PROTOCOL") && text.contains("carrier-pigeon"), "{text}");
}
