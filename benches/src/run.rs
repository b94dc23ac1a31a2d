//! The run of a study or of several: its jobs one after the other, the machine's limits, what follows from them.

use std::io::Write;

use crate::ceiling::Ceiling;
use crate::error::Result;
use crate::here;
use crate::interrupt;
use crate::kernel::scf;
use crate::record::{Document, Record};
use crate::setup::Setup;
use crate::study::{Study, Wanted, find};
use crate::timing::Effort;

/// The one benchmark that is another program.
pub const SCF: &str = "scf";

/// Jobs of these benchmarks: how many steps [`measure`] takes.
pub fn steps(names: &[&str], wanted: &Wanted) -> Result<usize> {
    names.iter().map(|name| if *name == SCF { Ok(1) } else { Ok((find(name)?.jobs)(wanted).len()) }).sum()
}

/// Runs one benchmark; `before` is told each job before it starts.
///
/// # Errors
/// If a job fails, an answer is wrong, or the run is asked to end.
pub fn measure(name: &str, wanted: &Wanted, mut before: impl FnMut(&str)) -> Result<Vec<Record>> {
    if name == SCF {
        before("scf");
        return scf::measure(wanted);
    }
    let study: &Study = find(name)?;
    let mut records = Vec::new();
    for job in (study.jobs)(wanted) {
        interrupt::check()?;
        before(&in_words(&job));
        records.extend(job.run()?);
    }
    interrupt::check()?;
    (study.conclude)(&mut records)?;
    Ok(records)
}

/// A job in words.
fn in_words(job: &Setup) -> String {
    let Setup { study, part, ranks, nodes, protocol, progress, .. } = job;
    let nodes = if *nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
    let part = if part.is_empty() { String::new() } else { format!(" {part}") };
    format!("{study}{part}: {ranks} ranks{nodes}, {protocol}, {progress}")
}

/// Runs one benchmark as the command line asks for it.
///
/// # Errors
/// As [`measure`].
pub fn one(name: &str, wanted: &Wanted, command: String) -> Result<Document> {
    several(&[name], wanted, command)
}

/// Runs several.
///
/// # Errors
/// As [`measure`].
pub fn several(names: &[&str], wanted: &Wanted, command: String) -> Result<Document> {
    let effort = if wanted.quick { Effort::QUICK } else { Effort::FULL };
    let (mut machine, mut ceiling, mut records) = (here::describe(), Ceiling::new(effort)?, Vec::new());
    for name in names {
        // Unlike `eprintln!`, no panic where nobody reads it.
        records.extend(measure(name, wanted, |job| drop(writeln!(std::io::stderr(), "{job}")))?);
    }
    ceiling.apply(&mut records);
    here::look(&mut machine);
    Ok(Document { machine, command, missing: Vec::new(), records })
}

/// The machine's limits alone.
///
/// # Errors
/// If there are none.
pub fn limits(quick: bool, command: String) -> Result<Document> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut machine = here::describe();
    let records = Ceiling::new(effort)?.table()?;
    here::look(&mut machine);
    Ok(Document { machine, command, missing: Vec::new(), records })
}
