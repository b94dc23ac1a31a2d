//! Records: what every benchmark yields, for programs and for later comparison.
//!
//! A record says what was measured (`id`, and where something is swept, along which `axis` and `at` which place), on
//! whom (`side`: ours, a peer or the machine), in which circumstances, and what came of it. A file holds the machine and
//! the command beside the list, since a figure without them says nothing.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::causes;
use crate::error::{Error, Result};
use crate::report::{Circumstances, Report};
use crate::row::{Row, Unit};
use crate::rows::{groups, rows};
use crate::stats::Stats;
use crate::table::{Verdict, ratio, verdict};

/// What is measured is ours.
pub const OURS: &str = "ours";

/// What is said of a missed target of which nothing is known.
pub const NO_CAUSE: &str = "no cause is known";

/// One figure, and what it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// What was measured: a path of words, the benchmark's name first.
    pub id: String,
    /// The median, where there were several.
    pub value: f64,
    /// What the value counts: "ns", "GB/s", ...
    pub unit: String,
    /// How many ranks took part.
    pub ranks: usize,
    /// On how many nodes.
    pub nodes: usize,
    /// The path of operations: "rma", "am", or one for each kind.
    pub protocol: String,
    /// Who serves messages: "thread" or "none".
    pub progress: String,
    /// Ours, a peer's name, or "machine".
    pub side: String,
    /// Along what it was swept: "bytes", "rank", "ranks", ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// At which place there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// 5 of 100 samples are below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// 95 of 100 are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// 99 of 100 are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Which of the machine's limits it is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How many times that limit's time it took, or of a rate, which share of the limit's it reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_limit: Option<f64>,
    /// What was asked of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// What was asked of it, in words, also where it could not be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Of a missed target: how many times as much as it was asked for, or as little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<f64>,
    /// Of a missed target: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How many times as fast as the peer's it is, where there was one in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What else is to be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Record {
    /// A value of ours without circumstances yet.
    pub fn new(id: impl Into<String>, value: f64, unit: &str) -> Self {
        Record { id: id.into(), value, unit: unit.into(), side: OURS.into(), ..Record::default() }
    }

    /// A time.
    pub fn time(id: impl Into<String>, stats: Stats) -> Self {
        Record {
            low: Some(stats.low),
            high: Some(stats.high),
            p99: Some(stats.p99),
            ..Record::new(id, stats.median, "ns")
        }
    }

    /// Swept along an axis, at this place.
    #[must_use]
    pub fn at(self, axis: &str, at: f64) -> Self {
        Record { axis: Some(axis.into()), at: Some(at), ..self }
    }

    /// Held against one of the machine's limits.
    #[must_use]
    pub fn against(self, limit: impl Into<String>) -> Self {
        Record { limit: Some(limit.into()), ..self }
    }

    /// With a remark.
    #[must_use]
    pub fn remark(self, note: impl Into<String>) -> Self {
        Record { note: Some(note.into()), ..self }
    }

    /// Held to a target that must not be exceeded, or of a rate, must be reached.
    #[must_use]
    pub fn asked(self, target: f64) -> Self {
        let beyond = if self.more_is_better() { target / self.value } else { self.value / target };
        let met = beyond <= 1.0;
        let (beyond, cause) = if met { (None, None) } else { (Some(beyond), Some(NO_CAUSE.to_owned())) };
        Record { target: Some(target), met: Some(met), beyond, cause, ..self }
    }

    /// Whether its number is on the wrong side of its target.
    fn is_beyond(&self) -> bool {
        let of = |target| if self.more_is_better() { target > self.value } else { self.value > target };
        self.target.is_some_and(of)
    }

    /// Whether something was asked of it.
    pub fn is_judged(&self) -> bool {
        self.target.is_some() || self.asked.is_some()
    }

    /// What was asked, with its number in this run.
    pub fn show_asked(&self) -> String {
        let sign = if self.more_is_better() { ">=" } else { "<=" };
        let number = self.target.map(|target| format!("{sign} {}", show(target, &self.unit)));
        match (number, &self.asked) {
            // A bare number is said once.
            (Some(number), Some(words)) if words.split(';').next() == Some(number.as_str()) => words.clone(),
            (Some(number), Some(words)) => format!("{number} ({words})"),
            (number, words) => number.or_else(|| words.clone()).unwrap_or_default(),
        }
    }

    /// Whether it met what was asked, and if not, by how much and why.
    pub fn show_met(&self) -> String {
        match (self.met, self.beyond) {
            (Some(true), _) if self.is_beyond() => "met, within what runs differ by".into(),
            (Some(true), _) => "met".into(),
            (Some(false), Some(beyond)) => {
                format!("missed by {beyond:.2}x: {}", self.cause.as_deref().unwrap_or(NO_CAUSE))
            }
            (Some(false), None) => "missed".into(),
            (None, _) => "open: what it is held against was not measured".into(),
        }
    }

    /// Whether larger values are better, by the unit.
    pub fn more_is_better(&self) -> bool {
        matches!(self.unit.as_str(), "GB/s" | "GFLOP/s" | "MLUP/s" | "share" | "1/s")
    }

    /// What two files must have in common for two records to be compared.
    pub fn key(&self) -> String {
        let Record { id, ranks, nodes, protocol, progress, side, .. } = self;
        let at = self.at.map_or_else(String::new, |at| format!("@{at}"));
        format!("{id}{at} ranks={ranks} nodes={nodes} {protocol} {progress} {side}")
    }

    /// What distinguishes one line of a plot from the next.
    pub fn series(&self) -> String {
        let name = self.id.rsplit('/').next().unwrap_or(&self.id);
        let mut text = name.to_owned();
        if self.side != OURS {
            return format!("{text}, {}", self.side);
        }
        if !self.protocol.is_empty() {
            text += &format!(", {}", self.protocol);
        }
        if self.progress == "none" {
            text += ", no thread";
        }
        if self.axis.as_deref() != Some("ranks") && self.ranks > 2 {
            text += &format!(", {} ranks", self.ranks);
        }
        if self.nodes > 1 {
            text += &format!(", {} nodes", self.nodes);
        }
        text
    }

    /// The value with its unit, as people read it.
    pub fn show(&self) -> String {
        show(self.value, &self.unit)
    }
}

/// A value with its unit, as people read it.
pub fn show(value: f64, unit: &str) -> String {
    match unit {
        "ns" => Unit::Time.show(value),
        "bytes" => Unit::Bytes.show(value),
        "share" => Unit::Share.show(value),
        "used" => Unit::Used.show(value),
        "count" => Unit::Count.show(value),
        "ns/byte" => format!("{value:.3} ns/B"),
        "1/s" if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
        "1/s" => format!("{value:.0} /s"),
        "error" => format!("{value:.1e}"),
        "GB/s" | "GFLOP/s" | "MLUP/s" => format!("{value:.2} {unit}"),
        "factor" => format!("{value:.2}"),
        "hartree" => format!("{value:.9} hartree"),
        _ => format!("{value:.3} {unit}"),
    }
}

/// Which machine it was, and what else was going on there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many cores this program may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The system's name and version.
    pub system: String,
    /// One way of a cache line between the two cores in nanoseconds, before and after.
    pub line: Vec<f64>,
    /// The share of the machine that others used, at most.
    pub others: f64,
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// Where it was measured.
    pub machine: Machine,
    /// By what command.
    pub command: String,
    /// Figures that could not be had, and why.
    pub missing: Vec<String>,
    /// What was measured.
    pub records: Vec<Record>,
}

impl Document {
    /// Writes it as JSON, and beside it as CSV if that is asked for.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let written = serde_json::to_string_pretty(self)
            .map_err(std::io::Error::from)
            .and_then(|text| std::fs::write(path, text + "\n"));
        written.map_err(|source| Error::Write { path: path.into(), source })
    }

    /// Reads one, or a bare list of records.
    ///
    /// # Errors
    /// If the file is not there, or holds neither.
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |source| Error::Read { path: path.into(), source };
        let text = std::fs::read_to_string(path).map_err(wrong)?;
        let invalid = |error: serde_json::Error| wrong(error.into());
        if text.trim_start().starts_with('[') {
            return Ok(Document { records: serde_json::from_str(&text).map_err(invalid)?, ..Document::default() });
        }
        serde_json::from_str(&text).map_err(invalid)
    }

    /// The records as comma-separated values, a line each.
    pub fn csv(&self) -> String {
        let mut text =
            "id,axis,at,value,unit,low,high,p99,ranks,nodes,protocol,progress,side,limit,of_limit,target,met,asked,beyond,cause,ratio,note\n"
                .to_owned();
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let word = |word: &str| {
            if word.contains([',', '"', '\n']) { format!("\"{}\"", word.replace('"', "\"\"")) } else { word.to_owned() }
        };
        for r in &self.records {
            let cells = [
                word(&r.id),
                word(r.axis.as_deref().unwrap_or_default()),
                number(r.at),
                r.value.to_string(),
                word(&r.unit),
                number(r.low),
                number(r.high),
                number(r.p99),
                r.ranks.to_string(),
                r.nodes.to_string(),
                word(&r.protocol),
                word(&r.progress),
                word(&r.side),
                word(r.limit.as_deref().unwrap_or_default()),
                number(r.of_limit),
                number(r.target),
                r.met.map_or_else(String::new, |met| met.to_string()),
                word(r.asked.as_deref().unwrap_or_default()),
                number(r.beyond),
                word(r.cause.as_deref().unwrap_or_default()),
                number(r.ratio),
                word(r.note.as_deref().unwrap_or_default()),
            ];
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

/// The rows of the table as records: each speed that was asked for, with its target and whether it is met.
pub fn of_table(report: &Report) -> Vec<Record> {
    let judged = rows().filter_map(|row| {
        let figure = report.ours.get(row.name)?;
        // A rate's time becomes a rate: what is better is the same, but a target reads as it was set.
        let (unit, convert): (&str, Box<dyn Fn(f64) -> f64>) = match row.unit {
            Unit::Time => ("ns", Box::new(|value| value)),
            Unit::Rate(bytes) => ("GB/s", Box::new(move |value| bytes as f64 / value)),
            Unit::Speed(operations) => ("GFLOP/s", Box::new(move |value| operations as f64 / value)),
            Unit::Share => ("share", Box::new(|value| value)),
            Unit::Used => ("used", Box::new(|value| value)),
            Unit::Bytes => ("bytes", Box::new(|value| value)),
            Unit::Count => ("count", Box::new(|value| value)),
            Unit::Factor => ("factor", Box::new(|value| value)),
        };
        let verdict = verdict(row, report);
        let met = match verdict {
            Verdict::Good => Some(true),
            Verdict::SlowerThanPeer | Verdict::AboveLimit => Some(false),
            Verdict::Open => None,
        };
        // What is asked may be the peer's speed.
        let peer = row.peer.and_then(|name| report.peer.get(name)).filter(|_| row.default_path);
        let peer = peer.map(|peer| peer.median);
        let target = if verdict == Verdict::SlowerThanPeer { peer } else { row.most(report).or(peer) };
        let limit = row.limit(report).map(|(_, limit)| limit.median);
        let of_limit =
            limit.map(|limit| if unit.ends_with("/s") { limit / figure.median } else { figure.median / limit });
        // The median or the bad end may be it.
        let by_tail = row.tail_at_most.map_or(0.0, |most| figure.p99 / most);
        let by_median = target.map_or(0.0, |target| figure.median / target);
        let missed = met == Some(false);
        let cause = missed.then(|| {
            let known = causes::of(row.name, report).unwrap_or_else(|| NO_CAUSE.into());
            // The median is what stands beside the target.
            if by_tail > by_median { format!("its p99, {}: {known}", row.unit.show(figure.p99)) } else { known }
        });
        // What follows from several figures is a pair's.
        let circumstances = report.circumstances.get(row.name).copied().unwrap_or(Circumstances::of(2));
        Some(Record {
            ranks: circumstances.ranks,
            protocol: circumstances.protocol.into(),
            progress: circumstances.progress.into(),
            id: format!("table/{}", row.name),
            value: convert(figure.median),
            unit: unit.into(),
            p99: Some(convert(figure.p99)),
            side: OURS.into(),
            nodes: circumstances.nodes,
            target: target.map(&convert),
            met: met.filter(|_| target.is_some()),
            asked: row.asked(report),
            beyond: missed.then(|| by_median.max(by_tail)),
            cause,
            limit: row.limit.map(|limit| limit.name().to_owned()),
            of_limit,
            ratio: ratio(row, report),
            note: Some(in_full(row)),
            ..Record::default()
        })
    });
    judged.filter(|record| record.value.is_finite()).collect()
}

/// What a row is where it stands alone: under which heading, and what it is said to be like. What it is held against
/// stands beside it there.
fn in_full(row: &Row) -> String {
    let against = |text: &str| [" (limit", " (peer"].iter().filter_map(|begin| text.find(begin)).min();
    let short = |text: &'static str| against(text).map_or(text, |at| &text[..at]);
    let leans = |row: &Row| row.what.starts_with("  ") || short(row.what).contains("likewise");
    let what = short(row.what).trim();
    let Some(group) = groups().find(|group| group.rows.iter().any(|other| other.name == row.name)) else {
        return what.to_owned();
    };
    let before = group.rows.iter().take_while(|other| other.name != row.name);
    let like = before.filter(|other| !leans(other)).last().filter(|_| leans(row));
    let like = like.map_or_else(String::new, |other| format!("{}: ", short(other.what)));
    format!("{}: {like}{what}", short(group.title))
}

/// The rows of which something is asked and that were not measured, a line each.
pub fn unmeasured(report: &Report) -> Vec<String> {
    let lacking = rows().filter(|row| row.is_judged() && report.ours.get(row.name).is_none());
    lacking
        .map(|row| format!("table/{}: not measured; asked: {}", row.name, row.asked(report).unwrap_or_default()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    #[test]
    fn a_document_survives_its_file() {
        let directory = crate::command::fresh_directory().unwrap();
        let path = directory.path().join("x.json");
        let mut document = Document { command: "armci-bench contig".into(), ..Document::default() };
        let stats = Stats::of(vec![1.0, 2.0, 3.0]).unwrap();
        document.records.push(Record::time("contig/get", stats).at("bytes", 8.0).against("copy/8").asked(2.5));
        document.write(&path).unwrap();
        assert_eq!(Document::read(&path).unwrap(), document);
        std::fs::write(&path, serde_json::to_string(&document.records).unwrap()).unwrap();
        assert_eq!(Document::read(&path).unwrap().records, document.records);
        std::fs::write(&path, "nonsense").unwrap();
        assert!(Document::read(&path).is_err_and(|error| error.to_string().contains("x.json")));
    }

    #[test]
    fn a_target_is_met_or_not_by_the_unit() {
        let time = |target| Record::new("x", 10.0, "ns").asked(target).met;
        let rate = |target| Record::new("x", 10.0, "GB/s").asked(target).met;
        assert_eq!((time(11.0), time(9.0)), (Some(true), Some(false)));
        assert_eq!((rate(11.0), rate(9.0)), (Some(false), Some(true)));
    }

    #[test]
    fn lines_of_a_csv_have_as_many_cells_as_its_head() {
        let mut document = Document::default();
        document.records.push(Record::new("x", 1.0, "ns").remark("a \"b\", c"));
        let text = document.csv();
        let [head, line]: [&str; 2] = text.lines().collect::<Vec<_>>().try_into().unwrap();
        assert!(line.ends_with("\"a \"\"b\"\", c\""), "{line}");
        assert_eq!(line.matches(',').count() - 1, head.matches(',').count());
    }

    #[test]
    fn rows_of_the_table_keep_their_targets() {
        let mut report = Report::default();
        report.ours.add("add_served", Some(Figure::single(26e3)));
        report.ours.add("put_8", Some(Figure::single(5.0)));
        let by_message = Circumstances { protocol: "rmw=am", ..Circumstances::of(2) };
        report.circumstances.insert("add_served".into(), by_message);
        report.peer.add("put_8", Some(Figure::single(70.0)));
        let records = of_table(&report);
        let of = |id: &str| records.iter().find(|record| record.id == id).unwrap();
        assert_eq!((of("table/add_served").target, of("table/add_served").met), (Some(25e3), Some(false)));
        let note = |id: &str| of(id).note.clone().unwrap();
        assert_eq!(note("table/put_8"), "Beside ARMCI-MPI: put 8 B");
        assert!(note("table/add_served").starts_with("By message, served by a progress thread: fetch-add, owner"));
        let row = |name: &str| rows().find(|row| row.name == name).unwrap();
        assert_eq!(in_full(row("put_ptr_10000")), "Small: put 8 B by pointer: among 10,000");
        assert_eq!(in_full(row("put_located_256")), "Small: put 8 B by (rank, address): among 256");
        assert_eq!(
            in_full(row("far_get_8")),
            "Between nodes, over TCP on loopback, the target waits in a call: get 8 B"
        );
        assert!(unmeasured(&report).iter().any(|line| line.starts_with("table/get_8: ")));
        assert!(!unmeasured(&report).iter().any(|line| line.starts_with("table/put_8: ")));
        assert_eq!(of("table/add_served").beyond, Some(1.04));
        assert!(of("table/add_served").show_met().starts_with("missed by 1.04x: "));
        assert!(of("table/put_8").show_met() == "met" && of("table/put_8").show_asked().contains("no slower"));
        assert_eq!((of("table/add_served").ranks, &*of("table/add_served").protocol), (2, "rmw=am"));
        assert_eq!((of("table/put_8").met, of("table/put_8").ratio), (Some(true), Some(14.0)));
    }
}
