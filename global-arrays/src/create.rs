//! Making arrays: a [`Builder`] collects what is wanted of one, [`Builder::create`] makes it.

use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::rc::Rc;

use bytemuck::Pod;
use ndarray::{Dimension, IntoDimension};
use rustc_hash::FxHasher;

use crate::Group;
use crate::array::GlobalArray;
use crate::axes::{Axes, MAX_DIMS};
use crate::distribution::{Cut, Deal, Distribution, Packing};
use crate::error::{Error, Result};

/// What is wanted of an array that is to be made; of [`GlobalArray::builder`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use global_arrays::GlobalArray;
/// use ndarray::Ix3;
///
/// let world = armci_core::World::init()?;
/// let grid = GlobalArray::<f64, Ix3>::builder(&world, "pressure", [40, 40, 40])
///     .min_block(&[1, 40, 40])
///     .ghosts(&[1, 0, 0])
///     .periodic(&[true, false, false])
///     .filled(1.0)
///     .create()?;
/// assert_eq!(grid.get([39..40, 0..1, 0..1])?[[0, 0, 0]], 1.0);
/// grid.destroy()?;
/// world.finalize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing before `create`"]
pub struct Builder<T, D> {
    group: Group,
    name: String,
    shape: D,
    spread: Spread,
    min_block: Option<Vec<usize>>,
    ghosts: Option<Vec<usize>>,
    periodic: Option<Vec<bool>>,
    fill: Option<T>,
}

/// How the array is to be spread.
#[derive(Debug, Clone)]
enum Spread {
    Regular,
    At(Vec<Vec<usize>>),
    RoundRobin { block: Vec<usize> },
    Grid { block: Vec<usize>, grid: Vec<usize>, packing: Packing },
}

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Creates an array of zeros in regular blocks, one for each rank (`NGA_Create`). Collective over the group: a
    /// `&World`, `&Team` or `&Group`.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Dimensions`]; or if the ranks have not enough memory, or do not all
    /// make the same array. On all ranks alike.
    #[track_caller]
    pub fn create(group: impl Into<Group>, name: &str, shape: impl IntoDimension<Dim = D>) -> Result<Self> {
        Self::builder(group, name, shape).create()
    }

    /// Begins an array, of which more is to be said than its shape.
    pub fn builder(group: impl Into<Group>, name: &str, shape: impl IntoDimension<Dim = D>) -> Builder<T, D> {
        let shape = shape.into_dimension();
        Builder {
            group: group.into(),
            name: name.into(),
            shape,
            spread: Spread::Regular,
            min_block: None,
            ghosts: None,
            periodic: None,
            fill: Some(T::zeroed()),
        }
    }

    /// Creates an array like this one, of the same group, shape and distribution, with zeros in it (`GA_Duplicate`).
    /// Collective.
    ///
    /// # Errors
    /// If the ranks have not enough memory; on all alike.
    #[track_caller]
    pub fn duplicate(&self, name: &str) -> Result<Self> {
        allocate(self.group.clone(), name.into(), self.distribution.clone(), self.periodic, Some(T::zeroed()))
    }
}

impl<T: Pod, D: Dimension> Builder<T, D> {
    /// No block of a regular distribution is to be smaller than this along any axis, where the shape allows (`chunk`). An
    /// axis of which no piece is to be cut off has its whole length here.
    pub fn min_block(mut self, elements: &[usize]) -> Self {
        self.min_block = Some(elements.to_vec());
        self
    }

    /// Cuts each axis at these places (`NGA_Create_irreg`): `starts[axis]` has the first index of each block along the axis,
    /// of which the first is 0. Blocks go to ranks with the last axis fastest; those that are empty, to ranks that own nothing.
    pub fn irregular<A: AsRef<[usize]>>(mut self, starts: &[A]) -> Self {
        self.spread = Spread::At(starts.iter().map(|starts| starts.as_ref().to_vec()).collect());
        self
    }

    /// Cuts the array into blocks of this shape and deals them to the ranks in turn (`GA_Set_block_cyclic`).
    pub fn block_cyclic(mut self, block: &[usize]) -> Self {
        self.spread = Spread::RoundRobin { block: block.to_vec() };
        self
    }

    /// Cuts the array into blocks of this shape and deals them, along each axis in turn, to a grid of ranks, of whom
    /// each stores its blocks as one array, as ScaLAPACK does (`GA_Set_block_cyclic_proc_grid`). Ranks are numbered
    /// in the grid with the last axis fastest.
    pub fn scalapack(self, block: &[usize], grid: &[usize]) -> Self {
        self.dealt(block, grid, Packing::Joined)
    }

    /// As [`Builder::scalapack`], with each block stored by itself (`GA_Set_tiled_proc_grid`).
    pub fn tiled(self, block: &[usize], grid: &[usize]) -> Self {
        self.dealt(block, grid, Packing::Tiles)
    }

    fn dealt(mut self, block: &[usize], grid: &[usize], packing: Packing) -> Self {
        self.spread = Spread::Grid { block: block.to_vec(), grid: grid.to_vec(), packing };
        self
    }

    /// Gives each block room for copies of its neighbours' elements, so many on either side of it along each axis
    /// (`NGA_Create_ghosts`). For regular and irregular blocks. [`GlobalArray::update_ghosts`] brings the copies.
    pub fn ghosts(mut self, width: &[usize]) -> Self {
        self.ghosts = Some(width.to_vec());
        self
    }

    /// Along which axes the ends are neighbours, for ghost cells; none, unless said.
    pub fn periodic(mut self, axes: &[bool]) -> Self {
        self.periodic = Some(axes.to_vec());
        self
    }

    /// Fills the array with a value, instead of zero; its ghost cells too, so that those beyond the ends of an axis have
    /// a value from the beginning. ([`GlobalArray::fill`] leaves them alone.)
    pub fn filled(mut self, value: T) -> Self {
        self.fill = Some(value);
        self
    }

    /// Leaves in the array what its memory held before, which is faster.
    pub fn unfilled(mut self) -> Self {
        self.fill = None;
        self
    }

    /// Makes the array. Collective.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Dimensions`], [`Error::Distribution`]; or if the ranks have not enough memory, or do not all
    /// make the same array. On all ranks alike.
    #[track_caller]
    pub fn create(self) -> Result<GlobalArray<T, D>> {
        match self.plan() {
            Ok((distribution, periodic)) => allocate(self.group, self.name, distribution, periodic, self.fill),
            Err(error) => Err(withdrawn(&self.group, error)),
        }
    }

    /// Who is to own what, and which axes are periodic.
    fn plan(&self) -> Result<(Rc<Distribution>, Axes<bool>)> {
        let dims = self.shape.ndim();
        if dims == 0 || dims > MAX_DIMS {
            return Err(Error::Dimensions { array: self.name.clone(), dims });
        }
        let distribution = Rc::new(self.distribution()?);
        Ok((distribution, self.said_or(&self.periodic, false, "axes that are periodic or not")?))
    }

    fn distribution(&self) -> Result<Distribution> {
        let (shape, ranks) = (self.shape.slice(), self.group.size());
        let min_block = self.said_or(&self.min_block, 1, "smallest lengths of a block")?;
        let ghosts = self.said_or(&self.ghosts, 0, "widths of ghost cells")?;
        let sized = |block: &Vec<usize>| {
            let block = self.of_each_axis(block, "lengths of a block")?;
            if block.contains(&0) {
                return Err(self.contradicts(format!("blocks of {block:?} have no elements")));
            }
            Ok(Axes::from_fn(shape.len(), |axis| Cut::Sized { len: shape[axis], size: block[axis] }))
        };
        if ghosts.iter().any(|width| *width > 0)
            && matches!(self.spread, Spread::RoundRobin { .. } | Spread::Grid { .. })
        {
            return Err(self.contradicts("only regular and irregular blocks have ghost cells".into()));
        }
        Ok(match &self.spread {
            Spread::Regular => Distribution::regular_with_ghosts(shape, ranks, &min_block, &ghosts),
            Spread::At(starts) => {
                if starts.len() != shape.len() {
                    return Err(self.contradicts(format!("there are starts of blocks for {} axes", starts.len())));
                }
                let mut cuts = Axes::splat(shape.len(), 0).map(|_| Cut::default());
                for (axis, starts) in starts.iter().enumerate() {
                    cuts[axis] = self.cut_at(axis, starts)?;
                }
                let blocks = cuts.iter().map(Cut::pieces).try_fold(1usize, |all, pieces| all.checked_mul(pieces));
                if blocks.is_none_or(|blocks| blocks > ranks) {
                    return Err(self.contradicts(format!(
                        "{:?} blocks are more than there are ranks to own them",
                        &cuts.map(Cut::pieces)[..]
                    )));
                }
                Distribution::new(cuts, Deal::OneEach { ghosts })
            }
            Spread::RoundRobin { block } => Distribution::new(sized(block)?, Deal::RoundRobin { ranks }),
            Spread::Grid { block, grid, packing } => {
                let grid = self.of_each_axis(grid, "lengths of a grid of ranks")?;
                let size = grid.iter().try_fold(1usize, |all, ranks| all.checked_mul(*ranks));
                if size.is_none_or(|size| size == 0 || size > ranks) {
                    return Err(self.contradicts(format!("a grid of {grid:?} ranks cannot be had")));
                }
                Distribution::new(sized(block)?, Deal::Grid { grid, packing: *packing })
            }
        })
    }

    fn cut_at(&self, axis: usize, starts: &[usize]) -> Result<Cut> {
        let len = self.shape[axis];
        let ordered =
            starts.windows(2).all(|pair| pair[0] <= pair[1]) && starts.last().is_some_and(|last| *last <= len);
        if starts.first() != Some(&0) || !ordered {
            return Err(self.contradicts(format!(
                "blocks along axis {axis} cannot start at {starts:?}: the first is at 0, none before its predecessor \
                 or behind the end"
            )));
        }
        Ok(Cut::At(starts.iter().copied().chain([len]).collect()))
    }

    fn said_or<U: Copy + Default>(&self, said: &Option<Vec<U>>, default: U, what: &str) -> Result<Axes<U>> {
        match said {
            Some(values) => self.of_each_axis(values, what),
            None => Ok(Axes::splat(self.shape.ndim(), default)),
        }
    }

    fn of_each_axis<U: Copy + Default>(&self, values: &[U], what: &str) -> Result<Axes<U>> {
        match Axes::of(values) {
            Some(axes) if axes.len() == self.shape.ndim() => Ok(axes),
            _ => Err(self.contradicts(format!("there are {} {what}, not one for each axis", values.len()))),
        }
    }

    fn contradicts(&self, why: String) -> Error {
        let (array, shape) = (self.name.clone(), self.shape.slice().to_vec());
        Error::Distribution { array, shape, ranks: self.group.size(), why }
    }
}

/// Makes an array of a distribution. Collective.
#[track_caller]
fn allocate<T: Pod, D: Dimension>(
    group: Group,
    name: String,
    distribution: Rc<Distribution>,
    periodic: Axes<bool>,
    fill: Option<T>,
) -> Result<GlobalArray<T, D>> {
    const { assert!(align_of::<T>() <= 64, "blocks are aligned to 64 bytes, which is too little for this type") };
    let bytes = distribution.reserved().and_then(|elements| elements.checked_mul(size_of::<T>().max(1)));
    if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
        let shape = distribution.shape().to_vec();
        return Err(withdrawn(&group, Error::TooLarge { array: name, shape, element: size_of::<T>() }));
    }
    let mine = distribution.elements_asked(group.rank(), group.size());
    // (Ranks meet only once: the runtime fills before it has them meet, and compares what they mean then.)
    let mut meant = FxHasher::default();
    (&name, size_of::<T>(), &distribution, &*periodic).hash(&mut meant);
    let region = group.allocate_described(mine, fill, meant.finish());
    match region {
        Ok(region) => Ok(GlobalArray { group, name, region, distribution, periodic, element: PhantomData }),
        Err(source) => Err(Error::Runtime { array: name, source }),
    }
}

/// The error of a rank that can make no array, after it has told the others, who may be about to make one: they hear that
/// this rank means something else, and do not wait in vain.
#[cold]
#[track_caller]
fn withdrawn(group: &Group, error: Error) -> Error {
    if let Ok(nothing) = group.allocate_described::<u8>(0, None, u64::MAX) {
        // All have met with an error.
        let _ = group.world().free(nothing);
    }
    error
}
