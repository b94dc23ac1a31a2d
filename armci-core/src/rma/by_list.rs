//! The message path of vector transfers: lists of segments.
//!
//! Segments of one length and region travel together, as many as fit a message, each as a record: where it lies at
//! the target, and its bytes. (Unlike the batches of `by_message`, they need not be evenly spaced; a record costs 8
//! bytes for that.) Gets send records without bytes; where each belongs is kept with the request slot. Longer segments
//! are cut into pieces. Order among segments is kept, since a list is carried out in its order, and lists are.
//!
//! A list is written in the chunk of the slot it will be sent in, or, by [`Gathering`], over many calls in memory of
//! its own.
//!
//! # Safety
//! LOCAL-SEGMENTS (see `vector`). REQUEST-SLOT (see `am/origin.rs`) for staging chunks. OPEN-ROOM: what a list is
//! written to has [`STAGING_BYTES`], of which its records fill the first [`Open::used`].
#![allow(unsafe_code)]

use std::cell::RefMut;

use super::segment::Segment;
use crate::accumulate::kernels::ElementKind;
use crate::am::builtin::{self, AccumulateListArgs, LIST_MAX, List, RECORD};
use crate::am::landing::{Landing, Tag};
use crate::am::origin::{PIPELINE, outstanding};
use crate::consistency::Access;
use crate::copy::copy;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::transport::Outgoing;
use crate::world::World;

/// The longest piece of a segment: whole elements of any kind, and a record with it fits a message.
const PIECE_MAX: usize = (STAGING_BYTES - RECORD) / 16 * 16;

/// What a list does with its segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verb {
    /// Puts them.
    Put,
    /// Gets them.
    Get(Tag),
    /// Adds `alpha` times them, elements of `kind`.
    Accumulate { kind: ElementKind, alpha: [u8; 16] },
}

impl Verb {
    /// Whether their bytes travel along.
    fn outward(self) -> bool {
        !matches!(self, Verb::Get(_))
    }
}

/// The segments, cut into pieces; empty ones vanish.
fn pieces(segments: impl Iterator<Item = Segment<u8>>) -> impl Iterator<Item = Segment<u8>> {
    segments.flat_map(|whole| {
        (0..whole.count).step_by(PIECE_MAX).map(move |at| Segment {
            local: whole.local.wrapping_add(at),
            remote: whole.remote.add(at),
            count: PIECE_MAX.min(whole.count - at),
        })
    })
}

/// A list that is being written.
#[derive(Debug, Clone, Copy)]
struct Open {
    rank: usize,
    region: RegionId,
    row: usize,
    /// Bytes of a record.
    record: usize,
    segments: usize,
    /// Bytes in use.
    used: usize,
    verb: Verb,
}

impl Open {
    /// Begins a list with pieces like this one.
    fn new(first: &Segment<u8>, verb: Verb) -> Self {
        let GlobalPtr { region, .. } = first.remote;
        let (rank, row) = (first.remote.rank(), first.count);
        let record = RECORD + if verb.outward() { row } else { 0 };
        Open { rank, region, row, record, segments: 0, used: 0, verb }
    }

    /// Whether one more piece may go into the list.
    #[inline]
    fn takes(&self, piece: &Segment<u8>) -> bool {
        // What the target sends back, for a get, has to fit a message too.
        let fits = self.used + self.record <= STAGING_BYTES && (self.segments + 1) * self.row <= STAGING_BYTES;
        let alike = piece.count == self.row && piece.remote.region == self.region && piece.remote.rank() == self.rank;
        fits && alike && self.segments < LIST_MAX
    }

    /// Writes a record: the piece's place and, where they travel along, its bytes.
    ///
    /// # Safety
    /// OPEN-ROOM; LOCAL-SEGMENTS for the piece if `outward`, as the verb is; the list [takes](Open::takes) it.
    #[inline]
    unsafe fn push(&mut self, room: *mut u8, piece: &Segment<u8>, outward: bool) {
        // SAFETY: OPEN-ROOM, and there is room for the record.
        unsafe {
            let record = room.add(self.used);
            record.copy_from_nonoverlapping(piece.remote.offset.to_ne_bytes().as_ptr(), RECORD);
            if outward {
                copy(record.add(RECORD), piece.local, self.row);
            }
        }
        self.used += self.record;
        self.segments += 1;
    }

    /// Sends the list.
    ///
    /// # Safety
    /// The slot is claimed, its chunk is the list's room, and its places are where a get lands: LOCAL-SEGMENTS until
    /// that is complete.
    unsafe fn send(&self, world: &World, slot: usize) {
        let list = List { region: self.region.to_bits(), row: self.row as u32, segments: self.segments as u32 };
        let accumulate;
        let (handler, arguments, access) = match self.verb {
            Verb::Put => (builtin::PUT_LIST, bytemuck::bytes_of(&list), Access::Put),
            Verb::Get(_) => (builtin::GET_LIST, bytemuck::bytes_of(&list), Access::Get),
            Verb::Accumulate { kind, alpha } => {
                accumulate = AccumulateListArgs { list, alpha, kind: kind as u64 };
                (builtin::ACCUMULATE_LIST, bytemuck::bytes_of(&accumulate), Access::Accumulate)
            }
        };
        let origin = world.origin();
        let inline = arguments.len() + self.used <= INLINE_MAX;
        // SAFETY: REQUEST-SLOT: the chunk is ours until the list is sent; OPEN-ROOM.
        let data = if inline { unsafe { std::slice::from_raw_parts(origin.staging(slot), self.used) } } else { &[] };
        let staged_len = if inline { 0 } else { self.used };
        let message = Outgoing { handler, slot, inline: [arguments, data], staged_len };
        let what = outstanding(self.rank, self.region, access);
        match self.verb {
            // SAFETY: LOCAL-SEGMENTS is LANDING for the places.
            Verb::Get(tag) => unsafe { origin.post_get(&message, what, tag, Landing::Places { row: self.row }) },
            Verb::Put | Verb::Accumulate { .. } => origin.post(&message, what, true),
        }
    }
}

/// A list that is being written in the chunk of a claimed slot.
struct InSlot<'a> {
    slot: usize,
    room: *mut u8,
    places: RefMut<'a, Vec<*mut u8>>,
    list: Open,
}

impl<'a> InSlot<'a> {
    /// Claims a slot for a list with pieces like this one.
    fn new(world: &'a World, first: &Segment<u8>, verb: Verb) -> Self {
        let origin = world.origin();
        let slot = origin.claim();
        let mut places = origin.places(slot);
        places.clear();
        InSlot { slot, room: origin.staging(slot), places, list: Open::new(first, verb) }
    }

    /// Sends it.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS, for a get until it is complete.
    unsafe fn send(self, world: &World) {
        let InSlot { slot, places, list, .. } = self;
        drop(places);
        // SAFETY: REQUEST-SLOT, and it was written to its chunk; LOCAL-SEGMENTS.
        unsafe { list.send(world, slot) };
    }
}

/// Carries out segments that were checked: puts and accumulates are locally complete on return, and remotely after a
/// fence; gets once their tag has been waited for.
///
/// # Safety
/// LOCAL-SEGMENTS.
pub(super) unsafe fn transfer(world: &World, segments: impl Iterator<Item = Segment<u8>>, verb: Verb) {
    let outward = verb.outward();
    let mut open: Option<InSlot<'_>> = None;
    let mut lists = 0;
    for piece in pieces(segments) {
        if !open.as_ref().is_some_and(|open| open.list.takes(&piece))
            && let Some(full) = open.take()
        {
            // SAFETY: LOCAL-SEGMENTS.
            unsafe { full.send(world) };
            lists += 1;
            if let Verb::Get(tag) = verb
                && lists >= PIPELINE
            {
                world.origin().narrow(tag.op);
            }
        }
        let open = open.get_or_insert_with(|| InSlot::new(world, &piece, verb));
        if !outward {
            open.places.push(piece.local);
        }
        // SAFETY: OPEN-ROOM by REQUEST-SLOT; LOCAL-SEGMENTS; the list takes the piece, or is new, and a piece fits one.
        unsafe { open.list.push(open.room, &piece, outward) };
    }
    if let Some(last) = open {
        // SAFETY: LOCAL-SEGMENTS.
        unsafe { last.send(world) };
    }
}

/// Segments that are collected over many calls, and sent as lists.
///
/// What is collected lies in memory of its own, and takes a request slot only to be sent: any number may be collected
/// at once, and one that is forgotten holds nothing up.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Nothing, or room for a list.
    room: Vec<u8>,
    /// Where the segments of the list belong, for a get.
    places: Vec<*mut u8>,
    open: Option<Open>,
}

impl Gathering {
    /// Adds a segment that was checked.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS; for a get, until it is complete.
    pub(crate) unsafe fn add(&mut self, world: &World, segment: Segment<u8>, verb: Verb) {
        for piece in pieces(std::iter::once(segment)) {
            if self.open.as_ref().is_some_and(|open| open.verb != verb || !open.takes(&piece)) {
                self.send(world);
            }
            self.room.reserve_exact(STAGING_BYTES);
            let open = self.open.get_or_insert_with(|| Open::new(&piece, verb));
            if !verb.outward() {
                self.places.push(piece.local);
            }
            // SAFETY: OPEN-ROOM was just reserved; LOCAL-SEGMENTS; the list takes the piece.
            unsafe { open.push(self.room.as_mut_ptr(), &piece, verb.outward()) };
        }
    }

    /// Sends what was collected.
    pub(crate) fn send(&mut self, world: &World) {
        let Some(open) = self.open.take() else { return };
        let origin = world.origin();
        let slot = origin.claim();
        origin.places(slot).clone_from(&self.places);
        self.places.clear();
        // SAFETY: REQUEST-SLOT and OPEN-ROOM; the places are those that LOCAL-SEGMENTS was promised for.
        unsafe {
            copy(origin.staging(slot), self.room.as_ptr(), open.used);
            open.send(world, slot);
        }
    }
}
