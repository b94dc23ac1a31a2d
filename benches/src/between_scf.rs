//! The effect that progress threads are for, in a whole program: the SCF of three waters by two ranks on two nodes, with
//! and without them. Rank 0 owns the counter that hands out the tasks and computes tasks like anybody; without a thread
//! whoever asks the counter waits until it is done with one.
//!
//! The program is `scf`, which stands beside this one. Where the ranks' time went is theirs to say.

use std::fs;
use std::time::Duration;

use armci_core::job::{Bind, Job};
use serde_json::Value;

use crate::between::FABRIC;
use crate::command::fresh_directory;
use crate::error::{Error, Result};
use crate::figure::{Figure, Figures};
use crate::jobs::DEFAULTS;

const MOLECULE: &str = include_str!("../scf/molecules/h2o-3.xyz");
/// Functions per block, with which a task takes some 300 microseconds.
const BLOCK: &str = "7";
const LIMIT: Duration = Duration::from_secs(120);

/// Where time goes, as the program names it; `wall` is the whole calculation.
const PHASES: [&str; 6] = ["counter", "get", "accumulate", "integrals", "wait", "wall"];
const MODES: [&str; 2] = ["thread", "none"];

/// Measures `far_scf_PHASE_MODE`, in nanoseconds of both ranks together, and `far_scf_piece`, what a task takes.
///
/// # Errors
/// If the program is not there, fails, or computes something else with than without threads.
pub fn run(_quick: bool) -> Result<Figures> {
    let mut figures = Figures::default();
    let mut energies = Vec::new();
    for mode in MODES {
        let result = calculate(mode)?;
        for phase in PHASES {
            let seconds = result["seconds"][phase].as_f64().map(|seconds| Figure::single(seconds * 1e9));
            figures.add(format!("far_scf_{phase}_{mode}"), seconds);
        }
        let tasks: u64 =
            result["by_rank"].as_array().into_iter().flatten().filter_map(|rank| rank["tasks"].as_u64()).sum();
        let piece =
            result["seconds"]["integrals"].as_f64().map(|seconds| Figure::single(seconds * 1e9 / tasks.max(1) as f64));
        figures.add("far_scf_piece", piece);
        energies.extend(result["energy"].as_f64());
    }
    match energies[..] {
        [a, b] if (a - b).abs() < 1e-8 => Ok(figures),
        _ => Err(failed(0, format!("energies with and without progress threads: {energies:?}"))),
    }
}

/// Time in the counter with threads, of that without: `far_scf_share`.
pub fn summarize(figures: &mut Figures) {
    if let [Some(with), Some(without)] = MODES.map(|mode| figures.get(&format!("far_scf_counter_{mode}"))) {
        figures.add("far_scf_share", Some(Figure::single(with.median / without.median)));
    }
}

fn failed(code: i32, why: String) -> Error {
    Error::Job { job: "between-scf", code, timed_out: false, stderr: why }
}

fn calculate(mode: &str) -> Result<Value> {
    let system = |call| move |source| Error::System { call, source };
    let program = std::env::current_exe().map_err(system("readlink of /proc/self/exe"))?.with_file_name("scf");
    if !program.is_file() {
        return Err(failed(127, format!("there is no {}: cargo build --release -p scf", program.display())));
    }
    let directory = fresh_directory().map_err(system("mkdir"))?;
    let molecule = directory.path().join("h2o-3.xyz");
    fs::write(&molecule, MOLECULE).map_err(|source| Error::Write { path: molecule.clone(), source })?;
    let job = Job::new(2, program)?
        .nodes(2)?
        .args(["--json", "--block", BLOCK])
        .args([molecule])
        .bind(Bind::Core)
        .capture_stdout(true)
        .capture_stderr(true)
        .no_input(true)
        .quiet(true)
        .timeout(LIMIT);
    let job = DEFAULTS.iter().chain([&FABRIC]).fold(job, |job, (name, value)| job.env(name, value));
    let outcome = job.env("ARMCI_PROGRESS", mode).run()?;
    if outcome.code != 0 {
        return Err(failed(outcome.code, String::from_utf8_lossy(&outcome.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&outcome.stdout).map_err(|error| failed(0, format!("it printed no result: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_time_without() {
        let mut figures = Figures::default();
        figures.add("far_scf_counter_thread", Some(Figure::single(1.0)));
        summarize(&mut figures);
        assert_eq!(figures.get("far_scf_share"), None);
        figures.add("far_scf_counter_none", Some(Figure::single(8.0)));
        summarize(&mut figures);
        assert_eq!(figures.get("far_scf_share"), Some(Figure::single(0.125)));
    }
}
