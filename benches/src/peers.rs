//! The peers beside us, in one run: what is the same operation, and how many times as fast ours is. Conclusions are ratios;
//! bare times are of this run alone.

use crate::error::Result;
use crate::jobs;
use crate::peer::Places;
use crate::programs::BEYOND;
use crate::record::{OURS, Record, show};
use crate::report::{Plan, Report};
use crate::setup::Setup;
use crate::table::grid;
use crate::timing::Effort;

/// Jobs of ours that have a peer.
const JOBS: [&str; 4] = ["direct", "crowd", "arrays", "spread"];

/// Names of the same thing: theirs, ours.
type Pairs = &'static [(&'static str, &'static str)];

/// Peers by the prefix of their figures, and what is compared: (their figure's name without it, ours).
const COMPARED: [(&str, &str, Pairs); 8] = [
    (
        "ARMCI-MPI",
        "",
        &[
            ("put_8", "put_8"),
            ("get_8", "get_8"),
            ("put_1048576", "put_1048576"),
            ("get_1048576", "get_1048576"),
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
    (
        "bare libfabric, between nodes",
        "libfabric_",
        &[
            ("read_8", "far_get_8"),
            ("write_8", "far_put_8"),
            ("read_1m", "far_get_1048576"),
            ("write_1m", "far_put_1048576"),
        ],
    ),
];

const RMA: Pairs = &[
    ("put_8", "put_8"),
    ("get_8", "get_8"),
    ("put_1048576", "put_1048576"),
    ("get_1048576", "get_1048576"),
    ("acc_1m", "acc_1m"),
    ("add_idle", "add_idle"),
    ("add_busy", "add_busy"),
];

/// Measures all sides; records, and what could not be had.
///
/// # Errors
/// As [`Report::take`].
pub fn take(quick: bool, places: Places) -> Result<(Vec<Record>, Vec<String>)> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let whole = Plan::table(true);
    let jobs = JOBS.iter().map(|name| jobs::find(name)).collect::<Result<_>>()?;
    let programs = whole.programs.iter().chain(&BEYOND).copied().collect();
    let mut report = Report::take(&Plan { jobs, programs, places }, effort, quick)?;
    let mut missing = std::mem::take(&mut report.peer_failures);
    // Between nodes: two ranks that share no memory.
    let far = Setup { nodes: 2, quick, sizes: vec![8, 1 << 20], ..Setup::pair("contig") };
    match far.run() {
        Ok(records) => {
            for (id, name) in [("contig/get", "far_get"), ("contig/put_fence", "far_put")] {
                for record in records.iter().filter(|record| record.id == id) {
                    let figure =
                        crate::figure::Figure { median: record.value, p99: record.p99.unwrap_or(record.value) };
                    report.ours.add(format!("{name}_{}", record.at.unwrap_or_default()), Some(figure));
                }
            }
        }
        Err(error) => missing.push(format!("between nodes: {error}")),
    }
    missing.push(ucx());
    Ok((compared(&report), missing))
}

/// What becomes of UCX: its own measuring program speaks of its own operations, between two processes it starts by
/// address; that it is there is told, so that who wants it can run it beside.
fn ucx() -> String {
    let there = std::process::Command::new("ucx_perftest").arg("-h").output().is_ok();
    if there {
        "UCX: run 'ucx_perftest' (-t ucp_put_lat, ucp_get, ucp_fadd) in two terminals: it is not started from here"
            .into()
    } else {
        "UCX: ucx_perftest is not installed: apt-get install ucx-utils".into()
    }
}

/// Each pair that both sides have.
fn compared(report: &Report) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for (peer, prefix, pairs) in COMPARED {
        for (theirs, ours) in pairs {
            let both = report.ours.get(ours).zip(report.peer.get(&format!("{prefix}{theirs}")));
            let Some((mine, other)) = both else { continue };
            let nodes = if ours.starts_with("far_") { 2 } else { 1 };
            let record = |side: &str, value: f64| Record {
                ranks: 2,
                nodes,
                side: side.into(),
                ..Record::new(format!("peers/{ours}"), value, "ns")
            };
            if !records.iter().any(|known| known.side == OURS && known.id == format!("peers/{ours}")) {
                records.push(record(OURS, mine.median));
            }
            records.push(Record { ratio: Some(other.median / mine.median), ..record(peer, other.median) });
        }
    }
    records
}

/// A table of ratios, and what is missing.
pub fn render(records: &[Record], missing: &[String]) -> String {
    let mut rows = vec![["what", "peer", "ours", "peer's", "ours is so many times as fast"].map(String::from)];
    for record in records.iter().filter(|record| record.side != OURS) {
        let ours = records.iter().find(|mine| mine.side == OURS && mine.id == record.id);
        let name = record.id.trim_start_matches("peers/").to_owned();
        let mine = ours.map_or_else(String::new, |mine| show(mine.value, &mine.unit));
        let ratio = record.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        rows.push([name, record.side.clone(), mine, record.show(), ratio]);
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
    use crate::figure::Figure;

    #[test]
    fn what_both_have_is_compared_by_its_ratio() {
        let mut report = Report::default();
        report.ours.add("put_8", Some(Figure::single(5.0)));
        report.ours.add("get_8", Some(Figure::single(5.0)));
        report.peer.add("put_8", Some(Figure::single(70.0)));
        report.peer.add("mpich_rma_put_8", Some(Figure::single(500.0)));
        let records = compared(&report);
        let of = |side: &str| records.iter().filter(|record| record.side == side).collect::<Vec<_>>();
        assert_eq!((of(OURS).len(), of("ARMCI-MPI")[0].ratio, of("MPICH RMA")[0].ratio), (1, Some(14.0), Some(100.0)));
        let text = render(&records, &["UCX: none".into()]);
        assert!(text.contains("100.00") && text.ends_with("UCX: none\n"), "{text}");
    }
}
