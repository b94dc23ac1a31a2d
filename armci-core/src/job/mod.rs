//! Who takes part: this process's rank, its job, and the few exchanges that a start and an end
//! need.
//!
//! ```text
//!   armci-run -n 3 prog              the launcher: one thread, asleep in poll
//!        |  one socket per rank      answers exchanges, watches for deaths, ends the job
//!   +----+----+--------+
//!   v         v        v
//!  rank 0   rank 1   rank 2          `bootstrap()` finds the socket through ARMCI_JOB
//! ```
//!
//! Guaranteed: a rank either belongs to exactly one job or is a job of one; a job whose rank dies
//! ends as a whole, within a second, with one message; no rank survives its launcher. Not
//! guaranteed: anything about processes that a rank starts and moves out of its process group while
//! the launcher is killed with SIGKILL.
//!
//! Under another launcher (Open MPI's `mpirun`, MPICH's `mpiexec`, Slurm's `srun`) a key-value store stands in for the
//! exchange, and ranks watch each other: it may see less of a death than ours does.
//!
//! Everything above sees only [`Bootstrap`]: who we are, where to sit, one exchange, the goodbye and how to give up.
//! What serves these calls is interchangeable: `rank.rs` (ours), `hosted.rs` (theirs, over `pmi/` or `pmix/`),
//! `alone.rs`; `choice.rs` finds out which.

mod abort;
mod alone;
mod choice;
mod descent;
mod guard;
mod hosted;
mod inherited;
mod launcher;
mod network;
mod place;
mod pmi;
#[doc(hidden)]
pub mod pmix;
mod rank;
mod ring;
mod ticket;
mod wire;

pub use crate::topology::Bind;
pub use abort::Aborter;
pub use launcher::{Failure, Hosts, Job, Outcome, serve_as_agent};
pub(crate) use network::host_name;

use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;

use crate::config::{Config, StartedBy};
use crate::error::{Error, Result};
use crate::topology::{self, Seat};

/// Where this process stands in its job. The ranks of a node are consecutive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// This process's number, `0..size`.
    pub rank: usize,
    /// How many ranks the job has.
    pub size: usize,
    /// This process's number among the ranks of its node, `0..local_size`.
    pub local_rank: usize,
    /// How many ranks share this node.
    pub local_size: usize,
    /// How many nodes the job spans.
    pub nodes: usize,
    /// The number of this node, `0..nodes`.
    pub node: usize,
    /// How many of the nodes this machine plays: one, or all if they are virtual ([`Job::nodes`]).
    pub nodes_here: usize,
}

impl Identity {
    /// A rank of a job that lives on one machine, which plays as many nodes: each has consecutive
    /// ranks, and none has two more than another.
    fn on_one_machine(rank: usize, size: usize, nodes: usize) -> Self {
        let first = |node| node * size / nodes;
        // The last node that begins at or before this rank: `first` rounds down.
        let node = ((rank + 1) * nodes - 1) / size;
        let local_size = first(node + 1) - first(node);
        Self { rank, size, local_rank: rank - first(node), local_size, nodes, node, nodes_here: nodes }
    }
}

/// What started this rank, and what it offers until the ranks can reach each other by themselves.
///
/// The calls that are collective (`all_gather`, `goodbye`) must be made by all ranks in the same
/// order.
pub trait Bootstrap: Send {
    /// Who we are.
    fn identity(&self) -> &Identity;

    /// Gives every rank the bytes of every rank, in rank order. Collective; meant for a few KiB per
    /// rank, a few times.
    ///
    /// # Errors
    /// If the launcher is gone, or ended the job.
    fn all_gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Waits until every rank has called it. Collective.
    ///
    /// # Errors
    /// If the launcher is gone, or ended the job.
    fn meet(&mut self) -> Result<()> {
        self.all_gather(&[]).map(drop)
    }

    /// The end of a line that tells a neighbour whether this rank lives, if neighbours are to watch each other; a
    /// launcher of ours watches by itself.
    ///
    /// # Errors
    /// If no descriptor is left.
    fn lifeline(&mut self) -> Result<Option<OwnedFd>> {
        Ok(None)
    }

    /// Watches a neighbour, whose lifeline this is, if it has one.
    ///
    /// # Errors
    /// If the means for it are lacking.
    fn watch(&mut self, neighbour: usize, lifeline: Option<OwnedFd>) -> Result<()> {
        drop((neighbour, lifeline));
        Ok(())
    }

    /// The orderly end, after all ranks have met for the last time: from now on, leaving with exit code 0
    /// is no failure. Collective; our own launcher waits until every rank has called it.
    ///
    /// # Errors
    /// If the launcher is gone, or ended the job.
    fn goodbye(&mut self) -> Result<()>;

    /// Where this rank and its progress thread should sit. The launcher knows (it looked once for
    /// all); without one we look.
    fn seat(&self) -> Seat {
        topology::quick_seat(self.identity().local_rank, self.identity().local_size)
    }

    /// How a rank that gives up tells whatever started it.
    fn aborter(&self) -> Aborter {
        Aborter::default()
    }
}

/// Joins the job this process was started for, or makes it a job of one, as `ARMCI_BOOTSTRAP` in the environment asks.
///
/// # Errors
/// As [`bootstrap_by`]; or if a setting is not understood.
pub fn bootstrap() -> Result<Box<dyn Bootstrap>> {
    let config = Config::from_env()?;
    bootstrap_by(config.bootstrap, config.nodes, config.verbose)
}

/// Joins the job that this launcher, or any, has started this process for, or makes it a job of one. If `verbose`, says
/// on standard error which it is, and why. Where a launcher other than ours started all ranks on one node, that plays
/// `nodes` virtual ones.
///
/// A stale `ARMCI_JOB`, inherited from a rank that started this process as a plain child, is told
/// from a live one by its descriptor: it must be open, be the very socket the launcher made for this
/// rank, and answer with the job's secret. A stale `PMI_FD` is not open; behind stale `PMIX_` variables nobody answers.
///
/// A rank joins once. Under our launcher a second call before [`Bootstrap::goodbye`], also from another process that
/// stands for the same rank, is no error here but the end of the job: the launcher names the rank
/// that "joined twice", and this process is among those it ends. A second call after the goodbye is
/// refused with an error, under other launchers any second one. A process that nobody launched may call as often as it
/// likes; each time it becomes a job of one.
///
/// # Errors
/// If the launcher asked for has not started this process; if what it left in the environment is unreadable; if it is
/// gone, or this rank has said goodbye before; in one of several tasks of Slurm that offers them no way to find each
/// other.
pub fn bootstrap_by(launcher: StartedBy, nodes: NonZeroU32, verbose: bool) -> Result<Box<dyn Bootstrap>> {
    choice::join(launcher, nodes, verbose)
}

/// Whether a launcher started this process as a rank, as far as can be told without asking it; also if what it left in
/// the environment is an error, which [`bootstrap`] then reports.
#[must_use]
pub fn is_rank() -> bool {
    choice::is_rank(Config::from_env().map_or(StartedBy::Auto, |config| config.bootstrap))
}

/// Runs `body` on `ranks` ranks of this very program: in a rank it calls `body` and exits with what
/// that returns; in a process that is no rank it starts the program anew, with the same arguments,
/// as `ranks` ranks, and exits with the job's code.
pub fn launch<F: FnOnce() -> i32>(ranks: usize, body: F) -> ! {
    if is_rank() {
        std::process::exit(body());
    }
    let code = match Job::this_program(ranks).and_then(|job| job.run()) {
        Ok(outcome) => outcome.code,
        Err(error) => {
            // Without a reader of standard error, the code must do.
            let _ = writeln!(std::io::stderr(), "armci-run: {error}");
            1
        }
    };
    std::process::exit(code)
}

/// Words from the kernel's random number generator.
pub(crate) fn random<const WORDS: usize>() -> Result<[u64; WORDS]> {
    let mut words = [0; WORDS];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(bytemuck::cast_slice_mut(&mut words)))
        .map_err(|source| Error::System { call: "read of /dev/urandom", source })?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_consecutive_ranks_and_nearly_equally_many() {
        for size in 1..12 {
            for nodes in 1..=size {
                let all: Vec<_> = (0..size).map(|rank| Identity::on_one_machine(rank, size, nodes)).collect();
                assert_eq!((all[0].node, all[0].local_rank, all[size - 1].node), (0, 0, nodes - 1));
                for (one, next) in all.iter().zip(&all[1..]) {
                    let within = (one.node, one.local_rank + 1);
                    let across = (one.node + 1, 0);
                    let ends = one.local_rank + 1 == one.local_size;
                    assert_eq!((next.node, next.local_rank), if ends { across } else { within }, "{one:?} {next:?}");
                }
                let even = size / nodes..=size.div_ceil(nodes);
                assert!(all.iter().all(|one| even.contains(&one.local_size)), "{all:?}");
            }
        }
    }
}
