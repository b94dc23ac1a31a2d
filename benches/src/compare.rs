//! Two files of records: what became slower by more than noise.
//!
//! Absolute figures drift from day to day on shared machines. So a figure that names a limit is compared by its share of
//! that limit, which was measured in its own run; only what has none, by its value. A figure moved if it did so by more
//! than the noise that is allowed, and beyond what the first run's own samples were spread over. Peers and the machine are
//! not compared: they are what ours is held against.

use std::fmt::Write;

use crate::record::{Document, OURS, Record};
use crate::table::grid;

/// How two records of one thing compare.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// What it is.
    pub key: String,
    /// How many times as long, or as little, the second is; above 1 is worse.
    pub worse: f64,
    /// Both, as people read them.
    pub shown: [String; 2],
    /// Whether by shares of limits.
    pub by_limit: bool,
    /// How far the first's own samples reach: so many times its median.
    pub spread: f64,
    /// Whether a target that was met is missed.
    pub lost: bool,
}

/// All changes, the worst first; and how many records only one of the two has.
pub fn changes(before: &Document, after: &Document) -> (Vec<Change>, usize) {
    let mut found = Vec::new();
    let mut alone = after.records.len();
    for old in &before.records {
        let key = old.key();
        let Some(new) = after.records.iter().find(|new| new.key() == key && new.unit == old.unit) else {
            alone += 1;
            continue;
        };
        alone -= 1;
        found.extend(change(key, old, new));
    }
    found.sort_by(|a, b| b.worse.total_cmp(&a.worse));
    (found, alone)
}

fn change(key: String, old: &Record, new: &Record) -> Option<Change> {
    // Errors within what may be are no speed, nor is a molecule's energy.
    if ["error", "hartree"].contains(&old.unit.as_str()) || old.side != OURS {
        return None;
    }
    let by_limit = old.limit == new.limit && old.of_limit.is_some() && new.of_limit.is_some();
    let (a, b) = if by_limit { (old.of_limit?, new.of_limit?) } else { (old.value, new.value) };
    // Shares of limits of times are times themselves.
    let rate = !by_limit && old.more_is_better();
    let worse = if rate { a / b } else { b / a };
    // Nine of ten samples lie there.
    let spread =
        if old.more_is_better() { old.low.map(|low| old.value / low) } else { old.high.map(|high| high / old.value) };
    let spread = spread.filter(|spread| spread.is_finite()).map_or(1.0, |spread| spread.max(1.0));
    let lost = old.met == Some(true) && new.met == Some(false);
    worse.is_finite().then(|| Change { key, worse, shown: [old.show(), new.show()], by_limit, spread, lost })
}

/// The table of what became worse or better by more than `noise` (0.1: a tenth), and whether anything became worse.
pub fn render(before: &Document, after: &Document, noise: f64) -> (String, bool) {
    let (all, alone) = changes(before, after);
    let compared = all.len();
    let mut text = String::new();
    let select = |worse: bool| {
        all.iter().filter(move |change| {
            let most = (1.0 + noise).max(change.spread);
            if worse { change.worse > most } else { change.worse < 1.0 / most }
        })
    };
    for (title, worse) in [("WORSE", true), ("better", false)] {
        let mut rows = vec![["what", "before", "after", "times as long", "by"].map(String::from)];
        rows.extend(select(worse).map(|change| {
            let [old, new] = change.shown.clone();
            let by = if change.by_limit { "share of its limit" } else { "value" };
            [change.key.clone(), old, new, format!("{:.2}", change.worse), by.into()]
        }));
        if rows.len() > 1 {
            let _ = writeln!(text, "{title}: {}", rows.len() - 1);
            text.push_str(&grid(rows));
        }
    }
    let lost: Vec<&Change> = all.iter().filter(|change| change.lost).collect();
    for change in &lost {
        let _ = writeln!(text, "target lost: {} ({}, then {})", change.key, change.shown[0], change.shown[1]);
    }
    let regressed = select(true).next().is_some();
    for (name, document) in [("before", before), ("after", after)] {
        if document.machine.others > 0.05 {
            let _ = writeln!(text, "WARNING: {name}: other programs used the machine meanwhile.");
        }
    }
    if before.machine.processor != after.machine.processor {
        text.push_str("WARNING: the two were measured on different processors.\n");
    }
    let _ = writeln!(
        text,
        "{compared} compared, {alone} in one file only, noise {:.0} % or the samples' spread",
        noise * 100.0
    );
    (text, regressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(records: &[Record]) -> Document {
        Document { records: records.to_vec(), ..Document::default() }
    }

    #[test]
    fn what_became_slower_is_flagged_and_what_became_faster_is_told() {
        let get = |value: f64, of_limit: Option<f64>| Record {
            of_limit,
            ..Record::new("contig/get", value, "ns").at("bytes", 8.0).against("copy/8")
        };
        let rate = |value: f64| Record::new("lu/rate", value, "GFLOP/s");
        let of = |a: &[Record], b: &[Record]| render(&document(a), &document(b), 0.1);
        let (text, regressed) = of(&[get(10.0, None), rate(5.0)], &[get(12.0, None), rate(8.0)]);
        assert!(regressed && text.contains("WORSE: 1") && text.contains("better: 1"), "{text}");
        assert!(!of(&[get(10.0, None)], &[get(10.5, None)]).1, "noise");
        assert!(of(&[rate(5.0)], &[rate(4.0)]).1);
        // On a day on which everything takes twice as long, nothing regressed.
        assert!(!of(&[get(10.0, Some(2.0))], &[get(20.0, Some(2.0))]).1);
        assert!(of(&[get(10.0, Some(2.0))], &[get(10.0, Some(3.0))]).1);
        // What was spread over as much before did not move; a peer that became slower is not our loss.
        let spread = |record: Record| Record { high: Some(13.0), ..record };
        assert!(!of(&[spread(get(10.0, None))], &[get(12.0, None)]).1);
        assert!(of(&[spread(get(10.0, None))], &[get(14.0, None)]).1);
        let peer = |value| Record { side: "UCX".into(), ..get(value, None) };
        assert!(!of(&[peer(10.0)], &[peer(20.0)]).1);
        let (text, _) = of(&[get(10.0, None).asked(10.5)], &[get(10.9, None).asked(10.5)]);
        assert!(text.contains("target lost: contig/get@8"), "{text}");
        let (text, _) = of(&[get(10.0, None)], &[rate(1.0)]);
        assert!(text.contains("0 compared, 2 in one file only"), "{text}");
    }
}
