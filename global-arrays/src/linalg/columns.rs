//! The working copy of a factorization: columns, some at a time, dealt to the ranks in turn.
//!
//! Each rank holds its columns as one matrix, whole, so that rows are exchanged without communication, and what is behind a
//! panel is the tail of that matrix, which one product updates. A panel is read by all: in place on its node, else fetched.
//! The ranks meet once a panel, when its owner tells that it is factored.
//!
//! # Safety
//! OWN-COLUMNS: the array is seen by nobody but its factorization; a rank writes its own columns alone, and those of a panel
//! only before it tells that the panel is factored; others read a panel only after that.
#![allow(unsafe_code)]

use std::ops::Range;

use ndarray::{ArrayViewMut2, CowArray, Ix2, ShapeBuilder, s};

use super::operand::MatrixOperand;
use super::scalar::Scalar;
use super::split::MOST;
use crate::agree::agree;
use crate::array::GlobalArray;
use crate::error::Result;
use crate::patch::Patch;
use armci_core::Group;

/// A square matrix by columns.
#[derive(Debug)]
pub(super) struct Columns<T> {
    array: GlobalArray<T>,
    width: usize,
}

/// A panel: some columns, from the diagonal down.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) number: usize,
    /// Its columns, which are the rows of its diagonal block.
    pub(super) cols: Range<usize>,
}

impl<T: Scalar> Columns<T> {
    /// Copies an operand. Collective over its group.
    #[track_caller]
    pub(super) fn copy(operand: &MatrixOperand<'_, T>, order: usize) -> Result<Self> {
        let group = operand.slice.array().group();
        // Wide enough for products at full speed, narrow enough that every rank has several.
        let width = (order / (4 * group.size())).next_multiple_of(16).clamp(16, 128);
        let name = format!("factors of {}", operand.slice.array().name());
        let array = GlobalArray::builder(group, &name, [order, order])
            .scalapack(&[order.max(1), width], &[1, group.size()])
            .unfilled()
            .create()?;
        let columns = Columns { array, width };
        match operand.slice.together(|| columns.load(operand)) {
            Ok(()) => Ok(columns),
            Err(error) => {
                columns.destroy()?;
                Err(error)
            }
        }
    }

    fn load(&self, operand: &MatrixOperand<'_, T>) -> Result<()> {
        let order = self.order();
        for panel in self.panels().filter(|panel| self.is_mine(panel)) {
            // SAFETY: OWN-COLUMNS: nothing is factored yet.
            let mut own = unsafe { self.own(self.within(&panel))? };
            for start in (0..order).step_by(MOST) {
                let rows = start..(start + MOST).min(order);
                // SAFETY: OWN-BLOCK (see `local.rs`): nobody writes the operand before the sync at the end.
                let mut tile = unsafe { operand.tile(&rows, &panel.cols) };
                own.slice_mut(s![rows, ..]).assign(&tile.arrived()?);
            }
        }
        Ok(())
    }

    pub(super) fn group(&self) -> &Group {
        self.array.group()
    }

    pub(super) fn name(&self) -> &str {
        self.array.name()
    }

    /// Rows, and columns.
    pub(super) fn order(&self) -> usize {
        self.array.shape()[0]
    }

    pub(super) fn panels(&self) -> impl DoubleEndedIterator<Item = Panel> + ExactSizeIterator + use<T> {
        let (order, width) = (self.order(), self.width);
        let panel = move |number: usize| Panel { number, cols: number * width..((number + 1) * width).min(order) };
        (0..order.div_ceil(width)).map(panel)
    }

    pub(super) fn owner(&self, panel: &Panel) -> usize {
        panel.number % self.group().size()
    }

    pub(super) fn is_mine(&self, panel: &Panel) -> bool {
        self.owner(panel) == self.group().rank()
    }

    /// The first of this rank's columns, counted in its own matrix, that lies behind a panel.
    fn first_behind(&self, panel: usize) -> usize {
        let (rank, ranks) = (self.group().rank(), self.group().size());
        let before = if rank <= panel { (panel - rank) / ranks + 1 } else { 0 };
        (before * self.width).min(self.own_columns())
    }

    fn own_columns(&self) -> usize {
        self.panels().filter(|panel| self.is_mine(panel)).map(|panel| panel.cols.len()).sum()
    }

    /// These columns of this rank's, counted in its own matrix.
    ///
    /// # Safety
    /// OWN-COLUMNS: none of them was told to be factored; no other view has any of them while this lives.
    pub(super) unsafe fn own(&self, cols: Range<usize>) -> Result<ArrayViewMut2<'_, T>> {
        let start = self.array.own_memory()?.wrapping_add(cols.start);
        let lay = (self.order(), cols.len()).strides((self.own_columns().max(1), 1));
        // SAFETY: OWN-COLUMNS; the columns of a rank lie joined in its part, and those after `cols` are not touched.
        Ok(unsafe { ArrayViewMut2::from_shape_ptr(lay, start) })
    }

    /// This rank's columns behind a panel, counted in its own matrix.
    pub(super) fn behind(&self, panel: &Panel) -> Range<usize> {
        self.first_behind(panel.number)..self.own_columns()
    }

    /// A panel of this rank, counted in its own matrix.
    pub(super) fn within(&self, panel: &Panel) -> Range<usize> {
        let end = self.first_behind(panel.number);
        end - panel.cols.len()..end
    }

    /// The rows of a panel, which was told to be factored: in place, or a copy.
    #[track_caller]
    pub(super) fn panel(&self, panel: &Panel, rows: Range<usize>) -> Result<CowArray<'_, T, Ix2>> {
        let patch = Patch::from([rows, panel.cols.clone()]);
        if let Some(part) = self.array.near_part(&patch) {
            // SAFETY: OWN-COLUMNS: it is written no more.
            return Ok(unsafe { part.view::<Ix2>() }.into());
        }
        Ok(self.array.get(patch)?.into())
    }

    /// Makes an error of one rank known to all, who have one then too.
    #[track_caller]
    pub(super) fn agree(&self, outcome: Result<()>) -> Result<()> {
        agree(self.group(), "a factorization", self.name(), outcome)
    }

    /// Frees the copy. Collective.
    #[track_caller]
    pub(super) fn destroy(self) -> Result<()> {
        self.array.destroy()
    }
}
