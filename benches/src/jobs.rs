//! Our own side: the program starts itself as ranks, once per configuration, and reads what they print.
//!
//! A configuration is a row of [`JOBS`]: how many ranks, bound or not, with which settings, and what they measure.
//! A new group of measurements is a file with a function, and a line here.

use std::time::Duration;

use armci_core::World;
use armci_core::job::{Bind, Job};

use crate::contiguous::{self, MIB, SWEEP};
use crate::counter::{self, PACE, Pattern};
use crate::error::{Error, Result};
use crate::figure::Figures;
use crate::timing::Effort;
use crate::{accumulate, barrier};

/// The longest a job may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A configuration of ranks, and what they measure.
pub struct Configuration {
    /// What it is called on the command line of its ranks.
    pub name: &'static str,
    ranks: usize,
    bind: Bind,
    settings: &'static [(&'static str, &'static str)],
    measure: fn(&World, Effort, &mut Figures) -> Result<()>,
}

/// The settings that are made for every job, whatever the environment says: the defaults.
const DEFAULTS: [(&str, &str); 5] = [
    ("ARMCI_PROTOCOL", "rma"),
    ("ARMCI_PROGRESS", "thread"),
    ("ARMCI_SPIN", ""),
    ("ARMCI_SLOT", ""),
    ("ARMCI_MEMORY", ""),
];

/// What is measured for the table.
pub static JOBS: [Configuration; 3] = [
    Configuration {
        name: "direct",
        ranks: 2,
        bind: Bind::Core,
        settings: &[],
        measure: |world, effort, figures| {
            contiguous::measure(world, effort, &[8, MIB], figures)?;
            contiguous::owner_wrote(world, effort, figures)?;
            accumulate::measure(world, effort, "acc_1m", figures)?;
            counter::owner_idle(world, effort, Pattern { name: "idle", batch: 100, pace: None }, figures)?;
            counter::owner_computing(world, effort, Pattern { name: "busy", batch: 100, pace: None }, figures)?;
            barrier::measure(world, effort, 100, figures)
        },
    },
    Configuration {
        name: "messages",
        ranks: 2,
        bind: Bind::Core,
        settings: &[("ARMCI_PROTOCOL", "rmw=am,accumulate=am")],
        measure: |world, effort, figures| {
            accumulate::measure(world, effort, "acc_1m_am", figures)?;
            counter::owner_idle(world, effort, Pattern { name: "served_idle", batch: 1, pace: None }, figures)?;
            counter::owner_computing(world, effort, Pattern { name: "served", batch: 1, pace: None }, figures)?;
            counter::owner_computing(
                world,
                effort,
                Pattern { name: "served_paced", batch: 1, pace: Some(PACE) },
                figures,
            )
        },
    },
    Configuration {
        name: "crowd",
        ranks: 8,
        bind: Bind::None,
        settings: &[],
        measure: |world, effort, figures| barrier::measure(world, effort, 10, figures),
    },
];

/// What is measured for the sweep.
pub static SWEEP_JOB: Configuration = Configuration {
    name: "sweep",
    ranks: 2,
    bind: Bind::Core,
    settings: &[],
    measure: |world, effort, figures| contiguous::measure(world, effort, &SWEEP, figures),
};

/// The configuration of this name.
pub fn find(name: &str) -> Option<&'static Configuration> {
    JOBS.iter().chain([&SWEEP_JOB]).find(|configuration| configuration.name == name)
}

impl Configuration {
    /// Starts the ranks, waits for them, and returns what they measured.
    ///
    /// # Errors
    /// If the job fails, takes too long, or prints something else.
    pub fn run(&self, quick: bool) -> Result<Figures> {
        let mut arguments = vec!["rank", self.name];
        if quick {
            arguments.push("--quick");
        }
        let mut job = Job::this_program(self.ranks)?
            .only_args(arguments)
            .bind(self.bind)
            .capture_stdout(true)
            .capture_stderr(true)
            .no_input(true)
            .quiet(true)
            .timeout(LIMIT);
        for (name, value) in DEFAULTS.iter().chain(self.settings) {
            job = job.env(name, value);
        }
        let outcome = job.run()?;
        if outcome.code != 0 {
            let reason = outcome.failed.map(|failed| format!("rank {} {}; ", failed.rank, failed.reason));
            let said = String::from_utf8_lossy(&outcome.stderr);
            let stderr = format!("{}{}", reason.unwrap_or_default(), said.trim());
            return Err(Error::Job { job: self.name, code: outcome.code, timed_out: outcome.timed_out, stderr });
        }
        Figures::parse(&String::from_utf8_lossy(&outcome.stdout))
    }

    /// What a rank of it does: measures, and prints what it has found.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn be_a_rank(&self, effort: Effort) -> Result<()> {
        let world = World::init()?;
        let mut figures = Figures::default();
        (self.measure)(&world, effort, &mut figures)?;
        figures.print()?;
        Ok(world.finalize()?)
    }
}
