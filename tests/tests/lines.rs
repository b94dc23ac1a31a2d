//! Hosts whose network is slow, loses some of what is sent, or goes away: the first two change no result, the last ends
//! the job, soon and by name, and leaves nothing behind.

use std::time::Duration;

use armci_core::{Region, World};
use tests::Ranks;
use tests::hosts::Hosts;
use tests::relay::Weather;
use tests::sample::everything;

/// Two lines lie between any two hosts, so a question and its answer take 4 to 8 ms, and one of thirteen of them is lost
/// somewhere on the way.
const BAD: Weather = Weather { delay: Duration::from_millis(1), jitter: Duration::from_millis(1), loss: 2.0 };

#[test]
fn nothing_changes_when_lines_are_slow_and_lose_some() {
    for (ranks, hosts, progress) in [(2, 2, "thread"), (4, 2, "none"), (3, 3, "thread")] {
        let job = Ranks::new(ranks).hosts(hosts).weather(BAD).env("ARMCI_PROGRESS", progress);
        job.timeout(Duration::from_secs(150)).run(everything);
    }
}

/// A job on three hosts whose second one this is done to while everybody works. Its launcher names the host and its rank,
/// once; then nothing of it is left anywhere.
fn ends_by_name(job: Ranks, strike: fn(&Hosts), work: fn(&World, &Region)) {
    let outcome = job.strike(strike).expect_failure(|world| {
        let region = world.allocate(1 << 20).unwrap();
        world.barrier().unwrap();
        tests::at_work();
        work(world, &region);
        panic!("rank {} went on without rank 1", world.rank());
    });
    let said = String::from_utf8_lossy(&outcome.stderr);
    let ours: Vec<_> = said.lines().filter(|line| line.starts_with("armci-run: ")).collect();
    let [line] = ours[..] else { panic!("{said}") };
    assert!(line.contains("-h1 (rank 1): it has not answered for 5 seconds"), "{line}");
    assert_eq!(outcome.failed.expect("a rank is named").rank, 1);
    // The others know no better than that it does not answer.
    let others: Vec<_> = said.lines().filter(|line| line.contains("cannot communicate")).collect();
    assert!(others.iter().all(|line| line.contains("rank 1")), "{others:?}");
    assert!(!said.contains("panicked"), "{said}");
}

fn gets(world: &World, region: &Region) {
    let mut room = vec![0u8; 100_000];
    loop {
        world.get(region.at((world.rank() + 1) % 3, 0), &mut room).unwrap();
        std::hint::black_box(&room);
    }
}

fn meets(world: &World, _: &Region) {
    loop {
        world.barrier().unwrap();
    }
}

fn adds(world: &World, region: &Region) {
    loop {
        world.fetch_add(region.at::<i64>(1, 0), 1).unwrap();
    }
}

fn on_three() -> Option<Ranks> {
    // Ranks and agents are this program, too, and have hosts.
    let here = armci_core::job::is_rank() || std::env::var_os("ARMCI_TEST_AGENT").is_some() || Hosts::make(1).is_some();
    here.then(|| Ranks::new(3).hosts(3).timeout(Duration::from_secs(100)))
}

#[test]
fn a_host_whose_line_is_pulled_is_named_while_ranks_communicate() {
    let Some(job) = on_three() else { return };
    ends_by_name(job, |hosts| hosts.pull(1), gets);
}

#[test]
fn a_host_that_is_unplugged_is_named_while_ranks_meet() {
    let Some(job) = on_three() else { return };
    ends_by_name(job, |hosts| hosts.unplug(1), meets);
}

#[test]
fn a_host_from_which_nothing_comes_any_more_is_named_while_ranks_ask_it() {
    let Some(job) = on_three() else { return };
    ends_by_name(job.weather(BAD).env("ARMCI_PROGRESS", "none"), |hosts| hosts.lose(1), adds);
}
