//! The array: one region of the runtime, and a distribution that says who owns which part of it.

use std::marker::PhantomData;
use std::rc::Rc;

use armci_core::{GlobalPtr, Region};
use bytemuck::Pod;
use ndarray::{Dimension, IntoDimension, Ix2};

use crate::Group;
use crate::axes::Axes;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::select::{Section, Select};

/// An array of `T` of `D` dimensions (one to seven), whose blocks live on the ranks of a [`Group`].
///
/// Matrices are the default: `GlobalArray<f64>` has two dimensions, `GlobalArray<f64, Ix3>` three, and `GlobalArray<f64, IxDyn>`
/// as many as its shape had. Elements are stored with the last axis contiguous, in blocks.
///
/// Dropping the handle frees nothing: that is collective, and [`GlobalArray::destroy`] does it.
#[derive(Debug)]
#[must_use = "an array that is not destroyed keeps its memory until the job ends"]
pub struct GlobalArray<T, D = Ix2> {
    pub(crate) group: Group,
    pub(crate) name: String,
    pub(crate) region: Region,
    /// (Shared with duplicates, and apart: it is large, and arrays are moved.)
    pub(crate) distribution: Rc<Distribution>,
    pub(crate) periodic: Axes<bool>,
    pub(crate) element: PhantomData<(fn() -> T, D)>,
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// The array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length along each axis.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.distribution.shape()
    }

    /// Its shape, as `ndarray` has it.
    pub fn raw_dim(&self) -> D {
        self.dimension(self.shape())
    }

    /// A shape of as many axes, as `ndarray` has it.
    pub(crate) fn dimension(&self, shape: &[usize]) -> D {
        let mut dim = D::zeros(shape.len());
        for (axis, len) in shape.iter().enumerate() {
            dim[axis] = *len;
        }
        dim
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The ranks that it lives on.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Who owns what of it.
    #[inline]
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Along which axes its ends are neighbours, for ghost cells.
    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// Completes all operations of all ranks of its group, and waits for them (`GA_Sync`). Collective.
    ///
    /// # Errors
    /// If an operation by message was refused since the last sync.
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        self.group.sync().map_err(|source| self.runtime(source))
    }

    /// Frees the array (`GA_Destroy`). Collective; completes everybody's operations first.
    ///
    /// # Errors
    /// If an operation by message was refused since the last sync.
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        let GlobalArray { group, name, region, .. } = self;
        group.world().free(region).map_err(|source| Error::Runtime { array: name, source })
    }

    /// Where an element lies, for operations of the runtime.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    #[inline]
    pub fn pointer(&self, index: impl IntoDimension<Dim = D>) -> Result<GlobalPtr<T>> {
        self.place(&index.into_dimension())
    }

    #[inline]
    pub(crate) fn place(&self, index: &D) -> Result<GlobalPtr<T>> {
        match self.distribution.locate(index.slice()) {
            Some((rank, offset)) => Ok(self.region.at(rank, offset)),
            None => Err(self.outside(format!("{:?}", index.slice()))),
        }
    }

    /// What the runtime said of an element.
    #[cold]
    pub(crate) fn element_refused(&self, index: &D, place: GlobalPtr<T>, source: armci_core::Error) -> Error {
        let patch = format!("element {:?}", index.slice());
        Error::Transfer { array: self.name.clone(), patch, rank: place.rank(), source }
    }

    /// The section that a call means.
    #[inline(always)]
    pub(crate) fn section<S: Select<D>>(&self, at: &S) -> Result<Section> {
        match at.section(self.shape()) {
            Some(section) => Ok(section),
            None => Err(self.not_inside(at)),
        }
    }

    #[cold]
    #[inline(never)]
    fn not_inside<S: Select<D>>(&self, at: &S) -> Error {
        self.outside(at.describe())
    }

    /// The patch that a call means, where it must be one: each axis forward, each element of it.
    pub(crate) fn patch<S: Select<D>>(&self, at: &S, operation: &'static str) -> Result<Patch> {
        self.section(at)?.as_patch().ok_or_else(|| Error::Mismatch {
            operation,
            why: format!("{} of array '{}' has steps: a patch without is needed", at.describe(), self.name),
        })
    }

    #[cold]
    pub(crate) fn outside(&self, patch: String) -> Error {
        Error::OutOfBounds { array: self.name.clone(), patch, shape: self.shape().to_vec(), rank: self.group.rank() }
    }

    #[cold]
    pub(crate) fn runtime(&self, source: armci_core::Error) -> Error {
        Error::Runtime { array: self.name.clone(), source }
    }
}
