//! Operations on borrowed buffers, in a scope at whose end all are complete.
//!
//! # Safety
//! SCOPE-WAITS: [`World::nonblocking`] returns, also by a panic, only once all gets of the scope are complete; and
//! what is borrowed for `'scope` stays borrowed until it returns. So LOCAL-SPAN and LOCAL-SEGMENTS (see `rma`) hold
//! for as long as they must. TAKEN-APART (see `buffer`).
#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;

use super::aggregate::{Aggregate, ScopedAggregate};
use super::buffer::{Lend, Parts};
use crate::accumulate::kernels::Accumulate;
use crate::am::landing::{Group, Which};
use crate::error::Result;
use crate::memory::GlobalPtr;
use crate::rma::{Completion, Segments, Strided};
use crate::world::World;

/// Where operations on borrowed buffers are started; see [`World::nonblocking`].
pub struct Scope<'scope, 'env: 'scope> {
    world: World,
    number: u64,
    /// Invariant, so that a scope cannot be taken for one that ends earlier.
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({})", self.number)
    }
}

/// An operation of a scope, and the borrow of its buffer, which [`ScopedHandle::wait`] gives back.
///
/// It need not be kept: the scope waits for it too.
pub struct ScopedHandle<'scope, B: Lend> {
    world: &'scope World,
    op: u64,
    parts: Parts<B::Element>,
    buffer: PhantomData<B>,
}

impl<B: Lend> fmt::Debug for ScopedHandle<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopedHandle({} elements)", self.parts.len)
    }
}

impl<B: Lend> ScopedHandle<'_, B> {
    /// Waits for local completion, and gives the borrow back (`ARMCI_Wait`).
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if the target did not serve it.
    pub fn wait(self) -> Result<B> {
        self.world.origin().complete(Which::Op(self.op))?;
        // SAFETY: TAKEN-APART: `self` is gone with this; the operation is complete.
        Ok(unsafe { B::from_parts(self.parts) })
    }

    /// Whether it is locally complete (`ARMCI_Test`). Serves this rank's messages if not, so it may be asked in a loop.
    pub fn test(&self) -> bool {
        self.world.origin().is_complete(Which::Op(self.op))
    }
}

/// Waits for all of a scope when it goes.
struct End<'a> {
    world: &'a World,
    number: u64,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // In a panic nobody hears of errors; without one, they have been heard of.
        let _ = self.world.origin().complete(Which::Group(Group::Scope(self.number), None));
    }
}

impl World {
    /// Runs `body`, which may start operations on what it borrows; on return all of them are locally complete.
    ///
    /// A buffer that was given to an operation can be used again when the operation's handle was waited for, or after
    /// the scope.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let (a, b) = (world.allocate(8 * 100)?, world.allocate(8 * 100)?);
    /// world.put(&[2.0; 100], a.at(world.rank(), 0))?;
    /// world.put(&[3.0; 100], b.at(world.rank(), 0))?;
    /// world.barrier()?;
    ///
    /// let right = (world.rank() + 1) % world.size();
    /// let (mut row, mut column, ones) = ([0.0; 100], [0.0; 100], [1.0; 100]);
    /// let product: f64 = world.nonblocking(|scope| {
    ///     let row = scope.get(a.at(right, 0), &mut row)?;
    ///     let column = scope.get(b.at(right, 0), &mut column)?;
    ///     // Nobody waits for this one by itself.
    ///     scope.accumulate(1.0, &ones, a.at(right, 0))?;
    ///     let (row, column) = (row.wait()?, column.wait()?);
    ///     Ok(row.iter().zip(column).map(|(x, y)| x * *y).sum())
    /// })?;
    /// assert_eq!(product, 600.0);
    /// // The scope is over, and with it the borrows.
    /// assert_eq!(row, [2.0; 100]);
    /// world.barrier()?;
    /// assert_eq!(world.get_value::<f64>(a.at(world.rank(), 99))?, 3.0);
    /// world.free(b)?;
    /// world.free(a)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of `body`; or if an operation was refused and no wait in it has said so.
    pub fn nonblocking<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let number = self.origin().number();
        // SCOPE-WAITS, whatever `body` does.
        let end = End { world: self, number };
        let scope = Scope { world: self.clone(), number, scope: PhantomData, env: PhantomData };
        let result = body(&scope)?;
        let completed = scope.wait_all();
        drop(end);
        completed.map(|()| result)
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    fn group(&self) -> Group {
        Group::Scope(self.number)
    }

    /// Starts an operation on a borrowed buffer.
    #[track_caller]
    fn start<B: Lend>(
        &'scope self,
        buffer: B,
        start: impl FnOnce(&World, *mut B::Element, usize, Completion) -> Result<()>,
    ) -> Result<ScopedHandle<'scope, B>> {
        let tag = self.world.origin().tag(self.group());
        let parts = buffer.into_parts();
        self.world.as_one_call(|| start(&self.world, parts.first, parts.len, Completion::Later(tag)))?;
        Ok(ScopedHandle { world: &self.world, op: tag.op, parts, buffer: PhantomData })
    }

    /// The world of the scope.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Waits for local completion of this scope's operations with `rank` (`ARMCI_WaitProc`).
    ///
    /// # Errors
    /// As [`ScopedHandle::wait`].
    pub fn wait_rank(&self, rank: usize) -> Result<()> {
        self.world.origin().complete(Which::Group(self.group(), Some(rank)))
    }

    /// Waits for local completion of all operations of this scope (`ARMCI_WaitAll`).
    ///
    /// # Errors
    /// As [`ScopedHandle::wait`].
    pub fn wait_all(&self) -> Result<()> {
        self.world.origin().complete(Which::Group(self.group(), None))
    }

    /// Starts a put (`ARMCI_NbPut`).
    ///
    /// # Errors
    /// As [`World::put`].
    #[track_caller]
    pub fn put<T: Pod>(
        &'scope self,
        source: &'scope [T],
        target: GlobalPtr<T>,
    ) -> Result<ScopedHandle<'scope, &'scope [T]>> {
        // SAFETY: LOCAL-SPAN by SCOPE-WAITS.
        self.start(source, |world, first, len, completion| unsafe { world.put_from_by(first, len, target, completion) })
    }

    /// Starts a get (`ARMCI_NbGet`).
    ///
    /// # Errors
    /// As [`World::get`].
    #[track_caller]
    pub fn get<T: Pod>(
        &'scope self,
        source: GlobalPtr<T>,
        target: &'scope mut [T],
    ) -> Result<ScopedHandle<'scope, &'scope mut [T]>> {
        // SAFETY: LOCAL-SPAN by SCOPE-WAITS.
        self.start(target, |world, first, len, completion| unsafe { world.get_into_by(source, first, len, completion) })
    }

    /// Starts an accumulate (`ARMCI_NbAcc`).
    ///
    /// # Errors
    /// As [`World::accumulate`].
    #[track_caller]
    pub fn accumulate<T: Accumulate>(
        &'scope self,
        alpha: T,
        source: &'scope [T],
        target: GlobalPtr<T>,
    ) -> Result<ScopedHandle<'scope, &'scope [T]>> {
        // SAFETY: LOCAL-SPAN by SCOPE-WAITS.
        self.start(source, |world, first, len, completion| unsafe {
            world.accumulate_from_by(alpha, first, len, target, completion)
        })
    }

    /// Starts a put of a patch (`ARMCI_NbPutS`).
    ///
    /// # Errors
    /// As [`World::put_strided`].
    #[track_caller]
    pub fn put_strided<T: Pod>(
        &'scope self,
        source: &'scope [T],
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
    ) -> Result<ScopedHandle<'scope, &'scope [T]>> {
        shape.check_local::<T>(source.len())?;
        // SAFETY: LOCAL-SPAN was just checked; SCOPE-WAITS.
        self.start(source, |world, first, _, completion| unsafe {
            world.put_strided_by(first, target, shape, completion)
        })
    }

    /// Starts a get into a patch (`ARMCI_NbGetS`).
    ///
    /// # Errors
    /// As [`World::get_strided`].
    #[track_caller]
    pub fn get_strided<T: Pod>(
        &'scope self,
        source: GlobalPtr<T>,
        target: &'scope mut [T],
        shape: &Strided<'_>,
    ) -> Result<ScopedHandle<'scope, &'scope mut [T]>> {
        shape.check_local::<T>(target.len())?;
        // SAFETY: LOCAL-SPAN was just checked; SCOPE-WAITS.
        self.start(target, |world, first, _, completion| unsafe {
            world.get_strided_by(source, first, shape, completion)
        })
    }

    /// Starts an accumulate of a patch (`ARMCI_NbAccS`).
    ///
    /// # Errors
    /// As [`World::accumulate_strided`].
    #[track_caller]
    pub fn accumulate_strided<T: Accumulate>(
        &'scope self,
        alpha: T,
        source: &'scope [T],
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
    ) -> Result<ScopedHandle<'scope, &'scope [T]>> {
        shape.check_local::<T>(source.len())?;
        // SAFETY: LOCAL-SPAN was just checked; SCOPE-WAITS.
        self.start(source, |world, first, _, completion| unsafe {
            world.accumulate_strided_by(alpha, first, target, shape, completion)
        })
    }

    /// Starts a put of segments (`ARMCI_NbPutV`).
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub fn put_vector<T: Pod>(
        &'scope self,
        source: &'scope [T],
        segments: &Segments<'_, T>,
    ) -> Result<ScopedHandle<'scope, &'scope [T]>> {
        segments.fit(source.len())?;
        // SAFETY: LOCAL-SEGMENTS was just checked; SCOPE-WAITS.
        self.start(source, |world, first, _, _| unsafe { world.put_vector_from(segments.at(first)) })
    }

    /// Starts a get into segments (`ARMCI_NbGetV`).
    ///
    /// # Errors
    /// As [`World::get_vector`].
    #[track_caller]
    pub fn get_vector<T: Pod>(
        &'scope self,
        target: &'scope mut [T],
        segments: &Segments<'_, T>,
    ) -> Result<ScopedHandle<'scope, &'scope mut [T]>> {
        segments.fit(target.len())?;
        // SAFETY: LOCAL-SEGMENTS was just checked; SCOPE-WAITS.
        self.start(target, |world, first, _, completion| unsafe { world.get_vector_by(segments.at(first), completion) })
    }

    /// Starts an accumulate of segments (`ARMCI_NbAccV`).
    ///
    /// # Errors
    /// As [`World::accumulate_vector`].
    #[track_caller]
    pub fn accumulate_vector<T: Accumulate>(
        &'scope self,
        alpha: T,
        source: &'scope [T],
        segments: &Segments<'_, T>,
    ) -> Result<ScopedHandle<'scope, &'scope [T]>> {
        segments.fit(source.len())?;
        // SAFETY: LOCAL-SEGMENTS was just checked; SCOPE-WAITS.
        self.start(source, |world, first, _, _| unsafe { world.accumulate_vector_from(alpha, segments.at(first)) })
    }

    /// Collects small operations; see [`World::aggregate`]. Here it can get, too.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let region = world.allocate(8 * 1000)?;
    /// let numbers: Vec<i64> = (0..1000).collect();
    /// world.put(&numbers, region.at(world.rank(), 0))?;
    /// world.barrier()?;
    /// let right = (world.rank() + 1) % world.size();
    /// let mut found = [0i64; 10];
    /// world.nonblocking(|scope| {
    ///     let mut many = scope.aggregate();
    ///     for (index, number) in found.chunks_mut(1).enumerate() {
    ///         many.get(region.at(right, index * 37), number)?;
    ///     }
    ///     many.finish()
    /// })?;
    /// assert_eq!(found[9], 333);
    /// world.free(region)?;
    /// world.finalize()
    /// # }
    /// ```
    pub fn aggregate(&'scope self) -> ScopedAggregate<'scope> {
        ScopedAggregate::new(Aggregate::of(&self.world, self.group()))
    }
}
