//! Running `armci-run` under observation: every process it starts carries a mark in its
//! environment, by which it is found again.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use armci_core::job;
use rustix::process::{Pid, Signal};

/// Names the mark.
const MARK: &str = "ARMCI_RUN_TEST_MARK";
/// No job here takes so long.
const LIMIT: Duration = Duration::from_secs(120);
/// Names the role that this test binary plays when it is a rank.
const ROLE: &str = "ARMCI_RUN_TEST_ROLE";

/// One use of `armci-run`.
pub struct Run {
    command: Command,
    mark: String,
}

/// An `armci-run` under way.
pub struct Running {
    pub child: Child,
    mark: String,
}

impl Run {
    /// `armci-run` with these arguments.
    pub fn new(arguments: &[&str]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(env!("CARGO_BIN_EXE_armci-run"));
        command.args(arguments);
        Self { command: Self::observed(command, &mark), mark }
    }

    fn observed(mut command: Command, mark: &str) -> Command {
        command.env(MARK, mark).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `armci-run` with these arguments, as a shell starts it after `preparation`.
    pub fn after(preparation: &str, arguments: &[&str]) -> Self {
        let mut run = Self::new(&[]);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{preparation}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_armci-run")])
            .args(arguments);
        run.command = Self::observed(shell, &run.mark);
        run
    }

    /// A command that ends in `armci-run`, with these arguments.
    pub fn within(mut command: Command, arguments: &[&str]) -> Self {
        let mut run = Self::new(&[]);
        command.args(arguments);
        run.command = Self::observed(command, &run.mark);
        run
    }

    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// `armci-run -n RANKS` of this test binary, whose test `test` will find itself in `role`.
    pub fn role(ranks: usize, test: &str, role: &str) -> Self {
        let this = std::env::current_exe().unwrap();
        Self::new(&["-n", &ranks.to_string(), this.to_str().unwrap(), "--exact", test, "--nocapture"]).acting(role)
    }

    /// This test binary, where it is a rank, will find itself in `role`.
    pub fn acting(self, role: &str) -> Self {
        self.env(ROLE, role)
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    /// In a process group of its own, as an interactive shell would start it.
    pub fn apart(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.command.stdin(stdin);
        self
    }

    pub fn start(mut self) -> Running {
        Running { child: self.command.spawn().unwrap(), mark: self.mark }
    }

    /// Runs it to its end, and holds it to leaving nobody behind.
    pub fn end(self) -> Ended {
        self.start().end()
    }
}

/// How it ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub after: Duration,
}

impl Ended {
    /// The launcher's own lines.
    pub fn messages(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("armci-run:")).collect()
    }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for a line from any rank on standard output.
    pub fn line(&mut self) -> String {
        let (mut line, mut byte) = (Vec::new(), [0]);
        let stdout = self.child.stdout.as_mut().unwrap();
        while stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// The states of all its processes, as `/proc/PID/stat` has them: `S` sleeps, `T` is stopped.
    pub fn states(&self) -> String {
        let state = |process: PathBuf| {
            let stat = std::fs::read_to_string(process.join("stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        };
        processes_with(&self.mark).filter_map(state).collect()
    }

    /// The ranks that have been started and live, by their numbers.
    pub fn ranks(&self) -> BTreeMap<usize, Pid> {
        let rank = |process: PathBuf| {
            let environment = std::fs::read(process.join("environ")).ok()?;
            let ticket =
                environment.split(|&byte| byte == 0).find_map(|variable| variable.strip_prefix(b"ARMCI_JOB="))?;
            let rank = std::str::from_utf8(ticket).ok()?.split(' ').find_map(|word| word.strip_prefix("rank="))?;
            let process = process.file_name()?.to_str()?.parse().ok()?;
            Some((rank.parse().ok()?, Pid::from_raw(process)?))
        };
        processes_with(&self.mark).filter_map(rank).collect()
    }

    /// The most memory the launcher has used so far, in KiB.
    pub fn peak_kib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub fn end(self) -> Ended {
        let begin = Instant::now();
        let launcher = Pid::from_child(&self.child);
        let (ended, has_ended) = std::sync::mpsc::channel::<()>();
        let limit = std::thread::spawn(move || {
            if has_ended.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // Its ranks end with it, and the test fails by its code.
                let _ = rustix::process::kill_process(launcher, Signal::KILL);
            }
        });
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        let after = begin.elapsed();
        drop(ended);
        limit.join().unwrap();
        nobody_is_left(&self.mark);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr), after }
    }
}

/// Fails if a process with this mark still lives a second from now.
fn nobody_is_left(mark: &str) {
    let limit = Instant::now() + Duration::from_secs(1);
    loop {
        let left: Vec<_> = processes_with(mark).map(command_line).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < limit, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The directories in `/proc` of processes with this mark.
fn processes_with(mark: &str) -> impl Iterator<Item = PathBuf> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    processes.filter(move |path| {
        std::fs::read(path.join("environ"))
            .is_ok_and(|bytes| bytes.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()))
    })
}

fn command_line(process: PathBuf) -> String {
    let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
    format!("{} {}", process.display(), String::from_utf8_lossy(&words).replace('\0', " "))
}

/// Waits for a condition that must come true.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < limit, "waited 10 s for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// If this process is a rank: joins, and does `act(role, rank)` before it would say goodbye; then
/// ends.
pub fn play(act: impl FnOnce(&str, usize)) {
    let Some(role) = std::env::var_os(ROLE) else {
        return;
    };
    let mut job = job::bootstrap().unwrap();
    act(role.to_str().unwrap(), job.identity().rank);
    let code = job.goodbye().map_or(3, |()| 0);
    std::process::exit(code);
}

/// Like [`play`], for a role that joins by itself or not at all.
pub fn play_outside(act: impl FnOnce(&str)) {
    if let Some(role) = std::env::var_os(ROLE) {
        act(role.to_str().unwrap());
        std::process::exit(0);
    }
}
