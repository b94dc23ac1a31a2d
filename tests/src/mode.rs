//! The mode that jobs run in whose test asks for no other: what the environment of the tests says in `TEST_NODES`,
//! `TEST_PROTOCOL` and `TEST_PROGRESS`; and `TEST_PATIENCE`, by which time limits are multiplied where a machine is busy.
//!
//! These are not the settings themselves (`ARMCI_PROTOCOL`, ...), which a rank finds changed by its test: the processes of
//! a test must agree on which jobs it has, see [`protocols`].

use std::num::NonZero;

/// How many virtual nodes the ranks are split into, as far as there are ranks.
///
/// # Panics
/// If `TEST_NODES` is no number of nodes.
#[must_use]
pub fn nodes() -> Option<usize> {
    let nodes = asked("TEST_NODES")?;
    match nodes.parse::<NonZero<usize>>() {
        Ok(nodes) => Some(nodes.get()),
        Err(_) => panic!("TEST_NODES={nodes}: it is a number of nodes, from 1 on"),
    }
}

/// The numbers of ranks of a test that goes through several: one to four. Split over nodes these are one a node, one
/// more, and two a node; so four nodes have eight ranks.
#[must_use]
pub fn numbers() -> Vec<usize> {
    nodes().map_or_else(|| (1..=4).collect(), |nodes| vec![nodes, nodes + 1, 2 * nodes])
}

/// The path of operations (`ARMCI_PROTOCOL`).
#[must_use]
pub fn protocol() -> Option<String> {
    asked("TEST_PROTOCOL")
}

/// Who serves ranks that compute (`ARMCI_PROGRESS`).
#[must_use]
pub fn progress() -> Option<String> {
    asked("TEST_PROGRESS")
}

/// Both paths, for a test that goes through them; where the mode names one, that alone, so that no job runs twice in two
/// modes.
#[must_use]
pub fn protocols() -> Vec<String> {
    protocol().map_or_else(|| vec!["rma".to_owned(), "am".to_owned()], |protocol| vec![protocol])
}

/// With and without progress thread, or as the mode says.
#[must_use]
pub fn progresses() -> Vec<String> {
    progress().map_or_else(|| vec!["thread".to_owned(), "none".to_owned()], |progress| vec![progress])
}

/// How many times as long as usual a job may take.
///
/// # Panics
/// If `TEST_PATIENCE` is no number of times.
#[must_use]
pub fn patience() -> u32 {
    asked("TEST_PATIENCE").map_or(1, |times| match times.parse::<NonZero<u32>>() {
        Ok(times) => times.get(),
        Err(_) => panic!("TEST_PATIENCE={times}: it is a factor, from 1 on"),
    })
}

fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
