//! What can go wrong with an array: always said with its name.

use crate::patch::Patch;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A patch that is not inside its array.
    #[error("patch {patch} is not inside array '{array}', which has shape {shape:?}")]
    OutOfBounds {
        /// The array's name.
        array: String,
        /// The patch asked for.
        patch: Patch,
        /// The array's shape.
        shape: [usize; 2],
    },

    /// A buffer whose shape is not the patch's.
    #[error("patch {patch} of array '{array}' has shape {:?}, but the buffer has {buffer:?}", patch.shape())]
    BufferShape {
        /// The array's name.
        array: String,
        /// The patch asked for.
        patch: Patch,
        /// The buffer's shape.
        buffer: [usize; 2],
    },

    /// A shape whose elements cannot be counted.
    #[error("array '{array}' of shape {shape:?} with elements of {element} bytes exceeds the address space")]
    TooLarge {
        /// The array's name.
        array: String,
        /// The shape asked for.
        shape: [usize; 2],
        /// Bytes of an element.
        element: usize,
    },

    /// The runtime below refused.
    #[error("array '{array}': {source}")]
    Runtime {
        /// The array's name.
        array: String,
        /// The runtime's reason.
        source: armci_core::Error,
    },
}
