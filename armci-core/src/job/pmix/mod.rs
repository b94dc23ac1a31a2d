//! Launchers that speak PMIx, as Open MPI's `mpirun`, `prterun` and Slurm's pmix plugin do.
//!
//! PMIx is a library with a wire of its own, so the library is what we speak to: [`library`] loads `libpmix.so.2` when it
//! is needed, [`abi`] is what of its header we use, [`client`] the key-value store made of it, [`claim`] tells a rank from
//! the programs that it starts.
//!
//! An Open MPI in the same process uses the same copy of the library, which counts how often it was initialized: neither
//! ends what the other still needs, whoever comes first.

#[doc(hidden)]
pub mod abi;
mod claim;
mod client;
mod library;

pub(super) use client::{Client, Stale, named_in_environment};
