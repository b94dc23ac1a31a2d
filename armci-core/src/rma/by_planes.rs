//! Patches of three and more dimensions between nodes, whose planes are short: as many as fit travel in one long message.
//!
//! The batches of `by_message` are evenly spaced rows, so a message ends with each plane at the latest. Here it names
//! [`OUTER`](crate::am::builtin::OUTER) levels more; what a get brings lands row by row. All else is as in `by_bulk`.
//!
//! # Safety
//! LOCAL-PATCH, as in `by_message`. REQUEST-SLOT.
#![allow(unsafe_code)]

use super::Completion;
use super::by_bulk::{Way, ask, pack};
use super::by_message::Verb;
use crate::am::builtin::{self, AccumulatePlanesArgs, Planes};
use crate::am::landing::Landing;
use crate::am::origin::{PIPELINE, outstanding};
use crate::consistency::Access;
use crate::copy::{Patch, copy_patch};
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::node::message::STAGING_BYTES;
use crate::transport::Outgoing;
use crate::transport::ofi::{BULK_BYTES, Through};
use crate::world::World;

/// Whether messages of whole planes are fewer than those of rows.
pub(super) fn pay(patch: &Patch) -> bool {
    let (depth, plane) = patch.depth_and_plane();
    depth > 1 && 2 * plane <= BULK_BYTES
}

/// The patch that packs a block, whose target is the remote side.
fn packing(block: &Patch) -> Patch {
    let mut patch = Patch::row(block.row_bytes());
    let mut packed = block.row_bytes();
    for (count, _, local) in block.levels() {
        patch.push(count, packed, local);
        packed *= count;
    }
    patch
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
    patch.for_each_block(BULK_BYTES, Planes::LEVELS, |remote, local, block| {
        let levels = block.levels().map(|(count, remote, _)| (count, remote));
        let planes = Planes::new(target.region, target.offset + remote as u64, block.row_bytes(), levels);
        let accumulate;
        let (handler, arguments) = match *verb {
            Verb::Put => (builtin::PUT_PLANES, bytemuck::bytes_of(&planes)),
            Verb::Accumulate { kind, alpha } => {
                accumulate = AccumulatePlanesArgs { planes, alpha, kind: kind as u64 };
                (builtin::ACCUMULATE_PLANES, bytemuck::bytes_of(&accumulate))
            }
        };
        let (bytes, local) = (block.bytes(), source.wrapping_add(local));
        let message = |slot, staged_len| Outgoing { handler, slot, inline: [arguments, &[]], staged_len };
        if bytes <= STAGING_BYTES {
            let slot = origin.claim();
            // SAFETY: LOCAL-PATCH; REQUEST-SLOT: the chunk is ours, and the block fits it; nothing lands.
            unsafe {
                copy_patch(origin.staging(slot), local, &packing(block));
                origin.post_among(&message(slot, bytes), what, None);
            }
            return;
        }
        // SAFETY: LOCAL-PATCH; a block fits.
        let (place, buffer) = unsafe { pack(origin, way, local, &packing(block), bytes) };
        origin.post_fetched(&message(origin.claim(), 0), what, &place, Some(buffer));
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
    let mut blocks = 0;
    patch.for_each_block(BULK_BYTES, Planes::LEVELS, |local, remote, block| {
        if blocks >= PIPELINE {
            origin.narrow(tag.op);
        }
        blocks += 1;
        let levels = block.levels().map(|(count, _, remote)| (count, remote));
        let planes = Planes::new(source.region, source.offset + remote as u64, block.row_bytes(), levels);
        let slot = origin.claim();
        let mut places = origin.places(slot);
        places.clear();
        block.for_each_place(true, |row, _| places.push(target.wrapping_add(local + row)));
        drop(places);
        let inline = [bytemuck::bytes_of(&planes), &[]];
        let message = Outgoing { handler: builtin::GET_PLANES, slot, inline, staged_len: 0 };
        let answer = (tag, Landing::Places { row: block.row_bytes() });
        // SAFETY: LOCAL-PATCH is LANDING for the rows of the block.
        unsafe { ask(origin, way, &message, what, answer, block.bytes()) };
    });
    if way.through == Through::Line {
        origin.settle_bulk();
    }
    completion.settle(origin, tag)
}
