//! `--compare-progress`: the same calculation twice, with the counter and the Fock accumulates
//! on active messages, once served by progress threads and once only by ranks inside a call.

use std::process::ExitCode;

use armci_core::job::Job;
use serde_json::{Value, json};

use crate::cli::{Cli, InputText};
use crate::error::{Result, ScfError};
use crate::report::{count, emit};
use crate::{input, rank};

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
/// A run that does not converge counts as one, but the exit code tells; a run that fails has said
/// why, and its exit code is the comparison's.
///
/// # Errors
/// The energies differ, or the progress threads served no request.
pub fn run(cli: &Cli, input: &InputText) -> Result<ExitCode> {
    let ranks = cli.own_ranks();
    let (with, without) = match (launch(cli, input, ranks, "thread")?, "none") {
        (Ended::Failed(code), _) => return Ok(ExitCode::from(code)),
        (Ended::Well(with), mode) => match launch(cli, input, ranks, mode)? {
            Ended::Failed(code) => return Ok(ExitCode::from(code)),
            Ended::Well(without) => (with, without),
        },
    };
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
        emit(&format!("{both}\n")).map_err(ScfError::Output)?;
    } else {
        emit(&table(ranks, &with, &without)).map_err(ScfError::Output)?;
    }
    let converged = [&with, &without].iter().all(|run| run.result["converged"] == true);
    let difference = (with.number("/energy") - without.number("/energy")).abs();
    if converged && (difference.is_nan() || difference > AGREEMENT) {
        return Err(ScfError::Compare(format!("the energies of the two runs differ by {difference:.2e} Eh")));
    }
    if served.is_nan() || served <= 0.0 {
        let all = with.number("/served_by_main");
        let message = format!(
            "the progress threads served none of {all} requests, the ranks were always there first: \
             a larger molecule or more ranks give them something to do"
        );
        return Err(ScfError::Compare(message));
    }
    Ok(if converged { ExitCode::SUCCESS } else { ExitCode::from(rank::NOT_CONVERGED) })
}

/// How a run ended.
enum Ended {
    /// With a result, converged or not.
    Well(Run),
    /// With this exit code, having said why, or interrupted.
    Failed(u8),
}

fn launch(cli: &Cli, input: &InputText, ranks: usize, mode: &'static str) -> Result<Ended> {
    let handed = input::Handed::new(input)?;
    let outcome = Job::this_program(ranks)?
        .only_args(cli.plain_arguments())
        .env(input::VARIABLE, handed.path())
        .env("ARMCI_PROGRESS", mode)
        .env("ARMCI_PROTOCOL", PROTOCOL)
        .capture_stdout(true)
        .quiet(true)
        .run()?;
    const INTERRUPTED: i32 = 128 + 2;
    // Where a rank left with one of our own codes it has said why.
    if [1, 2, INTERRUPTED].contains(&outcome.code) {
        return Ok(Ended::Failed(u8::try_from(outcome.code).unwrap_or(1)));
    }
    if ![0, i32::from(rank::NOT_CONVERGED)].contains(&outcome.code) {
        let why =
            outcome.failed.map_or_else(String::new, |failure| format!(": rank {} {}", failure.rank, failure.reason));
        let message = format!("the run with progress mode {mode} ended with code {}{why}", outcome.code);
        return Err(ScfError::Compare(message));
    }
    let result = serde_json::from_slice(&outcome.stdout).map_err(|error| {
        ScfError::Compare(format!("the run with progress mode {mode} printed something other than its result: {error}"))
    })?;
    Ok(Ended::Well(Run { mode, result }))
}

fn table(ranks: usize, with: &Run, without: &Run) -> String {
    let mut out = format!(
        "scf: with and without progress threads, {}, counter and accumulate by active message\n\n  {:<28}",
        count(ranks, "rank"),
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
