//! The whole report: the chosen measurements, the model, the table with its targets, in one document; and the page, the
//! JSON and the CSV of it.

use std::io::Write;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use crate::booklet;
use crate::ceiling::Ceiling;
use crate::error::{Error, Result};
use crate::here;
use crate::kernel::scf;
use crate::model;
use crate::page;
use crate::peer::Places;
use crate::peers;
use crate::record::{Document, NO_CAUSE, of_table, unmeasured};
use crate::report::Report;
use crate::run::{SCF, measure, steps};
use crate::study::{STUDIES, Wanted};
use crate::timing::Effort;

/// Measures everything. What fails is missing in the document, and says why; the second value says whether an answer was
/// wrong or a job failed.
///
/// # Errors
/// If there are no two cores, or the run is asked to end.
pub fn take(quick: bool, with_peer: bool, places: Places, command: String) -> Result<(Document, bool)> {
    let wanted = Wanted { quick, ..Wanted::default() };
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let names: Vec<&str> = STUDIES.iter().map(|study| study.name).chain([SCF]).collect();
    let plan = peers::plan(places, with_peer);
    // And the asked calculations, the limits, and sizes between nodes.
    let bar = ProgressBar::new((steps(&names, &wanted)? + plan.steps(effort) + 3) as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed_precise} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut document = Document { machine: here::describe(), command, ..Document::default() };
    let (mut ceiling, mut failed) = (Ceiling::new(effort)?, false);
    // Where nobody watches a bar, a line now and then says how far it is.
    let step = |job: &str| {
        bar.set_message(job.to_owned());
        bar.inc(1);
        if bar.is_hidden() && bar.position() % 25 == 1 {
            let at = (bar.position(), bar.length().unwrap_or_default());
            let _ = writeln!(std::io::stderr(), "{} of {}: {job}", at.0, at.1);
        }
    };
    for name in names {
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
    step("the machine's limits");
    document.records.extend(ceiling.table()?);
    step("(H2O)6 in 6-31G*");
    match scf::asked() {
        Ok(records) => document.records.extend(records),
        Err(Error::Asked(why)) => document.missing.push(why),
        Err(error @ Error::Interrupted(_)) => return Err(error),
        Err(error) => {
            failed = true;
            document.missing.push(format!("scf: {error}"));
        }
    }
    match Report::take(&plan, effort, quick, step) {
        Ok(mut report) => {
            step("between nodes by size");
            if let Err(error) = peers::far_by_size(quick, &mut report) {
                failed = true;
                document.missing.push(format!("between nodes by size: {error}"));
            }
            document.records.extend(of_table(&report));
            document.records.extend(peers::compared(&report));
            document.missing.extend(unmeasured(&report));
            document.missing.extend(report.peer_failures);
        }
        Err(error @ Error::Interrupted(_)) => return Err(error),
        Err(error) => {
            failed = true;
            document.missing.push(format!("the table: {error}"));
        }
    }
    here::look(&mut document.machine);
    doubt(&mut document);
    bar.finish_and_clear();
    Ok((document, failed))
}

/// Where other programs were at work, they may be why a target is missed for which no cause is known.
fn doubt(document: &mut Document) {
    let others = document.machine.others;
    let unknown = document.records.iter_mut().filter_map(|record| record.cause.as_mut());
    for cause in unknown.filter(|cause| others > 0.05 && cause.ends_with(NO_CAUSE)) {
        *cause += &format!("; other programs used {:.0} % of the machine", others * 100.0);
    }
}

/// Where else a report is shown than in its page.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// A directory for the pictures, and a page of text that shows them.
    pub plots: Option<PathBuf>,
    /// A text whose figures, between two marks, are renewed.
    pub readme: Option<PathBuf>,
}

/// Writes `FILE.json`'s neighbours too, `FILE.html` and `FILE.csv`, and where else it is to be shown.
///
/// # Errors
/// If a file cannot be written, or a picture cannot be drawn.
pub fn write(document: &Document, json: &Path, shown: &Shown) -> Result<()> {
    document.write(json)?;
    let title = format!("armci-bench on {}", document.machine.processor);
    for (ending, text) in [("html", page::render(document, &title)?), ("csv", document.csv())] {
        let path = json.with_extension(ending);
        std::fs::write(&path, text).map_err(|source| Error::Write { path, source })?;
    }
    if let Some(directory) = &shown.plots {
        booklet::write(document, directory)?;
    }
    shown.readme.as_deref().map_or(Ok(()), |readme| booklet::renew(document, readme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lies_in_three_files_side_by_side() {
        let directory = crate::command::fresh_directory().unwrap();
        let json = directory.path().join("r.json");
        let records = model::tests::canned();
        write(&Document { records, ..Document::default() }, &json, &Shown::default()).unwrap();
        let lines = |ending: &str| std::fs::read_to_string(json.with_extension(ending)).unwrap().lines().count();
        assert!(Document::read(&json).unwrap().records.len() + 1 == lines("csv") && lines("html") > 10);
    }
}
