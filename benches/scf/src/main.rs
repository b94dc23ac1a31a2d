//! `scf`: starts its own ranks, or joins those it was launched as.

use std::process::ExitCode;

use armci_core::job::{self, Job};
use clap::Parser as _;

use scf::cli::Cli;
use scf::error::{Result, ScfError};
use scf::{compare, rank};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(ScfError::ReportedByRankZero) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("scf: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    if job::is_rank() {
        if cli.compare_progress {
            let message = "--compare-progress starts its own ranks: run it without a launcher";
            return Err(ScfError::Usage(message.to_owned()));
        }
        return rank::run(cli);
    }
    // Complain about the input once, before there are ranks to complain.
    cli.problem(&cli.read()?)?;
    if cli.compare_progress {
        return compare::run(cli);
    }
    let mut job = Job::this_program(cli.own_ranks())?.quiet(true);
    for (name, value) in cli.runtime_settings() {
        job = job.env(name, value);
    }
    let outcome = job.run()?;
    // A rank that leaves with one of our own codes has said why.
    if let Some(failure) = outcome.failed.filter(|_| ![1, i32::from(rank::NOT_CONVERGED)].contains(&outcome.code)) {
        eprintln!("scf: rank {} {}", failure.rank, failure.reason);
    }
    Ok(u8::try_from(outcome.code).map_or(ExitCode::FAILURE, ExitCode::from))
}
