//! Numbers of whole patches: dot products, sums, norms, the least and the greatest element.
//!
//! Each rank reduces what it owns; the results of all are put together in rank order, on every rank, so that all have the
//! same to the last bit. Another number of ranks, or another distribution, adds in another order.

use std::cmp::Ordering;

use bytemuck::Pod;
use ndarray::{ArrayView, Dimension, MathCell, Zip};

use armci_core::Reduce;

use crate::error::{Error, Result};
use crate::math::element::Element;
use crate::math::operand::{Operand, Source};
use crate::math::whole::on_slices_and_arrays;
use crate::slice::GlobalSlice;

on_slices_and_arrays! {
    <T: Element, D where D: Dimension>

    /// The sum of the products of the elements of this patch and `other` (`GA_Ddot`, `GA_Zdot`, `NGA_Ddot_patch`, ...).
    /// As in Global Arrays, complex numbers are not conjugated; [`GlobalSlice::conjugate_dot`] does that. Collective
    /// over this patch's group, whose ranks all have `other` too. Integers wrap.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes differ; [`Error::Elsewhere`]; if a transfer fails. On all ranks.
    pub fn dot(&self, other: impl Operand<T, D>) -> Result<T> {
        products(self, other.as_slice(), T::times)
    }

    /// The sum of the products of the conjugates of this patch's elements and the elements of `other` (BLAS' `dotc`).
    /// Collective; as [`GlobalSlice::dot`].
    ///
    /// # Errors
    /// As [`GlobalSlice::dot`].
    pub fn conjugate_dot(&self, other: impl Operand<T, D>) -> Result<T> {
        products(self, other.as_slice(), |x: T, y| T::times(x.conjugate(), y))
    }

    /// The sum of all elements; integers wrap. Collective.
    ///
    /// # Errors
    /// [`Error::Elsewhere`]; as [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn sum(&self) -> Result<T> {
        folded(self, "a sum", T::zeroed(), T::plus, |cells| added(&cells, &cells, T::zeroed(), T::plus, |x, _| x))
    }

    /// The least element, by its index in the array, and it (`NGA_Select_elem` with `"min"`): of complex numbers that
    /// with the least modulus; of equal ones that with the lowest index, last axis fastest. What is not a number is passed over;
    /// nothing is found if there is nothing else. Collective; all ranks find the same.
    ///
    /// # Errors
    /// [`Error::Elsewhere`]; as [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn select_min(&self) -> Result<Option<(D::Pattern, T)>> {
        selected(self, Ordering::Less)
    }

    /// The greatest element, by its index in the array, and it (`NGA_Select_elem` with `"max"`); as
    /// [`GlobalSlice::select_min`]. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::select_min`].
    pub fn select_max(&self) -> Result<Option<(D::Pattern, T)>> {
        selected(self, Ordering::Greater)
    }

    /// The largest sum of absolute values of a column of a matrix; of a vector, the sum of its absolute values (`GA_Norm1`).
    /// Collective.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if there are more than two axes; [`Error::Elsewhere`]; as
    /// [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn norm1(&self) -> Result<f64> {
        match self.patch().ndim() {
            1 => folded(self, "a norm", 0.0, |a, b| a + b, |cells| magnitudes(&cells)),
            2 => largest_sum(self, 1),
            _ => no_matrix(self),
        }
    }

    /// The largest sum of absolute values of a row of a matrix; of a vector, the largest absolute value
    /// (`GA_Norm_infinity`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::norm1`].
    pub fn norm_infinity(&self) -> Result<f64> {
        match self.patch().ndim() {
            1 => norm_max(self),
            2 => largest_sum(self, 0),
            _ => no_matrix(self),
        }
    }

    /// The largest absolute value of an element; 0 if there is none. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::sum`].
    pub fn norm_max(&self) -> Result<f64> {
        norm_max(self)
    }

    /// The square root of the sum of the squares of all absolute values: the Frobenius norm of a matrix, the Euclidean of a
    /// vector. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::sum`].
    pub fn norm_frobenius(&self) -> Result<f64> {
        let scaled = |scale: f64| folded(self, "a norm", 0.0, |a, b| a + b, |cells| {
            let square = |x: T| {
                let x = x.magnitude() * scale;
                x * x
            };
            added(&cells, &cells, 0.0, |a, b| a + b, |x, _| square(x))
        });
        let squares = scaled(1.0)?;
        if squares.is_normal() || squares.is_nan() {
            return Ok(squares.sqrt());
        }
        // Squares were too large, or too small: once more, of numbers up to 1. (All ranks come by here, or none.)
        let largest = norm_max(self)?;
        if largest == 0.0 || !largest.is_finite() {
            return Ok(largest);
        }
        let scale = largest.recip().min(f64::MAX);
        Ok(scaled(scale)?.sqrt() / scale)
    }
}

/// The sum of what `product` makes of the elements of two patches.
#[track_caller]
fn products<T: Element, D: Dimension>(
    a: &GlobalSlice<'_, T, D>,
    b: GlobalSlice<'_, T, D>,
    product: impl Fn(T, T) -> T,
) -> Result<T> {
    let operation = "a dot product";
    a.same_shape(operation, &b)?;
    let parts = a.contributed(operation, |between| {
        let mut sum = T::zeroed();
        // (Nothing is written, so overlapping patches are as good as others.)
        let mut other = Source::reading(a, b);
        a.each_piece(between, |piece, cells| {
            let mut other = other.beside(between, piece)?;
            sum = T::plus(sum, added(&cells, &other.cells(), T::zeroed(), T::plus, &product));
            Ok(())
        })?;
        Ok((sum, 0))
    })?;
    Ok(parts.into_iter().fold(T::zeroed(), |sum, (part, _)| T::plus(sum, part)))
}

/// What `join` makes of what `part` makes of each piece.
#[track_caller]
fn folded<T: Pod, D: Dimension, R: Pod>(
    slice: &GlobalSlice<'_, T, D>,
    operation: &'static str,
    nothing: R,
    join: impl Fn(R, R) -> R,
    part: impl Fn(ArrayView<'_, MathCell<T>, D>) -> R,
) -> Result<R> {
    let parts = slice.contributed(operation, |between| {
        let mut all = nothing;
        slice.each_piece(between, |_, cells| {
            all = join(all, part(cells));
            Ok(())
        })?;
        Ok((all, 0))
    })?;
    Ok(parts.into_iter().fold(nothing, |all, (part, _)| join(all, part)))
}

/// Sums that do not wait for each other.
const LANES: usize = 8;

/// The sum of what `term` makes of the elements of two views of one shape. (Along contiguous rows by eight sums, since each
/// addition to one sum waits for the one before.)
fn added<T: Copy, D: Dimension, R: Copy>(
    a: &ArrayView<'_, MathCell<T>, D>,
    b: &ArrayView<'_, MathCell<T>, D>,
    zero: R,
    plus: impl Fn(R, R) -> R,
    term: impl Fn(T, T) -> R,
) -> R {
    let mut sums = [zero; LANES];
    let mut sum = zero;
    for (a, b) in a.rows().into_iter().zip(b.rows()) {
        let (Some(a), Some(b)) = (a.as_slice(), b.as_slice()) else {
            sum = Zip::from(a).and(b).fold(sum, |sum, a, b| plus(sum, term(a.get(), b.get())));
            continue;
        };
        let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        for (a, b) in a.remainder().iter().zip(b.remainder()) {
            sum = plus(sum, term(a.get(), b.get()));
        }
        for (a, b) in a.zip(b) {
            for lane in 0..LANES {
                sums[lane] = plus(sums[lane], term(a[lane].get(), b[lane].get()));
            }
        }
    }
    sums.into_iter().fold(sum, plus)
}

fn magnitudes<T: Element, D: Dimension>(cells: &ArrayView<'_, MathCell<T>, D>) -> f64 {
    added(cells, cells, 0.0, |a, b| a + b, |x, _| x.magnitude())
}

/// The larger of two; what is not a number, if either is none.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

#[track_caller]
fn norm_max<T: Element, D: Dimension>(slice: &GlobalSlice<'_, T, D>) -> Result<f64> {
    folded(slice, "a norm", 0.0, larger, |cells| added(&cells, &cells, 0.0, larger, |x, _| x.magnitude()))
}

fn no_matrix<T: Pod, D: Dimension, R>(slice: &GlobalSlice<'_, T, D>) -> Result<R> {
    let (patch, name) = (slice.patch, slice.array.name());
    let why = format!("{patch} of array '{name}' is neither a vector nor a matrix");
    Err(Error::Mismatch { operation: "a norm", why })
}

/// The largest sum of absolute values over the other axis of a matrix, of all along `axis`.
#[track_caller]
fn largest_sum<T: Element, D: Dimension>(slice: &GlobalSlice<'_, T, D>, axis: usize) -> Result<f64> {
    let len = slice.shape()[axis];
    let first = slice.patch.range(axis).start;
    let mut sums = vec![0.0; len];
    slice.contributed("a norm", |between| {
        slice.each_piece(between, |piece, cells| {
            let from = piece.range(axis).start - first;
            let part = &mut sums[from..from + piece.range(axis).len()];
            if axis == 0 {
                for (sum, row) in part.iter_mut().zip(cells.rows()) {
                    *sum += magnitudes(&row);
                }
            } else {
                for row in cells.rows() {
                    for (sum, cell) in part.iter_mut().zip(row) {
                        *sum += cell.get().magnitude();
                    }
                }
            }
            Ok(())
        })?;
        Ok(((), 0))
    })?;
    slice.array.group.all_reduce(&mut sums, Reduce::Sum).map_err(|source| slice.array.runtime(source))?;
    Ok(sums.into_iter().fold(0.0, larger))
}

/// The first element that compares so to all others.
#[track_caller]
fn selected<T: Element, D: Dimension>(
    slice: &GlobalSlice<'_, T, D>,
    order: Ordering,
) -> Result<Option<(D::Pattern, T)>> {
    const NONE: u64 = u64::MAX;
    let shape = slice.array.shape();
    let better = |(x, at): (T, u64), (best, first): (T, u64)| match x.compare(best) {
        Some(Ordering::Equal) => at < first,
        found => found == Some(order),
    };
    let parts = slice.contributed("a selection", |between| {
        let mut best = (T::zeroed(), NONE);
        slice.each_row(between, |start, row| {
            let first = (0..shape.len()).fold(0, |at, axis| at * shape[axis] + start[axis]) as u64;
            for (at, cell) in (first..).zip(row) {
                let x = cell.get();
                if best.1 == NONE {
                    if x.compare(x).is_some() {
                        best = (x, at);
                    }
                } else if better((x, at), best) {
                    best = (x, at);
                }
            }
        })?;
        Ok(best)
    })?;
    let best = parts.into_iter().filter(|(_, at)| *at != NONE).reduce(
        |best, part| {
            if better(part, best) { part } else { best }
        },
    );
    Ok(best.map(|(value, at)| {
        let (mut index, mut rest) = (D::zeros(shape.len()), at as usize);
        for axis in (0..shape.len()).rev() {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        (index.into_pattern(), value)
    }))
}
