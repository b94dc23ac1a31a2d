//! Active messages: served once, in order, whatever their size and number; refusals reach the sender.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use armci_core::{Error, INLINE_MAX, STAGING_BYTES, SharedCounter};
use global_arrays::GlobalArray;
use tests::{Ranks, matrix};

#[test]
fn a_reply_answers_its_request() {
    matrix(|world| {
        let reverse = world
            .register(|delivery, reply| {
                let mut bytes = delivery.payload.to_vec();
                bytes.reverse();
                bytes.push(delivery.source as u8);
                reply.set(&bytes)
            })
            .unwrap();
        world.barrier().unwrap();
        for len in [0, 1, 47, 48, 49, INLINE_MAX, INLINE_MAX + 1, 5000, STAGING_BYTES - 1] {
            for target in 0..world.size() {
                let sent: Vec<u8> = (0..len).map(|at| (at * 7 + target) as u8).collect();
                let mut expected: Vec<u8> = sent.iter().rev().copied().collect();
                expected.push(world.rank() as u8);
                assert_eq!(world.request(target, reverse, &sent).unwrap(), expected);
            }
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_payload_stays_what_it_is_while_its_reply_grows() {
    matrix(|world| {
        let overwrite = world
            .register(|delivery, reply| {
                let text = std::str::from_utf8(delivery.payload).map_err(|error| error.to_string())?;
                reply.set(&[0xff; 5_000])?;
                if !text.bytes().all(|byte| byte == b'a') {
                    return Err("the payload changed under its handler".into());
                }
                reply.set(delivery.payload)
            })
            .unwrap();
        world.barrier().unwrap();
        let sent = [b'a'; 6_000];
        assert_eq!(world.request((world.rank() + 1) % world.size(), overwrite, &sent).unwrap(), sent);
        world.barrier().unwrap();
    });
}

/// When the handler of a long message runs, its data is in place; whatever length, wherever in the region.
#[test]
fn a_long_message_finds_its_data_in_place() {
    matrix(|world| {
        const LEN: usize = 300_000;
        let (me, size) = (world.rank(), world.size());
        // A part for each sender.
        let region = world.allocate(8 * LEN * size).unwrap();
        let heard = Arc::new(Mutex::new(vec![0; size]));
        let log = heard.clone();
        let check = world
            .register(move |delivery, reply| {
                let data = delivery.data.ok_or("no data came")?;
                let word = |at: usize| u64::from_ne_bytes(delivery.payload[at..at + 8].try_into().unwrap());
                let (salt, length) = (word(0), word(8));
                if data.len() != 8 * length as usize || data.place().rank() != me {
                    return Err(format!("{} bytes came instead of {length} numbers", data.len()));
                }
                let numbers = data.to_vec::<u64>();
                let right = |at: usize, number: u64| number == salt + at as u64;
                if let Some(wrong) = (0..numbers.len()).find(|at| !right(*at, numbers[*at])) {
                    return Err(format!("number {wrong} of {length} is {}, from {salt} on", numbers[wrong]));
                }
                if delivery.payload[16..].iter().any(|byte| u64::from(*byte) != salt % 256) {
                    return Err("the arguments are wrong".into());
                }
                log.lock().unwrap()[delivery.source] += 1;
                if length > 0 {
                    let mut last = [0u64];
                    data.read(8 * (length as usize - 1), &mut last)?;
                    assert!(data.read(8 * length as usize - 7, &mut last).is_err());
                    reply.set(&last[0].to_ne_bytes())?;
                }
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        let mut sent = 0;
        for (round, length) in [0, 1, 10, 11, 2_048, 2_049, LEN].into_iter().enumerate() {
            // Arguments in the message itself, and staged.
            for more in [0, 64, 65, STAGING_BYTES - 16] {
                for target in 0..size {
                    let salt = (1_000 * round + 10 * me + more) as u64;
                    let data: Vec<u64> = (0..length as u64).map(|at| salt + at).collect();
                    let mut arguments = [salt.to_ne_bytes(), (length as u64).to_ne_bytes()].concat();
                    arguments.resize(16 + more, salt as u8);
                    let place = region.at(target, LEN * me + LEN - length);
                    if round % 2 == 0 {
                        let reply = world.request_long(check, &arguments, &data, place).unwrap();
                        assert_eq!(reply, data.last().map_or(vec![], |last| last.to_ne_bytes().to_vec()));
                    } else {
                        world.send_long(check, &arguments, &data, place).unwrap();
                    }
                    sent += 1;
                }
                // The next data goes to the same places.
                world.fence_all().unwrap();
            }
        }
        world.barrier().unwrap();
        assert_eq!(*heard.lock().unwrap(), vec![sent / size; size]);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn a_long_message_that_cannot_be_is_refused_before_anything_is_written() {
    matrix(|world| {
        let region = world.allocate(80).unwrap();
        let calls = Arc::new(AtomicU64::new(0));
        let count = calls.clone();
        let handler = world
            .register(move |_, _| {
                count.fetch_add(1, Ordering::Relaxed);
                Err("it came".into())
            })
            .unwrap();
        world.put(&[5i64; 10], region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        let target = (world.rank() + 1) % world.size();
        let send =
            |arguments: &[u8], first, rank| world.send_long(handler, arguments, &[1i64; 4], region.at(rank, first));
        assert!(matches!(send(&[], 7, target), Err(Error::Bounds { .. })));
        assert!(matches!(send(&[], 0, world.size()), Err(Error::Rank { .. })));
        assert!(matches!(send(&vec![0; STAGING_BYTES + 1], 0, target), Err(Error::MessageTooLong { .. })));
        world.barrier().unwrap();
        let mut mine = [0i64; 10];
        world.get(region.at(world.rank(), 0), &mut mine).unwrap();
        assert_eq!((mine, calls.load(Ordering::Relaxed)), ([5; 10], 0));
        // One that does arrive is refused by its handler, whose number is told as it was registered.
        world.barrier().unwrap();
        let long = world.request_long(handler, &[], &[1i64; 4], region.at(target, 6)).unwrap_err();
        let short = world.request(target, handler, &[]).unwrap_err();
        assert_eq!(long.to_string(), short.to_string());
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn messages_of_one_rank_are_served_in_order() {
    matrix(|world| {
        let last = Arc::new(Mutex::new(vec![0u64; world.size()]));
        let log = last.clone();
        let next = world
            .register(move |delivery, _| {
                let number = u64::from_ne_bytes(delivery.payload[..8].try_into().unwrap());
                let last = &mut log.lock().unwrap()[delivery.source];
                if number != *last + 1 {
                    return Err(format!("{number} came after {last}"));
                }
                *last = number;
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        for number in 1..=3_000u64 {
            for target in 0..world.size() {
                // Sizes alternate between the inline and the staged way.
                let mut payload = number.to_ne_bytes().to_vec();
                payload.resize(if number % 3 == 0 { 2_000 } else { 8 }, 0);
                world.send(target, next, &payload).unwrap();
            }
        }
        world.barrier().unwrap();
        assert_eq!(*last.lock().unwrap(), vec![3_000; world.size()]);
        world.barrier().unwrap();
    });
}

// Twenty-four ranks have more credits together than an inbox has places.
#[test]
fn a_flood_of_everybody_to_one_neither_loses_nor_hangs() {
    for (ranks, progress) in [(4, "thread"), (4, "none"), (24, "thread"), (24, "none")] {
        Ranks::new(ranks).env("ARMCI_PROGRESS", progress).run(|world| {
            let sum = Arc::new(AtomicU64::new(0));
            let total = sum.clone();
            let add = world
                .register(move |delivery, _| {
                    total.fetch_add(u64::from(delivery.payload[0]), Ordering::Relaxed);
                    Ok(())
                })
                .unwrap();
            world.barrier().unwrap();
            for _ in 0..2_000 {
                world.send(0, add, &[1]).unwrap();
            }
            world.barrier().unwrap();
            let expected = if world.rank() == 0 { 2_000 * world.size() as u64 } else { 0 };
            assert_eq!(sum.load(Ordering::Relaxed), expected);
        });
    }
}

#[test]
fn refusals_reach_the_sender() {
    matrix(|world| {
        let refuse = world.register(|_, _| Err("not today".into())).unwrap();
        world.barrier().unwrap();
        let target = (world.rank() + 1) % world.size();
        match world.request(target, refuse, &[]) {
            Err(Error::Refused { rank, reason, .. }) => assert_eq!((rank, &*reason), (target, "not today")),
            other => panic!("{other:?}"),
        }
        // Of a message nobody waits for, the next fence tells, once.
        world.send(target, refuse, &[]).unwrap();
        assert!(matches!(world.fence(target), Err(Error::Refused { .. })));
        world.fence(target).unwrap();
        // Several refusals: each fence tells those of its target, and how many.
        for _ in 0..3 {
            (0..world.size()).for_each(|rank| world.send(rank, refuse, &[]).unwrap());
        }
        world.synchronize().unwrap();
        for rank in 0..world.size() {
            match world.fence(rank) {
                Err(Error::Refused { rank: from, more, .. }) => assert_eq!((from, more), (rank, 2)),
                other => panic!("{other:?}"),
            }
        }
        world.fence_all().unwrap();
        assert!(matches!(world.send(world.size(), refuse, &[]), Err(Error::Rank { .. })));
        let long = world.send(0, refuse, &vec![0; STAGING_BYTES + 1]).unwrap_err();
        assert!(matches!(long, Error::MessageTooLong { .. }));
        world.barrier().unwrap();
    });
}

/// One rank's pending refusal is reported there once, and leaves nobody waiting in a collective of several steps. (Collective
/// mathematics on arrays tells the others too.)
#[test]
fn a_pending_refusal_does_not_part_the_ranks() {
    matrix(|world| {
        let refuse = world.register(|_, _| Err("no".into())).unwrap();
        let counter = SharedCounter::create(world).unwrap();
        let array = GlobalArray::<f64>::create(world, "a", [4, 4]).unwrap();
        let refused = || {
            if world.rank() == 0 {
                world.send(world.size() - 1, refuse, &[]).unwrap();
            }
        };
        refused();
        let another = GlobalArray::<f64>::create(world, "b", [4, 4]).unwrap();
        let told = [counter.reset().is_err(), array.zero().is_err()];
        match world.rank() {
            0 => assert_eq!(told.iter().filter(|told| **told).count(), 1),
            _ => assert!(!told[0]),
        }
        refused();
        assert_eq!(another.destroy().is_err(), world.rank() == 0);
        array.destroy().unwrap();
        counter.destroy().unwrap();
    });
}

#[test]
fn a_handler_nobody_registered_is_refused() {
    Ranks::new(2).run(|world| {
        // Rank 0 registers one more than rank 1 has.
        let only_here = (world.rank() == 0).then(|| world.register(|_, _| Ok(())).unwrap());
        world.barrier().unwrap();
        if let Some(handler) = only_here {
            let message = world.request(1, handler, &[]).unwrap_err().to_string();
            assert!(message.contains("register"), "{message}");
        }
        world.barrier().unwrap();
    });
}
