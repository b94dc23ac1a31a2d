//! The launchers of MPIs: which are here, and how a job of theirs is run to its end, within a limit of time.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A launcher, and the compilers that go with it, as Debian names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mpi {
    pub name: &'static str,
    pub launcher: &'static str,
    pub options: &'static [&'static str],
    pub compiler: &'static str,
    pub cpp: &'static str,
    /// What `ARMCI_VERBOSE=1` says of it.
    pub says: &'static str,
}

pub const OPEN_MPI: Mpi = Mpi {
    name: "openmpi",
    launcher: "mpirun.openmpi",
    options: &["--oversubscribe"],
    compiler: "mpicc.openmpi",
    cpp: "mpicxx.openmpi",
    says: "a launcher that speaks PMIx",
};
pub const MPICH: Mpi = Mpi {
    name: "mpich",
    launcher: "mpiexec.hydra",
    options: &[],
    compiler: "mpicc.mpich",
    cpp: "mpicxx.mpich",
    says: "a launcher that speaks PMI-1",
};

/// How long a job may take: a machine with more tests than cores is slow.
pub const LIMIT: Duration = Duration::from_secs(60);

pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Says what is not tested here, past the test harness, which keeps the words of tests that pass.
pub fn skipped(what: &str) {
    let _ = std::io::stderr().write_all(format!("SKIPPED {what}\n").as_bytes());
}

/// The MPIs of these that are here.
pub fn installed(wanted: &[Mpi]) -> Vec<Mpi> {
    let here = |mpi: &Mpi| {
        let missing = [mpi.launcher, mpi.compiler].into_iter().find(|program| !is_installed(program));
        if let Some(missing) = missing {
            skipped(&format!("beside {}: {missing} is not installed", mpi.name));
        }
        missing.is_none()
    };
    wanted.iter().copied().filter(here).collect()
}

/// A launcher's command line up to the program.
pub fn launcher(mpi: Mpi, ranks: usize) -> Command {
    let mut command = Command::new(mpi.launcher);
    command.args(mpi.options).args(["-n", &ranks.to_string()]);
    // In a container everybody is root.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What came of a job.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

/// Reads all of a pipe, meanwhile.
fn reader(pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = BufReader::new(pipe).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for a job's end; one that takes too long is killed, and fails the test.
pub fn wait(mut child: Child, limit: Duration) -> Ended {
    let begin = Instant::now();
    let (stdout, stderr) = (child.stdout.take().map(reader), child.stderr.take().map(reader));
    let mut status = None;
    while begin.elapsed() < limit && status.is_none() {
        std::thread::sleep(Duration::from_millis(5));
        status = child.try_wait().unwrap();
    }
    let took = begin.elapsed();
    if status.is_none() {
        child.kill().unwrap();
    }
    let text = |reader: Option<JoinHandle<String>>| reader.map_or_else(String::new, |r| r.join().unwrap());
    let (stdout, stderr) = (text(stdout), text(stderr));
    let Some(status) = status else { panic!("not done after {limit:?}:\n{stdout}\n{stderr}") };
    Ended { status, stdout, stderr, took }
}

/// Runs a command on the ranks of a launcher, within a limit of time.
///
/// Each rank writes into files of its own, which are read one after the other: launchers pass on what ranks write in
/// pieces that need not end where lines do.
pub fn per_rank(mut launcher: Command, command: &[impl AsRef<OsStr>], limit: Duration) -> Ended {
    static JOBS: AtomicUsize = AtomicUsize::new(0);
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    let directory = super::scratch(&format!("{}-written-{number}", env!("CARGO_CRATE_NAME")));
    let _ = fs::remove_dir_all(&directory); // of an earlier run
    fs::create_dir_all(&directory).unwrap();
    launcher.args(["sh", "-c", r#"cd "$0" && exec "$@" >$$.out 2>$$.err"#]).arg(&directory).args(command);
    let mut ended = wait(launcher.spawn().unwrap(), limit);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        let of = if file.extension() == Some(OsStr::new("out")) { &mut ended.stdout } else { &mut ended.stderr };
        of.push_str(&text);
    }
    fs::remove_dir_all(&directory).unwrap();
    ended
}
