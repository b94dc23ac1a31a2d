//! Where a rank's time goes.

use std::time::{Duration, Instant};

/// What a rank can be doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Two-electron integrals and their contraction.
    Integrals,
    /// Getting density patches.
    Get,
    /// Accumulating Fock patches.
    Accumulate,
    /// Asking the counter for the next task.
    Counter,
    /// Linear algebra on rank 0: diagonalisation, DIIS, energies.
    Diagonalise,
    /// One-electron integrals, Schwarz bounds, task list, starting density.
    Setup,
    /// Waiting for the other ranks, and collective operations.
    Wait,
}

/// All phases, in the order they are reported.
pub const PHASES: [Phase; 7] =
    [Phase::Integrals, Phase::Get, Phase::Accumulate, Phase::Counter, Phase::Diagonalise, Phase::Setup, Phase::Wait];

impl Phase {
    /// The name in tables and in the JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integrals => "integrals",
            Self::Get => "get",
            Self::Accumulate => "accumulate",
            Self::Counter => "counter",
            Self::Diagonalise => "diagonalise",
            Self::Setup => "setup",
            Self::Wait => "wait",
        }
    }
}

/// Seconds per phase, in the order of [`PHASES`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times(pub [f64; PHASES.len()]);

impl Times {
    /// Runs `work` and books its time under `phase`.
    pub fn book<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let out = work();
        self.add(phase, start.elapsed());
        out
    }

    /// Books some time under `phase`.
    pub fn add(&mut self, phase: Phase, time: Duration) {
        self.0[phase as usize] += time.as_secs_f64();
    }

    /// Seconds spent in a phase.
    pub fn of(&self, phase: Phase) -> f64 {
        self.0[phase as usize]
    }

    /// Seconds spent getting, accumulating and at the counter.
    pub fn communication(&self) -> f64 {
        self.of(Phase::Get) + self.of(Phase::Accumulate) + self.of(Phase::Counter)
    }

    /// Seconds in all phases together.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }
}
