//! The loop under all element-wise operations: each rank goes through what it owns of a patch, and makes each element of
//! the elements of operands at the same place.
//!
//! Operands may be of any distribution, and of any element type. A rank takes them in pieces of at most 256 KiB; only of
//! one that overlaps the patch at other places it takes a copy first, of all that goes with its own elements.

use bytemuck::Pod;
use ndarray::{Dimension, Zip};

use crate::array::GlobalArray;
use crate::error::Result;
use crate::math::operand::{Operand, Source};
use crate::slice::GlobalSlice;

impl<T: Pod, D: Dimension> GlobalSlice<'_, T, D> {
    /// Replaces each element by what `change` makes of it. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn apply(&self, mut change: impl FnMut(T) -> T) -> Result<()> {
        self.between_syncs(|between| {
            self.each_piece(between, |_, cells| {
                cells.for_each(|cell| cell.set(change(cell.get())));
                Ok(())
            })
        })
    }

    /// Makes each element of that of `a` at its place. Collective over the group of what is changed, whose ranks all have
    /// `a` too; what others wrote to it is synchronised before.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) if shapes differ, on all ranks alike; if a transfer fails, on that rank.
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
                Zip::from(cells).and(a.cells()).for_each(|cell, a| cell.set(make(a.get())));
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
                Zip::from(cells).and(a.cells()).and(b.cells()).for_each(|cell, a, b| cell.set(make(a.get(), b.get())));
                Ok(())
            })
        })
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Replaces each element by what `change` makes of it. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn apply(&self, change: impl FnMut(T) -> T) -> Result<()> {
        self.whole().apply(change)
    }

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
