//! The loops under all element-wise operations of several operands: each rank goes through what it owns of a patch, and makes each element of
//! the elements of operands at the same place.
//!
//! Operands may be of any distribution, and of any element type. A rank takes them in pieces of at most 256 KiB; only of
//! one that overlaps the patch at other places it takes a copy first, of all that goes with its own elements.

use bytemuck::Pod;
use ndarray::{ArrayView, Dimension, MathCell, Zip};

use crate::array::GlobalArray;
use crate::error::Result;
use crate::math::operand::{Operand, Source};
use crate::slice::GlobalSlice;

impl<T: Pod, D: Dimension> GlobalSlice<'_, T, D> {
    /// Makes each element of that of `a` at its place. Collective over the group of what is changed, whose ranks all have
    /// `a` too. An array of another group is to be at rest: only this one's group is synchronised.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) if shapes differ, on all ranks alike; [`Error::Elsewhere`]; if a transfer fails.
    #[track_caller]
    pub fn assign_from<U: Pod>(&self, a: impl Operand<U, D>, mut make: impl FnMut(U) -> T) -> Result<()> {
        let a = a.as_slice();
        self.same_shape("an assignment", &a)?;
        self.between_syncs(|between| {
            let (a, early) = Source::of(between, self, a);
            let met = if early { self.array.sync() } else { Ok(()) };
            let mut a = met.and(a)?;
            self.each_piece(between, |piece, cells| {
                let mut a = a.beside(between, piece)?;
                let a = a.cells();
                make_each(&cells, &a, &a, |a, _| make(a));
                Ok(())
            })
        })
    }

    /// Makes each element of those of `a` and `b` at its place; either may be what is changed. Collective; as
    /// [`GlobalSlice::assign_from`].
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    #[track_caller]
    pub fn combine<U: Pod, V: Pod>(
        &self,
        a: impl Operand<U, D>,
        b: impl Operand<V, D>,
        mut make: impl FnMut(U, V) -> T,
    ) -> Result<()> {
        let (a, b) = (a.as_slice(), b.as_slice());
        self.same_shape("a combination", &a)?;
        self.same_shape("a combination", &b)?;
        self.between_syncs(|between| {
            let ((a, a_early), (b, b_early)) = (Source::of(between, self, a), Source::of(between, self, b));
            let met = if a_early || b_early { self.array.sync() } else { Ok(()) };
            let (mut a, mut b) = (met.and(a)?, b?);
            self.each_piece(between, |piece, cells| {
                let (mut a, mut b) = (a.beside(between, piece)?, b.beside(between, piece)?);
                make_each(&cells, &a.cells(), &b.cells(), &mut make);
                Ok(())
            })
        })
    }
}

/// Elements that are made before any of them is written, and their bytes at most.
const RUN: usize = 64;
const LARGEST: usize = 64;

/// Makes each cell of those of `a` and `b` at its place.
///
/// Cells may be those of an operand, which the compiler must expect of each: so it makes many at a time only where they are
/// written elsewhere first. (`c += b` took 1.6 times as long without.)
fn make_each<T: Pod, U: Copy, V: Copy, D: Dimension>(
    cells: &ArrayView<'_, MathCell<T>, D>,
    a: &ArrayView<'_, MathCell<U>, D>,
    b: &ArrayView<'_, MathCell<V>, D>,
    mut make: impl FnMut(U, V) -> T,
) {
    if size_of::<T>() > LARGEST {
        return Zip::from(cells).and(a).and(b).for_each(|cell, a, b| cell.set(make(a.get(), b.get())));
    }
    if let (Some(cells), Some(a), Some(b)) = (cells.as_slice(), a.as_slice(), b.as_slice()) {
        return make_row(cells, a, b, &mut make);
    }
    for ((cells, a), b) in cells.rows().into_iter().zip(a.rows()).zip(b.rows()) {
        if let (Some(cells), Some(a), Some(b)) = (cells.as_slice(), a.as_slice(), b.as_slice()) {
            make_row(cells, a, b, &mut make);
        } else {
            Zip::from(cells).and(a).and(b).for_each(|cell, a, b| cell.set(make(a.get(), b.get())));
        }
    }
}

fn make_row<T: Pod, U: Copy, V: Copy>(
    cells: &[MathCell<T>],
    a: &[MathCell<U>],
    b: &[MathCell<V>],
    mut make: impl FnMut(U, V) -> T,
) {
    let mut made = [T::zeroed(); RUN];
    for ((cells, a), b) in cells.chunks(RUN).zip(a.chunks(RUN)).zip(b.chunks(RUN)) {
        for ((made, a), b) in made.iter_mut().zip(a).zip(b) {
            *made = make(a.get(), b.get());
        }
        for (cell, made) in cells.iter().zip(&made) {
            cell.set(*made);
        }
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Makes each element of that of `a` at its place; see [`GlobalSlice::assign_from`]. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    #[track_caller]
    pub fn assign_from<U: Pod>(&self, a: impl Operand<U, D>, make: impl FnMut(U) -> T) -> Result<()> {
        self.whole().assign_from(a, make)
    }

    /// Makes each element of those of `a` and `b` at its place; see [`GlobalSlice::combine`]. Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_from`].
    #[track_caller]
    pub fn combine<U: Pod, V: Pod>(
        &self,
        a: impl Operand<U, D>,
        b: impl Operand<V, D>,
        make: impl FnMut(U, V) -> T,
    ) -> Result<()> {
        self.whole().combine(a, b, make)
    }
}
