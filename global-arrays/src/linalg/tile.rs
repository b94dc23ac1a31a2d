//! A part of an operand to compute with: the elements themselves, if they lie in one block on this node, else a copy,
//! which is on its way while something else is computed.
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): during a collective operation nobody writes operands, which is why blocks of other ranks
//! can be looked at too.
//! ARRIVING: a buffer that a transfer under way writes is not looked at, nor given back, before the wait for it.
#![allow(unsafe_code)]

use std::ops::Range;

use armci_core::NbHandle;
use bytemuck::Pod;
use ndarray::{Array2, ArrayView2, Ix2};

use super::operand::MatrixOperand;
use super::scalar::Scalar;
use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::select::Section;

/// A copy of a patch, perhaps still on its way.
struct Copied<'a, T: Pod> {
    array: &'a GlobalArray<T>,
    elements: Array2<T>,
    /// Of the transfers under way, until they were waited for.
    handle: Option<NbHandle>,
    outcome: Result<()>,
}

impl<'a, T: Pod> Copied<'a, T> {
    /// Starts to fetch a patch.
    fn start(array: &'a GlobalArray<T>, patch: &Patch) -> Self {
        let (section, shape) = (Section::of(patch), patch.shape());
        let mut elements = Array2::from_elem((shape[0], shape[1]), T::zeroed());
        let strides = Axes::from_fn(2, |axis| elements.strides()[axis]);
        let (target, mut handle, mut outcome) = (elements.as_mut_ptr(), NbHandle::default(), Ok(()));
        for piece in array.pieces(&section, &strides) {
            let to = target.wrapping_offset(piece.first);
            // SAFETY: ARRIVING; the piece lies in the buffer, which has the section's shape.
            let started = unsafe {
                array.group().world().get_strided_nb_into(piece.place, to, &piece.shape(), Some(&mut handle))
            };
            if let Err(source) = started {
                let (array, patch) = (array.name().into(), patch.to_string());
                outcome = Err(Error::Transfer { array, patch, rank: piece.place.rank(), source });
                break;
            }
        }
        Copied { array, elements, handle: Some(handle), outcome }
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(mut handle) = self.handle.take() {
            let arrived = self.array.group().world().wait_for(&mut handle);
            let arrived = arrived.map_err(|source| self.array.runtime(source));
            return std::mem::replace(&mut self.outcome, Ok(())).and(arrived);
        }
        Ok(())
    }
}

impl<T: Pod> Drop for Copied<'_, T> {
    fn drop(&mut self) {
        // What goes wrong here concerns data that nobody looks at any more.
        let _ = self.wait();
    }
}

/// A part of an operand that was asked for.
pub(super) struct Tile<'a, T: Pod>(Elements<'a, T>);

enum Elements<'a, T: Pod> {
    InPlace(ArrayView2<'a, T>),
    Copied { copy: Copied<'a, T>, transposed: bool, conjugate: bool },
}

impl<'a, T: Scalar> MatrixOperand<'a, T> {
    /// These rows and columns in place, if they lie in one block on this node.
    ///
    /// # Safety
    /// OWN-BLOCK: nobody writes them while the view lives.
    pub(super) unsafe fn in_place(&self, rows: &Range<usize>, cols: &Range<usize>) -> Option<ArrayView2<'a, T>> {
        let part = self.slice.array().near_part(&self.patch(rows, cols))?;
        // SAFETY: OWN-BLOCK.
        let view = unsafe { part.view::<Ix2>() };
        Some(if self.is_transposed() { view.reversed_axes() } else { view })
    }

    /// Begins to bring these rows and columns.
    ///
    /// # Safety
    /// OWN-BLOCK: nobody writes them while the tile lives.
    pub(super) unsafe fn tile(&self, rows: &Range<usize>, cols: &Range<usize>) -> Tile<'a, T> {
        if !self.is_conjugate()
            // SAFETY: OWN-BLOCK.
            && let Some(view) = unsafe { self.in_place(rows, cols) }
        {
            return Tile(Elements::InPlace(view));
        }
        self.copy(rows, cols)
    }

    /// Begins to bring a copy of these rows and columns.
    pub(super) fn copy(&self, rows: &Range<usize>, cols: &Range<usize>) -> Tile<'a, T> {
        let copy = Copied::start(self.slice.array(), &self.patch(rows, cols));
        Tile(Elements::Copied { copy, transposed: self.is_transposed(), conjugate: self.is_conjugate() })
    }
}

impl<T: Scalar> Tile<'_, T> {
    /// Its elements, when they are there.
    pub(super) fn arrived(&mut self) -> Result<ArrayView2<'_, T>> {
        match &mut self.0 {
            Elements::InPlace(view) => Ok(view.view()),
            Elements::Copied { copy, transposed, conjugate } => {
                copy.wait()?;
                if std::mem::take(conjugate) {
                    copy.elements.mapv_inplace(T::conjugate);
                }
                let view = copy.elements.view();
                Ok(if *transposed { view.reversed_axes() } else { view })
            }
        }
    }
}
