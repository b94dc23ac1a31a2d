//! LU without pivoting of a matrix in blocks that are dealt to ranks in two dimensions (paper 003, Fig. 12).
//!
//! ```text
//!   step k:   D U U U    1. the owner of D factors it and puts it to the ranks of its row and its column
//!             L . . .    2. they make their blocks of U and L
//!             L . . .       pre-put: each is put to all who need it as soon as it is made, while the next is made
//!             L . . .       pre-get: each is laid open; after the meeting, everybody starts all gets it will need
//!                        3. everybody updates its part of the rest, with the blocks in the order they come
//! ```
//!
//! Blocks travel through buffers that are allocated once: an array with a row for each rank. The matrix is dominated by
//! its diagonal, so it needs no pivoting; its elements are a formula's, so the answer is checked without a copy: for a
//! vector x, L (U x) must be A x.

use std::time::{Duration, Instant};

use armci_core::{Reduce, World};
use global_arrays::{GlobalArray, PatchHandle};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Ix2};

use crate::error::{Error, Result};
use crate::kernel::{grid, note_times, scaled, scattered};
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::study::Wanted;

/// What a residual may be, in roundings: as usual for such factorizations.
const MOST: f64 = 16.0;

/// Both ways, strong and weak.
pub fn jobs(wanted: &Wanted) -> Vec<Setup> {
    let block = wanted.block.unwrap_or(64);
    let jobs = scaled(wanted, "lu", if wanted.quick { 512 } else { 1536 }, block, &["pre_put", "pre_get"]);
    jobs.into_iter().map(|job| Setup { block, ..job }).collect()
}

/// Who owns which block, and where it travels through.
struct Deal {
    n: usize,
    block: usize,
    /// Blocks along each axis.
    count: usize,
    rows: usize,
    columns: usize,
}

impl Deal {
    fn owner(&self, i: usize, j: usize) -> usize {
        (i % self.rows) * self.columns + j % self.columns
    }

    /// Elements along an axis of the block at this place.
    fn length(&self, at: usize) -> usize {
        self.block.min(self.n - at * self.block)
    }

    /// Ranks that need what is in column k of row i, and of row k of column j.
    fn row(&self, i: usize) -> impl Iterator<Item = usize> + use<> {
        let first = (i % self.rows) * self.columns;
        first..first + self.columns
    }

    fn column(&self, j: usize) -> impl Iterator<Item = usize> + use<> {
        (j % self.columns..self.rows * self.columns).step_by(self.columns)
    }

    /// The place in a rank's buffers: a block of L, of U, the diagonal.
    fn lower(&self, i: usize) -> usize {
        i
    }

    fn upper(&self, j: usize) -> usize {
        self.count + j
    }

    fn diagonal(&self) -> usize {
        2 * self.count
    }
}

/// The buffers, and what was spent on them.
struct Buffers<'a> {
    array: &'a GlobalArray<f64>,
    size: usize,
    spent: Duration,
}

impl<'a> Buffers<'a> {
    fn columns(&self, slot: usize, elements: usize) -> std::ops::Range<usize> {
        slot * self.size..slot * self.size + elements
    }

    fn put(&mut self, rank: usize, slot: usize, block: &Array2<f64>) -> Result<()> {
        let start = Instant::now();
        let flat = block.clone().into_shape_with_order((1, block.len())).map_err(shape)?;
        // A handle that is dropped loses nothing: the meeting that follows completes it.
        let _ = self.array.put_nb([rank..rank + 1, self.columns(slot, block.len())], flat)?;
        self.spent += start.elapsed();
        Ok(())
    }

    fn start(&mut self, rank: usize, slot: usize, elements: usize) -> Result<PatchHandle<'a, f64, Ix2>> {
        let start = Instant::now();
        let coming = self.array.get_nb([rank..rank + 1, self.columns(slot, elements)])?;
        self.spent += start.elapsed();
        Ok(coming)
    }

    fn finish(&mut self, coming: PatchHandle<'a, f64, Ix2>, rows: usize) -> Result<Array2<f64>> {
        let start = Instant::now();
        let flat = coming.wait()?;
        let columns = flat.len() / rows;
        self.spent += start.elapsed();
        flat.into_shape_with_order((rows, columns)).map_err(shape)
    }

    fn get(&mut self, rank: usize, slot: usize, rows: usize, columns: usize) -> Result<Array2<f64>> {
        let coming = self.start(rank, slot, rows * columns)?;
        self.finish(coming, rows)
    }

    fn meet(&mut self) -> Result<()> {
        let start = Instant::now();
        self.array.sync()?;
        self.spent += start.elapsed();
        Ok(())
    }
}

fn shape(error: ndarray::ShapeError) -> Error {
    Error::Wrong(format!("a block has not the shape it should: {error}"))
}

/// An element of the matrix.
fn element(n: usize, i: usize, j: usize) -> f64 {
    scattered(i, j) + if i == j { n as f64 } else { 0.0 }
}

/// Factors, checks, and notes where time went; collective.
///
/// # Errors
/// What the operations say; [`Error::Wrong`] if the residual is too large.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let (rows, columns) = grid(world.size());
    let (n, block) = (setup.n.max(1), setup.block.clamp(1, setup.n.max(1)));
    let deal = Deal { n, block, count: n.div_ceil(block), rows, columns };
    let matrix = GlobalArray::<f64>::builder(world, "A", [n, n]).tiled(&[block, block], &[rows, columns]).create()?;
    matrix.indexed_map_inplace(|(i, j), value| *value = element(n, i, j))?;
    let starts: Vec<usize> = (0..world.size()).collect();
    let room = (2 * deal.count + 1) * block * block;
    let array =
        GlobalArray::<f64>::builder(world, "buffers", [world.size(), room]).irregular(&[&starts[..], &[0]]).create()?;
    let mut mine = Vec::new();
    for patch in matrix.blocks_on(world.rank()) {
        let start = patch.start();
        mine.push(((start[0] / block, start[1] / block), matrix.get(patch)?));
    }
    matrix.sync()?;
    let mut buffers = Buffers { array: &array, size: block * block, spent: Duration::ZERO };
    let begin = Instant::now();
    factor(world, &deal, &mut mine, &mut buffers, setup.part.ends_with("pre_put"))?;
    let (total, spent) = (begin.elapsed().as_secs_f64(), buffers.spent.as_secs_f64());
    for ((i, j), block_of) in &mine {
        let range = |at: usize| at * block..at * block + deal.length(at);
        matrix.put([range(*i), range(*j)], block_of)?;
    }
    matrix.sync()?;
    let residual = residual(world, n, &matrix)?;
    let work = 2.0 / 3.0 * (n as f64).powi(3) * 1e-9;
    let phases = [("", total), ("compute", total - spent), ("communicate", spent)];
    note_times(world, setup, notes, &phases, ("GFLOP/s", work, "gemm"))?;
    if world.rank() == 0 {
        let id = format!("lu/{}/residual", setup.part);
        notes.add(Record::new(id, residual, "error").at("ranks", world.size() as f64).asked(MOST));
    }
    array.destroy()?;
    matrix.destroy()?;
    if residual.is_nan() || residual > MOST {
        return Err(Error::Wrong(format!(
            "LU of {n} x {n}: the residual is {residual:.1e} roundings, at most {MOST} will do"
        )));
    }
    Ok(())
}

/// A rank's block, and its place among all.
type Mine = [((usize, usize), Array2<f64>)];

fn factor(world: &World, deal: &Deal, mine: &mut Mine, buffers: &mut Buffers<'_>, pre_put: bool) -> Result<()> {
    let me = world.rank();
    for k in 0..deal.count {
        if let Some((_, diagonal)) = mine.iter_mut().find(|(at, _)| *at == (k, k)) {
            factor_block(diagonal);
            for rank in deal.row(k).chain(deal.column(k).filter(|rank| deal.row(k).all(|other| other != *rank))) {
                buffers.put(rank, deal.diagonal(), diagonal)?;
            }
        }
        buffers.meet()?;
        let length = deal.length(k);
        if deal.row(k).chain(deal.column(k)).any(|rank| rank == me) {
            let diagonal = buffers.get(me, deal.diagonal(), length, length)?;
            for ((i, j), block) in mine.iter_mut() {
                let (slot, all) = if *j == k && *i > k {
                    solve_right(block, diagonal.view());
                    (deal.lower(*i), Vec::from_iter(deal.row(*i)))
                } else if *i == k && *j > k {
                    solve_left(block, diagonal.view());
                    (deal.upper(*j), Vec::from_iter(deal.column(*j)))
                } else {
                    continue;
                };
                let to = if pre_put { all } else { vec![me] };
                to.into_iter().try_for_each(|rank| buffers.put(rank, slot, block))?;
            }
        }
        buffers.meet()?;
        update(deal, mine, buffers, k, me, pre_put)?;
    }
    Ok(())
}

/// Updates a rank's part of what is left.
fn update(deal: &Deal, mine: &mut Mine, buffers: &mut Buffers<'_>, k: usize, me: usize, pre_put: bool) -> Result<()> {
    let inner = deal.length(k);
    let needed = |of: fn(&(usize, usize)) -> usize| {
        let mut all: Vec<usize> = mine.iter().filter(|((i, j), _)| *i > k && *j > k).map(|(at, _)| of(at)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (lower, upper) = (needed(|at| at.0), needed(|at| at.1));
    // All are started before the first is waited for.
    let mut coming = Vec::new();
    for &i in &lower {
        let from = if pre_put { me } else { deal.owner(i, k) };
        coming.push((true, i, buffers.start(from, deal.lower(i), deal.length(i) * inner)?));
    }
    for &j in &upper {
        let from = if pre_put { me } else { deal.owner(k, j) };
        coming.push((false, j, buffers.start(from, deal.upper(j), inner * deal.length(j))?));
    }
    let mut left: Vec<(usize, Array2<f64>)> = Vec::new();
    for (is_lower, at, handle) in coming {
        if is_lower {
            left.push((at, buffers.finish(handle, deal.length(at))?));
            continue;
        }
        let right = buffers.finish(handle, inner)?;
        for ((i, _), block) in mine.iter_mut().filter(|((i, j), _)| *j == at && *i > k) {
            if let Some((_, left)) = left.iter().find(|(row, _)| row == i) {
                general_mat_mul(-1.0, left, &right, 1.0, block);
            }
        }
    }
    Ok(())
}

/// Factors in place: L below the diagonal, of which it has ones, U on and above it.
fn factor_block(block: &mut Array2<f64>) {
    let n = block.nrows();
    for k in 0..n {
        let pivot = block.row(k).to_owned();
        for i in k + 1..n {
            let mut row = block.row_mut(i);
            let factor = row[k] / pivot[k];
            row[k] = factor;
            row.iter_mut().zip(&pivot).skip(k + 1).for_each(|(value, above)| *value -= factor * above);
        }
    }
}

/// Makes A into X with X U = A.
fn solve_right(block: &mut Array2<f64>, diagonal: ArrayView2<'_, f64>) {
    for mut row in block.rows_mut() {
        for k in 0..diagonal.nrows() {
            let x = row[k] / diagonal[[k, k]];
            row[k] = x;
            row.iter_mut().zip(diagonal.row(k)).skip(k + 1).for_each(|(value, above)| *value -= x * above);
        }
    }
}

/// Makes A into X with L X = A.
fn solve_left(block: &mut Array2<f64>, diagonal: ArrayView2<'_, f64>) {
    for k in 0..diagonal.nrows() {
        let solved = block.row(k).to_owned();
        for i in k + 1..diagonal.nrows() {
            block.row_mut(i).scaled_add(-diagonal[[i, k]], &solved);
        }
    }
}

/// How far L (U x) is from A x, in roundings of the sums that make it; collective.
fn residual(world: &World, n: usize, factors: &GlobalArray<f64>) -> Result<f64> {
    let x: Vec<f64> = (0..n).map(|i| 0.5 + scattered(i, n)).collect();
    let blocks =
        factors.blocks_on(world.rank()).map(|patch| Ok((patch, factors.get(patch)?))).collect::<Result<Vec<_>>>()?;
    // Each rank's share of a product with some part of each element.
    let product = |x: &[f64], part: &dyn Fn(usize, usize, f64) -> f64| -> Result<Vec<f64>> {
        let mut y = vec![0.0; n];
        for (patch, values) in &blocks {
            let start = patch.start();
            for ((i, j), value) in values.indexed_iter() {
                let (i, j) = (start[0] + i, start[1] + j);
                y[i] += part(i, j, *value) * x[j];
            }
        }
        world.all_reduce(&mut y, Reduce::Sum)?;
        Ok(y)
    };
    let upper = product(&x, &|i, j, value| if j >= i { value } else { 0.0 })?;
    let mut both = product(&upper, &|i, j, value| if j < i { value } else { 0.0 })?;
    both.iter_mut().zip(&upper).for_each(|(sum, one)| *sum += one);
    let wanted = product(&x, &|i, j, _| element(n, i, j))?;
    let worst = both.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let largest = x.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // A sum of so many roundings of a row's length: the norm of a row is about its diagonal and a quarter of n.
    let unit = f64::EPSILON * 1.25 * n as f64 * largest;
    // What is no number compares with nothing.
    let bad = both.iter().any(|value| !value.is_finite());
    Ok(if bad { f64::INFINITY } else { worst / unit / (n as f64).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_its_factors_product() {
        let n = 7;
        let whole = Array2::from_shape_fn((n, n), |(i, j)| element(n, i, j));
        let mut factors = whole.clone();
        factor_block(&mut factors);
        let lower = Array2::from_shape_fn((n, n), |(i, j)| match i.cmp(&j) {
            std::cmp::Ordering::Greater => factors[[i, j]],
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Less => 0.0,
        });
        let upper = Array2::from_shape_fn((n, n), |(i, j)| if j >= i { factors[[i, j]] } else { 0.0 });
        assert!((&lower.dot(&upper) - &whole).iter().all(|value| value.abs() < 1e-12));
        let mut right = Array2::from_shape_fn((3, n), |(i, j)| scattered(i, j));
        let before = right.clone();
        solve_right(&mut right, factors.view());
        assert!((&right.dot(&upper) - &before).iter().all(|value| value.abs() < 1e-12));
        let mut left = before.t().to_owned();
        solve_left(&mut left, factors.view());
        assert!((&lower.dot(&left) - &before.t()).iter().all(|value| value.abs() < 1e-12));
    }

    #[test]
    fn every_block_reaches_who_needs_it() {
        let deal = Deal { n: 100, block: 16, count: 7, rows: 2, columns: 3 };
        for (i, j) in (0..7).flat_map(|i| (0..7).map(move |j| (i, j))) {
            assert!(deal.row(i).any(|rank| rank == deal.owner(i, j)));
            assert!(deal.column(j).any(|rank| rank == deal.owner(i, j)));
        }
        assert_eq!((deal.length(0), deal.length(6)), (16, 4));
    }
}
