//! Progress without the target's help: while a rank sits in something that is not ours, its thread serves.
//!
//! # Safety
//! WORD: aligned, in a region that lives for the whole body, and changed by read-modify-writes only while it is read.
#![allow(unsafe_code)]

use std::time::Duration;

use armci_core::config::{Path, Protocol};
use armci_core::{Reduce, World};
use tests::Ranks;

/// Everything by message at rank 0, which sleeps; all of it is complete before rank 0 wakes.
fn everything_at_a_sleeper(world: &World) {
    let region = world.allocate(8 * 4096).unwrap();
    world.put(&[0i64; 4096], region.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    let (done, size) = (region.at::<i64>(0, 4095), world.size() as i64);
    if world.rank() == 0 {
        std::thread::sleep(Duration::from_secs(1));
        // Read in place: no call of this rank has served anything.
        let (mine, _) = world.local_part(&region).unwrap();
        // SAFETY: WORD.
        let finished = unsafe { std::sync::atomic::AtomicI64::from_ptr(mine.cast::<i64>().add(4095)) };
        assert_eq!(finished.load(std::sync::atomic::Ordering::Acquire), size - 1, "the others waited for rank 0");
        let served = world.statistics();
        assert!(served.served_by_thread > 0, "{served:?}");
    } else {
        let me = world.rank();
        world.set_protocol(Protocol::all(Path::Am));
        let mine = region.at::<i64>(0, 100 * me);
        world.put(&[me as i64; 100], mine).unwrap();
        world.accumulate(2, &[1; 100], mine).unwrap();
        world.fence(0).unwrap();
        let mut back = [0; 100];
        world.get(mine, &mut back).unwrap();
        assert_eq!(back, [me as i64 + 2; 100]);
        assert_eq!(world.fetch_add(mine, 5).unwrap(), me as i64 + 2);
        // By the processor, once all of the above is complete.
        world.set_protocol(Protocol::all(Path::Rma));
        world.fetch_add(done, 1).unwrap();
    }
    world.barrier().unwrap();
    world.free(region).unwrap();
}

#[test]
fn a_sleeping_rank_is_served_by_its_thread() {
    for ranks in [2, 3, 4] {
        Ranks::new(ranks).env("ARMCI_PROGRESS", "thread").run(everything_at_a_sleeper);
    }
}

/// The same with every core taken by ranks that compute.
#[test]
fn computing_ranks_are_served_by_their_threads() {
    Ranks::new(4).env("ARMCI_PROGRESS", "thread").run(|world| {
        let region = world.allocate(8).unwrap();
        world.put_value(0i64, region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        world.set_protocol(Protocol::all(Path::Am));
        let mut work = 1.0f64;
        for round in 0..200 {
            for _ in 0..20_000 {
                work = std::hint::black_box(work).mul_add(0.999, 0.001);
            }
            world.accumulate(1i64, &[1], region.at((world.rank() + round) % world.size(), 0)).unwrap();
        }
        world.barrier().unwrap();
        let mut sum = [world.get_value::<i64>(region.at(world.rank(), 0)).unwrap()];
        world.all_reduce(&mut sum, Reduce::Sum).unwrap();
        assert_eq!(sum, [200 * 4]);
        assert!(work.is_finite());
    });
}

/// Without a thread a rank that sits elsewhere serves nobody, and serves all as soon as it calls in.
#[test]
fn without_a_thread_a_rank_serves_when_it_calls_in() {
    // (On one node: between nodes a barrier is messages, which the one who holds the service keeps waiting.)
    Ranks::new(2).on_one_node().env("ARMCI_PROGRESS", "none").run(|world| {
        // Rank 0 looks at its own memory while it serves nobody.
        world.set_protocol(Protocol::all(Path::Rma));
        let region = world.allocate(8).unwrap();
        world.put_value(0i64, region.at(world.rank(), 0)).unwrap();
        // From before the other may begin: a rank serves while it waits in a barrier.
        let held = (world.rank() == 0).then(|| world.hold_service());
        world.barrier().unwrap();
        if let Some(held) = held {
            std::thread::sleep(Duration::from_millis(200));
            assert_eq!(world.get_value::<i64>(region.at(0, 0)).unwrap(), 0);
            drop(held);
        } else {
            world.set_protocol(Protocol::all(Path::Am));
            world.put_value(7i64, region.at(0, 0)).unwrap();
            world.fence(0).unwrap();
        }
        world.barrier().unwrap();
        assert_eq!(world.get_value::<i64>(region.at(0, 0)).unwrap(), 7);
        assert_eq!(world.statistics().served_by_thread, 0);
        world.barrier().unwrap();
    });
}
