//! A flag never comes before its data, and whoever waits for one is woken.

use armci_core::config::{Path, Protocol};
use armci_core::{Error, GlobalPtr, World};
use tests::{Ranks, matrix};

/// Reads this rank's own memory as it is, without serving or waiting for anybody.
fn look(world: &World, place: GlobalPtr<i64>, into: &mut [i64]) {
    let protocol = world.protocol();
    world.set_protocol(Protocol::all(Path::Rma));
    world.get(place, into).unwrap();
    world.set_protocol(protocol);
}

/// Each rank sends its right neighbour blocks of `words` words; the next only after the last was read.
fn blocks_to_the_right(world: &World, words: usize, rounds: i64, before: impl Fn(i64)) {
    let (me, size) = (world.rank(), world.size());
    let (right, left) = ((me + 1) % size, (me + size - 1) % size);
    let data = world.allocate(8 * words).unwrap();
    // "Is there" and "was read".
    let flags = world.allocate(16).unwrap();
    world.put(&[0i64, 0], flags.at(me, 0)).unwrap();
    world.barrier().unwrap();
    let mut seen = vec![0; words];
    for round in 1..=rounds {
        before(round);
        world.put_notify(&vec![round; words], data.at(right, 0), flags.at(right, 0), round).unwrap();
        assert_eq!(world.wait_until(flags.at(me, 0), |flag| flag >= round).unwrap(), round);
        look(world, data.at(me, 0), &mut seen);
        assert!(seen.iter().all(|word| *word == round), "the flag overtook its data in round {round}");
        world.notify(flags.at(left, 1), round).unwrap();
        world.wait_value(flags.at(me, 1), round).unwrap();
    }
    world.barrier().unwrap();
    world.free(flags).unwrap();
    world.free(data).unwrap();
}

#[test]
fn a_flag_never_overtakes_small_data() {
    matrix(|world| [0, 1, 13, 300].into_iter().for_each(|words| blocks_to_the_right(world, words, 100, |_| ())));
}

#[test]
fn a_flag_never_overtakes_large_data() {
    // The largest is beyond the caches' share: it is streamed past them.
    matrix(|world| [5_000, 300_000].into_iter().for_each(|words| blocks_to_the_right(world, words, 6, |_| ())));
}

/// The path changes with each round.
#[test]
fn a_flag_never_overtakes_data_that_went_the_other_way() {
    for progress in ["thread", "none"] {
        Ranks::new(3).env("ARMCI_PROGRESS", progress).run(|world| {
            let path = |round| if round % 2 == 0 { Path::Rma } else { Path::Am };
            blocks_to_the_right(world, 700, 100, |round| world.set_protocol(Protocol::all(path(round))));
        });
    }
}

/// Put by one path, accumulated by the other, and only then the flag, by either.
#[test]
fn a_flag_stands_for_everything_before_it() {
    for progress in ["thread", "none"] {
        Ranks::new(2).env("ARMCI_PROGRESS", progress).run(|world| {
            let me = world.rank();
            let (data, other) = (world.allocate(8 * 4000).unwrap(), world.allocate(8 * 4000).unwrap());
            let flags = world.allocate(8).unwrap();
            world.put_value(0i64, flags.at(me, 0)).unwrap();
            world.put(&[0i64; 4000], other.at(me, 0)).unwrap();
            world.barrier().unwrap();
            let paths = [Path::Rma, Path::Am];
            let mut round = 0;
            for (first, second, third) in
                paths.into_iter().flat_map(|a| paths.into_iter().flat_map(move |b| paths.map(|c| (a, b, c))))
            {
                for _ in 0..10 {
                    round += 1;
                    world.set_protocol(Protocol::all(first));
                    world.put(&[round; 4000], data.at(1 - me, 0)).unwrap();
                    world.set_protocol(Protocol::all(second));
                    world.accumulate(1i64, &[1; 4000], other.at(1 - me, 0)).unwrap();
                    world.set_protocol(Protocol::all(third));
                    world.notify(flags.at(1 - me, 0), round).unwrap();
                    if me == 1 && round % 5 == 1 {
                        // Rank 1 serves nothing for a while: a flag that did not wait would be found alone.
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    world.wait_value(flags.at(me, 0), round).unwrap();
                    let mut seen = [0i64; 4000];
                    for place in [data.at(me, 0), other.at(me, 0)] {
                        look(world, place, &mut seen);
                        assert!(seen.iter().all(|word| *word == round), "round {round}");
                    }
                    world.barrier().unwrap();
                }
            }
            world.free(flags).unwrap();
            world.free(other).unwrap();
            world.free(data).unwrap();
        });
    }
}

/// A token goes round: each hop is one wake-up.
#[test]
fn a_token_goes_round_and_is_never_lost() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let token = world.allocate(8).unwrap();
        world.put_value(0i64, token.at(me, 0)).unwrap();
        world.barrier().unwrap();
        let right = token.at((me + 1) % size, 0);
        for round in 1..=300 {
            if me == 0 {
                world.notify(right, round).unwrap();
                world.wait_value(token.at(0, 0), round).unwrap();
            } else {
                world.wait_value(token.at(me, 0), round).unwrap();
                world.notify(right, round).unwrap();
            }
            if round % 100 == 0 {
                // Long enough for all others to be asleep.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
        world.barrier().unwrap();
        world.free(token).unwrap();
    });
}

#[test]
fn misuse_is_an_error_and_writes_nothing() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(64).unwrap();
        world.put(&[7i64; 8], region.at(me, 0)).unwrap();
        let own = region.at::<i64>(me, 0);
        let crooked = region.at::<u8>(me, 4).cast::<i64>();
        assert!(matches!(world.wait_value(crooked, 7), Err(Error::Misaligned { offset: 4, .. })));
        assert!(matches!(world.wait_value(region.at(me, 8), 7), Err(Error::Bounds { offset: 64, .. })));
        assert!(matches!(world.wait_value(region.at(size, 0), 7), Err(Error::Rank { .. })));
        assert!(matches!(world.put_notify(&[1i64], own, crooked, 1), Err(Error::Misaligned { .. })));
        assert!(matches!(world.put_notify(&[1i64], own, region.at(me, 8), 1), Err(Error::Bounds { .. })));
        assert!(matches!(world.put_notify(&[1i64; 9], own, region.at(me, 7), 1), Err(Error::Bounds { .. })));
        if size > 1 {
            let other = (me + 1) % size;
            let Err(Error::Argument(message)) = world.wait_value(region.at(other, 0), 7) else { panic!("no error") };
            assert!(message.contains(&format!("rank {me} was to wait for a flag on rank {other}")), "{message}");
            let Err(Error::Argument(message)) = world.put_notify(&[1i64], own, region.at(other, 0), 1) else {
                panic!("no error")
            };
            assert!(message.contains(&format!("rank {me} with a flag on rank {other}")), "{message}");
        }
        let mut seen = [0i64; 8];
        world.get(region.at(me, 0), &mut seen).unwrap();
        assert_eq!(seen, [7; 8]);
        // A word that says so already is not waited for.
        assert_eq!(world.wait_until(own, |value| value > 6).unwrap(), 7);
        world.free(region).unwrap();
        assert!(matches!(world.wait_value(own, 7), Err(Error::NoRegion { .. })));
    });
}
