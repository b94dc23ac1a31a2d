//! Benchmarks that the table takes too, by number of ranks or with other settings: threads beside ranks, the cache of
//! regions, start-up, memory; and what contexts and regions cost, which the model asks for.

use armci_core::World;

use crate::error::Result;
use crate::figure::Figures;
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::stats::{Stats, batches, in_step};
use crate::study::Wanted;
use crate::{cached, footprint, start, threads as workers};

/// Two threads of one rank, or two ranks, beside one that sleeps.
pub fn threads_jobs(wanted: &Wanted) -> Vec<Setup> {
    let part = |part: &str, ranks: usize| {
        let one = Wanted { ranks: vec![ranks], ..wanted.clone() };
        let jobs = one.each("threads", &[ranks], &["rma"], &["thread"]);
        jobs.into_iter().map(|job| Setup { part: part.into(), ..job }).collect::<Vec<_>>()
    };
    [part("threads", 2), part("ranks", 1 + workers::WORKERS)].concat()
}

/// Measures one of the two; collective.
///
/// # Errors
/// What the operations say.
pub fn threads(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let mut figures = Figures::default();
    let measure = if setup.part == "threads" { workers::threads } else { workers::ranks };
    measure(world, setup.effort(), &mut figures)?;
    notes.figures("threads", &figures);
    Ok(())
}

/// All places in tables, in the cache, or not in the cache.
pub fn cache_jobs(wanted: &Wanted) -> Vec<Setup> {
    let ways: [(&str, &[(&str, &str)]); 3] = [
        ("by_table", &[]),
        ("cached", &[("ARMCI_RESOLVE", "cache")]),
        ("missed", &[("ARMCI_RESOLVE", "cache"), ("ARMCI_REGION_CACHE", "1")]),
    ];
    let each = wanted.each("cache", &[2], &["rma"], &["thread"]);
    let mut jobs = Vec::new();
    for (part, settings) in ways {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let like = |job: &Setup| Setup { part: part.into(), settings: settings.clone(), ..job.clone() };
        jobs.extend(each.iter().map(like));
    }
    jobs
}

/// Measures puts to 64 regions in turn; collective.
///
/// # Errors
/// What the operations say.
pub fn cache(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let mut figures = Figures::default();
    cached::measure(world, setup.effort(), &setup.part, &mut figures)?;
    notes.figures("cache", &figures);
    Ok(())
}

/// Measures the start of this job; the first thing a rank does. Collective.
///
/// # Errors
/// What the barrier says.
pub fn startup(world: &World, _: &Setup, notes: &mut Notes) -> Result<()> {
    let mut figures = Figures::default();
    start::measure(world, &mut figures)?;
    if let Some(took) = figures.get(&format!("start_{}", world.size())) {
        notes.add(Record::new("startup/to_first_barrier", took.median, "ns").at("ranks", world.size() as f64));
    }
    Ok(())
}

/// Measures memory, and what contexts, regions and first contacts take; collective.
///
/// # Errors
/// What the operations say.
pub fn memory(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    constants(world, setup, notes)?;
    let mut figures = Figures::default();
    footprint::measure(world, &mut figures)?;
    for (name, figure) in figures.from("") {
        let unit = if name.starts_with("descriptors") { "count" } else { "bytes" };
        notes.add(Record::new(format!("memory/{name}"), figure.median, unit).at("ranks", world.size() as f64));
    }
    for name in ["resident", "tables"] {
        let grown = figures.get(&format!("{name}_after")).zip(figures.get(&format!("{name}_before")));
        if let Some((after, before)) = grown {
            let each = (after.median - before.median) / footprint::ALLOCATIONS as f64;
            let id = format!("memory/{name}_per_allocation");
            notes.add(Record::new(id, each.max(0.0), "bytes").at("ranks", world.size() as f64));
        }
    }
    Ok(())
}

/// What the model's equations ask for: the time of a context, of a region, of a first contact, and a context's memory.
fn constants(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let samples = if setup.quick { 10 } else { 50 };
    // A first contact with each other rank, before anything else is sent there.
    let region = world.allocate(64)?;
    world.barrier()?;
    if world.rank() == 0 {
        let contact = |rank: usize| -> Result<f64> {
            let start = std::time::Instant::now();
            world.put_value(1u64, region.at(rank, 0))?;
            world.fence(rank)?;
            Ok(start.elapsed().as_secs_f64() * 1e9)
        };
        let others = 1..world.size();
        let first: Vec<f64> = others.clone().map(contact).collect::<Result<_>>()?;
        let again: Vec<f64> = others.map(contact).collect::<Result<_>>()?;
        let gains = first.iter().zip(&again).map(|(first, again)| (first - again).max(0.0)).collect();
        if let Some(stats) = Stats::of(gains) {
            notes.add(Record::time("memory/first_contact", stats).at("ranks", world.size() as f64));
        }
        let before = world.statistics().node_memory;
        let threads = world.threads();
        let attached = std::thread::scope(|scope| {
            let attach = || -> Result<(u64, Option<Stats>)> {
                let one = threads.attach()?;
                let with = one.statistics().node_memory;
                one.detach()?;
                let took = batches(samples, setup.effort().window, || threads.attach()?.detach())?;
                Ok((with, took))
            };
            scope.spawn(attach).join().expect("a thread panicked")
        });
        let (with, took) = attached?;
        if let Some(took) = took {
            notes.add(Record::time("memory/context_time", took).at("ranks", world.size() as f64));
        }
        let bytes = Record::new("memory/context_bytes", with.saturating_sub(before) as f64, "bytes");
        notes.add(bytes.at("ranks", world.size() as f64));
    }
    world.barrier()?;
    world.free(region)?;
    let made = in_step(samples, 1, || world.allocate(64).and_then(|region| world.free(region)))?;
    if world.rank() == 0 {
        notes.time("memory/region_time", "ranks", world.size(), made, setup.limit("line"));
    }
    Ok(())
}
