//! The end of the watch: all ranks of a node show what was noted of them, and the first writes it.
//!
//! Made by [`World::finalize`], when nothing is under way any more and nobody serves. Everything goes through the
//! exchange, piece by piece, so that no rank holds what all have: of a timeline the first rank writes each piece as it
//! comes, of statistics it keeps the sum. Ranks of other nodes share no memory with these: each node has a report and a
//! file of its own. A file that cannot be written to its end is a warning.

use std::io::{self, Write};

use bytemuck::{Pod, Zeroable};

use super::summary::{KINDS, SERVERS, Served, Share, Summary};
use super::tally::{Counts, RegionTally, Tally};
use super::timeline::{Event, Output};
use super::{Kind, Own, Watching, now, report};
use crate::am::origin::Origin;
use crate::gathering::Neighbours;
use crate::node::exchange::EXCHANGE_BYTES;
use crate::world::World;

/// A tally of a kind of call or message.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbered {
    kind: u64,
    tally: Tally,
}

fn numbered(tallies: &[Tally]) -> Vec<Numbered> {
    let some = tallies.iter().enumerate().filter(|(_, tally)| tally.calls != 0);
    some.map(|(kind, tally)| Numbered { kind: kind as u64, tally: *tally }).collect()
}

/// What the ranks of this node are to tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    stats: bool,
    trace: bool,
}

impl Asked {
    /// Whether anything is.
    pub(crate) fn anything(self) -> bool {
        self.stats || self.trace
    }
}

/// Agrees on what is to be told, in a round in which all ranks of the node meet: settings may differ.
pub(crate) fn agree(world: &World, all: &Neighbours, output: Option<&Output>) -> Asked {
    let mine = [world.config().stats, output.is_some()].map(u8::from);
    let round = all.round(world.origin(), &mine);
    let mut asked = [0; 2];
    for member in 0..all.len() {
        let mut theirs = [0; 2];
        round.read(member, 0, &mut theirs);
        asked = std::array::from_fn(|which| asked[which] | theirs[which]);
    }
    Asked { stats: asked[0] != 0, trace: asked[1] != 0 }
}

/// Shows the values of every rank to the first, as many as each has, piece by piece: `take` is called there with a
/// member and values of it, each one's in order.
fn show_first<T: Pod>(origin: &Origin, all: &Neighbours, mine: &[T], mut take: impl FnMut(usize, &[T])) {
    const { assert!(size_of::<T>() <= EXCHANGE_BYTES, "a value fits a round") };
    let round = all.round(origin, bytemuck::bytes_of(&(mine.len() as u64)));
    let lengths: Vec<u64> = (0..all.len())
        .map(|member| {
            let mut len = 0;
            round.read(member, 0, bytemuck::bytes_of_mut(&mut len));
            len
        })
        .collect();
    let most = lengths.iter().copied().max().unwrap_or(0) as usize;
    let fit = EXCHANGE_BYTES / size_of::<T>();
    let readers = if all.me() == 0 { all.len() } else { 0 };
    let mut piece = vec![T::zeroed(); if readers == 0 { 0 } else { fit.min(most) }];
    for start in (0..most).step_by(fit) {
        let of = |len: usize| start.min(len)..(start + fit).min(len);
        let round = all.round(origin, bytemuck::cast_slice(&mine[of(mine.len())]));
        for (member, len) in lengths.iter().enumerate().take(readers) {
            let piece = &mut piece[..of(*len as usize).len()];
            round.read(member, 0, bytemuck::cast_slice_mut(piece));
            if !piece.is_empty() {
                take(member, piece);
            }
        }
    }
}

/// Tells what is asked for. Collective over the ranks of a node.
pub(crate) fn tell(
    world: &World,
    all: &Neighbours,
    asked: Asked,
    output: Option<Output>,
    progress: progress_thread::Statistics,
) {
    let watching = &*world.shared().watching;
    if asked.stats {
        write_report(world, all, watching, progress);
    }
    if asked.trace {
        write_timeline(world, all, watching, output);
    }
}

/// What this rank counted, all its threads together.
fn counted(world: &World, watching: &Watching) -> (Counts, Own, u64) {
    let mut gone = watching.gone();
    let mut counts = gone.counts.take().unwrap_or_else(Counts::new);
    if let Some(tallies) = world.watch().and_then(|watch| watch.tallies.as_ref()) {
        tallies.add_to(&mut counts);
    }
    let mut own = gone.own;
    own.add(Own::of(world.origin(), world.cache()));
    (counts, own, gone.threads)
}

fn write_report(world: &World, all: &Neighbours, watching: &Watching, progress: progress_thread::Statistics) {
    let origin = world.origin();
    let (counts, Own { conflicts, cache }, threads) = counted(world, watching);
    let ledger = world.node().ledger();
    let share = Share {
        nanoseconds: now() - watching.joined,
        waits: conflicts.waits,
        avoided: conflicts.avoided,
        false_waits: conflicts.false_waits,
        fences: conflicts.fences,
        hits: cache.hits,
        misses: cache.misses,
        evictions: cache.evictions,
        rounds: progress.rounds,
        fruitful: progress.fruitful,
        parks: progress.parks,
        granted: ledger.granted(),
        peak: ledger.peak(),
        threads,
        in_calls: counts.kinds.iter().map(|tally| tally.times.total()).sum(),
        in_barriers: counts.kinds[Kind::Barrier as usize].times.total(),
    };
    let who = world.node().who();
    let mut sum = Summary {
        nodes: who.nodes,
        node: who.node,
        first_rank: who.rank - who.local_rank,
        counts: Counts::of_all(),
        served: Served(vec![Tally::zeroed(); SERVERS * KINDS]),
        shares: vec![Share::default(); all.len()],
    };
    show_first(origin, all, &[share], |member, shares| sum.shares[member] = shares[0]);
    show_first(origin, all, &numbered(&counts.kinds), |_, tallies| {
        tallies.iter().for_each(|Numbered { kind, tally }| sum.counts.merge_kind(*kind as usize, tally));
    });
    let regions: Vec<RegionTally> = counts.regions().copied().collect();
    show_first(origin, all, &regions, |_, regions| {
        regions.iter().for_each(|region| sum.counts.merge_region(region));
    });
    let served = world.service().watch().and_then(|watch| watch.notes().tallies.take()).unwrap_or_default();
    show_first(origin, all, &numbered(&served), |_, tallies| {
        tallies.iter().for_each(|Numbered { kind, tally }| sum.served.0[*kind as usize].merge(tally));
    });
    if all.me() == 0 {
        // Without a reader of standard error there is nobody to tell.
        let _ = io::stderr().write_all(report::text(&sum).as_bytes());
    }
}

fn write_timeline(world: &World, all: &Neighbours, watching: &Watching, mut output: Option<Output>) {
    let origin = world.origin();
    let mut events = std::mem::take(&mut watching.gone().events);
    if let Some(watch) = world.watch() {
        events.append(&mut watch.events.borrow_mut());
    }
    if let Some(served) = world.service().watch() {
        events.append(&mut served.notes().events);
    }
    // Of those that begin at once, the longer ones hold the others.
    events.sort_by_key(|event| (event.begin, std::cmp::Reverse(event.nanoseconds())));
    let lacking = watching.room.as_ref().map_or(0, |room| room.lacking());
    let start = events.first().map_or(u64::MAX, |event| event.begin);
    let mut heads = vec![[0; 2]; all.len()];
    show_first(origin, all, &[[start, lacking]], |member, head: &[[u64; 2]]| heads[member] = head[0]);

    let first_rank = world.rank() - all.me();
    let lacking: Vec<u64> = heads.iter().map(|[_, lacking]| *lacking).collect();
    let start = heads.iter().map(|[start, _]| *start).min().unwrap_or(0);
    let mut written = output.as_mut().map_or(Ok(()), |output| output.begin(start, first_rank, &lacking));
    show_first(origin, all, &events, |member, events: &[Event]| {
        if let (Some(output), Ok(())) = (&mut output, &written) {
            written = output.write(first_rank + member, events);
        }
    });
    let Some(output) = &mut output else { return };
    let path = output.path.clone();
    let path = path.display();
    let written = written.and_then(|()| output.finish());
    let lacking = lacking.iter().sum::<u64>();
    tracing::info!(file = %path, lacking, "the timeline is written");
    // Without a reader of standard error there is nobody to tell.
    let _ = match written {
        Err(error) => writeln!(io::stderr(), "armci: warning: the timeline {path} is not complete: {error}"),
        Ok(()) if lacking != 0 => writeln!(
            io::stderr(),
            "armci: warning: the timeline {path} lacks the last {lacking} events; ARMCI_TRACE_EVENTS makes room for more"
        ),
        Ok(()) => Ok(()),
    };
}
