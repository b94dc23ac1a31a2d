//! The other side: ARMCI-MPI on Open MPI, from the distribution's packages, running `peers/armci_mpi.c`.
//!
//! A peer may be missing, may not compile, may hang or crash: each becomes a reason in its column, never an error
//! of the run.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::figure::Figures;
use crate::timing::Effort;

/// The longest a peer may take for one program.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to go after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

const SOURCE: &str = include_str!("../peers/armci_mpi.c");
/// What to say where it is not installed.
pub const HOW_TO_INSTALL: &str = "apt-get install libarmci-mpi-dev libopenmpi-dev openmpi-bin (or: make bench)";

/// What the peer measures, and how it is started for that.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    argument: &'static str,
    ranks: usize,
    bound: bool,
}

/// What is measured for the table.
pub const PROGRAMS: [Program; 3] = [
    Program { argument: "pair", ranks: 2, bound: true },
    Program { argument: "barrier", ranks: 2, bound: true },
    Program { argument: "barrier", ranks: 8, bound: false },
];
/// What is measured for the sweep.
pub const SWEEP: Program = Program { argument: "sweep", ranks: 2, bound: true };

/// A compiled peer; its directory goes with it.
#[derive(Debug)]
pub struct Peer {
    directory: PathBuf,
    mpirun: &'static str,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // What cannot be removed lies in the system's directory for such things.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Peer {
    /// Compiles it.
    ///
    /// # Errors
    /// Why there is none, in words for its column.
    pub fn build() -> Result<Self, String> {
        let find = |names: [&'static str; 2]| names.into_iter().find(|name| is_open_mpi(name));
        let (Some(mpicc), Some(mpirun)) = (find(["mpicc.openmpi", "mpicc"]), find(["mpirun.openmpi", "mpirun"])) else {
            return Err(format!("Open MPI is not installed: {HOW_TO_INSTALL}"));
        };
        let directory = std::env::temp_dir().join(format!("armci-bench-{}", std::process::id()));
        let system = |source: std::io::Error| format!("cannot write {}: {source}", directory.display());
        fs::create_dir_all(&directory).map_err(system)?;
        let peer = Peer { directory: directory.clone(), mpirun };
        fs::write(directory.join("armci_mpi.c"), SOURCE).map_err(system)?;
        let mut compiler = Command::new(mpicc);
        compiler.args(["-O3", "armci_mpi.c", "-o", "armci_mpi", "-larmci-openmpi"]).current_dir(&directory);
        let compiled = run(&mut compiler, &directory, LIMIT)?;
        if compiled.status.is_some_and(|status| status.success()) {
            return Ok(peer);
        }
        let missing = ["armci.h", "-larmci"].iter().any(|what| compiled.stderr.contains(what));
        Err(if missing {
            format!("ARMCI-MPI is not installed: {HOW_TO_INSTALL}")
        } else {
            format!("{mpicc} fails: {}", first_line(&compiled.stderr))
        })
    }

    /// Runs one of its programs.
    ///
    /// # Errors
    /// Why there are no figures, in words for its column.
    pub fn measure(&self, program: Program, effort: Effort) -> Result<Figures, String> {
        let mut command = Command::new(self.mpirun);
        command.args(["--oversubscribe", "--bind-to", if program.bound { "core" } else { "none" }]);
        if rustix::process::geteuid().is_root() {
            command.arg("--allow-run-as-root");
        }
        command.args(["-n", &program.ranks.to_string()]).arg(self.directory.join("armci_mpi")).args([
            program.argument,
            &effort.samples.to_string(),
            &effort.window.as_millis().to_string(),
        ]);
        let ran = run(&mut command, &self.directory, LIMIT)?;
        let what = format!("ARMCI-MPI's '{}' with {} ranks", program.argument, program.ranks);
        match ran.status {
            None => Err(format!("{what} did not end within {} s", LIMIT.as_secs())),
            Some(status) if !status.success() => Err(format!("{what} failed ({status}): {}", first_line(&ran.stderr))),
            Some(_) => Figures::parse(&ran.stdout).map_err(|error| error.to_string()),
        }
    }
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

/// Runs a command in a process group of its own, for at most `limit`; its output goes through files, so that nobody
/// who outlives it can hold us up.
fn run(command: &mut Command, directory: &Path, limit: Duration) -> Result<Ran, String> {
    let (out, err) = (directory.join("stdout"), directory.join("stderr"));
    let create = |path: &Path| File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()));
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    let mut status = wait(&mut child, limit);
    if status.is_none() {
        for signal in [Signal::TERM, Signal::KILL] {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process_group(group, signal);
            }
            if wait(&mut child, GRACE).is_some() {
                break;
            }
        }
        status = None;
    }
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Ok(Ran { status, stdout: read(&out), stderr: read(&err) })
}

/// Waits for a child, for at most `limit`; looks every few milliseconds, which disturbs no measurement.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
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
        let directory = std::env::temp_dir().join(format!("armci-bench-test-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let start = Instant::now();
        let ran = run(Command::new("sleep").arg("60"), &directory, Duration::from_millis(50)).unwrap();
        assert!(ran.status.is_none() && start.elapsed() < Duration::from_secs(10));
        let missing = run(&mut Command::new("/no/such/program"), &directory, LIMIT);
        assert!(missing.is_err_and(|reason| reason.contains("/no/such/program")));
        fs::remove_dir_all(directory).unwrap();
    }
}
