//! Who started this process: looked for in an order, with a reason for each that it was not.
//!
//! ```text
//!   armci-run      ARMCI_JOB names a socket of our launcher, by its inode number
//!   PMI-1          PMI_FD names an open socket                         mpiexec (MPICH), srun --mpi=pmi2
//!   PMIx           PMIX_RANK is set, and its server answers            mpirun (Open MPI), srun --mpi=pmix
//!   Slurm          one task of several, and nobody to ask: an error    srun --mpi=none
//!   nobody         a job of one
//! ```
//!
//! Launchers run within launchers, and variables are inherited by whoever comes later; each kind is told from a stale one
//! by something that is not inherited so easily. Two kinds may be live at once: under a launcher of ours within a
//! `mpiexec`, or the other way round, if the outer one's socket leaks through the inner (Hydra closes none). Then the one
//! whose launcher was started by the other's counts.

use std::io::Write;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;

use rustix::net::sockopt::socket_peercred;

use super::descent::descends;
use super::hosted::Hosted;
use super::ticket::Ticket;
use super::{Bootstrap, alone, inherited, pmi, pmix, rank};
use crate::config::StartedBy;
use crate::error::{Error, Result};

/// A way into a job.
#[derive(Debug)]
enum Way {
    ArmciRun(Ticket),
    Pmi(pmi::Place),
    Pmix,
    Alone,
}

/// What was found, and why.
struct Found {
    way: Way,
    /// What speaks for it.
    because: String,
    /// What speaks against those before it.
    but: Vec<String>,
}

/// Joins the job that this process was started for; `verbose`: and says on standard error which that is, and why.
pub(super) fn join(asked: StartedBy, nodes: NonZeroU32, verbose: bool) -> Result<Box<dyn Bootstrap>> {
    let mut found = find(asked)?;
    let mut aloud = verbose;
    let joined: Box<dyn Bootstrap> = match found.way {
        Way::ArmciRun(ticket) => Box::new(rank::Launched::join(ticket)?),
        Way::Pmi(place) => Box::new(Hosted::join(pmi::Client::connect(&place)?, nodes)?),
        Way::Alone => Box::new(alone::Alone::new()),
        Way::Pmix => match pmix::Client::connect()? {
            Ok(client) => Box::new(Hosted::join(client, nodes)?),
            Err(pmix::Stale { why, .. }) if asked == StartedBy::Pmix => return Err(missing("pmix", &why)),
            Err(pmix::Stale { why, sure }) => {
                one_of_several_tasks(|name| std::env::var(name).ok())?;
                found.but.push(why);
                found.because = "nobody is left to ask: a job of one".into();
                // A launcher that cannot be reached is not far from one that is gone, and many jobs of one look like one job.
                aloud |= !sure;
                Box::new(alone::Alone::new())
            }
        },
    };
    if aloud {
        let who = joined.identity();
        let but = if found.but.is_empty() { String::new() } else { format!(" ({})", found.but.join("; ")) };
        // In one piece, as other ranks write too; without a reader nobody is to be told.
        let line = format!("armci: rank {} of {}: {}{but}\n", who.rank, who.size, found.because);
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    Ok(joined)
}

/// Whether somebody started this process as a rank, as far as can be told without asking, or seems to have.
pub(super) fn is_rank(asked: StartedBy) -> bool {
    !matches!(find(asked), Ok(Found { way: Way::Alone, .. }))
}

fn find(asked: StartedBy) -> Result<Found> {
    let mut but = Vec::new();
    let wanted = |launcher| asked == launcher || asked == StartedBy::Auto;
    let mut ticket = None;
    if wanted(StartedBy::ArmciRun) {
        match Ticket::from_environment()? {
            Some(found) => ticket = Some(found),
            None if asked == StartedBy::ArmciRun => {
                return Err(missing("armci-run", "ARMCI_JOB is not set, or stale"));
            }
            None => but.push("ARMCI_JOB is not set, or stale".to_owned()),
        }
    }
    if wanted(StartedBy::Pmi) {
        match pmi::Place::from_environment()? {
            Ok(place) => {
                let outer = ticket.take_if(|ticket| is_within(&place, ticket));
                if let Some(outer) = &outer {
                    let name = "ARMCI_JOB";
                    but.push(format!("{name} is the outer job's, rank {} of {}", outer.who.rank, outer.who.size));
                }
                if ticket.is_none() {
                    let because = "PMI_FD is open, PMI_RANK says which: a launcher that speaks PMI-1".into();
                    return Ok(Found { way: Way::Pmi(place), because, but });
                }
            }
            Err(why) if asked == StartedBy::Pmi => return Err(missing("pmi", &why)),
            Err(why) => but.push(why),
        }
    }
    if let Some(ticket) = ticket {
        let because = "ARMCI_JOB names our launcher's socket: armci-run".into();
        // What speaks against a launcher that comes later in the order is no reason.
        return Ok(Found { way: Way::ArmciRun(ticket), because, but: Vec::new() });
    }
    if wanted(StartedBy::Pmix) {
        match pmix::named_in_environment() {
            Ok(named) => {
                let because = format!("{named}: a launcher that speaks PMIx");
                return Ok(Found { way: Way::Pmix, because, but });
            }
            Err(why) if asked == StartedBy::Pmix => return Err(missing("pmix", &why)),
            Err(why) => but.push(why),
        }
    }
    if asked == StartedBy::Alone {
        return Ok(Found { way: Way::Alone, because: "ARMCI_BOOTSTRAP=alone: a job of one".into(), but });
    }
    one_of_several_tasks(|name| std::env::var(name).ok())?;
    Ok(Found { way: Way::Alone, because: "nobody started it as a rank: a job of one".into(), but })
}

fn missing(asked: &str, why: &str) -> Error {
    let remedy = match asked {
        "armci-run" => "armci-run",
        "pmi" => "MPICH's mpiexec, or srun --mpi=pmi2",
        _ => "Open MPI's mpirun, or srun --mpi=pmix",
    };
    Error::Job(format!(
        "ARMCI_BOOTSTRAP={asked} was asked for, but {why}: start the program with {remedy}, or leave ARMCI_BOOTSTRAP to \
         find out"
    ))
}

/// Refuses what `srun` started as one task of several without a key-value store: a job of one would compute everything
/// as often as there are tasks.
///
/// A batch script, and a shell within an allocation, have variables too, but they are no tasks of a step, or its only one.
fn one_of_several_tasks(variable: impl Fn(&str) -> Option<String>) -> Result<()> {
    let number = |name| variable(name).and_then(|text| text.parse::<u32>().ok());
    // The numbers at the top stand for batch scripts, shells and the like.
    let step = number("SLURM_STEP_ID").filter(|step| *step < 0xffff_ff00);
    match (step, number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")) {
        (Some(step), Some(task), Some(tasks)) if tasks > 1 => Err(Error::Job(format!(
            "this is task {task} of {tasks} of Slurm step {step}, but Slurm offers the tasks no way to find each other: \
             start the program with srun --mpi=pmi2 or srun --mpi=pmix (srun --mpi=list shows which there are), or say \
             ARMCI_BOOTSTRAP=alone for jobs of one"
        ))),
        _ => Ok(()),
    }
}

/// Whether the launcher behind the one descends from that behind the other, and so is the inner one.
fn is_within(inner: &pmi::Place, outer: &Ticket) -> bool {
    let launcher =
        |socket: BorrowedFd<'static>| socket_peercred(socket).ok().map(|process| process.pid.as_raw_nonzero());
    let inner = inner.socket().ok().and_then(launcher);
    let outer = inherited::inherited(outer.descriptor).ok().and_then(launcher);
    matches!((inner, outer), (Some(inner), Some(outer)) if descends(inner.get(), outer.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(variables: &[(&str, &str)]) -> Result<()> {
        one_of_several_tasks(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn one_task_of_several_without_a_store_is_an_error_with_the_remedy() {
        let task = [("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")];
        let error = slurm(&task).unwrap_err().to_string();
        assert!(error.contains("task 3 of 4") && error.contains("srun --mpi=pmi2"), "{error}");
    }

    #[test]
    fn batch_scripts_shells_and_single_tasks_are_jobs_of_one() {
        let batch = [("SLURM_JOB_ID", "77"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64")];
        let script = [("SLURM_STEP_ID", "4294967291"), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")];
        let single = [("SLURM_STEP_ID", "1"), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
        for variables in [&[][..], &batch, &script, &single] {
            slurm(variables).unwrap();
        }
    }
}
