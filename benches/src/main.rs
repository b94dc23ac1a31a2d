//! `armci-bench`: how fast the runtime is, beside what the machine allows and what its peers reach.
//!
//! ```text
//!   armci-bench ----+-- machine   threads of its own: the limits          \
//!                   +-- jobs      its own ranks, once per configuration    } in turn, several rounds
//!                   +-- peer      ARMCI-MPI on Open MPI                   /
//!                   +-- table, json
//! ```
//!
//! All sides are measured in one run and in turn, and ratios are what counts: the machine's speed drifts, by
//! neighbours, clocks and the place of virtual cores, and not by the same amount tomorrow. What is not measured:
//! anything while other programs use the cores; the run notices that and says so.

mod accumulate;
mod barrier;
mod contiguous;
mod counter;
mod error;
mod figure;
mod jobs;
mod json;
mod limits;
mod line;
mod machine;
mod peer;
mod report;
mod rows;
mod sweep;
mod table;
mod timing;
mod wake;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::{Error, Result};
use jobs::Configuration;
use report::{Plan, Report};
use table::Verdict;
use timing::Effort;

/// Measures the runtime beside the machine's own limits and ARMCI-MPI on Open MPI, and prints a table.
#[derive(Debug, Parser)]
#[command(name = "armci-bench", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Action>,
    /// One short round: to see that everything works.
    #[arg(long, global = true)]
    quick: bool,
    /// Only this job of ours (direct, messages or crowd): to look into something.
    #[arg(long, value_name = "JOB")]
    only: Option<String>,
    /// Leave the peer out.
    #[arg(long, global = true)]
    no_peer: bool,
    /// Write all figures to this file.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Exit with 1 if a default path is slower than the peer, or a limit is exceeded.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Put and get from 8 bytes to 4 MiB.
    Sweep,
    /// What the program starts its own ranks with.
    #[command(hide = true)]
    Rank {
        /// Which configuration.
        name: String,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("armci-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let effort = if arguments.quick { Effort::QUICK } else { Effort::FULL };
    let with_peer = !arguments.no_peer;
    let (mut plan, render): (Plan, fn(&Report) -> String) = match &arguments.command {
        Some(Action::Rank { name }) => return be_a_rank(name, effort),
        Some(Action::Sweep) => (sweep::plan(with_peer), sweep::render),
        None => (Plan::table(with_peer), table::render),
    };
    if let Some(only) = &arguments.only {
        plan.jobs = vec![find(only)?];
    }
    let report = Report::take(&plan, effort, arguments.quick)?;
    print!("{}", render(&report));
    if let Some(path) = &arguments.json {
        json::write(&report, path)?;
    }
    let bad = |row| matches!(table::verdict(row, &report), Verdict::SlowerThanPeer | Verdict::AboveLimit);
    Ok(ExitCode::from(u8::from(arguments.check && rows::ROWS.iter().any(bad))))
}

fn find(name: &str) -> Result<&'static Configuration> {
    jobs::find(name).ok_or_else(|| Error::Configuration(name.into()))
}

fn be_a_rank(name: &str, effort: Effort) -> Result<ExitCode> {
    find(name)?.be_a_rank(effort)?;
    Ok(ExitCode::SUCCESS)
}
