//! The Fock build over ranks: density and Fock matrix as distributed arrays, tasks from a
//! shared counter. Every rank gets the stripes of the density its task needs, contracts, and
//! accumulates into the Fock matrix, whoever owns it.
//!
//! Guarantee: after [`Builder::build`] the distributed Fock matrix holds every task exactly
//! once. Which rank did which task, and in what order the contributions arrived, is free, so
//! the last bits differ from run to run.

use std::time::Instant;

use global_arrays::{GlobalArray, SharedCounter, World};
use ndarray::Array2;

use crate::contract::{Contractor, Stripes};
use crate::error::{Result, ScfError};
use crate::pairs::Pairs;
use crate::tasks::Plan;
use crate::times::{Phase, Times};

/// The distributed arrays, the counter, and this rank's contractor.
pub struct Builder<'a> {
    plan: &'a Plan,
    contractor: Contractor<'a>,
    counter: SharedCounter,
    chunk: usize,
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
    pub fn create(world: &'a World, pairs: &'a Pairs<'a>, plan: &'a Plan, chunk: usize) -> Result<Self> {
        let n = pairs.orbitals.len();
        Ok(Self {
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
        Ok(self.density.put(.., density)?)
    }

    /// The two-electron part of the Fock matrix. One rank calls this after [`Builder::build`].
    ///
    /// # Errors
    /// The runtime fails.
    pub fn two_electron(&self) -> Result<Array2<f64>> {
        let half = self.fock.get(..)?;
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
        let Self { plan, contractor, counter, chunk, density, fock } = self;
        times.book(Phase::Wait, || {
            fock.zero()?;
            counter.reset()?;
            Ok::<_, ScfError>(density.sync()?)
        })?;
        let mut done = Done::default();
        let mut tasks = counter.tasks(plan.tasks.len()).in_chunks(*chunk);
        while let Some(number) = times.book(Phase::Counter, || tasks.next()) {
            let number = number?;
            let task = plan.tasks[number];
            let patches = task.stripes().map(|(row, last)| {
                let columns = plan.blocks[last].functions.end;
                [plan.blocks[row].functions.clone(), 0..columns]
            });
            let densities: Stripes = times.book(Phase::Get, || {
                // Under way together: one journey to whoever owns them, not three.
                let [i, j, k] = &patches;
                let [i, j, k] = [density.get_nb(i)?, density.get_nb(j)?, density.get_nb(k)?];
                Ok::<_, ScfError>([i.wait()?, j.wait()?, k.wait()?])
            })?;
            let (quartets, parts) = times.book(Phase::Integrals, || {
                let mut parts: Stripes = densities.each_ref().map(|d| Array2::zeros(d.dim()));
                (contractor.run(task, &densities, &mut parts, threshold), parts)
            });
            if quartets > 0 {
                times.book(Phase::Accumulate, || {
                    patches.iter().zip(&parts).try_for_each(|(patch, part)| fock.accumulate(patch, 1.0, part))
                })?;
            }
            done.quartets += quartets;
            done.tasks += 1;
            watch(number + 1);
        }
        times.book(Phase::Wait, || fock.sync())?;
        done.seconds = start.elapsed().as_secs_f64();
        Ok(done)
    }

    /// Frees the arrays and the counter. Collective.
    ///
    /// # Errors
    /// The runtime fails.
    pub fn destroy(self) -> Result<()> {
        self.density.destroy()?;
        self.fock.destroy()?;
        Ok(self.counter.destroy()?)
    }
}
