//! Transfers of many segments.
//!
//! All segments are checked before any is transferred; the line that a failed call writes names the first that is
//! wrong. They then go one after the other.
//!
//! # Safety
//! C-ARRAY: `iov_len` descriptors, each with `ptr_array_len` addresses on either side. C-BUFFER for each segment, as in
//! `transfer`. C-HANDLE, as in `handle`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use armci_core::{Error, Result, Segment, World};

use crate::abi::{Layout, c_functions, spelled};
use crate::arguments::{count, present, rank};
use crate::handle::{Start, armci_hdl_t, start};
use crate::member::member;
use crate::transfer::{Scale, When, accumulate_vector};

/// Segments of one length.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct armci_giov_t {
    /// Where each segment comes from.
    pub src_ptr_array: *mut *mut c_void,
    /// Where each goes.
    pub dst_ptr_array: *mut *mut c_void,
    /// How long each is.
    pub bytes: c_int,
    /// How many there are.
    pub ptr_array_len: c_int,
}

spelled! { armci_giov_t = "armci_giov_t" }

pub(crate) const LAYOUT: Layout = Layout {
    name: "armci_giov_t",
    size: size_of::<armci_giov_t>(),
    fields: &[
        ("src_ptr_array", offset_of!(armci_giov_t, src_ptr_array)),
        ("dst_ptr_array", offset_of!(armci_giov_t, dst_ptr_array)),
        ("bytes", offset_of!(armci_giov_t, bytes)),
        ("ptr_array_len", offset_of!(armci_giov_t, ptr_array_len)),
    ],
};

c_functions! {
    /// Copies segments to `proc`.
    code fn ARMCI_PutV = PARMCI_PutV(iov: *mut armci_giov_t, iov_len: c_int, proc: c_int) -> c_int =
        // SAFETY: C-ARRAY, C-BUFFER.
        || unsafe { put(iov, iov_len, proc, When::Now) };

    /// Copies segments from `proc`.
    code fn ARMCI_GetV = PARMCI_GetV(iov: *mut armci_giov_t, iov_len: c_int, proc: c_int) -> c_int =
        // SAFETY: C-ARRAY, C-BUFFER.
        || unsafe { get(iov, iov_len, proc, When::Now) };

    /// Adds `*scale` times the elements of segments to those on `proc`.
    code fn ARMCI_AccV = PARMCI_AccV(
        datatype: c_int, scale: *mut c_void, iov: *mut armci_giov_t, iov_len: c_int, proc: c_int
    ) -> c_int =
        // SAFETY: C-ARRAY, C-BUFFER.
        || unsafe { accumulate(Scale { datatype, at: scale }, iov, iov_len, proc, When::Now) };

    /// Starts [`ARMCI_PutV`].
    code fn ARMCI_NbPutV = PARMCI_NbPutV(
        iov: *mut armci_giov_t, iov_len: c_int, proc: c_int, handle: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-ARRAY, C-BUFFER, C-HANDLE.
        || unsafe { put(iov, iov_len, proc, When::Later(handle)) };

    /// Starts [`ARMCI_GetV`].
    code fn ARMCI_NbGetV = PARMCI_NbGetV(
        iov: *mut armci_giov_t, iov_len: c_int, proc: c_int, handle: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-ARRAY, C-BUFFER, C-HANDLE.
        || unsafe { get(iov, iov_len, proc, When::Later(handle)) };

    /// Starts [`ARMCI_AccV`].
    code fn ARMCI_NbAccV = PARMCI_NbAccV(
        datatype: c_int, scale: *mut c_void,
        iov: *mut armci_giov_t, iov_len: c_int, proc: c_int, handle: *mut armci_hdl_t
    ) -> c_int =
        // SAFETY: C-ARRAY, C-BUFFER, C-HANDLE.
        || unsafe { accumulate(Scale { datatype, at: scale }, iov, iov_len, proc, When::Later(handle)) };
}

/// # Safety
/// C-ARRAY, C-BUFFER, C-HANDLE.
unsafe fn put(iov: *const armci_giov_t, iov_len: c_int, proc: c_int, when: When) -> Result<()> {
    let member = member()?;
    let world = &member.world;
    // SAFETY: C-ARRAY.
    let vector = unsafe { Vector::read(world, iov, iov_len, proc, Direction::Outward)? };
    let segments = vector.segments.iter().copied();
    // SAFETY: C-BUFFER, C-HANDLE.
    vector.named(unsafe {
        match when {
            When::Now => world.put_vector_from(segments),
            When::Later(hdl) => start(member, hdl, |start| world.put_vector_nb_from(segments, start.alone())),
        }
    })
}

/// # Safety
/// C-ARRAY, C-BUFFER, C-HANDLE.
unsafe fn get(iov: *const armci_giov_t, iov_len: c_int, proc: c_int, when: When) -> Result<()> {
    let member = member()?;
    let world = &member.world;
    // SAFETY: C-ARRAY.
    let vector = unsafe { Vector::read(world, iov, iov_len, proc, Direction::Inward)? };
    let segments = vector.segments.iter().copied();
    // SAFETY: C-BUFFER, C-HANDLE.
    vector.named(unsafe {
        match when {
            When::Now => world.get_vector_into(segments),
            When::Later(hdl) => start(member, hdl, |start| world.get_vector_nb_into(segments, start.alone())),
        }
    })
}

/// # Safety
/// C-ARRAY, C-BUFFER, C-HANDLE.
unsafe fn accumulate(scale: Scale, iov: *const armci_giov_t, iov_len: c_int, proc: c_int, when: When) -> Result<()> {
    let member = member()?;
    let world = &member.world;
    // SAFETY: C-ARRAY.
    let vector = unsafe { Vector::read(world, iov, iov_len, proc, Direction::Outward)? };
    // SAFETY: C-BUFFER.
    let accumulate = || unsafe { accumulate_vector(world, scale, &vector.segments) };
    vector.named(match when {
        When::Now => accumulate(),
        // Locally complete on return, so a handle has nothing to wait for; what it has collected goes first.
        When::Later(hdl) => {
            let in_turn = |start: Start<'_>| {
                start.alone();
                accumulate()
            };
            // SAFETY: C-HANDLE.
            unsafe { start(member, hdl, in_turn) }
        }
    })
}

/// Whether the destinations are there or here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Outward,
    Inward,
}

/// The segments of all descriptors.
struct Vector {
    segments: Vec<Segment<u8>>,
    /// Where those of each descriptor begin.
    starts: Vec<usize>,
}

impl Vector {
    /// Reads C's description and finds the places. Segments of no bytes are dropped unseen.
    ///
    /// # Safety
    /// C-ARRAY.
    unsafe fn read(
        world: &World,
        iov: *const armci_giov_t,
        iov_len: c_int,
        proc: c_int,
        direction: Direction,
    ) -> Result<Self> {
        let rank = rank(world, proc)?;
        let descriptors = count(iov_len, "the number of descriptors")?;
        if descriptors > 0 {
            present(iov, "the array of descriptors")?;
        }
        let mut all = Vector { segments: Vec::new(), starts: Vec::with_capacity(descriptors) };
        for index in 0..descriptors {
            // SAFETY: C-ARRAY.
            let vector = unsafe { iov.add(index).read() };
            let number = count(vector.ptr_array_len, "the number of segments")?;
            if number > 0 {
                present(vector.src_ptr_array, "the array of sources")?;
                present(vector.dst_ptr_array, "the array of destinations")?;
            }
            let bytes = count(vector.bytes, "the length")?;
            all.starts.push(all.segments.len());
            if bytes == 0 {
                continue;
            }
            all.segments.reserve(number);
            for segment in 0..number {
                // SAFETY: C-ARRAY.
                let (src, dst) = unsafe { (*vector.src_ptr_array.add(segment), *vector.dst_ptr_array.add(segment)) };
                let (local, remote) = if direction == Direction::Outward { (src, dst) } else { (dst, src) };
                let place = present(local, "the local address").and_then(|()| world.locate(rank, remote.cast()));
                let remote = place.map_err(|error| at(index, segment, &error))?;
                all.segments.push(Segment { local: local.cast(), remote, count: bytes });
            }
        }
        Ok(all)
    }

    /// Names a segment that was refused as C numbers it.
    fn named(&self, result: Result<()>) -> Result<()> {
        result.map_err(|error| match error {
            Error::Segment { segment, error } => {
                let descriptor = self.starts.partition_point(|start| *start <= segment).saturating_sub(1);
                at(descriptor, segment - self.starts[descriptor], &error)
            }
            other => other,
        })
    }
}

/// What is wrong with a segment.
fn at(descriptor: usize, segment: usize, error: &Error) -> Error {
    Error::Argument(format!("descriptor {descriptor}, segment {segment}: {error}"))
}
