//! The machine's limits by name, each measured when it is first asked for, in the same run as what is held against it:
//!
//! - `copy/N`, `axpy/N`: the best copy of N bytes, the best loop `y += a * x` over N bytes, warm;
//! - `line`: a cache line passes between the two cores, one way; `atomic`: a fetch-and-add on a line that is owned;
//! - `gemm`: a thousand million operations of the local library's product of matrices on one core;
//! - `stream`: a million cells of nine populations, read and written at the rate of the best copy of 16 MiB;
//! - `tcp`: a round trip of 8 bytes over the loopback: what there is between virtual nodes.

use std::collections::BTreeMap;

use armci_core::topology::Topology;

use crate::contiguous::MIB;
use crate::error::{Error, Result};
use crate::limits;
use crate::line::{self, Cores};
use crate::record::Record;
use crate::timing::Effort;

/// Bytes of a copy that no cache keeps.
const STREAM: usize = 16 * MIB;
/// Bytes that a million cells of nine populations read; as many are written.
const CELLS: f64 = 72e6;

/// Limits known so far, in nanoseconds.
#[derive(Debug)]
pub struct Ceiling {
    cores: Cores,
    samples: usize,
    known: BTreeMap<String, Option<f64>>,
}

impl Ceiling {
    /// Nothing measured yet.
    ///
    /// # Errors
    /// If there are no two cores.
    pub fn new(effort: Effort) -> Result<Self> {
        Ok(Ceiling { cores: Cores::find()?, samples: (effort.samples / 4).max(15), known: BTreeMap::new() })
    }

    /// The limit of this name; none if there is no such limit, or it could not be measured.
    pub fn of(&mut self, name: &str) -> Option<f64> {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let (cores, samples) = (self.cores, self.samples);
        let median = |figure: Option<crate::figure::Figure>| figure.map(|figure| figure.median);
        let bytes = |text: &str| text.parse().ok().filter(|bytes| (1..=64 * MIB).contains(bytes));
        let measured = match name.split_once('/') {
            Some(("copy", size)) => bytes(size).and_then(|bytes| median(limits::copy_of(cores, bytes, samples))),
            Some(("axpy", size)) => bytes(size).and_then(|bytes| median(limits::loop_of(cores, bytes, samples))),
            None if name == "line" => line::transfer(cores),
            None if name == "atomic" => median(line::owned(cores, samples).0),
            None if name == "gemm" => median(limits::product(cores, samples.min(20))),
            None if name == "stream" => self.of(&format!("copy/{STREAM}")).map(|ns| ns / STREAM as f64 * CELLS),
            None if name == "tcp" => median(limits::tcp(cores, samples)),
            _ => None,
        };
        self.known.insert(name.into(), measured);
        measured
    }

    /// Holds each record that names a limit against it.
    pub fn apply(&mut self, records: &mut [Record]) {
        let cores = Topology::load().map_or(1, |topology| topology.cores().len()).max(1);
        for record in records.iter_mut() {
            let Some(limit) = record.limit.clone().and_then(|name| self.of(&name)).filter(|limit| *limit > 0.0) else {
                continue;
            };
            // A rate's limit is so many in the limit's time on each core that has a rank.
            record.of_limit = match record.unit.as_str() {
                "ns" => Some(record.value / limit),
                "GFLOP/s" | "MLUP/s" => Some(record.value * limit / 1e9 / record.ranks.clamp(1, cores) as f64),
                _ => None,
            };
        }
    }

    /// All that `armci-bench limits` shows.
    ///
    /// # Errors
    /// If none could be measured.
    pub fn table(&mut self) -> Result<Vec<Record>> {
        let sizes = [64, 512, 4 << 10, 64 << 10, MIB, 16 * MIB];
        let mut records = Vec::new();
        let mut add = |name: &str, id: &str, at: Option<usize>, records: &mut Vec<Record>| {
            let Some(value) = self.of(name) else { return };
            let record = Record { side: "machine".into(), nodes: 1, ..Record::new(id, value, "ns") };
            let rate = at.map(|bytes| Record {
                side: "machine".into(),
                nodes: 1,
                ..Record::new(format!("{id}/rate"), bytes as f64 / value, "GB/s").at("bytes", bytes as f64)
            });
            records.push(if let Some(at) = at { record.at("bytes", at as f64) } else { record });
            records.extend(rate);
        };
        for kind in ["copy", "axpy"] {
            for bytes in sizes {
                add(&format!("{kind}/{bytes}"), &format!("limits/{kind}"), Some(bytes), &mut records);
            }
        }
        for name in ["line", "atomic", "tcp", "gemm", "stream"] {
            add(name, &format!("limits/{name}"), None, &mut records);
        }
        if records.is_empty() {
            Err(Error::Asked("no limit of this machine could be measured".into()))
        } else {
            Ok(records)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_measured_once_and_named_by_its_bytes() {
        let known = [("copy/8".to_owned(), Some(2.0)), ("line".into(), None), ("gemm".into(), Some(1e8))].into();
        let mut ceiling = Ceiling { cores: Cores { owner: 0, origin: 0 }, samples: 2, known };
        let mut records = [Record::new("x", 5.0, "ns").against("copy/8"), Record::new("y", 5.0, "ns").against("line")];
        ceiling.apply(&mut records);
        assert_eq!([records[0].of_limit, records[1].of_limit], [Some(2.5), None]);
        // 10 GFLOP/s on a core: 4 are two fifths of that.
        let mut rate = [Record { ranks: 1, ..Record::new("z", 4.0, "GFLOP/s").against("gemm") }];
        ceiling.apply(&mut rate);
        assert!((rate[0].of_limit.unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(ceiling.of("copy/nonsense"), None);
        assert_eq!(ceiling.of("nonsense"), None);
        assert!(ceiling.of("copy/4096").is_some_and(|ns| ns > 0.0));
        assert!(ceiling.known.contains_key("copy/4096"));
    }
}
