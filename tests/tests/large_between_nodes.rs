//! One transfer of more than 2 GiB between nodes: by remote access, and by message. Run by `make test-nodes`, since it needs
//! seven GiB of memory and half a minute.

use std::time::Duration;

use armci_core::World;
use armci_core::config::{Path, Protocol};
use tests::Ranks;

/// Beyond what an `int` counts, and no multiple of what is sent in one piece.
const WORDS: usize = (1 << 31) / 8 + 12_345;

/// Bytes of memory that new programs may use.
fn available_memory() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

fn there_and_back(world: &World, protocol: Path) {
    world.set_protocol(Protocol::all(protocol));
    // The far rank's part alone is large.
    let region = world.allocate(if world.rank() == 1 { 8 * WORDS } else { 8 }).unwrap();
    if world.rank() == 0 {
        let number = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut data: Vec<u64> = (0..WORDS).map(number).collect();
        world.put(&data, region.at(1, 0)).unwrap();
        world.fence_all().unwrap();
        data.fill(0);
        world.get(region.at(1, 0), &mut data).unwrap();
        assert_eq!(data.iter().enumerate().find(|(i, found)| **found != number(*i)), None, "{protocol:?}");
        // Behind the border alone, too.
        let mut last = [0; 3];
        world.get(region.at(1, WORDS - 3), &mut last).unwrap();
        assert_eq!(last, [3, 2, 1].map(|from| number(WORDS - from)));
    }
    world.barrier().unwrap();
    world.free(region).unwrap();
}

#[test]
#[ignore = "needs 7 GiB of memory; make test-nodes runs it"]
fn more_than_two_gib_go_in_one_call() {
    const NEEDED: usize = 7 << 30;
    let available = available_memory();
    if available < NEEDED && !armci_core::job::is_rank() {
        println!("SKIPPED: {NEEDED} bytes of memory are needed, {available} are available");
        return;
    }
    Ranks::new(2).nodes(2).timeout(Duration::from_secs(300)).run(|world| {
        there_and_back(world, Path::Rma);
        there_and_back(world, Path::Am);
    });
}
