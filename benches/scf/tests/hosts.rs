//! The energy is the same on several hosts, which are network namespaces, also over lines that are slow and lose some of what
//! is sent; by our launcher and by Open MPI's.

mod common;

use std::time::Duration;

use armci_core::job::Job;
use common::{molecule, number};
use serde_json::Value;
use tests::hosts::{Hosts, serve_if_agent};
use tests::launched::Launched;
use tests::relay::Weather;

/// NWChem's energy of the shipped water molecule, STO-3G.
const STO_3G: f64 = -74.962_985_614_278;

const LIMIT: Duration = Duration::from_secs(150);
const BAD: Weather = Weather { delay: Duration::from_millis(1), jitter: Duration::from_millis(1), loss: 2.0 };

/// What our launcher's agents on hosts are.
#[test]
fn agent() {
    serve_if_agent();
}

fn holds(stdout: &[u8], stderr: &[u8]) {
    let (text, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    // Agents are tests, and say so before.
    let object = text.find('{').map(|at| &text[at..]).unwrap_or_default();
    let result = serde_json::Deserializer::from_str(object).into_iter::<Value>().next();
    let Some(Ok(result)) = result else { panic!("one JSON object expected:\n{text}\n{stderr}") };
    let energy = number(&result, "/energy");
    assert!((energy - STO_3G).abs() < 1e-7, "{energy:.12}");
    assert_eq!(number(&result, "/ranks"), 4.0);
}

fn by_our_launcher(hosts: &Hosts, progress: &str) {
    let job = Job::new(4, env!("CARGO_BIN_EXE_scf")).unwrap().hosts(hosts.for_job("agent").unwrap()).unwrap();
    let job = job.args(["--json".into(), "--basis".into(), "sto-3g".into(), molecule("h2o.xyz").into_os_string()]);
    let job = job.env("ARMCI_PROGRESS", progress).no_input(true).quiet(true).timeout(LIMIT);
    let job = job.capture_stdout(true).capture_stderr(true);
    let outcome = hosts.within_hub(|| job.run()).unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.code, 0, "{progress}: {:?}\n{said}", outcome.failed);
    holds(&outcome.stdout, &outcome.stderr);
}

#[test]
fn on_two_hosts_and_three() {
    for number in [2, 3] {
        let Some(hosts) = Hosts::make(number) else { return };
        by_our_launcher(&hosts, "thread");
        by_our_launcher(&hosts, "none");
    }
}

#[test]
fn over_lines_with_delay_and_loss() {
    let Some(hosts) = Hosts::make_in(2, Some(BAD)) else { return };
    by_our_launcher(&hosts, "thread");
}

#[test]
fn on_two_hosts_by_mpirun() {
    let installed = std::process::Command::new("mpirun.openmpi").arg("--version").output().is_ok();
    if !installed {
        eprintln!("SKIPPED: mpirun.openmpi is not installed");
        return;
    }
    let Some(hosts) = Hosts::make(2) else { return };
    let launched = Launched::over(&hosts);
    let mut job = launched.open_mpi(2);
    job.arg(env!("CARGO_BIN_EXE_scf")).args(["--json", "--basis", "sto-3g"]).arg(molecule("h2o.xyz"));
    let output = job.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    holds(&output.stdout, &output.stderr);
}
