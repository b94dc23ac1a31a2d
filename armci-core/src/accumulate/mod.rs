//! Accumulate: `y += alpha * x` in another rank's memory, atomic per element.
//!
//! [`kernels`] do the arithmetic, [`locks`] keep two accumulates of one element
//! apart, [`protocol`] brings both together for whoever applies an accumulate:
//! the origin in place (origin-driven), or whoever serves the target
//! (target-driven, paper 003 section III-D). Both take the target's locks.

pub mod kernels;
pub(crate) mod locks;
pub(crate) mod protocol;
