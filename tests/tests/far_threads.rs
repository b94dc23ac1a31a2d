//! Threads of a rank that reach ranks of other nodes, each through a context of its own; they come and go, and cost little.

use tests::Ranks;

const THREADS: usize = 4;

#[test]
fn threads_that_come_and_go_reach_other_nodes_and_leave_nothing_behind() {
    for progress in ["thread", "none"] {
        Ranks::new(4).nodes(2).env("ARMCI_PROGRESS", progress).run(|world| {
            let (me, size) = (world.rank(), world.size());
            let words = size * THREADS;
            let region = world.allocate(8 * (words * 1_000 + 1)).unwrap();
            world.put(&vec![0i64; words * 1_000 + 1], region.at(me, 0)).unwrap();
            world.barrier().unwrap();
            let mut held = Vec::new();
            for round in 0..12i64 {
                let threads = world.threads();
                std::thread::scope(|scope| {
                    for number in 0..THREADS {
                        let (threads, region) = (threads.clone(), &region);
                        let places: Vec<_> = (0..size)
                            .map(|rank| {
                                (region.at::<i64>(rank, 1 + 1_000 * (me * THREADS + number)), region.at::<i64>(rank, 0))
                            })
                            .collect();
                        scope.spawn(move || {
                            let world = threads.attach().unwrap();
                            for (mine, counter) in places {
                                // By remote access, by message, long and short, and each behind what went before.
                                world.put(&[round; 1_000], mine).unwrap();
                                world.accumulate(1i64, &[1; 10], mine).unwrap();
                                let mut found = [0i64; 1_000];
                                world.get(mine, &mut found).unwrap();
                                assert!(found[..10].iter().all(|found| *found == round + 1));
                                assert!(found[10..].iter().all(|found| *found == round));
                                world.fetch_add(counter, 1).unwrap();
                            }
                            world.detach().unwrap();
                        });
                    }
                });
                world.barrier().unwrap();
                let drawn = (round + 1) * (THREADS * size) as i64;
                assert_eq!(world.get_value::<i64>(region.at(me, 0)).unwrap(), drawn);
                world.barrier().unwrap();
                held.push(world.statistics().addresses);
            }
            // Each of another node's threads is known by one address at a time, and each of its ranks.
            let bound = (2 * (THREADS + 1) + 2) as u64;
            let (first, last) = (held[0], held[11]);
            assert!(first > 0 && held.iter().all(|held| *held <= bound + THREADS as u64), "{held:?}");
            assert!(last <= first + 2 * THREADS as u64, "{held:?}");
            world.free(region).unwrap();
        });
    }
}

/// What of this process's status begins with a name, in MiB.
fn mebibytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn a_thread_has_an_endpoint_once_it_leaves_its_node_and_a_small_one() {
    Ranks::new(4).nodes(2).env("ARMCI_FABRIC", "tcp").run(|world| {
        let region = world.allocate(8).unwrap();
        world.put_value(0i64, region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        let (near, far) = (region.at::<i64>(world.rank() ^ 1, 0), region.at::<i64>(world.rank() ^ 2, 0));
        let threads = world.threads();
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let (near_is_done, is_near) = std::sync::mpsc::channel();
        let (leave, may_leave) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let before = descriptors();
            let world = threads.attach().unwrap();
            world.fetch_add(near, 1).unwrap();
            near_is_done.send(descriptors() - before).unwrap();
            may_leave.recv().unwrap();
            let before = mebibytes("VmRSS:");
            world.fetch_add(far, 1).unwrap();
            let memory = mebibytes("VmRSS:") - before;
            world.detach().unwrap();
            memory
        });
        let opened = is_near.recv().unwrap();
        // Until all have counted, nobody's connections come.
        world.barrier().unwrap();
        leave.send(()).unwrap();
        let memory = thread.join().unwrap();
        world.barrier().unwrap();
        assert_eq!(world.get_value(region.at::<i64>(world.rank(), 0)).unwrap(), 2);
        assert_eq!(opened, 0, "descriptors of a thread that stays on its node");
        // Buffers of 16 KiB, as the provider would have them, take 85 MiB.
        assert!(memory < 40, "a thread costs {memory} MiB");
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}
