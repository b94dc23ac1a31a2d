//! Waiting for other ranks: the bell, the one wait, the barrier; and the queue of those who wait for a mutex.

pub(crate) mod barrier;
pub(crate) mod bell;
pub(crate) mod queue_lock;
pub(crate) mod wait;
