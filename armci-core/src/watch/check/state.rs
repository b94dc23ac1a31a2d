//! What the checker of a rank keeps for itself.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::history::Clock;
use super::home::Home;
use super::request::Request;
use crate::am::HandlerId;
use crate::am::service::Service;
use crate::config::Config;
use crate::node::Node;
use crate::node::message::STAGING_BYTES;

/// Ranks of a job whose clock fits half a message.
const RANKS_MAX: usize = STAGING_BYTES / 2 / size_of::<u64>();

/// The checker of a rank, for all its threads.
#[derive(Debug)]
pub(crate) struct Check {
    pub(super) me: usize,
    pub(super) ranks: usize,
    pub(super) handler: HandlerId,
    pub(super) own: Mutex<Own>,
    pub(super) home: Arc<Mutex<Home>>,
    pub(super) accesses: AtomicU64,
    pub(super) not_kept: AtomicU64,
}

/// A rank's course.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) clock: Clock,
    /// The meetings of all ranks that this one has come to.
    pub(super) meetings: u64,
    /// Where it wrote since it fenced there.
    pub(super) unfenced: BTreeSet<usize>,
}

impl Own {
    /// The number of what is done now, and the end of it: what follows has the next one.
    pub(super) fn tick(&mut self, me: usize) -> u64 {
        self.clock.0[me] += 1;
        self.clock.0[me] - 1
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line for the user. Standard error may be gone.
pub(super) fn say(line: impl Display) {
    let _ = io::stderr().write_all(format!("ARMCI_CHECK: {line}\n").as_bytes());
}

impl Check {
    /// The rank that knows what was found.
    pub(super) const FIRST: usize = 0;

    /// The checker, if the settings ask for it; on all ranks alike, since it takes the number of a handler.
    pub(crate) fn asked(config: &Config, service: &Service, node: &Node) -> Option<Self> {
        if !config.check {
            return None;
        }
        let (ranks, me) = (node.who().size, node.who().rank);
        if ranks > RANKS_MAX {
            if me == Self::FIRST {
                say(format_args!("{ranks} ranks are not checked, at most {RANKS_MAX} can be"));
            }
            return None;
        }
        let home = Arc::new(Mutex::new(Home::new(ranks)));
        let asked = home.clone();
        let handler = service.handlers().register(Box::new(move |delivery, reply| {
            let answer = lock(&asked).answer(delivery.source, Request::decode(delivery.payload)?)?;
            reply.set(&answer)
        }))?;
        let mut clock = Clock::new(ranks);
        clock.0[me] = 1;
        let own = Mutex::new(Own { clock, meetings: 0, unfenced: BTreeSet::new() });
        let (accesses, not_kept) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Check { me, ranks, handler, own, home, accesses, not_kept })
    }

    /// This rank's course, with all heard that its handlers were told.
    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        let mut own = lock(&self.own);
        own.clock.join(&lock(&self.home).handlers);
        own
    }
}
