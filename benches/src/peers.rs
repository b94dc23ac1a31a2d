//! The peers beside us, in one run: what is the same operation, and how many times as fast ours is. Conclusions are ratios;
//! bare times are of this run alone.
//!
//! Some operations are measured by size on every side: their records stand on an axis. The rest are single figures.

use crate::contiguous::{BESIDE_PEERS, MIB};
use crate::error::Result;
use crate::figure::Figure;
use crate::jobs;
use crate::peer::Places;
use crate::programs::BEYOND;
use crate::record::{OURS, Record, show};
use crate::report::{Plan, Report};
use crate::setup::Setup;
use crate::table::grid;
use crate::timing::Effort;

/// Jobs of ours that have a peer.
const JOBS: [&str; 5] = ["direct", "crowd", "arrays", "spread", "between"];

/// Names of the same thing: theirs, ours.
type Pairs = &'static [(&'static str, &'static str)];

/// Peers, the prefix of their figures, and what is compared: (their figure's name without it, ours).
const COMPARED: [(&str, &str, Pairs); 10] = [
    (
        "ARMCI-MPI",
        "",
        &[
            ("put_dirty", "put_dirty"),
            ("acc_1m", "acc_1m"),
            ("add_idle", "add_idle"),
            ("add_busy", "add_busy"),
            ("barrier_2", "barrier_2"),
            ("barrier_8", "barrier_8"),
        ],
    ),
    (
        "Global Arrays",
        "",
        &[
            ("array_put_8", "array_put_8"),
            ("array_get_8", "array_get_8"),
            ("array_add", "array_add"),
            ("array_patch", "array_patch"),
            ("array_spread", "array_spread"),
            ("array_create", "array_create"),
        ],
    ),
    (
        "ARMCI-MPI, C beside C",
        "c_",
        &[
            ("put_8", "c_put_8"),
            ("get_8", "c_get_8"),
            ("acc_8", "c_acc_8"),
            ("put_rows", "c_put_rows"),
            ("get_rows", "c_get_rows"),
            ("add_busy", "c_add_busy"),
        ],
    ),
    (
        "Global Arrays on ARMCI-MPI, beside on ours",
        "ga_",
        &[
            ("array_put_8", "ga_array_put_8"),
            ("array_get_8", "ga_array_get_8"),
            ("array_add", "ga_array_add"),
            ("array_patch", "ga_array_patch"),
        ],
    ),
    (
        "Global Arrays on ComEx MPI-PR, beside on ours",
        "ga_mpi_pr_",
        &[
            ("array_put_8", "ga_asleep_array_put_8"),
            ("array_get_8", "ga_asleep_array_get_8"),
            ("array_add", "ga_asleep_array_add"),
        ],
    ),
    ("Open MPI RMA", "openmpi_rma_", RMA),
    ("MPICH RMA", "mpich_rma_", RMA),
    ("UCX", "ucx_", &[("add_idle", "add_idle"), ("add_busy", "add_busy")]),
    ("MPICH RMA", "mpi_", &[("add", "far_add"), ("add_busy", "far_add_shared"), ("get_8_busy", "far_get_8_shared")]),
    (
        "UCX",
        "ucx_far_",
        &[
            ("add", "far_add"),
            ("put_8_flow", "far_put_8_flow"),
            ("put_1m_stream", "far_put_1m"),
            ("get_1m_stream", "far_get_1m"),
        ],
    ),
];

const RMA: Pairs = &[("acc_1m", "acc_1m"), ("add_idle", "add_idle"), ("add_busy", "add_busy")];

/// An operation by size: its name here, ours without the size, and what it is called by each peer.
type Swept = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SWEPT: [Swept; 4] = [
    (
        "put",
        "put_",
        &[
            ("ARMCI-MPI", "c_put_"),
            ("Open MPI RMA", "openmpi_rma_put_"),
            ("MPICH RMA", "mpich_rma_put_"),
            ("UCX", "ucx_put_"),
            ("bare libfabric, shm", "fi_shm_write_"),
        ],
    ),
    (
        "get",
        "get_",
        &[
            ("ARMCI-MPI", "c_get_"),
            ("Open MPI RMA", "openmpi_rma_get_"),
            ("MPICH RMA", "mpich_rma_get_"),
            ("UCX", "ucx_get_"),
            ("bare libfabric, shm", "fi_shm_read_"),
        ],
    ),
    (
        "far_put",
        "far_put_fence_",
        &[("MPICH RMA", "mpi_put_"), ("UCX", "ucx_far_put_"), ("bare libfabric, tcp", "fi_write_")],
    ),
    (
        "far_get",
        "far_get_of_",
        &[("MPICH RMA", "mpi_get_"), ("UCX", "ucx_far_get_"), ("bare libfabric, tcp", "fi_read_")],
    ),
];

/// What is measured beyond the table, for records of this room: ours between nodes by size, into the report's figures.
///
/// # Errors
/// If the job fails.
pub fn far_by_size(quick: bool, report: &mut Report) -> Result<()> {
    let sizes = BESIDE_PEERS.to_vec();
    let job = Setup { nodes: 2, quick, sizes, ..Setup::pair("contig") }.with(crate::between::FABRIC);
    for record in job.run()? {
        let name = match record.id.as_str() {
            "contig/get" => "far_get_of",
            "contig/put_fence" => "far_put_fence",
            _ => continue,
        };
        let figure = Figure { median: record.value, p99: record.p99.unwrap_or(record.value) };
        report.ours.add(format!("{name}_{}", record.at.unwrap_or_default()), Some(figure));
    }
    Ok(())
}

/// Measures all sides; records, and what could not be had.
///
/// # Errors
/// As [`Report::take`].
pub fn take(quick: bool, places: Places) -> Result<(Vec<Record>, Vec<String>)> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let jobs = JOBS.iter().map(|name| jobs::find(name)).collect::<Result<_>>()?;
    let mut report = Report::take(&Plan { jobs, ..plan(places, true) }, effort, quick, |_| ())?;
    let mut missing = std::mem::take(&mut report.peer_failures);
    if let Err(error) = far_by_size(quick, &mut report) {
        missing.push(format!("between nodes by size: {error}"));
    }
    Ok((compared(&report), missing))
}

/// The table's plan, with the programs that are peers of nothing in the table.
pub fn plan(places: Places, with_peer: bool) -> Plan {
    let mut plan = Plan { places, ..Plan::table(with_peer) };
    if with_peer {
        plan.programs.extend(&BEYOND);
    }
    plan
}

/// Each figure that both sides have.
pub fn compared(report: &Report) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut add = |id: String, at: Option<usize>, ours: &str, peer: &str, theirs: &str| {
        let Some((mine, other)) = report.ours.get(ours).zip(report.peer.get(theirs)) else { return };
        let nodes = if ours.starts_with("far_") { 2 } else { 1 };
        let record = |side: &str, figure: Figure| {
            let new = Record::new(id.clone(), figure.median, "ns");
            let new = Record { ranks: 2, nodes, side: side.into(), p99: Some(figure.p99), ..new };
            at.map_or(new.clone(), |at| new.at("bytes", at as f64))
        };
        let of_ours = record(OURS, mine);
        if !records.iter().any(|known| known.key() == of_ours.key()) {
            records.push(of_ours);
        }
        records.push(Record { ratio: Some(other.median / mine.median), ..record(peer, other) });
    };
    for (name, ours, peers) in SWEPT {
        for bytes in BESIDE_PEERS {
            for (peer, theirs) in peers {
                // Some call a mebibyte so.
                let names = [format!("{theirs}{bytes}"), format!("{theirs}1m")];
                let found =
                    names.iter().take(if bytes == MIB { 2 } else { 1 }).find(|name| report.peer.get(name).is_some());
                if let Some(theirs) = found {
                    add(format!("peers/{name}/time"), Some(bytes), &format!("{ours}{bytes}"), peer, theirs);
                }
            }
        }
    }
    for (peer, prefix, pairs) in COMPARED {
        for (theirs, ours) in pairs {
            add(format!("peers/{ours}"), None, ours, peer, &format!("{prefix}{theirs}"));
        }
    }
    records
}

/// A table of ratios, and what is missing.
pub fn render(records: &[Record], missing: &[String]) -> String {
    let mut rows = vec![["what", "bytes", "peer", "ours", "peer's", "ours is so many times as fast"].map(String::from)];
    for record in records.iter().filter(|record| record.side != OURS) {
        let ours = records.iter().find(|mine| mine.side == OURS && mine.id == record.id && mine.at == record.at);
        let name = record.id.trim_start_matches("peers/").trim_end_matches("/time").to_owned();
        let at = record.at.map_or_else(String::new, |at| at.to_string());
        let mine = ours.map_or_else(String::new, |mine| show(mine.value, &mine.unit));
        let ratio = record.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        rows.push([name, at, record.side.clone(), mine, record.show(), ratio]);
    }
    let mut text = grid(rows);
    for line in missing {
        text += &format!("{line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_is_compared_by_its_ratio() {
        let mut report = Report::default();
        for (name, value) in [("put_8", 5.0), ("get_8", 5.0), ("add_idle", 7.0), ("far_get_of_1048576", 200.0)] {
            report.ours.add(name, Some(Figure::single(value)));
        }
        for (name, value) in
            [("c_put_8", 70.0), ("mpich_rma_put_8", 500.0), ("ucx_add_idle", 14.0), ("fi_read_1m", 100.0)]
        {
            report.peer.add(name, Some(Figure::single(value)));
        }
        let records = compared(&report);
        let of = |side: &str| records.iter().find(|record| record.side == side).unwrap();
        assert_eq!(records.iter().filter(|record| record.side == OURS).count(), 3, "none without a peer, none twice");
        assert_eq!((of("ARMCI-MPI").ratio, of("MPICH RMA").ratio), (Some(14.0), Some(100.0)));
        assert_eq!((of("UCX").at, of("UCX").ratio, of("UCX").nodes), (None, Some(2.0), 1));
        let far = of("bare libfabric, tcp");
        assert_eq!((far.at, far.ratio, far.nodes), (Some(1_048_576.0), Some(0.5), 2));
        let text = render(&records, &["UCX: it is not installed".into()]);
        assert!(text.contains("100.00") && text.ends_with("UCX: it is not installed\n"), "{text}");
    }

    /// What is said to be measured by size is, by the programs that say so.
    #[test]
    fn sizes_are_those_of_the_c_programs() {
        let header = include_str!("../peers/sampling.h");
        let (_, list) = header.split_once("SIZES[] = {").unwrap();
        let (list, _) = list.split_once('}').unwrap();
        let sizes: Vec<usize> =
            list.split(',').map(|word| if word.trim() == "MIB" { MIB } else { word.trim().parse().unwrap() }).collect();
        assert_eq!(sizes, BESIDE_PEERS);
    }
}
