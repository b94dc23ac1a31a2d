//! The papers' measurements, one file each: what jobs a benchmark consists of, and what its ranks measure.
//!
//! A new one is a file with a function, and a line in [`STUDIES`].

mod acc;
mod am;
mod collectives;
mod contig;
mod derive;
mod existing;
mod fence;
mod overlap;
mod rmw;
mod strided;

use armci_core::World;

use crate::error::{Error, Result};
use crate::kernel;
use crate::record::Record;
use crate::setup::{Notes, Setup};

use derive::efficiency;

/// What the command line asked for; what it left open is empty.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Numbers of ranks.
    pub ranks: Vec<usize>,
    /// Virtual nodes; 0 is one.
    pub nodes: usize,
    /// Paths.
    pub protocols: Vec<String>,
    /// Who serves.
    pub progress: Vec<String>,
    /// Bytes.
    pub sizes: Vec<usize>,
    /// A short look.
    pub quick: bool,
    /// A kernel's length of an axis.
    pub n: Option<usize>,
    /// Its block.
    pub block: Option<usize>,
    /// Its steps.
    pub steps: Option<usize>,
    /// Its Reynolds number.
    pub reynolds: Option<f64>,
}

fn or<T: Clone>(wanted: &[T], default: impl IntoIterator<Item = T>) -> Vec<T> {
    if wanted.is_empty() { default.into_iter().collect() } else { wanted.to_vec() }
}

impl Wanted {
    /// The same, perhaps as a short look.
    #[must_use]
    pub fn with_quick(self, quick: bool) -> Self {
        Wanted { quick, ..self }
    }

    /// A job with each combination of what was asked for, or of these defaults.
    pub fn each(&self, study: &str, ranks: &[usize], protocols: &[&str], progress: &[&str]) -> Vec<Setup> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let nodes = self.nodes.max(1);
        // As many ranks as nodes, at least.
        let ranks = or(&self.ranks, ranks.iter().map(|ranks| *(ranks.max(&nodes))));
        let mut setups: Vec<Setup> = Vec::new();
        for &ranks in &ranks {
            for protocol in or(&self.protocols, words(protocols)) {
                for progress in or(&self.progress, words(progress)) {
                    let (protocol, quick, sizes) = (protocol.clone(), self.quick, self.sizes.clone());
                    let setup = Setup { ranks, nodes, protocol, progress, quick, sizes, ..Setup::pair(study) };
                    // Two defaults may have become one.
                    if !setups.contains(&setup) {
                        setups.push(setup);
                    }
                }
            }
        }
        setups
    }
}

/// A benchmark.
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in words.
    pub about: &'static str,
    /// Its jobs.
    pub jobs: fn(&Wanted) -> Vec<Setup>,
    /// What a rank of each does.
    pub measure: fn(&World, &Setup, &mut Notes) -> Result<()>,
    /// What follows from the records of all jobs, and what is wrong with them.
    pub conclude: fn(&mut Vec<Record>) -> Result<()>,
}

const NOTHING_MORE: fn(&mut Vec<Record>) -> Result<()> = |_| Ok(());

/// All of them.
pub static STUDIES: [Study; 16] = [
    Study {
        name: "contig",
        about: "Put and get by size and by rank (paper 003, Fig. 4-8)",
        jobs: contig::jobs,
        measure: contig::measure,
        conclude: |records| {
            efficiency(records);
            Ok(())
        },
    },
    Study {
        name: "strided",
        about: "1 MiB in rows, by the length of a row (Fig. 9)",
        jobs: |wanted| wanted.each("strided", &[2], &["rma", "am"], &["thread"]),
        measure: strided::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "acc",
        about: "Accumulate of 1 MiB by the length of a row: who applies it, and whether in a pipeline (Fig. 11)",
        jobs: |wanted| wanted.each("acc", &[2], &["rma", "am"], &["thread"]),
        measure: acc::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "rmw",
        about: "Fetch-and-add on rank 0's counter by the others, while it waits or computes (Fig. 10)",
        jobs: rmw::jobs,
        measure: rmw::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "am",
        about: "Active messages: round trip by payload, and many in a row",
        jobs: |wanted| wanted.each("am", &[2], &["rma"], &["thread", "none"]),
        measure: am::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "fence",
        about: "Fence behind puts: alone, by how many are under way, and to all ranks",
        jobs: |wanted| wanted.each("fence", if wanted.quick { &[2] } else { &[2, 4] }, &["rma", "am"], &["thread"]),
        measure: fence::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "barrier",
        about: "Barrier and synchronise by ranks",
        jobs: |wanted| {
            wanted.each("barrier", if wanted.quick { &[2, 4] } else { &[2, 4, 8, 16] }, &["rma"], &["thread"])
        },
        measure: collectives::barrier,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "collectives",
        about: "Broadcast, all-reduce, all-gather, exchange by size and ranks",
        jobs: |wanted| wanted.each("collectives", if wanted.quick { &[2] } else { &[2, 4] }, &["rma"], &["thread"]),
        measure: collectives::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "overlap",
        about: "How much of a transfer hides behind computation, by size",
        jobs: |wanted| wanted.each("overlap", &[2], &["rma", "am"], &["thread"]),
        measure: overlap::measure,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "threads",
        about: "Two threads of a rank beside two ranks, each (paper 004)",
        jobs: existing::threads_jobs,
        measure: existing::threads,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "cache",
        about: "Places found in the owner's table, in the cache of remote regions, and by asking the owner",
        jobs: existing::cache_jobs,
        measure: existing::cache,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "startup",
        about: "From before the launch to the end of the first barrier, by ranks",
        jobs: |wanted| {
            wanted.each("startup", if wanted.quick { &[2, 8] } else { &[2, 4, 8, 16] }, &["rma"], &["thread"])
        },
        measure: existing::startup,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "memory",
        about: "What a rank costs before and after a thousand allocations, by ranks; what contexts and regions cost",
        jobs: |wanted| {
            wanted.each("memory", if wanted.quick { &[2, 8] } else { &[2, 8, 32, 64] }, &["rma"], &["thread"])
        },
        measure: existing::memory,
        conclude: NOTHING_MORE,
    },
    Study {
        name: "lu",
        about: "LU without pivoting on blocks dealt in two dimensions, by pre-put and by pre-get (Fig. 12)",
        jobs: kernel::lu::jobs,
        measure: kernel::lu::measure,
        conclude: |records| {
            kernel::scaling(records, "lu");
            Ok(())
        },
    },
    Study {
        name: "boltzmann",
        about: "Lattice Boltzmann D2Q9, a cavity driven by its lid, with ghost cells (Fig. 13)",
        jobs: kernel::boltzmann::jobs,
        measure: kernel::boltzmann::measure,
        conclude: |records| {
            kernel::scaling(records, "boltzmann");
            Ok(())
        },
    },
    Study {
        name: "matmul",
        about: "Product of two matrices",
        jobs: kernel::matmul::jobs,
        measure: kernel::matmul::measure,
        conclude: |records| {
            kernel::scaling(records, "matmul");
            Ok(())
        },
    },
];

/// The benchmark of this name.
///
/// # Errors
/// [`Error::Configuration`] if there is none.
pub fn find(name: &str) -> Result<&'static Study> {
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| Error::Configuration(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_has_jobs_of_its_own_name() {
        for quick in [false, true] {
            let wanted = Wanted { quick, ..Wanted::default() };
            for study in &STUDIES {
                let jobs = (study.jobs)(&wanted);
                assert!(!jobs.is_empty(), "{}", study.name);
                assert!(jobs.iter().all(|job| job.study == study.name && job.quick == quick && job.nodes == 1));
                assert!(find(study.name).is_ok());
            }
        }
        assert!(find("nonsense").is_err_and(|error| error.to_string().contains("nonsense")));
    }

    #[test]
    fn what_was_asked_for_takes_the_place_of_defaults() {
        let wanted = Wanted { ranks: vec![3], nodes: 2, protocols: vec!["am".into()], ..Wanted::default() };
        let jobs = wanted.each("strided", &[2, 4], &["rma", "am"], &["thread", "none"]);
        let seen: Vec<_> = jobs.iter().map(|job| (job.ranks, job.nodes, &*job.protocol, &*job.progress)).collect();
        assert_eq!(seen, [(3, 2, "am", "thread"), (3, 2, "am", "none")]);
        let wanted = Wanted { nodes: 3, ..Wanted::default() };
        assert_eq!(wanted.each("x", &[1, 2], &["rma"], &["thread"]).len(), 1, "three ranks at least, once");
    }
}
