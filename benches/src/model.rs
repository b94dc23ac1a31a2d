//! Paper 003's equations (1)-(9), with constants measured here: what they predict beside what was measured, and what they
//! say of 10^3 to 10^6 ranks.
//!
//! It stands here and not in the runtime: the constants are the benchmark's, and no room of the runtime asks for a
//! prediction. On a node the processor itself is the network: `o` is what a call takes, `G` the inverse of a copy's rate.
//!
//! `alpha` is what one more rank of the node costs in resident memory (its control block as far as it is touched, page
//! tables), the most that an endpoint takes anywhere: what follows from it for many ranks is an upper bound.
//!
//! What is predicted never comes from what it is held against: a get by message (8) is predicted from the round trip of
//! an empty message, a strided get (9) from contiguous ones.

use crate::error::{Error, Result};
use crate::record::Record;
use crate::stats::line;

/// Entries of the cache of remote regions, by default.
const CACHED: f64 = 1024.0;
/// Bytes of a rank's own part of an allocation when memory is measured, and of its neighbour's that it touches.
const TOUCHED: f64 = 2.0 * 1024.0;
/// The least that a region's entry may take: its base and its length.
const ENTRY: f64 = 16.0;
/// Structures that are alive, local buffers, contexts: the paper's largest.
const SIGMA: f64 = 7.0;
const TAU: f64 = 3.0;
const RHO: f64 = 2.0;

/// The paper's constants: times in nanoseconds, space in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// `o`: the processor's share of starting an operation.
    pub o: f64,
    /// `L`: what else passes before the first byte is there.
    pub l: f64,
    /// `G`: each further byte.
    pub g: f64,
    /// `o + L + o` of a message and its reply.
    pub message: f64,
    /// `alpha`, `beta`: an endpoint's space, and the time of a first contact.
    pub alpha: f64,
    /// See `alpha`.
    pub beta: f64,
    /// `gamma`, `delta`: a region's.
    pub gamma: f64,
    /// See `gamma`.
    pub delta: f64,
    /// `epsilon`, `tau_ctx`: a context's.
    pub epsilon: f64,
    /// See `epsilon`.
    pub context: f64,
    /// The time between two draws from a counter that all draw from.
    pub service: f64,
    /// The time of a draw when nobody else draws.
    pub draw: f64,
}

impl Constants {
    /// (1): space of contexts.
    pub fn context_space(&self, rho: f64) -> f64 {
        rho * self.epsilon
    }

    /// (2): time of making them.
    pub fn context_time(&self, rho: f64) -> f64 {
        rho * self.context
    }

    /// (3): space of endpoints of a clique.
    pub fn endpoint_space(&self, zeta: f64, rho: f64) -> f64 {
        zeta * self.alpha * rho
    }

    /// (4): time of making them.
    pub fn endpoint_time(&self, zeta: f64, rho: f64) -> f64 {
        zeta * self.beta * rho
    }

    /// (5): space of regions, of which so many remote ones are kept at most.
    pub fn region_space(&self, tau: f64, sigma: f64, zeta: f64, kept: f64) -> f64 {
        tau * self.gamma + (sigma * zeta).min(kept) * self.gamma
    }

    /// (6): time of making them.
    pub fn region_time(&self, tau: f64, sigma: f64) -> f64 {
        (tau + sigma) * self.delta
    }

    /// (7): a get by remote memory access.
    pub fn direct(&self, bytes: f64) -> f64 {
        self.o + self.l + (bytes - 1.0) * self.g
    }

    /// (8): a get by message. On a node its bytes are copied twice.
    pub fn fall_back(&self, bytes: f64) -> f64 {
        self.message + (bytes - 1.0) * 2.0 * self.g
    }

    /// (9): a strided transfer in chunks of `chunk` bytes.
    pub fn strided(&self, bytes: f64, chunk: f64) -> f64 {
        self.o * bytes / chunk + bytes * self.g
    }

    /// A draw, with so many ranks that do nothing but draw: one after the other, once they are enough.
    pub fn draw_among(&self, ranks: f64) -> f64 {
        self.draw.max((ranks - 1.0) * self.service)
    }

    /// Finds them in records.
    ///
    /// # Errors
    /// [`Error::Asked`] names what is missing.
    pub fn of(records: &[Record]) -> Result<Self> {
        let of = |id: &str, protocol: &str| {
            let mut points: Vec<(f64, f64)> = records
                .iter()
                .filter(|record| record.id == id && record.protocol == protocol && record.nodes == 1)
                .filter_map(|record| Some((record.at?, record.value)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let first = |id: &str, protocol: &str| need(id, of(id, protocol).first().map(|(_, value)| *value));
        let get = of("contig/get", "rma");
        let (start, g) = need("contig/get", line(&get))?;
        // Initiation cannot take more than all there is before the bytes.
        let o = first("contig/put_start", "rma")?.min(start.max(0.1));
        let resident = of("memory/resident_before", "rma");
        let rates = of("rmw/owner_waits/rate", "rma");
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        Ok(Constants {
            o,
            l: (start - o).max(0.0),
            g: g.max(1e-4),
            message: first("am/round_trip", "rma")?,
            alpha: line(&resident).map_or(0.0, |(_, slope)| slope.max(0.0)),
            beta: first("memory/first_contact", "rma")?,
            gamma: (first("memory/resident_per_allocation", "rma")? - TOUCHED).max(ENTRY),
            delta: first("memory/region_time", "rma")?,
            epsilon: first("memory/context_bytes", "rma")?,
            context: first("memory/context_time", "rma")?,
            service: need("rmw/owner_waits/rate", (best > 0.0).then(|| 1e9 / best))?,
            draw: first("rmw/owner_waits", "rma")?,
        })
    }

    /// The constants by name.
    fn named(&self) -> [(&'static str, f64, &'static str); 12] {
        [
            ("o", self.o, "ns"),
            ("L", self.l, "ns"),
            ("G", self.g, "ns/byte"),
            ("o+L+o", self.message, "ns"),
            ("alpha", self.alpha, "bytes"),
            ("beta", self.beta, "ns"),
            ("gamma", self.gamma, "bytes"),
            ("delta", self.delta, "ns"),
            ("epsilon", self.epsilon, "bytes"),
            ("tau_ctx", self.context, "ns"),
            ("counter service", self.service, "ns"),
            ("counter draw", self.draw, "ns"),
        ]
    }
}

/// What was measured, or which benchmark would have.
fn need<T>(what: &str, value: Option<T>) -> Result<T> {
    let run = what.split('/').next().unwrap_or(what);
    value.ok_or_else(|| Error::Asked(format!("the model needs {what}, which was not measured: run '{run}' too")))
}

/// Predicted and measured side by side, and extrapolated.
///
/// # Errors
/// As [`Constants::of`].
pub fn records(measured: &[Record]) -> Result<Vec<Record>> {
    let constants = Constants::of(measured)?;
    let predicted =
        |id: &str, value: f64, unit: &str| Record { side: "predicted".into(), ..Record::new(id, value, unit) };
    let mut records: Vec<Record> = constants
        .named()
        .into_iter()
        .map(|(name, value, unit)| Record { nodes: 1, ..Record::new(format!("model/constants/{name}"), value, unit) })
        .collect();
    let mut beside = |id: &str, of: &str, protocol: &str, axis: &str, predict: &dyn Fn(f64) -> f64| {
        for record in
            measured.iter().filter(|record| record.id == of && record.protocol == protocol && record.nodes == 1)
        {
            let Some(at) = record.at else { continue };
            let value = predict(at);
            let times = record.value / value;
            records.push(predicted(id, value, "ns").at(axis, at));
            let note = format!("{times:.2} times the prediction");
            let (limit, of_limit) = (None, None);
            records.push(Record { id: id.into(), limit, of_limit, note: Some(note), ..record.clone() });
        }
    };
    beside("model/7_get", "contig/get", "rma", "bytes", &|bytes| constants.direct(bytes));
    beside("model/8_get_by_message", "contig/get", "am", "bytes", &|bytes| constants.fall_back(bytes));
    beside("model/9_strided_get", "strided/get", "rma", "row bytes", &|row| constants.strided((1 << 20) as f64, row));
    beside("model/counter_draw", "rmw/owner_waits", "rma", "ranks", &|ranks| constants.draw_among(ranks));
    for ranks in [1e3, 1e4, 1e5, 1e6] {
        let mut far = |id: &str, value: f64, unit: &str| {
            let record = Record { ranks: ranks as usize, ..predicted(id, value, unit).at("ranks", ranks) };
            let bound = id.ends_with("endpoints_of_all") || id.ends_with("all_with_a_cache");
            records.push(if bound {
                record.remark("at most: endpoints as large as a rank's of this node")
            } else {
                record
            });
        };
        let contexts = constants.context_space(RHO);
        let endpoints = constants.endpoint_space(ranks, RHO);
        let regions = |kept: f64| constants.region_space(TAU, SIGMA, ranks, kept);
        far("model/memory/1_contexts", contexts, "bytes");
        far("model/memory/3_endpoints_of_all", endpoints, "bytes");
        far("model/memory/5_regions_of_all", regions(f64::INFINITY), "bytes");
        far("model/memory/5_regions_cached", regions(CACHED), "bytes");
        far("model/memory/all_with_a_cache", contexts + endpoints + regions(CACHED), "bytes");
        far("model/setup/2_contexts", constants.context_time(RHO), "ns");
        far("model/setup/4_endpoints_of_all", constants.endpoint_time(ranks, RHO), "ns");
        far("model/setup/6_regions", constants.region_time(TAU, SIGMA), "ns");
        far("model/counter/draw", constants.draw_among(ranks), "ns");
        far("model/counter/at_saturation", 1e9 / constants.service, "1/s");
    }
    for chunk in (3..=20).map(|power| f64::from(1 << power)) {
        let rate = (1 << 20) as f64 / constants.strided((1 << 20) as f64, chunk);
        records.push(predicted("model/strided_rate", rate, "GB/s").at("row bytes", chunk));
    }
    Ok(records)
}

/// What must be measured before.
pub const NEEDED: [&str; 5] = ["contig", "am", "strided", "rmw", "memory"];

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Records from which the constants are known.
    pub fn canned() -> Vec<Record> {
        let on =
            |record: Record| Record { ranks: 2, nodes: 1, protocol: "rma".into(), progress: "thread".into(), ..record };
        let mut records: Vec<Record> = [16.0, 256.0, 4096.0, 1048576.0]
            .into_iter()
            .map(|bytes| on(Record::new("contig/get", 10.0 + 0.02 * bytes, "ns").at("bytes", bytes)))
            .collect();
        for (id, value, unit, axis, at) in [
            ("contig/put_start", 4.0, "ns", "bytes", 8.0),
            ("am/round_trip", 300.0, "ns", "bytes", 8.0),
            ("memory/resident_before", 1000.0, "bytes", "ranks", 2.0),
            ("memory/resident_before", 1400.0, "bytes", "ranks", 6.0),
            ("memory/first_contact", 50.0, "ns", "ranks", 2.0),
            ("memory/resident_per_allocation", 2112.0, "bytes", "ranks", 2.0),
            ("memory/region_time", 900.0, "ns", "ranks", 2.0),
            ("memory/context_bytes", 524288.0, "bytes", "ranks", 2.0),
            ("memory/context_time", 70000.0, "ns", "ranks", 2.0),
            ("rmw/owner_waits", 20.0, "ns", "ranks", 2.0),
            ("rmw/owner_waits/rate", 1e8, "1/s", "ranks", 4.0),
            ("strided/get", 300000.0, "ns", "row bytes", 16.0),
        ] {
            records.push(on(Record::new(id, value, unit).at(axis, at)));
        }
        records
    }

    #[test]
    fn constants_are_found_and_equations_are_the_papers() {
        let c = Constants::of(&canned()).unwrap();
        assert!((c.o - 4.0).abs() < 1e-9 && (c.l - 6.0).abs() < 1e-6 && (c.g - 0.02).abs() < 1e-9, "{c:?}");
        assert!((c.alpha - 100.0).abs() < 1e-6 && c.gamma == 64.0 && (c.service - 10.0).abs() < 1e-9, "{c:?}");
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
        assert!(close(c.direct(1001.0), 4.0 + 6.0 + 20.0));
        assert!(close(c.fall_back(1001.0), 300.0 + 40.0));
        assert!(close(c.strided(1024.0, 16.0), 4.0 * 64.0 + 20.48));
        assert!(close(c.context_space(2.0), 1048576.0) && close(c.context_time(2.0), 140000.0));
        assert!(close(c.endpoint_space(10.0, 2.0), 2000.0) && close(c.endpoint_time(10.0, 2.0), 1000.0));
        assert!(close(c.region_space(3.0, 7.0, 10.0, 1e9), 3.0 * 64.0 + 70.0 * 64.0));
        assert!(close(c.region_space(3.0, 7.0, 1e6, 1024.0), 1027.0 * 64.0));
        assert!(close(c.region_time(3.0, 7.0), 9000.0));
        assert!(close(c.draw_among(2.0), 20.0) && close(c.draw_among(1001.0), 10000.0));
    }

    #[test]
    fn what_is_missing_is_named() {
        let records: Vec<Record> = canned().into_iter().filter(|record| !record.id.starts_with("am/")).collect();
        assert!(Constants::of(&records).is_err_and(|error| error.to_string().contains("run 'am' too")));
    }

    #[test]
    fn predictions_stand_beside_measurements() {
        let records = records(&canned()).unwrap();
        let of = |id: &str, side: &str| records.iter().filter(|r| r.id == id && r.side == side).count();
        assert_eq!((of("model/7_get", "predicted"), of("model/7_get", "ours")), (4, 4));
        assert_eq!(of("model/memory/all_with_a_cache", "predicted"), 4);
        assert!(records.iter().all(|record| record.value.is_finite()));
    }
}
