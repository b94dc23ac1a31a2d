//! Programs started by the launchers of MPIs, with and without an MPI in the same process.
//!
//! What is not installed is not tested, and a line says so; `scripts/install-packages launchers` installs it.

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::launch::{Ended, LIMIT, MPICH, Mpi, OPEN_MPI, installed, skipped, wait};
use common::program::Build;

/// How soon a job is to end after one of its ranks has.
const SOON: Duration = Duration::from_secs(10);

/// Compiles the program of this test, to a file of its own, so that its processes can be told from others'.
fn compile(with_mpi: Option<Mpi>, name: &str) -> PathBuf {
    let build = Build { mpi: with_mpi, ..Build::of("beside_mpi") };
    build.compile_to(&format!("beside-mpi-{name}")).unwrap()
}

/// A launcher's command line up to the program, which says what has started it.
fn launcher(mpi: Mpi, ranks: usize) -> Command {
    let mut command = common::launch::launcher(mpi, ranks);
    command.env("ARMCI_VERBOSE", "1");
    command
}

/// The processes that run a program.
fn processes(program: &Path) -> Vec<u32> {
    let numbers =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process| std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program))
        .collect()
}

/// Nothing is left of a job: no process, at the latest soon, and no file of ours.
fn nothing_is_left(program: &Path) {
    let begin = Instant::now();
    while !processes(program).is_empty() {
        assert!(begin.elapsed() < SOON, "{:?} still run {}", processes(program), program.display());
        std::thread::sleep(Duration::from_millis(10));
    }
    for directory in ["/dev/shm", "/tmp"] {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        let ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("armci-rank");
        let left: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).filter(ours).collect();
        assert!(left.is_empty(), "{directory} has {left:?}");
    }
}

fn all_done(ended: &Ended, mpi: Mpi, ranks: usize) {
    assert!(ended.status.success(), "{ended:#?}");
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = (0..ranks).map(|rank| format!("rank {rank} of {ranks} done")).collect();
    assert_eq!(lines, expected, "{ended:#?}");
    let chosen = ended.stderr.lines().filter(|line| line.starts_with("armci: rank ") && line.contains(mpi.says));
    assert_eq!(chosen.count(), ranks, "{ended:#?}");
    let seated = ended.stderr.lines().filter(|line| line.contains("progress thread")).count();
    assert_eq!((seated, ended.stderr.lines().count()), (ranks, 2 * ranks), "{ended:#?}");
}

fn ranks_are_those_of_comm_world(mpi: Mpi) {
    for mpi in installed(&[mpi]) {
        let program = compile(Some(mpi), &format!("{}-order", mpi.name));
        for ranks in 1..=4 {
            for first in ["mpi", "armci", "comm"] {
                for last in ["mpi", "armci"] {
                    let child = launcher(mpi, ranks).arg(&program).args([first, last, "work"]).spawn().unwrap();
                    all_done(&wait(child, LIMIT), mpi, ranks);
                }
            }
        }
        nothing_is_left(&program);
    }
}

#[test]
fn ranks_are_those_of_comm_world_in_open_mpi_whoever_comes_first() {
    ranks_are_those_of_comm_world(OPEN_MPI);
}

#[test]
fn ranks_are_those_of_comm_world_in_mpich_whoever_comes_first() {
    ranks_are_those_of_comm_world(MPICH);
}

#[test]
fn a_rank_that_leaves_mpi_may_still_be_counted_in() {
    for mpi in installed(&[OPEN_MPI, MPICH]) {
        let program = compile(Some(mpi), &format!("{}-counted", mpi.name));
        for last in ["mpi", "armci"] {
            let child = launcher(mpi, 3).arg(&program).args(["mpi", last, "counted"]).spawn().unwrap();
            all_done(&wait(child, LIMIT), mpi, 3);
        }
        nothing_is_left(&program);
    }
}

#[test]
fn no_mpi_need_be_in_the_program() {
    for mpi in installed(&[OPEN_MPI, MPICH]) {
        let program = compile(None, &format!("{}-without", mpi.name));
        for ranks in 1..=4 {
            for protocol in ["rma", "am"] {
                let mut command = launcher(mpi, ranks);
                let child = command.env("ARMCI_PROTOCOL", protocol).arg(&program).args(["armci", "armci", "work"]);
                all_done(&wait(child.spawn().unwrap(), LIMIT), mpi, ranks);
            }
        }
        nothing_is_left(&program);
    }
}

/// How a job whose highest rank leaves in this way ends.
fn cut_short(mpi: Mpi, program: &Path, wrapped: bool, how: &str) -> Ended {
    let mut command = launcher(mpi, 3);
    if wrapped {
        // All that the launcher sees of a rank is that this returns 0.
        command.args(["sh", "-c", "\"$@\" || sleep 0; exit 0", "wrapper"]);
    }
    let ended = wait(command.arg(program).args(["armci", "armci", how]).spawn().unwrap(), LIMIT);
    assert!(!ended.stderr.contains("passed a barrier"), "{ended:#?}");
    assert!(ended.took < SOON, "{ended:#?}");
    nothing_is_left(program);
    ended
}

fn a_rank_that_leaves_before_its_time_ends_the_job(mpi: Mpi, with_mpi: bool) {
    for mpi in installed(&[mpi]) {
        let program = compile(with_mpi.then_some(mpi), &format!("{}-deaths-{with_mpi}", mpi.name));
        for how in ["killed", "silent", "early", "error"] {
            let ended = cut_short(mpi, &program, false, how);
            // Hydra calls it a success if a rank hangs up and exits with 0.
            assert!(!ended.status.success() || (mpi == MPICH && how == "silent"), "{how}: {ended:#?}");
            if how == "error" {
                assert_eq!(ended.status.code(), Some(37), "{ended:#?}");
                assert!(ended.stderr.contains("armci: rank 2: ARMCI_Error: I give up (code 37)"), "{ended:#?}");
            }
        }
        for how in ["killed", "silent", "error"] {
            cut_short(mpi, &program, true, how);
        }
    }
}

#[test]
fn a_rank_that_leaves_before_its_time_ends_the_job_under_open_mpi() {
    a_rank_that_leaves_before_its_time_ends_the_job(OPEN_MPI, false);
    a_rank_that_leaves_before_its_time_ends_the_job(OPEN_MPI, true);
}

#[test]
fn a_rank_that_leaves_before_its_time_ends_the_job_under_mpich() {
    a_rank_that_leaves_before_its_time_ends_the_job(MPICH, false);
    a_rank_that_leaves_before_its_time_ends_the_job(MPICH, true);
}

#[test]
fn ranks_do_not_outlive_a_launcher_that_is_killed() {
    for mpi in installed(&[OPEN_MPI, MPICH]) {
        let program = compile(None, &format!("{}-orphans", mpi.name));
        let mut child = launcher(mpi, 3).arg(&program).args(["armci", "armci", "stay"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..3 {
            assert_eq!(lines.next().unwrap().unwrap(), "working");
        }
        assert_eq!(processes(&program).len(), 3);
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&program);
    }
}

/// Runs a command that must succeed; the lines that say who was found to have started what, and those of ranks that are
/// done.
fn chosen_and_done(command: &mut Command) -> (Vec<String>, Vec<String>) {
    let ended = wait(command.spawn().unwrap(), LIMIT);
    assert!(ended.status.success(), "{command:?}: {ended:#?}");
    let lines = |text: &str, wanted: &str| {
        let mut lines: Vec<_> = text.lines().filter(|line| line.starts_with(wanted)).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let mut chosen = lines(&ended.stderr, "armci: rank ");
    chosen.retain(|line| !line.contains("progress thread"));
    (chosen, lines(&ended.stdout, "rank "))
}

/// `armci-run`, if it has been built where cargo puts programs.
fn armci_run() -> Option<PathBuf> {
    let directory = std::env::current_exe().unwrap().parent()?.parent()?.to_owned();
    let program = directory.join("armci-run");
    if !program.is_file() {
        skipped("within armci-run: it has not been built (cargo build -p armci-run)");
    }
    Some(program).filter(|program| program.is_file())
}

#[test]
fn of_launchers_within_launchers_the_innermost_counts() {
    let mpis = installed(&[OPEN_MPI, MPICH]);
    let program = compile(None, "nested");
    let innermost = |mut command: Command, inner: &[String], says: &str| {
        let (chosen, done) = chosen_and_done(command.args(inner).arg(&program).args(["armci", "armci", "work"]));
        assert_eq!(done, ["rank 0 of 2 done", "rank 1 of 2 done"], "{command:?}: {chosen:?}");
        assert!(chosen.len() == 2 && chosen.iter().all(|line| line.contains(says)), "{command:?}: {chosen:?}");
    };
    let words = |mpi: Mpi| {
        let words = [mpi.launcher].into_iter().chain(mpi.options.iter().copied()).chain(["-n", "2"]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    for outer in &mpis {
        for inner in &mpis {
            // Open MPI refuses to start itself.
            if (*outer, *inner) != (OPEN_MPI, OPEN_MPI) {
                innermost(launcher(*outer, 1), &words(*inner), inner.says);
            }
        }
    }
    let Some(ours) = armci_run() else { return };
    let ours = [ours.to_str().unwrap().to_owned(), "-n".into(), "2".into()];
    for mpi in mpis {
        innermost(launcher(mpi, 1), &ours, "armci-run");
        let mut outer = Command::new(&ours[0]);
        outer.args(["-n", "1"]).env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        outer.env("ARMCI_VERBOSE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        innermost(outer, &words(mpi), mpi.says);
    }
}

#[test]
fn variables_that_outlived_their_launcher_make_a_job_of_one() {
    for mpi in installed(&[OPEN_MPI, MPICH]) {
        let program = compile(None, &format!("{}-stale", mpi.name));
        let output = launcher(mpi, 1).arg("env").output().unwrap();
        let mut late = Command::new(&program);
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some((name, value)) = line.split_once('=').filter(|(name, _)| name.starts_with("PMI")) {
                late.env(name, value);
            }
        }
        late.args(["armci", "armci", "work"]).env("ARMCI_VERBOSE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        let (chosen, done) = chosen_and_done(&mut late);
        assert_eq!(done, ["rank 0 of 1 done"]);
        assert!(chosen[0].contains("a job of one") && chosen[0].contains("stale"), "{chosen:?}");
    }
}

#[test]
fn a_program_that_a_rank_starts_is_a_job_of_one() {
    for mpi in installed(&[OPEN_MPI, MPICH]) {
        let program = compile(None, &format!("{}-children", mpi.name));
        let (chosen, done) = chosen_and_done(launcher(mpi, 2).arg(&program).args(["armci", "armci", "child"]));
        assert_eq!(
            done,
            ["rank 0 of 1 done", "rank 0 of 1 done", "rank 0 of 2 done", "rank 1 of 2 done"],
            "{chosen:?}"
        );
        nothing_is_left(&program);
    }
}

#[test]
fn what_is_asked_for_is_what_counts() {
    for mpi in installed(&[OPEN_MPI, MPICH]) {
        let program = compile(None, &format!("{}-asked", mpi.name));
        let (right, wrong) = if mpi == OPEN_MPI { ("pmix", "pmi") } else { ("pmi", "pmix") };
        let asked = |word: &str| {
            let mut command = launcher(mpi, 2);
            command.env("ARMCI_BOOTSTRAP", word).arg(&program).args(["armci", "armci", "work"]);
            command
        };
        assert_eq!(chosen_and_done(&mut asked(right)).1, ["rank 0 of 2 done", "rank 1 of 2 done"]);
        assert_eq!(chosen_and_done(&mut asked("alone")).1, ["rank 0 of 1 done", "rank 0 of 1 done"]);
        for word in [wrong, "armci-run", "mpirun"] {
            let ended = wait(asked(word).spawn().unwrap(), LIMIT);
            assert!(!ended.status.success(), "{ended:#?}");
            assert!(ended.stderr.contains("ARMCI_BOOTSTRAP=") && ended.stderr.contains(word), "{ended:#?}");
        }
    }
}

#[test]
fn ranks_that_share_no_network_are_on_nodes_of_their_own() {
    // A network of one's own is as good as a machine of one's own: sockets do not reach beyond.
    let apart = ["unshare", "-r", "-n"];
    if !Command::new(apart[0]).args(&apart[1..]).arg("true").output().is_ok_and(|output| output.status.success()) {
        skipped("on two nodes: unshare -r -n is not allowed here");
        return;
    }
    for mpi in installed(&[MPICH]) {
        let program = compile(None, "nodes");
        let words = ["armci", "armci", "work"];
        let mut command = launcher(mpi, 1);
        command.arg(&program).args(words).args([":", "-n", "1"]).args(apart).arg(&program).args(words);
        let ended = wait(command.spawn().unwrap(), LIMIT);
        assert!(!ended.status.success(), "{ended:#?}");
        // They are two nodes, and nothing joins these: the one has no network but its own.
        let told = ["libfabric has no provider", "cannot be loaded"];
        assert!(told.iter().any(|told| ended.stderr.contains(told)), "{ended:#?}");
        nothing_is_left(&program);
    }
}
