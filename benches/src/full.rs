//! The whole report: the chosen measurements, the model, the table with its targets, in one document; and the page, the
//! JSON and the CSV of it.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};

use crate::ceiling::Ceiling;
use crate::error::{Error, Result};
use crate::here;
use crate::model;
use crate::page;
use crate::peer::Places;
use crate::record::{Document, of_table};
use crate::report::{Plan, Report};
use crate::run::{SCF, measure, steps};
use crate::study::{STUDIES, Wanted};
use crate::timing::Effort;

/// What the table counts as, of the bar's steps.
const TABLE: usize = 30;

/// Measures everything. What fails is missing in the document, and says why; the second value says whether an answer was
/// wrong or a job failed.
///
/// # Errors
/// If there are no two cores, or the run is asked to end.
pub fn take(quick: bool, with_peer: bool, places: Places, command: String) -> Result<(Document, bool)> {
    let wanted = Wanted { quick, ..Wanted::default() };
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let names: Vec<&str> = STUDIES.iter().map(|study| study.name).chain([SCF]).collect();
    let bar = ProgressBar::new((steps(&names, &wanted)? + TABLE + 1) as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed_precise} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut document = Document { machine: here::describe(), command, ..Document::default() };
    let (mut ceiling, mut failed) = (Ceiling::new(effort)?, false);
    for name in names {
        let step = |job: &str| {
            bar.set_message(job.to_owned());
            bar.inc(1);
        };
        match measure(name, &wanted, step) {
            Ok(mut records) => {
                ceiling.apply(&mut records);
                document.records.extend(records);
            }
            Err(error @ (Error::Interrupted(_) | Error::Cores(_))) => return Err(error),
            // Another program that was not built is missing, and no failure.
            Err(Error::Asked(why)) => document.missing.push(why),
            Err(error) => {
                failed = true;
                document.missing.push(format!("{name}: {error}"));
            }
        }
        here::look(&mut document.machine);
    }
    match model::records(&document.records) {
        Ok(records) => document.records.extend(records),
        Err(error) => document.missing.push(format!("model: {error}")),
    }
    document.records.extend(ceiling.table()?);
    bar.inc(1);
    bar.set_message("the table: jobs of ours and programs of peers in turn");
    let plan = Plan { places, ..Plan::table(with_peer) };
    match Report::take(&plan, effort, quick) {
        Ok(report) => {
            document.records.extend(of_table(&report));
            document.missing.extend(report.peer_failures);
        }
        Err(error @ Error::Interrupted(_)) => return Err(error),
        Err(error) => {
            failed = true;
            document.missing.push(format!("the table: {error}"));
        }
    }
    here::look(&mut document.machine);
    bar.finish_and_clear();
    Ok((document, failed))
}

/// Writes `FILE.json`'s neighbours too: `FILE.html` and `FILE.csv`.
///
/// # Errors
/// If a file cannot be written, or a picture cannot be drawn.
pub fn write(document: &Document, json: &Path) -> Result<()> {
    document.write(json)?;
    let title = format!("armci-bench on {}", document.machine.processor);
    for (ending, text) in [("html", page::render(document, &title)?), ("csv", document.csv())] {
        let path = json.with_extension(ending);
        std::fs::write(&path, text).map_err(|source| Error::Write { path, source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lies_in_three_files_side_by_side() {
        let directory = crate::command::fresh_directory().unwrap();
        let json = directory.path().join("r.json");
        let records = model::tests::canned();
        write(&Document { records, ..Document::default() }, &json).unwrap();
        let lines = |ending: &str| std::fs::read_to_string(json.with_extension(ending)).unwrap().lines().count();
        assert!(Document::read(&json).unwrap().records.len() + 1 == lines("csv") && lines("html") > 10);
    }
}
