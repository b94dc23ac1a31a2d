//! The diagonal of a matrix, and its rows and columns times a vector.
//!
//! The diagonal of a patch has the elements at (`k`, `k`) of the patch, as many as its shorter side has; vectors that go
//! with it have as many. Each rank takes of a vector what goes with its own elements.

use bytemuck::Pod;
use ndarray::{ArrayView1, ArrayView2, Dimension, Ix1, Ix2, IxDyn, MathCell, Zip};

use crate::error::{Error, Result};
use crate::math::element::Element;
use crate::math::operand::{Between, Operand};
use crate::math::tiles::elements;
use crate::math::whole::on_slices_and_arrays;
use crate::slice::GlobalSlice;

on_slices_and_arrays! {
    <T: Pod, Ix2>

    /// Sets the diagonal to zero (`GA_Zero_diagonal`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn zero_diagonal(&self) -> Result<()> {
        self.between_syncs(|between| each_diagonal(self, between, |_, cells| {
            cells.for_each(|cell| cell.set(T::zeroed()));
            Ok(())
        }))
    }

    /// Sets the diagonal to the elements of a vector (`GA_Set_diagonal`). Collective.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the vector has not as many elements as the diagonal; [`Error::Elsewhere`]; if a transfer fails.
    pub fn set_diagonal(&self, values: impl Operand<T, Ix1>) -> Result<()> {
        with_vector(self, values.as_slice(), |cell, value| cell.set(value))
    }

    /// Writes the diagonal into a vector (`GA_Get_diag`). Collective over the matrix' group, whose ranks all have the
    /// vector too.
    ///
    /// # Errors
    /// As [`GlobalSlice::set_diagonal`].
    pub fn get_diagonal(&self, values: impl Operand<T, Ix1>) -> Result<()> {
        let values = values.as_slice();
        fits_diagonal(self, &values)?;
        let start = values.patch.range(0).start;
        self.between_syncs(|between| each_diagonal(self, between, |first, cells| {
            let found = cells.map(|cell| cell.get());
            let first = start + first;
            values.array.put(first..first + found.len(), &found)
        }))
    }
}

on_slices_and_arrays! {
    <T: Element, Ix2>

    /// Adds the elements of a vector to the diagonal (`GA_Add_diagonal`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::set_diagonal`].
    pub fn add_diagonal(&self, values: impl Operand<T, Ix1>) -> Result<()> {
        with_vector(self, values.as_slice(), |cell, value| cell.set(T::plus(cell.get(), value)))
    }

    /// Adds `shift` to each element of the diagonal (`GA_Shift_diagonal`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`](crate::GlobalArray::sync).
    pub fn shift_diagonal(&self, shift: T) -> Result<()> {
        self.between_syncs(|between| each_diagonal(self, between, |_, cells| {
            cells.for_each(|cell| cell.set(T::plus(cell.get(), shift)));
            Ok(())
        }))
    }

    /// Multiplies each row by the element of a vector that goes with it (`GA_Scale_rows`). Collective.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the vector has not as many elements as there are rows; [`Error::Elsewhere`]; if a transfer fails.
    pub fn scale_rows(&self, factors: impl Operand<T, Ix1>) -> Result<()> {
        self.scale_along(0, factors)
    }

    /// Multiplies each column by the element of a vector that goes with it (`GA_Scale_cols`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::scale_rows`].
    pub fn scale_cols(&self, factors: impl Operand<T, Ix1>) -> Result<()> {
        self.scale_along(1, factors)
    }
}

on_slices_and_arrays! {
    <T: Element, D where D: Dimension>

    /// Multiplies each element by that of a vector that its index along `axis` names: of a matrix, rows (axis 0) or
    /// columns (axis 1). Collective.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if there is no such axis, or the vector has not its length; [`Error::Elsewhere`]; if a transfer fails.
    pub fn scale_along(&self, axis: usize, factors: impl Operand<T, Ix1>) -> Result<()> {
        let (factors, dims) = (factors.as_slice(), self.patch().ndim());
        if axis >= dims || factors.patch.len() != self.patch.range(axis).len() {
            let (patch, name, there) = (self.patch, self.array.name(), factors.array.name());
            let why = format!("{} of '{there}' are not the factors of {patch} of '{name}' along axis {axis}", factors.patch);
            return Err(Error::Mismatch { operation: "scaling along an axis", why });
        }
        let start = self.patch.range(axis).start;
        self.between_syncs(|between| self.each_piece(between, |piece, cells| {
            let range = piece.range(axis);
            let factors = taken(&factors, range.start - start, range.len())?;
            let mut shape = IxDyn::zeros(dims);
            shape.as_array_view_mut().fill(1);
            shape[axis] = range.len();
            let factors = ArrayView1::from(&factors).into_shape_with_order(shape);
            if let Some(factors) = factors.as_ref().ok().and_then(|factors| factors.broadcast(cells.raw_dim())) {
                Zip::from(cells).and(factors).for_each(|cell, factor| cell.set(T::times(*factor, cell.get())));
            }
            Ok(())
        }))
    }
}

/// So many elements of a vector, from one of its patch on.
fn taken<T: Pod>(vector: &GlobalSlice<'_, T, Ix1>, first: usize, count: usize) -> Result<Vec<T>> {
    let first = vector.patch.range(0).start + first;
    Ok(vector.array.get(first..first + count)?.to_vec())
}

/// Goes through this rank's part of the diagonal; `body` gets the number of the first element of a piece, and the piece.
fn each_diagonal<T: Pod>(
    matrix: &GlobalSlice<'_, T, Ix2>,
    between: &Between,
    mut body: impl FnMut(usize, ArrayView1<'_, MathCell<T>>) -> Result<()>,
) -> Result<()> {
    let start = matrix.patch.start();
    // (Nothing is gone through but the diagonal, so blocks are taken whole.)
    let whole = |part: crate::Axes<usize>| part;
    matrix.each_tile(between, whole, |piece, cells: ArrayView2<'_, MathCell<T>>| {
        let within = piece.relative_to(&start);
        let (rows, cols) = (within.range(0), within.range(1));
        let range = rows.start.max(cols.start)..rows.end.min(cols.end);
        for first in range.clone().step_by(elements::<T>()) {
            let end = range.end.min(first + elements::<T>());
            let square =
                cells.slice(ndarray::s![first - rows.start..end - rows.start, first - cols.start..end - cols.start]);
            body(first, square.diag())?;
        }
        Ok(())
    })
}

/// Refuses a vector that has not as many elements as the diagonal.
fn fits_diagonal<T: Pod>(matrix: &GlobalSlice<'_, T, Ix2>, vector: &GlobalSlice<'_, T, Ix1>) -> Result<()> {
    let shape = matrix.shape();
    let len = shape[0].min(shape[1]);
    if vector.patch.len() == len {
        return Ok(());
    }
    let (patch, name, there) = (matrix.patch, matrix.array.name(), vector.array.name());
    let why = format!("{patch} of '{name}' has {len} diagonal elements, {} of '{there}' has others", vector.patch);
    Err(Error::Mismatch { operation: "a diagonal", why })
}

/// Changes each element of the diagonal by that of a vector that goes with it.
#[track_caller]
fn with_vector<T: Pod>(
    matrix: &GlobalSlice<'_, T, Ix2>,
    values: GlobalSlice<'_, T, Ix1>,
    change: impl Fn(&MathCell<T>, T),
) -> Result<()> {
    fits_diagonal(matrix, &values)?;
    matrix.between_syncs(|between| {
        each_diagonal(matrix, between, |first, cells| {
            for (cell, value) in cells.iter().zip(taken(&values, first, cells.len())?) {
                change(cell, value);
            }
            Ok(())
        })
    })
}
