//! Threads of one rank beside ranks: as many workers, all at once, each at its own words of rank 0, which sleeps in a
//! barrier. Once they are attached threads of rank 1, each with a context of its own; once they are ranks (paper 004
//! asks that this make no difference).

use std::sync::Barrier;

use armci_core::{GlobalPtr, World};

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::{Effort, Side, in_turn, side};

/// Workers: with rank 0 asleep, one for each of two cores.
pub const WORKERS: usize = 2;

/// What each worker does, in turn.
const OPERATIONS: [&str; 5] = ["each_put_8", "each_get_8", "each_put_4k", "each_get_4k", "each_add"];

/// Calls per sample.
const BATCH: usize = 200;

/// Bytes of rank 0's memory that belong to one worker.
const SHARE: usize = 64 << 10;

/// A worker's measurement: each operation's time per call.
fn work(world: &World, effort: Effort, share: GlobalPtr<u8>) -> Result<Vec<Option<Figure>>> {
    let (from, mut small, mut large) = (vec![1u8; 4096], [0u8; 8], vec![0u8; 4096]);
    let word: GlobalPtr<i64> = share.add(8192).cast();
    let mut sides: Vec<Side<'_, armci_core::Error>> = vec![
        side(|| world.put(&from[..8], share)),
        side(|| world.get(share, &mut small)),
        side(|| world.put(&from, share.add(4096))),
        side(|| world.get(share.add(4096), &mut large)),
        side(|| world.fetch_add(word, 1).map(drop)),
    ];
    Ok(in_turn(effort.samples, BATCH, &mut sides)?)
}

/// Adds the workers' mean of each operation, as `OPERATION_<suffix>`.
fn report(suffix: &str, workers: &[Vec<Option<Figure>>], figures: &mut Figures) {
    for (index, operation) in OPERATIONS.iter().enumerate() {
        let of_workers = workers.iter().filter_map(|worker| worker[index]);
        figures.add(format!("{operation}_{suffix}"), of_workers.reduce(|a, b| a.mean(b)));
    }
}

/// Measures with threads of rank 1: `OPERATION_threads`; collective over two ranks.
///
/// # Errors
/// What the operations say.
pub fn threads(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let region = world.allocate(SHARE * WORKERS)?;
    world.barrier()?;
    if world.rank() == 1 {
        let (threads, together) = (world.threads(), Barrier::new(WORKERS));
        let worker = |place: GlobalPtr<u8>| -> Result<Vec<Option<Figure>>> {
            let world = threads.attach()?;
            together.wait();
            let figures = work(&world, effort, place)?;
            world.detach()?;
            Ok(figures)
        };
        let measured: Result<Vec<_>> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..WORKERS)
                .map(|number| {
                    let (worker, place) = (&worker, region.at(0, SHARE * number));
                    scope.spawn(move || worker(place))
                })
                .collect();
            started.into_iter().map(|thread| thread.join().expect("a worker panicked")).collect()
        });
        report("threads", &measured?, figures);
    }
    Ok(world.free(region)?)
}

/// Measures with a rank for each worker: `OPERATION_ranks`; collective over one rank more.
///
/// # Errors
/// What the operations say.
pub fn ranks(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let region = world.allocate(SHARE * WORKERS)?;
    let workers = world.split((world.rank() != 0).then_some(0), 0)?;
    world.barrier()?;
    if let Some(workers) = workers {
        workers.synchronize()?;
        let mine = work(world, effort, region.at(0, SHARE * workers.rank()))?;
        let flat: Vec<f64> = mine.iter().flatten().flat_map(|figure| [figure.median, figure.p99]).collect();
        let all = workers.all_gather(&flat)?;
        if workers.rank() == 0 && flat.len() == 2 * OPERATIONS.len() {
            let of_one = |flat: &[f64]| {
                flat.as_chunks::<2>().0.iter().map(|&[median, p99]| Some(Figure { median, p99 })).collect()
            };
            let measured: Vec<Vec<_>> = all.chunks(flat.len()).map(of_one).collect();
            report("ranks", &measured, figures);
        }
        workers.free()?;
    }
    Ok(world.free(region)?)
}
