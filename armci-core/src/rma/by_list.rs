//! The message path of vector transfers: lists of segments.
//!
//! Segments of one length and region travel together, as many as fit a message, each as a record: where it lies at
//! the target, and its bytes. (Unlike the batches of `by_message`, they need not be evenly spaced; a record costs 8
//! bytes for that.) Gets send records without bytes; where each belongs is kept with the request slot. Longer segments
//! are cut into pieces. Order among segments is kept, since a list is carried out in its order, and lists are.
//!
//! Between nodes what has more than a few chunks goes as long messages (see `by_bulk`): the records of a put or
//! accumulate lie in a long buffer, the reply to a get is stored in one. Those keep no order among themselves. So a list
//! of puts that may touch what an earlier one did waits for it, and the rest of the segments goes in short lists: they
//! lie in no order, and a wait for each long list would cost more than it saves.
//!
//! A list is written in the chunk of the slot it will be sent in, or in a long buffer, or, by [`Gathering`], over many
//! calls in memory of its own.
//!
//! # Safety
//! LOCAL-SEGMENTS (see `vector`). REQUEST-SLOT (see `am/origin.rs`) for staging chunks, BULK-BUFFER (see
//! `transport/ofi/bulk.rs`) for long buffers. OPEN-ROOM: what a list is written to has as many bytes as its [`Limits`]
//! give its records, which fill the first [`Open::used`].
#![allow(unsafe_code)]

use std::cell::RefMut;

use super::by_bulk::{self, Way};
use super::segment::Segment;
use crate::accumulate::kernels::ElementKind;
use crate::am::builtin::{self, AccumulateListArgs, LIST_MAX, List, RECORD};
use crate::am::landing::{Landing, Tag};
use crate::am::origin::{Origin, PIPELINE, outstanding};
use crate::consistency::{Access, Outstanding};
use crate::copy::copy;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::transport::Outgoing;
use crate::transport::ofi::{BULK_BYTES, Errand, Through};
use crate::world::World;

/// How long a list and its segments become.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Bytes of a piece of a segment: whole elements of any kind, and a record with it fits.
    piece: usize,
    /// Bytes of all records.
    records: usize,
    /// Bytes of all segments: what the target sends back, for a get, has to fit, too.
    segments: usize,
}

impl Limits {
    /// Of a message of one chunk.
    const SHORT: Self =
        Limits { piece: (STAGING_BYTES - RECORD) / 16 * 16, records: STAGING_BYTES, segments: STAGING_BYTES };

    /// Of a long one. The records of a get travel in its packet all the same.
    fn long(verb: Verb) -> Self {
        if verb.outward() {
            Limits { piece: (BULK_BYTES - RECORD) / 16 * 16, records: BULK_BYTES, segments: BULK_BYTES }
        } else {
            Limits { piece: BULK_BYTES, records: STAGING_BYTES, segments: BULK_BYTES }
        }
    }
}

// A get's records fit a chunk, so there are never more than its target takes.
const _: () = assert!(LIST_MAX * RECORD == STAGING_BYTES);

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

    fn access(self) -> Access {
        match self {
            Verb::Put => Access::Put,
            Verb::Get(_) => Access::Get,
            Verb::Accumulate { .. } => Access::Accumulate,
        }
    }
}

/// The piece of a segment that begins at byte `at` of it.
#[inline]
fn piece(whole: &Segment<u8>, at: usize, limits: &Limits) -> Segment<u8> {
    Segment {
        local: whole.local.wrapping_add(at),
        remote: whole.remote.add(at),
        count: limits.piece.min(whole.count - at),
    }
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
    /// The first byte of them all at the target, and the one behind them all.
    span: [u64; 2],
    verb: Verb,
    limits: Limits,
}

impl Open {
    /// Begins a list with pieces like this one.
    fn new(first: &Segment<u8>, verb: Verb, limits: Limits) -> Self {
        let GlobalPtr { region, .. } = first.remote;
        let (rank, row) = (first.remote.rank(), first.count);
        let record = RECORD + if verb.outward() { row } else { 0 };
        Open { rank, region, row, record, segments: 0, used: 0, span: [u64::MAX, 0], verb, limits }
    }

    /// Whether one more piece may go into the list.
    #[inline]
    fn takes(&self, piece: &Segment<u8>) -> bool {
        let Limits { records, segments, .. } = self.limits;
        let fits = self.used + self.record <= records && (self.segments + 1) * self.row <= segments;
        let alike = piece.count == self.row && piece.remote.region == self.region && piece.remote.rank() == self.rank;
        fits && alike
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
        let [begin, end] = self.span;
        self.span = [begin.min(piece.remote.offset), end.max(piece.remote.offset + self.row as u64)];
    }

    /// What it does, for those that come behind it.
    fn what(&self) -> Outstanding {
        outstanding(self.rank, self.region, self.verb.access())
    }

    /// Lends its arguments to `send`, with the handler they are for.
    fn with_arguments(&self, send: impl FnOnce(u16, &[u8])) {
        let list = List { region: self.region.to_bits(), row: self.row as u32, segments: self.segments as u32 };
        match self.verb {
            Verb::Put => send(builtin::PUT_LIST, bytemuck::bytes_of(&list)),
            Verb::Get(_) => send(builtin::GET_LIST, bytemuck::bytes_of(&list)),
            Verb::Accumulate { kind, alpha } => {
                let arguments = AccumulateListArgs { list, alpha, kind: kind as u64 };
                send(builtin::ACCUMULATE_LIST, bytemuck::bytes_of(&arguments));
            }
        }
    }

    /// Lends the message to `post` whose records lie in the chunk of a claimed slot.
    fn in_chunk(&self, origin: &Origin, slot: usize, post: impl FnOnce(&Outgoing<'_>)) {
        self.with_arguments(|handler, arguments| {
            let inline = arguments.len() + self.used <= INLINE_MAX;
            let (inline_len, staged_len) = if inline { (self.used, 0) } else { (0, self.used) };
            // SAFETY: REQUEST-SLOT: the chunk is ours until the list is sent; OPEN-ROOM.
            let data = unsafe { std::slice::from_raw_parts(origin.staging(slot), inline_len) };
            post(&Outgoing { handler, slot, inline: [arguments, data], staged_len });
        });
    }

    /// What becomes of a reply with data.
    fn answer(&self) -> Option<(Tag, Landing)> {
        match self.verb {
            Verb::Get(tag) => Some((tag, Landing::Places { row: self.row })),
            Verb::Put | Verb::Accumulate { .. } => None,
        }
    }

    /// Sends the list.
    ///
    /// # Safety
    /// The slot is claimed, its chunk is the list's room, and its places are where a get lands: LOCAL-SEGMENTS until
    /// that is complete.
    unsafe fn send(&self, world: &World, slot: usize) {
        let origin = world.origin();
        self.in_chunk(origin, slot, |message| match self.answer() {
            // SAFETY: LOCAL-SEGMENTS is LANDING for the places.
            Some((tag, landing)) => unsafe { origin.post_get(message, self.what(), tag, landing) },
            None => origin.post(message, self.what(), true),
        });
    }

    /// Sends a list that fits a message of one chunk, among long ones; its order was seen to.
    ///
    /// # Safety
    /// As [`Open::send`].
    unsafe fn send_among(&self, world: &World, slot: usize) {
        let origin = world.origin();
        self.in_chunk(origin, slot, |message| {
            // SAFETY: LOCAL-SEGMENTS is LANDING for the places.
            unsafe { origin.post_among(message, self.what(), self.answer()) };
        });
    }
}

/// Where a list is being written.
#[derive(Debug, Clone, Copy)]
enum Room {
    /// In the chunk of a claimed slot.
    Slot(usize),
    /// In a claimed long buffer.
    Buffer(usize),
}

/// A list that is being written.
struct Written<'a> {
    room: Room,
    at: *mut u8,
    /// Where it lands, if it is a get.
    places: Option<RefMut<'a, Vec<*mut u8>>>,
    list: Open,
}

/// The part of a region that lists went to which keep no order.
struct Touched {
    region: RegionId,
    span: [u64; 2],
}

/// The lists of one transfer.
struct Lists<'a> {
    world: &'a World,
    verb: Verb,
    /// How long ones go, if they do.
    way: Option<Way<'a>>,
    limits: Limits,
    touched: Option<Touched>,
    sent: usize,
}

impl<'a> Lists<'a> {
    /// Takes room for a list with pieces like this one.
    fn begin(&self, first: &Segment<u8>) -> Written<'a> {
        let origin = self.world.origin();
        let list = Open::new(first, self.verb, self.limits);
        if let Some(way) = self.way.filter(|_| self.limits.records > STAGING_BYTES) {
            let buffer = origin.claim_bulk(way.line);
            return Written { room: Room::Buffer(buffer), at: way.line.bulk_at(buffer), places: None, list };
        }
        let slot = origin.claim();
        let places = (!self.verb.outward()).then(|| origin.places(slot));
        let mut written = Written { room: Room::Slot(slot), at: origin.staging(slot), places, list };
        if let Some(places) = &mut written.places {
            places.clear();
        }
        written
    }

    /// Sends a list.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS, for a get until it is complete.
    unsafe fn send(&mut self, Written { room, at, places, list }: Written<'a>) {
        drop(places);
        self.sent += 1;
        let (world, origin) = (self.world, self.world.origin());
        let Some(way) = self.way else {
            let Room::Slot(slot) = room else { unreachable!("a long buffer without a line") };
            // SAFETY: REQUEST-SLOT, and it was written to its chunk; LOCAL-SEGMENTS.
            return unsafe { list.send(world, slot) };
        };
        self.order(&list);
        let returned = list.segments * list.row;
        match room {
            Room::Slot(slot) if list.verb.outward() || returned <= STAGING_BYTES => {
                // SAFETY: as above.
                unsafe { list.send_among(world, slot) };
            }
            Room::Slot(slot) => {
                let Some(answer) = list.answer() else { unreachable!("a get") };
                list.in_chunk(origin, slot, |message| {
                    // SAFETY: LOCAL-SEGMENTS is LANDING for the places.
                    unsafe { by_bulk::ask(origin, way, message, list.what(), answer, returned) };
                });
            }
            Room::Buffer(buffer) if list.used <= STAGING_BYTES => {
                let slot = origin.claim();
                // SAFETY: REQUEST-SLOT, OPEN-ROOM, BULK-BUFFER: both are claimed; LOCAL-SEGMENTS.
                unsafe {
                    copy(origin.staging(slot), at, list.used);
                    way.line.release_bulk(buffer);
                    list.send_among(world, slot);
                }
            }
            Room::Buffer(buffer) => {
                let place = Origin::bulk_place(way.line, Errand::Fetch, way.through, buffer, list.used);
                let slot = origin.claim();
                list.with_arguments(|handler, arguments| {
                    let message = Outgoing { handler, slot, inline: [arguments, &[]], staged_len: 0 };
                    origin.post_fetched(&message, list.what(), &place, Some(buffer));
                });
            }
        }
    }

    /// Before a list goes where long ones go: waits for what it is to come behind.
    fn order(&mut self, list: &Open) {
        let [begin, end] = list.span;
        match &mut self.touched {
            Some(Touched { region, span }) if *region == list.region => {
                let beside = end <= span[0] || span[1] <= begin;
                if beside || list.verb != Verb::Put {
                    *span = [begin.min(span[0]), end.max(span[1])];
                    return;
                }
                self.limits = Limits::SHORT;
            }
            _ => (),
        }
        self.world.origin().order_bulk(list.rank, list.region, list.verb.access());
        self.touched = Some(Touched { region: list.region, span: list.span });
    }
}

/// Carries out segments that were checked and have so many bytes: puts and accumulates are locally complete on return,
/// and remotely after a fence; gets once their tag has been waited for. `later` says that this is not at once.
///
/// # Safety
/// LOCAL-SEGMENTS.
pub(super) unsafe fn transfer(
    world: &World,
    segments: impl Iterator<Item = Segment<u8>> + Clone,
    bytes: usize,
    verb: Verb,
    later: bool,
) {
    let Some(first) = segments.clone().next() else { return };
    let way = by_bulk::way(world, first.remote.rank(), bytes, later, !verb.outward());
    let limits = if way.is_some() { Limits::long(verb) } else { Limits::SHORT };
    let mut lists = Lists { world, verb, way, limits, touched: None, sent: 0 };
    let mut open: Option<Written<'_>> = None;
    for whole in segments {
        let mut at = 0;
        while at < whole.count {
            let mut next = piece(&whole, at, &lists.limits);
            if !open.as_ref().is_some_and(|open| open.list.takes(&next))
                && let Some(full) = open.take()
            {
                // SAFETY: LOCAL-SEGMENTS.
                unsafe { lists.send(full) };
                // Lists may have become short by that.
                next = piece(&whole, at, &lists.limits);
                if let Verb::Get(tag) = verb
                    && lists.sent >= PIPELINE
                {
                    world.origin().narrow(tag.op);
                }
            }
            let open = open.get_or_insert_with(|| lists.begin(&next));
            if let Some(places) = &mut open.places {
                places.push(next.local);
            }
            // SAFETY: OPEN-ROOM by REQUEST-SLOT or BULK-BUFFER; LOCAL-SEGMENTS; the list takes the piece, or is new, and
            // a piece fits one.
            unsafe { open.list.push(open.at, &next, verb.outward()) };
            at += next.count;
        }
    }
    if let Some(last) = open {
        // SAFETY: LOCAL-SEGMENTS.
        unsafe { lists.send(last) };
    }
    if way.is_some_and(|way| way.through == Through::Line) {
        world.origin().settle_bulk();
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
        let mut at = 0;
        while at < segment.count {
            let piece = piece(&segment, at, &Limits::SHORT);
            at += piece.count;
            if self.open.as_ref().is_some_and(|open| open.verb != verb || !open.takes(&piece)) {
                self.send(world);
            }
            self.room.reserve_exact(STAGING_BYTES);
            let open = self.open.get_or_insert_with(|| Open::new(&piece, verb, Limits::SHORT));
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
