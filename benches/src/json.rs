//! The same figures for programs: everything a report holds, and the verdicts.

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::report::Report;
use crate::rows::ROWS;
use crate::table::{ratio, verdict};

#[derive(Serialize)]
struct Judged<'a> {
    name: &'a str,
    what: &'a str,
    ratio: Option<f64>,
    verdict: &'a str,
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    rows: Vec<Judged<'a>>,
}

/// Writes a report, in nanoseconds and shares.
///
/// # Errors
/// If the file cannot be written.
pub fn write(report: &Report, path: &Path) -> Result<()> {
    let judge = |row: &'static crate::rows::Row| Judged {
        name: row.name,
        what: row.what.trim(),
        ratio: ratio(row, report),
        verdict: verdict(row, report).name(),
    };
    let whole = Whole { report, rows: ROWS.iter().map(judge).collect() };
    let written = serde_json::to_string_pretty(&whole)
        .map_err(std::io::Error::from)
        .and_then(|text| std::fs::write(path, text + "\n"));
    written.map_err(|source| Error::Write { path: path.into(), source })
}
