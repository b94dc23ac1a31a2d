//! Parcels: what the leaders of nodes send each other in collectives, and where it waits to be fetched.
//!
//! A parcel is any number of bytes under a name that sender and receiver compute alike. Its pieces come as active
//! messages, in order, and are put together by whoever serves; the receiver sleeps until all are there.
//!
//! Announcements are counted instead, per node: the least count is how often all have come, and is written where the
//! neighbours look for it.
//!
//! # Safety
//! BARRIER-KEPT: between [`Parcels::open`] and [`Parcels::close`] the barriers and bells that were named lie in the
//! window, which the node keeps mapped, and are only rung and counted in, by atomics.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::{Pod, Zeroable};

use super::builtin::arguments;
use super::origin::Origin;
use crate::consistency::{Access, Outstanding};
use crate::node::message::STAGING_BYTES;
use crate::sync::barrier::NodeBarrier;
use crate::sync::bell::Bell;
use crate::transport::{Incoming, Outgoing};

/// A piece of a parcel.
pub(crate) const PARCEL: u16 = 40;
/// A node has arrived at a split-phase barrier.
pub(crate) const ANNOUNCEMENT: u16 = 41;

/// Parcels that may wait here: no rank is further ahead than one exchange, whose steps are few.
const SHELF: usize = 1 << 12;

/// What a parcel is for.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub(crate) struct Exchange {
    /// Which gathering.
    pub(crate) key: u64,
    /// Its exchanges before.
    pub(crate) number: u64,
    pub(crate) step: u64,
}

/// The arguments of a piece, whose bytes are the message's payload.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Piece {
    exchange: Exchange,
    /// Bytes of the whole, and where these begin.
    whole: u64,
    offset: u64,
}

/// The arguments of an announcement.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Announcement {
    key: u64,
    node: u64,
}

/// Where announcements are counted for a gathering's neighbours.
#[derive(Debug)]
pub(crate) struct Bells {
    pub(crate) barrier: *const NodeBarrier,
    /// Where members sleep who also serve.
    pub(crate) others: Vec<*const Bell>,
}

// SAFETY: BARRIER-KEPT.
unsafe impl Send for Bells {}

/// A rank's parcels.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    shelf: Mutex<HashMap<(usize, Exchange), Parcel>>,
    counts: Mutex<HashMap<u64, Count>>,
}

/// What has come of a parcel.
#[derive(Debug)]
struct Parcel {
    bytes: Vec<u8>,
    whole: u64,
}

/// How often each node has announced itself.
#[derive(Debug, Default)]
struct Count {
    of_nodes: HashMap<u64, u64>,
    /// What is known of a gathering that this rank has opened: how many other nodes there are, and who is to hear.
    opened: Option<(usize, Bells)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an active message is for the parcels.
pub(crate) fn serves(handler: u16) -> bool {
    (PARCEL..=ANNOUNCEMENT).contains(&handler)
}

/// A message between leaders, as far as order is concerned.
fn outstanding(target: usize) -> Outstanding {
    Outstanding { target, region: None, access: Access::Other }
}

impl Parcels {
    /// Serves a message of this room.
    pub(crate) fn serve(&self, incoming: &Incoming<'_>) -> Result<usize, String> {
        if incoming.handler == ANNOUNCEMENT {
            let (Announcement { key, node }, _) = arguments(incoming)?;
            let mut counts = lock(&self.counts);
            let count = counts.entry(key).or_default();
            *count.of_nodes.entry(node).or_insert(0) += 1;
            count.tell();
            return Ok(0);
        }
        let (Piece { exchange, whole, offset }, _) = arguments(incoming)?;
        let mut shelf = lock(&self.shelf);
        let name = (incoming.source, exchange);
        if shelf.len() >= SHELF && !shelf.contains_key(&name) {
            return Err(format!("{SHELF} parcels wait already"));
        }
        let parcel = shelf.entry(name).or_insert_with(|| Parcel { bytes: Vec::new(), whole });
        let room = whole.saturating_sub(parcel.bytes.len() as u64);
        if parcel.whole != whole || parcel.bytes.len() as u64 != offset || incoming.staged.len() as u64 > room {
            let (len, have) = (incoming.staged.len(), parcel.bytes.len());
            return Err(format!("{len} bytes came for byte {offset} of {exchange:?}, of which {have} are here"));
        }
        parcel.bytes.extend_from_slice(incoming.staged);
        Ok(0)
    }

    /// Sends a parcel.
    pub(crate) fn send(origin: &Origin, target: usize, exchange: Exchange, bytes: &[u8]) {
        let mut offset = 0;
        loop {
            let piece = &bytes[offset..bytes.len().min(offset + STAGING_BYTES)];
            let slot = origin.claim();
            origin.stage(slot, piece);
            let arguments = Piece { exchange, whole: bytes.len() as u64, offset: offset as u64 };
            let inline = [bytemuck::bytes_of(&arguments), &[]];
            let message = Outgoing { handler: PARCEL, slot, inline, staged_len: piece.len() };
            origin.post(&message, outstanding(target), true);
            offset += piece.len();
            if offset == bytes.len() {
                return;
            }
        }
    }

    /// Takes a parcel off the shelf, once all of it is there. One of more than `limit` bytes is never sent.
    pub(super) fn take(&self, source: usize, exchange: Exchange, limit: usize) -> Option<Vec<u8>> {
        let mut shelf = lock(&self.shelf);
        let parcel = shelf.get(&(source, exchange))?;
        let whole = parcel.bytes.len() as u64 == parcel.whole && parcel.bytes.len() <= limit;
        if whole { shelf.remove(&(source, exchange)).map(|parcel| parcel.bytes) } else { None }
    }

    /// Announces this node, number `node` of a gathering, to a leader.
    pub(crate) fn announce(origin: &Origin, target: usize, key: u64, node: u64) {
        let slot = origin.claim();
        let arguments = Announcement { key, node };
        let inline = [bytemuck::bytes_of(&arguments), &[]];
        let message = Outgoing { handler: ANNOUNCEMENT, slot, inline, staged_len: 0 };
        origin.post(&message, outstanding(target), true);
    }

    /// Counts the announcements of a gathering of so many other nodes for these. (Some may have come already.)
    pub(crate) fn open(&self, key: u64, others: usize, bells: Bells) {
        let mut counts = lock(&self.counts);
        let count = counts.entry(key).or_default();
        count.opened = Some((others, bells));
        count.tell();
    }

    /// Counts no more.
    pub(crate) fn close(&self, key: u64) {
        lock(&self.counts).remove(&key);
    }
}

impl Count {
    /// Writes how often all have come where the neighbours look.
    fn tell(&self) {
        let Some((others, bells)) = &self.opened else { return };
        if self.of_nodes.len() < *others {
            return;
        }
        let least = self.of_nodes.values().copied().min().unwrap_or(0);
        // SAFETY: BARRIER-KEPT.
        unsafe {
            (*bells.barrier).come_beyond(least);
            bells.others.iter().for_each(|bell| (**bell).ring());
        }
    }
}
