//! Put and get over sizes from 8 bytes to 4 MiB, ours beside the peer's.

use crate::contiguous::SWEEP;
use crate::jobs::SWEEP_JOB;
use crate::peer::Places;
use crate::programs;
use crate::report::{Plan, Report};
use crate::row::Unit;
use crate::table::{grid, preface};

/// What a sweep consists of.
pub fn plan(with_peer: bool) -> Plan {
    let programs = if with_peer { vec![programs::SWEEP] } else { Vec::new() };
    Plan { jobs: vec![&SWEEP_JOB], programs, places: Places::default() }
}

/// The table of a sweep: time and rate of each size.
pub fn render(report: &Report) -> String {
    let header = ["bytes", "put", "", "ARMCI-MPI", "ratio", "get", "", "ARMCI-MPI", "ratio"].map(String::from);
    let rows = SWEEP.map(|bytes| {
        let [put, get] = ["put", "get"].map(|operation| {
            let name = format!("{operation}_{bytes}");
            let [ours, theirs] = [&report.ours, &report.peer].map(|side| side.get(&name).map(|figure| figure.median));
            let text = |value: Option<f64>, unit: Unit| value.map_or_else(|| "-".into(), |value| unit.show(value));
            let ratio = ours.zip(theirs).map_or_else(|| "-".into(), |(ours, theirs)| format!("{:.2}", theirs / ours));
            [text(ours, Unit::Time), text(ours, Unit::Rate(bytes)), text(theirs, Unit::Time), ratio]
        });
        let mut cells = [bytes.to_string()].into_iter().chain(put).chain(get);
        std::array::from_fn::<String, 9, _>(|_| cells.next().unwrap_or_default())
    });
    let mut text = preface(report) + &grid(std::iter::once(header).chain(rows).collect());
    for reason in &report.peer_failures {
        text.push_str(&format!("{reason}\n"));
    }
    text
}
