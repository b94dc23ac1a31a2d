//! One job of a test: started in the test process, played in its ranks.
//!
//! Guaranteed: a job counts as good only if every rank has run the body to its end (a rank that
//! never found it, because the test's name was not what the test harness calls it, would exit with
//! 0 too); a rank never runs code of the test behind its body.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use armci_core::World;
use armci_core::job::{self, Job, Outcome};

use crate::hosts::Hosts;
use crate::mode;
use crate::place;
use crate::relay::Weather;

/// What a rank writes to standard output when its body has returned.
const DONE: &str = "armci-test: body done";

/// A job to be run by a test.
#[derive(Clone, Debug)]
pub struct Ranks {
    ranks: usize,
    nodes: usize,
    hosts: usize,
    weather: Option<Weather>,
    strike: Option<fn(&Hosts)>,
    env: Vec<(String, String)>,
    timeout: Duration,
}

impl Ranks {
    /// A job of `ranks` ranks that may take a minute, in the mode that the environment asks for ([`crate::mode`]).
    ///
    /// # Panics
    /// If the environment asks for what is no mode.
    #[must_use]
    pub fn new(ranks: usize) -> Self {
        let asked = |setting: &str, value: Option<String>| value.map(|value| (setting.to_owned(), value));
        Self {
            ranks,
            nodes: ranks.clamp(1, mode::nodes().unwrap_or(1)),
            hosts: 0,
            weather: None,
            strike: None,
            env: asked("ARMCI_PROTOCOL", mode::protocol())
                .into_iter()
                .chain(asked("ARMCI_PROGRESS", mode::progress()))
                .collect(),
            timeout: Duration::from_secs(60) * mode::patience(),
        }
    }

    /// Splits the ranks into so many virtual nodes. Where nothing joins nodes, such a job is skipped, and a line says so
    /// (see [`crate::nodes_can_be_joined`]).
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Puts the ranks onto so many hosts, which are network namespaces ([`Hosts`]), each a node. Where the machine allows
    /// none, the job does not run, and a line on standard error says so.
    #[must_use]
    pub fn hosts(self, hosts: usize) -> Self {
        // Whatever `TEST_NODES` says.
        Self { hosts, nodes: 1, ..self }
    }

    /// The lines of those hosts are in such weather.
    #[must_use]
    pub fn weather(mut self, weather: Weather) -> Self {
        self.weather = Some(weather);
        self
    }

    /// Does this to the hosts once a rank has called [`at_work`]. The job's remote shells are such that what they started
    /// does not end with them, and what the launcher says is in the outcome's standard error. Whatever of the job is left
    /// on a host [`GONE`] after the strike fails the test.
    #[must_use]
    pub fn strike(mut self, strike: fn(&Hosts)) -> Self {
        self.strike = Some(strike);
        self
    }

    /// Keeps the ranks on one node, whatever `TEST_NODES` says: for tests of what neighbours alone have or do (memory
    /// that is looked at while its owner serves nobody, messages of one path that are counted).
    #[must_use]
    pub fn on_one_node(self) -> Self {
        self.nodes(1)
    }

    /// Sets a variable in the environment of every rank, also one that the mode had set.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(set, _)| set != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// How long the job may take, where nobody asks for more patience ([`mode::patience`]).
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit * mode::patience();
        self
    }

    /// Runs `body` on each rank, between initialization and finalization.
    ///
    /// # Panics
    /// If a rank fails or hangs.
    pub fn run(self, body: impl FnOnce(&World)) {
        self.run_bare(|| within_world(body));
    }

    /// Like [`Ranks::run`]; what was written to standard error is returned. In a rank, where this has no meaning, nothing.
    ///
    /// # Panics
    /// If a rank fails or hangs.
    pub fn run_for_stderr(self, body: impl FnOnce(&World)) -> Option<String> {
        let outcome = self.outcome(body)?;
        Some(String::from_utf8_lossy(&outcome.stderr).into_owned())
    }

    /// Runs `body` on each rank, and expects that the job fails. How it failed is in the outcome,
    /// what was written to standard error too.
    ///
    /// To be the last job of its test: ranks of a later one would pass here without an outcome. On several nodes, ask
    /// [`crate::nodes_can_be_joined`] before.
    ///
    /// # Panics
    /// If no rank fails, or the job hangs.
    pub fn expect_failure(self, body: impl FnOnce(&World)) -> Outcome {
        self.expect_failure_bare(|| within_world(body))
    }

    /// Like [`Ranks::run`], for a body that joins by itself or not at all.
    ///
    /// # Panics
    /// If a rank fails or hangs.
    pub fn run_bare(self, body: impl FnOnce()) {
        self.outcome_bare(body);
    }

    /// Like [`Ranks::run`]; in the test process, returns what came of the job, with what was written to standard error.
    /// A rank of another job of the test gets nothing, as nothing runs there.
    ///
    /// # Panics
    /// If a rank fails or hangs.
    pub fn outcome(self, body: impl FnOnce(&World)) -> Option<Outcome> {
        self.outcome_bare(|| within_world(body))
    }

    fn outcome_bare(&self, body: impl FnOnce()) -> Option<Outcome> {
        let (report, outcome) = self.start_or_play(body)?;
        let done = outcome.stdout.split(|&byte| byte == b'\n').filter(|line| line.ends_with(DONE.as_bytes())).count();
        assert!(outcome.code == 0, "{report}");
        assert!(
            done == self.ranks,
            "only {done} of {} ranks ran the body; is the test's name what --exact takes?\n{report}",
            self.ranks
        );
        print!("{report}");
        Some(outcome)
    }

    /// Like [`Ranks::expect_failure`], for a body that joins by itself or not at all.
    ///
    /// # Panics
    /// If no rank fails, or the job hangs.
    pub fn expect_failure_bare(self, body: impl FnOnce()) -> Outcome {
        let Some((report, outcome)) = self.start_or_play(body) else {
            panic!("a job that is expected to fail must be the last job of its test, and have its hosts");
        };
        assert!(outcome.code != 0, "a failure was expected\n{report}");
        assert!(!outcome.timed_out, "{report}");
        print!("{report}");
        outcome
    }

    /// In the test process: runs the job, and says how it went. In a rank of this job: runs the
    /// body and exits. In a rank of another job of this test: does nothing.
    fn start_or_play(&self, body: impl FnOnce()) -> Option<(String, Outcome)> {
        let test = place::test_name();
        let number = place::next_job(&test);
        match place::my_job() {
            Some(mine) if job::is_rank() => {
                if mine == number {
                    play(body);
                }
                None
            }
            _ if std::env::var_os(place::AGENT).is_some() => std::process::exit(job::serve_as_agent()),
            _ if self.nodes > 1 && !crate::nodes_can_be_joined() => None,
            _ => {
                let outcome = self.start(&test, number)?;
                Some((self.report(&test, number, &outcome), outcome))
            }
        }
    }

    /// Nothing, if it wants hosts and there are none.
    fn start(&self, test: &str, number: usize) -> Option<Outcome> {
        // `--include-ignored`: whoever started an ignored test meant it.
        let args = ["--exact", test, "--nocapture", "--test-threads=1", "--include-ignored"];
        let hosts = if self.hosts == 0 { None } else { Some(Hosts::make_in(self.hosts, self.weather)?) };
        let job = Job::this_program(self.ranks)
            .and_then(|job| job.nodes(self.nodes))
            .and_then(|job| match &hosts {
                Some(hosts) => job.hosts(hosts.of_this_program(&args, self.strike.is_some())?),
                None => Ok(job),
            })
            .map(|job| job.only_args(args))
            .map(|job| self.env.iter().fold(job, |job, (name, value)| job.env(name, value)))
            .map(|job| {
                job.env(place::JOB, number.to_string()).tag_output(true).capture_stdout(true).capture_stderr(true)
            })
            .map(|job| job.quiet(self.strike.is_none()).no_input(true).timeout(self.timeout));
        let run = |job: armci_core::Result<Job>| job.and_then(|job| job.run());
        let outcome = match (&hosts, self.strike) {
            (Some(hosts), Some(strike)) => {
                struck(hosts, strike, |sign| hosts.within_hub(|| run(job.map(|job| job.env(SIGN, sign)))))
            }
            (Some(hosts), None) => hosts.within_hub(|| run(job)),
            (None, _) => run(job),
        };
        Some(outcome.unwrap_or_else(|error| panic!("job {number} of test `{test}` cannot be started: {error}")))
    }

    /// What a person wants to know about a failed job.
    fn report(&self, test: &str, number: usize, outcome: &Outcome) -> String {
        let settings: String = self.env.iter().map(|(name, value)| format!(", {name}={value}")).collect();
        let nodes = match (self.nodes, self.hosts) {
            (1, 0) => String::new(),
            (nodes, 0) => format!(" on {nodes} nodes"),
            (_, hosts) => format!(" on {hosts} hosts"),
        };
        let how = match &outcome.failed {
            Some(failed) => format!("rank {} {}", failed.rank, failed.reason),
            None if outcome.timed_out => format!("not done after {:?}; ended", self.timeout),
            None => format!("ended with code {}", outcome.code),
        };
        let written = String::from_utf8_lossy(&outcome.stdout)
            .lines()
            .filter(|line| !is_noise(line))
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        let errors = String::from_utf8_lossy(&outcome.stderr);
        format!("job {number} of test `{test}` ({} ranks{nodes}{settings}): {how}\n{written}{errors}", self.ranks)
    }
}

/// Tells a rank which file says that it is at work.
const SIGN: &str = "ARMCI_TEST_SIGN";
/// After this time nothing of a job is left on a host that was struck.
pub const GONE: Duration = Duration::from_secs(20);

/// Says, in a rank of a job with a [`Ranks::strike`], that it may happen.
///
/// # Panics
/// If the file that says so cannot be written.
pub fn at_work() {
    if let Some(sign) = std::env::var_os(SIGN) {
        File::create(sign).expect("a sign can be given");
    }
}

/// Runs a job, and strikes when the file that it is told exists; waits until nothing is left on the hosts.
fn struck<T>(hosts: &Hosts, strike: fn(&Hosts), run: impl FnOnce(&Path) -> T) -> T {
    let sign = std::env::temp_dir().join(format!("{}sign", hosts.hub()));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            while !sign.exists() && !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            strike(hosts);
            Instant::now()
        };
        let watch = scope.spawn(watch);
        let outcome = run(&sign);
        over.store(true, Ordering::Relaxed);
        let struck = watch.join().expect("hosts can be struck");
        println!("the job ended {:?} after the strike", struck.elapsed());
        // Fails if nobody gave the sign, of which the outcome tells more.
        let _ = std::fs::remove_file(&sign);
        while let Some(left) = hosts.processes() {
            assert!(struck.elapsed() < GONE, "still there: {left}");
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("nothing was left {:?} after it", struck.elapsed());
        outcome
    })
}

/// What the test harness in a rank writes about itself, and our own marks.
fn is_noise(line: &str) -> bool {
    let said = line.split_once("] ").map_or(line, |(_, said)| said);
    let start = said.starts_with("test ") && said.ends_with("... ");
    said.is_empty() || said == "running 1 test" || start || said.ends_with(DONE)
}

/// The body of a rank that takes part as a user's program would.
fn within_world(body: impl FnOnce(&World)) {
    let world = World::init().unwrap_or_else(|error| panic!("initialization failed: {error}"));
    body(&world);
    world.finalize().unwrap_or_else(|error| panic!("finalization failed: {error}"));
}

/// Runs the body and ends this process: 0, or 101 after a panic (whose message the panic hook has
/// written).
fn play(body: impl FnOnce()) -> ! {
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => {
            // On a line of its own: the test harness has left its line unended.
            println!("\n{DONE}");
            0
        }
        Err(_) => 101,
    };
    std::process::exit(code)
}
