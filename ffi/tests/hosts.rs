//! The whole C suite on two hosts, which are network namespaces: started by our launcher, and by those of MPIs, beside
//! their MPI or without one. What is not installed or not allowed is not tested, and a line says so.

mod common;

use armci_core::job::Job;
use common::launch::{MPICH, Mpi, OPEN_MPI, installed, per_rank};
use common::program::{Build, SUITE, WITH_MPI, check};
use tests::hosts::{Hosts, serve_if_agent};
use tests::launched::Launched;

const RANKS: usize = 4;
const LIMIT: std::time::Duration = std::time::Duration::from_secs(100);

/// What our launcher's agents on hosts are.
#[test]
fn agent() {
    serve_if_agent();
}

#[test]
fn the_suite_runs_on_two_hosts_by_our_launcher() {
    let Some(hosts) = Hosts::make(2) else { return };
    for name in SUITE {
        let Some(program) = Build::of(name).compile() else { return };
        let job = Job::new(RANKS, program).unwrap().hosts(hosts.for_job("agent").unwrap()).unwrap();
        let job =
            job.no_input(true).quiet(true).timeout(LIMIT).capture_stdout(true).capture_stderr(true).env("NODES", "2");
        let outcome = hosts.within_hub(|| job.run()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&outcome.stdout), text(&outcome.stderr));
        assert_eq!(outcome.code, 0, "{name}: {:?}\n{stdout}{stderr}", outcome.failed);
        // The agents are tests, and say so.
        let of_agents = |line: &&str| line.is_empty() || *line == "running 1 test";
        let stdout: String = stdout.lines().filter(|line| !of_agents(line)).map(|line| format!("{line}\n")).collect();
        check(name, RANKS, &stdout.replace("test agent ... ", ""), &stderr);
    }
}

fn by(mpi: Mpi, linked: bool) {
    let (installed, Some(hosts)) = (installed(&[mpi]), Hosts::make(2)) else { return };
    let launched = Launched::over(&hosts);
    for mpi in installed {
        for &name in SUITE.iter().chain(WITH_MPI.iter().filter(|_| linked)) {
            let Some(program) = (Build { mpi: linked.then_some(mpi), ..Build::of(name) }).compile() else { return };
            let mut job = if mpi == MPICH { launched.mpich(RANKS / 2) } else { launched.open_mpi(RANKS / 2) };
            job.args(["env", "NODES=2"]);
            let ended = per_rank(job, &[&program], LIMIT);
            assert!(ended.status.success(), "{name}: {ended:#?}");
            check(name, RANKS, &ended.stdout, &ended.stderr);
        }
    }
}

#[test]
fn the_suite_runs_on_two_hosts_by_mpirun_without_mpi() {
    by(OPEN_MPI, false);
}

#[test]
fn the_suite_runs_on_two_hosts_by_mpirun_beside_open_mpi() {
    by(OPEN_MPI, true);
}

#[test]
fn the_suite_runs_on_two_hosts_by_mpiexec_without_mpi() {
    by(MPICH, false);
}

#[test]
fn the_suite_runs_on_two_hosts_by_mpiexec_beside_mpich() {
    by(MPICH, true);
}
