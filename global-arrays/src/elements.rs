//! Elements at arbitrary places: gather, scatter and scatter-accumulate of a list of indices.
//!
//! A list is checked whole and sorted by owner once, before anything moves; each owner's elements are then one vector
//! transfer of the runtime, and owners do not wait for each other. A list that was prepared ([`GlobalArray::elements`])
//! serves any number of transfers.
//!
//! # Safety
//! VIEW-LIVE (see `transfer`), for views of one axis that are as long as the list.
#![allow(unsafe_code)]

use armci_core::{Accumulate, NbHandle, Segment};
use bytemuck::Pod;
use ndarray::{Array1, ArrayBase, ArrayView1, ArrayViewMut1, Data, Dim, Dimension, Ix1, Ix2};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::error::{Error, Result};

/// A list of indices of elements of an array of `D` dimensions.
///
/// * a slice, array or vector of `[usize; N]`;
/// * for arrays of one dimension, a slice of `usize`;
/// * for arrays of any dimension, a matrix (or a view of one) with a row for each index and a column for each axis.
pub trait Indices<D: Dimension> {
    /// How many there are.
    fn count(&self) -> usize;

    /// How many axes each has.
    fn axes(&self) -> usize;

    /// Along one axis, of the index at a position of the list.
    fn along(&self, position: usize, axis: usize) -> usize;
}

macro_rules! indices {
    ($($dims:literal),*) => {$(
        impl Indices<Dim<[usize; $dims]>> for [[usize; $dims]] {
            #[inline]
            fn count(&self) -> usize {
                self.len()
            }

            #[inline]
            fn axes(&self) -> usize {
                $dims
            }

            #[inline]
            fn along(&self, position: usize, axis: usize) -> usize {
                self[position][axis]
            }
        }
    )*};
}
indices!(1, 2, 3, 4, 5, 6);

impl Indices<Ix1> for [usize] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn axes(&self) -> usize {
        1
    }

    #[inline]
    fn along(&self, position: usize, _axis: usize) -> usize {
        self[position]
    }
}

/// What derefs to a list is one.
macro_rules! as_slices {
    ($([$($parameters:tt)*] $list:ty),*) => {$(
        impl<I, D: Dimension, $($parameters)*> Indices<D> for $list
        where
            [I]: Indices<D>,
        {
            #[inline]
            fn count(&self) -> usize {
                self.len()
            }

            #[inline]
            fn axes(&self) -> usize {
                AsRef::<[I]>::as_ref(self).axes()
            }

            #[inline]
            fn along(&self, position: usize, axis: usize) -> usize {
                AsRef::<[I]>::as_ref(self).along(position, axis)
            }
        }
    )*};
}
as_slices!([] Vec<I>, [const N: usize] [I; N]);

impl<S: Data<Elem = usize>, D: Dimension> Indices<D> for ArrayBase<S, Ix2> {
    fn count(&self) -> usize {
        self.nrows()
    }

    fn axes(&self) -> usize {
        self.ncols()
    }

    #[inline]
    fn along(&self, position: usize, axis: usize) -> usize {
        self[[position, axis]]
    }
}

/// Where one element of a list is.
#[derive(Debug, Clone, Copy)]
struct Located {
    /// Its owner, of the array's group.
    rank: usize,
    /// In elements from the beginning of the owner's part.
    offset: usize,
    /// In the list.
    position: usize,
}

/// A list of elements of an array, found and sorted by owner; of [`GlobalArray::elements`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use global_arrays::GlobalArray;
///
/// let world = armci_core::World::init()?;
/// let mesh = GlobalArray::<f64>::create(&world, "forces", [1000, 3])?;
/// // The corners of one triangle; its forces are added in many steps.
/// let corners = mesh.elements(&[[17, 0], [402, 0], [999, 0]])?;
/// for _step in 0..10 {
///     corners.accumulate(0.1, &[1.0, -2.0, 1.0])?;
/// }
/// mesh.sync()?;
/// let forces = corners.gather()?;
/// assert!((forces[1] + 2.0 * world.size() as f64).abs() < 1e-9);
/// mesh.destroy()?;
/// world.finalize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Elements<'a, T, D> {
    array: &'a GlobalArray<T, D>,
    /// In the order of ranks; of one rank, in the order of the list.
    located: Vec<Located>,
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Finds the elements of a list of indices, to move them any number of times. An index may be in the list more than once.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] names the first index that is not inside, or says that indices have another number of axes.
    pub fn elements<I: Indices<D> + ?Sized>(&self, indices: &I) -> Result<Elements<'_, T, D>> {
        if indices.axes() != self.ndim() && indices.count() > 0 {
            return Err(self.outside(format!("elements with indices of {} axes", indices.axes())));
        }
        let mut located = Vec::with_capacity(indices.count());
        for position in 0..indices.count() {
            let index = Axes::from_fn(self.ndim(), |axis| indices.along(position, axis));
            let Some((rank, offset)) = self.distribution.locate(&index) else {
                return Err(self.outside(format!("{index:?} (number {position} of a list)")));
            };
            located.push(Located { rank, offset, position });
        }
        // It keeps the order of equals, and is quick where there is nothing to do.
        located.sort_by_key(|element| element.rank);
        Ok(Elements { array: self, located })
    }

    /// Fetches the elements of a list of indices (`NGA_Gather`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] names the first index that is not inside.
    #[track_caller]
    pub fn gather<I: Indices<D> + ?Sized>(&self, indices: &I) -> Result<Array1<T>> {
        self.elements(indices)?.gather()
    }

    /// Writes values into the elements of a list of indices (`NGA_Scatter`); of values for the same element, the last
    /// one stays. On return `values` may be reused; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] names the first index that is not inside; [`Error::BufferShape`] if there are not as many
    /// values. Nothing was written then.
    #[track_caller]
    pub fn scatter<'a, I: Indices<D> + ?Sized>(&self, indices: &I, values: impl Into<ArrayView1<'a, T>>) -> Result<()> {
        self.elements(indices)?.scatter(values)
    }
}

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Adds `alpha` times a value to each element of a list of indices (`NGA_Scatter_acc`): atomic per element; of
    /// values for the same element, all are added. On return `values` may be reused; others see it after a sync.
    ///
    /// # Errors
    /// As [`GlobalArray::scatter`]; nothing was added then.
    #[track_caller]
    pub fn scatter_accumulate<'a, I: Indices<D> + ?Sized>(
        &self,
        indices: &I,
        alpha: T,
        values: impl Into<ArrayView1<'a, T>>,
    ) -> Result<()> {
        self.elements(indices)?.accumulate(alpha, values)
    }
}

impl<T: Pod, D: Dimension> Elements<'_, T, D> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.located.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.located.is_empty()
    }

    /// Fetches them, in the order of the list (`NGA_Gather`).
    ///
    /// # Errors
    /// If the array is gone.
    #[track_caller]
    pub fn gather(&self) -> Result<Array1<T>> {
        let mut values = Array1::from_elem(self.len(), T::zeroed());
        self.gather_into(&mut values)?;
        Ok(values)
    }

    /// Fetches them into a buffer, in the order of the list (`NGA_Gather`).
    ///
    /// # Errors
    /// [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn gather_into<'b>(&self, target: impl Into<ArrayViewMut1<'b, T>>) -> Result<()> {
        let mut target = target.into();
        self.fits(target.len())?;
        let (first, stride) = (target.as_mut_ptr(), target.strides()[0]);
        let world = self.array.group.world();
        // All owners at once; and all have answered before the buffer is given back, also if one refused.
        let mut handle = NbHandle::default();
        let mut outcome = Ok(());
        for owned in self.by_owner() {
            let segments = self.segments(owned, first, stride);
            // SAFETY: VIEW-LIVE, until the wait below.
            if let Err(source) = unsafe { world.get_vector_nb_into(segments, Some(&mut handle)) } {
                outcome = Err(self.refused(owned, source));
                break;
            }
        }
        let answered = world.wait_for(&mut handle).map_err(|source| self.array.runtime(source));
        outcome.and(answered)
    }

    /// Writes a value into each (`NGA_Scatter`); as [`GlobalArray::scatter`].
    ///
    /// # Errors
    /// [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn scatter<'b>(&self, values: impl Into<ArrayView1<'b, T>>) -> Result<()> {
        let values = values.into();
        self.fits(values.len())?;
        let (first, stride) = (values.as_ptr().cast_mut(), values.strides()[0]);
        for owned in self.by_owner() {
            let segments = self.segments(owned, first, stride);
            // SAFETY: VIEW-LIVE; sources are only read.
            if let Err(source) = unsafe { self.array.group.world().put_vector_from(segments) } {
                return Err(self.refused(owned, source));
            }
        }
        Ok(())
    }

    /// The elements of one rank after the other.
    fn by_owner(&self) -> impl Iterator<Item = &[Located]> {
        self.located.chunk_by(|one, next| one.rank == next.rank)
    }

    /// Elements of one rank as a transfer of the runtime, with a buffer of one axis.
    #[inline]
    fn segments(&self, owned: &[Located], first: *mut T, stride: isize) -> impl Iterator<Item = Segment<T>> + Clone {
        let region = &self.array.region;
        owned.iter().map(move |element| Segment {
            local: first.wrapping_offset(element.position as isize * stride),
            remote: region.at(element.rank, element.offset),
            count: 1,
        })
    }

    /// Refuses a buffer that is not as long as the list.
    fn fits(&self, values: usize) -> Result<()> {
        if values == self.len() {
            return Ok(());
        }
        Err(Error::BufferShape {
            array: self.array.name.clone(),
            patch: "a list of elements".into(),
            expected: vec![self.len()],
            buffer: vec![values],
            rank: self.array.group.rank(),
        })
    }

    #[cold]
    fn refused(&self, owned: &[Located], source: armci_core::Error) -> Error {
        let patch = format!("{} elements of a list", owned.len());
        let rank = self.array.region.at::<u8>(owned[0].rank, 0).rank();
        Error::Transfer { array: self.array.name.clone(), patch, rank, source }
    }
}

impl<T: Accumulate, D: Dimension> Elements<'_, T, D> {
    /// Adds `alpha` times a value to each (`NGA_Scatter_acc`); as [`GlobalArray::scatter_accumulate`].
    ///
    /// # Errors
    /// [`Error::BufferShape`]; nothing was added then.
    #[track_caller]
    pub fn accumulate<'b>(&self, alpha: T, values: impl Into<ArrayView1<'b, T>>) -> Result<()> {
        let values = values.into();
        self.fits(values.len())?;
        let (first, stride) = (values.as_ptr().cast_mut(), values.strides()[0]);
        for owned in self.by_owner() {
            let segments = self.segments(owned, first, stride);
            // SAFETY: VIEW-LIVE; sources are only read.
            if let Err(source) = unsafe { self.array.group.world().accumulate_vector_from(alpha, segments) } {
                return Err(self.refused(owned, source));
            }
        }
        Ok(())
    }
}
