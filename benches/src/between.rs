//! Two ranks on two nodes of this machine, over TCP on the loopback interface: what rank 1 takes to reach rank 0, while
//! that waits in a call (it is *attentive*), and while it computes and its progress thread answers.
//!
//! Two places of the progress thread are tried. Bound to cores, as jobs are on two of them, it *shares* its rank's. Or
//! it has a core *to itself*: then rank 0 computes on the core from which rank 1 asks, so rank 1's samples are those
//! parts of its time slices in which it ran; medians do not see where they end, the bad ends do.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use armci_core::{GlobalPtr, Strided, World};

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::line::{Cores, pin};
use crate::timing::{Effort, Pages, compute_for, in_turn, sample, side, spin_for};

/// What both sides communicate through: the bare libfabric program, too. Before libfabric 1.18 it is `ofi_rxm` over tcp that
/// goes by this name.
pub const PROVIDER: &str = "tcp:lo";

/// The same, with queues to sleep over, for that program.
pub const PROVIDER_TO_SLEEP_OVER: &str = "+tcp:lo";

/// The setting that says so.
pub const FABRIC: (&str, &str) = ("ARMCI_FABRIC", PROVIDER);

/// Transfers of a megabyte under way at once, and how many make a sample; as in `peers/libfabric.c`.
const STREAM: usize = 8;
const STREAMED: usize = 16;
/// Puts of 8 bytes that make a sample.
const FLOW: usize = 512;
/// Words of a row of 64 bytes; the patch is every other row of twice the memory.
const ROW: usize = 8;
const ROWS: usize = MIB / 64;

type Call<'a> = Box<dyn FnMut() -> armci_core::Result<()> + 'a>;

/// Measures it all with the progress thread on its rank's core; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, 4 * MIB)?;
    let there = target.on(0);
    if world.rank() == 1 {
        attentive(world, there, effort, figures)?;
    }
    let kept = while_it_computes(world, effort, "shared", &mut small(world, there), figures)?;
    figures.add("far_kept_shared", kept);
    let (ones, mut big) = (Pages::new(MIB, 1.0), Pages::new(MIB, 0.0));
    let mut large: [(&str, Call<'_>); 3] = [
        ("far_put_1m", Box::new(|| world.put(&ones.numbers()[..MIB / 8], there).and_then(|()| world.fence(0)))),
        (
            "far_acc_1m",
            Box::new(|| world.accumulate(1.0, &ones.numbers()[..MIB / 8], there).and_then(|()| world.fence(0))),
        ),
        ("far_get_1m", Box::new(|| world.get(there, &mut big.numbers_mut()[..MIB / 8]))),
    ];
    while_it_computes(world, effort, "busy", &mut large, figures)?;
    drop(large);
    target.free(world)
}

/// One figure is held against two others.
pub fn summarize(figures: &mut Figures) {
    figures.add("far_get_8_again", figures.get("far_get_8"));
}

/// Measures small operations with the progress thread on the other core than its rank's computation.
///
/// # Errors
/// What the operations say.
pub fn served_on_its_own_core(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let cores = Cores::find()?;
    pin(cores.origin);
    let target = Target::allocate(world, 4096)?;
    while_it_computes(world, effort, "apart", &mut small(world, target.on(0)), figures)?;
    target.free(world)
}

/// The small operations, each complete at its target.
fn small<'a>(world: &'a World, there: GlobalPtr<f64>) -> [(&'static str, Call<'a>); 3] {
    let (mut word, counter) = ([0.0], there.cast::<i64>());
    [
        ("far_get_8", Box::new(move || world.get(there, &mut word))),
        ("far_put_8", Box::new(move || world.put(&[1.0], there).and_then(|()| world.fence(0)))),
        ("far_add", Box::new(move || world.fetch_add(counter.add(1), 1).map(drop))),
    ]
}

/// Rank 0 is in a barrier meanwhile.
fn attentive(world: &World, there: GlobalPtr<f64>, effort: Effort, figures: &mut Figures) -> Result<()> {
    for (name, mut call) in small(world, there) {
        figures.add(name, sample(10 * effort.samples, 1, &mut call)?);
    }
    let puts = sample(effort.samples / 10 + 5, 1, || {
        (0..FLOW).try_for_each(|turn| world.put(&[1.0], there.add(turn % 64)))?;
        world.fence(0)
    })?;
    figures.add("far_put_8_flow", puts.map(|figure| figure.scaled(1.0 / FLOW as f64)));
    streams(world, there, effort, figures)?;
    rows(world, there, effort, figures)
}

/// Megabytes, several under way.
fn streams(world: &World, there: GlobalPtr<f64>, effort: Effort, figures: &mut Figures) -> Result<()> {
    let mut idle: Vec<Vec<f64>> = (0..STREAM).map(|_| vec![1.0; MIB / 8]).collect();
    let place = |turn: usize| there.add(turn % 4 * (MIB / 8));
    let each = |figure: Option<Figure>| figure.map(|figure| figure.scaled(1.0 / STREAMED as f64));
    let mut under_way = VecDeque::new();
    let puts = sample(effort.samples / 20 + 5, 1, || {
        for turn in 0..STREAMED {
            let buffer = match idle.pop() {
                Some(buffer) => buffer,
                None => next(&mut under_way)?,
            };
            under_way.push_back(world.put_nb(buffer, place(turn))?);
        }
        while !under_way.is_empty() {
            idle.push(next(&mut under_way)?);
        }
        world.fence(0)
    })?;
    figures.add("far_put_1m", each(puts));
    let gets = sample(effort.samples / 20 + 5, 1, || {
        for turn in 0..STREAMED {
            let buffer = match idle.pop() {
                Some(buffer) => buffer,
                None => next(&mut under_way)?,
            };
            under_way.push_back(world.get_nb(place(turn), buffer)?);
        }
        while !under_way.is_empty() {
            idle.push(next(&mut under_way)?);
        }
        armci_core::Result::Ok(())
    })?;
    figures.add("far_get_1m", each(gets));
    Ok(())
}

type UnderWay = VecDeque<armci_core::Handle<Vec<f64>>>;

/// The buffer of the oldest transfer, once that is over.
fn next(under_way: &mut UnderWay) -> armci_core::Result<Vec<f64>> {
    match under_way.pop_front() {
        Some(handle) => handle.wait(),
        None => Ok(vec![1.0; MIB / 8]),
    }
}

/// A megabyte in rows of 64 bytes, in turn with one in one piece.
fn rows(world: &World, there: GlobalPtr<f64>, effort: Effort, figures: &mut Figures) -> Result<()> {
    let shape = Strided { counts: &[ROW, ROWS], local: &[2 * ROW], remote: &[2 * ROW] };
    let (out, mut back, mut again) = (Pages::new(2 * MIB, 1.0), Pages::new(2 * MIB, 0.0), Pages::new(MIB, 0.0));
    let mut sides = [
        side(|| world.put(&out.numbers()[..MIB / 8], there).and_then(|()| world.fence(0))),
        side(|| world.put_strided(out.numbers(), there, &shape).and_then(|()| world.fence(0))),
        side(|| world.get(there, &mut again.numbers_mut()[..MIB / 8])),
        side(|| world.get_strided(there, back.numbers_mut(), &shape)),
    ];
    let taken = in_turn(effort.samples / 4 + 5, 1, &mut sides)?;
    for (name, figure) in ["far_put_once", "far_put_rows", "far_get_once", "far_get_rows"].into_iter().zip(taken) {
        figures.add(name, figure);
    }
    Ok(())
}

/// Calls each of these in turn while rank 0 computes, as `NAME_HOW`; returns on rank 0 what it kept of its speed.
/// Collective.
fn while_it_computes(
    world: &World,
    effort: Effort,
    how: &str,
    calls: &mut [(&str, Call<'_>)],
    figures: &mut Figures,
) -> Result<Option<Figure>> {
    let window = 2 * effort.window;
    let mut rates = [0.0; 2];
    for (asks, rate) in [false, true].into_iter().zip(&mut rates) {
        world.barrier()?;
        if world.rank() == 0 {
            *rate = compute_for(window);
        } else if asks {
            let taken = through(window, calls)?;
            for ((name, _), figure) in calls.iter().zip(taken) {
                figures.add(format!("{name}_{how}"), figure);
            }
        } else {
            std::thread::sleep(window);
        }
    }
    world.barrier()?;
    Ok((world.rank() == 0).then(|| Figure::single(rates[1] / rates[0])))
}

/// Calls these in turn through the middle of the window.
fn through(window: Duration, calls: &mut [(&str, Call<'_>)]) -> Result<Vec<Option<Figure>>> {
    let begin = Instant::now();
    spin_for(window / 20);
    let mut samples = vec![Vec::new(); calls.len()];
    while begin.elapsed() < window * 9 / 10 {
        for ((_, call), samples) in calls.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            call()?;
            samples.push(start.elapsed().as_secs_f64() * 1e9);
        }
    }
    Ok(samples.into_iter().map(Figure::of).collect())
}
