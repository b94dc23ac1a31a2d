//! Ordinary `#[test]` functions that run on several ranks.
//!
//! ```text
//!   cargo test                                  the test process
//!     #[test] fn counter_is_exact() {
//!         on_ranks(3, |world| { ... })   ---->  starts this test binary three times, with `--exact counter_is_exact`,
//!     }                                         and waits; panics if a rank fails, saying which, why and what it wrote
//!                +------------+------------+
//!                v            v            v
//!             rank 0       rank 1       rank 2  the same function runs there, reaches the same `on_ranks`, finds itself to be
//!                                               a rank, initializes, runs the body, finalizes, exits
//! ```
//!
//! ```no_run
//! # mod test {
//! #[test]
//! fn everybody_is_there() {
//!     tests::on_ranks(3, |world| assert_eq!(world.size(), 3));
//! }
//!
//! #[test]
//! fn any_number_over_any_path() {
//!     tests::matrix(|world| assert!(world.rank() < world.size()));
//! }
//!
//! #[test]
//! fn a_bad_rank_ends_the_job() {
//!     let outcome = tests::Ranks::new(2).expect_failure(|world| assert_eq!(world.rank(), 0));
//!     assert_eq!(outcome.failed.unwrap().rank, 1);
//! }
//! # }
//! ```
//!
//! A test may run several jobs, one after the other. Code between them runs in the test process and
//! again in every rank, up to that rank's job. A job that hangs ends after a minute
//! ([`Ranks::timeout`]). Works under `cargo test` and `cargo nextest`.

pub mod hosts;
pub mod launched;
pub mod mode;
pub mod numbers;
mod place;
mod ranks;
pub mod relay;
pub mod sample;
pub mod sockets;
pub mod spread;

pub use armci_core::job::{Failure, Outcome};
pub use ranks::{Ranks, at_work};

use armci_core::World;

/// Whether ranks on several nodes can be joined here; if not, says why on standard output.
pub fn nodes_can_be_joined() -> bool {
    World::check_fabric().inspect_err(|error| println!("skipped: {error}")).is_ok()
}

/// Runs `body` on `ranks` ranks.
///
/// # Panics
/// If a rank fails or hangs.
pub fn on_ranks(ranks: usize, body: impl FnOnce(&World)) {
    Ranks::new(ranks).run(body);
}

/// Runs `body` in one job after the other, of these numbers of ranks.
///
/// # Panics
/// If a rank fails or hangs.
pub fn for_each(numbers: impl IntoIterator<Item = usize>, body: impl Fn(&World)) {
    for ranks in numbers {
        Ranks::new(ranks).run(&body);
    }
}

/// Runs `body` with one to four ranks, over each protocol, with and without progress thread: sixteen jobs, or what the
/// [`mode`] makes of them.
///
/// # Panics
/// If a rank fails or hangs.
pub fn matrix(body: impl Fn(&World)) {
    for ranks in mode::numbers() {
        for protocol in mode::protocols() {
            for progress in mode::progresses() {
                Ranks::new(ranks).env("ARMCI_PROTOCOL", &protocol).env("ARMCI_PROGRESS", &progress).run(&body);
            }
        }
    }
}
