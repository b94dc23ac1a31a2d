//! What can go wrong with a benchmark run as a whole. A peer that is missing or fails is not among it: its column
//! says why.

use std::path::PathBuf;

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime refused something.
    #[error("{0}")]
    Runtime(#[from] armci_core::Error),
    /// An array refused something.
    #[error("{0}")]
    Array(#[from] global_arrays::Error),
    /// A job of ours ended badly.
    #[error("the job '{job}' ended with code {code}{}: {stderr}", if *.timed_out { " after its time limit" } else { "" })]
    Job {
        /// Its configuration.
        job: &'static str,
        /// What it ended with.
        code: i32,
        /// Whether it took too long.
        timed_out: bool,
        /// What its ranks said.
        stderr: String,
    },
    /// The run was asked to end.
    #[error("ended by signal {0}")]
    Interrupted(i32),
    /// There is no such job.
    #[error("there is no job '{0}': armci-bench --help names them")]
    Configuration(String),
    /// A rank printed something else than figures.
    #[error("cannot read a figure from '{line}': {source}")]
    Figure {
        /// What was printed.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Measurements between two cores need two.
    #[error("this benchmark measures between two cores, but may use only {0}; look at the affinity mask (taskset -p)")]
    Cores(usize),
    /// A system call failed.
    #[error("{call}: {source}")]
    System {
        /// Which one.
        call: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A rank printed something else than records, or was told nonsense.
    #[error("cannot read '{line}': {source}")]
    Record {
        /// What there was.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A kernel's answer is not right.
    #[error("the answer is wrong: {0}")]
    Wrong(String),
    /// What was asked for cannot be measured.
    #[error("{0}")]
    Asked(String),
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A picture could not be drawn.
    #[error("cannot draw {0}")]
    Draw(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A result of this program.
pub type Result<T> = std::result::Result<T, Error>;
