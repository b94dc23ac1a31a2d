//! One job of a benchmark: how many ranks on how many nodes, over which path, served by whom, and what they are to do.
//!
//! The program starts itself as ranks; each reads its setup from one argument, measures, and prints records, a line
//! each. What the ranks need not know of themselves (who they were) is added to the records here.

use std::time::Duration;

use armci_core::World;
use armci_core::job::{Bind, Job};
use armci_core::topology::Topology;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::figure::Figures;
use crate::jobs::DEFAULTS;
use crate::record::Record;
use crate::start;
use crate::stats::Stats;
use crate::study::find;
use crate::timing::Effort;

/// The longest a job may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A job, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Which benchmark.
    pub study: String,
    /// Which part of it, where it has several kinds of jobs.
    pub part: String,
    /// How many ranks.
    pub ranks: usize,
    /// On how many virtual nodes.
    pub nodes: usize,
    /// "rma", "am", or one for each kind of operation.
    pub protocol: String,
    /// "thread" or "none".
    pub progress: String,
    /// Further settings of the runtime.
    pub settings: Vec<(String, String)>,
    /// Whether a short look is enough.
    pub quick: bool,
    /// Bytes of a transfer, or of a row.
    pub sizes: Vec<usize>,
    /// A kernel's length of an axis.
    pub n: usize,
    /// Its block.
    pub block: usize,
    /// Its steps.
    pub steps: usize,
    /// Its Reynolds number.
    pub reynolds: f64,
}

impl Setup {
    /// A pair of ranks on a node, with the defaults of the runtime.
    pub fn pair(study: &str) -> Self {
        Setup {
            study: study.into(),
            part: String::new(),
            ranks: 2,
            nodes: 1,
            protocol: "rma".into(),
            progress: "thread".into(),
            settings: Vec::new(),
            quick: false,
            sizes: Vec::new(),
            n: 0,
            block: 0,
            steps: 0,
            reynolds: 100.0,
        }
    }

    /// With one more of the runtime's settings.
    #[must_use]
    pub fn with(mut self, (name, value): (&str, &str)) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// How much effort its ranks spend.
    pub fn effort(&self) -> Effort {
        if self.quick { Effort::QUICK } else { Effort::FULL }
    }

    /// Which of the machine's limits a transfer is held against: `within` a node, or the wire between nodes.
    pub fn limit(&self, within: impl Into<String>) -> String {
        if self.nodes > 1 { "tcp".into() } else { within.into() }
    }

    /// Starts the ranks, waits for them, and returns their records.
    ///
    /// # Errors
    /// If the job fails, takes too long, or prints something else.
    pub fn run(&self) -> Result<Vec<Record>> {
        let crowded = Topology::load()?.oversubscribed(self.ranks);
        let text = serde_json::to_string(self).map_err(|source| Error::Record { line: self.study.clone(), source })?;
        let mut job = Job::this_program(self.ranks)?
            .nodes(self.nodes)?
            .only_args(["member", &text])
            .env(start::VARIABLE, start::now())
            .bind(if crowded { Bind::None } else { Bind::Core })
            .capture_stdout(true)
            .capture_stderr(true)
            .no_input(true)
            .quiet(true)
            .timeout(LIMIT);
        let chosen = [("ARMCI_PROTOCOL", &self.protocol), ("ARMCI_PROGRESS", &self.progress)];
        let chosen = chosen.into_iter().map(|(name, value)| (name, value.as_str()));
        let more = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in DEFAULTS.into_iter().chain(chosen).chain(more) {
            job = job.env(name, value);
        }
        let outcome = job.run()?;
        if outcome.code != 0 {
            let reason = outcome.failed.map(|failed| format!("rank {} {}; ", failed.rank, failed.reason));
            let said = String::from_utf8_lossy(&outcome.stderr);
            let stderr = format!("{}{}", reason.unwrap_or_default(), said.trim());
            let job = find(&self.study)?.name;
            return Err(Error::Job { job, code: outcome.code, timed_out: outcome.timed_out, stderr });
        }
        let stdout = String::from_utf8_lossy(&outcome.stdout);
        let read = |line: &str| -> Result<Record> {
            let record: Record =
                serde_json::from_str(line).map_err(|source| Error::Record { line: line.into(), source })?;
            Ok(Record {
                ranks: self.ranks,
                nodes: self.nodes,
                protocol: self.protocol.clone(),
                progress: self.progress.clone(),
                ..record
            })
        };
        stdout.lines().filter(|line| line.starts_with('{')).map(read).collect()
    }

    /// What a rank does: measures, and prints what it has found.
    ///
    /// # Errors
    /// What the benchmark says.
    pub fn be_a_rank(text: &str) -> Result<()> {
        let setup: Setup = serde_json::from_str(text).map_err(|source| Error::Record { line: text.into(), source })?;
        let study = find(&setup.study)?;
        let world = World::init()?;
        let mut notes = Notes::default();
        (study.measure)(&world, &setup, &mut notes)?;
        notes.print()?;
        Ok(world.finalize()?)
    }
}

/// What a rank has measured so far.
#[derive(Debug, Default)]
pub struct Notes(Vec<Record>);

impl Notes {
    /// Notes a record; one whose value is no number says nothing.
    pub fn add(&mut self, record: Record) {
        if record.value.is_finite() {
            self.0.push(record);
        }
    }

    /// Notes a time at a place of an axis, held against a limit; nothing if there were no samples.
    pub fn time(&mut self, id: &str, axis: &str, at: usize, stats: Option<Stats>, limit: String) {
        if let Some(stats) = stats {
            self.add(Record::time(id, stats).at(axis, at as f64).against(limit));
        }
    }

    /// Notes what another benchmark yields as figures, in nanoseconds.
    pub fn figures(&mut self, prefix: &str, figures: &Figures) {
        for (name, figure) in figures.from("") {
            let record = Record::new(format!("{prefix}/{name}"), figure.median, "ns");
            self.add(Record { p99: Some(figure.p99), ..record });
        }
    }

    fn print(&self) -> Result<()> {
        use std::io::Write;
        let mut text = String::new();
        for record in &self.0 {
            // A record of finite numbers always has a JSON form.
            text += &serde_json::to_string(record).unwrap_or_default();
            text.push('\n');
        }
        std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|source| Error::System { call: "write to standard output", source })
    }
}
