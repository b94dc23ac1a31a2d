//! The same figures for programs: everything a report holds, and the verdicts.

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::record::{Record, of_table};
use crate::report::Report;
use crate::rows::rows;
use crate::table::{ratio, verdict};

#[derive(Serialize)]
struct Judged<'a> {
    name: &'a str,
    what: &'a str,
    ratio: Option<f64>,
    limit: Option<f64>,
    most: Option<f64>,
    verdict: &'a str,
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    rows: Vec<Judged<'a>>,
    /// The same rows as other benchmarks write them, to be compared.
    records: Vec<Record>,
}

/// Writes a report, in nanoseconds and shares.
///
/// # Errors
/// If the file cannot be written.
pub fn write(report: &Report, path: &Path) -> Result<()> {
    let judge = |row: &'static crate::row::Row| Judged {
        name: row.name,
        what: row.what.trim(),
        ratio: ratio(row, report),
        limit: row.limit(report).map(|(_, limit)| limit.median),
        most: row.most(report),
        verdict: verdict(row, report).name(),
    };
    let whole = Whole { report, rows: rows().map(judge).collect(), records: of_table(report) };
    let written = serde_json::to_string_pretty(&whole)
        .map_err(std::io::Error::from)
        .and_then(|text| std::fs::write(path, text + "\n"));
    written.map_err(|source| Error::Write { path: path.into(), source })
}
