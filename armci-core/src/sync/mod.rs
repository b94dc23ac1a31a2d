//! Waiting for other ranks: the bell, the one wait, the barrier.

pub(crate) mod barrier;
pub(crate) mod bell;
pub(crate) mod wait;
