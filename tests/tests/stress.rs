//! Many more ranks than cores, all at one place: nothing is lost, and it ends.

use std::time::Duration;

use armci_core::{Mutexes, Region, SharedCounter, World};
use tests::Ranks;

const RANKS: usize = 32;
/// Rounds of each rank.
const ROUNDS: usize = 500;
/// Elements of an accumulate: beyond what a message carries itself.
const ELEMENTS: usize = 100;

/// Has 32 ranks hammer, over this protocol, with a progress thread each and without.
fn hammer(protocol: &str, progress: &str) {
    let ranks = Ranks::new(RANKS).env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress);
    ranks.timeout(Duration::from_secs(120)).run(|world| {
        let counter = SharedCounter::create(world).unwrap();
        let mutexes = Mutexes::create(world, usize::from(world.rank() == 0)).unwrap();
        // On rank 0: the target of accumulates, the word under the mutex, and how often each number was drawn.
        let region = world.allocate(8 * (ELEMENTS + 1 + RANKS * ROUNDS)).unwrap();
        if world.rank() == 0 {
            world.put(&[0i64; ELEMENTS + 1 + RANKS * ROUNDS], region.at(0, 0)).unwrap();
        }
        world.barrier().unwrap();
        one_rank(world, &counter, &mutexes, &region);
        world.barrier().unwrap();
        // Nobody draws any more: the next number says how many were drawn.
        assert!(counter.next().unwrap() >= (RANKS * ROUNDS) as i64);
        let mut found = vec![0i64; ELEMENTS + 1 + RANKS * ROUNDS];
        world.get(region.at(0, 0), &mut found).unwrap();
        let sum = (ROUNDS * RANKS * (RANKS + 1) / 2) as i64;
        assert_eq!(found[..ELEMENTS], [sum; ELEMENTS]);
        assert_eq!(found[ELEMENTS], (RANKS * ROUNDS) as i64);
        assert!(found[ELEMENTS + 1..].iter().all(|drawn| *drawn == 1), "a number was drawn twice, or by nobody");
        world.barrier().unwrap();
        world.free(region).unwrap();
        mutexes.destroy().unwrap();
        counter.destroy().unwrap();
    });
}

/// What each rank does: draw, add, increment under the lock, in every round.
fn one_rank(world: &World, counter: &SharedCounter, mutexes: &Mutexes, region: &Region) {
    let mine = [world.rank() as i64 + 1; ELEMENTS];
    let under_lock = region.at::<i64>(0, ELEMENTS);
    for _ in 0..ROUNDS {
        let drawn = counter.next().unwrap();
        world.accumulate(1i64, &[1], region.at(0, ELEMENTS + 1 + drawn as usize)).unwrap();
        world.accumulate(1i64, &mine, region.at(0, 0)).unwrap();
        mutexes.lock(0, 0).unwrap();
        let seen = world.get_value(under_lock).unwrap();
        world.put_value(seen + 1, under_lock).unwrap();
        mutexes.unlock(0, 0).unwrap();
    }
}

#[test]
fn thirty_two_ranks_at_one_place() {
    hammer("rma", "thread");
}

#[test]
fn thirty_two_ranks_at_one_place_without_progress_thread() {
    hammer("rma", "none");
}

#[test]
fn thirty_two_ranks_at_one_server() {
    hammer("am", "thread");
}

#[test]
fn thirty_two_ranks_at_one_server_without_progress_thread() {
    hammer("am", "none");
}
