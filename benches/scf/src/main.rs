//! `scf`: starts its own ranks, or joins those it was launched as.

use std::process::{Command, ExitCode};

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
        return if settled(cli) { rank::run(cli) } else { again(cli) };
    }
    // Complain about the input once, before there are ranks to complain.
    cli.problem(&cli.read()?)?;
    if cli.compare_progress {
        return compare::run(cli);
    }
    let mut job = Job::this_program(cli.own_ranks())?.quiet(true);
    for (name, value) in cli.environment() {
        job = job.env(name, value);
    }
    let outcome = job.run()?;
    // A rank that leaves with one of our own codes has said why.
    if let Some(failure) = outcome.failed.filter(|_| ![1, i32::from(rank::NOT_CONVERGED)].contains(&outcome.code)) {
        eprintln!("scf: rank {} {}", failure.rank, failure.reason);
    }
    Ok(u8::try_from(outcome.code).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Whether the environment already says what the command line asks of the runtime.
fn settled(cli: &Cli) -> bool {
    cli.environment().iter().all(|(name, value)| std::env::var(name).is_ok_and(|now| now == *value))
}

/// Starts this rank over, in place, with the runtime's settings in its environment: they are
/// read when the rank joins the job, which it has not done yet.
fn again(cli: &Cli) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    let program = std::env::current_exe().map_err(|source| ScfError::Read { path: "/proc/self/exe".into(), source })?;
    let source = Command::new(&program).args(std::env::args_os().skip(1)).envs(cli.environment()).exec();
    Err(ScfError::Read { path: program, source })
}
