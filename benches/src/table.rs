//! The table: each of our figures beside the machine's limit, the published anchor, and the peer.

use std::fmt::Write;

use crate::figure::Figure;
use crate::report::Report;
use crate::row::{Row, Unit};
use crate::rows::{LIMITS, groups};

/// How much slower than the peer still counts as equal: what one run differs from the next.
const NOISE: f64 = 1.05;

const HEADER: [&str; 9] =
    ["what", "ours", "p99", "limit, this run", "asked", "anchor", "peer, this run", "ratio", "verdict"];

/// What a row comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that is asked of it.
    Good,
    /// Slower than the peer, on a default path.
    SlowerThanPeer,
    /// Beyond what was promised.
    AboveLimit,
    /// There was nothing to judge by.
    Open,
}

impl Verdict {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Good => "ok",
            Verdict::SlowerThanPeer => "SLOWER",
            Verdict::AboveLimit => "ABOVE LIMIT",
            Verdict::Open => "-",
        }
    }
}

/// How many times as fast as the peer's ours is.
pub fn ratio(row: &Row, report: &Report) -> Option<f64> {
    let (ours, theirs) = (report.ours.get(row.name)?.median, report.peer.get(row.peer?)?.median);
    Some(if row.unit == Unit::Share { ours / theirs } else { theirs / ours })
}

/// What a row comes to.
pub fn verdict(row: &Row, report: &Report) -> Verdict {
    let Some(ours) = report.ours.get(row.name) else { return Verdict::Open };
    let most = row.most(report);
    if most.is_some_and(|most| ours.median > most) || row.tail_at_most.is_some_and(|most| ours.p99 > most) {
        return Verdict::AboveLimit;
    }
    if row.bound.is_some() && most.is_none() {
        return Verdict::Open;
    }
    match ratio(row, report).filter(|_| row.default_path) {
        Some(ratio) if ratio * NOISE < 1.0 => Verdict::SlowerThanPeer,
        Some(_) => Verdict::Good,
        None if row.bound.is_some() => Verdict::Good,
        None => Verdict::Open,
    }
}

fn show_median(figure: Option<Figure>, unit: Unit) -> String {
    figure.map_or_else(|| "-".into(), |figure| unit.show(figure.median))
}

/// What is known about the machine and the run, then the table, then what is wrong with it.
pub fn render(report: &Report) -> String {
    let mut text = preface(report);
    // What was not measured was not asked for.
    let measured = |row: &&Row| report.ours.get(row.name).is_some();
    for group in groups().filter(|group| group.rows.iter().any(|row| measured(&row))) {
        let rows = group.rows.iter().filter(measured).map(|row| cells(row, report));
        let _ = writeln!(text, "{}", group.title);
        text.push_str(&grid(std::iter::once(HEADER.map(String::from)).chain(rows).collect()));
        text.push('\n');
    }
    for reason in &report.peer_failures {
        let _ = writeln!(text, "{reason}");
    }
    text.push_str(
        "ratio: how many times as fast as the peer; a default path is SLOWER beyond 5 % (the noise of a run).\n",
    );
    text
}

/// What is known about the machine and the run.
pub fn preface(report: &Report) -> String {
    let mut text = String::new();
    let passes: Vec<String> = report.line.iter().map(|line| format!("{line:.0}")).collect();
    let _ = writeln!(
        text,
        "cores: {} (a cache line passes in {} ns, measured before each round and at the end); load of others {:.0} %; rounds {}",
        report.class.name(),
        passes.join(", "),
        report.others * 100.0,
        report.rounds
    );
    if report.flipped() {
        text.push_str(
            "WARNING: the distance of the cores changed in between: figures of near and far are mixed; run again.\n",
        );
    }
    if report.others > 0.05 {
        text.push_str("WARNING: other programs used this machine meanwhile: the figures are not to be trusted.\n");
    }
    for (name, what, unit) in LIMITS {
        let _ = writeln!(text, "limit: {what}: {}", show_median(report.machine.get(name), *unit));
    }
    text.push('\n');
    text
}

fn cells(row: &Row, report: &Report) -> [String; 9] {
    let ours = report.ours.get(row.name);
    let tail = ours.filter(|_| row.tail).map_or_else(String::new, |figure| row.unit.show(figure.p99));
    let limit = row.limit(report).map_or_else(
        || "-".into(),
        |(way, limit)| {
            let which = if way.is_empty() { String::new() } else { format!(" ({way})") };
            row.unit.show(limit.median) + &which
        },
    );
    let mut asked = row.most(report).map_or_else(|| "-".into(), |most| row.unit.show_bound(most));
    if let Some(most) = row.tail_at_most {
        let _ = write!(asked, ", p99 {}", row.unit.show_bound(most));
    }
    let peer = row.peer.map_or_else(|| "-".into(), |name| show_median(report.peer.get(name), row.unit));
    [
        row.what.to_owned() + &place(row, report),
        show_median(ours, row.unit),
        tail,
        limit,
        asked,
        row.anchor.of(report.class).into(),
        peer,
        ratio(row, report).map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
        verdict(row, report).name().into(),
    ]
}

/// At which offsets of target and source it was taken, if that was noted.
fn place(row: &Row, report: &Report) -> String {
    let [to, from] = ["to", "from"].map(|side| report.ours.get(&format!("{}_{side}", row.name)));
    let text = |(to, from): (Figure, Figure)| format!(", to +{:.0} from +{:.0}", to.median, from.median);
    to.zip(from).map_or_else(String::new, text)
}

/// Columns as wide as they need to be.
pub fn grid<const N: usize>(rows: Vec<[String; N]>) -> String {
    let width: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(width).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if number == 0 {
            let _ = writeln!(text, "|{}|", width.map(|width| "-".repeat(width + 2)).join("|"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Bound, Limit, ROW};
    use crate::rows::rows;

    fn row(name: &str) -> &'static Row {
        rows().find(|row| row.name == name).unwrap()
    }

    fn report(name: &str, ours: f64, theirs: Option<f64>) -> Report {
        let mut report = Report::default();
        report.ours.add(name, Some(Figure::single(ours)));
        report.peer.add(name, theirs.map(Figure::single));
        report
    }

    #[test]
    fn a_default_path_slower_than_the_peer_is_named() {
        let of = |ours, theirs| verdict(row("put_8"), &report("put_8", ours, theirs));
        assert_eq!(of(5.0, Some(70.0)), Verdict::Good);
        assert_eq!(of(71.0, Some(70.0)), Verdict::Good, "noise");
        assert_eq!(of(80.0, Some(70.0)), Verdict::SlowerThanPeer);
        assert_eq!(of(5.0, None), Verdict::Open);
    }

    #[test]
    fn a_promise_is_kept_or_not() {
        let of = |ours| verdict(row("add_served"), &report("add_served", ours, None));
        assert_eq!(of(24_900.0), Verdict::Good);
        assert_eq!(of(25_100.0), Verdict::AboveLimit);
    }

    #[test]
    fn a_bad_end_may_break_a_promise() {
        let mut report = Report::default();
        report.ours.add("add_served", Some(Figure { median: 900.0, p99: 200e3 }));
        assert_eq!(verdict(row("add_served"), &report), Verdict::AboveLimit);
    }

    #[test]
    fn what_leans_on_a_missing_limit_is_not_judged() {
        let row = Row { name: "x", limit: Some(Limit::Ours("y")), bound: Some(Bound::times(1.5)), ..ROW };
        let mut report = report("x", 14.0, None);
        assert_eq!(verdict(&row, &report), Verdict::Open);
        report.ours.add("y", Some(Figure::single(10.0)));
        assert_eq!(verdict(&row, &report), Verdict::Good);
        report.ours.add("y", Some(Figure::single(9.0)));
        assert_eq!(verdict(&row, &report), Verdict::AboveLimit);
    }

    #[test]
    fn what_was_measured_is_shown_and_nothing_else() {
        for group in groups() {
            let row = &group.rows[0];
            let text = render(&report(row.name, 1.0, None));
            assert!(text.contains(group.title) && text.contains(row.what), "{text}");
            assert!(groups().all(|other| other.title == group.title || !text.contains(other.title)), "{text}");
            assert!(group.rows.get(1).is_none_or(|row| !text.contains(row.what)), "{text}");
        }
    }

    #[test]
    fn no_two_rows_show_the_same_figure() {
        let names: std::collections::HashSet<&str> = rows().map(|row| row.name).collect();
        assert_eq!(names.len(), rows().count());
    }
}
