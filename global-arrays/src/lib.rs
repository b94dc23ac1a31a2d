//! Distributed arrays over one-sided communication.
//!
//! A [`GlobalArray`] is an array whose blocks live on the ranks of a job. Any
//! rank reads, writes or adds to any *patch* of it, whoever owns that, and
//! nobody else takes part: the model of Global Arrays, with the words of `ndarray`.
//!
//! ```text
//!                columns                     get(s![1..4, 2..6]) on any rank
//!            0  1  2 | 3  4  5                      |
//!          +---------+---------+                    v
//!        0 |         |         |        +---------+---------+
//!   rows 1 | rank 0  | rank 1  |        | from 0  | from 1  |   one strided
//!        2 |     [.. | .....]  |        +---------+---------+   transfer per owner
//!          +---------+---------+        | from 2  | from 3  |
//!        3 | rank 2 [| ..... ] |        +---------+---------+
//!        4 |         | rank 3  |
//!          +---------+---------+
//! ```
//!
//! ```
//! use armci_core::World;
//! use global_arrays::GlobalArray;
//! use ndarray::{Array2, arr2, s};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let world = World::init()?;
//!     let a = GlobalArray::<f64>::create(&world, "density", [100, 100])?;
//!     if world.rank() == 0 {
//!         a.put(s![10..12, 40..42], &arr2(&[[1.0, 2.0], [3.0, 4.0]]))?;
//!     }
//!     a.sync()?;
//!     a.accumulate(s![10..12, 40..42], 0.5, &Array2::ones((2, 2)))?;
//!     a.sync()?;
//!     let row = a.get(s![11, 40..42])?;
//!     assert_eq!(row.to_vec(), [3.0, 4.0].map(|x| x + 0.5 * world.size() as f64));
//!     a.destroy()?;
//!     world.finalize()?;
//!     Ok(())
//! }
//! ```
//!
//! # Creation
//!
//! # One-sided access
//! As in the runtime below: a put or accumulate may reuse its buffer on return
//! and is visible to others after [`GlobalArray::sync`]; a get is complete on
//! return; accumulates are atomic per element and commute.
//!
//! # Locality
//!
//! # Ghost cells
//!
//! # Mathematics on arrays and patches
//!
//! # Linear algebra
//!
//! # Work
//!
//! # Looking at arrays, and keeping them
//!

mod access;
mod array;
mod axes;
mod create;
mod distribution;
mod error;
mod ghosts;
mod group;
mod local;
mod locality;
mod math;
mod patch;
mod select;
mod slice;
mod transfer;
mod wrap;

pub use array::GlobalArray;
pub use axes::{Axes, MAX_DIMS};
pub use create::Builder;
pub use distribution::Distribution;
pub use error::{Error, Result};
pub use ghosts::Side;
pub use group::Group;
pub use patch::Patch;
pub use select::{Section, Select};
pub use slice::GlobalSlice;
pub use wrap::WrappingRanges;
