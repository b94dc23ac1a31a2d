//! What goes wrong between nodes: a peer that dies, a connection that breaks, a provider at fault, and a fabric that is
//! slow, short of room or poor. The first three end the job, at once and by name; the others change no result.

use std::time::{Duration, Instant};

use armci_core::job::Outcome;
use armci_core::{Handle, Reduce, Region, STAGING_BYTES, World};
use tests::Ranks;
use tests::sample::everything;

/// Within this a job whose fabric is at fault has ended: the launcher has the first word for a second.
const LIMIT: Duration = Duration::from_secs(8);
/// The same where nothing but silence tells of it, which is believed after some questions.
const SILENCE_LIMIT: Duration = Duration::from_secs(20);

/// Does everything, over a fabric with these faults.
fn in_spite_of(faults: &str) {
    for (ranks, progress) in [(2, "thread"), (2, "none"), (4, "thread")] {
        Ranks::new(ranks)
            .nodes(2)
            .env("ARMCI_FABRIC_FAULTS", faults)
            .env("ARMCI_PROGRESS", progress)
            .timeout(Duration::from_secs(150))
            .run(everything);
    }
}

#[test]
fn nothing_changes_when_the_fabric_is_short_of_room() {
    in_spite_of("again=60");
}

#[test]
fn nothing_changes_when_completions_are_late() {
    in_spite_of("delay=300");
}

#[test]
fn replies_that_come_twice_are_refused() {
    in_spite_of("duplicate=60");
}

#[test]
fn own_memory_is_registered_where_the_provider_wants_it() {
    in_spite_of("wants=local");
}

#[test]
fn regions_are_registered_one_by_one_and_with_their_endpoint() {
    in_spite_of("wants=local+allocated+endpoint");
}

#[test]
fn a_fence_holds_where_writes_do_not_tell_when_they_are_there() {
    in_spite_of("lacks=delivery");
}

#[test]
fn nobody_sleeps_on_where_there_is_nothing_to_sleep_over() {
    in_spite_of("lacks=wait");
}

#[test]
fn long_transfers_go_in_pieces() {
    in_spite_of("largest=5000,again=20");
}

#[test]
fn who_takes_no_answers_holds_up_nobody_else() {
    /// Requests of a context that are under way at once.
    const SLOTS: usize = 32;
    const LONG: usize = 200_000;
    // Without a progress thread who asks for what is long stays in its call.
    // In the third job answers to rank 2 are refused, too, now and then, and are to be tried again before those to rank 1 go.
    for (progress, long, faults) in [
        ("thread", 4, "deaf=1+300,rank=0"),
        ("none", 0, "deaf=1+300,rank=0"),
        ("thread", 4, "deaf=1+300,again=20,rank=0"),
    ] {
        // Until rank 2 was answered so often, or tried to be, rank 1 gets no answers of rank 0.
        let job = Ranks::new(3).nodes(3).env("ARMCI_FABRIC_FAULTS", faults).env("ARMCI_PROTOCOL", "am");
        job.env("ARMCI_PROGRESS", progress).timeout(Duration::from_secs(150)).run(|world| {
            let region = world.allocate(4 * LONG).unwrap();
            let data: Vec<u8> = (0..4 * LONG).map(|at| (at / 7) as u8).collect();
            world.put(&data, region.at(world.rank(), 0)).unwrap();
            world.barrier().unwrap();
            // Each thread asks where it lies before answers stay away.
            let first = region.at::<i64>(0, 0);
            let learn = |world: &World| assert_eq!(world.fetch_add(first, 0).unwrap().to_ne_bytes(), data[..8]);
            learn(world);
            world.barrier().unwrap();
            let (there, go_on) = (region.at::<u8>(0, 0), region.at::<i64>(2, 0));
            // As many at once as that, each of so many bytes.
            let gets = |world: &World, count, len: usize| -> Vec<_> {
                let at = |number| (number % 4) * LONG;
                (0..count)
                    .map(|number| (at(number), world.get_nb(there.add(at(number)), vec![0; len]).unwrap()))
                    .collect()
            };
            let come = |gets: Vec<(usize, Handle<Vec<u8>>)>| {
                for (at, get) in gets {
                    let got = get.wait().unwrap();
                    assert!(got == data[at..at + got.len()], "what lies at {at}");
                }
            };
            // Rank 1's threads, when all know where it lies, and when all have asked.
            let together = &std::sync::Barrier::new(4);
            match world.rank() {
                1 => std::thread::scope(|scope| {
                    for (count, len) in [(SLOTS, STAGING_BYTES), (SLOTS, STAGING_BYTES), (long, LONG)] {
                        let threads = world.threads();
                        let (learn, gets, come) = (&learn, &gets, &come);
                        scope.spawn(move || {
                            let world = threads.attach().unwrap();
                            learn(&world);
                            together.wait();
                            let gets = gets(&world, count, len);
                            together.wait();
                            come(gets);
                            world.detach().unwrap();
                        });
                    }
                    together.wait();
                    // One slot is for telling rank 2.
                    let gets = gets(world, SLOTS - 1, STAGING_BYTES);
                    together.wait();
                    world.notify(go_on, -1).unwrap();
                    come(gets);
                }),
                2 => {
                    world.wait_value(go_on, -1).unwrap();
                    let mine = region.at::<u8>(0, 3 * LONG);
                    let mut got = vec![0; LONG];
                    world.get(mine, &mut got).unwrap();
                    assert!(got == data[3 * LONG..]);
                    world.put(&got, mine).unwrap();
                    for _ in 0..300 {
                        world.fetch_add(first, 0).unwrap();
                    }
                }
                _ => (),
            }
            world.barrier().unwrap();
            world.free(region).unwrap();
        });
    }
}

#[test]
fn nothing_changes_when_requests_overtake_each_other() {
    in_spite_of("overtake=50,delay=100");
    in_spite_of("overtake=50,again=20,duplicate=20");
}

/// A job on two nodes whose provider completes longer messages when they were fetched, behind shorter ones that were sent later.
fn by_rendezvous(ranks: usize, progress: &str) -> Ranks {
    let job = Ranks::new(ranks).nodes(2).env("ARMCI_FABRIC", "tcp;ofi_rxm").env("ARMCI_PROGRESS", progress);
    let limits = ["FI_OFI_RXM_BUFFER_SIZE", "FI_OFI_RXM_EAGER_LIMIT", "FI_OFI_RXM_SAR_LIMIT"];
    limits.into_iter().fold(job, |job, limit| job.env(limit, "1024")).timeout(Duration::from_secs(150))
}

#[test]
fn nothing_changes_where_messages_go_by_rendezvous() {
    for (ranks, progress) in [(2, "thread"), (2, "none"), (4, "thread")] {
        by_rendezvous(ranks, progress).run(everything);
    }
}

/// The first rank sends what is fetched only while it looks, and then sleeps until its neighbour comes, who waits for whoever
/// fetches, and does so late.
#[test]
fn who_waits_for_neighbours_lets_others_fetch() {
    by_rendezvous(4, "thread").run(|world| {
        let near = (world.rank() < 2).then(|| world.create_team(&[0, 1]).unwrap());
        let doze = world
            .register(|_, _| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        let mut room = vec![0u8; 8000];
        for round in 0..10 {
            if let Some(near) = &near {
                if world.rank() == 1 {
                    world.send(2, doze, &[]).unwrap();
                }
                near.barrier().unwrap();
            }
            match world.rank() {
                0 => world.send_to(2, round, &vec![round as u8; 8000]).unwrap(),
                1 => drop(world.receive(2, round, &mut room[..1]).unwrap()),
                2 => {
                    world.receive(0, round, &mut room).unwrap();
                    assert_eq!(room, [round as u8; 8000]);
                    world.send_to(1, round, &[1u8]).unwrap();
                }
                _ => (),
            }
            if let Some(near) = &near {
                let mut sum = [1u64];
                near.all_reduce(&mut sum, Reduce::Sum).unwrap();
                assert_eq!(sum, [2]);
            }
        }
        world.barrier().unwrap();
    });
}

#[test]
fn another_provider_does_it_as_well() {
    for (ranks, progress, faults) in
        [(2, "thread", ""), (2, "none", ""), (4, "thread", ""), (2, "thread", "again=60,duplicate=50")]
    {
        Ranks::new(ranks)
            .nodes(2)
            .env("ARMCI_FABRIC", "shm")
            .env("ARMCI_FABRIC_FAULTS", faults)
            .env("ARMCI_PROGRESS", progress)
            .run(everything);
    }
}

/// Runs a job in which rank 1 does this to itself once everybody is there, while the others go on with `work`.
fn when_rank_1(
    progress: &str,
    faults: &str,
    does: impl FnOnce(),
    work: impl FnOnce(&World, &Region),
) -> (Outcome, Duration) {
    let started = Instant::now();
    // That over TCP: what these jobs break is a connection.
    let job = Ranks::new(3).nodes(3).env("ARMCI_FABRIC", "tcp").env("ARMCI_PROGRESS", progress);
    let job = job.env("ARMCI_FABRIC_FAULTS", faults);
    let outcome = job.expect_failure(|world| {
        let region = world.allocate(1 << 20).unwrap();
        world.barrier().unwrap();
        if world.rank() == 1 {
            // The others are in the midst of it.
            std::thread::sleep(Duration::from_millis(100));
            does();
        }
        work(world, &region);
        panic!("rank {} went on without rank 1", world.rank());
    });
    (outcome, started.elapsed())
}

/// Ends the calling rank as `kill -9` would.
fn die() {
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
}

fn gets(world: &World, region: &Region) {
    let mut room = vec![0u8; 100_000];
    loop {
        world.get(region.at(1, 0), &mut room).unwrap();
        std::hint::black_box(&room);
    }
}

fn puts(world: &World, region: &Region) {
    loop {
        world.put_value(1u64, region.at(1, 8)).unwrap();
    }
}

fn adds(world: &World, region: &Region) {
    let data = vec![1.0; 1 << 16];
    loop {
        world.accumulate(1.0, &data, region.at(1, 0)).unwrap();
    }
}

fn dies_while(progress: &str, work: impl FnOnce(&World, &Region)) {
    let (outcome, took) = when_rank_1(progress, "", die, work);
    let failure = outcome.failed.expect("a rank failed");
    assert_eq!(failure.rank, 1, "{}", String::from_utf8_lossy(&outcome.stderr));
    assert!(failure.reason.contains("SIGKILL"), "{}", failure.reason);
    assert!(took < LIMIT, "took {took:?}");
}

#[test]
fn a_rank_that_is_killed_is_named_by_those_who_get() {
    dies_while("thread", gets);
}

#[test]
fn a_rank_that_is_killed_is_named_by_those_who_put() {
    dies_while("none", puts);
}

#[test]
fn a_rank_that_is_killed_is_named_by_those_whose_data_it_fetches() {
    dies_while("thread", adds);
}

#[test]
fn a_rank_that_is_killed_is_named_by_those_who_meet() {
    dies_while("thread", |world, _| world.barrier().unwrap());
}

#[test]
fn a_rank_that_is_killed_is_named_by_those_who_ask() {
    dies_while("none", |world, region| {
        loop {
            world.fetch_add(region.at::<i64>(1, 0), 1).unwrap();
        }
    });
}

/// What the job has said of a fabric at fault: who, where, and why.
fn is_told(outcome: &Outcome, took: Duration, limit: Duration, words: &[&str]) {
    let said = String::from_utf8_lossy(&outcome.stderr);
    let line = said.lines().find(|line| line.contains("cannot communicate")).unwrap_or_else(|| panic!("{said}"));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for word in words.iter().copied().chain([host.as_str()]) {
        assert!(line.contains(word), "no {word:?} in: {line}");
    }
    assert!(took < limit, "took {took:?}");
}

#[test]
fn a_fault_of_the_provider_is_told() {
    let (outcome, took) = when_rank_1("thread", "fail=400,rank=0", || (), gets);
    is_told(&outcome, took, LIMIT, &["rank 0 on", "a fault that ARMCI_FABRIC_FAULTS asked for"]);
}

/// Breaks all connections of this process that are not of this machine alone, and takes no more.
fn unplug() {
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if let Ok(number) = entry.file_name().to_string_lossy().parse() {
            tests::sockets::break_inet(number);
        }
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_broken_connection_is_told_with_the_rank_behind_it() {
    let (outcome, took) = when_rank_1("thread", "", unplug, gets);
    // By whoever notices first, on either side of it; if all gets go by message, perhaps nobody does.
    is_told(&outcome, took, SILENCE_LIMIT, &["rank 1 on"]);
}

/// Rank 0, whose requests or answers are lost, waits for one of rank 1's.
fn is_missed(progress: &str, fault: &str) {
    let (outcome, took) = when_rank_1(
        progress,
        &format!("{fault},rank=0"),
        || (),
        |world, region| {
            if world.rank() != 0 {
                world.barrier().unwrap();
            }
            loop {
                world.fetch_add(region.at::<i64>(1, 0), 1).unwrap();
            }
        },
    );
    is_told(&outcome, took, SILENCE_LIMIT, &["rank 0 on", "with rank 1 on", "was lost"]);
}

#[test]
fn a_request_that_was_lost_is_missed() {
    is_missed("thread", "lost=1000");
}

#[test]
fn an_answer_that_was_lost_is_missed() {
    is_missed("thread", "unheard=1000");
}

#[test]
fn a_request_that_was_lost_is_missed_without_threads() {
    is_missed("none", "lost=1000");
}

/// Where the only thing under way is a message, no access of the provider's fails.
#[test]
fn a_broken_connection_is_told_by_who_waits_for_answers() {
    let (outcome, took) = when_rank_1("thread", "", unplug, |world, region| {
        loop {
            world.fetch_add(region.at::<i64>(1, 0), 1).unwrap();
        }
    });
    is_told(&outcome, took, SILENCE_LIMIT, &["rank 1 on"]);
}

/// Who computes is no lost connection, however long.
#[test]
fn who_does_not_answer_for_a_while_is_waited_for() {
    Ranks::new(2).nodes(2).env("ARMCI_FABRIC", "tcp").env("ARMCI_PROGRESS", "none").run(|world| {
        let region = world.allocate(64).unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            assert_eq!(world.fetch_add(region.at::<i64>(1, 0), 1).unwrap(), 0);
        } else {
            std::thread::sleep(Duration::from_secs(9));
        }
        world.barrier().unwrap();
    });
}

/// What this process does at each signal, as the kernel tells it.
fn signals() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().filter(|line| line.starts_with("SigCgt") || line.starts_with("SigIgn")).collect()
}

#[test]
fn the_programs_signals_stay_its_own() {
    Ranks::new(2).nodes(2).run_bare(|| {
        let before = signals();
        let world = World::init().unwrap();
        assert_eq!(signals(), before, "caught and ignored signals");
        world.finalize().unwrap();
    });
}
