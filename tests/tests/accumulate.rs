//! Accumulates of all ranks at once: nothing is lost, whatever path each takes.

use armci_core::config::{Path, Protocol};
use armci_core::{Accumulate, Strided, World};
use num_complex::{Complex32, Complex64};
use tests::{Ranks, matrix};

/// Every rank adds the same block many times; the sums are whole numbers, so exact in any order.
fn all_add<T: Accumulate + std::fmt::Debug>(world: &World, one: T, two: T, expected: impl Fn(usize) -> T) {
    const LEN: usize = 3_000;
    const TIMES: usize = 10;
    let region = world.allocate(LEN * size_of::<T>()).unwrap();
    if world.rank() == 0 {
        world.put(&[T::zeroed(); LEN], region.at(0, 0)).unwrap();
    }
    world.barrier().unwrap();
    let ones = [one; LEN];
    for _ in 0..TIMES {
        world.accumulate(two, &ones, region.at(0, 0)).unwrap();
    }
    world.barrier().unwrap();
    let mut sums = [T::zeroed(); LEN];
    world.get(region.at(0, 0), &mut sums).unwrap();
    assert_eq!(sums, [expected(2 * TIMES * world.size()); LEN]);
    world.free(region).unwrap();
}

#[test]
fn sums_are_exact_in_every_type() {
    matrix(|world| {
        all_add(world, 1i32, 2, |sum| sum as i32);
        all_add(world, 1i64, 2, |sum| sum as i64);
        all_add(world, 1f32, 2.0, |sum| sum as f32);
        all_add(world, 1f64, 2.0, |sum| sum as f64);
        // (1 + i) * 2 each time.
        all_add(world, Complex32::new(1.0, 1.0), Complex32::new(2.0, 0.0), |sum| {
            Complex32::new(sum as f32, sum as f32)
        });
        all_add(world, Complex64::new(1.0, 1.0), Complex64::new(2.0, 0.0), |sum| {
            Complex64::new(sum as f64, sum as f64)
        });
    });
}

/// Both paths at once: odd ranks by message, even ones in place, on the same elements.
#[test]
fn both_paths_exclude_each_other() {
    for ranks in [2, 3, 4] {
        Ranks::new(ranks).run(|world| {
            const LEN: usize = 20_000;
            const ROUNDS: usize = 40;
            if world.rank() % 2 == 1 {
                world.set_protocol(Protocol { accumulate: Path::Am, ..world.protocol() });
            }
            let region = world.allocate(8 * LEN).unwrap();
            world.put(&vec![0.0f64; LEN], region.at(world.rank(), 0)).unwrap();
            world.barrier().unwrap();
            let ones = vec![1.0f64; LEN];
            for round in 0..ROUNDS {
                world.accumulate(1.0, &ones, region.at(round % world.size(), 0)).unwrap();
            }
            world.barrier().unwrap();
            let mut sums = vec![0.0f64; LEN];
            world.get(region.at(world.rank(), 0), &mut sums).unwrap();
            let rounds = (0..ROUNDS).filter(|round| round % world.size() == world.rank()).count();
            assert!(sums.iter().all(|sum| *sum == (rounds * world.size()) as f64));
            world.free(region).unwrap();
        });
    }
}

/// Rows that straddle lock stripes, by all ranks.
#[test]
fn strided_accumulates_lose_nothing() {
    matrix(|world| {
        const ROWS: usize = 40;
        const STRIDE: usize = 1_200;
        let region = world.allocate(8 * ROWS * STRIDE).unwrap();
        world.put(&vec![0i64; ROWS * STRIDE], region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        let shape = Strided { counts: &[1_000, ROWS], local: &[1_000], remote: &[STRIDE] };
        let source: Vec<i64> = (0..1_000 * ROWS as i64).collect();
        for target in 0..world.size() {
            world.accumulate_strided(-2, &source, region.at(target, 100), &shape).unwrap();
        }
        world.barrier().unwrap();
        let mut sums = vec![0i64; ROWS * STRIDE];
        world.get(region.at(world.rank(), 0), &mut sums).unwrap();
        for (at, sum) in sums.into_iter().enumerate() {
            let (row, col) = (at / STRIDE, at % STRIDE);
            let inside = (100..1_100).contains(&col);
            let expected = if inside { -2 * (row * 1_000 + col - 100) as i64 * world.size() as i64 } else { 0 };
            assert_eq!(sum, expected, "row {row}, column {col}");
        }
        world.free(region).unwrap();
    });
}
