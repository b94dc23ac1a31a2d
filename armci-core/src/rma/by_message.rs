//! The active-message path: transfers that the target's service context carries out.
//!
//! A patch travels in *batches*: as many of its rows as fit a staging chunk and
//! lie evenly spaced on both sides. Puts and accumulates are packed, sent and
//! forgotten (detached), so packing the next batch overlaps with the target's
//! work on the last one; the replies to gets are unpacked as they are found.
//! Between nodes patches of more than a few chunks go as `by_bulk` says, in
//! batches eight times as long.
//!
//! # Safety
//! LOCAL-PATCH: every row of the patch on the local side is readable (put,
//! accumulate) while the call runs, or ours to write (get) until the get is
//! complete. REQUEST-SLOT (see `am/origin.rs`) for staging chunks.
#![allow(unsafe_code)]

use std::ptr;

use super::{Completion, by_bulk, by_planes};
use crate::accumulate::kernels::ElementKind;
use crate::am::builtin::{self, AccumulateArgs, RmwArgs, Rows};
use crate::am::landing::Landing;
use crate::am::origin::{PIPELINE, outstanding, wrong_length};
use crate::consistency::{Access, Outstanding};
use crate::copy::{Patch, copy_patch};
use crate::error::{Error, Result};
use crate::memory::place_cache::Found;
use crate::memory::region::{self, Known, Part};
use crate::memory::together::Common;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::transport::{Outgoing, Rmw};
use crate::world::World;

/// Evenly spaced rows that fit one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    /// Where the first row lies in the target's part.
    remote: u64,
    /// Where it lies here.
    pub(super) local: *mut u8,
    remote_stride: usize,
    local_stride: usize,
    row: usize,
    rows: usize,
}

impl Batch {
    /// One row.
    fn new(remote: u64, local: *mut u8, row: usize) -> Self {
        Batch { remote, local, remote_stride: row, local_stride: row, row, rows: 1 }
    }

    /// Takes one more row in, if it continues the pattern and fits.
    fn extend(&mut self, remote: u64, local: *mut u8, row: usize, limit: usize) -> bool {
        let last = (self.rows - 1) * self.remote_stride;
        let (remote_step, local_step) = if self.rows == 1 {
            (remote.wrapping_sub(self.remote) as usize, (local as usize).wrapping_sub(self.local as usize))
        } else {
            (self.remote_stride, self.local_stride)
        };
        let continues = row == self.row
            && (self.rows + 1) * row <= limit
            && remote > self.remote
            && local > self.local
            && remote == self.remote + (last + remote_step) as u64
            && local as usize == self.local as usize + (self.rows - 1) * self.local_stride + local_step;
        if continues {
            self.remote_stride = remote_step;
            self.local_stride = local_step;
            self.rows += 1;
        }
        continues
    }

    /// Takes in as many of `more` rows behind its last as fit, so far apart; says how many.
    fn extend_along(&mut self, more: usize, (remote, local): (usize, usize), limit: usize) -> usize {
        if more == 0 || self.rows == 1 || (remote, local) != (self.remote_stride, self.local_stride) {
            return 0;
        }
        let taken = more.min((limit / self.row).saturating_sub(self.rows));
        self.rows += taken;
        taken
    }

    pub(super) fn bytes(&self) -> usize {
        self.row * self.rows
    }

    pub(super) fn rows_at<T>(&self, place: GlobalPtr<T>) -> Rows {
        Rows {
            region: place.region.to_bits(),
            offset: self.remote,
            stride: self.remote_stride as u64,
            row: self.row as u32,
            rows: self.rows as u32,
        }
    }

    /// The patch from the local rows to packed bytes.
    pub(super) fn packing(&self) -> Patch {
        Patch::new(&[self.row], &[self.local_stride], &[self.row, self.rows])
    }

    /// The way back: where packed bytes belong.
    pub(super) fn landing(&self) -> Landing {
        Landing::Rows { first: self.local, stride: self.local_stride, row: self.row, rows: self.rows }
    }
}

/// Cuts a patch into batches of up to `limit` bytes (a multiple of any element's), in order. `outward` says that the
/// remote side is the patch's target.
pub(super) fn for_each_batch(
    patch: &Patch,
    remote: u64,
    local: *mut u8,
    outward: bool,
    limit: usize,
    mut send: impl FnMut(Batch),
) {
    // The remote side has no address here: the walk computes with its offsets.
    let remote = ptr::without_provenance_mut::<u8>(remote as usize);
    let mut pending: Option<Batch> = None;
    let mut take = |remote: u64, local: *mut u8, row: usize, more: usize, strides: (usize, usize)| {
        if !pending.as_mut().is_some_and(|batch| batch.extend(remote, local, row, limit))
            && let Some(full) = pending.replace(Batch::new(remote, local, row))
        {
            send(full);
        }
        pending.as_mut().map_or(0, |batch| batch.extend_along(more, strides, limit))
    };
    let (to, from) = if outward { (remote, local) } else { (local, remote) };
    patch.for_each_run(to, from, |to, from, run| {
        let (remote, local, strides) = if outward {
            (to as u64, from.cast_mut(), (run.dst_stride, run.src_stride))
        } else {
            (from as u64, to, (run.src_stride, run.dst_stride))
        };
        let mut taken = 0;
        while taken < run.rows {
            let (remote, local) = (remote + (taken * strides.0) as u64, local.wrapping_add(taken * strides.1));
            for done in (0..run.row).step_by(limit) {
                let piece = (run.row - done).min(limit);
                let more = if run.row <= limit { run.rows - taken - 1 } else { 0 };
                taken += take(remote + done as u64, local.wrapping_add(done), piece, more, strides);
            }
            taken += 1;
        }
    });
    if let Some(last) = pending {
        send(last);
    }
}

/// What is done with a patch that travels to its target.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verb {
    /// It is put there.
    Put,
    /// `alpha` times it is added there, elements of `kind`.
    Accumulate { kind: ElementKind, alpha: [u8; 16] },
}

/// What a message says besides its data.
pub(super) enum Arguments {
    Put(Rows),
    Accumulate(AccumulateArgs),
}

impl Verb {
    pub(super) fn handler(&self) -> u16 {
        match self {
            Verb::Put => builtin::PUT,
            Verb::Accumulate { .. } => builtin::ACCUMULATE,
        }
    }

    pub(super) fn access(&self) -> Access {
        match self {
            Verb::Put => Access::Put,
            Verb::Accumulate { .. } => Access::Accumulate,
        }
    }

    pub(super) fn arguments(&self, rows: Rows) -> Arguments {
        match *self {
            Verb::Put => Arguments::Put(rows),
            Verb::Accumulate { kind, alpha } => {
                Arguments::Accumulate(AccumulateArgs { rows, alpha, kind: kind as u64 })
            }
        }
    }
}

impl Arguments {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Arguments::Put(rows) => bytemuck::bytes_of(rows),
            Arguments::Accumulate(arguments) => bytemuck::bytes_of(arguments),
        }
    }
}

/// Packs a batch that fits a chunk into a fresh slot, and lets `post` send it.
///
/// # Safety
/// LOCAL-PATCH for the batch.
pub(super) unsafe fn send_packed(
    world: &World,
    handler: u16,
    arguments: &[u8],
    batch: &Batch,
    post: impl FnOnce(&Outgoing<'_>),
) {
    let origin = world.origin();
    let slot = origin.claim();
    let staging = origin.staging(slot);
    // SAFETY: LOCAL-PATCH; REQUEST-SLOT: the chunk is ours until `post`, and a batch fits it.
    unsafe { copy_patch(staging, batch.local, &batch.packing()) };
    let bytes = batch.bytes();
    let inline = arguments.len() + bytes <= INLINE_MAX;
    // SAFETY: REQUEST-SLOT: the bytes were written above.
    let data = if inline { unsafe { std::slice::from_raw_parts(staging, bytes) } } else { &[] };
    post(&Outgoing { handler, slot, inline: [arguments, data], staged_len: if inline { 0 } else { bytes } });
}

/// Puts or accumulates a patch; locally complete on return, remotely after a fence.
///
/// # Safety
/// LOCAL-PATCH.
pub(super) unsafe fn send(
    world: &World,
    source: *const u8,
    target: GlobalPtr<u8>,
    patch: &Patch,
    verb: Verb,
    completion: Completion,
) -> Result<()> {
    world.check_open()?;
    if let Some(way) = by_bulk::way(world, target.rank(), patch.bytes(), completion.is_later(), false) {
        // SAFETY: LOCAL-PATCH.
        unsafe {
            if by_planes::pay(patch) {
                by_planes::send(world, way, source, target, patch, &verb);
            } else {
                by_bulk::send(world, way, source, target, patch, &verb);
            }
        }
        return Ok(());
    }
    let what = outstanding(target.rank(), target.region, verb.access());
    for_each_batch(patch, target.offset, source.cast_mut(), true, STAGING_BYTES, |batch| {
        let arguments = verb.arguments(batch.rows_at(target));
        let post = |message: &Outgoing<'_>| world.origin().post(message, what, true);
        // SAFETY: LOCAL-PATCH.
        unsafe { send_packed(world, verb.handler(), arguments.bytes(), &batch, post) };
    });
    Ok(())
}

/// Gets a patch.
///
/// # Safety
/// LOCAL-PATCH, until the get is complete.
pub(super) unsafe fn get(
    world: &World,
    source: GlobalPtr<u8>,
    target: *mut u8,
    patch: &Patch,
    completion: Completion,
) -> Result<()> {
    world.check_open()?;
    if let Some(way) = by_bulk::way(world, source.rank(), patch.bytes(), completion.is_later(), true) {
        // SAFETY: LOCAL-PATCH.
        return unsafe {
            if by_planes::pay(patch) {
                by_planes::get(world, way, source, target, patch, completion)
            } else {
                by_bulk::get(world, way, source, target, patch, completion)
            }
        };
    }
    let origin = world.origin();
    let tag = completion.tag(origin);
    let mut batches = 0;
    for_each_batch(patch, source.offset, target, false, STAGING_BYTES, |batch| {
        if batches >= PIPELINE {
            origin.narrow(tag.op);
        }
        batches += 1;
        let slot = origin.claim();
        let rows = batch.rows_at(source);
        let message = Outgoing { handler: builtin::GET, slot, inline: [bytemuck::bytes_of(&rows), &[]], staged_len: 0 };
        let what = outstanding(source.rank(), source.region, Access::Get);
        // SAFETY: LOCAL-PATCH is LANDING for the rows of the batch.
        unsafe { origin.post_get(&message, what, tag, batch.landing()) };
    });
    completion.settle(origin, tag)
}

/// Changes a word and returns what it held.
pub(crate) fn rmw(world: &World, place: GlobalPtr<u8>, rmw: Rmw) -> Result<u64> {
    world.check_open()?;
    let origin = world.origin();
    let slot = origin.claim();
    let arguments = RmwArgs::new(place.region.to_bits(), place.offset, rmw);
    let message =
        Outgoing { handler: builtin::RMW, slot, inline: [bytemuck::bytes_of(&arguments), &[]], staged_len: 0 };
    origin.post(&message, outstanding(place.rank(), place.region, Access::ReadModifyWrite), false);
    let read = |found: &[u8]| match found.try_into() {
        Ok(word) => Ok(u64::from_ne_bytes(word)),
        Err(_) => {
            let reason = wrong_length(8, found.len());
            Err(Error::Refused { rank: place.rank(), handler: builtin::RMW, reason, more: 0 })
        }
    };
    origin.collect(slot, read).flatten()
}

/// Asks a rank where its part of a region lies, and how it is reached from here.
pub(super) fn describe(world: &World, rank: usize, region: RegionId) -> Result<Known> {
    let origin = world.origin();
    let slot = origin.claim();
    let name = region.to_bits();
    let message =
        Outgoing { handler: builtin::DESCRIBE, slot, inline: [bytemuck::bytes_of(&name), &[]], staged_len: 0 };
    origin.post(&message, outstanding(rank, region, Access::Other), false);
    let read = |found: &[u8]| match bytemuck::try_pod_read_unaligned::<[u64; 4]>(found) {
        Ok([offset, len, address, key]) => {
            Ok(Known { part: Part { offset, len }, access: region::Access { address, key } })
        }
        Err(_) => {
            let reason = wrong_length(32, found.len());
            Err(Error::Refused { rank, handler: builtin::DESCRIBE, reason, more: 0 })
        }
    };
    match origin.collect(slot, read) {
        Err(Error::Refused { .. }) => Err(Error::NoRegion { region, rank }),
        answer => answer.flatten(),
    }
}

/// Asks a rank which region of its lies at an address there.
pub(crate) fn locate(world: &World, rank: usize, address: usize) -> Result<Found> {
    let origin = world.origin();
    let slot = origin.claim();
    let named = address as u64;
    let message = Outgoing { handler: builtin::LOCATE, slot, inline: [bytemuck::bytes_of(&named), &[]], staged_len: 0 };
    origin.post(&message, Outstanding { target: rank, region: None, access: Access::Other }, false);
    let read = |found: &[u8]| match bytemuck::try_pod_read_unaligned::<[u64; 5]>(found) {
        Ok([region, start, len, rank, name]) => {
            Ok(Found { region: RegionId::from_bits(region), start, len, common: Common { rank, name } })
        }
        Err(_) => {
            let reason = wrong_length(40, found.len());
            Err(Error::Refused { rank, handler: builtin::LOCATE, reason, more: 0 })
        }
    };
    match origin.collect(slot, read) {
        Err(Error::Refused { .. }) => Err(Error::Address { rank, address }),
        answer => answer.flatten(),
    }
}
