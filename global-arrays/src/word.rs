//! Arrays of integers as counters: read and change one element, as one step.
//!
//! Guarantees what the runtime's read-modify-writes do: each is atomic against all others of the element, whoever makes
//! them, and complete on return. It is not ordered with puts of other ranks to the element.

use armci_core::Word;
use ndarray::{Dimension, IntoDimension};

use crate::array::GlobalArray;
use crate::error::Result;

impl<T: Word, D: Dimension> GlobalArray<T, D> {
    /// Adds `increment` to an element, and returns what it held before (`NGA_Read_inc`).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use global_arrays::GlobalArray;
    ///
    /// let world = armci_core::World::init()?;
    /// let tasks = GlobalArray::<i64>::create(&world, "next task of each kind", [3, 2])?;
    /// let (first, second) = (tasks.read_increment([2, 0], 1)?, tasks.read_increment([2, 0], 10)?);
    /// assert!(second > first);
    /// tasks.sync()?;
    /// assert_eq!(tasks.get_element([2, 0])?, 11 * world.size() as i64);
    /// tasks.destroy()?;
    /// world.finalize()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds); nothing was changed then.
    #[inline]
    #[track_caller]
    pub fn read_increment(&self, index: impl IntoDimension<Dim = D>, increment: T) -> Result<T> {
        let index = index.into_dimension();
        let place = self.place(&index)?;
        let found = self.group.world().fetch_add(place, increment);
        found.map_err(|source| self.element_refused(&index, place, source))
    }

    /// Puts `value` into an element, and returns what it held before.
    ///
    /// # Errors
    /// As [`GlobalArray::read_increment`].
    #[inline]
    #[track_caller]
    pub fn swap_element(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<T> {
        let index = index.into_dimension();
        let place = self.place(&index)?;
        let found = self.group.world().swap(place, value);
        found.map_err(|source| self.element_refused(&index, place, source))
    }

    /// Puts `value` into an element if it holds `expected`; returns what it held before.
    ///
    /// # Errors
    /// As [`GlobalArray::read_increment`].
    #[inline]
    #[track_caller]
    pub fn compare_swap_element(&self, index: impl IntoDimension<Dim = D>, expected: T, value: T) -> Result<T> {
        let index = index.into_dimension();
        let place = self.place(&index)?;
        let found = self.group.world().compare_swap(place, expected, value);
        found.map_err(|source| self.element_refused(&index, place, source))
    }
}
