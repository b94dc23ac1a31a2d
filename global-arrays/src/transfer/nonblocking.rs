//! Transfers of patches that are started by one call and waited for by another, with buffers of their own.
//!
//! A handle owns its buffer and gives it back. For buffers that are only lent there is [`scope`](super::scope). Both
//! are the runtime's non-blocking transfers under one number for all owners of a patch, and what its module on handles
//! says of completion holds: a wait is for *local* completion, and operations of a thread on one place keep their order.
//!
//! # Safety
//! VIEW-LIVE (see the module above): the buffer lies in the handle, which lets nobody look at it until it was waited
//! for, and waits when it is dropped; forgotten, it leaks its buffer, which is written but never freed. A buffer's
//! elements stay where they are when the array that owns them moves.
#![allow(unsafe_code)]

use std::fmt;

use armci_core::{Accumulate, NbHandle};
use bytemuck::Pod;
use ndarray::{Array, Dimension};

use super::{is_forward, turn};
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::select::{Section, Select};
use armci_core::Group;

/// A transfer of a patch under way, and its buffer of `Out` dimensions.
///
/// [`PatchHandle::wait`] gives the buffer back. A handle that is dropped waits too, and says nothing of errors; one that
/// is forgotten leaks its buffer. The array cannot be destroyed meanwhile.
#[must_use = "a handle that is dropped is waited for on the spot"]
pub struct PatchHandle<'a, T, Out> {
    /// Before the buffer, since it waits when it goes.
    pending: Pending<'a>,
    buffer: Array<T, Out>,
}

/// What is to be waited for.
struct Pending<'a> {
    group: &'a Group,
    array: &'a str,
    handle: NbHandle,
}

impl Pending<'_> {
    /// Waits until nothing is under way, also if an owner refuses.
    fn complete(&mut self) -> Result<()> {
        let waited = self.group.world().wait_for(&mut self.handle);
        waited.map_err(|source| Error::Runtime { array: self.array.into(), source })
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // Who wanted to hear of errors would have waited.
        let _ = self.complete();
    }
}

impl<T, Out: Dimension> fmt::Debug for PatchHandle<'_, T, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchHandle({:?} of '{}')", self.buffer.shape(), self.pending.array)
    }
}

impl<T: Pod, Out: Dimension> PatchHandle<'_, T, Out> {
    /// Waits for local completion, and gives the buffer back (`NGA_NbWait`): with the patch in it, for a get.
    ///
    /// # Errors
    /// [`Error::Runtime`] if an owner did not serve it. The buffer, which holds nobody knows what, is dropped.
    pub fn wait(mut self) -> Result<Array<T, Out>> {
        self.pending.complete()?;
        Ok(self.buffer)
    }

    /// Whether it is locally complete (`NGA_NbTest`). Serves this rank's messages if not, so it may be asked in a loop.
    pub fn test(&self) -> bool {
        self.pending.group.world().test_for(&self.pending.handle)
    }
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    fn under_way<Out: Dimension>(&self, buffer: Array<T, Out>) -> PatchHandle<'_, T, Out> {
        let pending = Pending { group: &self.group, array: &self.name, handle: NbHandle::default() };
        PatchHandle { pending, buffer }
    }

    /// Starts to fetch a patch (`NGA_NbGet`); the handle's [`wait`](PatchHandle::wait) gives it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use global_arrays::GlobalArray;
    ///
    /// let world = armci_core::World::init()?;
    /// let a = GlobalArray::<f64>::builder(&world, "a", [64, 64]).filled(0.5).create()?;
    /// let tile = |number: usize| a.get_nb([16 * number..16 * number + 16, 0..64]);
    /// // The next tile is on its way while this one is worked on.
    /// let (mut sum, mut here) = (0.0, tile(0)?);
    /// for number in 1..4 {
    ///     let next = tile(number)?;
    ///     sum += here.wait()?.sum();
    ///     here = next;
    /// }
    /// sum += here.wait()?.sum();
    /// assert_eq!(sum, 0.5 * 64.0 * 64.0);
    /// a.destroy()?;
    /// world.finalize()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    #[track_caller]
    pub fn get_nb<S: Select<D>>(&self, at: S) -> Result<PatchHandle<'_, T, S::Out>> {
        let section = self.section(&at)?;
        self.start_get(&section, Array::from_elem(section.buffer_shape::<S::Out>(), T::zeroed()))
    }

    /// Starts to fetch a patch into a buffer of its shape (`NGA_NbGet`), which comes back from the handle: so one
    /// buffer serves many gets.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; `target` is dropped then.
    #[track_caller]
    pub fn get_into_nb<S: Select<D>>(&self, at: S, target: Array<T, S::Out>) -> Result<PatchHandle<'_, T, S::Out>> {
        let section = self.section(&at)?;
        self.fits(&section, target.shape())?;
        self.start_get(&section, target)
    }

    #[track_caller]
    fn start_get<Out: Dimension>(
        &self,
        section: &Section,
        mut buffer: Array<T, Out>,
    ) -> Result<PatchHandle<'_, T, Out>> {
        turn(section, &mut buffer);
        if !is_forward(section, &section.strides(buffer.strides())) {
            buffer = Array::from_elem(buffer.raw_dim(), T::zeroed());
        }
        let (first, strides) = (buffer.as_mut_ptr(), section.strides(buffer.strides()));
        // This changes how the elements are counted, and none of them.
        turn(section, &mut buffer);
        // From here on the handle waits, whatever happens.
        let mut under_way = self.under_way(buffer);
        // SAFETY: VIEW-LIVE.
        unsafe { self.get_section_nb(self.group.world(), section, first, &strides, &mut under_way.pending.handle)? };
        Ok(under_way)
    }

    /// Starts to copy `source` into a patch (`NGA_NbPut`); the handle's [`wait`](PatchHandle::wait) gives it back.
    /// Others see the patch after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]: nothing was written then. `source` is dropped.
    #[track_caller]
    pub fn put_nb<S: Select<D>>(&self, at: S, source: Array<T, S::Out>) -> Result<PatchHandle<'_, T, S::Out>> {
        let section = self.section(&at)?;
        self.fits(&section, source.shape())?;
        let source = laid_forward(&section, source);
        let (first, strides) = start_of(&section, &source);
        let mut under_way = self.under_way(source);
        // SAFETY: VIEW-LIVE.
        unsafe { self.put_section_nb(self.group.world(), &section, first, &strides, &mut under_way.pending.handle)? };
        Ok(under_way)
    }
}

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Starts to add `alpha` times `source` to a patch (`NGA_NbAcc`); the handle's [`wait`](PatchHandle::wait) gives
    /// `source` back. Atomic per element; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]: nothing was added then. `source` is dropped.
    #[track_caller]
    pub fn accumulate_nb<S: Select<D>>(
        &self,
        at: S,
        alpha: T,
        source: Array<T, S::Out>,
    ) -> Result<PatchHandle<'_, T, S::Out>> {
        let section = self.section(&at)?;
        self.fits(&section, source.shape())?;
        let source = laid_forward(&section, source);
        let (first, strides) = start_of(&section, &source);
        let mut under_way = self.under_way(source);
        let handle = &mut under_way.pending.handle;
        // SAFETY: VIEW-LIVE.
        unsafe { self.accumulate_section_nb(self.group.world(), &section, alpha, (first, &strides), handle)? };
        Ok(under_way)
    }
}

/// A source that, [turned](turn), runs forward along all axes: itself, or the same values laid out anew.
fn laid_forward<T: Pod, Out: Dimension>(section: &Section, mut source: Array<T, Out>) -> Array<T, Out> {
    turn(section, &mut source);
    if !is_forward(section, &section.strides(source.strides())) {
        source = source.as_standard_layout().into_owned();
    }
    turn(section, &mut source);
    source
}

/// Where a transfer of a section begins in a buffer of its shape, and the buffer's strides along the section's axes.
fn start_of<T: Pod, Out: Dimension>(section: &Section, buffer: &Array<T, Out>) -> (*const T, crate::axes::Axes<isize>) {
    let mut view = buffer.view();
    turn(section, &mut view);
    (view.as_ptr(), section.strides(view.strides()))
}
