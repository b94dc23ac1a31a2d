//! `armci-bench`: how fast the runtime is, beside what the machine allows and what its peers reach.
//!
//! ```text
//!   armci-bench ----+-- machine   threads of its own: the limits          \
//!                   +-- jobs      its own ranks, once per configuration    } in turn, several rounds
//!                   +-- programs  in C: on ARMCI-MPI, on our library, ... /
//!                   +-- table, json
//! ```
//!
//! Beside the table, a command for each of the papers' measurements: `study/` and `kernel/`, whose jobs yield records.
//!
//! ```text
//!   armci-bench CMD ---- run ----+-- study, kernel   jobs of its own ranks: records
//!               |                +-- ceiling         the machine's limits, as they are asked for
//!               +---- model      equations, from records
//!               +---- report     all of it and the table: page (pictures by plot), JSON, CSV; compare holds two apart
//! ```
//!
//! The table comes in groups: what its peers do too, then what is held against something measured in the same
//! process, on the same memory, in turn with ours. `--only JOB` takes one configuration's figures alone.
//!
//! All sides are measured in one run and in turn, and ratios are what counts: the machine's speed drifts, by
//! neighbours, clocks and the place of virtual cores, and not by the same amount tomorrow. What is not measured:
//! anything while other programs use the cores; the run notices that and says so.

mod accumulate;
mod alignment;
mod arrays;
mod barrier;
mod beside;
mod between;
mod between_cache;
mod between_rows;
mod between_scf;
mod booklet;
mod cached;
mod causes;
mod ceiling;
mod cli;
mod client_rows;
mod command;
mod compare;
mod constants;
mod contiguous;
mod counter;
mod error;
mod figure;
mod footprint;
mod full;
mod held;
mod here;
mod idle;
mod interrupt;
mod jobs;
mod json;
mod kernel;
mod limits;
mod line;
mod machine;
mod matmul;
mod meeting;
mod messages;
mod model;
mod page;
mod passing;
mod peer;
mod peers;
mod pictures;
mod plot;
mod programs;
mod record;
mod report;
mod row;
mod rows;
mod run;
mod setup;
mod show;
mod small;
mod start;
mod stats;
mod strided;
mod study;
mod sweep;
mod table;
mod tcp;
mod threads;
mod timing;
mod wake;
mod ways;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use cli::{Action, Arguments};
use error::{Error, Result};
use peer::Places;
use record::Document;
use report::{Plan, Report};
use study::Wanted;
use table::Verdict;
use timing::Effort;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Unlike `eprintln!`, no panic where nobody reads it.
            let _ = writeln!(io::stderr(), "armci-bench: {error}");
            match error {
                // As a shell reports it.
                Error::Interrupted(signal) => ExitCode::from(128 + signal as u8),
                _ => ExitCode::from(2),
            }
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let effort = if arguments.quick { Effort::QUICK } else { Effort::FULL };
    let with_peer = !arguments.no_peer;
    let (mut plan, render): (Plan, fn(&Report) -> String) = match &arguments.command {
        Some(Action::Rank { name }) => return be_a_rank(name, effort),
        Some(Action::Member { setup }) => return setup::Setup::be_a_rank(setup).map(|()| ExitCode::SUCCESS),
        Some(Action::Sweep) if arguments.check || arguments.only.is_some() => {
            let why = "--check and --only are for the table, not for the sweep";
            Arguments::command().error(ErrorKind::ArgumentConflict, why).exit()
        }
        Some(Action::Sweep) => (sweep::plan(with_peer), sweep::render),
        None => (Plan::table(with_peer), table::render),
        Some(action) => return study(action, arguments),
    };
    if let Some(only) = &arguments.only {
        plan = plan.only(only)?;
    }
    plan.places = Places { libarmci: arguments.libarmci.clone(), mpi_pr: arguments.mpi_pr.clone() };
    interrupt::listen();
    let mut round = String::new();
    let report = Report::take(&plan, effort, arguments.quick, |step| {
        let now = step.split_once(':').map_or(step, |(round, _)| round);
        if round != now {
            now.clone_into(&mut round);
            // Unlike `eprintln!`, no panic where nobody reads it.
            let _ = writeln!(io::stderr(), "{now}");
        }
    })?;
    // The file first: it shall be there even if nobody reads the table to its end.
    if let Some(path) = &arguments.json {
        json::write(&report, path)?;
    }
    let (code, remark) = if arguments.check { check(&report) } else { (0, String::new()) };
    let text = render(&report) + &remark;
    say(&text)?;
    Ok(ExitCode::from(code))
}

/// Writes to standard output; who closed it hears nothing, and we say so.
fn say(text: &str) -> Result<()> {
    let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    written.map_err(|source| Error::System { call: "write to standard output", source })
}

/// One of the papers' measurements, or the machine's limits.
fn study(action: &Action, arguments: &Arguments) -> Result<ExitCode> {
    interrupt::listen();
    let command = here::command(std::env::args());
    let quick = arguments.quick;
    let places = || Places { libarmci: arguments.libarmci.clone(), mpi_pr: arguments.mpi_pr.clone() };
    let document = match action {
        Action::Report => return report(arguments, places(), command),
        Action::Page { file } => {
            full::write(&Document::read(file)?, file, &arguments.shown())?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::Compare { before, after, noise } => {
            let (text, worse) = compare::render(&Document::read(before)?, &Document::read(after)?, *noise);
            say(&text)?;
            return Ok(ExitCode::from(u8::from(worse)));
        }
        Action::Limits => run::limits(quick, command)?,
        Action::Model { from: Some(file) } => {
            let measured = Document::read(file)?;
            Document { records: model::records(&measured.records)?, command, ..measured }
        }
        Action::Model { from: None } => {
            let wanted = Wanted { quick, ..Wanted::default() };
            let mut measured = run::several(&model::NEEDED, &wanted, command)?;
            measured.records = model::records(&measured.records)?;
            measured
        }
        Action::Peers => {
            let mut machine = here::describe();
            let (records, missing) = peers::take(quick, places())?;
            here::look(&mut machine);
            if let Some(path) = &arguments.json {
                let document = Document { machine, command, missing: missing.clone(), records: records.clone() };
                document.write(path)?;
            }
            say(&peers::render(&records, &missing))?;
            return Ok(ExitCode::SUCCESS);
        }
        action => match action.study() {
            Some((name, wanted)) => run::one(name, &wanted.with_quick(quick), command)?,
            None => {
                return Err(Error::Asked("this command starts the ranks of a benchmark; it is not for users".into()));
            }
        },
    };
    if let Some(path) = &arguments.json {
        document.write(path)?;
    }
    say(&show::render(&document))?;
    Ok(ExitCode::SUCCESS)
}

/// The exit code of `--check`, and what to say about it: 1, something is worse than it may be; 3, something could not
/// be checked; 0, all is well.
fn check(report: &Report) -> (u8, String) {
    let with = |wanted: &[Verdict]| -> Vec<&str> {
        let judged = rows::rows().filter(|row| row.is_judged() && !(row.if_there && row.limit(report).is_none()));
        judged.filter(|row| wanted.contains(&table::verdict(row, report))).map(|row| row.name).collect()
    };
    let (bad, open) = (with(&[Verdict::SlowerThanPeer, Verdict::AboveLimit]), with(&[Verdict::Open]));
    let mut remark = String::new();
    for (what, names) in [("FAILED", &bad), ("NOT CHECKED, a figure is missing", &open)] {
        if !names.is_empty() {
            remark += &format!("check: {what}: {}\n", names.join(", "));
        }
    }
    let code = if !bad.is_empty() {
        1
    } else if !open.is_empty() {
        3
    } else {
        0
    };
    (code, remark)
}

fn be_a_rank(name: &str, effort: Effort) -> Result<ExitCode> {
    jobs::find(name)?.be_a_rank(effort)?;
    Ok(ExitCode::SUCCESS)
}

/// Everything, as a page.
fn report(arguments: &Arguments, places: Places, command: String) -> Result<ExitCode> {
    let Some(path) = &arguments.json else {
        let why = "report needs --json FILE: the page and the CSV are written beside it";
        Arguments::command().error(ErrorKind::MissingRequiredArgument, why).exit()
    };
    let (document, failed) = full::take(arguments.quick, !arguments.no_peer, places, command)?;
    full::write(&document, path, &arguments.shown())?;
    let judged = page::judged(&document.records);
    let mut text = String::new();
    for record in judged.iter().filter(|record| record.met != Some(true)) {
        text += &format!("{}: {}; asked {}; {}\n", record.id, record.show(), record.show_asked(), record.show_met());
    }
    for line in &document.missing {
        text += &format!("missing: {line}\n");
    }
    text += &format!("targets: {}; the page is {}\n", page::tally(&judged), path.with_extension("html").display());
    if document.machine.others > 0.05 {
        text += "WARNING: other programs used this machine meanwhile: the figures are not to be trusted.\n";
    }
    say(&text)?;
    Ok(ExitCode::from(u8::from(failed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::row::Limit;

    #[test]
    fn a_check_does_not_pass_without_its_peer() {
        let mut report = Report::default();
        for row in rows::rows() {
            report.ours.add(row.name, Some(Figure::single(1e-3)));
            match row.limit {
                Some(Limit::Ours(name)) => report.ours.add(name, Some(Figure::single(1e-3))),
                Some(Limit::Machine(name)) => report.machine.add(name, Some(Figure::single(1e-3))),
                Some(Limit::Peer(_)) | None => {}
                Some(Limit::Best) => report.ours.add(format!("{}:way", row.name), Some(Figure::single(1e-3))),
            }
        }
        let (code, remark) = check(&report);
        assert_eq!(code, 3);
        assert!(
            remark.contains("NOT CHECKED") && remark.contains("put_8") && !remark.contains("add_served"),
            "{remark}"
        );
        for row in rows::rows() {
            for name in [row.peer, row.limit.and_then(Limit::of_a_peer)].into_iter().flatten() {
                report.peer.add(name, Some(Figure::single(100.0)));
            }
        }
        assert_eq!(check(&report), (0, String::new()));
        report.ours.add("put_8", Some(Figure::single(200.0)));
        assert_eq!(check(&report), (1, "check: FAILED: put_8\n".into()));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
        let refused = |line: &str| Arguments::try_parse_from(line.split(' ')).is_err();
        assert!(refused("armci-bench --check --no-peer") && refused("armci-bench --check --only direct"));
        assert!(refused("armci-bench --only sweep") && !refused("armci-bench --only crowd"));
        assert!(!refused("armci-bench --only c") && !refused("armci-bench --only c-arrays --mpi-pr /opt/ga"));
    }
}
