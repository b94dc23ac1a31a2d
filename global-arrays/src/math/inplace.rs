//! Changing every element in place, by a function of the program's.
//!
//! The function is given a copy of each element, and no reference into the array: it may use the array as it likes.
//! That costs nothing, as the copy is a register's.

use bytemuck::Pod;
use ndarray::Dimension;

use crate::error::Result;
use crate::math::whole::on_slices_and_arrays;

on_slices_and_arrays! {
    <T: Pod, D where D: Dimension>

    /// Replaces each element by what `change` makes of it; each rank those that it owns. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn apply(&self, change: impl FnMut(T) -> T) -> Result<()> {
        let mut change = change;
        self.between_syncs(|between| self.each_piece(between, |_, cells| {
            cells.for_each(|cell| cell.set(change(cell.get())));
            Ok(())
        }))
    }

    /// Changes each element in place; each rank those that it owns. Collective.
    ///
    /// The safe way to what `NGA_Access` is used for most: `a.map_inplace(|x| *x = x.sqrt())`.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn map_inplace(&self, change: impl FnMut(&mut T)) -> Result<()> {
        let mut change = change;
        self.apply(|mut value| {
            change(&mut value);
            value
        })
    }

    /// Changes each element in place, knowing its index in the array; each rank those that it owns. Collective.
    ///
    /// `a.indexed_map_inplace(|(i, j), x| *x = (i * j) as f64)`
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn indexed_map_inplace(&self, change: impl FnMut(D::Pattern, &mut T)) -> Result<()> {
        let (mut change, array) = (change, self.array());
        self.between_syncs(|between| self.each_row(between, |first, row| {
            let mut index = array.dimension(first);
            for cell in row {
                let mut value = cell.get();
                change(index.clone().into_pattern(), &mut value);
                cell.set(value);
                index[first.len() - 1] += 1;
            }
        }))
    }
}
