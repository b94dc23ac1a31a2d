//! The Hartree-Fock program beside this one, with and without the progress thread, by ranks; and where its time goes
//! (paper 003, Fig. 14). Its counter and its accumulates go by message here, as in the paper.
//!
//! What all runs must agree on is the energy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{fresh_directory, run};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::jobs::DEFAULTS;
use crate::record::Record;
use crate::setup::Setup;
use crate::study::Wanted;

/// The longest a calculation may take.
const LIMIT: Duration = Duration::from_secs(300);
/// By how much energies may differ, in hartree: what a calculation converges to.
const SAME: f64 = 1e-6;
/// Water molecules: one for a short look, or three.
const MOLECULES: [(&str, &str); 2] = [
    ("h2o.xyz", include_str!("../../scf/molecules/h2o.xyz")),
    ("h2o-3.xyz", include_str!("../../scf/molecules/h2o-3.xyz")),
];
/// The messages' path.
const PROTOCOL: &str = "rmw=am,accumulate=am";

/// The program.
fn program() -> Result<PathBuf> {
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name("scf"));
    beside
        .filter(|file| file.is_file())
        .ok_or_else(|| Error::Asked("scf: there is no scf beside this program: cargo build --release -p scf".into()))
}

/// What is asked of the program: (H2O)6 in 6-31G* by one rank and by two, with the defaults of the runtime. The phase of
/// integrals shall take two ranks half as long as one, and communication next to nothing.
///
/// # Errors
/// As [`measure`].
pub fn asked() -> Result<Vec<Record>> {
    let program = program()?;
    let (directory, file) = written("h2o-6.xyz", include_str!("../../scf/molecules/h2o-6.xyz"))?;
    let run = |ranks| calculate(&program, &directory, &file, &Setup { ranks, ..Setup::pair("scf") });
    let (one, two) = (run(1)?, run(2)?);
    let same = one["energy"].as_f64().zip(two["energy"].as_f64()).is_some_and(|(one, two)| (one - two).abs() < SAME);
    if !same {
        return Err(Error::Wrong(format!("energies of one molecule differ: {} and {}", one["energy"], two["energy"])));
    }
    Ok(held(&one, &two))
}

/// The records of both calculations.
fn held(one: &Value, two: &Value) -> Vec<Record> {
    let record = |ranks, id: &str, value, unit| Record {
        ranks,
        nodes: 1,
        protocol: "rma".into(),
        progress: "thread".into(),
        ..Record::new(format!("scf/h2o-6/{id}"), value, unit)
    };
    let seconds = |of: &Value, phase: &str| of["seconds"][phase].as_f64();
    let mut records = Vec::new();
    for (ranks, of) in [(1, one), (2, two)] {
        records.extend(seconds(of, "wall").map(|s| record(ranks, "wall", s, "s").at("ranks", ranks as f64)));
    }
    if let Some((alone, both)) = seconds(one, "fock_builds_wall").zip(seconds(two, "fock_builds_wall")) {
        let efficiency = record(2, "integral_phase_efficiency", alone / (2.0 * both), "share").asked(0.95);
        records.push(efficiency.remark("parallel efficiency of the integral phase, (H2O)6 in 6-31G*"));
    }
    if let Some(share) = two["communication_share"].as_f64() {
        let share = record(2, "communication", share, "used").asked(0.02);
        records.push(share.remark("counter, get and accumulate, of the time of all ranks, (H2O)6 in 6-31G*"));
    }
    records
}

/// A molecule's file, in a directory that goes when it is dropped.
fn written(name: &str, text: &str) -> Result<(TempDir, PathBuf)> {
    let directory = fresh_directory().map_err(|source| Error::System { call: "mkdir", source })?;
    let file = directory.path().join(name);
    std::fs::write(&file, text).map_err(|source| Error::Write { path: file.clone(), source })?;
    Ok((directory, file))
}

/// Runs one calculation; the JSON that it prints.
fn calculate(program: &Path, directory: &TempDir, file: &Path, setup: &Setup) -> Result<Value> {
    let mut command = Command::new(program);
    command.args(["--json", "--ranks", &setup.ranks.to_string(), "--progress", &setup.progress]);
    command.args(["--protocol", &setup.protocol]).arg(file);
    for (name, _) in DEFAULTS {
        command.env_remove(name);
    }
    let ran = run(&mut command, directory.path(), LIMIT).map_err(Error::Asked)?;
    // It was ended with us.
    interrupt::check()?;
    if !ran.status.is_some_and(|status| status.success()) {
        return Err(Error::Asked(format!("scf on {} ranks failed: {}", setup.ranks, ran.stderr.trim())));
    }
    serde_json::from_str(&ran.stdout)
        .map_err(|source| Error::Record { line: ran.stdout.chars().take(200).collect(), source })
}

/// Runs all calculations.
///
/// # Errors
/// If the program is not there or fails; [`Error::Wrong`] if energies differ.
pub fn measure(wanted: &Wanted) -> Result<Vec<Record>> {
    let program = program()?;
    let (name, text) = MOLECULES[usize::from(!wanted.quick)];
    let (directory, file) = written(name, text)?;
    let mut records = Vec::new();
    let setups = wanted.each("scf", if wanted.quick { &[2] } else { &[1, 2, 4] }, &[PROTOCOL], &["thread", "none"]);
    let mut energies: Vec<f64> = Vec::new();
    for setup in &setups {
        let result = calculate(&program, &directory, &file, setup)?;
        for record in of_result(&result, setup.ranks) {
            let (ranks, nodes) = (setup.ranks, 1);
            let (protocol, progress) = (setup.protocol.clone(), setup.progress.clone());
            records.push(Record { ranks, nodes, protocol, progress, ..record }.remark(name));
        }
        energies.extend(result["energy"].as_f64());
    }
    let ends = energies.iter().fold((f64::MAX, f64::MIN), |(low, high), energy| (low.min(*energy), high.max(*energy)));
    if energies.len() != setups.len() || ends.1 - ends.0 > SAME {
        return Err(Error::Wrong(format!("energies of one molecule differ, or lack: {energies:?}")));
    }
    Ok(records)
}

/// What a calculation's JSON says: wall time, and the mean over ranks of each phase.
fn of_result(result: &Value, ranks: usize) -> Vec<Record> {
    let mut records = Vec::new();
    let seconds = result["seconds"].as_object().into_iter().flatten();
    for (phase, value) in seconds.filter_map(|(phase, value)| Some((phase, value.as_f64()?))) {
        let wall = phase.contains("wall");
        let value = if wall { value } else { value / ranks as f64 };
        let id = if phase == "wall" { "scf".to_owned() } else { format!("scf/{phase}") };
        records.push(Record::new(id, value, "s").at("ranks", ranks as f64));
    }
    for (name, unit) in [("efficiency", "share"), ("communication_share", "share of time"), ("energy", "hartree")] {
        let value = result[name].as_f64().map(|value| Record::new(format!("scf/{name}"), value, unit));
        records.extend(value.map(|record| record.at("ranks", ranks as f64)));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ranks_are_held_to_half_the_time_of_one() {
        let of = |wall: f64, share: f64| serde_json::json!({ "communication_share": share, "seconds": { "wall": wall, "fock_builds_wall": wall } });
        let met = |two: &Value| held(&of(4.0, 0.0), two).iter().filter_map(|record| record.met).collect::<Vec<_>>();
        assert_eq!(met(&of(2.05, 0.003)), [true, true]);
        assert_eq!(met(&of(2.2, 0.03)), [false, false]);
    }

    #[test]
    fn phases_are_a_ranks_and_wall_time_is_not() {
        let result = serde_json::json!({
            "energy": -76.0, "efficiency": 0.9,
            "seconds": { "wall": 2.0, "fock_builds_wall": 1.5, "counter": 0.5 },
        });
        let records = of_result(&result, 2);
        let of = |id: &str| records.iter().find(|record| record.id == id).map(|record| record.value);
        assert_eq!((of("scf"), of("scf/fock_builds_wall"), of("scf/counter")), (Some(2.0), Some(1.5), Some(0.25)));
        assert_eq!((of("scf/energy"), of("scf/communication_share")), (Some(-76.0), None));
    }
}
