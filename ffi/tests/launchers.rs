//! The whole C suite under the launchers of MPIs: without an MPI in the program, and linked with one, as C and as C++.
//!
//! What is not installed is not tested, and a line says so; `scripts/install-packages launchers` installs it.

mod common;

use std::ffi::OsStr;
use std::path::Path;

use common::launch::{Ended, LIMIT, MPICH, Mpi, OPEN_MPI, installed, launcher, per_rank};
use common::program::{Build, Language, SUITE, WITH_MPI, check};

/// The numbers of ranks that each program runs on.
const RANKS: [usize; 3] = [1, 2, 4];
/// The same, with the number of virtual nodes.
const PLACES: [(usize, usize); 5] = [(1, 1), (2, 1), (4, 1), (2, 2), (4, 2)];

fn run<const N: usize>(mpi: Mpi, ranks: usize, nodes: usize, program: &Path, arguments: [&str; N]) -> Ended {
    let command: Vec<&OsStr> = [program.as_os_str()].into_iter().chain(arguments.map(OsStr::new)).collect();
    let mut job = launcher(mpi, ranks);
    // The one for the library, the other for programs that count nodes.
    job.env("ARMCI_NODES", nodes.to_string()).env("NODES", nodes.to_string());
    per_rank(job, &command, LIMIT)
}

fn suite(mpi: Mpi, linked: bool, language: Language) {
    let names = SUITE.iter().chain(WITH_MPI.iter().filter(|_| linked));
    for mpi in installed(&[mpi]) {
        for &name in names.clone() {
            // Those of the suite are run by their second names elsewhere.
            let also_twins = WITH_MPI.contains(&name) && language == Language::C;
            for twins in [false, true].into_iter().filter(|twins| !twins || also_twins) {
                let build = Build { mpi: linked.then_some(mpi), language, twins, ..Build::of(name) };
                let Some(program) = build.compile() else { return };
                for (ranks, nodes) in PLACES {
                    let ended = run(mpi, ranks, nodes, &program, []);
                    assert!(ended.status.success(), "{name}, {ranks} ranks, {nodes} nodes: {ended:#?}");
                    check(name, ranks, &ended.stdout, &ended.stderr);
                }
            }
        }
    }
}

/// An exit code reaches whoever called the launcher, and the line on standard error says where it came from.
fn giving_up(mpi: Mpi, linked: bool, language: Language) {
    let cases = [("error", "37", 37, "ARMCI_Error: I give up (code 37)"), ("abort", "6", 6, "armci_msg_abort: code 6")];
    for mpi in installed(&[mpi]) {
        let build = Build { mpi: linked.then_some(mpi), language, ..Build::of("gives_up") };
        let Some(program) = build.compile() else { return };
        for ranks in RANKS {
            for (how, number, code, line) in cases {
                let ended = run(mpi, ranks, 1, &program, [how, number]);
                assert_eq!(ended.status.code(), Some(code), "{how}, {ranks} ranks: {ended:#?}");
                let line = format!("armci: rank {}: {line}", ranks - 1);
                assert!(ended.stderr.lines().any(|written| written == line), "{how}, {ranks} ranks: {ended:#?}");
            }
        }
    }
}

/// A test for each launcher, so that they run side by side.
macro_rules! under {
    ($($name:ident: $mpi:ident, $linked:literal, $language:ident;)*) => {$(
        #[test]
        fn $name() {
            suite($mpi, $linked, Language::$language);
            giving_up($mpi, $linked, Language::$language);
        }
    )*};
}

under! {
    the_suite_runs_under_mpirun_without_mpi: OPEN_MPI, false, C;
    the_suite_runs_under_mpirun_without_mpi_as_cpp: OPEN_MPI, false, Cpp;
    the_suite_runs_under_mpirun_beside_open_mpi: OPEN_MPI, true, C;
    the_suite_runs_under_mpirun_beside_open_mpi_as_cpp: OPEN_MPI, true, Cpp;
    the_suite_runs_under_mpiexec_without_mpi: MPICH, false, C;
    the_suite_runs_under_mpiexec_without_mpi_as_cpp: MPICH, false, Cpp;
    the_suite_runs_under_mpiexec_beside_mpich: MPICH, true, C;
    the_suite_runs_under_mpiexec_beside_mpich_as_cpp: MPICH, true, Cpp;
}
