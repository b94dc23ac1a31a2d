//! One value for each axis of an array, without allocating.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// The most axes an array has (as in Global Arrays).
pub const MAX_DIMS: usize = 7;

/// One value for each of up to [`MAX_DIMS`] axes: a slice of them, kept in place.
#[derive(Clone, Copy)]
pub struct Axes<T> {
    values: [T; MAX_DIMS],
    len: usize,
}

impl<T: Default> Axes<T> {
    /// The values that `make` gives for the axes `0..dims`.
    ///
    /// # Panics
    /// With more than [`MAX_DIMS`] axes.
    #[inline]
    pub fn from_fn(dims: usize, mut make: impl FnMut(usize) -> T) -> Self {
        assert!(dims <= MAX_DIMS, "{dims} axes are more than {MAX_DIMS}");
        // (Only as many steps as there are axes: this is on the way of every transfer.)
        let mut values = std::array::from_fn(|_| T::default());
        for (axis, value) in values[..dims].iter_mut().enumerate() {
            *value = make(axis);
        }
        Axes { values, len: dims }
    }

    /// One value for all axes.
    #[inline]
    pub(crate) fn splat(dims: usize, value: T) -> Self
    where
        T: Copy,
    {
        Axes::from_fn(dims, |_| value)
    }

    /// What `make` makes of each value.
    #[inline]
    pub(crate) fn map<U: Default>(&self, mut make: impl FnMut(&T) -> U) -> Axes<U> {
        Axes::from_fn(self.len, |axis| make(&self.values[axis]))
    }

    /// The values of a slice, if they are not more than [`MAX_DIMS`].
    #[inline]
    pub(crate) fn of(values: &[T]) -> Option<Self>
    where
        T: Copy,
    {
        (values.len() <= MAX_DIMS).then(|| Axes::from_fn(values.len(), |axis| values[axis]))
    }
}

impl<T> Deref for Axes<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values[..self.len]
    }
}

impl<T> DerefMut for Axes<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[..self.len]
    }
}

impl<T: PartialEq> PartialEq for Axes<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
impl<T: Eq> Eq for Axes<T> {}

impl<T: Hash> Hash for Axes<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for Axes<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        **self == *other
    }
}

impl<T: fmt::Debug> fmt::Debug for Axes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Advances an index through a box of these lengths, last axis fastest; false when it has been through.
#[inline]
pub(crate) fn advance(index: &mut [usize], lengths: &[usize]) -> bool {
    for axis in (0..index.len()).rev() {
        index[axis] += 1;
        if index[axis] < lengths[axis] {
            return true;
        }
        index[axis] = 0;
    }
    false
}
