//! Debian's prebuilt Global Arrays, unmodified, on this library in place of ARMCI-MPI.
//!
//! For each MPI that it is built for: nothing of ARMCI's that it refers to is missing here, and a C program
//! (`clients/global-arrays/tour.c`) runs right. Others there, in C and Fortran, go through its interface and print what
//! comes of each step: that must be the same with ARMCI-MPI. What is not installed is left out, and standard error says so.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use armci::catalogue;
use common::launch::{LIMIT, MPICH, Mpi, OPEN_MPI, launcher, per_rank};
use common::valgrind::{SETTINGS, Valgrind};
use common::{installed, package, run, scratch};
use tests::hosts::Hosts;
use tests::launched::Launched;

fn left_out(why: &str) {
    // Not `eprintln!`, which the harness keeps to itself.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "left out: {why}").unwrap();
}

impl Mpi {
    /// Its Global Arrays, if there is a compiler for this client, too.
    fn found_for(&self, client: &Client) -> Option<PathBuf> {
        let compiler = format!("{}.{}", client.compiler, self.name);
        let compiles = Command::new(&compiler).arg("--version").output().is_ok_and(|output| output.status.success());
        let archive = find(&format!("libga-{}.a", self.name)).filter(|_| compiles);
        if archive.is_none() {
            let what = "Debian: libglobalarrays-dev, gfortran";
            left_out(&format!("Global Arrays for {0} and {compiler} ({what}, lib{0}-dev)", self.name));
        }
        archive
    }

    /// Links a client with its Global Arrays and an ARMCI.
    fn compile(&self, client: &Client, archive: &Path, armci: Armci) -> PathBuf {
        let program = scratch(&format!("{}-{}-{armci:?}", client.name, self.name));
        let mut compiler = Command::new(format!("{}.{}", client.compiler, self.name));
        compiler.args(client.options).args(["-g", "-O1", "-o"]).arg(&program);
        let sources = package().join("tests/clients/global-arrays");
        let scalapack = format!("libscalapack-{}.so.2.2", self.name);
        compiler.arg(sources.join(client.source));
        if find(&scalapack).is_none() {
            compiler.arg("-DNO_SCALAPACK").arg(sources.join("no_scalapack.c"));
        }
        compiler.arg(archive);
        match armci {
            Armci::Ours => {
                let lib = installed();
                compiler.arg("-L").arg(lib).arg("-larmci").arg(format!("-Wl,-rpath,{}", lib.display()))
            }
            Armci::Theirs => compiler.arg(format!("-larmci-{}", self.name)),
        };
        if find(&scalapack).is_some() {
            compiler.arg(format!("-l:{scalapack}"));
        }
        // By their names at run time: their packages for development need not be there.
        compiler.args(["-l:liblapack.so.3", "-l:libblas.so.3", "-lgfortran", "-lm"]);
        run(&mut compiler);
        program
    }

    fn job(&self, ranks: usize, nodes: usize, program: &Path) -> Output {
        let mut job = Command::new("timeout");
        job.args(["--kill-after=5", "60", self.launcher]).args(self.options);
        job.args(["-n", &ranks.to_string()]).arg(program).current_dir(env!("CARGO_TARGET_TMPDIR"));
        // In a container everybody is root.
        job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        job.env("ARMCI_NODES", nodes.to_string());
        job.output().unwrap()
    }

    /// What a client prints; it must succeed.
    fn output(&self, ranks: usize, nodes: usize, program: &Path) -> String {
        let Output { status, stdout, stderr } = self.job(ranks, nodes, program);
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{}, {ranks} ranks, {nodes} nodes, {status}:\n{stdout}{stderr}", program.display());
        stdout.into_owned()
    }

    /// Groups of Global Arrays, where memory is watched: nothing is read or written outside of what is there.
    fn groups_are_clean(&self) {
        // A program of its own: the other test may be running.
        let client = Client { name: "groups-valgrind", ..GROUPS };
        let (Some(archive), Some(valgrind)) = (self.found_for(&client), Valgrind::new(self.name)) else { return };
        let program = self.compile(&client, &archive, Armci::Ours);
        let mut job = launcher(*self, 2);
        job.envs(SETTINGS);
        let ended = per_rank(job, &valgrind.command(&program), LIMIT);
        let found = valgrind.found();
        assert!(ended.status.success(), "{}: {ended:#?}\n{found}", self.name);
        assert_eq!(found, "", "{}", self.name);
        assert!(ended.stdout.lines().any(|line| line.starts_with("done:")), "{ended:#?}");
    }

    fn tour(&self) {
        let Some(archive) = self.found_for(&TOUR) else { return };
        resolves_all(&archive);
        let program = self.compile(&TOUR, &archive, Armci::Ours);
        for (ranks, nodes) in [(1, 1), (2, 1), (4, 1), (2, 2), (4, 2)] {
            assert_eq!(self.output(ranks, nodes, &program), "done\n");
        }
    }
}

/// A program of Global Arrays.
struct Client {
    name: &'static str,
    source: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
}
const C: &[&str] = &["-std=gnu11", "-Wall", "-Wextra", "-Werror"];
const TOUR: Client = Client { name: "tour", source: "tour.c", compiler: "mpicc", options: C };
const ARRAYS: Client = Client { name: "arrays", source: "arrays.c", compiler: "mpicc", options: C };
const ALGEBRA: Client = Client { name: "algebra", source: "algebra.c", compiler: "mpicc", options: C };
const FORMS: Client = Client { name: "forms", source: "forms.c", compiler: "mpicc", options: C };
const KINDS: Client = Client { name: "kinds", source: "kinds.c", compiler: "mpicc", options: C };
const STORAGE: Client = Client { name: "storage", source: "storage.c", compiler: "mpicc", options: C };
const GROUPS: Client = Client { name: "groups", source: "groups.c", compiler: "mpicc", options: C };
/// With integers of the size that Debian builds Global Arrays for, which take values of several types by one name.
const FORTRAN: Client = Client {
    name: "fortran",
    source: "fortran.F",
    compiler: "mpifort",
    options: &["-cpp", "-fdefault-integer-8", "-fallow-argument-mismatch", "-w", "-I/usr/include"],
};

/// Whose ARMCI a client is linked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armci {
    Ours,
    /// ARMCI-MPI.
    Theirs,
}

/// A library by its file's name, where the compiler finds it.
fn find(file: &str) -> Option<PathBuf> {
    let search = Command::new("cc").arg(format!("-print-file-name={file}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&search.stdout).trim());
    path.is_absolute().then_some(path)
}

/// Where two outputs differ first, beyond the tenth digit of numbers.
///
/// Whoever prints a number that should be 0 prints what is left of others: it is compared by the largest of its line.
fn difference(ours: &str, theirs: &str) -> Option<String> {
    let lines =
        |text: &'_ str| text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (ours, theirs) = (lines(ours), lines(theirs));
    let (mut left, mut right) = (ours.iter().map(String::as_str), theirs.iter().map(String::as_str));
    loop {
        let (left, right) = match (left.next(), right.next()) {
            (None, None) => return None,
            (left, right) => (left.unwrap_or("(nothing)"), right.unwrap_or("(nothing)")),
        };
        let numbers =
            |line: &str| line.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).collect::<Vec<_>>();
        let words = |line: &str| {
            let all = line.split_whitespace().filter(|word| word.parse::<f64>().is_err());
            all.map(str::to_owned).collect::<Vec<_>>()
        };
        let (a, b) = (numbers(left), numbers(right));
        let largest = a.iter().fold(1.0, |largest: f64, number| largest.max(number.abs()));
        let close = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-10 * largest);
        if !close || words(left) != words(right) {
            return Some(format!("ours:   {left}\ntheirs: {right}"));
        }
    }
}

/// The client prints the same on both libraries, and on ours beside both MPIs, and where its ranks are on two nodes.
///
/// What it is held against is ARMCI-MPI on Open MPI, which may try several times: where disjoint groups allocate at one
/// time, five of its twelve runs crashed or lost updates (ours none). On Debian's MPICH it failed in each of the programs, and is
/// not compared with.
fn agrees(client: &Client, tries: usize) {
    let Some(archive) = OPEN_MPI.found_for(client) else { return };
    let mpich = MPICH.found_for(client);
    if find("libarmci-openmpi.a").is_none() {
        left_out("ARMCI-MPI to compare with (Debian: libarmci-mpi-dev)");
        return;
    }
    let ours = OPEN_MPI.compile(client, &archive, Armci::Ours);
    let theirs = OPEN_MPI.compile(client, &archive, Armci::Theirs);
    let beside_mpich = mpich.map(|archive| MPICH.compile(client, &archive, Armci::Ours));
    for ranks in [1, 2, 4] {
        let output = OPEN_MPI.output(ranks, 1, &ours);
        assert!(output.lines().any(|line| line.starts_with("done:")), "{output}");
        if ranks > 1 {
            let apart = OPEN_MPI.output(ranks, 2, &ours);
            let difference = difference(&apart, &output);
            assert!(
                difference.is_none(),
                "{}, {ranks} ranks, 2 nodes: {}",
                client.name,
                difference.unwrap_or_default()
            );
        }
        let mut differences = Vec::new();
        for _ in 0..tries {
            let job = OPEN_MPI.job(ranks, 1, &theirs);
            if job.status.success() {
                match difference(&output, &String::from_utf8_lossy(&job.stdout)) {
                    None => break,
                    Some(difference) => differences.push(difference),
                }
            } else {
                differences.push(format!("theirs failed: {}", job.status));
            }
        }
        assert!(differences.len() < tries, "{}, {ranks} ranks: {}", client.name, differences.join("\n"));
        if let Some(program) = &beside_mpich {
            // ScaLAPACK for it may be missing.
            let output_there = MPICH.output(ranks, 1, program);
            let shared = shared_lines(&output, &output_there);
            let difference = difference(&shared, &output_there);
            assert!(difference.is_none(), "{}, {ranks} ranks, MPICH: {}", client.name, difference.unwrap_or_default());
        }
    }
}

/// The lines of `all` whose titles `some` has, too.
fn shared_lines(all: &str, some: &str) -> String {
    let title = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let titles: BTreeSet<String> = some.lines().map(title).collect();
    all.lines().filter(|line| titles.contains(&title(line))).map(|line| format!("{line}\n")).collect()
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

/// On hosts that share nothing but a network: a sample.
#[test]
fn global_arrays_runs_on_two_hosts() {
    let Some(hosts) = Hosts::make(2) else { return };
    let launched = Launched::over(&hosts);
    for (mpi, is_mpich) in [(OPEN_MPI, false), (MPICH, true)] {
        for (client, last) in [(TOUR, "done"), (GROUPS, "done:")] {
            // Programs of their own: other tests may be running them.
            let client = Client { name: if last == "done" { "tour-hosts" } else { "groups-hosts" }, ..client };
            let Some(archive) = mpi.found_for(&client) else { continue };
            let program = mpi.compile(&client, &archive, Armci::Ours);
            let mut job = if is_mpich { launched.mpich(2) } else { launched.open_mpi(2) };
            let Output { status, stdout, stderr } = job
                .args(["env", "ARMCI_NODES=2"])
                .arg(&program)
                .current_dir(env!("CARGO_TARGET_TMPDIR"))
                .output()
                .unwrap();
            let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            let done = stdout.lines().any(|line| line.starts_with(last));
            assert!(status.success() && done, "{} {}: {status}:\n{stdout}{stderr}", mpi.name, client.name);
        }
    }
}

#[test]
fn arrays_of_all_kinds_hold_the_same_on_both_libraries() {
    agrees(&ARRAYS, 3);
}

#[test]
fn algebra_gives_the_same_on_both_libraries() {
    agrees(&ALGEBRA, 3);
}

#[test]
fn groups_counters_and_files_give_the_same_on_both_libraries() {
    agrees(&GROUPS, 8);
}

#[test]
fn fortran_gives_the_same_on_both_libraries() {
    agrees(&FORTRAN, 3);
}

#[test]
fn groups_are_clean_under_valgrind_beside_open_mpi() {
    OPEN_MPI.groups_are_clean();
}

#[test]
fn groups_are_clean_under_valgrind_beside_mpich() {
    MPICH.groups_are_clean();
}

#[test]
fn forms_of_64_bits_give_the_same_on_both_libraries() {
    agrees(&FORMS, 3);
}

#[test]
fn other_kinds_of_arrays_hold_the_same_on_both_libraries() {
    agrees(&KINDS, 3);
}

#[test]
fn what_is_stored_in_files_comes_back_the_same_on_both_libraries() {
    agrees(&STORAGE, 3);
}
