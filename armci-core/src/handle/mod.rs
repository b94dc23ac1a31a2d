//! Non-blocking operations: started by one call, waited for by another.
//!
//! | how it is waited for | what keeps the buffer | |
//! |---|---|---|
//! | explicit handle | the [`Handle`] owns it and gives it back | [`World::get_nb`], [`World::put_nb`], ... |
//! | scope | it is borrowed for the scope, at whose end all is complete | [`World::nonblocking`] |
//! | implicit or raw handle | the caller vouches for it | [`World::get_nb_into`], ..., [`World::wait_all`] |
//! | aggregate | puts are copied at once, gets borrow for the scope | [`World::aggregate`], [`Scope::aggregate`] |
//!
//! # Completion
//! A wait is for *local* completion, as in ARMCI: after it the source of a put or accumulate may be reused, and the
//! target of a get holds the data. What was put is in place at its target after a [`World::fence`] or a
//! [`World::barrier`]. Operations of one thread to one place keep their order whether they are waited for or not: a
//! get sees the puts started before it, and not those started after it.
//!
//! What is outstanding today are gets by message. By remote memory access an operation is complete when the call that
//! starts it returns; puts and accumulates by message are locally complete then, since their bytes have been copied.
//! Their handles are complete from the start, and a program that waits for them all the same is right on every
//! transport. A call that starts an operation may wait for credits: at most 16 messages of 16 KiB of one get are under
//! way at once, 32 of one thread; between nodes 4 long ones, of 512 KiB, and without a progress thread none of these is
//! under way when its call returns.
//!
//! Handles, scopes and waits are of the thread that started the operations, as contexts are. A get is refused if
//! its region is freed before it is served; the wait for it says so. (A put that is refused is the next fence's error.)
//!
//! # Ownership
//! The memory of a get in flight is written by the thread that started it, inside its calls, until its record is gone
//! from the context's request slots. It must not be freed or looked at meanwhile, and [`std::mem::forget`] may
//! skip any destructor. So a handle *owns* its buffer, taken apart: forgotten, it leaks a buffer that nobody
//! else has. And a scope is a function that waits before it returns, also by a panic: no value whose destructor would
//! have to run is involved.

mod aggregate;
mod buffer;
mod owned;
mod raw;
mod scope;

pub use aggregate::{Aggregate, ScopedAggregate};
pub use buffer::Buffer;
pub use owned::Handle;
pub use raw::NbHandle;
pub use scope::{Scope, ScopedHandle};

#[expect(unused_imports, reason = "for the links above")]
use crate::world::World;
