//! Active messages: small pieces of work done at another rank, by whoever serves it.
//!
//! ```text
//!   origin                                         target
//!   take a request slot (credit)
//!   payload -> the slot's staging chunk
//!   header + arguments  ------ inbox (ring) ------>  service context: progress thread,
//!   go on, or wait                                   or a thread of the rank that waits
//!                                                        run the handler
//!   the slot's reply cell  <---- reply + status ----  never blocks: the slot was kept for it
//!   give the slot back
//! ```
//!
//! Three sizes, as in GASNet; the caller need not know the first two apart:
//!
//! | | what it carries | how |
//! |---|---|---|
//! | short | up to [`INLINE_MAX`](crate::INLINE_MAX) (104) bytes | in the message itself |
//! | medium | up to [`STAGING_BYTES`](crate::STAGING_BYTES) (16 KiB) | in its slot's staging chunk |
//! | long | data of any length, put to a place the sender names; and arguments, up to 16 KiB | as puts, by whichever path is set; then a short message (up to 80 bytes of arguments) or a medium one says where |
//!
//! A reply is short (up to 48 bytes, in the reply cell) or medium. [`World::request`](crate::World::request) shows a
//! remote procedure, `examples/work_stealing.rs` a balance of loads.
//!
//! Rules. Messages of one rank to one target are served in the order sent, one
//! at a time per target. A handler computes and replies; it does not
//! communicate, so serving never waits, and a job cannot deadlock in it. A rank
//! that has no credit left, or finds the target's inbox full, serves its own
//! inbox while it waits.

pub(crate) mod board;
pub(crate) mod builtin;
pub(crate) mod handlers;
pub(crate) mod landing;
pub(crate) mod origin;
pub(crate) mod owner;
pub(crate) mod parcels;
pub(crate) mod service;

pub use handlers::{Delivery, HandlerId, Landed, Reply};
pub use service::HeldService;
