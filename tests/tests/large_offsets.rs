//! Offsets, strides, spans and lengths beyond 31 and 32 bits.
//!
//! One rank, since every rank populates the largest part: a region of 4 GiB and more on one of two ranks costs 8.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use armci_core::config::{Path, Protocol};
use armci_core::{Region, Segments, Strided, World, job};
use tests::Ranks;

const GIB: usize = 1 << 30;
const UNTOUCHED: i64 = 0x5afe;

/// Runs `body` on one rank, twice, with a region of `bytes`, unless the machine has not that much memory to spare.
fn with_region(bytes: usize, body: impl Fn(&World, &Region)) {
    // One at a time: together they would need more than either has asked for.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let needed = bytes + GIB;
    let available = available_memory();
    if available < needed && !job::is_rank() {
        println!("SKIPPED: {needed} bytes of memory are needed, {available} are available");
        return;
    }
    Ranks::new(1).timeout(Duration::from_secs(300)).run(|world| {
        let started = Instant::now();
        let region = world.allocate(bytes).unwrap();
        println!("{} MiB were populated in {:?}", bytes >> 20, started.elapsed());
        for path in [Path::Rma, Path::Am] {
            world.set_protocol(Protocol::all(path));
            let started = Instant::now();
            body(world, &region);
            println!("{path:?} took {:?}", started.elapsed());
        }
        world.free(region).unwrap();
    });
}

/// Bytes of memory that new programs may use.
fn available_memory() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Transfers of all kinds across the byte at `border`; longer than a message, and than what is streamed past caches.
fn across(world: &World, region: &Region, border: usize) {
    for words in [3, 5_000, 300_000] {
        // A third lies before the border.
        let first = border / 8 - words / 3;
        let at = region.at::<i64>(0, first);
        let values: Vec<i64> = (0..words as i64).map(|value| value - 7).collect();
        let mut seen = vec![0; words];
        world.put(&vec![-1i64; words + 2], region.at(0, first - 1)).unwrap();
        world.put(&values, at).unwrap();
        world.accumulate(3, &values, at).unwrap();
        world.get(at, &mut seen).unwrap();
        assert!(seen.iter().zip(&values).all(|(seen, value)| *seen == 4 * value), "{words} words across {border:#x}");
        let around = [first - 1, first + words].map(|word| world.get_value::<i64>(region.at(0, word)).unwrap());
        assert_eq!(around, [-1; 2]);
    }
    let at = region.at::<i64>(0, border / 8);
    world.put_value(1, at).unwrap();
    assert_eq!(world.fetch_add(at, 5).unwrap(), 1);
    world.put_notify(&[9i64; 4], region.at(0, border / 8 - 4), at, 77).unwrap();
    world.wait_value(at, 77).unwrap();
    assert_eq!(world.get_value::<i64>(region.at(0, border / 8 - 1)).unwrap(), 9);
    nothing_at_the_beginning(world, region);
}

/// What an offset cut to 31 or 32 bits would write first.
fn nothing_at_the_beginning(world: &World, region: &Region) {
    assert_eq!(world.get_value::<i64>(region.at(0, 0)).unwrap(), UNTOUCHED);
}

/// A patch of `rows` rows, 1 GiB less 1 KiB apart, so that the third lies across 2 GiB and the fifth across 4.
fn far_apart(world: &World, region: &Region, rows: usize) {
    const ROW: usize = 700;
    const FIRST: usize = 1536 / 8;
    const STRIDE: usize = (GIB - 1024) / 8;
    let shape = Strided { counts: &[ROW, rows], local: &[ROW], remote: &[STRIDE] };
    let from = region.at::<i64>(0, FIRST);
    let values: Vec<i64> = (0..(ROW * rows) as i64).collect();
    let mut seen = vec![0; ROW * rows];
    world.put_strided(&values, from, &shape).unwrap();
    world.accumulate_strided(2, &values, from, &shape).unwrap();
    world.get_strided(from, &mut seen, &shape).unwrap();
    assert!(seen.iter().zip(&values).all(|(seen, value)| *seen == 3 * value), "strided");
    for row in 0..rows {
        let place = region.at::<i64>(0, FIRST + row * STRIDE + ROW - 1);
        assert_eq!(world.get_value(place).unwrap(), 3 * ((row + 1) * ROW - 1) as i64, "row {row}");
    }
    // The same places as a list, the last first.
    let places: Vec<_> = (0..rows).rev().map(|row| from.add(row * STRIDE)).collect();
    let local: Vec<_> = (0..rows).map(|row| row * ROW).collect();
    let segments = Segments { count: ROW, local: &local, remote: &places };
    world.put_vector(&values, &segments).unwrap();
    world.accumulate_vector(-3, &values, &segments).unwrap();
    world.get_vector(&mut seen, &segments).unwrap();
    assert!(seen.iter().zip(&values).all(|(seen, value)| *seen == -2 * value), "vector");
    nothing_at_the_beginning(world, region);
}

/// All of a region at once, by a contiguous put and by a strided one out of a single row.
fn all_at_once(world: &World, region: &Region, bytes: usize) {
    // Never written to, so it costs no memory.
    let zeros = vec![0u8; bytes - 16];
    let ends = [8, bytes - 9];
    ends.iter().for_each(|end| world.put_value(0xffu8, region.at(0, *end)).unwrap());
    world.put(&zeros, region.at(0, 8)).unwrap();
    drop(zeros);
    for end in ends {
        assert_eq!(world.get_value::<u8>(region.at(0, end)).unwrap(), 0);
    }
    const ROW: usize = 1 << 17;
    let row: Vec<u64> = (1..=ROW as u64).collect();
    let rows = bytes / 8 / ROW;
    let shape = Strided { counts: &[ROW, rows], local: &[0], remote: &[ROW] };
    world.put_strided(&row, region.at(0, 0), &shape).unwrap();
    for place in [0, 1, rows / 2, rows - 1] {
        assert_eq!(world.get_value::<u64>(region.at(0, place * ROW + 9)).unwrap(), 10);
    }
    let moved = world.statistics().put.bytes;
    assert!(moved > 2 * (bytes - 16) as u64, "{moved}");
}

#[test]
fn beyond_31_bits() {
    with_region(2 * GIB + (8 << 20), |world, region| {
        world.put_value(UNTOUCHED, region.at(0, 0)).unwrap();
        across(world, region, 2 * GIB);
        far_apart(world, region, 3);
    });
}

#[test]
fn beyond_32_bits() {
    const BYTES: usize = 4 * GIB + (8 << 20);
    with_region(BYTES, |world, region| {
        world.put_value(UNTOUCHED, region.at(0, 0)).unwrap();
        across(world, region, 2 * GIB);
        across(world, region, 4 * GIB);
        far_apart(world, region, 5);
        all_at_once(world, region, BYTES);
    });
}
