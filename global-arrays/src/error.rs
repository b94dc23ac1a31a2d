//! What can go wrong with an array: always said with its name, the patch and the rank.

use crate::axes::MAX_DIMS;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A patch that is not inside its array, or that runs backwards.
    #[error("rank {rank} asked for {patch} of array '{array}', which has shape {shape:?}: it is not inside")]
    OutOfBounds {
        /// The array's name.
        array: String,
        /// The patch asked for, as the program wrote it.
        patch: String,
        /// The array's shape.
        shape: Vec<usize>,
        /// Who asked, of the array's group.
        rank: usize,
    },

    /// A buffer whose shape is not the patch's.
    #[error("rank {rank}: {patch} of array '{array}' has shape {expected:?}, but the buffer has {buffer:?}")]
    BufferShape {
        /// The array's name.
        array: String,
        /// The patch asked for.
        patch: String,
        /// The shape that a buffer for it has.
        expected: Vec<usize>,
        /// The buffer's shape.
        buffer: Vec<usize>,
        /// Who asked, of the array's group.
        rank: usize,
    },

    /// A number of axes that arrays cannot have.
    #[error("array '{array}' was to have {dims} axes: an array has 1 to {MAX_DIMS}")]
    Dimensions {
        /// The array's name.
        array: String,
        /// The number of axes asked for.
        dims: usize,
    },

    /// A shape whose elements cannot be counted.
    #[error("array '{array}' of shape {shape:?} with elements of {element} bytes exceeds the address space")]
    TooLarge {
        /// The array's name.
        array: String,
        /// The shape asked for.
        shape: Vec<usize>,
        /// Bytes of an element.
        element: usize,
    },

    /// A distribution, or ghost cells, that contradict the array's shape or group.
    #[error("array '{array}' of shape {shape:?} on {ranks} ranks: {why}")]
    Distribution {
        /// The array's name.
        array: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Ranks of its group.
        ranks: usize,
        /// What contradicts.
        why: String,
    },

    /// Arrays or patches that do not go together in one operation.
    #[error("{operation}: {why}")]
    Mismatch {
        /// The operation asked for.
        operation: &'static str,
        /// What does not go together, with names and shapes.
        why: String,
    },

    /// A collective operation that another rank could not do its part of; that rank has the reason.
    #[error("{operation} of array '{array}': rank {rank} could not do its part")]
    Elsewhere {
        /// The operation asked for.
        operation: &'static str,
        /// The array's name.
        array: String,
        /// Who could not, of the array's group.
        rank: usize,
    },

    /// Integers that were to be divided by zero.
    #[error("array '{array}': elements of {patch} were to be divided by zero, which integers cannot be")]
    DivisionByZero {
        /// The array's name.
        array: String,
        /// The patch that the quotients were for.
        patch: String,
    },

    /// A matrix with which equations cannot be solved.
    #[error("array '{array}' is singular: pivot {pivot} of its LU factors is zero, or no number")]
    Singular {
        /// The array's name.
        array: String,
        /// The pivot, counted from 0.
        pivot: usize,
    },

    /// A matrix that has no Cholesky factor.
    #[error("array '{array}' is not positive definite: pivot {pivot} of its Cholesky factor is not positive")]
    NotPositiveDefinite {
        /// The array's name.
        array: String,
        /// The pivot, counted from 0.
        pivot: usize,
    },

    /// Eigenvalues that were not found.
    #[error("array '{array}': the iteration for its eigenvalues did not converge; are all elements numbers?")]
    NoConvergence {
        /// The array's name.
        array: String,
    },

    /// A transfer that the runtime below refused.
    #[error("{patch} of array '{array}', on rank {rank}: {source}")]
    Transfer {
        /// The array's name.
        array: String,
        /// The patch asked for.
        patch: String,
        /// The rank of the world that owns the part that was refused.
        rank: usize,
        /// The runtime's reason.
        source: armci_core::Error,
    },

    /// A file that an array could not be saved to, or loaded from.
    #[error("array '{array}' and file {}, on rank {rank}: {source}", .path.display())]
    File {
        /// The array's name.
        array: String,
        /// The file, as the program named it.
        path: std::path::PathBuf,
        /// The rank of the array's group that met with the error.
        rank: usize,
        /// What is wrong with the file, or the operating system's reason.
        source: std::io::Error,
    },

    /// An array that could not be written as text.
    #[error("array '{array}' could not be written: {source}")]
    Output {
        /// The array's name.
        array: String,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// The runtime below refused something that concerns the whole array.
    #[error("array '{array}': {source}")]
    Runtime {
        /// The array's name.
        array: String,
        /// The runtime's reason.
        source: armci_core::Error,
    },
}
