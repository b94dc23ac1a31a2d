//! The C suite under valgrind's memcheck, on two ranks: nothing is read uninitialised, nothing out of bounds, nothing lost.
//!
//! What is not installed is left out, and a line says so. Global Arrays' groups under valgrind are in `global_arrays`, with
//! its other clients.

mod common;

use armci_core::job::{Job, Outcome};
use common::launch::{LIMIT, MPICH, Mpi, OPEN_MPI, installed, launcher, per_rank};
use common::program::{Build, SUITE, WITH_MPI, check};
use common::valgrind::{FOUND, SETTINGS, Valgrind};

const RANKS: usize = 2;

fn run(name: &'static str, protocol: &str) -> Option<(Outcome, String)> {
    let valgrind = Valgrind::new(&format!("{name}-{protocol}"))?.with_leaks();
    let program = Build::of(name).compile_to(&format!("valgrind-{name}-{protocol}")).unwrap();
    let command = valgrind.command(&program);
    let job = Job::new(RANKS, &command[0]).unwrap().args(&command[1..]).env("ARMCI_PROTOCOL", protocol);
    let job = SETTINGS.iter().fold(job, |job, (name, value)| job.env(name, value));
    let outcome =
        job.capture_stdout(true).capture_stderr(true).quiet(true).no_input(true).timeout(LIMIT).run().unwrap();
    Some((outcome, valgrind.found()))
}

fn clean(names: &[&'static str], protocol: &str) {
    for name in names {
        let Some((outcome, found)) = run(name, protocol) else { return };
        let (stdout, stderr) = (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
        assert_eq!(outcome.code, 0, "{name}: {stderr}\n{found}");
        assert_eq!(found, "", "{name}");
        check(name, RANKS, &stdout, &stderr);
    }
}

#[test]
fn the_suite_is_clean() {
    clean(&SUITE, "rma");
}

#[test]
fn what_goes_by_message_is_clean() {
    clean(&["transfers", "nonblocking", "messages", "threads"], "am");
}

#[test]
fn what_is_wrong_would_be_found() {
    let Some((outcome, found)) = run("careless", "rma") else { return };
    assert_eq!(outcome.code, FOUND, "{found}");
    assert!(found.contains("Invalid read of size") && found.contains("ARMCI_Put"), "{found}");
    assert!(found.contains("are definitely lost") && found.contains("careless.c"), "{found}");
}

/// Where groups have communicators.
fn beside(mpi: Mpi) {
    for mpi in installed(&[mpi]) {
        for name in ["groups"].into_iter().chain(WITH_MPI) {
            let Some(valgrind) = Valgrind::new(&format!("{name}-{}", mpi.name)) else { return };
            let program = Build { mpi: Some(mpi), ..Build::of(name) }.compile().unwrap();
            let mut job = launcher(mpi, RANKS);
            job.envs(SETTINGS);
            let ended = per_rank(job, &valgrind.command(&program), LIMIT);
            let found = valgrind.found();
            assert!(ended.status.success(), "{name}: {ended:#?}\n{found}");
            assert_eq!(found, "", "{name}");
            check(name, RANKS, &ended.stdout, &ended.stderr);
        }
    }
}

#[test]
fn groups_are_clean_beside_open_mpi() {
    beside(OPEN_MPI);
}

#[test]
fn groups_are_clean_beside_mpich() {
    beside(MPICH);
}
