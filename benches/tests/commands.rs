//! The program itself, on problems small enough for any machine: that kernels' answers are right on several ranks, that
//! records arrive whole, that a report is written and two are told apart.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest a command may take.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs it outside any job, for so long at most.
fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_armci-bench"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ARMCI_") {
            command.env_remove(name);
        }
    }
    let mut child = command.spawn().expect("it starts");
    let begin = Instant::now();
    // (What it writes fits into a pipe; what does not would end at the limit, and be seen.)
    while child.try_wait().expect("a child").is_none() {
        if begin.elapsed() > LIMIT {
            child.kill().expect("it can be ended");
            panic!("{arguments:?} did not end within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("its output")
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs a benchmark; its records.
fn records(name: &str, arguments: &[&str]) -> Vec<Value> {
    let path = file(name);
    let output = bench(&[arguments, &["--quick", "--json", path.to_str().unwrap()]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    // A machine with one core measures nothing between two.
    if said.contains("measures between two cores") {
        return Vec::new();
    }
    assert!(output.status.success(), "{arguments:?}: {said}");
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["records"].as_array().unwrap().clone()
}

/// Values of records of this name, by ranks.
fn values(records: &[Value], id: &str) -> Vec<(u64, f64)> {
    let of = records.iter().filter(|record| record["id"] == id);
    of.map(|record| (record["ranks"].as_u64().unwrap(), record["value"].as_f64().unwrap())).collect()
}

#[test]
fn lu_is_right_on_any_grid_both_ways() {
    for (n, block) in [("70", "16"), ("33", "64")] {
        let all = records("lu.json", &["lu", "--ranks", "1,2,3,4", "--n", n, "--block", block]);
        for id in ["lu/strong/pre_put/residual", "lu/strong/pre_get/residual"] {
            let residuals = values(&all, id);
            assert!(all.is_empty() || residuals.len() == 4, "{residuals:?}");
            assert!(residuals.iter().all(|(_, residual)| *residual > 0.0 && *residual < 16.0), "{residuals:?}");
        }
    }
}

#[test]
fn the_cavity_keeps_its_mass_and_flows_as_published() {
    let all = records("cavity.json", &["boltzmann", "--ranks", "3,4", "--n", "24", "--steps", "40"]);
    assert!(all.is_empty() || values(&all, "boltzmann/strong/mass_lost").len() == 2);
    let settled = records("settled.json", &["boltzmann", "--ranks", "2"]);
    let worst = values(&settled, "boltzmann/settled/from_ghia_worst");
    assert!(settled.is_empty() || worst.len() == 1 && worst[0].1 <= 0.03, "{worst:?}");
}

#[test]
fn products_are_exact_on_any_number_of_ranks() {
    let all = records("matmul.json", &["matmul", "--ranks", "2,3", "--n", "50"]);
    assert!(all.is_empty() || values(&all, "matmul/strong/rate").len() == 2);
}

#[test]
fn records_say_where_they_come_from_and_follow_from_each_other() {
    let all = records("contig.json", &["contig", "--ranks", "2", "--protocol", "rma,am", "--sizes", "16,65536"]);
    for record in &all {
        for field in ["id", "value", "unit", "ranks", "nodes", "protocol", "progress"] {
            assert!(!record[field].is_null(), "{field} of {record}");
        }
    }
    let gets = |protocol: &str| all.iter().filter(|r| r["id"] == "contig/get" && r["protocol"] == protocol).count();
    assert!(all.is_empty() || (gets("rma"), gets("am")) == (2, 2));
    let held = all.iter().filter(|r| r["id"] == "contig/get" && r["of_limit"].as_f64().is_some()).count();
    assert!(all.is_empty() || held == 4, "each get is held against a copy");
    assert!(all.is_empty() || values(&all, "contig/get/n_half").len() == 2);
}

#[test]
fn a_page_is_drawn_again_and_two_runs_are_told_apart() {
    let [before, after] = ["before.json", "after.json"].map(file);
    let run = |value: f64| {
        let record = |at: u64, value: f64| {
            serde_json::json!({ "id": "contig/get", "value": value, "unit": "ns", "ranks": 2, "nodes": 1,
                "protocol": "rma", "progress": "thread", "side": "ours", "axis": "bytes", "at": at })
        };
        serde_json::json!({ "records": [record(8, value), record(64, 2.0 * value)] }).to_string()
    };
    std::fs::write(&before, run(10.0)).unwrap();
    std::fs::write(&after, run(13.0)).unwrap();
    let [a, b] = [&before, &after].map(|path| path.to_str().unwrap());
    assert_eq!(bench(&["compare", a, a]).status.code(), Some(0));
    let worse = bench(&["compare", a, b]);
    assert_eq!(worse.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&worse.stdout).contains("WORSE: 2"));
    assert_eq!(bench(&["compare", a, b, "--noise", "0.5"]).status.code(), Some(0));
    assert!(bench(&["page", a]).status.success());
    assert!(std::fs::read_to_string(before.with_extension("html")).unwrap().contains("<svg"));
    // And shown in a repository: pictures, a text around them, and figures in a text of somebody's.
    let (plots, readme) = (file("plots"), file("text.md"));
    std::fs::write(&readme, "mine\n<!-- figures -->\n<!-- end of figures -->\nmine too\n").unwrap();
    let [to, at] = [&plots, &readme].map(|path| path.to_str().unwrap());
    assert!(bench(&["page", a, "--plots", to, "--readme", at]).status.success());
    assert!(std::fs::read_to_string(plots.join("README.md")).unwrap().contains("do not edit it"));
    let renewed = std::fs::read_to_string(&readme).unwrap();
    assert!(renewed.starts_with("mine\n") && renewed.ends_with("\nmine too\n") && renewed.lines().count() > 4);
    std::fs::write(&readme, "no marks\n").unwrap();
    let unmarked = bench(&["page", a, "--readme", at]);
    assert!(
        unmarked.status.code() == Some(2) && String::from_utf8_lossy(&unmarked.stderr).contains("<!-- figures -->")
    );
    let missing = bench(&["model", "--from", a]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("run 'contig' too") || !missing.status.success());
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers() {
    let refused = |arguments: &[&str], part: &str| {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(part), "{arguments:?}: {said}");
    };
    refused(&["contig", "--sizes", "12"], "multiple of 8");
    refused(&["report"], "--json FILE");
    refused(&["lu", "--ranks", "0"], "ranks");
    refused(&["compare", "/no/such/a", "/no/such/b"], "/no/such/a");
    refused(&["boltzmann", "--ranks", "16", "--n", "4", "--nodes", "17"], "17");
}
