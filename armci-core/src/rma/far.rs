//! Transfers to and from other nodes: remote memory access where it pays, messages otherwise.
//!
//! | transfer | goes |
//! |---|---|
//! | put of up to a staging chunk | copied to the chunk and written from there: locally complete at once |
//! | longer put | written from where it lies, in pieces; returns when they are there, unless it has a handle |
//! | get | read to where it belongs (where the fabric wants the own side's memory registered: what is long is registered for the transfer, the rest goes through chunks) |
//! | rows of at least [`LONG_ROW`] bytes | each like a transfer of its own, as many at once as there are request slots |
//! | shorter rows | packed into messages: an access of its own would cost each row more than the copy. From 48 KiB on these are long ones, whose payload the target fetches, or whose reply it stores, 512 KiB at a time (`by_bulk.rs`) |
//! | accumulate | messages, long ones likewise; what is contiguous is fetched from where it lies |
//! | read-modify-write, vectors, and what a region cannot be reached by | messages |
//!
//! On the node of the target everything that is not done in place goes by message, and so it comes through here, too.
//!
//! # Safety
//! LOCAL-PATCH, as in `by_message`. REGION-LIVE: what was resolved lies inside the part that its owner exported.
#![allow(unsafe_code)]

use std::ptr;

use super::{Completion, by_message};
use crate::am::origin::{PIPELINE, outstanding};
use crate::config::Path;
use crate::consistency::Access;
use crate::copy::{Patch, copy};
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::memory::region;
use crate::node::message::STAGING_BYTES;
use crate::transport::Remote;
use crate::transport::ofi::{Line, Purpose};
use crate::watch::{Extent, Kind};
use crate::world::World;

/// Rows from this length on are transferred by remote memory accesses of their own. Over TCP an access costs some six
/// microseconds of its own, and what fits a message twelve: of rows of 4 KiB three fit one, and took 0.8 ms a MiB, of
/// rows of 8 KiB one, and took 1.1; rows of 16 KiB by accesses took 0.5.
pub(crate) const LONG_ROW: usize = 8 << 10;

/// How a part is reached by remote memory access, if this transfer is to be.
fn access<'a>(
    world: &'a World,
    remote: Remote,
    place: GlobalPtr<u8>,
    patch: &Patch,
    path: Path,
) -> Result<Option<(region::Access, &'a Line)>> {
    let short = patch.rows() > 1 && patch.row_bytes() < LONG_ROW;
    if remote.is_near() || path == Path::Am || patch.bytes() == 0 || short {
        return Ok(None);
    }
    let (known, line) = world.known_again(place)?;
    Ok(known.access.some().map(|access| (access, line)))
}

/// Whether a transfer to or from another node goes by remote memory access, if the protocol lets it.
pub(crate) fn goes_by_access(kind: Kind, bytes: usize, extent: &Extent<'_>) -> bool {
    let long = match extent {
        Extent::Elsewhere => false,
        Extent::Bytes => true,
        Extent::Rows { patch, .. } => patch.rows() == 1 || patch.row_bytes() >= LONG_ROW,
    };
    matches!(kind, Kind::Put | Kind::Get) && bytes != 0 && long
}

/// Runs `step` for each row of a patch, with its offset in the target's part and where it lies here.
fn for_each_row(patch: &Patch, remote: u64, local: *mut u8, outward: bool, mut step: impl FnMut(u64, *mut u8, usize)) {
    // The remote side has no address here: the walk computes with its offsets.
    let remote = ptr::without_provenance_mut::<u8>(remote as usize);
    let (to, from) = if outward { (remote, local) } else { (local, remote) };
    let visit = |to: *mut u8, from: *const u8, row: usize| {
        let (remote, local) = if outward { (to, from.cast_mut()) } else { (from.cast_mut(), to) };
        step(remote as u64, local, row);
    };
    // SAFETY: the walk only computes with the pointers.
    unsafe { patch.for_each_row(to, from, visit) };
}

/// The next piece of a row for the access of a claimed slot: its length, and whether it goes straight to or from where
/// it lies, not through the slot's chunk.
///
/// # Safety
/// LOCAL-PATCH, until the access is complete.
unsafe fn piece(line: &Line, slot: usize, by: Purpose, local: *mut u8, rest: usize) -> (usize, bool) {
    let len = rest.min(line.largest_access());
    // A put of a chunk is copied all the same, to be locally complete at once.
    if by == Purpose::Written && len <= STAGING_BYTES {
        return (len, false);
    }
    // SAFETY: LOCAL-PATCH.
    let straight = unsafe { line.reaches(slot, by, local, len) };
    (if straight { len } else { len.min(STAGING_BYTES) }, straight)
}

/// Puts a patch; locally complete when that says, remotely after a fence.
///
/// # Safety
/// LOCAL-PATCH, until it is locally complete; `to` is what `target` was resolved to.
pub(super) unsafe fn put(
    world: &World,
    to: Remote,
    source: *const u8,
    target: GlobalPtr<u8>,
    patch: &Patch,
    completion: Completion,
) -> Result<()> {
    let way = access(world, to, target, patch, world.protocol().put)?.filter(|(_, line)| line.writes());
    let Some((access, line)) = way else {
        // SAFETY: LOCAL-PATCH.
        return unsafe { by_message::send(world, source, target, patch, by_message::Verb::Put, completion) };
    };
    let origin = world.origin();
    let what = outstanding(target.rank(), target.region, Access::Put);
    origin.order_access(target.rank(), target.region, Access::Put, patch.bytes());
    let tag = completion.tag(origin);
    let mut pieces = 0;
    for_each_row(patch, target.offset, source.cast_mut(), true, |offset, local, row| {
        let mut begin = 0;
        while begin < row {
            let (offset, local) = (offset + begin as u64, local.wrapping_add(begin));
            if pieces >= PIPELINE {
                origin.narrow(tag.op);
            }
            pieces += 1;
            let slot = origin.claim();
            // SAFETY: LOCAL-PATCH.
            let (len, _) = unsafe { piece(line, slot, Purpose::Written, local, row - begin) };
            begin += len;
            let from = if len <= STAGING_BYTES {
                // SAFETY: LOCAL-PATCH; REQUEST-SLOT: the chunk of a claimed slot is ours, and holds as much.
                unsafe { copy(origin.staging(slot), local, len) };
                ptr::null()
            } else {
                local.cast_const()
            };
            // SAFETY: REGION-LIVE; LOCAL-PATCH until it is complete.
            unsafe { origin.write(slot, what, access, offset, (from, len), tag) };
        }
    });
    completion.settle(origin, tag)
}

/// Gets a patch.
///
/// # Safety
/// LOCAL-PATCH, until the get is complete; `from` is what `source` was resolved to.
pub(super) unsafe fn get(
    world: &World,
    from: Remote,
    source: GlobalPtr<u8>,
    target: *mut u8,
    patch: &Patch,
    completion: Completion,
) -> Result<()> {
    let Some((access, line)) = access(world, from, source, patch, world.protocol().get)? else {
        // SAFETY: LOCAL-PATCH.
        return unsafe { by_message::get(world, source, target, patch, completion) };
    };
    let origin = world.origin();
    let tag = completion.tag(origin);
    let what = outstanding(source.rank(), source.region, Access::Get);
    origin.order_access(source.rank(), source.region, Access::Get, patch.bytes());
    let mut pieces = 0;
    for_each_row(patch, source.offset, target, false, |offset, local, row| {
        let mut begin = 0;
        while begin < row {
            if pieces >= PIPELINE {
                origin.narrow(tag.op);
            }
            pieces += 1;
            let (offset, local) = (offset + begin as u64, local.wrapping_add(begin));
            let slot = origin.claim();
            // SAFETY: LOCAL-PATCH is LANDING for the piece.
            unsafe {
                let (len, straight) = piece(line, slot, Purpose::Read, local, row - begin);
                begin += len;
                origin.read(slot, (what, tag), access, offset, (local, len), straight);
            }
        }
    });
    completion.settle(origin, tag)
}
