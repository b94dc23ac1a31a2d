//! Transfers of patches with buffers that are lent for the time of a scope.
//!
//! # Safety
//! VIEW-LIVE (see the module above), for as long as it must: what is lent for `'scope` stays lent until [`nonblocking`]
//! returns, and it returns, also by a panic, only when all that was started in it is complete. A [`ScopedPatch`] lets
//! nobody look at its view before it was waited for; it needs no destructor, so it may be forgotten.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::marker::PhantomData;

use armci_core::{Accumulate, NbHandle, World};
use bytemuck::Pod;
use ndarray::{ArrayView, ArrayViewMut, Dimension};

use super::{is_forward, turn};
use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::select::Select;

/// All that was started in a scope, and of which arrays.
type Started<'scope> = Vec<(NbHandle, &'scope str)>;

/// Where transfers with lent buffers are started; see [`nonblocking`].
pub struct PatchScope<'scope, 'env: 'scope> {
    world: World,
    started: RefCell<Started<'scope>>,
    /// Invariant, so that a scope cannot be taken for one that ends earlier.
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

impl fmt::Debug for PatchScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchScope({} started)", self.started.borrow().len())
    }
}

/// A transfer of a scope, and the view it was lent, which [`ScopedPatch::wait`] gives back.
///
/// It need not be kept: the scope waits for it too.
pub struct ScopedPatch<'scope, V> {
    world: &'scope World,
    name: &'scope str,
    handle: NbHandle,
    view: V,
}

impl<V> fmt::Debug for ScopedPatch<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopedPatch(of '{}')", self.name)
    }
}

impl<V> ScopedPatch<'_, V> {
    /// Waits for local completion, and gives the view back (`NGA_NbWait`).
    ///
    /// # Errors
    /// [`Error::Runtime`] if an owner did not serve it.
    pub fn wait(mut self) -> Result<V> {
        let waited = self.world.wait_for(&mut self.handle);
        waited.map_err(|source| Error::Runtime { array: self.name.into(), source })?;
        Ok(self.view)
    }

    /// Whether it is locally complete (`NGA_NbTest`). Serves this rank's messages if not, so it may be asked in a loop.
    pub fn test(&self) -> bool {
        self.world.test_for(&self.handle)
    }
}

/// Waits for all of a scope when it goes.
struct End<'a, 'scope>(&'a World, &'a RefCell<Started<'scope>>);

impl End<'_, '_> {
    /// Waits for everything, and reports the first refusal.
    fn wait(&self) -> Result<()> {
        let mut outcome = Ok(());
        for (mut handle, name) in self.1.take() {
            let waited = self.0.wait_for(&mut handle);
            outcome = outcome.and(waited.map_err(|source| Error::Runtime { array: name.into(), source }));
        }
        outcome
    }
}

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        // In a panic nobody hears of errors; without one, they have been heard of.
        let _ = self.wait();
    }
}

/// Runs `body`, which may start transfers of patches of any arrays with views that it lends; on return all of them are
/// locally complete.
///
/// A view that was lent can be used again when its transfer was waited for, or after the scope.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use global_arrays::{GlobalArray, nonblocking};
/// use ndarray::{Array1, Array2, s};
///
/// let world = armci_core::World::init()?;
/// let a = GlobalArray::<f64>::builder(&world, "a", [40, 40]).filled(2.0).create()?;
/// let b = GlobalArray::<f64>::builder(&world, "b", [40, 40]).filled(3.0).create()?;
/// let (mut row, mut tiles) = (Array1::zeros(40), Array2::zeros((8, 40)));
/// nonblocking(&world, |scope| {
///     let row = scope.get(&a, s![7, ..], &mut row)?;
///     // Two parts of one buffer, from two arrays.
///     let (upper, lower) = tiles.view_mut().split_at(ndarray::Axis(0), 4);
///     scope.get(&a, [0..4, 0..40], upper)?;
///     scope.get(&b, [0..4, 0..40], lower)?;
///     // Something else meanwhile; then the row alone.
///     assert_eq!(row.wait()?.sum(), 80.0);
///     Ok(())
/// })?;
/// assert_eq!((tiles[[3, 39]], tiles[[4, 0]]), (2.0, 3.0));
/// b.destroy()?;
/// a.destroy()?;
/// world.finalize()?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// That of `body`; or if a transfer was refused and no wait in it has said so.
pub fn nonblocking<'env, R>(
    world: &World,
    body: impl for<'scope> FnOnce(&'scope PatchScope<'scope, 'env>) -> Result<R>,
) -> Result<R> {
    let scope = PatchScope { world: world.clone(), started: RefCell::default(), scope: PhantomData, env: PhantomData };
    // VIEW-LIVE, whatever `body` does.
    let end = End(world, &scope.started);
    let result = body(&scope)?;
    end.wait()?;
    Ok(result)
}

impl<'scope, 'env> PatchScope<'scope, 'env> {
    /// The number of a transfer that is about to start, which the scope knows before anything is under way. (Whoever
    /// starts it does so without a closure, in which it would not be told as made where the program called.)
    fn next(&self, array: &'scope str) -> RefMut<'_, NbHandle> {
        RefMut::map(self.started.borrow_mut(), |started| {
            let place = started.len();
            started.push((NbHandle::default(), array));
            &mut started[place].0
        })
    }

    fn lent<V>(&'scope self, name: &'scope str, handle: NbHandle, view: V) -> ScopedPatch<'scope, V> {
        ScopedPatch { world: &self.world, name, handle, view }
    }

    /// Starts to fetch a patch into a view of its shape (`NGA_NbGet`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was started then.
    #[track_caller]
    pub fn get<T: Pod, D: Dimension, S: Select<D>>(
        &'scope self,
        array: &'scope GlobalArray<T, D>,
        at: S,
        target: impl Into<ArrayViewMut<'scope, T, S::Out>>,
    ) -> Result<ScopedPatch<'scope, ArrayViewMut<'scope, T, S::Out>>> {
        let (section, mut target) = (array.section(&at)?, target.into());
        array.fits(&section, target.shape())?;
        turn(&section, &mut target);
        let (first, strides) = (target.as_mut_ptr(), section.strides(target.strides()));
        turn(&section, &mut target);
        if !is_forward(&section, &strides) {
            // No strided transfer: on the spot.
            array.get_into(at, target.view_mut())?;
            return Ok(self.lent(&array.name, NbHandle::default(), target));
        }
        let mut handle = self.next(&array.name);
        // SAFETY: VIEW-LIVE.
        unsafe { array.get_section_nb(&self.world, &section, first, &strides, &mut handle)? };
        Ok(self.lent(&array.name, *handle, target))
    }

    /// Starts to copy a view into a patch (`NGA_NbPut`); others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn put<T: Pod, D: Dimension, S: Select<D>>(
        &'scope self,
        array: &'scope GlobalArray<T, D>,
        at: S,
        source: impl Into<ArrayView<'scope, T, S::Out>>,
    ) -> Result<ScopedPatch<'scope, ArrayView<'scope, T, S::Out>>> {
        let (section, source) = (array.section(&at)?, source.into());
        let mut turned = source.clone();
        array.fits(&section, source.shape())?;
        turn(&section, &mut turned);
        let (first, strides) = (turned.as_ptr(), section.strides(turned.strides()));
        if !is_forward(&section, &strides) {
            array.put(at, source.clone())?;
            return Ok(self.lent(&array.name, NbHandle::default(), source));
        }
        let mut handle = self.next(&array.name);
        // SAFETY: VIEW-LIVE.
        unsafe { array.put_section_nb(&self.world, &section, first, &strides, &mut handle)? };
        Ok(self.lent(&array.name, *handle, source))
    }

    /// Starts to add `alpha` times a view to a patch (`NGA_NbAcc`): atomic per element; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was added then.
    #[track_caller]
    pub fn accumulate<T: Accumulate, D: Dimension, S: Select<D>>(
        &'scope self,
        array: &'scope GlobalArray<T, D>,
        at: S,
        alpha: T,
        source: impl Into<ArrayView<'scope, T, S::Out>>,
    ) -> Result<ScopedPatch<'scope, ArrayView<'scope, T, S::Out>>> {
        let (section, source) = (array.section(&at)?, source.into());
        let mut turned = source.clone();
        array.fits(&section, source.shape())?;
        turn(&section, &mut turned);
        let (first, strides) = (turned.as_ptr(), section.strides(turned.strides()));
        if !is_forward(&section, &strides) {
            array.accumulate(at, alpha, source.clone())?;
            return Ok(self.lent(&array.name, NbHandle::default(), source));
        }
        let mut handle = self.next(&array.name);
        // SAFETY: VIEW-LIVE.
        unsafe { array.accumulate_section_nb(&self.world, &section, alpha, (first, &strides), &mut handle)? };
        Ok(self.lent(&array.name, *handle, source))
    }
}
