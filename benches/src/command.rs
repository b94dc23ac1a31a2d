//! Commands of others, under control: each has a time limit, leaves when the run is asked to end, and keeps its files
//! where nobody else may go.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::interrupt;

/// How long a command may take to go after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A directory of a new, random name, which nobody else may enter; it goes when it is dropped.
pub fn fresh_directory() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("armci-bench-").permissions(fs::Permissions::from_mode(0o700)).tempdir()
}

/// What became of a command.
pub struct Ran {
    /// Its status; none: it had to be ended.
    pub status: Option<ExitStatus>,
    /// What it wrote.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

/// Runs a command in a process group of its own, for at most `limit` and until the run is asked to end; its output goes
/// through files, so that nobody who outlives it can hold us up.
///
/// # Errors
/// Why it could not be started.
pub fn run(command: &mut Command, directory: &Path, limit: Duration) -> Result<Ran, String> {
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
        let missing = run(&mut Command::new("/no/such/program"), directory.path(), Duration::from_secs(10));
        assert!(missing.is_err_and(|reason| reason.contains("/no/such/program")));
    }
}
