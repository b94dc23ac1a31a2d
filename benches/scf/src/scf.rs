//! The calculation from input to result, as every rank runs it.
//!
//! Rank 0 owns the iteration ([`Solver`]); the others follow its lead: before each Fock build
//! it broadcasts whether to go on and how finely to screen. One-electron integrals, Schwarz bounds
//! and the atoms of the starting density are shared out by number, the Fock builds by counter.

use std::time::Instant;

use armci_core::{Reduce, World};
use ndarray::Array2;

use crate::basis::{BasisSet, Functions};
use crate::error::{Result, ScfError};
use crate::fock::Builder;
use crate::guess;
use crate::molecule::Molecule;
use crate::one_electron::{self, OneElectron};
use crate::pairs::Pairs;
use crate::schwarz::schwarz_part;
use crate::shells::Orbitals;
use crate::solver::{Criteria, Solver, Step};
use crate::tasks::{self, Plan};
use crate::times::{PHASES, Phase, Times};

/// Debye per atomic unit of dipole moment.
pub const DEBYE: f64 = 2.541_746_473;

/// How to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guess {
    /// Superposed densities of the atoms.
    Atoms,
    /// Orbitals of the core Hamiltonian.
    Core,
}

/// What a user may adjust.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Largest residual at convergence.
    pub convergence: f64,
    /// Iterations at most.
    pub max_iterations: usize,
    /// Contributions to the Fock matrix below this are left out.
    pub screening: f64,
    /// Functions per block; none: chosen by size.
    pub block: Option<usize>,
    /// Tasks taken from the counter at a time.
    pub chunk: usize,
    /// How to start.
    pub guess: Guess,
    /// Build from the density's change rather than from the density.
    pub incremental: bool,
    /// Eigenvalues of the overlap below this are linear dependences.
    pub dependence: f64,
}

/// What is to be calculated.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The molecule.
    pub molecule: Molecule,
    /// The basis set.
    pub basis: BasisSet,
    /// Cartesian or spherical d and f functions.
    pub functions: Functions,
}

/// The size of the calculation.
#[derive(Debug, Clone)]
pub struct Size {
    /// Shells of the basis.
    pub shells: usize,
    /// Functions of the basis.
    pub functions: usize,
    /// Of these, linearly independent.
    pub independent: usize,
    /// Smallest eigenvalue of the overlap matrix.
    pub smallest: f64,
    /// Doubly occupied orbitals.
    pub occupied: usize,
    /// Blocks of functions.
    pub blocks: usize,
    /// Tasks of a Fock build.
    pub tasks: usize,
    /// Nuclear repulsion.
    pub repulsion: f64,
}

/// One line of the convergence table.
#[derive(Debug, Clone, Copy)]
pub struct Iteration {
    /// Counted from one.
    pub number: usize,
    /// What rank 0 found.
    pub step: Step,
    /// Shell quartets evaluated by all ranks.
    pub quartets: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// What a rank did, as known to all at the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct RankReport {
    /// Seconds per phase.
    pub times: Times,
    /// Tasks taken.
    pub tasks: u64,
    /// Quartets evaluated.
    pub quartets: u64,
    /// Requests served by the progress thread.
    pub served_by_thread: u64,
    /// Requests served by the rank itself.
    pub served_by_main: u64,
    /// Wall-clock seconds in Fock builds.
    pub build_seconds: f64,
}

/// The result; rank 0 has all of it, the others what concerns all ranks.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Whether the criteria were met.
    pub converged: bool,
    /// The converged energy, or that of the iteration with the smallest residual; none if there
    /// was no density from orbitals yet.
    pub energy: Option<f64>,
    /// The table.
    pub iterations: Vec<Iteration>,
    /// Orbital energies in rising order; none unless converged.
    pub orbital_energies: Vec<f64>,
    /// Dipole moment in atomic units; none unless converged.
    pub dipole: Option<[f64; 3]>,
    /// HOMO-LUMO gap of the last Fock matrix, converged or not.
    pub gap: Option<f64>,
    /// What each rank did.
    pub ranks: Vec<RankReport>,
    /// Wall-clock seconds in Fock builds, of the rank that was in them longest.
    pub build_seconds: f64,
    /// Wall-clock seconds from joining the job to the result.
    pub seconds: f64,
    /// Nodes of the job.
    pub nodes: usize,
}

impl Outcome {
    /// Share of the ranks' time in Fock builds that went into integrals.
    pub fn efficiency(&self) -> f64 {
        let integrals: f64 = self.ranks.iter().map(|r| r.times.of(Phase::Integrals)).sum();
        share(integrals, self.build_seconds * self.ranks.len() as f64)
    }

    /// Longest integral time of a rank over the mean.
    pub fn imbalance(&self) -> f64 {
        let all = self.ranks.iter().map(|r| r.times.of(Phase::Integrals));
        let (sum, largest) = all.fold((0.0, 0.0), |(s, m): (f64, f64), t| (s + t, m.max(t)));
        // Nobody had any integrals: perfectly balanced.
        if sum > 0.0 { largest * self.ranks.len() as f64 / sum } else { 1.0 }
    }

    /// Share of get, accumulate and counter in the time of all ranks.
    pub fn communication(&self) -> f64 {
        let part: f64 = self.ranks.iter().map(|r| r.times.communication()).sum();
        let whole: f64 = self.ranks.iter().map(|r| r.times.total()).sum();
        share(part, whole)
    }
}

/// A part of a whole; of nothing, nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Is told how the calculation goes, on rank 0.
pub trait Observer {
    /// The calculation is about to start.
    fn start(&mut self, size: &Size);
    /// A Fock build has come to task `done` of `all`.
    fn task(&mut self, iteration: usize, done: usize, all: usize);
    /// An iteration is finished.
    fn iteration(&mut self, iteration: &Iteration);
}

/// What rank 0 tells the others before each Fock build.
const GO: f64 = 1.0;
const CONVERGED: f64 = 2.0;
const EXHAUSTED: f64 = 3.0;
const FAILED: f64 = 4.0;

/// Runs the calculation. Collective.
///
/// # Errors
/// The input makes no sense, the energy becomes infinite, or the runtime fails.
pub fn run(world: &World, problem: &Problem, settings: &Settings, observer: &mut dyn Observer) -> Result<Outcome> {
    let start = Instant::now();
    let mut times = Times::default();
    let leader = world.rank() == 0;
    let occupied = problem.molecule.occupied()?;
    let setup = Instant::now();
    let orbitals = Orbitals::new(&problem.molecule, &problem.basis, problem.functions)?;
    let (matrices, bounds, density) = share_setup(world, problem, settings, &orbitals)?;
    let pairs = Pairs::new(&orbitals, &bounds, settings.screening);
    let width = settings.block.unwrap_or_else(|| tasks::default_width(orbitals.len()));
    let plan = Plan::new(&pairs, width, settings.screening);
    let mut builder = Builder::create(world, &pairs, &plan, settings.chunk)?;
    times.add(Phase::Setup, setup.elapsed());

    let repulsion = problem.molecule.nuclear_repulsion();
    let mut failure = None;
    let mut solver = None;
    if leader {
        let criteria = Criteria { residual: settings.convergence };
        let made = times.book(Phase::Diagonalise, || {
            let name = &problem.basis.name;
            Solver::new(matrices, repulsion, occupied, density, criteria, settings.dependence, name)
        });
        match made {
            Ok(made) => {
                let (independent, smallest) = made.independent();
                observer.start(&Size {
                    shells: orbitals.shells.len(),
                    functions: orbitals.len(),
                    independent,
                    smallest,
                    occupied,
                    blocks: plan.blocks.len(),
                    tasks: plan.tasks.len(),
                    repulsion,
                });
                solver = Some(made);
            }
            Err(error) => failure = Some(error),
        }
    }

    let mut rank = RankReport::default();
    let mut iterations: Vec<Iteration> = Vec::new();
    let verdict = loop {
        let begin = Instant::now();
        let number = iterations.len() + 1;
        let mut verdict = [GO, settings.screening];
        if let Some(solver) = &mut solver {
            if iterations.last().is_some_and(|last| last.step.converged) {
                verdict[0] = CONVERGED;
            } else if number > settings.max_iterations {
                verdict[0] = EXHAUSTED;
            } else if failure.is_none() {
                let (density, threshold) =
                    times.book(Phase::Diagonalise, || solver.increment(!settings.incremental, settings.screening));
                verdict[1] = threshold;
                times.book(Phase::Wait, || builder.put_density(density))?;
            }
        }
        if failure.is_some() {
            verdict[0] = FAILED;
        }
        times.book(Phase::Wait, || world.broadcast(0, &mut verdict))?;
        if verdict[0] != GO {
            break verdict[0];
        }
        let all = plan.tasks.len();
        let done = builder.build(verdict[1], &mut times, |done| {
            if leader {
                observer.task(number, done, all);
            }
        })?;
        rank.tasks += done.tasks;
        rank.quartets += done.quartets;
        rank.build_seconds += done.seconds;
        let mut quartets = [done.quartets];
        times.book(Phase::Wait, || world.all_reduce(&mut quartets, Reduce::Sum))?;
        let mut line = Iteration {
            number,
            step: Step { energy: 0.0, change: 0.0, residual: 0.0, converged: false, variational: false },
            quartets: quartets[0],
            seconds: 0.0,
        };
        if let Some(solver) = &mut solver {
            let part = times.book(Phase::Wait, || builder.two_electron())?;
            match times.book(Phase::Diagonalise, || solver.step(part, number)) {
                Ok(step) => {
                    line.step = step;
                    line.seconds = begin.elapsed().as_secs_f64();
                    observer.iteration(&line);
                }
                Err(error) => failure = Some(error),
            }
        }
        iterations.push(line);
    };
    times.book(Phase::Wait, || builder.destroy())?;
    if verdict == FAILED {
        return Err(failure.unwrap_or(ScfError::ReportedByRankZero));
    }

    rank.times = times;
    let ranks = gather(world, rank)?;
    let converged = verdict == CONVERGED;
    // Before convergence the last orbitals belong to another density than the energy does.
    let (orbital_energies, dipole) = match &solver {
        Some(solver) if converged => {
            let dipole = dipole(&problem.molecule, &orbitals, solver.density());
            (solver.orbital_energies().to_vec(), Some(dipole))
        }
        _ => (Vec::new(), None),
    };
    Ok(Outcome {
        converged,
        energy: best(&iterations),
        iterations,
        orbital_energies,
        dipole,
        gap: solver.as_ref().and_then(Solver::gap),
        build_seconds: ranks.iter().map(|r| r.build_seconds).fold(0.0, f64::max),
        ranks,
        seconds: start.elapsed().as_secs_f64(),
        nodes: world.nodes(),
    })
}

/// The energy to report: the last one if it converged, else that with the smallest residual;
/// none if only superposed atoms have been tried, whose energy bounds nothing.
fn best(iterations: &[Iteration]) -> Option<f64> {
    let best = iterations
        .iter()
        .filter(|i| i.step.variational)
        .min_by(|a, b| b.step.converged.cmp(&a.step.converged).then(a.step.residual.total_cmp(&b.step.residual)));
    best.map(|i| i.step.energy)
}

/// One-electron matrices, Schwarz bounds and the starting density, each rank doing its share.
fn share_setup(
    world: &World,
    problem: &Problem,
    settings: &Settings,
    orbitals: &Orbitals,
) -> Result<(OneElectron, Vec<f64>, Option<Array2<f64>>)> {
    let (rank, size) = (world.rank(), world.size());
    let mut density = None;
    if settings.guess == Guess::Atoms {
        let mut atoms = guess::Atoms::default();
        // From the last rank down: rank 0 has enough to do later.
        for (number, (element, width)) in guess::elements(&problem.molecule, orbitals).into_iter().enumerate() {
            let owner = size - 1 - number % size;
            let mut block = Array2::zeros((width, width));
            if owner == rank {
                block = guess::atom(element, &problem.basis, problem.functions)?;
            }
            reduce(world, &mut block)?;
            atoms.insert(element, block);
        }
        density = Some(atoms.superpose(&problem.molecule, orbitals));
    }
    let mut matrices = OneElectron::part(orbitals, &problem.molecule, rank, size);
    let mut bounds = schwarz_part(orbitals, rank, size);
    reduce(world, &mut matrices.overlap)?;
    reduce(world, &mut matrices.core)?;
    world.all_reduce(&mut bounds, Reduce::Sum)?;
    Ok((matrices, bounds, density))
}

/// Sums a matrix over the ranks.
fn reduce(world: &World, matrix: &mut Array2<f64>) -> Result<()> {
    match matrix.as_slice_mut() {
        Some(slice) => Ok(world.all_reduce(slice, Reduce::Sum)?),
        None => unreachable!("matrices here are created contiguous"),
    }
}

/// Everybody's report, known to all.
fn gather(world: &World, own: RankReport) -> Result<Vec<RankReport>> {
    const FIELDS: usize = PHASES.len() + 5;
    let statistics = world.statistics();
    let mut all = vec![0.0; world.size() * FIELDS];
    let mine = &mut all[world.rank() * FIELDS..][..FIELDS];
    mine[..PHASES.len()].copy_from_slice(&own.times.0);
    let counts = [own.tasks, own.quartets, statistics.served_by_thread, statistics.served_by_main];
    for (to, from) in mine[PHASES.len()..].iter_mut().zip(counts) {
        *to = from as f64;
    }
    mine[FIELDS - 1] = own.build_seconds;
    world.all_reduce(&mut all, Reduce::Sum)?;
    let read = |row: &[f64]| {
        let mut times = Times::default();
        times.0.copy_from_slice(&row[..PHASES.len()]);
        let count = |k: usize| row[PHASES.len() + k] as u64;
        RankReport {
            times,
            tasks: count(0),
            quartets: count(1),
            served_by_thread: count(2),
            served_by_main: count(3),
            build_seconds: row[FIELDS - 1],
        }
    };
    Ok(all.chunks_exact(FIELDS).map(read).collect())
}

/// Dipole moment about the centre of nuclear charge, which only matters for ions.
fn dipole(molecule: &Molecule, orbitals: &Orbitals, density: &Array2<f64>) -> [f64; 3] {
    let origin = molecule.charge_centre();
    let electrons = one_electron::dipole(orbitals, origin);
    [0, 1, 2].map(|axis| {
        let nuclei: f64 = molecule.atoms.iter().map(|a| a.charge() * (a.position[axis] - origin[axis])).sum();
        nuclei - (density * &electrons[axis]).sum()
    })
}
