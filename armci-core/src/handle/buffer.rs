//! Buffers that an operation in flight may use.
//!
//! # Safety
//! TAKEN-APART: parts come from one buffer, stand for it alone, and are put together at most once.
#![allow(unsafe_code)]

use bytemuck::Pod;

/// A buffer taken apart: while an operation is in flight nobody has a reference into it.
#[derive(Debug, Clone, Copy)]
pub struct Parts<T> {
    pub(crate) first: *mut T,
    pub(crate) len: usize,
    capacity: usize,
}

/// What can be taken apart and put together again at the same address.
pub trait Lend: Sized {
    /// What it holds.
    type Element: Pod;

    /// Takes it apart.
    fn into_parts(self) -> Parts<Self::Element>;

    /// Puts it together.
    ///
    /// # Safety
    /// TAKEN-APART; nothing is in flight any more.
    unsafe fn from_parts(parts: Parts<Self::Element>) -> Self;
}

/// An owner of elements whose address stays when it moves: a `Vec<T>` or a `Box<[T]>` of plain old data.
///
/// The elements are those it has, whatever its capacity.
pub trait Buffer: Lend + 'static {}

impl<T: Pod> Buffer for Vec<T> {}
impl<T: Pod> Buffer for Box<[T]> {}

impl<T: Pod> Lend for Vec<T> {
    type Element = T;

    fn into_parts(self) -> Parts<T> {
        let mut whole = std::mem::ManuallyDrop::new(self);
        Parts { first: whole.as_mut_ptr(), len: whole.len(), capacity: whole.capacity() }
    }

    unsafe fn from_parts(Parts { first, len, capacity }: Parts<T>) -> Self {
        // SAFETY: TAKEN-APART: these are a vector's own.
        unsafe { Vec::from_raw_parts(first, len, capacity) }
    }
}

impl<T: Pod> Lend for Box<[T]> {
    type Element = T;

    fn into_parts(self) -> Parts<T> {
        let len = self.len();
        Parts { first: Box::into_raw(self).cast(), len, capacity: len }
    }

    unsafe fn from_parts(Parts { first, len, .. }: Parts<T>) -> Self {
        // SAFETY: TAKEN-APART: these are a box's own.
        unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, len)) }
    }
}

impl<'a, T: Pod> Lend for &'a [T] {
    type Element = T;

    fn into_parts(self) -> Parts<T> {
        // Only ever read.
        Parts { first: self.as_ptr().cast_mut(), len: self.len(), capacity: self.len() }
    }

    unsafe fn from_parts(Parts { first, len, .. }: Parts<T>) -> &'a [T] {
        // SAFETY: TAKEN-APART: these are a borrow's own, and it lasts.
        unsafe { std::slice::from_raw_parts(first, len) }
    }
}

impl<'a, T: Pod> Lend for &'a mut [T] {
    type Element = T;

    fn into_parts(self) -> Parts<T> {
        Parts { first: self.as_mut_ptr(), len: self.len(), capacity: self.len() }
    }

    unsafe fn from_parts(Parts { first, len, .. }: Parts<T>) -> &'a mut [T] {
        // SAFETY: TAKEN-APART: these are a borrow's own, and it lasts.
        unsafe { std::slice::from_raw_parts_mut(first, len) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn there_and_back<B: Lend>(buffer: B) -> B {
        // SAFETY: TAKEN-APART.
        unsafe { B::from_parts(buffer.into_parts()) }
    }

    #[test]
    fn buffers_survive_being_taken_apart() {
        let mut roomy = Vec::with_capacity(100);
        roomy.extend([1, 2, 3]);
        let back = there_and_back(roomy);
        assert_eq!((back.as_slice(), back.capacity()), (&[1, 2, 3][..], 100));
        assert_eq!(there_and_back(Vec::<u64>::new()), []);
        assert_eq!(*there_and_back(vec![1.5, 2.5].into_boxed_slice()), [1.5, 2.5]);
        assert_eq!(*there_and_back(Box::<[u8]>::default()), []);
        let mut lent = [7, 8, 9];
        there_and_back(&mut lent[1..])[0] = 5;
        assert_eq!(there_and_back(&lent[..]), [7, 5, 9]);
    }
}
