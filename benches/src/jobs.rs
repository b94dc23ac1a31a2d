//! Our own side: the program starts itself as ranks, once per configuration, and reads what they print.
//!
//! A configuration is a row of [`JOBS`]: how many ranks, bound or not, with which settings, and what they measure.
//! A new group of measurements is a file with a function, a line here, and a group of rows.

use std::time::Duration;

use armci_core::World;
use armci_core::job::{Bind, Job};

use crate::contiguous::{self, BESIDE_PEERS, SWEEP};
use crate::counter::{self, PACE, Pattern};
use crate::error::{Error, Result};
use crate::figure::Figures;
use crate::line::Cores;
use crate::report::Circumstances;
use crate::timing::Effort;
use crate::{
    accumulate, alignment, arrays, barrier, between, between_cache, between_scf, cached, constants, footprint, idle,
    matmul, meeting, messages, passing, small, start, strided, threads,
};

/// The longest a job may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A configuration of ranks, and what they measure.
pub struct Configuration {
    /// What it is called on the command line of its ranks.
    pub name: &'static str,
    /// Whether one round of a run is enough: for what does not drift, or takes long.
    pub once: bool,
    ranks: usize,
    /// The virtual nodes that they are split into.
    nodes: usize,
    bind: Bind,
    settings: &'static [(&'static str, &'static str)],
    /// How many times it is started in a round; the median counts.
    starts: usize,
    measure: fn(&World, Effort, &mut Figures) -> Result<()>,
    /// What is run instead, if it is another program of ours.
    instead: Option<fn(bool) -> Result<Figures>>,
    /// What follows from the figures of all rounds, such as the worst of many.
    pub summarize: fn(&mut Figures),
}

/// A pair of ranks on two cores that measures nothing yet.
const PAIR: Configuration = Configuration {
    name: "",
    once: false,
    ranks: 2,
    nodes: 1,
    bind: Bind::Core,
    settings: &[],
    starts: 1,
    measure: |_, _, _| Ok(()),
    instead: None,
    summarize: |_| {},
};

/// The settings that are made for every job, whatever the environment says: the defaults.
pub const DEFAULTS: [(&str, &str); 13] = [
    ("ARMCI_PROTOCOL", "rma"),
    ("ARMCI_PROGRESS", "thread"),
    ("ARMCI_PROGRESS_CPU", ""),
    ("ARMCI_SPIN", ""),
    ("ARMCI_SLOT", ""),
    ("ARMCI_MEMORY", ""),
    ("ARMCI_CONFLICTS", ""),
    ("ARMCI_RESOLVE", ""),
    ("ARMCI_REGION_CACHE", ""),
    ("ARMCI_FABRIC", ""),
    ("ARMCI_STATS", ""),
    ("ARMCI_TRACE", ""),
    ("ARMCI_CHECK", ""),
];

/// What is measured for the table.
pub static JOBS: [Configuration; 23] = [
    Configuration {
        name: "direct",
        measure: |world, effort, figures| {
            contiguous::measure(world, effort, &BESIDE_PEERS, figures)?;
            contiguous::owner_wrote(world, effort, figures)?;
            accumulate::measure(world, effort, "acc_1m", figures)?;
            counter::owner_idle(world, effort, Pattern { name: "idle", batch: 100, pace: None }, figures)?;
            counter::owner_computing(world, effort, Pattern { name: "busy", batch: 100, pace: None }, figures)?;
            barrier::measure(world, effort, 100, figures)
        },
        ..PAIR
    },
    Configuration {
        name: "messages",
        settings: &[("ARMCI_PROTOCOL", "rmw=am,accumulate=am")],
        measure: |world, effort, figures| {
            accumulate::measure(world, effort, "acc_1m_am", figures)?;
            counter::owner_idle(world, effort, Pattern { name: "served_idle", batch: 1, pace: None }, figures)?;
            counter::owner_asleep(world, effort, Pattern { name: "served_asleep", batch: 1, pace: None }, figures)?;
            counter::owner_computing(world, effort, Pattern { name: "served", batch: 1, pace: None }, figures)?;
            counter::owner_computing(
                world,
                effort,
                Pattern { name: "served_paced", batch: 1, pace: Some(PACE) },
                figures,
            )
        },
        ..PAIR
    },
    Configuration {
        name: "crowd",
        ranks: 8,
        bind: Bind::None,
        measure: |world, effort, figures| barrier::measure(world, effort, 10, figures),
        ..PAIR
    },
    Configuration {
        name: "start",
        ranks: 16,
        bind: Bind::None,
        starts: 5,
        measure: |world, _, figures| start::measure(world, figures),
        ..PAIR
    },
    Configuration { name: "small", measure: small::measure, summarize: small::summarize, ..PAIR },
    Configuration {
        name: "counter",
        measure: |world, effort, figures| {
            counter::whatever_the_owner_does(world, effort, figures)?;
            passing::measure(world, effort, figures)
        },
        summarize: counter::summarize,
        ..PAIR
    },
    Configuration { name: "matmul", once: true, measure: matmul::measure, ..PAIR },
    Configuration { name: "alignment", measure: alignment::measure, summarize: alignment::summarize, ..PAIR },
    Configuration {
        name: "loops",
        measure: |world, effort, figures| {
            strided::measure(world, effort, figures)?;
            accumulate::beside_loops(world, effort, figures)
        },
        ..PAIR
    },
    Configuration {
        name: "calls",
        measure: |world, effort, figures| {
            messages::measure(world, effort, figures)?;
            meeting::measure(world, effort, figures)?;
            idle::measure(world, effort, figures)
        },
        ..PAIR
    },
    Configuration {
        name: "table",
        measure: |world, effort, figures| cached::measure(world, effort, "by_table", figures),
        ..PAIR
    },
    Configuration {
        name: "cache",
        settings: &[("ARMCI_RESOLVE", "cache")],
        measure: |world, effort, figures| cached::measure(world, effort, "cached", figures),
        ..PAIR
    },
    Configuration {
        name: "misses",
        settings: &[("ARMCI_RESOLVE", "cache"), ("ARMCI_REGION_CACHE", "1")],
        measure: |world, effort, figures| cached::measure(world, effort, "missed", figures),
        ..PAIR
    },
    Configuration { name: "threads", bind: Bind::None, measure: threads::threads, ..PAIR },
    Configuration { name: "ranks", ranks: 1 + threads::WORKERS, bind: Bind::None, measure: threads::ranks, ..PAIR },
    Configuration { name: "arrays", measure: arrays::measure, ..PAIR },
    Configuration { name: "spread", ranks: 4, bind: Bind::None, measure: arrays::spread, ..PAIR },
    Configuration {
        name: "footprint",
        once: true,
        ranks: 64,
        bind: Bind::None,
        measure: |world, _, figures| footprint::measure(world, figures),
        ..PAIR
    },
    Configuration { name: "between", measure: between::measure, summarize: between::summarize, ..APART },
    Configuration {
        name: "between-core",
        bind: Bind::None,
        settings: &[between::FABRIC, ("ARMCI_PROGRESS_CPU", OWNER)],
        measure: between::served_on_its_own_core,
        ..APART
    },
    Configuration {
        name: "between-cache",
        settings: &[between::FABRIC, ("ARMCI_REGION_CACHE", between_cache::CAPACITY)],
        measure: between_cache::measure,
        ..APART
    },
    Configuration { name: "between-model", measure: constants::measure, summarize: constants::predict, ..APART },
    Configuration { name: "between-scf", instead: Some(between_scf::run), summarize: between_scf::summarize, ..APART },
];

/// Stands in a setting for the processor of rank 0, where it is bound.
const OWNER: &str = "owner";

/// A pair of ranks that share no memory.
const APART: Configuration = Configuration { nodes: 2, settings: &[between::FABRIC], ..PAIR };

/// What is measured for the sweep.
pub static SWEEP_JOB: Configuration = Configuration {
    name: "sweep",
    measure: |world, effort, figures| contiguous::measure(world, effort, &SWEEP, figures),
    ..PAIR
};

/// The configurations of this name, and of its parts, such as `between` and `between-cache`.
pub fn of(name: &str) -> Vec<&'static Configuration> {
    let part =
        |job: &&Configuration| job.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    JOBS.iter().filter(part).collect()
}

/// The configuration of this name.
///
/// # Errors
/// [`Error::Configuration`] if there is none.
pub fn find(name: &str) -> Result<&'static Configuration> {
    let found = JOBS.iter().chain([&SWEEP_JOB]).find(|configuration| configuration.name == name);
    found.ok_or_else(|| Error::Configuration(name.into()))
}

impl Configuration {
    /// What is to be said of its figures.
    pub fn circumstances(&self) -> Circumstances {
        let set = |wanted: &str| self.settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let default = Circumstances::of(self.ranks);
        Circumstances {
            nodes: self.nodes,
            protocol: set("ARMCI_PROTOCOL").unwrap_or(default.protocol),
            progress: set("ARMCI_PROGRESS").unwrap_or(default.progress),
            ..default
        }
    }

    /// Starts the ranks, waits for them, and returns what they measured.
    ///
    /// # Errors
    /// If the job fails, takes too long, or prints something else.
    pub fn run(&self, quick: bool) -> Result<Figures> {
        let start = |_| self.instead.map_or_else(|| self.start(quick), |run| run(quick));
        let starts: Result<Vec<Figures>> = (0..self.starts).map(start).collect();
        Ok(Figures::median_of(&starts?))
    }

    fn start(&self, quick: bool) -> Result<Figures> {
        let begin = start::now();
        let mut arguments = vec!["rank", self.name];
        if quick {
            arguments.push("--quick");
        }
        let mut job = Job::this_program(self.ranks)?
            .nodes(self.nodes)?
            .only_args(arguments)
            .env(start::VARIABLE, begin)
            .bind(self.bind)
            .capture_stdout(true)
            .capture_stderr(true)
            .no_input(true)
            .quiet(true)
            .timeout(LIMIT);
        for (name, value) in DEFAULTS.iter().chain(self.settings) {
            let owner = if *value == OWNER { Some(Cores::find()?.owner.to_string()) } else { None };
            job = job.env(name, owner.as_deref().unwrap_or(value));
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
