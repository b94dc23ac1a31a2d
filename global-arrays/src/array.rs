//! The array: one region of the runtime, one block of it on each rank.
//!
//! # Safety
//! VIEW-LIVE: a view of `ndarray` borrows its elements for the call, so those
//! it describes are readable (and, for a mutable view, ours alone).
//! OWN-BLOCK: this rank's block is reached by reference only in
//! [`GlobalArray::local_view`] and its like, whose callers keep others away.
#![allow(unsafe_code)]

use armci_core::{Accumulate, GlobalPtr, Region, Strided, World};
use bytemuck::Pod;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2};

use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::patch::Patch;

/// A matrix of `T` whose blocks live on the ranks of a job.
///
/// Each rank's block is stored by rows. Dropping the handle frees nothing:
/// that is collective, and [`GlobalArray::destroy`] does it.
#[derive(Debug)]
pub struct GlobalArray<T> {
    world: World,
    name: String,
    region: Region,
    distribution: Distribution,
    element: std::marker::PhantomData<T>,
}

/// The part of a patch that one rank owns.
struct Part<T> {
    /// Where it begins in the buffer, and in the owner's memory.
    first: usize,
    place: GlobalPtr<T>,
    counts: [usize; 2],
    local: [usize; 1],
    remote: [usize; 1],
}

impl<T> Part<T> {
    fn shape(&self) -> Strided<'_> {
        Strided { counts: &self.counts, local: &self.local, remote: &self.remote }
    }
}

impl<T: Pod> GlobalArray<T> {
    /// Creates an array of zeros, spread over all ranks (`NGA_Create`). Collective.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; or if the ranks have not enough memory. On all ranks alike.
    pub fn create(world: &World, name: &str, shape: [usize; 2]) -> Result<Self> {
        Self::create_with_blocks(world, name, shape, [1, 1])
    }

    /// As [`GlobalArray::create`], with no block smaller than `min_block` where the shape allows (`chunk`).
    ///
    /// # Errors
    /// As [`GlobalArray::create`].
    pub fn create_with_blocks(world: &World, name: &str, shape: [usize; 2], min_block: [usize; 2]) -> Result<Self> {
        const { assert!(align_of::<T>() <= 64, "blocks are aligned to 64 bytes, which is too little for this type") };
        let elements = shape[0].checked_mul(shape[1]).and_then(|count| count.checked_mul(size_of::<T>()));
        if elements.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(Error::TooLarge { array: name.into(), shape, element: size_of::<T>() });
        }
        let distribution = Distribution::blocks(shape, world.size(), min_block);
        let [rows, cols] = distribution.block(world.rank()).shape();
        let region = world
            .allocate(rows * cols * size_of::<T>())
            .map_err(|source| Error::Runtime { array: name.into(), source })?;
        let array =
            GlobalArray { world: world.clone(), name: name.into(), region, distribution, element: Default::default() };
        // Neither can fail on one rank alone: the region is there, and synchronising completes nothing.
        array.fill_own(T::zeroed())?;
        world.synchronize().map_err(|source| array.runtime(source))?;
        Ok(array)
    }

    /// The array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        self.distribution.shape()
    }

    /// The block that `rank` owns; empty if it owns nothing (`NGA_Distribution`).
    pub fn distribution(&self, rank: usize) -> [std::ops::Range<usize>; 2] {
        let Patch { rows, cols } = self.distribution.block(rank);
        [rows, cols]
    }

    /// The rank that owns an element (`NGA_Locate`); `None` outside the array.
    pub fn owner(&self, element: [usize; 2]) -> Option<usize> {
        self.distribution.owner(element)
    }

    /// Fills the array with zeros (`GA_Zero`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    pub fn zero(&self) -> Result<()> {
        self.fill(T::zeroed())
    }

    /// Fills the array with a value (`GA_Fill`). Collective.
    ///
    /// # Errors
    /// As [`GlobalArray::sync`].
    pub fn fill(&self, value: T) -> Result<()> {
        // A rank that has something to report must still meet the others.
        let before = self.sync();
        let filled = self.fill_own(value);
        let after = self.sync();
        before.and(filled).and(after)
    }

    /// Copies `source` into a patch (`NGA_Put`). On return `source` may be reused; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn put(&self, patch: impl Into<Patch>, source: ArrayView2<'_, T>) -> Result<()> {
        let patch = self.checked(patch.into(), source.dim())?;
        let source = by_rows(&source);
        for part in self.parts(&patch, row_stride(source.strides(), source.dim())) {
            // SAFETY: VIEW-LIVE: the part's rows, which begin `first` elements into the view.
            let put =
                unsafe { self.world.put_strided_from(source.as_ptr().add(part.first), part.place, &part.shape()) };
            put.map_err(|source| self.runtime(source))?;
        }
        Ok(())
    }

    /// Fetches a patch (`NGA_Get`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    #[track_caller]
    pub fn get(&self, patch: impl Into<Patch>) -> Result<Array2<T>> {
        let patch = patch.into();
        let [rows, cols] = patch.shape();
        let patch = self.checked(patch, (rows, cols))?;
        let mut buffer = Array2::from_elem((rows, cols), T::zeroed());
        self.get_into(patch, buffer.view_mut())?;
        Ok(buffer)
    }

    /// Fetches a patch into a buffer of its shape (`NGA_Get`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn get_into(&self, patch: impl Into<Patch>, mut target: ArrayViewMut2<'_, T>) -> Result<()> {
        let patch = self.checked(patch.into(), target.dim())?;
        if !has_rows(target.strides(), target.dim()) {
            target.assign(&self.get(patch)?);
            return Ok(());
        }
        let stride = row_stride(target.strides(), target.dim());
        let start = target.as_mut_ptr();
        for part in self.parts(&patch, stride) {
            // SAFETY: VIEW-LIVE: the part's rows, which begin `first` elements into the view and are ours alone.
            let got = unsafe { self.world.get_strided_into(part.place, start.add(part.first), &part.shape()) };
            got.map_err(|source| self.runtime(source))?;
        }
        Ok(())
    }

    /// Completes all operations of all ranks, and waits for all ranks (`GA_Sync`). Collective.
    ///
    /// # Errors
    /// If an operation by message was refused since the last sync.
    pub fn sync(&self) -> Result<()> {
        self.world.barrier().map_err(|source| self.runtime(source))
    }

    /// This rank's block, to read in place (`NGA_Access`).
    ///
    /// # Safety
    /// OWN-BLOCK: while the view lives, no rank writes or accumulates into this block: the program has synchronised
    /// before and will again before anybody does.
    ///
    /// # Errors
    /// If the array's region is gone.
    pub unsafe fn local_view(&self) -> Result<ArrayView2<'_, T>> {
        let (start, shape) = self.own_block()?;
        // SAFETY: OWN-BLOCK; the region holds that many elements, aligned to a line, for as long as the array lives.
        Ok(unsafe { ArrayView2::from_shape_ptr(shape, start) })
    }

    /// This rank's block, to change in place (`NGA_Access`).
    ///
    /// # Safety
    /// OWN-BLOCK: while the view lives, nobody else touches this block, nor does this rank by other ways.
    ///
    /// # Errors
    /// If the array's region is gone.
    pub unsafe fn local_view_mut(&self) -> Result<ArrayViewMut2<'_, T>> {
        let (start, shape) = self.own_block()?;
        // SAFETY: as in `local_view`, and nobody else looks.
        Ok(unsafe { ArrayViewMut2::from_shape_ptr(shape, start) })
    }

    /// Frees the array (`GA_Destroy`). Collective.
    ///
    /// # Errors
    /// If an operation by message was refused since the last sync.
    pub fn destroy(self) -> Result<()> {
        let GlobalArray { world, name, region, .. } = self;
        world.free(region).map_err(|source| Error::Runtime { array: name, source })
    }

    /// Writes a value into all of this rank's block.
    fn fill_own(&self, value: T) -> Result<()> {
        let (start, (rows, cols)) = self.own_block()?;
        for index in 0..rows * cols {
            // SAFETY: the block has that many elements; plain stores of plain data, through a raw pointer.
            unsafe { start.add(index).write(value) };
        }
        Ok(())
    }

    fn own_block(&self) -> Result<(*mut T, (usize, usize))> {
        let (start, _) = self.world.local_part(&self.region).map_err(|source| self.runtime(source))?;
        let [rows, cols] = self.distribution.block(self.world.rank()).shape();
        Ok((start.cast(), (rows, cols)))
    }

    /// Splits a patch by owner, for a buffer whose rows are `stride` apart. (No closure is called for each part, since a
    /// transfer could not be told then as made where the program called.)
    fn parts<'a>(&'a self, patch: &'a Patch, stride: usize) -> impl Iterator<Item = Part<T>> + 'a {
        self.distribution.owners(patch).map(move |(owner, part)| {
            let block = self.distribution.block(owner);
            let [rows, cols] = part.shape();
            let within = |outer: &Patch, stride: usize| {
                (part.rows.start - outer.rows.start) * stride + (part.cols.start - outer.cols.start)
            };
            let remote = block.cols.len();
            let place = self.region.at(owner, within(&block, remote));
            Part { first: within(patch, stride), place, counts: [cols, rows], local: [stride], remote: [remote] }
        })
    }

    fn checked(&self, patch: Patch, (rows, cols): (usize, usize)) -> Result<Patch> {
        if !patch.is_inside(self.shape()) {
            return Err(Error::OutOfBounds { array: self.name.clone(), patch, shape: self.shape() });
        }
        if patch.shape() != [rows, cols] {
            return Err(Error::BufferShape { array: self.name.clone(), patch, buffer: [rows, cols] });
        }
        Ok(patch)
    }

    fn runtime(&self, source: armci_core::Error) -> Error {
        Error::Runtime { array: self.name.clone(), source }
    }
}

impl<T: Accumulate> GlobalArray<T> {
    /// Adds `alpha` times `source` to a patch (`NGA_Acc`): atomic per element, in any order with other accumulates.
    /// On return `source` may be reused; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was added then.
    #[track_caller]
    pub fn accumulate(&self, patch: impl Into<Patch>, alpha: T, source: ArrayView2<'_, T>) -> Result<()> {
        let patch = self.checked(patch.into(), source.dim())?;
        let source = by_rows(&source);
        for part in self.parts(&patch, row_stride(source.strides(), source.dim())) {
            let (from, shape) = (source.as_ptr(), part.shape());
            // SAFETY: VIEW-LIVE: the part's rows, which begin `first` elements into the view.
            let added = unsafe { self.world.accumulate_strided_from(alpha, from.add(part.first), part.place, &shape) };
            added.map_err(|source| self.runtime(source))?;
        }
        Ok(())
    }
}

/// The view itself if a transfer takes it as it lies, or a copy by rows.
fn by_rows<'a, T: Pod>(view: &'a ArrayView2<'_, T>) -> CowArray<'a, T, Ix2> {
    if has_rows(view.strides(), view.dim()) { view.view().into() } else { view.as_standard_layout() }
}

/// Whether a layout is rows of adjacent elements, going forward: what a transfer takes without a copy.
fn has_rows(strides: &[isize], (rows, cols): (usize, usize)) -> bool {
    rows == 0 || (cols <= 1 || strides[1] == 1) && (rows <= 1 || cols == 0 || strides[0] >= 0)
}

/// The distance of rows; of no meaning with fewer than two.
fn row_stride(strides: &[isize], (rows, _): (usize, usize)) -> usize {
    if rows <= 1 { 0 } else { strides[0].unsigned_abs() }
}
