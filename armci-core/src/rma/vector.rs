//! Vector transfers: many segments between places here and places of one rank (`ARMCI_PutV`, `GetV`, `AccV`).
//!
//! Guarantees that every segment is checked before a byte moves, and that segments are carried out as if one after
//! the other, in their order; an error names the first segment that is wrong. Nothing is allocated. Where the path
//! is remote memory access each segment is a contiguous transfer; otherwise `by_list` packs them. Evenly spaced
//! segments are better described as [`Strided`](super::Strided): nothing is looked for here.
//!
//! # Safety
//! REGION-LIVE (see `contiguous`), for each segment. LOCAL-SEGMENTS: the local side of every segment is readable
//! (put, accumulate) or ours to write (get) while the call runs, and until the get is complete; [`Segments`] are checked for it, or the caller
//! vouches for it.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::Completion;
use super::by_list::{self, Verb};
use super::segment::Segment;
use crate::accumulate::kernels::{Accumulate, ElementKind, alpha_bytes};
use crate::consistency::Access;
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::transport::Transport;
use crate::watch::{Call, Extent, Kind};
use crate::world::World;

/// So many segments are checked between two looks at what has come from other nodes, where nobody else looks: a look may
/// take system calls of the provider, to check a segment takes none.
const LOOK_EVERY: usize = 1024;

/// Segments of one length, between a buffer and the memory of one rank; all in elements.
///
/// ```
/// use armci_core::{Segments, World};
///
/// let world = World::init()?;
/// let region = world.allocate(8 * 100)?;
/// world.put(&[0.0; 100], region.at(world.rank(), 0))?;
/// world.barrier()?;
/// let right = (world.rank() + 1) % world.size();
/// // Numbers 0 and 1 of the buffer to place 40, numbers 2 and 3 to place 7.
/// let places = [region.at(right, 40), region.at(right, 7)];
/// let segments = Segments { count: 2, local: &[0, 2], remote: &places };
/// world.put_vector(&[1.0, 2.0, 3.0, 4.0], &segments)?;
/// world.accumulate_vector(10.0, &[1.0, 2.0, 3.0, 4.0], &segments)?;
/// let mut back = [0.0; 4];
/// // Other way round.
/// world.get_vector(&mut back, &Segments { local: &[2, 0], ..segments })?;
/// assert_eq!(back, [33.0, 44.0, 11.0, 22.0]);
/// world.free(region)?;
/// world.finalize()?;
/// # Ok::<(), armci_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Segments<'a, T> {
    /// How many elements each segment has.
    pub count: usize,
    /// Where each begins in the local buffer.
    pub local: &'a [usize],
    /// Where each begins there; all on one rank.
    pub remote: &'a [GlobalPtr<T>],
}

impl<'a, T: Pod> Segments<'a, T> {
    /// Refuses segments that leave a buffer of `len` elements.
    pub(crate) fn fit(&self, len: usize) -> Result<()> {
        let (here, there) = (self.local.len(), self.remote.len());
        if here != there {
            return Err(Error::Argument(format!("segments begin at {here} places here and at {there} there")));
        }
        let leaves = |at: &usize| at.checked_add(self.count).is_none_or(|end| end > len);
        let Some(segment) = self.local.iter().position(leaves) else { return Ok(()) };
        let (at, count) = (self.local[segment], self.count);
        let reason = format!("{count} elements from {at} on leave the local buffer of {len}");
        Err(Error::Segment { segment, error: Box::new(Error::Argument(reason)) })
    }

    /// The segments of the buffer at `base`, which they fit.
    pub(crate) fn at(self, base: *mut T) -> impl Iterator<Item = Segment<T>> + Clone + use<'a, T> {
        let both = self.local.iter().zip(self.remote);
        both.map(move |(local, remote)| Segment {
            local: base.wrapping_add(*local),
            remote: *remote,
            count: self.count,
        })
    }
}

impl World {
    /// Whether all segments lie on this node, in regions of indexes below that.
    fn all_near(&self, index: u32, mut segments: impl Iterator<Item = Segment<u8>>) -> bool {
        let near = |segment: &Segment<u8>| self.node().slot_of(segment.remote.rank()).is_some();
        index != 0 && segments.all(|segment| segment.remote.region.index < index && near(&segment))
    }

    /// Copies segments of `source` to one rank (`ARMCI_PutV`); where targets overlap, the later segment's data stay.
    /// Completion as [`World::put`].
    ///
    /// # Errors
    /// [`Error::Segment`], which says what is wrong with which segment; [`Error::Argument`] if there are not as
    /// many places here as there. Nothing was transferred then.
    #[track_caller]
    pub fn put_vector<T: Pod>(&self, source: &[T], segments: &Segments<'_, T>) -> Result<()> {
        segments.fit(source.len())?;
        // SAFETY: LOCAL-SEGMENTS was just checked; `source` is borrowed for the call, and only read.
        unsafe { self.put_vector_from(segments.at(source.as_ptr().cast_mut())) }
    }

    /// Copies segments from one rank into `target` (`ARMCI_GetV`); complete on return.
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub fn get_vector<T: Pod>(&self, target: &mut [T], segments: &Segments<'_, T>) -> Result<()> {
        segments.fit(target.len())?;
        // SAFETY: LOCAL-SEGMENTS was just checked; `target` is ours alone for the call.
        unsafe { self.get_vector_into(segments.at(target.as_mut_ptr())) }
    }

    /// Adds `alpha` times segments of `source` to those of one rank (`ARMCI_AccV`); as [`World::accumulate`] of each.
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub fn accumulate_vector<T: Accumulate>(&self, alpha: T, source: &[T], segments: &Segments<'_, T>) -> Result<()> {
        segments.fit(source.len())?;
        // SAFETY: LOCAL-SEGMENTS was just checked; `source` is borrowed for the call, and only read.
        unsafe { self.accumulate_vector_from(alpha, segments.at(source.as_ptr().cast_mut())) }
    }

    /// [`World::put_vector`] of segments anywhere in this process, of any lengths.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS: each segment has `count` readable elements at `local`. `segments` and its clones yield the same.
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub unsafe fn put_vector_from<T: Pod>(&self, segments: impl Iterator<Item = Segment<T>> + Clone) -> Result<()> {
        let bytes = self.check_segments(segments.clone(), None)?;
        let segments = segments.map(Segment::in_bytes);
        // SAFETY: LOCAL-SEGMENTS.
        let put = || unsafe { self.put_segments(segments.clone(), bytes) };
        if self.is_plain() { put() } else { self.watched_vector(Kind::Put, segments.clone(), bytes, put) }
    }

    /// # Safety
    /// LOCAL-SEGMENTS for segments that were checked and have so many bytes.
    unsafe fn put_segments(&self, segments: impl Iterator<Item = Segment<u8>> + Clone, bytes: usize) -> Result<()> {
        self.count().put(bytes);
        if !self.all_near(self.direct().put.get(), segments.clone()) {
            // SAFETY: LOCAL-SEGMENTS.
            unsafe { by_list::transfer(self, segments, bytes, Verb::Put, false) };
            return Ok(());
        }
        for Segment { local, remote, count } in segments {
            let to = self.resolve_one_of_many(remote, count as u64)?;
            self.origin().order(remote.rank(), remote.region, Access::Put);
            // SAFETY: REGION-LIVE, LOCAL-SEGMENTS.
            unsafe { self.transport().put(to, local, count) };
        }
        Ok(())
    }

    /// [`World::get_vector`] into segments anywhere in this process, of any lengths.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS: each segment has `count` elements at `local` that are writable, and nobody else's during the
    /// call. `segments` and its clones yield the same.
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub unsafe fn get_vector_into<T: Pod>(&self, segments: impl Iterator<Item = Segment<T>> + Clone) -> Result<()> {
        // SAFETY: LOCAL-SEGMENTS.
        unsafe { self.get_vector_by(segments, Completion::OnReturn) }
    }

    /// [`World::get_vector_into`], complete when that says.
    ///
    /// # Safety
    /// LOCAL-SEGMENTS, until the get is complete.
    #[track_caller]
    pub(crate) unsafe fn get_vector_by<T: Pod>(
        &self,
        segments: impl Iterator<Item = Segment<T>> + Clone,
        completion: Completion,
    ) -> Result<()> {
        let bytes = self.check_segments(segments.clone(), None)?;
        let segments = segments.map(Segment::in_bytes);
        // SAFETY: LOCAL-SEGMENTS.
        let get = || unsafe { self.get_segments(segments.clone(), bytes, completion) };
        if self.is_plain() { get() } else { self.watched_vector(Kind::Get, segments.clone(), bytes, get) }
    }

    /// # Safety
    /// LOCAL-SEGMENTS, until the get is complete, for segments that were checked and have so many bytes.
    unsafe fn get_segments(
        &self,
        segments: impl Iterator<Item = Segment<u8>> + Clone,
        bytes: usize,
        completion: Completion,
    ) -> Result<()> {
        self.count().get(bytes);
        if !self.all_near(self.direct().get.get(), segments.clone()) {
            let origin = self.origin();
            let tag = completion.tag(origin);
            // SAFETY: LOCAL-SEGMENTS.
            unsafe { by_list::transfer(self, segments, bytes, Verb::Get(tag), completion.is_later()) };
            return completion.settle(origin, tag);
        }
        for Segment { local, remote, count } in segments {
            let from = self.resolve_one_of_many(remote, count as u64)?;
            self.origin().order(remote.rank(), remote.region, Access::Get);
            // SAFETY: REGION-LIVE, LOCAL-SEGMENTS.
            unsafe { self.transport().get(from, local, count) };
        }
        Ok(())
    }

    /// [`World::accumulate_vector`] of segments anywhere in this process, of any lengths.
    ///
    /// # Safety
    /// As [`World::put_vector_from`]; and nobody writes the local elements during the call.
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub unsafe fn accumulate_vector_from<T: Accumulate>(
        &self,
        alpha: T,
        segments: impl Iterator<Item = Segment<T>> + Clone,
    ) -> Result<()> {
        let bytes = self.check_segments(segments.clone(), Some(align_of::<T>()))?;
        let (segments, scale) = (segments.map(Segment::in_bytes), (T::KIND, alpha_bytes(alpha)));
        // SAFETY: LOCAL-SEGMENTS.
        let accumulate = || unsafe { self.accumulate_segments(scale, segments.clone(), bytes) };
        if self.is_plain() {
            accumulate()
        } else {
            self.watched_vector(Kind::Accumulate, segments.clone(), bytes, accumulate)
        }
    }

    /// # Safety
    /// LOCAL-SEGMENTS for segments that were checked, aligned ones of whole elements, and have so many bytes.
    unsafe fn accumulate_segments(
        &self,
        (kind, alpha): (ElementKind, [u8; 16]),
        segments: impl Iterator<Item = Segment<u8>> + Clone,
        bytes: usize,
    ) -> Result<()> {
        self.count().accumulate(bytes);
        if !self.all_near(self.direct().accumulate.get(), segments.clone()) {
            // SAFETY: LOCAL-SEGMENTS.
            unsafe { by_list::transfer(self, segments, bytes, Verb::Accumulate { kind, alpha }, false) };
            return Ok(());
        }
        for Segment { local, remote, count } in segments {
            let to = self.resolve_one_of_many(remote, count as u64)?;
            self.origin().order(remote.rank(), remote.region, Access::Accumulate);
            // SAFETY: REGION-LIVE, LOCAL-SEGMENTS; aligned whole elements, as was checked.
            unsafe { self.transport().accumulate_row(to, local, count, kind, &alpha) };
        }
        Ok(())
    }

    /// Runs a transfer of segments, and tells who watches, of each segment too.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn watched_vector(
        &self,
        kind: Kind,
        mut segments: impl Iterator<Item = Segment<u8>> + Clone,
        bytes: usize,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(first) = segments.clone().next() else { return run() };
        let call = self.call_on(kind, first.remote, bytes, Extent::Elsewhere);
        self.watched(&call, run)?;
        segments.try_for_each(|segment| {
            let GlobalPtr { region, offset, .. } = segment.remote;
            let (extent, bytes) = (Extent::Bytes, segment.count);
            self.touched(&Call { extent, bytes, region: Some(region), offset, ..call });
            Ok(())
        })
    }

    /// Checks the remote side of all segments: one rank, its regions, their bounds, and, for accumulates, the
    /// alignment. Says how many bytes they have.
    fn check_segments<T: Pod>(
        &self,
        segments: impl Iterator<Item = Segment<T>>,
        align: Option<usize>,
    ) -> Result<usize> {
        self.check_open()?;
        let (mut bytes, mut rank) = (0usize, None);
        for (index, segment) in segments.enumerate() {
            let (remote, len) = (segment.remote, segment.bytes());
            if index.is_multiple_of(LOOK_EVERY) {
                self.serve_if_nobody_does();
            }
            let checked = match rank.replace(remote.rank) {
                Some(first) if first != remote.rank => {
                    let reason = format!("it lies on rank {}, those before it on rank {first}", remote.rank);
                    Err(Error::Argument(reason))
                }
                _ => self.resolve_one_of_many(remote, len as u64).map(|_| ()),
            };
            let checked = checked.and_then(|()| match align {
                Some(align) => self.aligned(remote, align, "an accumulate"),
                None => Ok(()),
            });
            checked.map_err(|error| Error::Segment { segment: index, error: Box::new(error) })?;
            bytes = bytes.saturating_add(len);
        }
        Ok(bytes)
    }
}
