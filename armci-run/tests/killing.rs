//! `kill -9` of any rank at any moment: the job ends at once, says so once, and leaves nothing.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use armci_core::{Region, World};
use common::{Run, play_outside};
use rustix::process::{Signal, kill_process};

const JOBS: usize = 100;
/// From the kill to the end of the launcher, on a busy machine.
const AT_ONCE: Duration = Duration::from_millis(1500);
/// The kill comes within this time after the rank was started; early moments are likelier, as joining is quick.
const LATEST: Duration = Duration::from_millis(60);
/// What a rank says when it has joined.
const AT_WORK: &str = "at work";

#[test]
fn a_hundred_kills() {
    play_outside(|_| work());
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("killing-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let (mut slowest, mut at_work) = (Duration::ZERO, 0);
    for _ in 0..JOBS {
        let before = shared_files();
        let (ranks, progress) = (fastrand::usize(2..=4), fastrand::choice(["thread", "none"]).unwrap());
        let victim = fastrand::usize(0..ranks);
        let mut running = Run::role(ranks, "a_hundred_kills", "worker")
            .env("ARMCI_PROGRESS", progress)
            .env("ARMCI_PROTOCOL", fastrand::choice(["rma", "am"]).unwrap())
            .env("TMPDIR", scratch.to_str().unwrap())
            .start();
        while !running.ranks().contains_key(&victim) {
            assert!(running.child.try_wait().unwrap().is_none(), "it ended before all ranks were there");
        }
        std::thread::sleep(LATEST.mul_f64(fastrand::f64().powi(4)));
        let processes = running.ranks();
        let killed = processes[&victim];
        kill_process(killed, Signal::KILL).unwrap();
        let launcher = running.child.id();
        let ended = running.end();

        let said: Vec<_> = ended.stderr.lines().collect();
        let expected = format!("armci-run: rank {victim} (pid {killed}) was killed by signal 9 (SIGKILL); ");
        assert!(said.len() == 1 && said[0].starts_with(&expected), "{expected:?} was expected: {said:#?}");
        assert_eq!(ended.code, Some(137));
        assert!(ended.after < AT_ONCE, "{:?}", ended.after);
        let names: Vec<_> = processes.values().map(ToString::to_string).chain([launcher.to_string()]).collect();
        let is_ours = |file: &&PathBuf| names.iter().any(|name| file.to_string_lossy().contains(name));
        let left: Vec<_> = shared_files().difference(&before).filter(is_ours).cloned().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        slowest = slowest.max(ended.after);
        at_work += usize::from(ended.stdout.contains(AT_WORK));
    }
    println!("{at_work} of {JOBS} jobs were at work; the slowest ended {slowest:?} after the kill");
    assert!(
        (JOBS / 10..JOBS).contains(&at_work),
        "{at_work} of {JOBS} jobs were at work: the moments are badly chosen"
    );
    // Fails if something is in it.
    std::fs::remove_dir(&scratch).unwrap();
}

/// What lies where every process may leave something. Others do too: what a job left is known by a number of one of
/// its processes in the name.
fn shared_files() -> BTreeSet<PathBuf> {
    let of = |directory| std::fs::read_dir(directory).into_iter().flatten();
    ["/dev/shm", "/tmp"].into_iter().flat_map(of).filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// A rank: everything at once, until it is killed.
fn work() {
    let world = World::init().unwrap();
    let double = world.register(|delivery, reply| reply.set(&[delivery.payload, delivery.payload].concat())).unwrap();
    world.barrier().unwrap();
    println!("{AT_WORK}");
    for round in 0.. {
        let region = world.allocate(100_000 + 1000 * (round % 7)).unwrap();
        traffic(&world, &region, round);
        let payload = vec![7u8; 1000 * (round % 8)];
        let reply = world.request((world.rank() + round) % world.size(), double, &payload).unwrap();
        assert_eq!(reply.len(), 2 * payload.len());
        world.free(region).unwrap();
    }
}

/// Puts, accumulates and gets, some of many messages, to every rank.
fn traffic(world: &World, region: &Region, round: usize) {
    let mut seen = vec![0i64; 10_000];
    for hop in 0..world.size() {
        let target = (world.rank() + round + hop) % world.size();
        world.put(&vec![1i64; 10_000], region.at(target, 0)).unwrap();
        world.accumulate(1i64, &[3; 100], region.at(target, 50)).unwrap();
        world.get(region.at(target, 0), &mut seen).unwrap();
    }
    world.barrier().unwrap();
}
