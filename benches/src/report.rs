//! A run: all sides in turn, several rounds, and what is known about the machine meanwhile.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::figure::{Figure, Figures};
use crate::interrupt;
use crate::jobs::{self, Configuration, JOBS};
use crate::line::{self, Class, Cores};
use crate::machine::{self, Load};
use crate::peer::{Peers, Places, Program};
use crate::programs::{PROGRAMS, SETS};
use crate::timing::Effort;

/// Everything a run found out.
#[derive(Debug, Serialize)]
pub struct Report {
    /// How near the cores were most of the time.
    pub class: Class,
    /// One way of a cache line in nanoseconds: before each round, and after the last.
    pub line: Vec<f64>,
    /// The share of the machine that other programs used meanwhile, at most.
    pub others: f64,
    /// Rounds that the medians are of.
    pub rounds: usize,
    /// Ours.
    pub ours: Figures,
    /// The machine's own limits.
    pub machine: Figures,
    /// The peers'.
    pub peer: Figures,
    /// Why some of its figures are missing.
    pub peer_failures: Vec<String>,
    /// In which circumstances our figures were taken.
    #[serde(skip)]
    pub circumstances: BTreeMap<String, Circumstances>,
}

/// Ranks, their paths, and who served them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// How many ranks.
    pub ranks: usize,
    /// On how many nodes.
    pub nodes: usize,
    /// As `ARMCI_PROTOCOL` has it.
    pub protocol: &'static str,
    /// As `ARMCI_PROGRESS` has it.
    pub progress: &'static str,
}

impl Circumstances {
    /// So many ranks with the defaults.
    pub const fn of(ranks: usize) -> Self {
        Circumstances { ranks, nodes: 1, protocol: "rma", progress: "thread" }
    }
}

impl Default for Report {
    fn default() -> Self {
        Report {
            class: Class::Near,
            line: Vec::new(),
            others: 0.0,
            rounds: 0,
            ours: Figures::default(),
            machine: Figures::default(),
            peer: Figures::default(),
            peer_failures: Vec::new(),
            circumstances: BTreeMap::new(),
        }
    }
}

/// What a run consists of.
pub struct Plan {
    /// Our jobs.
    pub jobs: Vec<&'static Configuration>,
    /// C programs: the peer's, unless it is left out, and those on our library.
    pub programs: Vec<Program>,
    /// Where some of their libraries are.
    pub places: Places,
}

impl Plan {
    /// The table's.
    pub fn table(with_peer: bool) -> Self {
        let all = PROGRAMS.iter().chain(SETS.iter().flat_map(|set| set.programs));
        let programs = all.filter(|program| program.ours || with_peer).copied().collect();
        Plan { jobs: JOBS.iter().collect(), programs, places: Places::default() }
    }

    /// Of the table's, only the job or the programs of this name; a job's peers may have figures beside it.
    ///
    /// # Errors
    /// [`crate::error::Error::Configuration`] if there are none.
    pub fn only(self, name: &str) -> Result<Self> {
        let set = SETS.iter().find(|set| set.name == name);
        let with_peer = self.programs.iter().any(|program| !program.ours);
        let programs = match set {
            Some(set) => set.programs.iter().filter(|program| program.ours || with_peer).copied().collect(),
            None => self.programs.into_iter().filter(|program| program.prefix.is_empty()).collect(),
        };
        let jobs = jobs::of(name);
        if jobs.is_empty() && set.is_none() {
            return Err(Error::Configuration(name.into()));
        }
        Ok(Plan { jobs, programs, ..self })
    }
}

impl Plan {
    /// How many steps [`Report::take`] tells of.
    pub fn steps(&self, effort: Effort) -> usize {
        let once = self.jobs.iter().filter(|job| job.once).count();
        effort.rounds * (1 + self.jobs.len() + self.programs.len()) - (effort.rounds - 1) * once
    }
}

impl Report {
    /// Measures: the machine, our jobs, the peer's programs, in turn, and all of it again. `before` is told each job and
    /// program before it starts.
    ///
    /// # Errors
    /// If there are no two cores, a job of ours fails, or the run is asked to end.
    pub fn take(plan: &Plan, effort: Effort, quick: bool, mut before: impl FnMut(&str)) -> Result<Self> {
        let cores = Cores::find()?;
        let mut report = Report { rounds: effort.rounds, ..Report::default() };
        let peers = Peers::build(&plan.programs, &plan.places);
        let note = |reason: String, failures: &mut Vec<String>| {
            if !failures.contains(&reason) {
                failures.push(reason);
            }
        };
        let (mut ours, mut machine, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=effort.rounds {
            before(&format!("round {round} of {}: the machine", effort.rounds));
            report.others = report.others.max(Load::of_others());
            report.line.extend(line::transfer(cores));
            machine.push(machine::measure(cores, effort));
            let (mut mine, mut other) = (Figures::default(), Figures::default());
            interrupt::check()?;
            for index in 0..plan.jobs.len().max(plan.programs.len()) {
                if let Some(job) = plan.jobs.get(index).filter(|job| round == 1 || !job.once) {
                    before(&format!("round {round} of {}: {}", effort.rounds, job.name));
                    let figures = job.run(quick)?;
                    report.note(&figures, job.circumstances());
                    mine.extend(figures);
                    interrupt::check()?;
                }
                if let Some(program) = plan.programs.get(index) {
                    before(&format!("round {round} of {}: {}", effort.rounds, program.library.name));
                    match peers.measure(*program, effort) {
                        Ok(figures) if program.ours => {
                            report.note(&figures, Circumstances::of(program.ranks));
                            mine.extend(figures);
                        }
                        Ok(figures) => other.extend(figures),
                        Err(reason) => note(reason, &mut report.peer_failures),
                    }
                    interrupt::check()?;
                }
            }
            ours.push(mine);
            theirs.push(other);
        }
        report.others = report.others.max(Load::of_others());
        report.line.extend(line::transfer(cores));
        report.class = Figure::of(report.line.clone()).map_or(Class::Near, |line| Class::of(line.median));
        (report.ours, report.machine, report.peer) =
            (Figures::median_of(&ours), Figures::median_of(&machine), Figures::median_of(&theirs));
        for job in &plan.jobs {
            (job.summarize)(&mut report.ours);
        }
        // One figure, held against two others.
        let put = report.ours.get("c_put_8");
        report.ours.add("c_border_put_8", put);
        Ok(report)
    }

    /// Notes where figures come from.
    fn note(&mut self, figures: &Figures, circumstances: Circumstances) {
        self.circumstances.extend(figures.from("").map(|(name, _)| (name.to_owned(), circumstances)));
    }

    /// Whether the cores were near at one time of the run and far at another.
    pub fn flipped(&self) -> bool {
        self.line.iter().any(|&line| Class::of(line) != self.class)
    }
}
