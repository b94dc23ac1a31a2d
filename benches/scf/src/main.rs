//! `scf`: starts its own ranks, or joins those it was launched as.

use std::process::ExitCode;

use armci_core::job::{self, Job};
use clap::Parser as _;

use scf::cli::Cli;
use scf::error::{Result, ScfError};
use scf::report::{complain, emit};
use scf::{compare, input, json, rank};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return usage(&message),
    };
    match run(&cli) {
        Ok(code) => code,
        Err(ScfError::ReportedByRankZero) => ExitCode::FAILURE,
        Err(error) => {
            complain(&error);
            let code = error.exit_code();
            if cli.json && code == 1 && !job::is_rank() && !matches!(error, ScfError::Output(_) | ScfError::Compare(_))
            {
                // If this cannot be written either, the line above must do.
                let _ = emit(&format!("{}\n", json::failure(&error)));
            }
            ExitCode::from(code)
        }
    }
}

/// Help, version and wrong usage: once, however many ranks there are.
fn usage(message: &clap::Error) -> ExitCode {
    let code = u8::try_from(message.exit_code()).unwrap_or(2);
    // Nobody to tell if this fails.
    let speak = || drop(message.print());
    if !job::is_rank() {
        speak();
        return ExitCode::from(code);
    }
    rank::say_once(code, speak).unwrap_or_else(|error| {
        complain(&error);
        ExitCode::from(code)
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    if job::is_rank() {
        if cli.compare_progress {
            let message = "--compare-progress starts its own ranks: run it without a launcher";
            return rank::say_once(2, || complain(&message));
        }
        return rank::run(cli);
    }
    // Complain about settings and input once, before there are ranks to complain.
    cli.check()?;
    let text = cli.read()?;
    cli.problem(&text)?;
    if cli.compare_progress {
        return compare::run(cli, &text);
    }
    let handed = input::Handed::new(&text)?;
    let mut job = Job::this_program(cli.own_ranks())?.quiet(true).env(input::VARIABLE, handed.path());
    for (name, value) in cli.runtime_settings() {
        job = job.env(name, value);
    }
    let outcome = job.run()?;
    // A rank that leaves with one of our own codes has said why.
    if let Some(failure) = outcome.failed.filter(|_| ![1, 2, i32::from(rank::NOT_CONVERGED)].contains(&outcome.code)) {
        complain(&format!("rank {} {}", failure.rank, failure.reason));
    }
    Ok(u8::try_from(outcome.code).map_or(ExitCode::FAILURE, ExitCode::from))
}
