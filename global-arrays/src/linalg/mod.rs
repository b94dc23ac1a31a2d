//! Linear algebra on whole arrays and patches.
//!
//! All of it is collective over the group of the array that it changes (of the factored one, where it changes none), and
//! begins and ends with a sync of that group. Products of blocks are those of `matrixmultiply`, as `ndarray` calls it.
//!
//! | room | what it is for |
//! |---|---|
//! | `scalar.rs` | the numbers |
//! | `operand.rs` | a matrix as factor: as it is, transposed, or adjoint |
//! | `tile.rs` | a part of it to compute with: in place where memory is shared, else fetched ahead |
//! | `split.rs` | who computes what of a product, and in which parts |
//! | `multiply.rs`, `vector.rs` | matrix by matrix, matrix by vector |
//! | `triangular.rs` | what one rank does of a factorization: panels, substitution |
//! | `columns.rs` | the working copy of a factorization: columns dealt to ranks |
//! | `lu.rs`, `cholesky.rs`, `solve.rs` | factors and what is solved with them |
//! | `eigen.rs` | the symmetric eigenproblem, by one rank |

mod cholesky;
mod columns;
mod eigen;
mod lu;
mod multiply;
mod operand;
mod scalar;
mod solve;
mod split;
mod tile;
mod triangular;
mod vector;

pub use cholesky::Cholesky;
pub use lu::Lu;
pub use operand::MatrixOperand;
pub use scalar::Scalar;

use armci_core::Group;

/// The part of `0..len` that a rank takes, when all take as much as they can alike.
fn share(len: usize, group: &Group) -> std::ops::Range<usize> {
    let at = |rank: usize| rank * len / group.size();
    at(group.rank())..at(group.rank() + 1)
}
