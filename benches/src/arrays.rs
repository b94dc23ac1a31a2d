//! Distributed arrays, each operation beside the one of the runtime that moves the same bytes: what finding them costs.
//!
//! The other side of each row works on the array's own memory, in turn with ours: an element by its pointer, a patch by
//! strided transfers whose shape was known beforehand. Patches are fetched on cores that share nothing with their
//! owners, as they are in a program.
//!
//! # Safety
//! OWN-PATCH: buffers are as large as the patch that is fetched into them, and this rank's alone; nobody writes the
//! arrays while they are read.
#![allow(unsafe_code)]

use std::hint::black_box;

use armci_core::{GlobalPtr, Strided, World};
use global_arrays::{GlobalArray, Patch};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::error::{Error, Result};
use crate::figure::Figures;
use crate::timing::{Effort, in_turn, side};

/// Length of each axis of the array whose patches move: the blocks of two ranks, and of four, are larger than a patch.
const LENGTH: usize = 1024;
/// The length of each axis of a patch.
const SIDE: usize = 256;
/// The bytes of a patch.
pub const PATCH: usize = SIDE * SIDE * 8;
/// The length of each axis of the array that is created and destroyed.
const SMALL: usize = 100;

/// Two ways to do one thing, in turn: `NAME` through the array, and `NAME_raw`.
fn pair(
    figures: &mut Figures,
    name: &str,
    (samples, batch): (usize, usize),
    mut ours: impl FnMut() -> global_arrays::Result<()>,
    mut raw: impl FnMut() -> armci_core::Result<()>,
) -> Result<()> {
    let mut sides = [side(|| Ok::<_, Error>(ours()?)), side(|| Ok(raw()?))];
    let taken = in_turn(samples, batch, &mut sides)?;
    figures.add(name, taken[0]);
    figures.add(format!("{name}_raw"), taken[1]);
    Ok(())
}

/// Measures what one owner is concerned with, with two ranks; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let array = GlobalArray::<f64>::builder(world, "patches", [LENGTH, LENGTH]).filled(1.0).create()?;
    let counters = GlobalArray::<i64>::create(world, "counters", [SMALL, SMALL])?;
    array.sync()?;
    if world.rank() == 1 {
        elements(world, &array, effort, figures)?;
        let (place, index) = (counters.pointer([3, 7])?, [3, 7]);
        pair(
            figures,
            "array_add",
            (effort.samples, 1000),
            || counters.read_increment(black_box(index), 1).map(drop),
            || world.fetch_add(black_box(place), 1).map(drop),
        )?;
        fetch(world, &array, "array_patch", Patch::from([50..50 + SIDE, 70..70 + SIDE]), effort, figures)?;
    }
    array.sync()?;
    counters.destroy()?;
    array.destroy()?;
    create_and_destroy(world, effort, figures)
}

/// Measures a patch that lies on four ranks, with four; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn spread(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let array = GlobalArray::<f64>::builder(world, "patches", [LENGTH, LENGTH]).filled(1.0).create()?;
    array.sync()?;
    if world.rank() == 1 {
        let middle = LENGTH / 2 - SIDE / 2..LENGTH / 2 + SIDE / 2;
        fetch(world, &array, "array_spread", Patch::from([middle.clone(), middle]), effort, figures)?;
    }
    array.sync()?;
    Ok(array.destroy()?)
}

/// An element, and a row of 16 bytes, of rank 0.
fn elements(world: &World, array: &GlobalArray<f64>, effort: Effort, figures: &mut Figures) -> Result<()> {
    let (index, row) = ([11, 40], [11..12, 40..42]);
    let place = array.pointer(index)?;
    let counts = (effort.samples, 1000);
    pair(
        figures,
        "array_put_8",
        counts,
        || array.put_element(black_box(index), 2.0),
        || world.put_value(2.0, black_box(place)),
    )?;
    pair(
        figures,
        "array_get_8",
        counts,
        || array.get_element(black_box(index)).map(|value| _ = black_box(value)),
        || world.get_value(black_box(place)).map(|value| _ = black_box(value)),
    )?;
    let values = [2.0, 3.0];
    let view = ArrayView2::from(std::slice::from_ref(&values));
    pair(
        figures,
        "array_put_16",
        counts,
        || array.put(black_box(row.clone()), view),
        || world.put(&values, black_box(place)),
    )?;
    let (mut ours, mut theirs) = ([[0.0; 2]], [0.0; 2]);
    pair(
        figures,
        "array_get_16",
        counts,
        || array.get_into(black_box(row.clone()), ArrayViewMut2::from(&mut ours)),
        || world.get(black_box(place), &mut theirs),
    )
}

/// A patch into a dense buffer, beside the strided transfers that fetch its parts.
fn fetch(
    world: &World,
    array: &GlobalArray<f64>,
    name: &str,
    patch: Patch,
    effort: Effort,
    figures: &mut Figures,
) -> Result<()> {
    struct Part {
        from: GlobalPtr<f64>,
        offset: usize,
        counts: [usize; 2],
        remote: [usize; 1],
    }
    let mut parts = Vec::new();
    for (owner, part) in array.distribution().owners(&patch) {
        let (start, shape) = (part.start(), part.shape());
        let block = array.distribution().block_on(owner).map_or(LENGTH, |block| block.shape()[1]);
        let (from, within) = (array.pointer([start[0], start[1]])?, part.relative_to(&patch.start()).start());
        parts.push(Part { from, offset: within[0] * SIDE + within[1], counts: [shape[1], shape[0]], remote: [block] });
    }
    let (mut ours, mut theirs) = (Array2::<f64>::zeros((SIDE, SIDE)), Array2::<f64>::zeros((SIDE, SIDE)));
    let target = theirs.as_mut_ptr();
    pair(
        figures,
        name,
        ((effort.samples / 2).max(30), 4),
        || array.get_into(black_box(patch), &mut ours),
        || {
            parts.iter().try_for_each(|part| {
                let shape = Strided { counts: &part.counts, local: &[SIDE], remote: &part.remote };
                // SAFETY: OWN-PATCH: the part begins so many elements into the buffer.
                unsafe { world.get_strided_into(part.from, target.add(part.offset), &shape) }
            })
        },
    )?;
    assert_eq!(ours, theirs, "both sides fetched the same");
    Ok(())
}

/// An array of 80 KB whose memory lies ready, beside the barrier; rank 0 reports.
fn create_and_destroy(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let builder = || GlobalArray::<f64>::builder(world, "short-lived", [SMALL, SMALL]);
    let mut sides = [
        side(|| Ok::<_, Error>(builder().create()?.destroy()?)),
        side(|| Ok(builder().unfilled().create()?.destroy()?)),
        side(|| Ok(world.barrier()?)),
    ];
    // All ranks take the same number of samples, so all meet the same number of times.
    let taken = in_turn(effort.samples, 50, &mut sides)?;
    if world.rank() == 0 {
        for (name, figure) in ["array_create", "array_create_unfilled", "array_barrier"].into_iter().zip(taken) {
            figures.add(name, figure);
        }
    }
    Ok(())
}
