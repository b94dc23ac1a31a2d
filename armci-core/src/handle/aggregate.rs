//! Aggregates: many small operations, sent together.
//!
//! By remote memory access each operation is simply carried out. By message, operations of one kind and length with
//! one region of one rank travel as the records of one list, about a thousand of 8 bytes in a message: so what one
//! message costs is shared by a thousand.
//!
//! An operation takes effect between the call that adds it and the end of the next [`Aggregate::send`] or
//! [`Aggregate::wait`]; in the order they were added, among themselves. Other operations of the thread are in order with
//! what has been sent, not with what is still being collected.
//!
//! # Safety
//! LOCAL-SPAN, LOCAL-SEGMENTS (see `rma`): sources are read at once; for the targets of gets, SCOPE-WAITS (see
//! `scope`), or the caller vouches for them.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;

use crate::accumulate::kernels::{Accumulate, alpha_bytes};
use crate::am::landing::{Group, Tag, Which};
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::rma::by_list::{Gathering, Verb};
use crate::rma::{Completion, Segment, far};
use crate::watch::{Call, Extent, Kind};
use crate::world::World;

/// Small operations that are collected and sent together (`ARMCI_SET_AGGREGATE_HANDLE`); see [`World::aggregate`].
///
/// Dropped, it sends and waits, and says nothing of errors. Forgotten, it loses what it has not sent and keeps its thread
/// attached; what it has not sent when its thread leaves the job is lost, too.
pub struct Aggregate {
    world: World,
    tag: Tag,
    gathering: Gathering,
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aggregate")
    }
}

impl World {
    /// Collects small operations to be sent together: whatever goes to one region of one rank, in one kind and length,
    /// one after the other, shares messages.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let region = world.allocate(8 * 1000)?;
    /// world.put(&[0.0; 1000], region.at(world.rank(), 0))?;
    /// world.barrier()?;
    /// let right = (world.rank() + 1) % world.size();
    /// let mut many = world.aggregate();
    /// for place in (0..1000).step_by(7) {
    ///     many.accumulate(1.0, &[place as f64], region.at(right, place))?;
    /// }
    /// many.finish()?;
    /// world.barrier()?;
    /// assert_eq!(world.get_value::<f64>(region.at(world.rank(), 700))?, 700.0);
    /// world.free(region)?;
    /// world.finalize()
    /// # }
    /// ```
    pub fn aggregate(&self) -> Aggregate {
        Aggregate::of(self, Group::Explicit)
    }
}

/// Whether an operation goes on its own instead, by remote memory access, which `below` allows: in place on this node;
/// to another one if it is long, since an access of its own would cost a short one more than its share of a message.
#[inline]
fn alone<T: Pod>(world: &World, below: u32, place: GlobalPtr<T>, count: usize) -> bool {
    let near = || world.node().slot_of(place.rank()).is_some();
    place.region.index < below && (near() || count.saturating_mul(size_of::<T>()) >= far::LONG_ROW)
}

impl Aggregate {
    /// One whose gets belong to a group.
    pub(super) fn of(world: &World, group: Group) -> Self {
        Aggregate { world: world.clone(), tag: world.origin().tag(group), gathering: Gathering::default() }
    }

    /// Adds a put of `source`, which is copied at once (`ARMCI_NbPut`).
    ///
    /// # Errors
    /// As [`World::put`]; nothing was added then.
    #[track_caller]
    pub fn put<T: Pod>(&mut self, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        // SAFETY: LOCAL-SPAN: borrowed for the call.
        unsafe { self.put_from(source.as_ptr(), source.len(), target) }
    }

    /// Adds an accumulate of `alpha` times `source`, which is copied at once (`ARMCI_NbAcc`).
    ///
    /// # Errors
    /// As [`World::accumulate`]; nothing was added then.
    #[track_caller]
    pub fn accumulate<T: Accumulate>(&mut self, alpha: T, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        // SAFETY: LOCAL-SPAN: borrowed for the call.
        unsafe { self.accumulate_from(alpha, source.as_ptr(), source.len(), target) }
    }

    /// [`Aggregate::put`] of memory that is no slice.
    ///
    /// # Safety
    /// As [`World::put_from`].
    ///
    /// # Errors
    /// As [`World::put`]; nothing was added then.
    #[track_caller]
    pub unsafe fn put_from<T: Pod>(&mut self, source: *const T, count: usize, target: GlobalPtr<T>) -> Result<()> {
        let world = &self.world;
        if alone(world, world.direct().put.get(), target, count) {
            self.send();
            // SAFETY: LOCAL-SPAN.
            return unsafe { self.world.put_from(source, count, target) };
        }
        let segment = Segment { local: source.cast_mut(), remote: target, count };
        world.resolve(target, segment.bytes() as u64)?;
        world.count().put(segment.bytes());
        // SAFETY: LOCAL-SPAN.
        unsafe { self.add(Kind::Put, segment, Verb::Put) }
    }

    /// [`Aggregate::accumulate`] of memory that is no slice.
    ///
    /// # Safety
    /// As [`World::accumulate_from`].
    ///
    /// # Errors
    /// As [`World::accumulate`]; nothing was added then.
    #[track_caller]
    pub unsafe fn accumulate_from<T: Accumulate>(
        &mut self,
        alpha: T,
        source: *const T,
        count: usize,
        target: GlobalPtr<T>,
    ) -> Result<()> {
        let world = &self.world;
        if alone(world, world.direct().accumulate.get(), target, count) {
            self.send();
            // SAFETY: LOCAL-SPAN.
            return unsafe { self.world.accumulate_from(alpha, source, count, target) };
        }
        let segment = Segment { local: source.cast_mut(), remote: target, count };
        world.resolve(target, segment.bytes() as u64)?;
        world.aligned(target, align_of::<T>(), "an accumulate")?;
        world.count().accumulate(segment.bytes());
        let verb = Verb::Accumulate { kind: T::KIND, alpha: alpha_bytes(alpha) };
        // SAFETY: LOCAL-SPAN.
        unsafe { self.add(Kind::Accumulate, segment, verb) }
    }

    /// Adds a get (`ARMCI_NbGet`).
    ///
    /// # Safety
    /// As [`World::get_into`], until a [`wait`](Aggregate::wait), or the aggregate is finished or dropped.
    ///
    /// # Errors
    /// As [`World::get`]; nothing was added then.
    #[track_caller]
    pub unsafe fn get_into<T: Pod>(&mut self, source: GlobalPtr<T>, target: *mut T, count: usize) -> Result<()> {
        let world = &self.world;
        if alone(world, world.direct().get.get(), source, count) {
            self.send();
            // SAFETY: LOCAL-SPAN.
            return unsafe { self.world.get_into_by(source, target, count, Completion::Later(self.tag)) };
        }
        let segment = Segment { local: target, remote: source, count };
        world.resolve(source, segment.bytes() as u64)?;
        world.count().get(segment.bytes());
        // SAFETY: LOCAL-SPAN, until it has been waited for.
        unsafe { self.add(Kind::Get, segment, Verb::Get(self.tag)) }
    }

    /// Adds an operation to what is collected; to who watches, that is the call.
    ///
    /// # Safety
    /// LOCAL-SPAN; for a get, until it has been waited for.
    #[inline]
    #[track_caller]
    unsafe fn add<T: Pod>(&mut self, kind: Kind, segment: Segment<T>, verb: Verb) -> Result<()> {
        let (world, segment) = (&self.world, segment.in_bytes());
        if world.is_plain() {
            // SAFETY: LOCAL-SPAN.
            unsafe { self.gathering.add(world, segment, verb) };
            return Ok(());
        }
        let call = world.call_on(kind, segment.remote, segment.count, Extent::Bytes);
        // Between nodes, what is gathered goes by message.
        let near = world.node().slot_of(segment.remote.rank()).is_some();
        let call = Call { direct: call.direct && near, ..call };
        world.watched(&call, || {
            // SAFETY: LOCAL-SPAN.
            unsafe { self.gathering.add(world, segment, verb) };
            Ok(())
        })
    }

    /// Sends what was collected, and waits for nothing but credits. What was not sent when its thread left the job
    /// stays so.
    #[inline]
    pub fn send(&mut self) {
        // Who has left has no request slots: they may be another thread's by the time a reply comes.
        if self.world.check_open().is_ok() {
            self.gathering.send(&self.world);
        }
    }

    /// Sends what was collected, and waits for local completion of all that was added so far (`ARMCI_Wait`). More may
    /// be added afterwards.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if a target did not serve a get. If its thread has left the job.
    pub fn wait(&mut self) -> Result<()> {
        self.world.check_open()?;
        self.send();
        self.world.origin().complete(Which::Op(self.tag.op))
    }

    /// As [`Aggregate::wait`], and the end of it.
    ///
    /// # Errors
    /// As [`Aggregate::wait`].
    pub fn finish(mut self) -> Result<()> {
        self.wait()
    }
}

impl Drop for Aggregate {
    fn drop(&mut self) {
        if self.world.check_open().is_ok() {
            // Who wanted to hear of errors would have finished.
            let _ = self.wait();
        }
    }
}

/// An [`Aggregate`] of a scope, which can get into what is borrowed for the scope; see
/// [`Scope::aggregate`](super::Scope::aggregate).
#[derive(Debug)]
pub struct ScopedAggregate<'scope> {
    inner: Aggregate,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope> ScopedAggregate<'scope> {
    pub(super) fn new(inner: Aggregate) -> Self {
        ScopedAggregate { inner, scope: PhantomData }
    }

    /// As [`Aggregate::put`].
    ///
    /// # Errors
    /// As [`World::put`]; nothing was added then.
    #[track_caller]
    pub fn put<T: Pod>(&mut self, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        self.inner.put(source, target)
    }

    /// As [`Aggregate::accumulate`].
    ///
    /// # Errors
    /// As [`World::accumulate`]; nothing was added then.
    #[track_caller]
    pub fn accumulate<T: Accumulate>(&mut self, alpha: T, source: &[T], target: GlobalPtr<T>) -> Result<()> {
        self.inner.accumulate(alpha, source, target)
    }

    /// Adds a get into `target`, which holds the data after the scope (`ARMCI_NbGet`).
    ///
    /// # Errors
    /// As [`World::get`]; nothing was added then.
    #[track_caller]
    pub fn get<T: Pod>(&mut self, source: GlobalPtr<T>, target: &'scope mut [T]) -> Result<()> {
        // SAFETY: LOCAL-SPAN by SCOPE-WAITS: what is sent belongs to the scope's group, and what is not is not got.
        unsafe { self.inner.get_into(source, target.as_mut_ptr(), target.len()) }
    }

    /// As [`Aggregate::send`].
    pub fn send(&mut self) {
        self.inner.send();
    }

    /// As [`Aggregate::wait`].
    ///
    /// # Errors
    /// As [`Aggregate::wait`].
    pub fn wait(&mut self) -> Result<()> {
        self.inner.wait()
    }

    /// As [`Aggregate::finish`].
    ///
    /// # Errors
    /// As [`Aggregate::wait`].
    pub fn finish(self) -> Result<()> {
        self.inner.finish()
    }
}
