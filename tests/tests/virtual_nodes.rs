//! Virtual nodes: who is where; everything works between nodes as on one, and what has no meaning there says so.

use armci_core::{Error, GlobalPtr, Mutexes, Reduce, STAGING_BYTES, Segments, SharedCounter, Source, Strided, World};
use tests::Ranks;

/// (ranks, nodes, the node of each rank).
const JOBS: [(usize, usize, &[usize]); 5] = [
    (2, 2, &[0, 1]),
    (4, 2, &[0, 0, 1, 1]),
    (8, 4, &[0, 0, 1, 1, 2, 2, 3, 3]),
    (3, 3, &[0, 1, 2]),
    (5, 2, &[0, 0, 1, 1, 1]),
];

/// Runs `body` in every job, by both protocols, with and without progress thread (the larger jobs not by all four). It is
/// told the node of each rank.
fn in_each_job(body: impl Fn(&World, &[usize])) {
    const WAYS: [(&str, &str); 4] = [("rma", "thread"), ("am", "none"), ("rma", "none"), ("am", "thread")];
    for (job, (ranks, nodes, of_rank)) in JOBS.into_iter().enumerate() {
        let ways = match job {
            0 => &WAYS[..],
            1 | 2 => &WAYS[..2],
            _ => &WAYS[2..3],
        };
        for (protocol, progress) in ways {
            let job = Ranks::new(ranks).nodes(nodes).env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress);
            job.run(|world| body(world, of_rank));
        }
    }
}

/// So many numbers that tell who made them, and in which round.
fn numbers(rank: usize, round: usize, len: usize) -> Vec<i64> {
    (0..len).map(|at| (rank * 1_000_000 + round * 100_000 + at) as i64).collect()
}

#[test]
fn ranks_know_where_they_are() {
    in_each_job(|world, of_rank| {
        assert_eq!((world.size(), world.nodes()), (of_rank.len(), of_rank[of_rank.len() - 1] + 1));
        let nodes: Vec<_> = (0..world.size()).map(|rank| world.node_of(rank).unwrap()).collect();
        assert_eq!(nodes, of_rank);
        assert!(matches!(world.node_of(world.size()), Err(Error::Rank { .. })));
        // Each control block is granted by the ledger of its node.
        let neighbours = of_rank.iter().filter(|node| **node == of_rank[world.rank()]).count() as u64;
        assert!(world.statistics().node_memory.is_multiple_of(neighbours));
        assert!((1 << 20..2 << 20).contains(&(world.statistics().node_memory / neighbours)));
    });
}

#[test]
fn mistakes_are_found_before_anything_leaves_the_node() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        // Everybody's part is of another length.
        let region = world.allocate(64 * (me + 1)).unwrap();
        for other in 0..size {
            let behind = region.at::<u8>(other, 64 * (other + 1));
            let len = 64 * (other as u64 + 1);
            assert!(matches!(world.put_value(1u8, behind), Err(Error::Bounds { len: l, .. }) if l == len));
            assert!(matches!(world.get(behind, &mut [0u8]), Err(Error::Bounds { len: l, .. }) if l == len));
            assert!(matches!(
                world.accumulate(1, &[1i64; 2], region.at::<i64>(other, 8 * (other + 1) - 1)),
                Err(Error::Bounds { .. })
            ));
            let odd = region.at::<u8>(other, 4).cast::<i64>();
            assert!(matches!(world.fetch_add(odd, 1), Err(Error::Misaligned { .. })));
        }
        assert!(matches!(world.put_value(0u8, region.at(0, 0).on(size)), Err(Error::Rank { .. })));
        assert!(matches!(world.fence(size), Err(Error::Rank { .. })));
        let gone: GlobalPtr<u8> = region.at((me + 1) % size, 0);
        world.free(region).unwrap();
        assert!(matches!(world.put_value(0u8, gone), Err(Error::NoRegion { .. })));
        world.barrier().unwrap();
    });
}

#[test]
fn transfers_cross_nodes() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        let region = world.allocate(8 * 100_000).unwrap();
        // Around what fits a message, a staging chunk, and more.
        let chunk = STAGING_BYTES / 8;
        for (round, len) in [1, 7, 100, chunk - 1, chunk, chunk + 1, 50_000].into_iter().enumerate() {
            let data = numbers(me, round, len);
            world.put(&data, region.at(right, 3)).unwrap();
            world.barrier().unwrap();
            let mut got = vec![0; len];
            world.get(region.at(me, 3), &mut got).unwrap();
            assert!(got == numbers(left, round, len), "own part");
            world.get(region.at(right, 3), &mut got).unwrap();
            assert!(got == data, "put, then read back");
            world.barrier().unwrap();
        }
        // Everybody adds to everybody.
        world.put(&vec![0.0; 10_000], region.at(me, 0)).unwrap();
        world.barrier().unwrap();
        let ones = vec![1.0; 10_000];
        (0..size).for_each(|target| world.accumulate(0.5, &ones, region.at(target, 0)).unwrap());
        world.barrier().unwrap();
        let mut sums = vec![0.0; 10_000];
        for target in 0..size {
            world.get(region.at(target, 0), &mut sums).unwrap();
            assert!(sums.iter().all(|sum| *sum == 0.5 * size as f64));
        }
        world.barrier().unwrap();
        // Short rows and long ones; then segments of them.
        for row in [2, 1_000] {
            let shape = Strided { counts: &[row, 20], local: &[row], remote: &[row + 100] };
            let data = numbers(me, row, row * 20);
            world.put_strided(&data, region.at(right, 5), &shape).unwrap();
            world.accumulate_strided(3, &data, region.at(right, 5), &shape).unwrap();
            let mut got = vec![0; row * 20];
            world.get_strided(region.at(right, 5), &mut got, &shape).unwrap();
            assert!(got.iter().zip(&data).all(|(got, data)| *got == 4 * data));
            world.barrier().unwrap();
            let remote: Vec<GlobalPtr<i64>> = (0..20).map(|at| region.at(right, (row + 1) * (19 - at))).collect();
            let local: Vec<usize> = (0..20).map(|at| at * row).collect();
            let segments = Segments { count: row, local: &local, remote: &remote };
            world.put_vector(&data, &segments).unwrap();
            world.accumulate_vector(-2, &data, &segments).unwrap();
            world.get_vector(&mut got, &segments).unwrap();
            assert!(got.iter().zip(&data).all(|(got, data)| *got == -data));
            world.barrier().unwrap();
        }
        world.free(region).unwrap();
    });
}

#[test]
fn operations_in_flight_cross_nodes() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        const LEN: usize = 5_000;
        let region = world.allocate(8 * LEN * size).unwrap();
        world.barrier().unwrap();
        // More at once than there are request slots: to everybody, in pieces.
        let mine = numbers(me, 1, LEN);
        let own = |target| region.at::<i64>(target, LEN * me);
        let mut puts = Vec::new();
        for piece in 0..50 {
            let from = piece * LEN / 50;
            for target in 0..size {
                puts.push(world.put_nb(mine[from..from + LEN / 50].to_vec(), own(target).add(from)).unwrap());
            }
        }
        puts.into_iter().for_each(|put| drop(put.wait().unwrap()));
        let gets: Vec<_> = (0..size).map(|target| world.get_nb(own(target), vec![0; LEN]).unwrap()).collect();
        gets.into_iter().for_each(|get| assert!(get.wait().unwrap() == mine));
        world.barrier().unwrap();
        let mut found = vec![vec![0i64; LEN]; size];
        world
            .nonblocking(|scope| {
                for (target, found) in found.iter_mut().enumerate() {
                    scope.get(region.at(target, LEN * ((me + 1) % size)), found)?;
                }
                Ok(())
            })
            .unwrap();
        let right = numbers((me + 1) % size, 1, LEN);
        assert!(found.iter().all(|found| *found == right));
        world.barrier().unwrap();
        // Single elements, together.
        let mut many = world.aggregate();
        for target in 0..size {
            for at in (0..LEN).rev() {
                many.put(&[at as i64], own(target).add(at)).unwrap();
                many.accumulate(2, &[1], own(target).add(at)).unwrap();
            }
        }
        many.finish().unwrap();
        let added: Vec<_> = (0..LEN as i64).map(|at| at + 2).collect();
        for target in 0..size {
            world.get(own(target), &mut found[0]).unwrap();
            assert!(found[0] == added);
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn words_flags_counters_and_locks_are_everybodys() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        let (right, last) = ((me + 1) % size, size - 1);
        let region = world.allocate(8 * 200).unwrap();
        world.put(&[0i64; 200], region.at(me, 0)).unwrap();
        world.barrier().unwrap();
        let word = region.at::<i64>(last, 0);
        (0..100).for_each(|_| world.add(word, 1).unwrap());
        let small = region.at::<i32>(right, 2);
        assert_eq!(world.swap(small, 7).unwrap(), 0);
        assert_eq!(world.compare_swap(small, 8, 9).unwrap(), 7);
        assert_eq!(world.compare_swap(small, 7, 9).unwrap(), 7);
        assert_eq!(world.fetch_add(small, -10).unwrap(), 9);
        assert_eq!(world.get_value(small).unwrap(), -1);
        // A flag behind data of any length.
        let (flag_there, flag_here) = (region.at::<i64>(right, 10), region.at::<i64>(me, 10));
        for round in 1..=50 {
            let len = [1, 10, 150][round as usize % 3];
            world.put_notify(&vec![round; len], region.at(right, 20), flag_there, round).unwrap();
            world.wait_value(flag_here, round).unwrap();
            let mut seen = vec![0; len];
            world.get(region.at(me, 20), &mut seen).unwrap();
            assert_eq!(seen, vec![round; len]);
            world.barrier().unwrap();
        }
        assert_eq!(world.get_value(word).unwrap(), 100 * size as i64);
        let mutexes = Mutexes::create(world, 2).unwrap();
        let counter = SharedCounter::create_on(world, last).unwrap();
        let shared = region.at::<i64>(0, 15);
        for _ in 0..20 {
            let guard = mutexes.guard(last, 1).unwrap();
            let seen = world.get_value(shared).unwrap();
            world.put_value(seen + 1, shared).unwrap();
            guard.unlock().unwrap();
        }
        let drawn = world.all_gather(&[counter.tasks(300).map(|task| task.unwrap()).sum::<usize>()]).unwrap();
        assert_eq!(drawn.iter().sum::<usize>(), 300 * 299 / 2);
        world.barrier().unwrap();
        assert_eq!(world.get_value(shared).unwrap(), 20 * size as i64);
        counter.destroy().unwrap();
        mutexes.destroy().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn messages_cross_nodes() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * 2_000 * size).unwrap();
        let echo = world
            .register(|delivery, reply| reply.set(&[&[delivery.source as u8], delivery.payload].concat()))
            .unwrap();
        let sum = world
            .register(|delivery, reply| {
                let numbers = delivery.data.ok_or("no data came")?.to_vec::<i64>();
                reply.set(&numbers.iter().sum::<i64>().to_ne_bytes())
            })
            .unwrap();
        world.barrier().unwrap();
        for len in [0, 1, 100, 1_000, 16_000] {
            let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            for target in 0..size {
                let reply = world.request(target, echo, &payload).unwrap();
                assert_eq!((reply[0] as usize, &reply[1..]), (me, &payload[..]));
                let data = numbers(me, 0, len / 8);
                let place = region.at(target, 2_000 * me);
                let reply = world.request_long(sum, &[], &data, place).unwrap();
                assert_eq!(i64::from_ne_bytes(reply.try_into().unwrap()), data.iter().sum::<i64>());
                world.send(target, echo, &payload).unwrap();
            }
        }
        world.fence_all().unwrap();
        // Two-sided, of any length, by name and by wildcard.
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        for (tag, len) in [0, 5, 3_000, 100_000].into_iter().enumerate() {
            let mut got = vec![0; len];
            let (data, from) = (numbers(me, tag, len), numbers(left, tag, len));
            world.send_receive(right, tag as i32, &data, left, tag as i32, &mut got).unwrap();
            assert!(got == from, "of rank {left}");
            world.barrier().unwrap();
            if me == 0 {
                for _ in 1..size {
                    let (received, got) = world.receive_vec::<i64>(Source::Any, 99).unwrap();
                    assert!(got == numbers(received.source, tag, len), "of rank {}", received.source);
                }
            } else {
                world.send_to(0, 99, &data).unwrap();
            }
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn collectives_cross_nodes() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        for round in 0..20u64 {
            world.barrier().unwrap();
            let all = world.all_gather(&[me as u64 + round]).unwrap();
            assert_eq!(all, (0..size as u64).map(|rank| rank + round).collect::<Vec<_>>());
        }
        let mut many = vec![me as f64; 10_000];
        world.all_reduce(&mut many, Reduce::Sum).unwrap();
        let sum = (size * (size - 1) / 2) as f64;
        assert!(many.iter().all(|value| *value == sum));
        let mut told = vec![me as u32; 9_000];
        for root in 0..size {
            told.fill(me as u32);
            world.broadcast(root, &mut told).unwrap();
            assert!(told.iter().all(|value| *value == root as u32));
        }
        for _ in 0..5 {
            let mut arrival = world.begin_barrier().unwrap();
            while !arrival.test() {}
            world.begin_barrier().unwrap().wait().unwrap();
        }
    });
}

/// A split-phase barrier lets nobody through before the last has come, whichever node that is on.
#[test]
fn a_split_barrier_waits_for_the_last_of_any_node() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        let come = world.allocate(8).unwrap();
        world.put_value(0i64, come.at(me, 0)).unwrap();
        world.barrier().unwrap();
        let word = come.at::<i64>(0, 0);
        for round in 0..30 {
            if me == round % size {
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
            world.add(word, 1).unwrap();
            world.fence(0).unwrap();
            let arrival = world.begin_barrier().unwrap();
            arrival.wait().unwrap();
            assert!(world.get_value(word).unwrap() >= ((round + 1) * size) as i64, "round {round}");
        }
        world.barrier().unwrap();
        world.free(come).unwrap();
    });
}

/// Teams of every other rank, in reverse, across nodes: their own collectives and memory.
#[test]
fn teams_span_nodes_in_any_order() {
    in_each_job(|world, _| {
        let (me, size) = (world.rank(), world.size());
        for step in 1..=2 {
            let members: Vec<usize> = (0..size).rev().filter(|rank| rank % step == me % step).collect();
            let team = world.create_team(&members).unwrap();
            assert_eq!(team.ranks(), members);
            let region = team.allocate(8 * (team.rank() + 1) * 10).unwrap();
            for member in 0..team.size() {
                world.put_value(me as i64, region.at(member, team.rank())).unwrap();
            }
            team.barrier().unwrap();
            let mut found = vec![0i64; team.size()];
            world.get(region.at(team.rank(), 0), &mut found).unwrap();
            assert!(found.iter().zip(&members).all(|(found, member)| *found == *member as i64));
            let mut told = [me];
            for (root, rank) in members.iter().enumerate() {
                told = [me];
                team.broadcast(root, &mut told).unwrap();
                assert_eq!(told, [*rank]);
            }
            assert_eq!(team.all_gather(&told).unwrap(), vec![members[team.size() - 1]; team.size()]);
            let half = team.split(Some((team.rank() % 2) as i64), team.rank() as i64).unwrap().unwrap();
            let mut count = [1i64];
            half.all_reduce(&mut count, Reduce::Sum).unwrap();
            assert_eq!(count, [half.size() as i64]);
            half.begin_barrier().unwrap().wait().unwrap();
            half.free().unwrap();
            world.free(region).unwrap();
            team.free().unwrap();
        }
        world.barrier().unwrap();
    });
}

/// What the checker knows of each rank's memory crosses nodes, too: a conflict is found, and a barrier prevents it.
#[test]
fn the_checker_sees_beyond_its_node() {
    for apart in [true, false] {
        let job = Ranks::new(3).nodes(2).env("ARMCI_CHECK", "1");
        let said = job.run_for_stderr(|world| {
            let region = world.allocate(8).unwrap();
            world.barrier().unwrap();
            // One of a node, the other of the next, on the third's memory.
            for writer in [0, 2] {
                if world.rank() == writer {
                    world.put_value(writer as i64, region.at(1, 0)).unwrap();
                }
                if apart {
                    world.barrier().unwrap();
                }
            }
            world.barrier().unwrap();
            world.free(region).unwrap();
        });
        if let Some(said) = said {
            assert_eq!(said.contains(" both touch "), !apart, "{said}");
        }
    }
}

#[test]
fn a_rank_that_dies_ends_the_ranks_of_all_nodes() {
    if !tests::nodes_can_be_joined() {
        return;
    }
    let outcome = Ranks::new(3).nodes(3).expect_failure(|world| assert_ne!(world.rank(), 1, "unhappy"));
    assert_eq!(outcome.failed.unwrap().rank, 1);
}

/// Descriptors and memory of a rank, as it says once it has met the others, and once it has talked to every one.
fn said(world: &World) {
    let held = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    (0..3).for_each(|_| world.barrier().unwrap());
    let met = held();
    let region = world.allocate(8).unwrap();
    (0..world.size()).for_each(|rank| _ = world.fetch_add(region.at::<i64>(rank, 0), 1).unwrap());
    world.barrier().unwrap();
    let neighbours =
        (0..world.size()).filter(|rank| world.node_of(*rank).unwrap() == world.node_of(world.rank()).unwrap());
    let granted = world.statistics().node_memory / neighbours.count() as u64;
    eprintln!("held: {met} {} {granted}", held());
    world.barrier().unwrap();
    world.free(region).unwrap();
}

/// What a rank holds does not grow with the job: a connection is made to whom something is sent, and to nobody else.
#[test]
fn what_a_rank_holds_does_not_grow_with_the_job() {
    let most = |ranks: usize| -> Option<[u64; 3]> {
        let stderr = Ranks::new(ranks).nodes(2).run_for_stderr(said)?;
        let lines: Vec<Vec<u64>> = stderr
            .lines()
            .filter_map(|line| {
                Some(line.split_once("held: ")?.1.split(' ').map(|word| word.parse().unwrap()).collect())
            })
            .collect();
        assert_eq!(lines.len(), ranks, "{stderr}");
        Some([0, 1, 2].map(|column| lines.iter().map(|line| line[column]).max().unwrap()))
    };
    let (few, many) = (most(2), most(6));
    if let (Some(few), Some(many)) = (few, many) {
        println!("descriptors once met, descriptors once talked to all, bytes: of 2 ranks {few:?}, of 6 {many:?}");
        // Leaders alone are connected when all have met: in both jobs to one other.
        assert!(many[0] <= few[0], "of 2 ranks {few:?}, of 6 {many:?}");
        // Then everybody is, to two ranks more, which come back.
        assert!(many[1] <= few[1] + 2 * 2, "of 2 ranks {few:?}, of 6 {many:?}");
        assert!(many[2] <= few[2], "of 2 ranks {few:?}, of 6 {many:?}");
    }
}
