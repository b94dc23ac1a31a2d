//! Ranks of other nodes: libfabric.
//!
//! ```text
//!   origin context            [`Line`]  ------- requests, reads, writes -------->  [`Reception`]     the target's
//!   (one per thread)          endpoint  <------------- replies ------------------  endpoint          service context
//!        |                        \___________________ [`Fabric`] _________________/
//!   request slots                        who is where, what is exported, giving up
//!                                         [`domain`]: the provider, its addresses and memory
//!                                         [`library`], [`abi`]: libfabric, loaded when it is needed
//! ```
//!
//! Each context has a domain, an endpoint and a completion queue of its own, so threads share no lock, of ours or of
//! the provider's. Memory is exported
//! by its owner's service endpoint, the one that is always looked at: providers whose remote memory access only goes on
//! while the target looks at its queue are moved on by the progress thread. Whatever a provider lacks goes by message.
//!
//! What is longer than a packet travels beside it: a request names a place in the memory of whoever asks ([`bulk`]), and
//! the reception fetches from there into a landing, or stores there from one ([`landings`]).
//!
//! *Atomics go by message*, to whoever serves the target, which changes the word as its neighbours do, by the processor:
//! a provider's atomics would not exclude them.

pub mod abi;
mod askers;
mod bulk;
mod dispositions;
mod domain;
mod doubts;
mod endpoint;
mod fabric;
mod faults;
pub mod fuzzed;
mod landings;
mod library;
mod line;
mod names;
mod packet;
mod reception;
mod replies;
mod settings;

/// Whether the library that joins nodes is here.
///
/// # Errors
/// [`Error::Fabric`](crate::Error::Fabric) if it is not, or is another one of that name.
pub(crate) fn is_here() -> crate::error::Result<()> {
    library::Library::load().map(drop)
}

pub(crate) use bulk::Purpose;
pub(crate) use domain::Wanted;
pub(crate) use fabric::Fabric;
pub(crate) use faults::Asked;
pub(crate) use line::Line;
pub use packet::BULK_BYTES;
pub(crate) use packet::{Errand, Place, Through};
pub(crate) use reception::Reception;
