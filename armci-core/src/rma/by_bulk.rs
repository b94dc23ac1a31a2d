//! Patches between nodes by long messages: the way of `by_message` for what is longer than a few staging chunks.
//!
//! Rows are packed into a long buffer, which the target fetches and serves as one message; what it sends back it stores
//! in such a buffer. Several are under way, so packing the next overlaps with the target's fetching of the last. What is
//! contiguous here and accumulated in a call is not packed: it is fetched from where it lies. Pieces of a patch that fit
//! a chunk (where a patch has no longer evenly spaced ones) go as short messages among the long ones.
//!
//! # Safety
//! LOCAL-PATCH, as in `by_message`. BULK-BUFFER (see `transport/ofi/bulk.rs`) for long buffers. REQUEST-SLOT.
#![allow(unsafe_code)]

use super::Completion;
use super::by_message::{Verb, for_each_batch, send_packed};
use crate::am::builtin;
use crate::am::landing::{Landing, Tag};
use crate::am::origin::{Origin, PIPELINE, outstanding};
use crate::consistency::{Access, Outstanding};
use crate::copy::{Patch, copy_patch};
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::node::message::STAGING_BYTES;
use crate::transport::Outgoing;
use crate::transport::ofi::{BULK_BYTES, Errand, Line, Place, Purpose, Through};
use crate::world::World;

/// Patches from so many bytes on go by long messages: below, the round trip that fetching adds costs more than it saves. (Over TCP on
/// loopback, short against long, the target in a call: 24 KiB 35 and 35 us, 48 KiB 57 and 39, 96 KiB 104 and 48; while it computes:
/// 32 KiB 68 and 76, 48 KiB 85 and 77, 96 KiB 124 and 87.)
pub(super) const BULK_FROM: usize = 3 * STAGING_BYTES;

/// How long messages of one patch go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) line: &'a Line,
    pub(super) through: Through,
}

/// How so many bytes go by long messages, if they do.
pub(super) fn way(world: &World, rank: usize, bytes: usize, later: bool, stores: bool) -> Option<Way<'_>> {
    if bytes < BULK_FROM {
        return None;
    }
    world.origin().bulk_to(rank, later, stores).map(|(line, through)| Way { line, through })
}

/// Packs a patch of so many bytes into a long buffer: the place that the target fetches it from, and the buffer.
///
/// # Safety
/// LOCAL-PATCH for what `packing` takes from `local`, which fits a long buffer.
pub(super) unsafe fn pack(
    origin: &Origin,
    Way { line, through }: Way<'_>,
    local: *const u8,
    packing: &Patch,
    bytes: usize,
) -> (Place, usize) {
    let buffer = origin.claim_bulk(line);
    // SAFETY: LOCAL-PATCH; BULK-BUFFER: it was claimed.
    unsafe { copy_patch(line.bulk_at(buffer), local, packing) };
    (Origin::bulk_place(line, Errand::Fetch, through, buffer, bytes), buffer)
}

/// Sends a request in a claimed slot for so many bytes, which come in the reply or, if they are too many, by a long buffer.
/// Its order was seen to.
///
/// # Safety
/// LANDING (see `am/landing.rs`), for `answer`.
pub(super) unsafe fn ask(
    origin: &Origin,
    Way { line, through }: Way<'_>,
    message: &Outgoing<'_>,
    what: Outstanding,
    answer: (Tag, Landing),
    bytes: usize,
) {
    if bytes <= STAGING_BYTES {
        // SAFETY: LANDING.
        return unsafe { origin.post_among(message, what, Some(answer)) };
    }
    let buffer = origin.claim_bulk(line);
    let place = Origin::bulk_place(line, Errand::Store, through, buffer, bytes);
    // SAFETY: LANDING.
    unsafe { origin.post_stored(message, what, answer, &place, buffer) };
}

/// Puts or accumulates a patch; locally complete on return, remotely after a fence.
///
/// # Safety
/// LOCAL-PATCH.
pub(super) unsafe fn send(
    world: &World,
    way: Way<'_>,
    source: *const u8,
    target: GlobalPtr<u8>,
    patch: &Patch,
    verb: &Verb,
) {
    let origin = world.origin();
    let what = outstanding(target.rank(), target.region, verb.access());
    origin.order_bulk(target.rank(), target.region, verb.access());
    let Way { line, through } = way;
    let straight = through == Through::Line && patch.rows() == 1;
    // SAFETY: LOCAL-PATCH: it stays for the call, in which this ends, behind all that fetches from it.
    let lent = if straight { unsafe { line.lend(Purpose::Fetched, source.cast_mut(), patch.bytes()) } } else { None };
    for_each_batch(patch, target.offset, source.cast_mut(), true, BULK_BYTES, |batch| {
        let arguments = verb.arguments(batch.rows_at(target));
        if batch.bytes() <= STAGING_BYTES {
            // SAFETY: LOCAL-PATCH; nothing lands.
            unsafe {
                send_packed(world, verb.handler(), arguments.bytes(), &batch, |message| {
                    origin.post_among(message, what, None);
                });
            }
            return;
        }
        let (place, buffer) = match &lent {
            Some(lent) => (lent.place(batch.local as usize - source as usize, batch.bytes()), None),
            None => {
                // SAFETY: LOCAL-PATCH; a batch fits.
                let (place, buffer) = unsafe { pack(origin, way, batch.local, &batch.packing(), batch.bytes()) };
                (place, Some(buffer))
            }
        };
        let inline = [arguments.bytes(), &[]];
        let message = Outgoing { handler: verb.handler(), slot: origin.claim(), inline, staged_len: 0 };
        origin.post_fetched(&message, what, &place, buffer);
    });
    origin.settle_bulk();
}

/// Gets a patch.
///
/// # Safety
/// LOCAL-PATCH, until the get is complete.
pub(super) unsafe fn get(
    world: &World,
    way: Way<'_>,
    source: GlobalPtr<u8>,
    target: *mut u8,
    patch: &Patch,
    completion: Completion,
) -> Result<()> {
    let origin = world.origin();
    let tag = completion.tag(origin);
    let what = outstanding(source.rank(), source.region, Access::Get);
    origin.order_bulk(source.rank(), source.region, Access::Get);
    let mut batches = 0;
    for_each_batch(patch, source.offset, target, false, BULK_BYTES, |batch| {
        if batches >= PIPELINE {
            origin.narrow(tag.op);
        }
        batches += 1;
        let slot = origin.claim();
        let rows = batch.rows_at(source);
        let message = Outgoing { handler: builtin::GET, slot, inline: [bytemuck::bytes_of(&rows), &[]], staged_len: 0 };
        // SAFETY: LOCAL-PATCH is LANDING for the rows of the batch.
        unsafe { ask(origin, way, &message, what, (tag, batch.landing()), batch.bytes()) };
    });
    if way.through == Through::Line {
        origin.settle_bulk();
    }
    completion.settle(origin, tag)
}
