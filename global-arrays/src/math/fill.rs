//! Filling with one value.
//!
//! # Safety
//! OWN-BLOCK (see `local.rs`): between the two syncs of a collective operation each rank touches its own blocks alone.
#![allow(unsafe_code)]

use bytemuck::Pod;
use ndarray::Dimension;

use crate::array::GlobalArray;
use crate::error::Result;
use crate::slice::GlobalSlice;

impl<T: Pod, D: Dimension> GlobalSlice<'_, T, D> {
    /// Fills the patch with a value (`NGA_Fill_patch`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<()> {
        self.together(|| {
            for part in self.array.own_parts(&self.patch)? {
                // SAFETY: OWN-BLOCK.
                unsafe { part.view_mut::<D>() }.fill(value);
            }
            Ok(())
        })
    }

    /// Fills the patch with zeros (`NGA_Zero_patch`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn zero(&self) -> Result<()> {
        self.fill(T::zeroed())
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Fills the array with zeros (`GA_Zero`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn zero(&self) -> Result<()> {
        self.whole().zero()
    }

    /// Fills the array with a value (`GA_Fill`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<()> {
        self.whole().fill(value)
    }
}
