//! What each rank of the job does: read the input together, calculate, report, leave.

use std::process::ExitCode;

use armci_core::{Config, World};

use crate::basis::BasisText;
use crate::cli::{Cli, InputText};
use crate::error::{Result, ScfError};
use crate::report::{self, Reporter, complain};
use crate::scf::Outcome;
use crate::{input, json, scf};

/// Exit code of a calculation that did not converge.
pub const NOT_CONVERGED: u8 = 3;

/// Joins the job, calculates, and leaves it.
///
/// # Errors
/// As [`scf::run`], and what can go wrong with the input.
pub fn run(cli: &Cli) -> Result<ExitCode> {
    let world = match cli.check() {
        Ok(config) => World::init_with(config)?,
        Err(error) => return say_once(error.exit_code(), || complain(&error)),
    };
    let outcome = calculate(&world, cli);
    // Wrong input and unphysical results are found by all ranks together, so all leave politely,
    // once rank 0 has spoken: the first to exit ends the job. If the runtime itself has failed,
    // nobody can be waited for.
    let outcome = match outcome {
        Err(error) if error.is_runtime() => return Err(error),
        Err(error) => {
            if world.rank() == 0 {
                complain(&error);
                // There is no report any more; if this cannot be written either, that has been said.
                if cli.json && !matches!(error, ScfError::Output(_)) {
                    let _ = report::emit(&format!("{}\n", json::failure(&error)));
                }
            }
            Err(ScfError::ReportedByRankZero)
        }
        done => done,
    };
    world.finalize()?;
    outcome
}

/// For what is wrong before there is a job to speak of: joins it, lets rank 0 speak, leaves.
///
/// # Errors
/// The runtime fails.
pub fn say_once(code: u8, speak: impl FnOnce()) -> Result<ExitCode> {
    let world = World::init_with(Config::default())?;
    if world.rank() == 0 {
        speak();
    }
    world.finalize()?;
    Ok(ExitCode::from(code))
}

fn calculate(world: &World, cli: &Cli) -> Result<ExitCode> {
    let input = share_input(world, cli)?;
    let problem = cli.problem(&input)?;
    let settings = cli.settings();
    let leader = world.rank() == 0;
    let mut reporter = Reporter::new(cli, leader);
    let (progress, protocol) = runtime(world);
    if let Some(asked) = cli.ranks.filter(|&n| leader && n as usize != world.size()) {
        complain(&format!("--ranks {asked} has no effect here: the launcher has started {}", world.size()));
    }
    let how = format!("progress {progress}, protocol {protocol}");
    reporter.print(&report::describe_problem(&problem, world.size(), world.nodes(), &how));
    let outcome = scf::run(world, &problem, &settings, &mut reporter);
    reporter.finish();
    let outcome = outcome?;
    if leader {
        if cli.json {
            let object = json::object(&problem, &settings, &outcome, &progress, &protocol);
            report::emit(&format!("{object}\n")).map_err(ScfError::Output)?;
        } else {
            reporter.print(&report::describe_result(&problem, &outcome));
            reporter.print(&report::describe_times(&outcome));
        }
        if !outcome.converged {
            complain(&no_convergence(&outcome));
        }
    }
    reporter.close().map_err(ScfError::Output)?;
    Ok(if outcome.converged { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// What went wrong, how far it came, and what might help.
fn no_convergence(outcome: &Outcome) -> String {
    let energy = match outcome.energy {
        Some(energy) => format!("best energy so far {energy:.10} Eh"),
        None => "no energy yet".to_owned(),
    };
    let hint = match outcome.gap {
        Some(gap) if gap < 1e-6 => {
            "the highest occupied and the lowest empty orbital have the same energy: \
             this is no closed-shell molecule, unless another --charge makes it one"
        }
        _ => "raise --max-iterations, or try another --guess",
    };
    format!("no convergence in {}; {energy} ({hint})", report::count(outcome.iterations.len(), "iteration"))
}

/// Rank 0 reads the files or is handed them, the others are told what they say.
fn share_input(world: &World, cli: &Cli) -> Result<InputText> {
    const FAILED: u64 = u64::MAX;
    let read = (world.rank() == 0).then(|| match input::handed() {
        Ok(None) => cli.read(),
        Ok(Some(text)) => Ok(text),
        Err(error) => Err(error),
    });
    let mut texts = match &read {
        Some(Ok(input)) => [&input.molecule, &input.basis.name, &input.basis.text].map(|t| t.clone().into_bytes()),
        _ => Default::default(),
    };
    let mut lengths = match &read {
        Some(Err(_)) => [FAILED; 3],
        _ => texts.each_ref().map(|t| t.len() as u64),
    };
    world.broadcast(0, &mut lengths)?;
    if let Some(Err(error)) = read {
        return Err(error);
    }
    if lengths[0] == FAILED {
        return Err(ScfError::ReportedByRankZero);
    }
    for (text, length) in texts.iter_mut().zip(lengths) {
        text.resize(usize::try_from(length).unwrap_or(0), 0);
        world.broadcast(0, text)?;
    }
    let [molecule, name, text] = texts.map(|t| String::from_utf8_lossy(&t).into_owned());
    Ok(InputText { molecule, basis: BasisText { name, text } })
}

/// The runtime's settings in use, in the words of its environment variables.
fn runtime(world: &World) -> (String, String) {
    let config = world.config();
    let protocol = config.protocol;
    let paths = [protocol.put, protocol.get, protocol.accumulate, protocol.rmw].map(word);
    let protocol = match paths.each_ref() {
        [a, b, c, d] if a == b && b == c && c == d => paths[0].clone(),
        [put, get, acc, rmw] => format!("put={put},get={get},accumulate={acc},rmw={rmw}"),
    };
    (word(config.progress), protocol)
}

/// An enum's variant in lower case.
fn word(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}
