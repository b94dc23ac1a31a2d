//! Operands: the elements of one patch that go with a part of another of the same shape.
//!
//! A rank goes through what it owns of the patch that an operation changes, piece by piece; of an operand it takes the
//! elements that belong to the piece, in place where they are its own, else fetched: never more of them than one piece has.
//!
//! An operand may be the patch that is changed: elements are cells then, read before they are written. If it is another
//! patch of the same array and overlaps, each rank takes its elements before anybody writes ([`Source::of`]).
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): during a collective operation, between its two syncs, nobody writes operands, and each rank
//! touches its own blocks of what is changed alone. A [`Between`] is only to be had there.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::{Array, ArrayView, Dimension, MathCell};

use crate::agree::parts_of_all;
use crate::array::GlobalArray;
use crate::axes::{Axes, advance};
use crate::error::{Error, Result};
use crate::local::OwnPart;
use crate::math::tiles::{elements, long_rows, tiles};
use crate::patch::Patch;
use crate::slice::GlobalSlice;

/// What collective operations take as operand: an array, which means all of it, or a slice of one.
pub trait Operand<T, D> {
    /// The patch that is meant.
    fn as_slice(&self) -> GlobalSlice<'_, T, D>;
}

impl<T: Pod, D: Dimension> Operand<T, D> for GlobalArray<T, D> {
    fn as_slice(&self) -> GlobalSlice<'_, T, D> {
        self.whole()
    }
}

impl<T, D> Operand<T, D> for GlobalSlice<'_, T, D> {
    fn as_slice(&self) -> GlobalSlice<'_, T, D> {
        *self
    }
}

impl<T, D, O: Operand<T, D> + ?Sized> Operand<T, D> for &O {
    fn as_slice(&self) -> GlobalSlice<'_, T, D> {
        O::as_slice(self)
    }
}

/// That this rank is between the two syncs of a collective operation.
pub(crate) struct Between(());

impl Between {
    /// For callers that have all ranks meet before and after.
    pub(super) fn meetings<R>(local: impl FnOnce(&Between) -> R) -> R {
        local(&Between(()))
    }
}

/// How two patches lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// They have no element in common.
    Apart,
    /// They are one patch of one array.
    Same,
    /// They have some elements in common, at different places.
    Shifted,
}

impl<'a, T: Pod, D: Dimension> GlobalSlice<'a, T, D> {
    /// As [`GlobalSlice::together`], for what is done in place.
    #[track_caller]
    pub(crate) fn between_syncs<R>(&self, local: impl FnOnce(&Between) -> Result<R>) -> Result<R> {
        self.together(|| Between::meetings(local))
    }

    /// Begins with a sync of the array's group, has each rank do its part, and gives all the parts of all, in rank
    /// order. When it returns, all have done theirs. Where one fails, all have an error.
    #[track_caller]
    pub(crate) fn contributed<R: Pod>(
        &self,
        operation: &'static str,
        local: impl FnOnce(&Between) -> Result<(R, u64)>,
    ) -> Result<Vec<(R, u64)>> {
        let before = self.array.sync();
        let done = Between::meetings(local);
        parts_of_all(&self.array.group, operation, &self.array.name, before.and(done))
    }

    /// Goes through this rank's elements of the patch, in pieces that a cache holds.
    pub(crate) fn each_piece(
        &self,
        between: &Between,
        body: impl FnMut(&Patch, ArrayView<'_, MathCell<T>, D>) -> Result<()>,
    ) -> Result<()> {
        self.each_tile(between, |shape| long_rows(&shape, elements::<T>()), body)
    }

    /// Goes through this rank's elements of the patch, row by row; `body` gets the index of a row's first element, too.
    pub(crate) fn each_row(&self, between: &Between, mut body: impl FnMut(&Axes<usize>, &[MathCell<T>])) -> Result<()> {
        self.each_piece(between, |piece, cells| {
            let (start, mut counts) = (piece.start(), piece.shape());
            counts[start.len() - 1] = 1;
            let mut within = Axes::splat(start.len(), 0);
            for row in cells.rows() {
                let row = row.to_slice().expect("the last axis is contiguous in every block");
                body(&Axes::from_fn(start.len(), |axis| start[axis] + within[axis]), row);
                advance(&mut within, &counts);
            }
            Ok(())
        })
    }

    /// Goes through this rank's elements of the patch, in pieces of the shape that `tile` wants for a part of that shape.
    pub(crate) fn each_tile(
        &self,
        _: &Between,
        tile: impl Fn(Axes<usize>) -> Axes<usize>,
        mut body: impl FnMut(&Patch, ArrayView<'_, MathCell<T>, D>) -> Result<()>,
    ) -> Result<()> {
        for part in self.array.own_parts(&self.patch)? {
            for piece in tiles(&part.patch, &tile(part.patch.shape())) {
                // SAFETY: OWN-BLOCK.
                body(&piece, unsafe { part.narrowed(&piece).cells::<D>() })?;
            }
        }
        Ok(())
    }

    /// Where in this patch the elements are that go with `part` of a patch `whole` of the same shape.
    pub(crate) fn beside_patch(&self, part: &Patch, whole: &Patch) -> Patch {
        let start = self.patch.start();
        let within = part.relative_to(&whole.start());
        Patch::from_fn(start.len(), |axis| {
            let range = within.range(axis);
            start[axis] + range.start..start[axis] + range.end
        })
    }

    /// How another patch lies to this one.
    pub(crate) fn overlap<U: Pod>(&self, other: &GlobalSlice<'_, U, D>) -> Overlap {
        // (Two arrays of one address have one region: an array is never moved while a slice borrows it.)
        if !std::ptr::addr_eq(self.array, other.array) || self.patch.intersection(&other.patch).is_empty() {
            Overlap::Apart
        } else if self.patch == other.patch {
            Overlap::Same
        } else {
            Overlap::Shifted
        }
    }

    /// Refuses another patch that has not this one's shape.
    pub(crate) fn same_shape<U: Pod, E: Dimension>(
        &self,
        operation: &'static str,
        other: &GlobalSlice<'_, U, E>,
    ) -> Result<()> {
        if *self.shape() == *other.shape() {
            return Ok(());
        }
        let (a, b) = (self.array.name(), other.array.name());
        let why = format!("{} of '{a}' and {} of '{b}' differ in shape", self.patch, other.patch);
        Err(Error::Mismatch { operation, why })
    }

    /// Refuses a patch that shares elements with this one, at other places.
    pub(crate) fn not_shifted<U: Pod>(&self, operation: &'static str, other: &GlobalSlice<'_, U, D>) -> Result<()> {
        if self.overlap(other) != Overlap::Shifted {
            return Ok(());
        }
        let why = format!("{} and {} of array '{}' overlap", self.patch, other.patch, self.array.name());
        Err(Error::Mismatch { operation, why })
    }
}

/// An operand, for an operation that goes through the pieces of `target`.
pub(crate) struct Source<'a, U, D: Dimension> {
    slice: GlobalSlice<'a, U, D>,
    target: Patch,
    /// What was taken before anybody wrote, piece by piece.
    early: Option<std::vec::IntoIter<Array<U, D>>>,
}

/// The elements of an operand that go with a piece.
pub(crate) enum Beside<'a, U, D: Dimension> {
    InPlace(ArrayView<'a, MathCell<U>, D>),
    Fetched(Array<U, D>),
}

impl<U, D: Dimension> Beside<'_, U, D> {
    pub(crate) fn cells(&mut self) -> ArrayView<'_, MathCell<U>, D> {
        match self {
            Beside::InPlace(cells) => cells.view(),
            Beside::Fetched(elements) => elements.cell_view(),
        }
    }
}

impl<'a, U: Pod, D: Dimension> Source<'a, U, D> {
    /// The operand `slice` of an operation that goes through `target`, which has its shape, and changes nothing.
    pub(crate) fn reading<T: Pod>(target: &GlobalSlice<'_, T, D>, slice: GlobalSlice<'a, U, D>) -> Self {
        Source { slice, target: target.patch, early: None }
    }

    /// The operand `slice` of an operation that changes `target`, which has its shape, and goes through it by
    /// [`GlobalSlice::each_piece`].
    ///
    /// Its second part: whether elements were taken early. Then all ranks must meet before anybody writes; also if this
    /// one failed, which it tells only where it asks for the first elements.
    pub(crate) fn of<T: Pod>(
        between: &Between,
        target: &GlobalSlice<'_, T, D>,
        slice: GlobalSlice<'a, U, D>,
    ) -> (Result<Self>, bool) {
        let source = Source::reading(target, slice);
        if target.overlap(&slice) != Overlap::Shifted {
            return (Ok(source), false);
        }
        let mut taken = Vec::new();
        let took = target.each_piece(between, |piece, _| {
            taken.push(slice.array.get(slice.beside_patch(piece, &target.patch))?);
            Ok(())
        });
        (took.map(|()| Source { early: Some(taken.into_iter()), ..source }), true)
    }

    /// The elements that go with a piece.
    #[track_caller]
    pub(crate) fn beside(&mut self, _: &Between, piece: &Patch) -> Result<Beside<'a, U, D>> {
        if let Some(taken) = self.early.as_mut().and_then(Iterator::next) {
            return Ok(Beside::Fetched(taken));
        }
        let wanted = self.slice.beside_patch(piece, &self.target);
        match self.slice.array.near_part(&wanted) {
            // SAFETY: OWN-BLOCK.
            Some(near) => Ok(Beside::InPlace(unsafe { OwnPart::cells(&near) })),
            None => Ok(Beside::Fetched(self.slice.array.get(wanted)?)),
        }
    }
}
