//! The message path of vector transfers: lists of segments.
//!
//! Segments of one length and region travel together, as many as fit a message, each as a record: where it lies at
//! the target, and its bytes. (Unlike the batches of `by_message`, they need not be evenly spaced; a record costs 8
//! bytes for that.) Gets send records without bytes, and are pipelined and collected in order. Longer segments are
//! cut into pieces. Order among segments is kept, since a list is carried out in its order, and lists are.
//!
//! # Safety
//! LOCAL-SEGMENTS (see `vector`). REQUEST-SLOT (see `am/origin.rs`) for staging chunks.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use bytemuck::Pod;

use super::by_message::wrong_length;
use super::vector::Segment;
use crate::accumulate::kernels::ElementKind;
use crate::am::builtin::{self, AccumulateListArgs, LIST_MAX, List, RECORD};
use crate::am::origin::{PIPELINE, outstanding};
use crate::consistency::Access;
use crate::copy::copy;
use crate::error::Result;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::transport::Outgoing;
use crate::world::World;

/// The longest piece of a segment: whole elements of any kind, and a record with it fits a message.
const PIECE_MAX: usize = (STAGING_BYTES - RECORD) / 16 * 16;

/// The segments, cut into pieces; empty ones vanish.
fn pieces(segments: impl Iterator<Item = Segment<u8>> + Clone) -> impl Iterator<Item = Segment<u8>> + Clone {
    segments.flat_map(|whole| {
        (0..whole.count).step_by(PIECE_MAX).map(move |at| Segment {
            local: whole.local.wrapping_add(at),
            remote: whole.remote.add(at),
            count: PIECE_MAX.min(whole.count - at),
        })
    })
}

/// A list that is being written into the chunk of a request slot.
#[derive(Debug, Clone, Copy)]
struct Open {
    slot: usize,
    staging: *mut u8,
    rank: usize,
    region: RegionId,
    row: usize,
    segments: usize,
    /// Bytes of the chunk in use.
    used: usize,
}

impl Open {
    /// Begins a list with pieces like this one.
    fn new(world: &World, first: &Segment<u8>) -> Self {
        let slot = world.origin().claim();
        let GlobalPtr { region, .. } = first.remote;
        let staging = world.origin().staging(slot);
        Open { slot, staging, rank: first.remote.rank(), region, row: first.count, segments: 0, used: 0 }
    }

    /// Whether one more piece may go into the list, as a record of `record` bytes.
    fn takes(&self, piece: &Segment<u8>, record: usize) -> bool {
        // What the target sends back, for a get, has to fit a message too.
        let fits = self.used + record <= STAGING_BYTES && (self.segments + 1) * self.row <= STAGING_BYTES;
        fits && self.segments < LIST_MAX && piece.count == self.row && piece.remote.region == self.region
    }

    /// Writes a record: the piece's place and, where they travel along, its bytes.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS for the piece if `outward`; the list [takes](Open::takes) it.
    unsafe fn push(&mut self, piece: &Segment<u8>, outward: bool) {
        // SAFETY: REQUEST-SLOT: the chunk is ours until the list is sent, and has room for the record.
        unsafe {
            let record = self.staging.add(self.used);
            record.copy_from_nonoverlapping(piece.remote.offset.to_ne_bytes().as_ptr(), RECORD);
            if outward {
                copy(record.add(RECORD), piece.local, self.row);
            }
        }
        self.used += RECORD + if outward { self.row } else { 0 };
        self.segments += 1;
    }

    /// How the message names the list.
    fn list(&self) -> List {
        List { region: self.region.to_bits(), row: self.row as u32, segments: self.segments as u32 }
    }

    /// Sends the list.
    fn send(&self, world: &World, handler: u16, arguments: &impl Pod, access: Access) {
        let arguments = bytemuck::bytes_of(arguments);
        let inline = arguments.len() + self.used <= INLINE_MAX;
        // SAFETY: REQUEST-SLOT: the bytes were written by `push`.
        let data = if inline { unsafe { std::slice::from_raw_parts(self.staging, self.used) } } else { &[] };
        let staged_len = if inline { 0 } else { self.used };
        let message = Outgoing { handler, slot: self.slot, inline: [arguments, data], staged_len };
        world.origin().post(&message, outstanding(self.rank, self.region, access), access != Access::Other);
    }
}

/// Cuts segments into lists and sends each.
///
/// # Safety
/// LOCAL-SEGMENTS if `outward`.
unsafe fn for_each_list(
    world: &World,
    segments: impl Iterator<Item = Segment<u8>> + Clone,
    outward: bool,
    mut send: impl FnMut(Open),
) {
    let mut open: Option<Open> = None;
    for piece in pieces(segments) {
        let record = RECORD + if outward { piece.count } else { 0 };
        if !open.as_ref().is_some_and(|open| open.takes(&piece, record))
            && let Some(full) = open.take()
        {
            send(full);
        }
        // SAFETY: LOCAL-SEGMENTS; the list takes it, or is new, and a piece fits one.
        unsafe { open.get_or_insert_with(|| Open::new(world, &piece)).push(&piece, outward) };
    }
    if let Some(last) = open {
        send(last);
    }
}

/// Puts segments that were checked; locally complete on return, remotely after a fence.
///
/// # Safety
/// LOCAL-SEGMENTS.
pub(super) unsafe fn put(world: &World, segments: impl Iterator<Item = Segment<u8>> + Clone) {
    let send = |open: Open| open.send(world, builtin::PUT_LIST, &open.list(), Access::Put);
    // SAFETY: LOCAL-SEGMENTS.
    unsafe { for_each_list(world, segments, true, send) };
}

/// Accumulates segments that were checked; locally complete on return, remotely after a fence.
///
/// # Safety
/// LOCAL-SEGMENTS.
pub(super) unsafe fn accumulate(
    world: &World,
    segments: impl Iterator<Item = Segment<u8>> + Clone,
    kind: ElementKind,
    alpha: [u8; 16],
) {
    let send = |open: Open| {
        let arguments = AccumulateListArgs { list: open.list(), alpha, kind: kind as u64 };
        open.send(world, builtin::ACCUMULATE_LIST, &arguments, Access::Accumulate);
    };
    // SAFETY: LOCAL-SEGMENTS.
    unsafe { for_each_list(world, segments, true, send) };
}

/// Gets segments that were checked; complete on return.
///
/// # Safety
/// LOCAL-SEGMENTS.
pub(super) unsafe fn get(world: &World, segments: impl Iterator<Item = Segment<u8>> + Clone) -> Result<()> {
    let mut under_way: VecDeque<Open> = VecDeque::with_capacity(PIPELINE);
    // Lists are collected in the order they were sent in, so what comes back is for the next pieces.
    let mut awaited = pieces(segments.clone());
    let mut failed = None;
    let mut collect_oldest = |under_way: &mut VecDeque<Open>| {
        let Some(open) = under_way.pop_front() else { return };
        let mut awaited = awaited.by_ref().take(open.segments);
        let unpack = |data: &[u8]| {
            if data.len() != open.row * open.segments {
                return Err(wrong_length(open.rank, builtin::GET_LIST, open.row * open.segments, data.len()));
            }
            for (piece, data) in awaited.by_ref().zip(data.chunks_exact(open.row)) {
                // SAFETY: LOCAL-SEGMENTS, and the data is as long as the pieces of the list.
                unsafe { copy(piece.local, data.as_ptr(), open.row) };
            }
            Ok(())
        };
        if let Err(error) = world.origin().collect(open.slot, unpack).flatten() {
            failed.get_or_insert(error);
        }
        // Whatever came of it, the next list is for the pieces behind these.
        awaited.for_each(drop);
    };
    let send = |open: Open| {
        if under_way.len() == PIPELINE {
            collect_oldest(&mut under_way);
        }
        open.send(world, builtin::GET_LIST, &open.list(), Access::Other);
        under_way.push_back(open);
    };
    // SAFETY: nothing local travels.
    unsafe { for_each_list(world, segments, false, send) };
    while !under_way.is_empty() {
        collect_oldest(&mut under_way);
    }
    failed.map_or(Ok(()), Err)
}
