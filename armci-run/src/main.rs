//! `armci-run`: starts the ranks of a job on this machine, passes on what they write, and ends with
//! them.
//!
//! Everything it does is [`armci_core::job::Job`]'s; this program only reads the command line.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use armci_core::job::{Bind, Job};
use clap::{Parser, ValueEnum};

/// Starts a program as the ranks of one job on this machine.
///
/// The ranks end together: when one fails, a line on standard error says which and why, and the
/// others are ended. Ctrl-C ends them all, Ctrl-Z suspends them all. Rank 0 reads standard input
/// unless that is a terminal; the others have none.
#[derive(Parser)]
#[command(version, after_help = AFTER_HELP)]
struct CommandLine {
    /// How many ranks to start
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    ranks: usize,

    /// Split the ranks into K virtual nodes that share no memory, to test what crosses nodes
    #[arg(long, value_name = "K", default_value_t = 1)]
    nodes: usize,

    /// Whether each rank is tied to a core of its own
    #[arg(long, value_enum, default_value_t = Binding::None)]
    bind: Binding,

    /// Who serves requests while a rank computes: a thread of the rank, or nobody (sets
    /// ARMCI_PROGRESS) [default: thread]
    #[arg(long, value_enum)]
    progress: Option<Progress>,

    /// Start each line that a rank writes with `[rank] `, and write it whole
    #[arg(long)]
    tag_output: bool,

    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  armci-run -n 4 ./water --steps 10
  armci-run -n 2 --bind core --tag-output ./water
  ARMCI_PROTOCOL=am armci-run -n 4 ./water      (settings are environment variables)

Exit code:
  0 if all ranks exited with 0; the first failed rank's code, or 128 + its signal;
  128 + the signal that ended armci-run; 127 if PROGRAM was not found, 126 if it cannot be executed.";

#[derive(Clone, Copy, ValueEnum)]
enum Binding {
    /// Ranks run where the scheduler puts them
    None,
    /// Each rank stays on one core
    Core,
}

#[derive(Clone, Copy, ValueEnum)]
enum Progress {
    /// A thread of the rank serves requests at any time
    Thread,
    /// Requests wait until the rank calls the library; for study
    None,
}

impl CommandLine {
    fn job(self) -> armci_core::Result<Job> {
        let mut words = self.program.into_iter();
        // clap has seen to it that there is one.
        let program = words.next().unwrap_or_default();
        let bind = match self.bind {
            Binding::None => Bind::None,
            Binding::Core => Bind::Core,
        };
        let job = Job::new(self.ranks, program)?.nodes(self.nodes)?.args(words).bind(bind).tag_output(self.tag_output);
        Ok(match self.progress {
            Some(Progress::Thread) => job.env("ARMCI_PROGRESS", "thread"),
            Some(Progress::None) => job.env("ARMCI_PROGRESS", "none"),
            None => job,
        })
    }
}

fn main() -> ExitCode {
    match CommandLine::parse().job().and_then(|job| job.run()) {
        Ok(outcome) => ExitCode::from(u8::try_from(outcome.code).unwrap_or(1)),
        Err(error) => {
            // Without a reader of standard error, the exit code must do.
            let _ = writeln!(std::io::stderr(), "armci-run: {error}");
            ExitCode::FAILURE
        }
    }
}
