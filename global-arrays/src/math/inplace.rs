//! Changing every element in place, by a function of the program's.
//!
//! The function is given a copy of each element, and no reference into the array: it may use the array as it likes,
//! and so may other ranks meanwhile. That costs nothing, as the copy is a register's.
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`), for pointers: each is that of an element of this rank's blocks. No reference to
//! the array's memory is made.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::Dimension;

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::error::Result;
use crate::slice::GlobalSlice;

impl<T: Pod, D: Dimension> GlobalSlice<'_, T, D> {
    /// Changes every element of the patch in place; each rank those that it owns. Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn map_inplace(&self, mut change: impl FnMut(&mut T)) -> Result<()> {
        self.together(|| {
            for part in self.array.own_parts(&self.patch)? {
                let len = part.patch.range(self.array.ndim() - 1).len();
                for (_, first) in part.rows() {
                    for at in 0..len {
                        // SAFETY: OWN-BLOCK.
                        unsafe { with_copy(first.add(at), &mut change) };
                    }
                }
            }
            Ok(())
        })
    }

    /// Changes every element of the patch in place, knowing its index in the array; each rank those that it owns.
    /// Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn indexed_map_inplace(&self, mut change: impl FnMut(D::Pattern, &mut T)) -> Result<()> {
        self.together(|| {
            for part in self.array.own_parts(&self.patch)? {
                let (start, last) = (part.patch.start(), self.array.ndim() - 1);
                for (within, first) in part.rows() {
                    let mut index =
                        self.array.dimension(&Axes::from_fn(within.len(), |axis| start[axis] + within[axis]));
                    for at in 0..part.patch.range(last).len() {
                        index[last] = start[last] + at;
                        let change = |value: &mut T| change(index.clone().into_pattern(), value);
                        // SAFETY: OWN-BLOCK.
                        unsafe { with_copy(first.add(at), change) };
                    }
                }
            }
            Ok(())
        })
    }
}

/// # Safety
/// OWN-BLOCK: the pointer is that of an element.
#[inline]
unsafe fn with_copy<T: Pod>(element: *mut T, change: impl FnOnce(&mut T)) {
    // SAFETY: OWN-BLOCK; whatever another rank writes here meanwhile is a value of the type.
    let mut value = unsafe { element.read() };
    change(&mut value);
    // SAFETY: OWN-BLOCK.
    unsafe { element.write(value) };
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Changes every element in place; each rank those that it owns. Collective.
    ///
    /// The safe way to what `NGA_Access` is used for most: `a.map_inplace(|x| *x = x.sqrt())`.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn map_inplace(&self, change: impl FnMut(&mut T)) -> Result<()> {
        self.whole().map_inplace(change)
    }

    /// Changes every element in place, knowing its index; each rank those that it owns. Collective.
    ///
    /// `a.indexed_map_inplace(|(i, j), x| *x = (i * j) as f64)`
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn indexed_map_inplace(&self, change: impl FnMut(D::Pattern, &mut T)) -> Result<()> {
        self.whole().indexed_map_inplace(change)
    }
}
