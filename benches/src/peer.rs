//! The other side: ARMCI-MPI, and Global Arrays on it, on Open MPI from the distribution's packages, each running a
//! program of ours in `peers/`.
//!
//! A peer may be missing, may not compile, may hang or crash: each becomes a reason in its column, never an error
//! of the run. However the run ends, `mpirun` is asked to end, and it ends its ranks; the files go with it unless the
//! run is killed outright.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::figure::Figures;
use crate::interrupt;
use crate::timing::Effort;

/// The longest a peer may take for one program.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to go after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// What to say where Open MPI is not installed.
pub const HOW_TO_INSTALL: &str = "apt-get install libarmci-mpi-dev libopenmpi-dev openmpi-bin (or: make bench)";

/// A library that does what we do, and our program for it.
#[derive(Debug)]
pub struct Library {
    /// What it is called.
    pub name: &'static str,
    program: &'static str,
    source: &'static str,
    /// Ways to link with it, of which the first that works is taken.
    links: &'static [&'static [&'static str]],
    /// What a compiler says where it is missing.
    signs: &'static [&'static str],
    how_to_install: &'static str,
}

static ARMCI_MPI: Library = Library {
    name: "ARMCI-MPI",
    program: "armci_mpi",
    source: include_str!("../peers/armci_mpi.c"),
    links: &[&["-larmci-openmpi"]],
    signs: &["armci.h", "-larmci"],
    how_to_install: HOW_TO_INSTALL,
};

static GLOBAL_ARRAYS: Library = Library {
    name: "Global Arrays",
    program: "global_arrays",
    source: include_str!("../peers/global_arrays.c"),
    // The libraries of linear algebra that it names are often there without what links to them by their plain names.
    links: &[
        &["-lga-openmpi", "-lscalapack-openmpi", "-llapack", "-lblas", "-larmci-openmpi", "-lgfortran", "-lm"],
        &[
            "-lga-openmpi",
            "-l:libscalapack-openmpi.so.2.2",
            "-l:liblapack.so.3",
            "-l:libblas.so.3",
            "-larmci-openmpi",
            "-lgfortran",
            "-lm",
        ],
    ],
    signs: &["ga.h", "-lga", "scalapack", "-larmci", "-lgfortran"],
    how_to_install: "apt-get install libglobalarrays-dev libopenmpi-dev openmpi-bin gfortran (or: make bench)",
};

/// What a peer measures, and how it is started for that.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    library: &'static Library,
    argument: &'static str,
    ranks: usize,
    bound: bool,
}

/// What is measured for the table.
pub static PROGRAMS: [Program; 5] = [
    Program { library: &ARMCI_MPI, argument: "pair", ranks: 2, bound: true },
    Program { library: &ARMCI_MPI, argument: "barrier", ranks: 2, bound: true },
    Program { library: &ARMCI_MPI, argument: "barrier", ranks: 8, bound: false },
    Program { library: &GLOBAL_ARRAYS, argument: "pair", ranks: 2, bound: true },
    Program { library: &GLOBAL_ARRAYS, argument: "spread", ranks: 4, bound: false },
];
/// What is measured for the sweep.
pub static SWEEP: Program = Program { library: &ARMCI_MPI, argument: "sweep", ranks: 2, bound: true };

/// The peers of some programs: compiled, or why not.
#[derive(Debug, Default)]
pub struct Peers(Vec<(&'static str, Result<Peer, String>)>);

impl Peers {
    /// Compiles those that these programs are of.
    pub fn build(programs: &[Program]) -> Self {
        let mut peers = Peers::default();
        for Program { library, .. } in programs {
            if peers.0.iter().all(|(name, _)| *name != library.name) {
                peers.0.push((library.name, Peer::build(library)));
            }
        }
        peers
    }

    /// Runs one of the programs.
    ///
    /// # Errors
    /// Why there are no figures, in words for its column.
    pub fn measure(&self, program: Program, effort: Effort) -> Result<Figures, String> {
        let name = program.library.name;
        let Some((_, peer)) = self.0.iter().find(|(built, _)| *built == name) else {
            return Err(format!("{name}: not asked for"));
        };
        let peer = peer.as_ref().map_err(Clone::clone);
        peer.and_then(|peer| peer.measure(program, effort)).map_err(|reason| format!("{name}: {reason}"))
    }
}

/// A compiled peer; its directory goes with it.
#[derive(Debug)]
struct Peer {
    directory: TempDir,
    mpirun: &'static str,
}

impl Peer {
    /// Compiles it; or says why there is none.
    fn build(library: &Library) -> Result<Self, String> {
        let find = |names: [&'static str; 2]| names.into_iter().find(|name| is_open_mpi(name));
        let (Some(mpicc), Some(mpirun)) = (find(["mpicc.openmpi", "mpicc"]), find(["mpirun.openmpi", "mpirun"])) else {
            return Err(format!("Open MPI is not installed: {HOW_TO_INSTALL}"));
        };
        let directory = fresh_directory().map_err(|error| format!("cannot make a directory: {error}"))?;
        let file = format!("{}.c", library.program);
        let source = directory.path().join(&file);
        fs::write(&source, library.source).map_err(|error| format!("cannot write {}: {error}", source.display()))?;
        let mut said = String::new();
        for link in library.links {
            let mut compiler = Command::new(mpicc);
            compiler.args(["-O3", &file, "-o", library.program]).args(*link).current_dir(directory.path());
            let compiled = run(&mut compiler, directory.path(), LIMIT)?;
            if compiled.status.is_some_and(|status| status.success()) {
                return Ok(Peer { directory, mpirun });
            }
            said = compiled.stderr;
        }
        let missing = library.signs.iter().any(|what| said.contains(what));
        Err(if missing {
            format!("it is not installed: {}", library.how_to_install)
        } else {
            format!("{mpicc} fails: {}", first_line(&said))
        })
    }

    /// Runs a program of its library.
    fn measure(&self, program: Program, effort: Effort) -> Result<Figures, String> {
        let mut command = Command::new(self.mpirun);
        command.args(["--oversubscribe", "--bind-to", if program.bound { "core" } else { "none" }]);
        if rustix::process::geteuid().is_root() {
            command.arg("--allow-run-as-root");
        }
        command
            .args(["-n", &program.ranks.to_string()])
            .arg(self.directory.path().join(program.library.program))
            .args([program.argument, &effort.samples.to_string(), &effort.window.as_millis().to_string()]);
        let ran = run(&mut command, self.directory.path(), LIMIT)?;
        let what = format!("'{}' with {} ranks", program.argument, program.ranks);
        match ran.status {
            None => Err(format!("{what} did not end within {} s", LIMIT.as_secs())),
            Some(status) if !status.success() => Err(format!("{what} failed ({status}): {}", first_line(&ran.stderr))),
            Some(_) => Figures::parse(&ran.stdout).map_err(|error| error.to_string()),
        }
    }
}

/// A directory of a new, random name, which nobody else may enter; it goes when it is dropped.
fn fresh_directory() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("armci-bench-").permissions(fs::Permissions::from_mode(0o700)).tempdir()
}

/// Whether this compiler or launcher is there, and Open MPI's.
fn is_open_mpi(name: &str) -> bool {
    let said = Command::new(name).arg("--version").stdin(Stdio::null()).output();
    let ours = |text: &[u8]| String::from_utf8_lossy(text).contains("Open MPI");
    said.is_ok_and(|output| output.status.success() && ours(&output.stdout))
        || Command::new(name)
            .arg("--showme:version")
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| ours(&output.stdout) || ours(&output.stderr))
}

/// What became of a command.
struct Ran {
    /// Its status; none: it had to be ended.
    status: Option<ExitStatus>,
    stdout: String,
    stderr: String,
}

/// Runs a command in a process group of its own, for at most `limit` and until the run is asked to end; its output goes through files, so that nobody
/// who outlives it can hold us up.
fn run(command: &mut Command, directory: &Path, limit: Duration) -> Result<Ran, String> {
    let (out, err) = (directory.join("stdout"), directory.join("stderr"));
    let create = |path: &Path| File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()));
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?).process_group(0);
    let mut child = interrupt::tie(command)
        .spawn()
        .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    let status = wait(&mut child, limit, || interrupt::check().is_ok());
    if status.is_none() {
        for signal in [Signal::TERM, Signal::KILL] {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process_group(group, signal);
            }
            if wait(&mut child, GRACE, || true).is_some() {
                break;
            }
        }
    }
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Ok(Ran { status, stdout: read(&out), stderr: read(&err) })
}

/// Waits for a child, for at most `limit` and while `go_on` says so; looks every few milliseconds, which disturbs no
/// measurement.
fn wait(child: &mut Child, limit: Duration, go_on: impl Fn() -> bool) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < limit && go_on() => std::thread::sleep(Duration::from_millis(10)),
            _ => return None,
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("---"))
        .unwrap_or("it did not say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_ended() {
        let directory = fresh_directory().unwrap();
        assert_eq!(fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let start = Instant::now();
        let ran = run(Command::new("sleep").arg("60"), directory.path(), Duration::from_millis(50)).unwrap();
        assert!(ran.status.is_none() && start.elapsed() < Duration::from_secs(10));
        let missing = run(&mut Command::new("/no/such/program"), directory.path(), LIMIT);
        assert!(missing.is_err_and(|reason| reason.contains("/no/such/program")));
    }
}
