//! Nodes watch each other under the launchers of MPIs, which may not: whatever others do, a host that is lost or a rank that
//! dies behind a script ends the job soon and by name, and a host that is only slow, or a rank that is stopped, does not.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use armci_core::{Region, World};
use rustix::process::{Pid, Signal, kill_process};
use tests::hosts::Hosts;
use tests::launched::Launched;
use tests::relay::Weather;
use tests::sample::everything;

/// Tells this program, as a rank, what to do, and where to leave signs of it.
const PART: &str = "ARMCI_TEST_PART";
const SIGNS: &str = "ARMCI_TEST_SIGNS";
/// All of a job ends within this time after a strike: the kernels' ten seconds and ours, and what a machine with more to
/// do than it can adds to them.
const SOON: Duration = Duration::from_secs(30);
/// More than the kernels wait for an answer.
const LONG: Duration = Duration::from_secs(12);
/// Lines whose relay does not run for so long may be taken for cut: the relays are this process.
const PAUSE: Duration = Duration::from_secs(4);
/// What ranks may be doing when they are struck.
const PARTS: [&str; 3] = ["meets", "computes", "gets"];
/// What hides how a program ends.
const SCRIPT: &str = "\"$@\"; exit 0";
/// The line's weather, as in `lines.rs`.
const BAD: Weather = Weather { delay: Duration::from_millis(1), jitter: Duration::from_millis(1), loss: 2.0 };

/// What a rank is; as a test, nothing.
#[test]
fn rank() {
    let (Ok(part), Some(signs)) = (std::env::var(PART), std::env::var_os(SIGNS).map(PathBuf::from)) else { return };
    let world = World::init().unwrap();
    let region = world.allocate(1 << 20).unwrap();
    world.barrier().unwrap();
    std::fs::write(signs.join(format!("{}.pid", world.rank())), std::process::id().to_string()).unwrap();
    play(&world, &region, &part, &signs);
    let rank = world.rank();
    world.finalize().unwrap();
    std::fs::write(signs.join(format!("{rank}.left")), "").unwrap();
}

fn play(world: &World, region: &Region, part: &str, signs: &Path) {
    match part {
        "works" => {
            while !signs.join("enough").exists() {
                std::thread::sleep(Duration::from_millis(20));
            }
            everything(world);
        }
        // The last rank is struck, and in no call: nobody can tell by its silence.
        _ if world.rank() == world.size() - 1 => compute(),
        "meets" => world.barrier().unwrap(),
        "computes" => compute(),
        "gets" => loop {
            let mut room = vec![0u8; 100_000];
            world.get(region.at(world.size() - 1, 0), &mut room).unwrap();
        },
        part => panic!("{part}"),
    }
}

fn compute() {
    loop {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A job under way.
struct Job {
    launcher: Child,
    signs: PathBuf,
}

impl Job {
    /// Starts this program behind a launcher's command, each rank within a shell script, and waits until all are at work.
    fn start(mut launcher: Command, ranks: usize, part: &str, script: &str) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let signs = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("watched-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&signs).unwrap();
        let shown = signs.display();
        launcher.args(["env", &format!("{PART}={part}"), &format!("{SIGNS}={shown}")]);
        launcher.args(["sh", "-c", &format!("exec >{shown}/$$.out 2>{shown}/$$.err; {script}"), "sh"]);
        launcher.arg(std::env::current_exe().unwrap()).args(["--exact", "rank", "--nocapture"]);
        launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut job = Self { launcher: launcher.spawn().unwrap(), signs };
        let begin = Instant::now();
        while !(0..ranks).all(|rank| job.pid(rank).is_some()) {
            assert!(job.launcher.try_wait().unwrap().is_none(), "it ended too soon: {}", job.said());
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not start: {}", job.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        job
    }

    fn pid(&self, rank: usize) -> Option<Pid> {
        let text = std::fs::read_to_string(self.signs.join(format!("{rank}.pid"))).ok()?;
        Pid::from_raw(text.parse().ok()?)
    }

    fn signal(&self, rank: usize, signal: Signal) {
        kill_process(self.pid(rank).unwrap(), signal).unwrap();
    }

    /// Lets ranks that work come to an end.
    fn enough(&self) {
        std::fs::write(self.signs.join("enough"), "").unwrap();
    }

    fn said(&self) -> String {
        let files = std::fs::read_dir(&self.signs).unwrap().map(|file| file.unwrap().path());
        let errors = files.filter(|file| file.extension().is_some_and(|extension| extension == "err"));
        errors.map(|file| std::fs::read_to_string(file).unwrap()).collect()
    }

    /// How many ranks have left in order.
    fn have_left(&self) -> usize {
        let files = std::fs::read_dir(&self.signs).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|extension| extension == "left")).count()
    }

    /// Those of its processes that live: ranks, and the scripts around them.
    fn alive(&self) -> usize {
        let mark = format!("{SIGNS}={}", self.signs.display());
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok());
        let environments = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
        environments.filter(|all| all.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())).count()
    }

    /// Waits until nothing of the job is left, and what its ranks have said.
    fn ranks_end(&mut self, within: Duration) -> String {
        let begin = Instant::now();
        while self.alive() > 0 {
            if begin.elapsed() > within {
                self.end_launcher();
                panic!("after {within:?} {} processes are left: {}", self.alive(), self.said());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.said()
    }

    /// Waits for the launcher's end, too.
    fn end(mut self, within: Duration) -> (ExitStatus, String) {
        let begin = Instant::now();
        let said = self.ranks_end(within);
        loop {
            if let Some(status) = self.launcher.try_wait().unwrap() {
                return (status, said);
            }
            if begin.elapsed() > within {
                self.end_launcher();
                panic!("the launcher has not ended after {within:?}: {said}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends a launcher that waits for a host that is lost.
    fn end_launcher(&mut self) {
        // It is `timeout`, or a launcher: they pass it on.
        let _ = kill_process(Pid::from_child(&self.launcher), Signal::TERM);
        self.launcher.wait().unwrap();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // What is left lies where such files lie.
        let _ = std::fs::remove_dir_all(&self.signs);
    }
}

/// A launcher's command over these hosts, with a rank each; nothing, with a line, where it is not installed.
fn launcher(name: &str, launched: &Launched, ranks_each: usize) -> Option<Command> {
    is_installed(name).then(|| match name {
        "mpirun.openmpi" => launched.open_mpi(ranks_each),
        _ => launched.mpich(ranks_each),
    })
}

fn is_installed(name: &str) -> bool {
    let there = Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    if !there {
        eprintln!("SKIPPED: {name} is not installed");
    }
    there
}

/// Two hosts with two ranks of each job, whose line is cut: all ranks end, and say why, whatever they do.
fn cut(name: &str, launcher_ends: bool) {
    let Some(hosts) = Hosts::make(2) else { return };
    let launched = Launched::over(&hosts);
    let start = |part: &&str| Some(Job::start(launcher(name, &launched, 2)?, 4, part, "exec \"$@\""));
    let Some(mut jobs) = PARTS.iter().map(start).collect::<Option<Vec<_>>>() else { return };
    hosts.pull(1);
    let said: Vec<_> = jobs.iter_mut().map(|job| job.ranks_end(SOON)).collect();
    if !launcher_ends {
        hosts.end_processes();
        jobs.iter_mut().for_each(Job::end_launcher);
    }
    for (job, said) in jobs.into_iter().zip(said) {
        if launcher_ends {
            assert!(!job.end(SOON).0.success(), "{said}");
        }
        let host = &hosts.names()[1];
        assert!(
            said.contains(&format!("armci: rank 0: host {host} (rank 2) has not answered for 10 seconds")),
            "{said}"
        );
        assert!(!said.contains("has died"), "one after the other: {said}");
    }
}

#[test]
fn a_host_whose_line_is_cut_ends_jobs_under_mpirun() {
    // It waits for its agent on the lost host.
    cut("mpirun.openmpi", false);
}

#[test]
fn a_host_whose_line_is_cut_ends_jobs_under_mpiexec() {
    cut("mpiexec.hydra", true);
}

#[test]
fn a_lone_rank_that_is_killed_behind_a_script_ends_the_job() {
    for name in ["mpirun.openmpi", "mpiexec.hydra"] {
        for part in PARTS {
            let Some(hosts) = Hosts::make(3) else { return };
            let launched = Launched::over(&hosts);
            let Some(command) = launcher(name, &launched, 1) else { continue };
            let job = Job::start(command, 3, part, SCRIPT);
            job.signal(2, Signal::KILL);
            let (status, said) = job.end(SOON);
            assert!(!status.success(), "{said}");
            let line = format!("rank 2 on host {} has died without leaving the job", hosts.names()[2]);
            assert_eq!(said.matches(&line).count(), 1, "{said}");
        }
    }
}

#[test]
fn slow_lines_that_lose_some_end_no_job() {
    let Some(hosts) = Hosts::make_in(2, Some(BAD)) else { return };
    let launched = Launched::over(&hosts);
    let run = || {
        let start = |name| Some(Job::start(launcher(name, &launched, 1)?, 2, "works", "exec \"$@\""));
        let mut jobs: Vec<_> = ["mpirun.openmpi", "mpiexec.hydra"].into_iter().filter_map(start).collect();
        std::thread::sleep(LONG);
        jobs.iter().for_each(Job::enough);
        let end = |job: &mut Job| {
            let said = job.ranks_end(Duration::from_secs(100));
            job.end_launcher();
            (job.have_left(), said)
        };
        jobs.iter_mut().map(end).collect::<Vec<_>>()
    };
    for then in ["trying again", "SKIPPED"] {
        let (ends, pause) = longest_pause(run);
        if pause < PAUSE {
            assert!(ends.iter().all(|end| *end == (2, String::new())), "{ends:?}");
            return;
        }
        eprintln!("{then}: the relays of this test did not run for {pause:?}, which cuts its lines");
    }
}

/// What a run yields, and the longest time for which this process did not run meanwhile.
fn longest_pause<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut longest, mut last) = (Duration::ZERO, Instant::now());
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            longest
        });
        let yielded = run();
        over.store(true, Ordering::Relaxed);
        (yielded, watch.join().unwrap())
    })
}

#[test]
fn a_rank_that_is_stopped_for_a_while_ends_no_job() {
    let start = |(name, options): (&str, &[&str])| {
        let mut command = Command::new(name);
        command.args(options).args(["-n", "4"]).env("ARMCI_NODES", "2");
        // In a container everybody is root.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        Job::start(command, 4, "works", "exec \"$@\"")
    };
    let launchers = [("mpirun.openmpi", &["--oversubscribe"][..]), ("mpiexec.hydra", &[])];
    let installed = launchers.into_iter().filter(|(name, _)| is_installed(name) && tests::nodes_can_be_joined());
    let jobs: Vec<_> = installed.map(start).collect();
    jobs.iter().for_each(|job| job.signal(2, Signal::STOP));
    std::thread::sleep(LONG);
    for job in jobs {
        assert_eq!(job.said(), "");
        job.signal(2, Signal::CONT);
        job.enough();
        let (status, said) = job.end(Duration::from_secs(60));
        assert!(status.success() && said.is_empty(), "{status}: {said}");
    }
}
