//! The agent: what the head is on its own host, on another one.
//!
//! It reads its call, calls back, waits until all hosts are there, and then starts its ranks as any launcher does. What
//! goes wrong before it has called back it says on standard error, which the remote shell carries to the user; whatever
//! comes later it tells the head.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

use super::super::super::network::greeting::{Introduction, VERSION};
use super::super::super::network::knock::{Greeted, knock};
use super::super::super::network::line::Line;
use super::super::super::place::Place;
use super::super::super::wire::{Frame, Kind, Reader, Words};
use super::super::ranks::{Part, Share};
use super::super::watch::Watch;
use super::super::{Bind, Job};
use super::HEADS_SILENCE;
use super::call::{self, Call, Plan};
use super::upstream::{self, Report, Upstream};
use crate::error::{Error, Result};

/// How long an address may take to answer, and to show that it is the head.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves as the agent of a launcher that has started this process through its remote shell, and returns the code to
/// exit with. `armci-run --agent` does nothing else.
#[must_use]
pub fn serve_as_agent() -> i32 {
    serve().unwrap_or_else(|error| {
        // Without a reader of standard error, the exit code must do.
        let _ = writeln!(std::io::stderr(), "armci-run: {error}");
        1
    })
}

fn serve() -> Result<i32> {
    // Not through a buffer: what follows is rank 0's.
    let call = Call::read(std::io::stdin().as_fd())?;
    let Some(mut greeted) = call_back(&call)? else { return Ok(1) };
    let share = loop {
        match greeted.receive(None) {
            Ok(Frame { kind: Kind::Start, payload }) => break decode_share(&payload).ok_or_else(call::no_call)?,
            Ok(word) if !upstream::is_end(&word) => {}
            // The head has ended the job, and says so itself, or is gone.
            _ => return Ok(1),
        }
    };
    let plan = Plan::decode(&call.plan).ok_or_else(call::no_call)?;
    let line = greeted.into_line();
    if let Err(error) = std::env::set_current_dir(&plan.directory) {
        return Ok(give_up(
            line,
            &share,
            &format!(
                "cannot be started in the directory {}, where the launcher is: {error}; start from a directory that every host has",
                plan.directory.display()
            ),
        ));
    }
    let job = plan.job(share.ranks)?;
    Ok(Watch::over_ranks(&job, Part::Host(share), Some(Upstream::new(line)))?.until_the_end()?.code)
}

/// Tells the head why nothing can be started here.
fn give_up(mut line: Line, share: &Share, reason: &str) -> i32 {
    let report = Report { code: 1, rank: Some(share.first), pid: 0, reason: reason.to_owned(), why: String::new() };
    line.send(report.encode().into());
    1
}

impl Plan {
    fn job(self, ranks: usize) -> Result<Job> {
        let mut job = Job::new(ranks, self.program)?
            .args(self.args)
            .bind(if self.bound { Bind::Core } else { Bind::None })
            .tag_output(self.tagged)
            .no_input(self.no_input);
        job.env = self.env;
        job.by_line = self.by_line;
        Ok(job)
    }
}

/// Tries where the head may be; nothing if the head has no use for this agent, which it says itself.
fn call_back(call: &Call) -> Result<Option<Greeted>> {
    let who = Introduction { host: call.host, version: VERSION.to_owned(), place: Place::mine()? };
    let mut tried = Vec::new();
    for address in &call.addresses {
        match knock(*address, call.secret, &who, HEADS_SILENCE, PATIENCE) {
            Ok(greeted) => return Ok(greeted),
            Err(error) => tried.push(format!("{address} ({error})")),
        }
    }
    Err(Error::Job(format!(
        "the launcher does not answer at any of its addresses: {}; say armci-run --address ADDRESS or INTERFACE, for one \
         that this host can reach",
        tried.join(", ")
    )))
}

/// What a host is to start, as the head says it.
pub(super) fn encode_share(share: &Share) -> Vec<u8> {
    let mut words = Words::default();
    let Share { first, ranks, size, node, nodes, nodes_here, ranks_here, before_here } = *share;
    for number in [first, ranks, size, node, nodes, nodes_here, ranks_here, before_here] {
        words.number(number as u64);
    }
    Frame::encode(Kind::Start, &words.0)
}

fn decode_share(payload: &[u8]) -> Option<Share> {
    let mut words = Reader(payload);
    let mut number = || words.number().and_then(|number| usize::try_from(number).ok());
    let share = Share {
        first: number()?,
        ranks: number()?,
        size: number()?,
        node: number()?,
        nodes: number()?,
        nodes_here: number()?,
        ranks_here: number()?,
        before_here: number()?,
    };
    let fits = share.first.checked_add(share.ranks)? <= share.size && share.node < share.nodes;
    (fits && share.before_here.checked_add(share.ranks)? <= share.ranks_here && words.0.is_empty()).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::super::super::super::wire::Frames;
    use super::*;

    #[test]
    fn a_share_round_trips_and_must_fit_the_job() {
        let share =
            Share { first: 2, ranks: 2, size: 5, node: 1, nodes: 3, nodes_here: 2, ranks_here: 4, before_here: 2 };
        let decoded = |share: &Share| {
            let mut frames = Frames::default();
            frames.push(&encode_share(share));
            decode_share(&frames.next().unwrap().unwrap().payload)
        };
        assert_eq!(decoded(&share), Some(share.clone()));
        assert_eq!(decoded(&Share { size: 3, ..share.clone() }), None);
        assert_eq!(decoded(&Share { node: 3, ..share.clone() }), None);
        assert_eq!(decoded(&Share { before_here: 3, ..share }), None);
    }
}
