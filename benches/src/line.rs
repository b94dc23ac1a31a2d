//! How far apart the two cores are: the passing of a cache line between them.
//!
//! On a virtual machine the two cores may be moved between neighbours and strangers within minutes, and every figure
//! of communication moves with them. So a run measures this first and last, names its class, and says if it changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::thread::CpuSet;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::figure::Figure;
use crate::timing::sample_plain;

/// How near the two cores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// They share a cache: a line passes in 30 to 60 ns.
    Near,
    /// They do not: 120 ns and more.
    Far,
}

impl Class {
    /// The class of a one-way passing of a line.
    pub fn of(nanoseconds: f64) -> Self {
        if nanoseconds < 85.0 { Class::Near } else { Class::Far }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Near => "near",
            Class::Far => "far",
        }
    }
}

/// Two processors, on different cores: those that a job's two bound ranks get.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// Rank 0's, the owner's.
    pub owner: usize,
    /// Rank 1's, which works on the owner's memory.
    pub origin: usize,
}

impl Cores {
    /// Finds them.
    ///
    /// # Errors
    /// If this process may use only one core.
    pub fn find() -> Result<Self> {
        let topology = armci_core::topology::Topology::load()?;
        if topology.oversubscribed(2) {
            return Err(Error::Cores(topology.cores().len()));
        }
        Ok(Cores { owner: topology.core_of(0, 2)[0], origin: topology.core_of(1, 2)[0] })
    }
}

/// Ties the calling thread to a processor. One that cannot be tied measures all the same, less steadily.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

/// A word on a pair of cache lines of its own (processors fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Lonely(pub AtomicU64);

/// One way of a line between the cores in nanoseconds: two threads add to one word in turn, each as soon as it is its
/// turn. The best of several samples, since it is to tell the distance and not who else uses the cores.
pub fn transfer(cores: Cores) -> Option<f64> {
    const ROUNDS: u64 = 2000;
    const SAMPLES: u64 = 41;
    let word = Lonely::default();
    let play = |parity: u64, rounds: u64| {
        for turn in 0..rounds {
            while word.0.load(Ordering::Relaxed) != 2 * turn + parity {
                std::hint::spin_loop();
            }
            word.0.fetch_add(1, Ordering::AcqRel);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cores.owner);
            play(1, ROUNDS * SAMPLES);
        });
        let timed = scope.spawn(|| {
            pin(cores.origin);
            let mut samples = Vec::new();
            for sample in 0..SAMPLES {
                let start = Instant::now();
                for turn in sample * ROUNDS..(sample + 1) * ROUNDS {
                    while word.0.load(Ordering::Relaxed) != 2 * turn {
                        std::hint::spin_loop();
                    }
                    word.0.fetch_add(1, Ordering::AcqRel);
                }
                samples.push(start.elapsed().as_secs_f64() * 1e9 / (2 * ROUNDS) as f64);
            }
            samples.into_iter().min_by(f64::total_cmp)
        });
        timed.join().unwrap_or(None)
    })
}

/// What a core can do to a line it owns: a fetch-and-add, and a store of a loaded word.
pub fn owned(cores: Cores, samples: usize) -> (Option<Figure>, Option<Figure>) {
    let [word, from] = [Lonely::default(), Lonely::default()];
    std::thread::scope(|scope| {
        let timed = scope.spawn(|| {
            pin(cores.origin);
            let add = sample_plain(samples, 1000, || {
                std::hint::black_box(word.0.fetch_add(1, Ordering::AcqRel));
            });
            let copy = sample_plain(samples, 1000, || {
                std::hint::black_box(&word)
                    .0
                    .store(std::hint::black_box(&from).0.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            (add, copy)
        });
        timed.join().unwrap_or((None, None))
    })
}
