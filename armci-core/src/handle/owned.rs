//! Explicit handles that own their buffer.
//!
//! # Safety
//! LOCAL-SPAN, LOCAL-SEGMENTS (see `rma`): the buffer, taken apart in the handle, has nobody else until it is put
//! together, which happens after the operation was waited for, or when its context is gone, whose records alone
//! name it; or never. TAKEN-APART (see `buffer`).
#![allow(unsafe_code)]

use std::fmt;
use std::rc::Weak;

use super::buffer::{Buffer, Parts};
use crate::accumulate::kernels::Accumulate;
use crate::am::landing::{Group, Which};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::rma::{Completion, Segments, Strided};
use crate::world::World;

/// An operation in flight, and its buffer.
///
/// [`Handle::wait`] gives the buffer back. A handle that is dropped waits too, and says nothing of errors; one that is
/// forgotten leaks its buffer, and keeps nothing else alive.
#[must_use = "a handle that is dropped is waited for on the spot"]
pub struct Handle<B: Buffer> {
    context: Weak<Context>,
    op: u64,
    /// Until it is given back.
    parts: Option<Parts<B::Element>>,
}

impl<B: Buffer> fmt::Debug for Handle<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({} elements)", self.parts.as_ref().map_or(0, |parts| parts.len))
    }
}

impl<B: Buffer> Handle<B> {
    /// Waits for local completion, and gives the buffer back (`ARMCI_Wait`).
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if the target did not serve it. The buffer, which holds nobody knows what, is dropped.
    /// [`Error::Job`] if the world it was started in is gone.
    pub fn wait(mut self) -> Result<B> {
        self.complete()?;
        // Without its buffer, `self` waits for nothing when it is dropped.
        self.take().ok_or_else(world_gone)
    }

    /// Whether it is locally complete (`ARMCI_Test`). Serves this rank's messages if not, so it may be asked in a loop.
    pub fn test(&self) -> bool {
        self.world().is_none_or(|world| world.origin().is_complete(Which::Op(self.op)))
    }

    /// The world it was started in, if anybody still has that.
    fn world(&self) -> Option<World> {
        self.context.upgrade().map(World::of)
    }

    fn complete(&self) -> Result<()> {
        match self.world() {
            Some(world) => world.origin().complete(Which::Op(self.op)),
            None => Err(world_gone()),
        }
    }

    /// The buffer of an operation that is complete, or whose context is gone.
    fn take(&mut self) -> Option<B> {
        // SAFETY: TAKEN-APART, and the callers have called `complete`.
        self.parts.take().map(|parts| unsafe { B::from_parts(parts) })
    }
}

fn world_gone() -> Error {
    Error::Job("the world of a non-blocking operation is gone: wait before it is dropped".into())
}

impl<B: Buffer> Drop for Handle<B> {
    fn drop(&mut self) {
        if self.parts.is_some() {
            // Who wanted to hear of errors would have waited.
            let _ = self.complete();
            self.take();
        }
    }
}

impl World {
    /// Starts an operation on a buffer.
    #[track_caller]
    fn start<B: Buffer>(
        &self,
        buffer: B,
        start: impl FnOnce(*mut B::Element, usize, Completion) -> Result<()>,
    ) -> Result<Handle<B>> {
        let tag = self.origin().tag(Group::Explicit);
        let handle = Handle { context: self.downgrade(), op: tag.op, parts: Some(buffer.into_parts()) };
        if let Some(Parts { first, len, .. }) = handle.parts {
            self.as_one_call(|| start(first, len, Completion::Later(tag)))?;
        }
        Ok(handle)
    }

    /// Starts a put of `source` to `target` (`ARMCI_NbPut`).
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let region = world.allocate(8 * 1000)?;
    /// let right = (world.rank() + 1) % world.size();
    /// let put = world.put_nb(vec![0.5; 1000], region.at(right, 0))?;
    /// // Something else meanwhile.
    /// let buffer = put.wait()?;
    /// world.barrier()?;
    /// // The same buffer again, for what the left neighbour has put.
    /// let get = world.get_nb(region.at(world.rank(), 0), buffer)?;
    /// assert_eq!(get.wait()?, [0.5; 1000]);
    /// world.free(region)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`World::put`]; `source` is dropped then.
    #[track_caller]
    pub fn put_nb<B: Buffer>(&self, source: B, target: GlobalPtr<B::Element>) -> Result<Handle<B>> {
        // SAFETY: LOCAL-SPAN.
        self.start(source, |first, len, completion| unsafe { self.put_from_by(first, len, target, completion) })
    }

    /// Starts a get from `source` into `target`, as many elements as it has (`ARMCI_NbGet`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::get`]; `target` is dropped then.
    #[track_caller]
    pub fn get_nb<B: Buffer>(&self, source: GlobalPtr<B::Element>, target: B) -> Result<Handle<B>> {
        // SAFETY: LOCAL-SPAN, until the handle has been waited for.
        self.start(target, |first, len, completion| unsafe { self.get_into_by(source, first, len, completion) })
    }

    /// Starts an accumulate of `alpha` times `source` to `target` (`ARMCI_NbAcc`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::accumulate`]; `source` is dropped then.
    #[track_caller]
    pub fn accumulate_nb<B: Buffer>(
        &self,
        alpha: B::Element,
        source: B,
        target: GlobalPtr<B::Element>,
    ) -> Result<Handle<B>>
    where
        B::Element: Accumulate,
    {
        // SAFETY: LOCAL-SPAN.
        self.start(source, |first, len, completion| unsafe {
            self.accumulate_from_by(alpha, first, len, target, completion)
        })
    }

    /// Starts a put of a patch of `source` (`ARMCI_NbPutS`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::put_strided`]; `source` is dropped then.
    #[track_caller]
    pub fn put_strided_nb<B: Buffer>(
        &self,
        source: B,
        target: GlobalPtr<B::Element>,
        shape: &Strided<'_>,
    ) -> Result<Handle<B>> {
        self.start(source, |first, len, completion| {
            shape.check_local::<B::Element>(len)?;
            // SAFETY: LOCAL-SPAN was just checked.
            unsafe { self.put_strided_by(first, target, shape, completion) }
        })
    }

    /// Starts a get into a patch of `target` (`ARMCI_NbGetS`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::get_strided`]; `target` is dropped then.
    #[track_caller]
    pub fn get_strided_nb<B: Buffer>(
        &self,
        source: GlobalPtr<B::Element>,
        target: B,
        shape: &Strided<'_>,
    ) -> Result<Handle<B>> {
        self.start(target, |first, len, completion| {
            shape.check_local::<B::Element>(len)?;
            // SAFETY: LOCAL-SPAN was just checked, and lasts until the handle has been waited for.
            unsafe { self.get_strided_by(source, first, shape, completion) }
        })
    }

    /// Starts an accumulate of a patch of `source` (`ARMCI_NbAccS`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::accumulate_strided`]; `source` is dropped then.
    #[track_caller]
    pub fn accumulate_strided_nb<B: Buffer>(
        &self,
        alpha: B::Element,
        source: B,
        target: GlobalPtr<B::Element>,
        shape: &Strided<'_>,
    ) -> Result<Handle<B>>
    where
        B::Element: Accumulate,
    {
        self.start(source, |first, len, completion| {
            shape.check_local::<B::Element>(len)?;
            // SAFETY: LOCAL-SPAN was just checked.
            unsafe { self.accumulate_strided_by(alpha, first, target, shape, completion) }
        })
    }

    /// Starts a put of segments of `source` (`ARMCI_NbPutV`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::put_vector`]; `source` is dropped then.
    #[track_caller]
    pub fn put_vector_nb<B: Buffer>(&self, source: B, segments: &Segments<'_, B::Element>) -> Result<Handle<B>> {
        self.start(source, |first, len, _| {
            segments.fit(len)?;
            // SAFETY: LOCAL-SEGMENTS was just checked.
            unsafe { self.put_vector_from(segments.at(first)) }
        })
    }

    /// Starts a get into segments of `target` (`ARMCI_NbGetV`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::get_vector`]; `target` is dropped then.
    #[track_caller]
    pub fn get_vector_nb<B: Buffer>(&self, target: B, segments: &Segments<'_, B::Element>) -> Result<Handle<B>> {
        self.start(target, |first, len, completion| {
            segments.fit(len)?;
            // SAFETY: LOCAL-SEGMENTS was just checked, and lasts until the handle has been waited for.
            unsafe { self.get_vector_by(segments.at(first), completion) }
        })
    }

    /// Starts an accumulate of segments of `source` (`ARMCI_NbAccV`); see [`World::put_nb`].
    ///
    /// # Errors
    /// As [`World::accumulate_vector`]; `source` is dropped then.
    #[track_caller]
    pub fn accumulate_vector_nb<B: Buffer>(
        &self,
        alpha: B::Element,
        source: B,
        segments: &Segments<'_, B::Element>,
    ) -> Result<Handle<B>>
    where
        B::Element: Accumulate,
    {
        self.start(source, |first, len, _| {
            segments.fit(len)?;
            // SAFETY: LOCAL-SEGMENTS was just checked.
            unsafe { self.accumulate_vector_from(alpha, segments.at(first)) }
        })
    }
}
