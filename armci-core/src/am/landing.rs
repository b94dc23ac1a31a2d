//! Where a get by message lands, and who waits for it.
//!
//! A get is a message whose reply is data. Whoever finds the reply (any call of the thread that looks at its request
//! slots) unpacks it at once, so replies may come in any order and nobody keeps a queue. The slot's record says where
//! to: a [`Landing`]; and for whom: a [`Tag`].
//!
//! # Safety
//! LANDING: the places of a landing are writable, and nobody else's, until its get has been waited for. They are
//! written by the thread that sent the get, inside its calls, and by nobody else.
#![allow(unsafe_code)]

use crate::copy::{Patch, copy, copy_patch};

/// Whom a get belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its operation: all messages of it have this number, and so have all operations that share a handle.
    pub(crate) op: u64,
    /// The set of operations it can be waited for with.
    pub(crate) group: Group,
}

/// Operations that are waited for together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// None: each is waited for by itself.
    Explicit,
    /// Those with implicit handles.
    Implicit,
    /// Those of a scope, by its number.
    Scope(u64),
}

/// Which gets a wait is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    /// Those of one operation.
    Op(u64),
    /// Those of a group, to one rank or to all.
    Group(Group, Option<usize>),
}

impl Which {
    /// Whether a get from `rank` is among them.
    pub(crate) fn includes(self, tag: Tag, rank: usize) -> bool {
        match self {
            Which::Op(op) => tag.op == op,
            Which::Group(group, of) => tag.group == group && of.is_none_or(|of| of == rank),
        }
    }
}

/// Where the data of a reply belong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Landing {
    /// Into rows that are evenly spaced.
    Rows {
        /// The first row.
        first: *mut u8,
        /// Bytes from the start of one to the start of the next.
        stride: usize,
        /// Bytes of each.
        row: usize,
        /// How many.
        rows: usize,
    },
    /// Into rows at the places that are kept for the slot.
    Places {
        /// Bytes of each.
        row: usize,
    },
}

impl Landing {
    /// Bytes that a reply must have.
    pub(crate) fn bytes(&self, places: &[*mut u8]) -> usize {
        match *self {
            Landing::Rows { row, rows, .. } => row * rows,
            Landing::Places { row } => row * places.len(),
        }
    }

    /// Takes the data to where they belong.
    ///
    /// # Safety
    /// LANDING; there are as many data as [`Landing::bytes`] says.
    pub(crate) unsafe fn unpack(&self, places: &[*mut u8], data: &[u8]) {
        // SAFETY: LANDING, and the data are as long as all rows together.
        unsafe {
            match *self {
                Landing::Rows { first, stride, row, rows } => {
                    copy_patch(first, data.as_ptr(), &Patch::new(&[stride], &[row], &[row, rows]));
                }
                Landing::Places { row } => {
                    for (place, data) in places.iter().zip(data.chunks_exact(row)) {
                        copy(*place, data.as_ptr(), row);
                    }
                }
            }
        }
    }
}
