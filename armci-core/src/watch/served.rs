//! What is noted of the messages that a rank serves, if statistics or a timeline are asked for.
//!
//! Written by whoever holds the service context, before the sender learns that its message was served; so the lock is
//! never waited for, except by who reads in the end, when nobody serves any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Zeroable;

use super::summary::{KINDS, SERVERS};
use super::tally::Tally;
use super::timeline::{Event, Room};
use super::{Watching, now};
use crate::am::builtin;
use crate::am::handlers::{FIRST_USER_HANDLER, LONG};
use crate::am::owner::Server;
use crate::memory::RegionId;
use crate::msg;
use crate::transport::Incoming;

/// The kind of a message for this handler, by number.
fn kind_of(handler: u16) -> usize {
    match handler & !LONG {
        builtin::PUT | builtin::PUT_LIST | builtin::PUT_PLANES => 0,
        builtin::GET | builtin::GET_LIST | builtin::GET_PLANES => 1,
        builtin::ACCUMULATE | builtin::ACCUMULATE_LIST | builtin::ACCUMULATE_PLANES => 2,
        builtin::RMW => 3,
        builtin::SIGNAL => 4,
        builtin::DESCRIBE => 5,
        two_sided if msg::serves(two_sided) => 6,
        // That of teams is registered first.
        FIRST_USER_HANDLER => 7,
        _ => 8,
    }
}

/// The region that a message is about, which all that are about one name first.
fn region_of(incoming: &Incoming<'_>) -> Option<RegionId> {
    let names_one = kind_of(incoming.handler) < 6 || incoming.handler & LONG != 0;
    let bits = incoming.inline.first_chunk().filter(|_| names_one)?;
    Some(RegionId::from_bits(u64::from_ne_bytes(*bits)))
}

/// What was noted of the messages served.
#[derive(Debug)]
pub(crate) struct ServedWatch {
    me: usize,
    room: Option<Arc<Room>>,
    notes: Mutex<Notes>,
}

#[derive(Debug)]
pub(crate) struct Notes {
    /// Of each server, of each kind; if asked for.
    pub(crate) tallies: Option<Vec<Tally>>,
    pub(crate) events: Vec<Event>,
}

impl ServedWatch {
    /// What the settings ask for, if anything.
    pub(crate) fn asked(watching: &Watching) -> Option<Box<Self>> {
        let tallies = watching.stats.then(|| vec![Tally::zeroed(); SERVERS * KINDS]);
        let (me, room) = (watching.me, watching.room.clone());
        let any = tallies.is_some() || room.is_some();
        let notes = Mutex::new(Notes { tallies, events: Vec::new() });
        any.then(|| Box::new(ServedWatch { me, room, notes }))
    }

    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs what serves a message, and notes that.
    pub(crate) fn note<T>(&self, incoming: &Incoming<'_>, server: Server, serve: impl FnOnce() -> T) -> T {
        // A reply may overwrite what came.
        let (kind, region) = (kind_of(incoming.handler), region_of(incoming));
        let bytes = incoming.inline.len() + incoming.staged.len();
        let begin = now();
        let done = serve();
        let nanoseconds = now() - begin;
        let mut notes = self.notes();
        if let Some(tallies) = &mut notes.tallies {
            let of_server = usize::from(server == Server::Waiter) * KINDS;
            tallies[of_server + kind].count(bytes, [incoming.source == self.me, false], false, nanoseconds);
        }
        if let Some(room) = &self.room
            && room.take()
        {
            notes.events.push(Event::of_message(begin, nanoseconds, kind, region, bytes, incoming.source, server));
        }
        done
    }
}
