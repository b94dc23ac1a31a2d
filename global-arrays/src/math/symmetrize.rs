//! Making a matrix symmetric, in place.
//!
//! The two elements that are averaged mostly belong to two ranks. The owner of the upper one does both: nobody else reads
//! or writes either of them, so there is no order to keep among ranks, whatever the distribution, and no copy of a block.

use ndarray::{ArrayView2, Ix2, MathCell, s};

use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::math::element::Element;
use crate::math::whole::on_slices_and_arrays;

/// Side of the tiles that are averaged at a time.
const SIDE: usize = 128;

on_slices_and_arrays! {
    <T: Element, Ix2>

    /// Replaces a square matrix by half the sum of itself and its transpose (`GA_Symmetrize`). Collective. Of integers,
    /// halves are cut towards zero; complex numbers are not conjugated.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if it is not square; [`Error::Elsewhere`]; if a transfer fails.
    pub fn symmetrize(&self) -> Result<()> {
        let shape = self.shape();
        if shape[0] != shape[1] {
            let why = format!("{} of array '{}' is not square", self.patch(), self.array().name());
            return Err(Error::Mismatch { operation: "a symmetrization", why });
        }
        let (array, start) = (self.array(), self.patch().start());
        let two = T::plus(T::ONE, T::ONE);
        let mean = |upper: T, lower: T| T::plus(upper, lower).divided_by(two);
        let tile = |part: Axes<usize>| part.map(|len| (*len).clamp(1, SIDE));
        self.between_syncs(|between| self.each_tile(between, tile, |piece, cells: ArrayView2<'_, MathCell<T>>| {
            let within = piece.relative_to(&start);
            let (rows, cols) = (within.range(0), within.range(1));
            if rows.start >= cols.end {
                return Ok(());
            }
            let place = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| {
                [start[0] + rows.start..start[0] + rows.end, start[1] + cols.start..start[1] + cols.end]
            };
            let below = place(cols.clone(), rows.clone());
            let mut lower = array.get(below.clone())?;
            for (row, cells) in rows.clone().zip(cells.rows()) {
                // From the diagonal on.
                let from = row.max(cols.start).min(cols.end);
                let mut lower = lower.slice_mut(s![from - cols.start.., row - rows.start]);
                for (cell, lower) in cells.slice(s![from - cols.start..]).iter().zip(&mut lower) {
                    *lower = mean(cell.get(), *lower);
                    cell.set(*lower);
                }
                if rows.end > cols.start && from < cols.end {
                    // Beside them lie elements that another rank averages.
                    let column = lower.insert_axis(ndarray::Axis(1));
                    array.put(place(from..cols.end, row..row + 1), &column)?;
                }
            }
            if rows.end <= cols.start { array.put(below, &lower) } else { Ok(()) }
        }))
    }
}
