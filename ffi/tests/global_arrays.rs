//! Debian's prebuilt Global Arrays, unmodified, on this library in place of ARMCI-MPI.
//!
//! For each MPI that it is built for: nothing of ARMCI's that it refers to is missing here, and a C program
//! (`clients/global-arrays/tour.c`) runs right. What is not installed is left out, and standard error says so.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use armci::catalogue;
use common::{installed, package, run, scratch};

/// What Debian calls an MPI, and how it starts ranks.
struct Mpi {
    name: &'static str,
    launcher: &'static str,
    options: &'static [&'static str],
}
const OPEN_MPI: Mpi = Mpi { name: "openmpi", launcher: "mpirun.openmpi", options: &["--oversubscribe"] };
const MPICH: Mpi = Mpi { name: "mpich", launcher: "mpiexec.mpich", options: &[] };

fn left_out(why: &str) {
    // Not `eprintln!`, which the harness keeps to itself.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "left out: {why}").unwrap();
}

impl Mpi {
    /// Its Global Arrays, and the wrapper of its compiler.
    fn found(&self) -> Option<(PathBuf, String)> {
        let cc = format!("mpicc.{}", self.name);
        let search = Command::new("cc").arg(format!("-print-file-name=libga-{}.a", self.name)).output();
        let found = search.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let archive = found.map(PathBuf::from).unwrap_or_default();
        let compiles = Command::new(&cc).arg("--version").output().is_ok_and(|output| output.status.success());
        if archive.is_absolute() && compiles {
            return Some((archive, cc));
        }
        left_out(&format!("Global Arrays for {0} (Debian: libglobalarrays-dev, lib{0}-dev)", self.name));
        None
    }

    fn compile(&self, cc: &str, archive: &Path) -> PathBuf {
        let program = scratch(&format!("tour-{}", self.name));
        let sources = package().join("tests/clients/global-arrays");
        let lib = installed();
        let mut cc = Command::new(cc);
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]);
        cc.args(["tour.c", "no_scalapack.c"].map(|file| sources.join(file))).arg("-o").arg(&program).arg(archive);
        cc.arg("-L").arg(lib).arg("-larmci").arg(format!("-Wl,-rpath,{}", lib.display()));
        // By their names at run time: their packages for development need not be there.
        cc.args(["-l:liblapack.so.3", "-l:libblas.so.3", "-lgfortran", "-lm"]);
        run(&mut cc);
        program
    }

    fn job(&self, ranks: usize, program: &Path) -> Output {
        let mut job = Command::new("timeout");
        job.arg("120").arg(self.launcher).args(self.options).args(["-n", &ranks.to_string()]).arg(program);
        // In a container everybody is root.
        job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        job.output().unwrap()
    }

    fn tour(&self) {
        let Some((archive, cc)) = self.found() else { return };
        resolves_all(&archive);
        let program = self.compile(&cc, &archive);
        for ranks in [1, 2, 4] {
            let Output { status, stdout, stderr } = self.job(ranks, &program);
            let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            assert!(status.success() && stdout == "done\n", "{} ranks, {status}:\n{stdout}{stderr}", ranks);
        }
    }
}

/// Every symbol of ARMCI's that an archive refers to and does not define is one of our exports.
fn resolves_all(archive: &Path) {
    let nm = |option| String::from_utf8(run(Command::new("nm").arg(option).arg(archive)).stdout).unwrap();
    let (undefined, defined) = (nm("--undefined-only"), nm("--defined-only"));
    let last = |line: &'_ str| line.split_whitespace().next_back().map(str::to_owned);
    let of_armci = |name: &String| name.starts_with("ARMCI_") || name.starts_with("armci_");
    let mut missing: BTreeSet<String> = undefined.lines().filter_map(last).filter(of_armci).collect();
    defined.lines().filter_map(last).for_each(|name| {
        missing.remove(&name);
    });
    assert!(missing.len() > 50, "{missing:?}");
    catalogue::functions().iter().for_each(|function| {
        missing.remove(function.name);
    });
    assert_eq!(missing, BTreeSet::new());
}

#[test]
fn global_arrays_of_open_mpi_runs_on_this_library() {
    OPEN_MPI.tour();
}

#[test]
fn global_arrays_of_mpich_runs_on_this_library() {
    MPICH.tour();
}
