//! The launcher: starts a job's ranks, on this host or through agents on others (`hosts/`), serves their exchanges, and
//! ends the job as a whole.
//!
//! Guaranteed: when [`Job::run`] returns, every rank and what remained in its process group is gone
//! and reaped. Everything happens on the calling thread, which must live as long as the ranks (the
//! kernel ties their lives to it). A signal that asks the calling process to end (`SIGINT`,
//! `SIGTERM`, `SIGHUP`, `SIGQUIT`) ends the ranks first; a process with more threads must block
//! these elsewhere if it wants that promise, otherwise it dies of them, and the ranks with it.

mod duty;
mod ending;
mod exchange;
mod hosts;
mod output;
mod ranks;
mod signals;
mod spawn;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::topology::Bind;
use ranks::Part;

pub use hosts::{Hosts, serve_as_agent};

/// The most ranks of one job: far beyond what a machine runs well, and within what it can name.
const MAX_RANKS: usize = 16 << 10;

/// A program to be run by several ranks: build it up, then [`Job::run`] it.
///
/// ```no_run
/// # use armci_core::job::Job;
/// let outcome = Job::new(4, "./water")?.args(["--steps", "10"]).tag_output(true).run()?;
/// assert_eq!(outcome.code, 0, "{:?}", outcome.failed);
/// # Ok::<(), armci_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    ranks: usize,
    nodes: usize,
    hosts: Option<Hosts>,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    bind: Bind,
    tag_output: bool,
    capture_stdout: bool,
    capture_stderr: bool,
    /// Whether lines pass through here although they are neither tagged nor captured.
    by_line: bool,
    no_input: bool,
    quiet: bool,
    timeout: Option<Duration>,
}

/// How a job ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What the launching program should exit with: 0, the failed rank's code, 128 + a signal's
    /// number, 127 or 126 if the program was not found or is not executable, 124 after a time-out.
    pub code: i32,
    /// The first rank that failed.
    pub failed: Option<Failure>,
    /// Whether the job was ended because it exceeded its [`Job::timeout`].
    pub timed_out: bool,
    /// What the ranks wrote to standard output, if that was captured.
    pub stdout: Vec<u8>,
    /// What the ranks wrote to standard error, if that was captured.
    pub stderr: Vec<u8>,
}

/// The rank whose end ended the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its number.
    pub rank: usize,
    /// What became of it, such as "was killed by signal 9 (SIGKILL)".
    pub reason: String,
}

fn nodes_and_hosts(nodes: usize) -> Error {
    Error::Argument(format!(
        "{nodes} virtual nodes and a list of hosts were asked for: each host is a node; leave out one of the two"
    ))
}

impl Job {
    /// A job of `ranks` ranks of `program`, which is looked up in `PATH` unless it contains a
    /// slash.
    ///
    /// # Errors
    /// If `ranks` is 0, or more than one machine takes.
    pub fn new(ranks: usize, program: impl Into<OsString>) -> Result<Self> {
        if ranks == 0 {
            return Err(Error::Argument("a job needs at least one rank; 0 were asked for".into()));
        }
        if ranks > MAX_RANKS {
            let message = format!("{ranks} ranks were asked for; one machine takes at most {MAX_RANKS}");
            return Err(Error::Argument(message));
        }
        Ok(Self {
            ranks,
            nodes: 1,
            hosts: None,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            bind: Bind::None,
            tag_output: false,
            capture_stdout: false,
            capture_stderr: false,
            by_line: false,
            no_input: false,
            quiet: false,
            timeout: None,
        })
    }

    /// A job of `ranks` ranks of the calling program, with the same arguments.
    ///
    /// # Errors
    /// If `ranks` is 0 or too large, or the program's file cannot be found any more.
    pub fn this_program(ranks: usize) -> Result<Self> {
        let program: PathBuf =
            std::env::current_exe().map_err(|source| Error::System { call: "readlink of /proc/self/exe", source })?;
        Ok(Self::new(ranks, program)?.args(std::env::args_os().skip(1)))
    }

    /// Splits the ranks into this many virtual nodes, each of consecutive ranks, as evenly as possible.
    /// Ranks of different nodes share no memory, so that what travels between nodes can be tested on
    /// one machine; the machine's memory is divided among them. Default: 1.
    ///
    /// # Errors
    /// If `nodes` is 0, or there are fewer ranks than nodes.
    pub fn nodes(mut self, nodes: usize) -> Result<Self> {
        if nodes == 0 {
            return Err(Error::Argument("a job needs at least one node; 0 were asked for".into()));
        }
        if nodes > 1 && self.hosts.is_some() {
            return Err(nodes_and_hosts(nodes));
        }
        if nodes > self.ranks {
            let message =
                format!("{nodes} nodes were asked for, but the job has only {} ranks: each node needs one", self.ranks);
            return Err(Error::Argument(message));
        }
        self.nodes = nodes;
        Ok(self)
    }

    /// Starts the ranks on these hosts, in blocks of consecutive ranks; each host is a node.
    ///
    /// # Errors
    /// If the hosts offer too few slots, or there are fewer ranks than hosts; with virtual nodes ([`Job::nodes`]).
    pub fn hosts(mut self, hosts: Hosts) -> Result<Self> {
        if self.nodes > 1 {
            return Err(nodes_and_hosts(self.nodes));
        }
        hosts.deal(self.ranks)?;
        self.hosts = Some(hosts);
        Ok(self)
    }

    /// Appends arguments of the program.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Replaces all arguments of the program.
    #[must_use]
    pub fn only_args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.clear();
        self.args(args)
    }

    /// Sets a variable in the environment of every rank.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Whether each rank is tied to a core. Default: no.
    #[must_use]
    pub fn bind(mut self, bind: Bind) -> Self {
        self.bind = bind;
        self
    }

    /// Whether each line that a rank writes gets the prefix `[rank] `, and is written whole.
    /// Default: ranks write for themselves.
    #[must_use]
    pub fn tag_output(mut self, tag: bool) -> Self {
        self.tag_output = tag;
        self
    }

    /// Whether standard output of all ranks goes into [`Outcome::stdout`], line by line.
    #[must_use]
    pub fn capture_stdout(mut self, capture: bool) -> Self {
        self.capture_stdout = capture;
        self
    }

    /// Whether standard error of all ranks goes into [`Outcome::stderr`], line by line.
    #[must_use]
    pub fn capture_stderr(mut self, capture: bool) -> Self {
        self.capture_stderr = capture;
        self
    }

    /// Whether rank 0 reads from `/dev/null` like the others. Default: it reads what the launcher
    /// reads, unless that is a terminal: ranks are background processes to a terminal, and reading
    /// from it would stop them.
    #[must_use]
    pub fn no_input(mut self, none: bool) -> Self {
        self.no_input = none;
        self
    }

    /// Whether the launcher keeps its messages to itself; [`Outcome`] has them too.
    #[must_use]
    pub fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Ends the job, with code 124, if it is not done after this time.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Runs the job to its end. A rank that fails ends it, and one line on standard error says
    /// which and why.
    ///
    /// # Errors
    /// If the job cannot be set up: the cores cannot be read although ranks are to be bound, or
    /// there are no descriptors left. A program that cannot be started is not an error but an
    /// outcome.
    pub fn run(&self) -> Result<Outcome> {
        match &self.hosts {
            None => {
                let part = Part::All { ranks: self.ranks, nodes: self.nodes };
                watch::Watch::over_ranks(self, part, None)?.until_the_end()
            }
            Some(hosts) => hosts::head::start(self, hosts)?.until_the_end(),
        }
    }
}
