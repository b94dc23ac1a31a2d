//! The Fock build over ranks: density and Fock matrix as distributed arrays, tasks from a
//! shared counter. Every rank gets the stripes of the density its task needs, contracts, and
//! accumulates into the Fock matrix, whoever owns it.
//!
//! Guarantee: after [`Builder::build`] the distributed Fock matrix holds every task exactly
//! once. Which rank did which task, and in what order the contributions arrived, is free, so
//! the last bits differ from run to run.

use std::time::Instant;

use armci_core::{SharedCounter, World};
use global_arrays::GlobalArray;
use ndarray::{Array2, s};

use crate::contract::{Contractor, Stripes};
use crate::error::{Result, ScfError};
use crate::pairs::Pairs;
use crate::tasks::{Plan, Task};
use crate::times::{Phase, Times};

/// The distributed arrays, the counter, and this rank's contractor.
pub struct Builder<'a> {
    world: &'a World,
    plan: &'a Plan,
    contractor: Contractor<'a>,
    counter: SharedCounter,
    chunk: i64,
    density: GlobalArray<f64>,
    fock: GlobalArray<f64>,
}

/// What one rank did in one build.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Quartets it evaluated.
    pub quartets: u64,
    /// Tasks it took.
    pub tasks: u64,
    /// Seconds in the build, with the waiting before and after.
    pub seconds: f64,
}

impl<'a> Builder<'a> {
    /// Creates the arrays and the counter. Collective.
    ///
    /// # Errors
    /// The runtime cannot provide them.
    pub fn create(world: &'a World, pairs: &'a Pairs<'a>, plan: &'a Plan, chunk: i64) -> Result<Self> {
        let n = pairs.orbitals.len();
        Ok(Self {
            world,
            plan,
            contractor: Contractor::new(pairs, plan),
            counter: SharedCounter::create(world)?,
            chunk,
            density: GlobalArray::create(world, "density", [n, n])?,
            fock: GlobalArray::create(world, "fock", [n, n])?,
        })
    }

    /// Stores the density to build from. One rank calls this before [`Builder::build`].
    ///
    /// # Errors
    /// The runtime fails.
    pub fn put_density(&self, density: &Array2<f64>) -> Result<()> {
        let n = density.nrows();
        Ok(self.density.put([0..n, 0..n], density.view())?)
    }

    /// The two-electron part of the Fock matrix. One rank calls this after [`Builder::build`].
    ///
    /// # Errors
    /// The runtime fails.
    pub fn two_electron(&self) -> Result<Array2<f64>> {
        let n = self.plan.blocks.last().map_or(0, |b| b.functions.end);
        let half = self.fock.get([0..n, 0..n])?;
        Ok((&half + &half.t()) * 0.5)
    }

    /// Builds the Fock matrix from the stored density. Collective. `watch` is told after each
    /// task how far the counter has come.
    ///
    /// # Errors
    /// The runtime fails.
    pub fn build(&mut self, threshold: f64, times: &mut Times, mut watch: impl FnMut(usize)) -> Result<Done> {
        // Before the ranks meet: a rank that is let go late has then waited, not gained time.
        let start = Instant::now();
        times.book(Phase::Wait, || {
            self.fock.zero()?;
            self.counter.reset()?;
            Ok::<_, ScfError>(self.density.sync()?)
        })?;
        let mut done = Done::default();
        loop {
            let next = times.book(Phase::Counter, || self.counter.next_chunk(self.chunk))?;
            let first = usize::try_from(next.start).unwrap_or(usize::MAX);
            if first >= self.plan.tasks.len() {
                break;
            }
            let last = usize::try_from(next.end).unwrap_or(usize::MAX).min(self.plan.tasks.len());
            for &task in &self.plan.tasks[first..last] {
                done.quartets += self.task(task, threshold, times)?;
                done.tasks += 1;
            }
            watch(last);
        }
        times.book(Phase::Wait, || self.fock.sync())?;
        done.seconds = start.elapsed().as_secs_f64();
        Ok(done)
    }

    fn task(&mut self, task: Task, threshold: f64, times: &mut Times) -> Result<u64> {
        let patches = task.stripes().map(|(row, last)| {
            let columns = self.plan.blocks[last].functions.end;
            [self.plan.blocks[row].functions.clone(), 0..columns]
        });
        let density: Stripes = times.book(Phase::Get, || {
            let [i, j, k] = patches.clone();
            Ok::<_, ScfError>([self.density.get(i)?, self.density.get(j)?, self.density.get(k)?])
        })?;
        let (quartets, fock) = times.book(Phase::Integrals, || {
            let mut fock: Stripes = density.each_ref().map(|d| Array2::zeros(d.dim()));
            (self.contractor.run(task, &density, &mut fock, threshold), fock)
        });
        if quartets > 0 {
            times.book(Phase::Accumulate, || {
                for (patch, part) in patches.into_iter().zip(&fock) {
                    self.fock.accumulate(patch, 1.0, part.slice(s![.., ..]))?;
                }
                Ok::<_, ScfError>(())
            })?;
        }
        Ok(quartets)
    }

    /// Frees the arrays and the counter. Collective.
    ///
    /// # Errors
    /// The runtime fails.
    pub fn destroy(self) -> Result<()> {
        self.density.destroy()?;
        self.fock.destroy()?;
        self.counter.destroy()?;
        self.world.barrier()?;
        Ok(())
    }
}
