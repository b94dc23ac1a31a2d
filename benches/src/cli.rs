//! The command line.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, value_parser};

use crate::full::Shown;
use crate::jobs::JOBS;
use crate::programs::SETS;
use crate::study::Wanted;

/// Measures the runtime beside the machine's own limits, ARMCI-MPI and Global Arrays on Open MPI, and prints a table.
/// The commands measure one thing by size, ranks, path and nodes, as the papers' figures show it.
#[derive(Debug, Parser)]
#[command(name = "armci-bench", version, about)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Action>,
    /// One short round: to see that everything works.
    #[arg(long, global = true)]
    pub quick: bool,
    /// Only this job of ours, or these C programs: to look into something. Not for the sweep, which has one job.
    #[arg(long, value_name = "JOB", value_parser = PossibleValuesParser::new(names()))]
    pub only: Option<String>,
    /// Leave the peer out.
    #[arg(long, global = true)]
    pub no_peer: bool,
    /// The library whose C interface is measured, if not the libarmci.so beside this program.
    #[arg(long, global = true, value_name = "FILE")]
    pub libarmci: Option<PathBuf>,
    /// The prefix of a Global Arrays that was built for Open MPI with `./configure --with-mpi-pr`, to measure beside.
    #[arg(long, global = true, value_name = "DIR")]
    pub mpi_pr: Option<PathBuf>,
    /// Write all figures to this file.
    #[arg(long, global = true, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the pictures of a report into this directory, with a README.md that shows them and all targets.
    #[arg(long, global = true, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Renew the figures of a report in this text, between the lines <!-- figures --> and <!-- end of figures -->.
    #[arg(long, global = true, value_name = "FILE")]
    pub readme: Option<PathBuf>,
    /// Exit with 1 if a default path is slower than the peer, or a limit is exceeded; with 3 if the peer or a figure
    /// is missing, so that something could not be checked. Needs the whole table.
    #[arg(long, conflicts_with_all = ["only", "no_peer"])]
    pub check: bool,
}

impl Arguments {
    /// Where a report is shown.
    pub fn shown(&self) -> Shown {
        Shown { plots: self.plots.clone(), readme: self.readme.clone() }
    }
}

/// Which jobs; what is left out is chosen by each benchmark.
#[derive(Args, Clone, Debug)]
pub struct Jobs {
    /// Numbers of ranks, such as 2,4.
    #[arg(long, value_delimiter = ',', value_parser = value_parser!(u16).range(1..))]
    ranks: Vec<u16>,
    /// Virtual nodes that the ranks are split into; they share no memory, and reach each other by libfabric.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..))]
    nodes: u16,
    /// Paths of all operations: directly into the target's memory, by active message, or one after the other.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(["rma", "am"]))]
    protocol: Vec<String>,
    /// Who serves messages while a rank computes: its thread, or nobody.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(["thread", "none"]))]
    progress: Vec<String>,
}

/// Jobs, and sizes.
#[derive(Args, Clone, Debug)]
pub struct Sized {
    #[command(flatten)]
    jobs: Jobs,
    /// Bytes of a transfer, or of a row: multiples of 8, such as 64,4096.
    #[arg(long, value_delimiter = ',', value_parser = size)]
    sizes: Vec<usize>,
}

/// Jobs, and a problem.
#[derive(Args, Clone, Debug)]
pub struct Problem {
    #[command(flatten)]
    jobs: Jobs,
    /// Length of each axis, on the fewest ranks.
    #[arg(long, value_parser = value_parser!(u32).range(4..=65536))]
    n: Option<u32>,
}

/// The same in blocks.
#[derive(Args, Clone, Debug)]
pub struct Blocked {
    #[command(flatten)]
    problem: Problem,
    /// Length of a block.
    #[arg(long, value_parser = value_parser!(u32).range(1..=4096))]
    block: Option<u32>,
}

/// The same in steps of time.
#[derive(Args, Clone, Debug)]
pub struct Stepped {
    #[command(flatten)]
    problem: Problem,
    /// Steps; the flow is then not held against the published one.
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// Reynolds number; flows are published for 100.
    #[arg(long, value_parser = positive)]
    reynolds: Option<f64>,
}

fn size(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|_| format!("'{text}' is no number of bytes"))?;
    let possible = (8..=64 << 20).contains(&bytes) && bytes.is_multiple_of(8);
    if possible { Ok(bytes) } else { Err(format!("{bytes}: a size is a multiple of 8, from 8 to 67108864")) }
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value: &f64| *value > 0.0 && value.is_finite())
        .ok_or_else(|| format!("'{text}' is not positive"))
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Put and get from 8 bytes to 4 MiB, beside the peer's.
    Sweep,
    /// Put and get: latency by size and by rank, time per byte, efficiency, N1/2 (paper 003, Fig. 4-8).
    Contig(Sized),
    /// 1 MiB in rows, by the length of a row (Fig. 9).
    Strided(Sized),
    /// Accumulate of 1 MiB by the length of a row, by several protocols (Fig. 11).
    Acc(Sized),
    /// The counter by ranks, its owner waiting or computing, with and without a progress thread (Fig. 10).
    Rmw(Jobs),
    /// Active messages by payload.
    Am(Sized),
    /// Fences behind puts.
    Fence(Jobs),
    /// Barrier and synchronise by ranks.
    Barrier(Jobs),
    /// Broadcast, all-reduce, all-gather and exchange by size.
    Collectives(Sized),
    /// How much of a transfer hides behind computation.
    Overlap(Sized),
    /// Two threads of a rank beside two ranks.
    Threads(Jobs),
    /// Where places are found: in the owner's table, in the cache of regions, by asking.
    Cache(Jobs),
    /// From before the launch to the first barrier, by ranks.
    Startup(Jobs),
    /// What ranks and a thousand allocations cost, by ranks.
    Memory(Jobs),
    /// LU without pivoting on blocks dealt in two dimensions (Fig. 12).
    Lu(Blocked),
    /// Lattice Boltzmann, a cavity driven by its lid, with ghost cells (Fig. 13).
    Boltzmann(Stepped),
    /// The Hartree-Fock program beside this one, with and without a progress thread (Fig. 14).
    Scf(Jobs),
    /// The product of two matrices.
    Matmul(Problem),
    /// What the machine allows between two cores.
    Limits,
    /// What else is installed, in the same run: ARMCI-MPI, Global Arrays, Open MPI's and MPICH's RMA, UCX, bare libfabric.
    Peers,
    /// Paper 003's equations with constants measured here: predicted beside measured, and of 10^3 to 10^6 ranks.
    Model {
        /// Take the figures of this file of records instead of measuring.
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Everything, as one page with pictures: needs --json FILE, and writes FILE's .html and .csv beside it; --plots and
    /// --readme show it elsewhere too.
    Report,
    /// Draw the page of a file of records again, with --plots and --readme as for a report.
    Page {
        /// The file that --json wrote; its .html and .csv are written beside it.
        file: PathBuf,
    },
    /// Hold a second run against a first; exits with 1 if something became slower by more than noise.
    Compare {
        /// The first run's file.
        before: PathBuf,
        /// The second's.
        after: PathBuf,
        /// By how much figures may differ, beyond the spread of their samples: 0.1 is a tenth.
        #[arg(long, default_value = "0.1", value_parser = positive)]
        noise: f64,
    },
    /// What the program starts the table's ranks with.
    #[command(hide = true)]
    Rank {
        /// Which configuration.
        name: String,
    },
    /// What it starts the other benchmarks' ranks with.
    #[command(hide = true)]
    Member {
        /// What they are to do.
        setup: String,
    },
}

impl Action {
    /// Which of the papers' measurements that is, and what is wanted of it.
    pub fn study(&self) -> Option<(&'static str, Wanted)> {
        Some(match self {
            Action::Contig(sized) => ("contig", sized.wanted()),
            Action::Strided(sized) => ("strided", sized.wanted()),
            Action::Acc(sized) => ("acc", sized.wanted()),
            Action::Rmw(jobs) => ("rmw", jobs.wanted()),
            Action::Am(sized) => ("am", sized.wanted()),
            Action::Fence(jobs) => ("fence", jobs.wanted()),
            Action::Barrier(jobs) => ("barrier", jobs.wanted()),
            Action::Collectives(sized) => ("collectives", sized.wanted()),
            Action::Overlap(sized) => ("overlap", sized.wanted()),
            Action::Threads(jobs) => ("threads", jobs.wanted()),
            Action::Cache(jobs) => ("cache", jobs.wanted()),
            Action::Startup(jobs) => ("startup", jobs.wanted()),
            Action::Memory(jobs) => ("memory", jobs.wanted()),
            Action::Lu(Blocked { problem, block }) => {
                ("lu", Wanted { block: block.map(|block| block as usize), ..problem.wanted() })
            }
            Action::Boltzmann(Stepped { problem, steps, reynolds }) => {
                let steps = steps.map(|steps| steps as usize);
                ("boltzmann", Wanted { steps, reynolds: *reynolds, ..problem.wanted() })
            }
            Action::Matmul(problem) => ("matmul", problem.wanted()),
            Action::Scf(jobs) => ("scf", jobs.wanted()),
            _ => return None,
        })
    }
}

impl Jobs {
    fn wanted(&self) -> Wanted {
        Wanted {
            ranks: self.ranks.iter().map(|ranks| usize::from(*ranks)).collect(),
            nodes: self.nodes.into(),
            protocols: self.protocol.clone(),
            progress: self.progress.clone(),
            ..Wanted::default()
        }
    }
}

impl Sized {
    fn wanted(&self) -> Wanted {
        Wanted { sizes: self.sizes.clone(), ..self.jobs.wanted() }
    }
}

impl Problem {
    fn wanted(&self) -> Wanted {
        Wanted { n: self.n.map(|n| n as usize), ..self.jobs.wanted() }
    }
}

/// What `--only` knows.
fn names() -> impl Iterator<Item = &'static str> {
    JOBS.iter().map(|job| job.name).chain(SETS.iter().map(|set| set.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_arrives() {
        let of = |line: &str| Arguments::try_parse_from(line.split(' ')).map(|arguments| arguments.command);
        let Ok(Some(action)) = of("armci-bench contig --ranks 2,4 --nodes 2 --protocol rma,am --sizes 64,4096 --quick")
        else {
            panic!("it is a command")
        };
        let (name, wanted) = action.study().unwrap();
        assert_eq!((name, wanted.ranks, wanted.nodes, wanted.sizes), ("contig", vec![2, 4], 2, vec![64, 4096]));
        assert!(of("armci-bench contig --sizes 12").is_err_and(|error| error.to_string().contains("multiple of 8")));
        assert!(of("armci-bench contig --protocol smoke").is_err());
        assert!(of("armci-bench lu --n 96 --block 16 --ranks 3").is_ok_and(|action| {
            action.and_then(|action| action.study()).is_some_and(|(_, wanted)| wanted.block == Some(16))
        }));
        assert!(of("armci-bench boltzmann --reynolds -1").is_err());
    }
}
