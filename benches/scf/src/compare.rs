//! `--compare-progress`: the same calculation twice, with the counter and the Fock accumulates
//! on active messages, once served by progress threads and once only by ranks inside a call.

use std::process::ExitCode;

use armci_core::job::Job;
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::error::{Result, ScfError};
use crate::report::emit;

/// The operations that go by active message.
const PROTOCOL: &str = "rmw=am,accumulate=am";

/// Energies of the two runs may differ by this much.
const AGREEMENT: f64 = 1e-8;

/// One of the two runs.
struct Run {
    mode: &'static str,
    result: Value,
}

impl Run {
    fn number(&self, pointer: &str) -> f64 {
        self.result.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }
}

/// Runs both, prints the difference.
///
/// # Errors
/// A run fails, the energies differ, or the progress threads served no request.
pub fn run(cli: &Cli) -> Result<ExitCode> {
    let ranks = cli.own_ranks();
    let with = launch(cli, ranks, "thread")?;
    let without = launch(cli, ranks, "none")?;
    let served = with.number("/served_by_thread");
    if cli.json {
        let both = json!({
            "protocol": PROTOCOL,
            "ranks": ranks,
            "thread": with.result,
            "none": without.result,
            "speedup": without.number("/seconds/wall") / with.number("/seconds/wall"),
            "energy_difference": with.number("/energy") - without.number("/energy"),
        });
        emit(&format!("{both}\n"));
    } else {
        emit(&table(ranks, &with, &without));
    }
    let difference = (with.number("/energy") - without.number("/energy")).abs();
    if difference.is_nan() || difference > AGREEMENT {
        return Err(ScfError::Compare(format!("the energies of the two runs differ by {difference:.2e} Eh")));
    }
    if served.is_nan() || served <= 0.0 {
        let hint = if ranks == 1 { " (one rank has nobody to serve: use --ranks 2)" } else { "" };
        return Err(ScfError::Compare(format!("the progress threads served no request{hint}")));
    }
    Ok(ExitCode::SUCCESS)
}

fn launch(cli: &Cli, ranks: usize, mode: &'static str) -> Result<Run> {
    let outcome = Job::this_program(ranks)?
        .only_args(cli.plain_arguments())
        .env("ARMCI_PROGRESS", mode)
        .env("ARMCI_PROTOCOL", PROTOCOL)
        .capture_stdout(true)
        .quiet(true)
        .run()?;
    if outcome.code != 0 {
        let why =
            outcome.failed.map_or_else(String::new, |failure| format!(": rank {} {}", failure.rank, failure.reason));
        let message = format!("the run with progress mode {mode} ended with code {}{why}", outcome.code);
        return Err(ScfError::Compare(message));
    }
    let result = serde_json::from_slice(&outcome.stdout).map_err(|error| {
        ScfError::Compare(format!("the run with progress mode {mode} printed something other than its result: {error}"))
    })?;
    Ok(Run { mode, result })
}

fn table(ranks: usize, with: &Run, without: &Run) -> String {
    let mut out = format!(
        "scf: with and without progress threads, {ranks} ranks, counter and accumulate by active message\n\n  {:<28}",
        ""
    );
    for run in [with, without] {
        out += &format!("{:>18}", run.mode);
    }
    out += &format!("{:>18}\n", "thread / none");
    let rows = [
        ("wall seconds", "/seconds/wall"),
        ("  in Fock builds", "/seconds/fock_builds_wall"),
        ("rank seconds: integrals", "/seconds/integrals"),
        ("  counter", "/seconds/counter"),
        ("  get", "/seconds/get"),
        ("  accumulate", "/seconds/accumulate"),
        ("  wait", "/seconds/wait"),
    ];
    for (name, pointer) in rows {
        let (a, b) = (with.number(pointer), without.number(pointer));
        out += &format!("  {name:<28}{a:>18.4}{b:>18.4}{:>18.3}\n", a / b);
    }
    for (name, pointer) in [("served by thread", "/served_by_thread"), ("served by main", "/served_by_main")] {
        out += &format!("  {name:<28}{:>18}{:>18}\n", with.number(pointer), without.number(pointer));
    }
    out += &format!(
        "  {:<28}{:>18.10}{:>18.10}{:>18.1e}\n",
        "energy / Eh",
        with.number("/energy"),
        without.number("/energy"),
        with.number("/energy") - without.number("/energy")
    );
    out
}
