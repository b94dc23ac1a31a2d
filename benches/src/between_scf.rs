//! The effect that progress threads are for, in a whole program: the SCF of three waters by two ranks on two nodes, with
//! and without them. Rank 0 owns the counter that hands out the tasks and computes tasks like anybody; without a thread
//! whoever asks the counter waits until it is done with one.
//!
//! The program is `scf`, which stands beside this one. Where the ranks' time went is theirs to say.

use std::collections::BTreeMap;
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
/// Functions per block, with which a task takes some 300 microseconds; and with which twice that.
const BLOCKS: [(&str, &str); 2] = [("far_scf", "7"), ("far_scf_long", "9")];
/// Calculations of each kind.
const REPEATS: usize = 3;
const LIMIT: Duration = Duration::from_secs(120);

/// Where time goes, as the program names it; `wall` is the whole calculation.
const PHASES: [&str; 6] = ["counter", "get", "accumulate", "integrals", "wait", "wall"];
const MODES: [&str; 2] = ["thread", "none"];

/// Measures, with pieces of one length as `far_scf` and of another as `far_scf_long`: `PIECES_PHASE_MODE`, in nanoseconds
/// of both ranks together; `PIECES_draw_MODE`, what rank 1 waits for a task's number; `PIECES_piece`, what a task takes.
///
/// # Errors
/// If the program is not there, fails, or computes something else with than without threads.
pub fn run(quick: bool) -> Result<Figures> {
    let mut figures = Figures::default();
    let mut energies = Vec::new();
    for (pieces, block) in BLOCKS {
        // In turn, so that both modes meet the same machine.
        let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..if quick { 1 } else { REPEATS } {
            for mode in MODES {
                let result = calculate(mode, block)?;
                let mut take = |name: String, seconds: Option<f64>| {
                    samples.entry(name).or_default().extend(seconds.map(|seconds| seconds * 1e9));
                };
                for phase in PHASES {
                    take(format!("{pieces}_{phase}_{mode}"), result["seconds"][phase].as_f64());
                }
                let of = |rank: usize| result["by_rank"][rank]["tasks"].as_f64();
                let share = |seconds: &Value, tasks: Option<f64>| Some(seconds.as_f64()? / tasks?.max(1.0));
                take(format!("{pieces}_draw_{mode}"), share(&result["by_rank"][1]["seconds"]["counter"], of(1)));
                let tasks = of(0).zip(of(1)).map(|(a, b)| a + b);
                take(format!("{pieces}_piece"), share(&result["seconds"]["integrals"], tasks));
                energies.extend(result["energy"].as_f64());
            }
        }
        for (name, samples) in samples {
            figures.add(name, Figure::of(samples));
        }
    }
    let (least, most) = energies.iter().fold((f64::MAX, f64::MIN), |(least, most), e| (e.min(least), e.max(most)));
    if most - least < 1e-8 { Ok(figures) } else { Err(failed(0, format!("energies differ: {energies:?}"))) }
}

/// Time in the counter with threads, of that without: `far_scf_share`.
pub fn summarize(figures: &mut Figures) {
    for (pieces, _) in BLOCKS {
        for (what, share) in [("counter", "share"), ("draw", "draw_share")] {
            let both = MODES.map(|mode| figures.get(&format!("{pieces}_{what}_{mode}")));
            if let [Some(with), Some(without)] = both {
                figures.add(format!("{pieces}_{share}"), Some(Figure::single(with.median / without.median)));
            }
        }
    }
}

fn failed(code: i32, why: String) -> Error {
    Error::Job { job: "between-scf", code, timed_out: false, stderr: why }
}

fn calculate(mode: &str, block: &str) -> Result<Value> {
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
        .args(["--json", "--block", block])
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
