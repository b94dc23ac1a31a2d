//! Two-sided messages: every size arrives whole, in order per pair, matched by source and tag; nobody's memory overflows.

use std::time::Duration;

use armci_core::{Error, Received, STAGING_BYTES, Source, Tag, World};
use tests::{Ranks, matrix};

const MANY_MIB: usize = (5 << 20) + 13;
/// Around what fits an inbox place, a staging chunk, several of them; and far more.
const SIZES: [usize; 12] =
    [0, 1, 8, 80, 81, 5_000, STAGING_BYTES - 1, STAGING_BYTES, STAGING_BYTES + 1, 40_000, 1 << 20, MANY_MIB];

/// Bytes that tell where they belong.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    let mut word = random.u64(..);
    (0..len)
        .map(|at| {
            if at % 8 == 0 {
                word = random.u64(..);
            }
            (word >> (at % 8 * 8)) as u8
        })
        .collect()
}

#[test]
fn ping_pong_of_any_size() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        // Neighbours in pairs; who has none plays with itself.
        let other = if me ^ 1 < size { me ^ 1 } else { me };
        for (round, len) in SIZES.into_iter().enumerate() {
            let tag = round as i32 - 3;
            let mut buffer = vec![0u8; len + 1];
            let receive = |buffer: &mut [u8]| {
                let received = world.receive(other, tag, buffer).unwrap();
                assert_eq!(received, Received { source: other, tag, bytes: len });
                assert!(buffer[..len] == pattern(len + other, len) && buffer[len] == 0, "{len} bytes");
            };
            if me <= other {
                world.send_to(other, tag, &pattern(len + me, len)).unwrap();
                receive(&mut buffer);
            } else {
                receive(&mut buffer);
                world.send_to(other, tag, &pattern(len + me, len)).unwrap();
            }
        }
        assert_eq!(world.probe(Source::Any, Tag::Any).unwrap(), None);
    });
}

/// Long ones do not let short ones by, nor the other way round; also not where a wildcard takes them.
#[test]
fn messages_of_one_rank_are_received_in_the_order_sent() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let length = |number: usize| [8, 3_000, 100_000, 16, 20_000][number % 5];
        const NUMBER: usize = 200;
        let send = |target| {
            for number in 0..NUMBER {
                let mut data = vec![me as u8; length(number)];
                data[..8].copy_from_slice(&number.to_ne_bytes());
                world.send_to(target, (number % 3) as i32, &data).unwrap();
            }
        };
        if me != 0 || size == 1 {
            send(0);
        }
        if me == 0 {
            let senders = if size == 1 { 0..1 } else { 1..size };
            let mut next = vec![0; size];
            for taken in 0..NUMBER * senders.len() {
                // Whoever comes first; or one rank's; any tag.
                let source = if taken % 2 == 0 { Source::Any } else { Source::Rank(senders.start) };
                let source = if next[senders.start] == NUMBER { Source::Any } else { source };
                let (received, data) = world.receive_vec::<u8>(source, Tag::Any).unwrap();
                let number = usize::from_ne_bytes(data[..8].try_into().unwrap());
                assert_eq!(number, next[received.source], "of rank {}", received.source);
                assert_eq!((received.tag, received.bytes), ((number % 3) as i32, length(number)));
                assert!(data[8..].iter().all(|byte| *byte == received.source as u8));
                next[received.source] += 1;
            }
        }
        world.barrier().unwrap();
    });
}

#[test]
fn wildcards_and_exact_receives_share_what_is_there() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        for target in 0..size {
            for tag in 0..4 {
                world.send_to(target, tag, &[(me * 10 + tag as usize) as i64; 3]).unwrap();
            }
        }
        world.barrier().unwrap();
        let mut three = [0i64; 3];
        let mut check = |source: Source, tag: Tag| {
            let probed = world.probe(source, tag).unwrap();
            let received = world.receive(source, tag, &mut three).unwrap();
            // What comes first cannot change: the barrier has brought everything.
            assert_eq!(probed, Some(received));
            assert_eq!(three, [(received.source * 10 + received.tag as usize) as i64; 3]);
            received
        };
        for source in 0..size {
            assert_eq!(check(source.into(), 2.into()).tag, 2);
        }
        for _ in 0..size {
            assert_eq!(check(Source::Any, 3.into()).tag, 3);
        }
        for source in 0..size {
            // In the order sent: 0, then 1.
            assert_eq!(check(source.into(), Tag::Any).tag, 0);
        }
        for _ in 0..size {
            assert_eq!(check(Source::Any, Tag::Any).tag, 1);
        }
        assert_eq!(world.probe(Source::Any, Tag::Any).unwrap(), None);
        world.barrier().unwrap();
    });
}

/// A receiver that is not there for a while holds a bounded amount; then it finds everything, in order.
#[test]
fn a_fast_sender_does_not_fill_its_receiver() {
    const HELD_MAX: usize = 16 << 20;
    for (ranks, progress) in [(2, "thread"), (2, "none"), (3, "thread")] {
        Ranks::new(ranks).env("ARMCI_PROGRESS", progress).run(|world| {
            const BYTES: usize = 4 << 10;
            const NUMBER: usize = 3 * HELD_MAX / BYTES;
            let sent = world.allocate(8 * world.size()).unwrap();
            let progress = |rank| sent.at::<i64>(0, rank);
            if world.rank() == 0 {
                (0..world.size()).for_each(|rank| world.put_value(0, progress(rank)).unwrap());
            }
            world.barrier().unwrap();
            if world.rank() != 0 {
                let mut data = vec![world.rank(); BYTES / 8];
                for number in 0..NUMBER {
                    data[0] = number;
                    world.send_to(0, 1, &data).unwrap();
                    world.put_value(number as i64 + 1, progress(world.rank())).unwrap();
                }
            } else {
                std::thread::sleep(Duration::from_millis(700));
                let all: i64 = (1..world.size()).map(|rank| world.get_value(progress(rank)).unwrap()).sum();
                let held = all as usize * BYTES;
                assert!(held <= HELD_MAX + (world.size() << 18), "{held} bytes are held");
                let mut data = vec![0; BYTES / 8];
                let mut next = vec![0; world.size()];
                for _ in 0..NUMBER * (world.size() - 1) {
                    let from = world.receive(Source::Any, 1, &mut data).unwrap().source;
                    assert!(data[0] == next[from] && data[1..].iter().all(|word| *word == from));
                    next[from] += 1;
                }
            }
            world.barrier().unwrap();
            world.free(sent).unwrap();
        });
    }
}

/// Thousands of short messages wait; they are taken from the last tag to the first.
#[test]
fn thousands_of_messages_wait_until_they_are_wanted() {
    matrix(|world| {
        const NUMBER: i32 = 5_000;
        let (right, left) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
        (0..NUMBER).for_each(|tag| world.send_to(right, tag, &[tag, 2 * tag]).unwrap());
        for tag in (0..NUMBER).rev() {
            let mut pair = [0; 2];
            world.receive(left, tag, &mut pair).unwrap();
            assert_eq!(pair, [tag, 2 * tag]);
        }
    });
}

#[test]
fn all_to_all_of_random_sizes() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let random = |round: usize, from: usize, to: usize| {
            let mut random = fastrand::Rng::with_seed((round * 16 + from * 4 + to) as u64);
            let bits = random.u32(0..20);
            pattern(round + from + to, random.usize(0..1 << bits))
        };
        for round in 0..10 {
            // In each step every rank has one partner, so who sends a long message has its receiver there; and a tag, since a
            // rank that is a step ahead is not to be received from instead.
            for step in 0..size.next_power_of_two() {
                let (other, tag) = (me ^ step, (round * 16 + step) as i32);
                if other >= size {
                    continue;
                }
                let send = || world.send_to(other, tag, &random(round, me, other)).unwrap();
                let receive = || {
                    let (received, data) = world.receive_vec::<u8>(Source::Any, tag).unwrap();
                    assert!(data == random(round, received.source, me), "{received:?} in round {round}");
                };
                if me <= other {
                    send();
                    receive();
                } else {
                    receive();
                    send();
                }
            }
            world.barrier().unwrap();
        }
    });
}

/// Everybody sends and receives at once, whatever the lengths, in a ring and among more ranks than cores.
#[test]
fn who_exchanges_need_not_agree_who_sends_first() {
    fn exchange(world: &World) {
        let (me, size) = (world.rank(), world.size());
        for shift in 0..size {
            let (to, from) = ((me + shift) % size, (me + size - shift) % size);
            let len = |rank: usize| [100, 300_000, 20_000, 0][(rank + shift) % 4];
            let mut theirs = vec![0u8; len(from)];
            let received =
                world.send_receive(to, me as i32, &pattern(me, len(me)), from, Tag::Any, &mut theirs).unwrap();
            assert_eq!(received, Received { source: from, tag: from as i32, bytes: len(from) });
            assert!(theirs == pattern(from, len(from)));
        }
        // A buffer too short: what was to be sent is sent, what came stays.
        let (to, from) = ((me + 1) % size, (me + size - 1) % size);
        let refused = world.send_receive(to, 9, &[me as u8; 10_000], from, 9, &mut []);
        assert!(matches!(refused, Err(Error::BufferTooShort { bytes: 10_000, room: 0, .. })), "{refused:?}");
        let left = world.receive_vec::<u8>(from, 9).unwrap().1;
        assert_eq!(left, [from as u8; 10_000]);
    }
    matrix(exchange);
    Ranks::new(16).run(exchange);
}

#[test]
fn a_message_that_does_not_fit_stays() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let left = (me + size - 1) % size;
        let play = |len: usize| {
            let mut short = vec![0u8; len - 1];
            match world.receive(left, 5, &mut short) {
                Err(Error::BufferTooShort { rank, tag, bytes, room }) => {
                    assert_eq!((rank, tag, bytes, room), (left, 5, len, len - 1));
                }
                other => panic!("{other:?}"),
            }
            let odd = world.receive_vec::<[u8; 7]>(left, Tag::Any).unwrap_err();
            assert!(matches!(odd, Error::Argument(_)), "{odd}");
            let (received, data) = world.receive_vec::<u8>(Source::Any, Tag::Any).unwrap();
            assert_eq!(received, Received { source: left, tag: 5, bytes: len });
            assert!(data == pattern(left, len));
        };
        // Not multiples of seven. The last goes round the ring: rank 0 sends first, so the others receive first.
        for len in [100, 10_000, 1_000_000] {
            let send = || world.send_to((me + 1) % size, 5, &pattern(me, len)).unwrap();
            if me == 0 {
                send();
                // The next one, which is not to be taken before.
                world.send_to((me + 1) % size, 6, &[1u8]).unwrap();
                play(len);
            } else {
                play(len);
                send();
                world.send_to((me + 1) % size, 6, &[1u8]).unwrap();
            }
            assert_eq!(world.receive(left, Tag::Any, &mut [0u8; 8]).unwrap().tag, 6);
        }
    });
}

#[test]
fn wrong_arguments_are_refused() {
    matrix(|world| {
        let size = world.size();
        assert!(matches!(world.send_to(size, 0, &[0u8]), Err(Error::Rank { .. })));
        assert!(matches!(world.receive(size, 0, &mut [0u8]), Err(Error::Rank { .. })));
        assert!(matches!(world.receive_vec::<u8>(size, 0), Err(Error::Rank { .. })));
        assert!(matches!(world.probe(size, 0), Err(Error::Rank { .. })));
        let threads = world.threads();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let world = threads.attach().unwrap();
                assert!(matches!(world.send_to(0, 0, &[0u8]), Err(Error::Argument(_))));
                assert!(matches!(world.probe(0, 0), Err(Error::Argument(_))));
                world.detach().unwrap();
            });
        });
    });
}

/// Who only ever probes is served, and sees what comes.
#[test]
fn probing_finds_what_comes() {
    matrix(|world| {
        let right = (world.rank() + 1) % world.size();
        for len in [3, 60_000] {
            let me = world.rank();
            if me % 2 == 0 || world.size() == 1 {
                world.send_to(right, me as i32, &vec![1u8; len]).unwrap();
            }
            let left = (me + world.size() - 1) % world.size();
            if left % 2 == 0 {
                let found = loop {
                    if let Some(found) = world.probe(left, Tag::Any).unwrap() {
                        break found;
                    }
                    std::thread::yield_now();
                };
                assert_eq!(found, Received { source: left, tag: left as i32, bytes: len });
                assert_eq!(world.receive_vec::<u8>(found.source, found.tag).unwrap().1, vec![1; len]);
            }
            world.barrier().unwrap();
        }
    });
}

/// A value goes round a ring of sixteen, growing, and long and short messages take turns.
#[test]
fn a_ring_of_many_ranks_on_few_cores() {
    fn ring(world: &World) {
        let (me, size) = (world.rank(), world.size());
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        for round in 0..20usize {
            let len = if round % 2 == 0 { 1 } else { 10_000 };
            let mut sum = vec![0i64; len];
            if me != 0 {
                world.receive(left, round as i32, &mut sum).unwrap();
            }
            sum.iter_mut().for_each(|value| *value += me as i64);
            world.send_to(right, round as i32, &sum).unwrap();
            if me == 0 {
                world.receive(left, round as i32, &mut sum).unwrap();
                assert_eq!(sum, vec![(size * (size - 1) / 2) as i64; len]);
            }
        }
    }
    for progress in ["thread", "none"] {
        Ranks::new(16).env("ARMCI_PROGRESS", progress).run(ring);
    }
}
