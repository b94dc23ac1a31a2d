//! Mutexes: one holder at a time, who finds what the last one wrote; nobody is forgotten.

use std::time::Duration;

use armci_core::config::{Path, Protocol};
use armci_core::{Error, Mutexes, World};
use tests::{Ranks, matrix, on_ranks};

/// Adds 1 to a word, by steps that only mutual exclusion makes one.
fn increment(world: &World, place: armci_core::GlobalPtr<i64>) {
    let seen = world.get_value(place).unwrap();
    world.put_value(seen + 1, place).unwrap();
}

/// Every rank increments every word `rounds` times, each word under its own mutex on its own rank.
fn count_under_locks(world: &World, rounds: usize) {
    // Rank 0 has none, rank 1 one mutex, rank 2 two ...
    let mine = if world.size() == 1 { 2 } else { world.rank() };
    let mutexes = Mutexes::create(world, mine).unwrap();
    let words = world.allocate(8 * mine).unwrap();
    world.put(&vec![0i64; mine], words.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    let all = || (0..world.size()).flat_map(|rank| (0..mutexes.count(rank)).map(move |index| (rank, index)));
    for _ in 0..rounds {
        for (rank, index) in all() {
            mutexes.lock(rank, index).unwrap();
            increment(world, words.at(rank, index));
            mutexes.unlock(rank, index).unwrap();
        }
    }
    world.barrier().unwrap();
    for (rank, index) in all() {
        assert_eq!(world.get_value::<i64>(words.at(rank, index)).unwrap(), (rounds * world.size()) as i64);
    }
    world.barrier().unwrap();
    world.free(words).unwrap();
    mutexes.destroy().unwrap();
}

#[test]
fn no_increment_under_a_lock_is_lost() {
    matrix(|world| count_under_locks(world, 100));
}

/// Data, by messages, on a third rank; the mutex by remote memory access; and the other way round.
#[test]
fn what_a_holder_wrote_is_complete_before_the_next_enters() {
    for progress in ["thread", "none"] {
        Ranks::new(3).env("ARMCI_PROGRESS", progress).run(|world| {
            const WORDS: usize = 3000;
            let mutexes = Mutexes::create(world, usize::from(world.rank() == 0)).unwrap();
            let region = world.allocate(8 * WORDS).unwrap();
            world.put(&[0i64; WORDS], region.at(world.rank(), 0)).unwrap();
            world.barrier().unwrap();
            let place = region.at(1, 0);
            let mut expected = 0;
            for (data, locks) in [(Path::Am, Path::Rma), (Path::Rma, Path::Am)] {
                let mut seen = [0i64; WORDS];
                for _ in 0..50 {
                    world.set_protocol(Protocol::all(locks));
                    mutexes.lock(0, 0).unwrap();
                    // Looks at memory as it is: orders nothing, waits for nobody's messages.
                    world.set_protocol(Protocol::all(Path::Rma));
                    world.get(place, &mut seen).unwrap();
                    assert!(seen.iter().all(|word| *word == seen[0]), "half of a holder's writes are missing");
                    world.set_protocol(Protocol::all(data));
                    world.put(&[seen[0] - 1; WORDS], place).unwrap();
                    world.accumulate(1i64, &[2; WORDS], place).unwrap();
                    world.set_protocol(Protocol::all(locks));
                    mutexes.unlock(0, 0).unwrap();
                }
                expected += 50 * world.size() as i64;
                world.barrier().unwrap();
                assert_eq!(world.get_value::<i64>(place.add(WORDS - 1)).unwrap(), expected);
                world.barrier().unwrap();
            }
            world.free(region).unwrap();
            mutexes.destroy().unwrap();
        });
    }
}

#[test]
fn a_try_locks_what_is_free_and_nothing_else() {
    matrix(|world| {
        let (me, last) = (world.rank(), world.size() - 1);
        let mutexes = Mutexes::create(world, 2).unwrap();
        if me == 0 {
            assert!(mutexes.try_lock(last, 1).unwrap());
        }
        world.barrier().unwrap();
        if me != 0 {
            assert!(!mutexes.try_lock(last, 1).unwrap());
            // Its neighbour is another.
            assert!(mutexes.try_lock(me, 0).unwrap());
            mutexes.unlock(me, 0).unwrap();
        }
        world.barrier().unwrap();
        if me == 0 {
            mutexes.unlock(last, 1).unwrap();
        }
        world.barrier().unwrap();
        // Attempts and waits for the same mutex meet.
        for round in 0..50 {
            if (round + me) % 2 == 0 || !mutexes.try_lock(0, 0).unwrap() {
                mutexes.lock(0, 0).unwrap();
            }
            mutexes.unlock(0, 0).unwrap();
        }
        world.barrier().unwrap();
        mutexes.destroy().unwrap();
    });
}

/// Several are held at once, also by a rank that waits for another.
#[test]
fn held_together_and_unlocked_in_any_order() {
    matrix(|world| {
        let mutexes = Mutexes::create(world, 1).unwrap();
        let word = world.allocate(8).unwrap();
        world.put_value(0i64, word.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        for round in 0..30 {
            (0..world.size()).for_each(|rank| mutexes.lock(rank, 0).unwrap());
            increment(world, word.at(0, 0));
            (0..world.size()).for_each(|rank| mutexes.unlock((rank + round) % world.size(), 0).unwrap());
        }
        world.barrier().unwrap();
        assert_eq!(world.get_value::<i64>(word.at(0, 0)).unwrap(), 30 * world.size() as i64);
        world.free(word).unwrap();
        mutexes.destroy().unwrap();
    });
}

fn says(result: armci_core::Result<()>, what: &str) {
    let Err(Error::Argument(message)) = result else { panic!("{result:?} instead of {what:?}") };
    assert!(message.contains(what), "{message}");
}

#[test]
fn misuse_is_an_error_that_says_what_was_asked() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let mutexes = Mutexes::create(world, 2).unwrap();
        assert_eq!((mutexes.count(me), mutexes.count(size), mutexes.count(usize::MAX)), (2, 0, 0));
        let no_rank = mutexes.lock(size, 0);
        assert!(matches!(no_rank, Err(Error::Rank { rank, size: of }) if rank == size && of == size));
        assert!(matches!(mutexes.unlock(size, 0), Err(Error::Rank { .. })));
        says(mutexes.lock(me, 2), &format!("mutex 2 of rank {me} does not exist: that rank has 2"));
        says(mutexes.try_lock(me, usize::MAX).map(drop), "does not exist");
        says(mutexes.unlock(me, 1), "does not hold");
        mutexes.lock(me, 1).unwrap();
        says(mutexes.lock(me, 1), "holds already");
        says(mutexes.try_lock(me, 1).map(drop), "holds already");
        says(mutexes.unlock(me, 0), "does not hold");
        mutexes.unlock(me, 1).unwrap();
        says(mutexes.unlock(me, 1), "does not hold");
        mutexes.destroy().unwrap();

        let held = Mutexes::create(world, 1).unwrap();
        if me == 0 {
            held.lock(size - 1, 0).unwrap();
            says(held.destroy(), &format!("held mutex 0 of rank {}", size - 1));
        } else {
            held.destroy().unwrap();
        }
        says(Mutexes::create(world, usize::MAX).map(drop), "at most 1048576");
        Mutexes::create(world, 0).unwrap().destroy().unwrap();
    });
}

/// A message that is refused, sent before locking, neither breaks the queue nor keeps the mutex locked.
#[test]
fn a_refused_message_keeps_nobody_waiting() {
    for protocol in ["rma", "am"] {
        for progress in ["thread", "none"] {
            Ranks::new(3).env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress).run(|world| {
                let mutexes = Mutexes::create(world, 1).unwrap();
                // Registered on one rank only, which is the fault.
                let handler = (world.rank() == 1).then(|| world.register(|_, _| Ok(())).unwrap());
                if world.rank() == 0 {
                    mutexes.lock(2, 0).unwrap();
                }
                world.barrier().unwrap();
                if let Some(handler) = handler {
                    world.send(0, handler, b"nobody knows this").unwrap();
                    mutexes.lock(2, 0).unwrap();
                    assert!(matches!(mutexes.unlock(2, 0), Err(Error::Refused { rank: 0, .. })));
                } else {
                    if world.rank() == 0 {
                        std::thread::sleep(Duration::from_millis(2));
                        mutexes.unlock(2, 0).unwrap();
                    }
                    mutexes.lock(2, 0).unwrap();
                    mutexes.unlock(2, 0).unwrap();
                }
                world.barrier().unwrap();
                mutexes.destroy().unwrap();
            });
        }
    }
}

#[test]
fn sixteen_ranks_on_one_mutex_finish() {
    for protocol in ["rma", "am"] {
        for progress in ["thread", "none"] {
            let ranks = Ranks::new(16).env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress);
            ranks.timeout(Duration::from_secs(120)).run(|world| {
                let mutexes = Mutexes::create(world, usize::from(world.rank() == 3)).unwrap();
                let word = world.allocate(8).unwrap();
                world.put_value(0i64, word.at(world.rank(), 0)).unwrap();
                world.barrier().unwrap();
                for _ in 0..50 {
                    mutexes.lock(3, 0).unwrap();
                    increment(world, word.at(5, 0));
                    mutexes.unlock(3, 0).unwrap();
                }
                world.barrier().unwrap();
                assert_eq!(world.get_value::<i64>(word.at(5, 0)).unwrap(), 16 * 50);
                world.free(word).unwrap();
                mutexes.destroy().unwrap();
            });
        }
    }
}

/// The holder sleeps: whoever waits meanwhile has gone to sleep too, and is woken.
#[test]
fn a_waiter_that_went_to_sleep_is_woken() {
    on_ranks(3, |world| {
        let mutexes = Mutexes::create(world, 1).unwrap();
        for _ in 0..10 {
            mutexes.lock(0, 0).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            mutexes.unlock(0, 0).unwrap();
        }
        world.barrier().unwrap();
        mutexes.destroy().unwrap();
    });
}
