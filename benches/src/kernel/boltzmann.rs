//! Lattice Boltzmann on D2Q9: a square cavity whose lid moves, in two dimensions of blocks with ghost cells (paper 003,
//! Fig. 13).
//!
//! Each cell has nine populations, one for each direction of the lattice. A step brings ghost cells up to date, and then
//! makes each cell anew from what streams into it from its neighbours, relaxed towards equilibrium. Two arrays take
//! turns, so nothing is copied. Walls throw populations back half-way between cells, the lid with its velocity on top;
//! what it adds to one direction it takes from another, so the mass stays what it was, to rounding.
//!
//! Once the flow has settled, the velocities on the two middle lines are held against those that Ghia, Ghia and Shin
//! published (J. Comput. Phys. 48, 1982, 387-411, Tables I and II) for a Reynolds number of 100.
//!
//! # Safety
//! OWN-BLOCK (of the arrays): a rank writes its own block of the array that nobody reads at the time: the ghost cells
//! of that array are fetched at the next step, which begins with a meeting. It reads its own block and ghost cells of the
//! other array, which nobody writes until the step after the next meeting.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use armci_core::{Reduce, World};
use global_arrays::GlobalArray;
use ndarray::{Array3, ArrayView3, ArrayViewMut3, Ix3};

use crate::error::{Error, Result};
use crate::kernel::{grid, note_times, scaled};
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::study::Wanted;

/// The lid's velocity, in cells a step: small beside the lattice's speed of sound.
const LID: f64 = 0.1;
/// How many times the lid must have crossed the cavity before the flow has settled.
const SETTLED: f64 = 25.0;
/// By how much of the lid's velocity the profiles may differ from the published ones, at most and in the mean square.
const WORST: f64 = 0.03;
const MEAN: f64 = 0.012;

/// Directions: rest, along the axes, along the diagonals; (rows up, columns to the right).
const DIRECTIONS: [(isize, isize); 9] = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)];
/// The direction back.
const BACK: [usize; 9] = [0, 3, 4, 1, 2, 7, 8, 5, 6];
const WEIGHTS: [f64; 9] =
    [4.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 36.0, 1.0 / 36.0, 1.0 / 36.0, 1.0 / 36.0];

/// (height, velocity along the lid's way) on the vertical middle line, Re = 100; in shares of the side and of the lid's.
const ALONG: [(f64, f64); 15] = [
    (0.0547, -0.03717),
    (0.0625, -0.04192),
    (0.0703, -0.04775),
    (0.1016, -0.06434),
    (0.1719, -0.10150),
    (0.2813, -0.15662),
    (0.4531, -0.21090),
    (0.5000, -0.20581),
    (0.6172, -0.13641),
    (0.7344, 0.00332),
    (0.8516, 0.23151),
    (0.9531, 0.68717),
    (0.9609, 0.73722),
    (0.9688, 0.78871),
    (0.9766, 0.84123),
];
/// (distance from the left, velocity upwards) on the horizontal middle line.
const UPWARDS: [(f64, f64); 15] = [
    (0.0625, 0.09233),
    (0.0703, 0.10091),
    (0.0781, 0.10890),
    (0.0938, 0.12317),
    (0.1563, 0.16077),
    (0.2266, 0.17507),
    (0.2344, 0.17527),
    (0.5000, 0.05454),
    (0.8047, -0.24533),
    (0.8594, -0.22445),
    (0.9063, -0.16914),
    (0.9453, -0.10313),
    (0.9531, -0.08864),
    (0.9609, -0.07391),
    (0.9688, -0.05906),
];

/// Short runs for the scaling, and one until the flow has settled.
pub fn jobs(wanted: &Wanted) -> Vec<Setup> {
    let (n, steps) = if wanted.quick { (128, 60) } else { (384, 200) };
    let settled = |n: usize| (SETTLED * n as f64 / LID).ceil() as usize;
    let reynolds = wanted.reynolds.unwrap_or(100.0);
    let steps = wanted.steps.unwrap_or(steps);
    let mut jobs: Vec<Setup> =
        scaled(wanted, "boltzmann", n, 1, &[""]).into_iter().map(|job| Setup { steps, reynolds, ..job }).collect();
    if reynolds == 100.0 && wanted.n.is_none() && wanted.steps.is_none() {
        let ranks = wanted.ranks.iter().copied().max().unwrap_or(2);
        let one = Wanted { ranks: vec![ranks], ..wanted.clone() };
        let n = if wanted.quick { 32 } else { 64 };
        let part = "settled".to_owned();
        let settled = |job| Setup { part: part.clone(), n, steps: settled(n), ..job };
        jobs.extend(one.each("boltzmann", &[ranks], &["rma"], &["thread"]).into_iter().map(settled));
    }
    jobs
}

/// Equilibrium of a density and a velocity (up, right).
fn equilibrium(density: f64, (up, right): (f64, f64)) -> [f64; 9] {
    let square = 1.5 * (up * up + right * right);
    std::array::from_fn(|d| {
        let along = 3.0 * (DIRECTIONS[d].0 as f64 * up + DIRECTIONS[d].1 as f64 * right);
        WEIGHTS[d] * density * (1.0 + along + 0.5 * along * along - square)
    })
}

/// Density and velocity of a cell.
fn moments(cell: &[f64; 9]) -> (f64, (f64, f64)) {
    let density: f64 = cell.iter().sum();
    let sum = |of: fn(&(isize, isize)) -> isize| {
        cell.iter().zip(&DIRECTIONS).map(|(value, direction)| value * of(direction) as f64).sum::<f64>()
    };
    (density, (sum(|(up, _)| *up) / density, sum(|(_, right)| *right) / density))
}

/// Makes a block anew: `from` has a ring of ghost cells around it, `first` is where the block begins in the cavity.
fn step(from: ArrayView3<'_, f64>, mut to: ArrayViewMut3<'_, f64>, first: (usize, usize), n: usize, relaxation: f64) {
    let (rows, columns, _) = to.dim();
    for y in 0..rows {
        for x in 0..columns {
            let (up, right) = ((first.0 + y) as isize, (first.1 + x) as isize);
            let inside = |at: isize| (0..n as isize).contains(&at);
            let cell: [f64; 9] = std::array::from_fn(|d| {
                let (dy, dx) = DIRECTIONS[d];
                let (from_y, from_x) = (up - dy, right - dx);
                if inside(from_y) && inside(from_x) {
                    return from[[(y as isize + 1 - dy) as usize, (x as isize + 1 - dx) as usize, d]];
                }
                // The lid reaches over the corners, so what it gives one diagonal it takes from the other in each cell.
                let lid = if from_y >= n as isize { 6.0 * WEIGHTS[d] * LID * dx as f64 } else { 0.0 };
                from[[y + 1, x + 1, BACK[d]]] + lid
            });
            let (density, velocity) = moments(&cell);
            let goal = equilibrium(density, velocity);
            for d in 0..9 {
                to[[y, x, d]] = cell[d] + relaxation * (goal[d] - cell[d]);
            }
        }
    }
}

/// Runs, checks, and notes where time went; collective.
///
/// # Errors
/// What the operations say; [`Error::Wrong`] if mass was lost, or the settled flow is not the published one.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let n = setup.n;
    let (rows, columns) = grid(world.size());
    if n < rows.max(columns) {
        let why = format!("{} ranks cannot share a cavity of {n} x {n} cells: --n {} at least", world.size(), columns);
        return Err(Error::Asked(why));
    }
    let starts = |parts: usize| (0..parts).map(|part| part * n / parts).collect::<Vec<_>>();
    let make = |name| -> Result<GlobalArray<f64, Ix3>> {
        let cuts = [starts(rows), starts(columns), vec![0]];
        let array =
            GlobalArray::<f64, Ix3>::builder(world, name, [n, n, 9]).irregular(&cuts).ghosts(&[1, 1, 0]).create()?;
        array.indexed_map_inplace(|(_, _, d), value| *value = WEIGHTS[d])?;
        Ok(array)
    };
    let (mut now, mut next) = (make("now")?, make("next")?);
    let block = now.block_on(world.rank()).ok_or_else(|| Error::Asked("a rank has no cells".into()))?;
    let first = (block.start()[0], block.start()[1]);
    let relaxation = 1.0 / (3.0 * LID * n as f64 / setup.reynolds + 0.5);
    let before = mass(&now)?;
    let (mut ghosts, begin) = (Duration::ZERO, Instant::now());
    for _ in 0..setup.steps {
        let start = Instant::now();
        now.update_ghosts()?;
        ghosts += start.elapsed();
        // SAFETY: OWN-BLOCK.
        let (from, to) = unsafe { (now.local_view_with_ghosts()?, next.local_view_mut()?) };
        step(from, to, first, n, relaxation);
        std::mem::swap(&mut now, &mut next);
    }
    now.sync()?;
    let (total, ghosts) = (begin.elapsed().as_secs_f64(), ghosts.as_secs_f64());
    let lost = (mass(&now)? / before - 1.0).abs();
    let updates = (n * n * setup.steps) as f64 * 1e-6;
    let phases = [("", total), ("compute", total - ghosts), ("ghosts", ghosts)];
    note_times(world, setup, notes, &phases, ("MLUP/s", updates, "stream"))?;
    // Each step rounds each population.
    let most = 1e-15 * (10.0 + setup.steps as f64);
    let differs = if setup.part == "settled" { Some(profiles(world, n, &now)?) } else { None };
    if world.rank() == 0 {
        let id = format!("boltzmann/{}", setup.part);
        let ranks = world.size() as f64;
        notes.add(Record::new(format!("{id}/mass_lost"), lost, "error").at("ranks", ranks).asked(most));
        if let Some((worst, mean)) = differs {
            notes.add(Record::new(format!("{id}/from_ghia_worst"), worst, "error").at("ranks", ranks).asked(WORST));
            notes.add(Record::new(format!("{id}/from_ghia_mean"), mean, "error").at("ranks", ranks).asked(MEAN));
        }
    }
    now.destroy()?;
    next.destroy()?;
    if lost.is_nan() || lost > most {
        return Err(Error::Wrong(format!("a cavity of {n} x {n}: {lost:.1e} of the mass was lost, {most:.1e} may be")));
    }
    match differs {
        Some((worst, mean)) if !(worst <= WORST && mean <= MEAN) => Err(Error::Wrong(format!(
            "a cavity of {n} x {n}: velocities differ by {worst:.3} at most and {mean:.3} in the mean from the published \
             ones, {WORST} and {MEAN} may be"
        ))),
        _ => Ok(()),
    }
}

/// The mass of all cells; collective.
fn mass(array: &GlobalArray<f64, Ix3>) -> Result<f64> {
    Ok(array.sum()?)
}

/// By how much the middle lines' velocities differ from the published ones: at most, and in the mean square. Collective.
fn profiles(world: &World, n: usize, array: &GlobalArray<f64, Ix3>) -> Result<(f64, f64)> {
    let mut both = [0.0; 2];
    if world.rank() == 0 {
        // The middle lies between two lines of cells, or on one.
        let middle = (n - 1) / 2..n / 2 + 1;
        let of = |line: Array3<f64>, along: bool| -> Vec<f64> {
            let (rows, columns, _) = line.dim();
            let velocity = |y: usize, x: usize| {
                let (_, (up, right)) = moments(&std::array::from_fn(|d| line[[y, x, d]]));
                if along { right / LID } else { up / LID }
            };
            if along {
                (0..rows).map(|y| (0..columns).map(|x| velocity(y, x)).sum::<f64>() / columns as f64).collect()
            } else {
                (0..columns).map(|x| (0..rows).map(|y| velocity(y, x)).sum::<f64>() / rows as f64).collect()
            }
        };
        let vertical = of(array.get([0..n, middle.clone(), 0..9])?, true);
        let horizontal = of(array.get([middle, 0..n, 0..9])?, false);
        let differences: Vec<f64> = ALONG
            .iter()
            .map(|(at, value)| between(&vertical, *at, 1.0) - value)
            .chain(UPWARDS.iter().map(|(at, value)| between(&horizontal, *at, 0.0) - value))
            .collect();
        let square = differences.iter().map(|d| d * d).sum::<f64>() / differences.len() as f64;
        both = [differences.iter().map(|d| d.abs()).fold(0.0, f64::max), square.sqrt()];
    }
    world.all_reduce(&mut both, Reduce::Max)?;
    Ok((both[0], both[1]))
}

/// The value at a place from 0 to 1 between cells' middles, and the walls, of which the first rests.
fn between(values: &[f64], at: f64, last: f64) -> f64 {
    let n = values.len() as f64;
    let place = |index: isize| match index {
        -1 => (0.0, 0.0),
        _ if index as usize >= values.len() => (1.0, last),
        _ => ((index as f64 + 0.5) / n, values[index as usize]),
    };
    let below = (at * n - 0.5).floor() as isize;
    let ((x0, y0), (x1, y1)) = (place(below), place(below + 1));
    y0 + (y1 - y0) * (at - x0) / (x1 - x0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equilibrium_has_the_moments_it_was_made_of() {
        let (density, (up, right)) = moments(&equilibrium(1.1, (0.03, -0.05)));
        assert!((density - 1.1).abs() < 1e-14 && (up - 0.03).abs() < 1e-14 && (right + 0.05).abs() < 1e-14);
        assert!(BACK.iter().enumerate().all(|(d, back)| {
            DIRECTIONS[d] == (-DIRECTIONS[*back].0, -DIRECTIONS[*back].1) && WEIGHTS[d] == WEIGHTS[*back]
        }));
    }

    #[test]
    fn a_value_between_cells_and_at_walls() {
        let values = [1.0, 3.0];
        assert_eq!(between(&values, 0.5, 9.0), 2.0);
        assert_eq!(between(&values, 0.125, 9.0), 0.5);
        assert_eq!(between(&values, 0.875, 9.0), 6.0);
    }
}
