//! Matrix by matrix: `c = alpha a b + beta c`.
//!
//! Each rank computes parts of the result ([`split`](super::split)) as sums of products of tiles of the operands.
//! What lies in one block on this node is neither copied nor packed before the kernel does; the rest is fetched, one
//! product ahead of its use, in buffers of bounded size. Nobody waits for anybody between the syncs at both ends.
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): between the two syncs each element of the result is touched by the one rank that has it in its
//! share, and operands are read only. That the result overlaps no operand is checked before.
#![allow(unsafe_code)]

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, Ix2};

use super::operand::{MatrixOperand, apart, ends};
use super::scalar::Scalar;
use super::split::{MOST, MOST_INNER, segments, shares};
use super::tile::Tile;
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::slice::GlobalSlice;

const OPERATION: &str = "a matrix product";

impl<T: Scalar> GlobalSlice<'_, T, Ix2> {
    /// Makes the patch `alpha a b + beta` times what it was (`NGA_Matmul_patch`), where `a` and `b` are arrays (`&array`),
    /// patches of them, or either transposed ([`GlobalArray::t`]) or adjoint ([`GlobalArray::h`]), of any distribution. Collective.
    ///
    /// If `beta` is zero, what the patch was is not looked at; if `alpha` is, neither are `a` and `b`. All three may be
    /// patches of one array, but the patch that is written must overlap none of the others. Operands of other groups
    /// must be at rest: only this array's group is synchronised.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes do not go together, or patches overlap: on all ranks alike, and nothing was done
    /// then. Else as [`GlobalArray::sync`].
    #[track_caller]
    pub fn assign_product<'b>(
        &self,
        alpha: T,
        a: impl Into<MatrixOperand<'b, T>>,
        b: impl Into<MatrixOperand<'b, T>>,
        beta: T,
    ) -> Result<()> {
        let (a, b) = (a.into(), b.into());
        let ([rows, inner], [other, cols]) = (a.shape(), b.shape());
        if inner != other || self.shape() != [rows, cols] {
            let (a, b, c) = (a.describe(), b.describe(), MatrixOperand::from(*self).describe());
            let why = format!("the shapes of {c} = {a}, times {b}, do not go together");
            return Err(Error::Mismatch { operation: OPERATION, why });
        }
        apart(OPERATION, self, &a)?;
        apart(OPERATION, self, &b)?;
        let inner = if alpha.is_zero() { 0 } else { inner };
        let product = Product { c: *self, alpha, a, b, beta, inner: 0..inner };
        self.together(|| shares(self)?.iter().try_for_each(|share| product.share(share)))
    }
}

impl<T: Scalar> GlobalArray<T> {
    /// Makes the array `alpha a b + beta` times what it was (`GA_Dgemm`): [`GlobalSlice::assign_product`] of all of it.
    /// Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::assign_product`].
    #[track_caller]
    pub fn assign_product<'b>(
        &self,
        alpha: T,
        a: impl Into<MatrixOperand<'b, T>>,
        b: impl Into<MatrixOperand<'b, T>>,
        beta: T,
    ) -> Result<()> {
        self.whole().assign_product(alpha, a, b, beta)
    }
}

/// What is to be computed.
struct Product<'a, T> {
    c: GlobalSlice<'a, T, Ix2>,
    alpha: T,
    a: MatrixOperand<'a, T>,
    b: MatrixOperand<'a, T>,
    beta: T,
    inner: Range<usize>,
}

/// One product of tiles.
struct Step {
    rows: Range<usize>,
    cols: Range<usize>,
    inner: Range<usize>,
}

impl<T: Scalar> Product<'_, T> {
    /// Computes a patch of the result's array: cut so that each part lies in one block, or fits into a buffer.
    fn share(&self, share: &Patch) -> Result<()> {
        let origin = self.c.patch().start();
        let (array, within) = (self.c.array(), share.relative_to(&origin));
        let near = array.near_part(share).is_some();
        let most = if near { usize::MAX } else { MOST };
        let cut = |axis: usize| segments(&within.range(axis), ends(&self.c, axis, &within.range(axis)), most);
        let (rows, cols) = if near { (vec![within.range(0)], vec![within.range(1)]) } else { (cut(0), cut(1)) };
        for rows in &rows {
            for cols in &cols {
                let patch = Patch::from([rows.clone(), cols.clone()]);
                let patch = patch.moved_to(&[origin[0] + rows.start, origin[1] + cols.start]);
                self.part(&patch, rows, cols)?;
            }
        }
        Ok(())
    }

    /// Computes a part of the result: in place, if it lies in one block on this node.
    fn part(&self, patch: &Patch, rows: &Range<usize>, cols: &Range<usize>) -> Result<()> {
        let array = self.c.array();
        if let Some(part) = array.near_part(patch) {
            // SAFETY: OWN-BLOCK: no other rank has it in its share.
            return self.compute(unsafe { part.view_mut::<Ix2>() }, rows, cols);
        }
        let mut buffer = if self.beta.is_zero() {
            Array2::from_elem((rows.len(), cols.len()), T::zeroed())
        } else {
            array.get(*patch)?
        };
        self.compute(buffer.view_mut(), rows, cols)?;
        array.put(*patch, &buffer)
    }

    /// `target = alpha a b + beta target`, for these rows and columns.
    fn compute(&self, mut target: ArrayViewMut2<'_, T>, rows: &Range<usize>, cols: &Range<usize>) -> Result<()> {
        if self.inner.is_empty() {
            scale(&mut target, self.beta);
            return Ok(());
        }
        let steps = self.steps(rows, cols);
        let mut ahead = steps.first().map(|step| self.tiles(step));
        for (number, step) in steps.iter().enumerate() {
            let Some((mut a, mut b)) = ahead.take() else { break };
            ahead = steps.get(number + 1).map(|next| self.tiles(next));
            let beta = if step.inner.start == 0 { self.beta } else { T::one() };
            let (down, right) = (step.rows.start - rows.start, step.cols.start - cols.start);
            let part = ndarray::s![down..down + step.rows.len(), right..right + step.cols.len()];
            general_mat_mul(self.alpha, &a.arrived()?, &b.arrived()?, beta, &mut target.slice_mut(part));
        }
        Ok(())
    }

    fn tiles(&self, step: &Step) -> (Tile<'_, T>, Tile<'_, T>) {
        // SAFETY: OWN-BLOCK: operands are read only.
        unsafe { (self.a.tile(&step.rows, &step.inner), self.b.tile(&step.inner, &step.cols)) }
    }

    /// The products of tiles whose sums are these rows and columns, those of one sum in turn.
    fn steps(&self, rows: &Range<usize>, cols: &Range<usize>) -> Vec<Step> {
        let (a, b) = (&self.a, &self.b);
        let mut inner_ends = a.ends(1, &self.inner);
        inner_ends.extend(b.ends(0, &self.inner));
        inner_ends.sort_unstable();
        let cut = |most, inner| {
            (
                segments(rows, a.ends(0, rows), most),
                segments(cols, b.ends(1, cols), most),
                segments(&self.inner, inner_ends.iter().copied(), inner),
            )
        };
        let (mut by_row, mut by_col, mut by_inner) = cut(usize::MAX, usize::MAX);
        if !is_near(a, &by_row, &by_inner) || !is_near(b, &by_inner, &by_col) {
            (by_row, by_col, by_inner) = cut(MOST, MOST_INNER);
        }
        let mut steps = Vec::with_capacity(by_row.len() * by_col.len() * by_inner.len());
        for cols in &by_col {
            for rows in &by_row {
                for inner in &by_inner {
                    steps.push(Step { rows: rows.clone(), cols: cols.clone(), inner: inner.clone() });
                }
            }
        }
        steps
    }
}

/// Whether all tiles of an operand can be read in place.
fn is_near<T: Scalar>(operand: &MatrixOperand<'_, T>, rows: &[Range<usize>], cols: &[Range<usize>]) -> bool {
    // SAFETY: OWN-BLOCK; the view is not even looked at.
    let near = |rows: &Range<usize>, cols: &Range<usize>| unsafe { operand.in_place(rows, cols) }.is_some();
    !operand.is_conjugate() && rows.iter().all(|rows| cols.iter().all(|cols| near(rows, cols)))
}

/// `target = beta target`; what it was is not looked at if `beta` is zero.
fn scale<T: Scalar>(target: &mut ArrayViewMut2<'_, T>, beta: T) {
    if beta.is_zero() {
        target.fill(beta);
    } else if !beta.is_one() {
        target.mapv_inplace(|value| beta * value);
    }
}
