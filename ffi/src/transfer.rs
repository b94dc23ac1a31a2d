//! What all transfers share: one shape, three directions, now or later.
//!
//! A contiguous transfer is a shape without levels, and goes by the direct calls. All lengths are bytes, as in C; for
//! accumulates they are brought to elements here.
//!
//! # Safety
//! C-BUFFER: the local side of the shape is readable (put, accumulate) or the caller's to write (get), and stays so
//! during the call; for a get with a handle, until that has been waited for. C-ARRAY: an array that is not NULL has as
//! many elements as its length says. C-HANDLE, as in `handle`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};

use armci_core::{Accumulate, Error, GlobalPtr, Result, Segment, Strided, World};
use num_complex::{Complex32, Complex64};

use crate::arguments::{count, place, present, rank};
use crate::contiguous::{ARMCI_ACC_CPL, ARMCI_ACC_DBL, ARMCI_ACC_DCP, ARMCI_ACC_FLT, ARMCI_ACC_INT, ARMCI_ACC_LNG};
use crate::handle::{Start, aggregates, armci_hdl_t, start, with_handle};
use crate::member::Member;

/// How many stride levels a transfer may have.
pub(crate) const MAX_LEVELS: usize = 7;

/// When a transfer is to be locally complete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// On return.
    Now,
    /// When this handle has been waited for; NULL is the implicit one.
    Later(*mut armci_hdl_t),
}

impl When {
    /// Whether it is collected with others until then.
    ///
    /// # Safety
    /// C-HANDLE.
    #[inline(always)]
    pub(crate) unsafe fn collects(self) -> bool {
        match self {
            When::Now => false,
            // SAFETY: C-HANDLE.
            When::Later(hdl) => unsafe { aggregates(hdl) },
        }
    }
}

/// A shape: `counts[0]` contiguous units, level `l` repeated `counts[l + 1]` times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    counts: [usize; MAX_LEVELS + 1],
    local: [usize; MAX_LEVELS],
    remote: [usize; MAX_LEVELS],
    levels: usize,
}

impl Shape {
    /// One row of bytes.
    #[inline]
    pub(crate) fn row(bytes: c_int) -> Result<Self> {
        let mut shape = Shape::nothing();
        shape.counts[0] = count(bytes, "the length")?;
        Ok(shape)
    }

    /// To be filled in.
    #[inline]
    pub(crate) fn nothing() -> Self {
        Shape { counts: [1; _], local: [0; _], remote: [0; _], levels: 0 }
    }

    /// C's description.
    ///
    /// # Safety
    /// C-ARRAY for `levels + 1` counts and `levels` strides on either side.
    pub(crate) unsafe fn strided(
        counts: *const c_int,
        local: *const c_int,
        remote: *const c_int,
        levels: c_int,
    ) -> Result<Self> {
        let mut shape = Shape::nothing();
        // SAFETY: C-ARRAY.
        unsafe { shape.describe(counts, local, remote, levels)? };
        Ok(shape)
    }

    /// [`Shape::strided`], filled in where it stays: moved, it would take longer than a small patch.
    ///
    /// # Safety
    /// C-ARRAY for `levels + 1` counts and `levels` strides on either side.
    pub(crate) unsafe fn describe(
        &mut self,
        counts: *const c_int,
        local: *const c_int,
        remote: *const c_int,
        levels: c_int,
    ) -> Result<()> {
        let shape = self;
        let known = usize::try_from(levels).ok().filter(|levels| *levels <= MAX_LEVELS);
        let levels =
            known.ok_or_else(|| Error::Shape(format!("{levels} stride levels; 0 to {MAX_LEVELS} are possible")))?;
        present(counts, "the array of counts")?;
        // SAFETY: C-ARRAY, and not NULL.
        shape.counts[0] = count(unsafe { counts.read() }, "the length")?;
        let read = |from: *const c_int, to: &mut [usize], what| {
            for (index, to) in to.iter_mut().enumerate() {
                // SAFETY: C-ARRAY, and not NULL.
                *to = count(unsafe { from.add(index).read() }, what)?;
            }
            Ok::<(), Error>(())
        };
        // SAFETY: C-ARRAY.
        read(unsafe { counts.add(1) }, &mut shape.counts[1..=levels], "a count")?;
        // An outermost level that is counted once is none, and its strides are never taken.
        shape.levels = shape.counts[1..=levels].iter().rposition(|count| *count != 1).map_or(0, |last| last + 1);
        if shape.levels > 0 {
            present(local, "the array of local strides")?;
            present(remote, "the array of remote strides")?;
        }
        read(local, &mut shape.local[..shape.levels], "a local stride")?;
        read(remote, &mut shape.remote[..shape.levels], "a remote stride")
    }

    /// The same with a dense side here or there: levels follow each other without gaps.
    pub(crate) fn dense_here(mut self) -> Self {
        let mut next = self.counts[0];
        for level in 0..self.levels {
            self.local[level] = next;
            next = next.saturating_mul(self.counts[level + 1]);
        }
        self
    }

    /// See [`Shape::dense_here`].
    pub(crate) fn dense_there(self) -> Self {
        let Shape { counts, local, remote, levels } = self;
        let Shape { local: dense, .. } = Shape { counts, local: remote, remote: local, levels }.dense_here();
        Shape { counts, local, remote: dense, levels }
    }

    /// Whether it moves nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.counts[..=self.levels].contains(&0)
    }

    #[inline]
    pub(crate) fn as_strided(&self) -> Strided<'_> {
        let levels = self.levels;
        Strided { counts: &self.counts[..=levels], local: &self.local[..levels], remote: &self.remote[..levels] }
    }

    /// Whether all strides are multiples of `bytes`.
    fn strides_divide_by(&self, bytes: usize) -> bool {
        let mut strides = self.local[..self.levels].iter().chain(&self.remote[..self.levels]);
        strides.all(|stride| stride.is_multiple_of(bytes))
    }

    /// The shape counted in elements of `size` bytes, which divide the row and the strides.
    fn in_elements(mut self, size: usize) -> Self {
        self.counts[0] /= size;
        self.local.iter_mut().chain(&mut self.remote).for_each(|stride| *stride /= size);
        self
    }

    /// How many rows; as many as fit a number if there are more.
    fn rows(&self) -> usize {
        self.counts[1..=self.levels].iter().fold(1, |rows, count| rows.saturating_mul(*count))
    }

    /// Where row `row` begins, here and there.
    fn row_at(&self, mut row: usize) -> (usize, usize) {
        let mut at = (0usize, 0usize);
        for level in 0..self.levels {
            let index = row % self.counts[level + 1];
            row /= self.counts[level + 1];
            at.0 = at.0.saturating_add(index.saturating_mul(self.local[level]));
            at.1 = at.1.saturating_add(index.saturating_mul(self.remote[level]));
        }
        at
    }
}

/// Checks what every transfer needs; `None` if it moves nothing.
#[inline]
fn begin(
    world: &World,
    local: *mut c_void,
    remote: *mut c_void,
    shape: &Shape,
    proc: c_int,
) -> Result<Option<GlobalPtr<u8>>> {
    if shape.is_empty() {
        return rank(world, proc).map(|_| None);
    }
    present(local, "the local address")?;
    place(world, proc, remote).map(Some)
}

/// One contiguous piece from here to there, not collected with others.
///
/// # Safety
/// C-BUFFER, C-HANDLE.
// Always: each caller knows when, and a shared body would keep the place in memory until it does.
#[inline(always)]
pub(crate) unsafe fn put_row(
    world: &World,
    from: *mut c_void,
    to: *mut c_void,
    bytes: c_int,
    proc: c_int,
    when: When,
) -> Result<()> {
    let bytes = count(bytes, "the length")?;
    if bytes == 0 {
        return rank(world, proc).map(drop);
    }
    present(from, "the local address")?;
    let to = place(world, proc, to)?;
    // SAFETY: C-BUFFER, C-HANDLE.
    unsafe {
        match when {
            When::Now => world.put_from(from.cast(), bytes, to),
            When::Later(hdl) => with_handle(hdl, |handle| world.put_nb_from(from.cast(), bytes, to, handle)),
        }
    }
}

/// One contiguous piece from there to here, not collected with others.
///
/// # Safety
/// C-BUFFER, C-HANDLE.
// Always: as [`put_row`].
#[inline(always)]
pub(crate) unsafe fn get_row(
    world: &World,
    from: *mut c_void,
    to: *mut c_void,
    bytes: c_int,
    proc: c_int,
    when: When,
) -> Result<()> {
    let bytes = count(bytes, "the length")?;
    if bytes == 0 {
        return rank(world, proc).map(drop);
    }
    present(to, "the local address")?;
    let from = place(world, proc, from)?;
    // SAFETY: C-BUFFER, C-HANDLE.
    unsafe {
        match when {
            When::Now => world.get_into(from, to.cast(), bytes),
            When::Later(hdl) => with_handle(hdl, |handle| world.get_nb_into(from, to.cast(), bytes, handle)),
        }
    }
}

/// From here to there.
///
/// # Safety
/// C-BUFFER, C-HANDLE.
pub(crate) unsafe fn put(
    member: &Member,
    from: *mut c_void,
    to: *mut c_void,
    shape: &Shape,
    proc: c_int,
    when: When,
) -> Result<()> {
    let world = &member.world;
    let Some(place) = begin(world, from, to, shape, proc)? else { return Ok(()) };
    let (from, bytes, contiguous) = (from.cast::<u8>(), shape.counts[0], shape.levels == 0);
    // SAFETY: C-BUFFER, C-HANDLE.
    unsafe {
        match when {
            When::Now if contiguous => world.put_from(from, bytes, place),
            When::Now => world.put_strided_from(from, place, &shape.as_strided()),
            When::Later(hdl) => start(member, hdl, |start| match start {
                Start::Alone(handle) if contiguous => world.put_nb_from(from, bytes, place, handle),
                Start::Collected(collected) if contiguous => collected.aggregate.put_from(from, bytes, place),
                start => world.put_strided_nb_from(from, place, &shape.as_strided(), start.alone()),
            }),
        }
    }
}

/// From there to here.
///
/// # Safety
/// C-BUFFER, C-HANDLE.
pub(crate) unsafe fn get(
    member: &Member,
    from: *mut c_void,
    to: *mut c_void,
    shape: &Shape,
    proc: c_int,
    when: When,
) -> Result<()> {
    let world = &member.world;
    let Some(place) = begin(world, to, from, shape, proc)? else { return Ok(()) };
    let (to, bytes, contiguous) = (to.cast::<u8>(), shape.counts[0], shape.levels == 0);
    // SAFETY: C-BUFFER, C-HANDLE.
    unsafe {
        match when {
            When::Now if contiguous => world.get_into(place, to, bytes),
            When::Now => world.get_strided_into(place, to, &shape.as_strided()),
            When::Later(hdl) => start(member, hdl, |start| match start {
                Start::Alone(handle) if contiguous => world.get_nb_into(place, to, bytes, handle),
                Start::Collected(collected) if contiguous => collected.aggregate.get_into(place, to, bytes),
                start => world.get_strided_nb_into(place, to, &shape.as_strided(), start.alone()),
            }),
        }
    }
}

/// The element type of an accumulate, and its scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) datatype: c_int,
    pub(crate) at: *mut c_void,
}

/// A generic function, for the element type of an accumulate, whose scale must be there.
macro_rules! for_type {
    ($scale:expr, $function:ident) => {{
        let function = match $scale.datatype {
            ARMCI_ACC_INT => $function::<c_int>,
            ARMCI_ACC_LNG => $function::<c_long>,
            ARMCI_ACC_FLT => $function::<f32>,
            ARMCI_ACC_DBL => $function::<f64>,
            ARMCI_ACC_CPL => $function::<Complex32>,
            ARMCI_ACC_DCP => $function::<Complex64>,
            other => return Err(Error::Argument(format!("{other} is no datatype of an accumulate"))),
        };
        present($scale.at, "the scale")?;
        function
    }};
}

/// One contiguous piece, added there, scaled, not collected with others.
///
/// # Safety
/// C-BUFFER, C-HANDLE; one element is readable at `scale.at`.
#[inline]
pub(crate) unsafe fn accumulate_row(
    world: &World,
    scale: Scale,
    from: *mut c_void,
    to: *mut c_void,
    bytes: c_int,
    proc: c_int,
    when: When,
) -> Result<()> {
    let accumulate = for_type!(scale, accumulate_row_as);
    // SAFETY: passed on.
    unsafe { accumulate(world, scale.at, from, to, bytes, proc, when) }
}

/// # Safety
/// C-BUFFER, C-HANDLE; a `T` is readable at `scale`.
unsafe fn accumulate_row_as<T: Accumulate>(
    world: &World,
    scale: *mut c_void,
    from: *mut c_void,
    to: *mut c_void,
    bytes: c_int,
    proc: c_int,
    when: When,
) -> Result<()> {
    let bytes = count(bytes, "the length")?;
    if bytes == 0 {
        return rank(world, proc).map(drop);
    }
    present(from, "the local address")?;
    let to = place(world, proc, to)?;
    whole_elements::<T>(bytes)?;
    let (from, to, count) = (from.cast::<T>(), to.cast::<T>(), bytes / size_of::<T>());
    // SAFETY: C-BUFFER, C-HANDLE; the scale is readable by contract, at any alignment.
    unsafe {
        let alpha = scale.cast::<T>().read_unaligned();
        match when {
            When::Now => world.accumulate_from(alpha, from, count, to),
            When::Later(hdl) => with_handle(hdl, |handle| world.accumulate_nb_from(alpha, from, count, to, handle)),
        }
    }
}

/// Added there, scaled.
///
/// # Safety
/// C-BUFFER, C-HANDLE; one element is readable at `scale.at`.
#[inline]
pub(crate) unsafe fn accumulate(
    member: &Member,
    scale: Scale,
    from: *mut c_void,
    to: *mut c_void,
    shape: &Shape,
    proc: c_int,
    when: When,
) -> Result<()> {
    let accumulate = for_type!(scale, accumulate_as);
    match begin(&member.world, from, to, shape, proc)? {
        // SAFETY: passed on.
        Some(place) => unsafe { accumulate(member, scale.at, from.cast(), place, shape, when) },
        None => Ok(()),
    }
}

/// # Safety
/// C-BUFFER, C-HANDLE; a `T` is readable at `scale`.
unsafe fn accumulate_as<T: Accumulate>(
    member: &Member,
    scale: *mut c_void,
    from: *const u8,
    to: GlobalPtr<u8>,
    shape: &Shape,
    when: When,
) -> Result<()> {
    let (size, align, row) = (size_of::<T>(), align_of::<T>(), shape.counts[0]);
    // SAFETY: readable by contract, at any alignment.
    let alpha = unsafe { scale.cast::<T>().read_unaligned() };
    whole_elements::<T>(row)?;
    let (world, source, target) = (&member.world, from.cast::<T>(), to.cast::<T>());
    if shape.levels == 0 {
        let count = row / size;
        // SAFETY: C-BUFFER, C-HANDLE.
        return unsafe {
            match when {
                When::Now => world.accumulate_from(alpha, source, count, target),
                When::Later(hdl) => start(member, hdl, |start| match start {
                    Start::Alone(handle) => world.accumulate_nb_from(alpha, source, count, target, handle),
                    Start::Collected(collected) => collected.aggregate.accumulate_from(alpha, source, count, target),
                }),
            }
        };
    }
    if shape.strides_divide_by(size) {
        let shape = shape.in_elements(size);
        // SAFETY: C-BUFFER, C-HANDLE.
        return unsafe {
            match when {
                When::Now => world.accumulate_strided_from(alpha, source, target, &shape.as_strided()),
                When::Later(hdl) => start(member, hdl, |start| {
                    world.accumulate_strided_nb_from(alpha, source, target, &shape.as_strided(), start.alone())
                }),
            }
        };
    }
    if !shape.strides_divide_by(align) {
        return Err(Error::Shape(format!("{shape:?} has strides that misalign {size}-byte elements")));
    }
    // Elements inside larger structs: row by row, the farthest first, which is the one that may leave the region. They
    // are locally complete on return, so a handle has nothing to wait for.
    let one = [row / size];
    let one = Strided { counts: &one, local: &[], remote: &[] };
    for row in (0..shape.rows()).rev() {
        let (local, remote) = shape.row_at(row);
        // SAFETY: C-BUFFER.
        unsafe {
            world.accumulate_strided_from(alpha, from.wrapping_add(local).cast(), to.add(remote).cast::<T>(), &one)?;
        };
    }
    Ok(())
}

/// Refuses a contiguous piece that ends inside an element.
#[inline]
fn whole_elements<T>(bytes: usize) -> Result<()> {
    let size = size_of::<T>();
    if bytes.is_multiple_of(size) {
        return Ok(());
    }
    Err(Error::Shape(format!("{bytes} contiguous bytes are no whole number of {size}-byte elements")))
}

/// Segments added there, scaled.
///
/// # Safety
/// C-BUFFER for each segment; one element is readable at `scale.at`.
pub(crate) unsafe fn accumulate_vector(world: &World, scale: Scale, segments: &[Segment<u8>]) -> Result<()> {
    let accumulate = for_type!(scale, accumulate_vector_as);
    // SAFETY: passed on.
    unsafe { accumulate(world, scale.at, segments) }
}

/// # Safety
/// C-BUFFER for each segment; a `T` is readable at `scale`.
unsafe fn accumulate_vector_as<T: Accumulate>(
    world: &World,
    scale: *mut c_void,
    segments: &[Segment<u8>],
) -> Result<()> {
    // SAFETY: readable by contract, at any alignment.
    let alpha = unsafe { scale.cast::<T>().read_unaligned() };
    for (segment, Segment { count, .. }) in segments.iter().enumerate() {
        whole_elements::<T>(*count).map_err(|error| Error::Segment { segment, error: Box::new(error) })?;
    }
    let in_elements = |Segment { local, remote, count }: &Segment<u8>| Segment {
        local: local.cast::<T>(),
        remote: remote.cast::<T>(),
        count: count / size_of::<T>(),
    };
    // SAFETY: C-BUFFER.
    unsafe { world.accumulate_vector_from(alpha, segments.iter().map(in_elements)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(counts: &[c_int], local: &[c_int], remote: &[c_int]) -> Result<Shape> {
        assert_eq!((local.len(), remote.len()), (counts.len() - 1, counts.len() - 1));
        // SAFETY: C-ARRAY, just checked.
        unsafe { Shape::strided(counts.as_ptr(), local.as_ptr(), remote.as_ptr(), local.len() as c_int) }
    }

    #[test]
    fn rows_begin_where_the_strides_say() {
        let shape = shape(&[16, 2, 3], &[24, 100], &[40, 1000]).unwrap();
        let all: Vec<_> = (0..shape.rows()).map(|row| shape.row_at(row)).collect();
        assert_eq!(all, [(0, 0), (24, 40), (100, 1000), (124, 1040), (200, 2000), (224, 2040)]);
    }

    #[test]
    fn outer_levels_that_are_counted_once_are_none() {
        let levels = |counts: &[c_int]| {
            let strides = vec![64; counts.len() - 1];
            shape(counts, &strides, &strides).unwrap().levels
        };
        assert_eq!(
            [levels(&[8]), levels(&[8, 1, 1]), levels(&[8, 1, 2]), levels(&[8, 2, 1]), levels(&[8, 0])],
            [0, 0, 2, 1, 1]
        );
    }

    #[test]
    fn a_dense_side_has_no_gaps() {
        let shape = shape(&[16, 2, 3], &[24, 100], &[40, 1000]).unwrap();
        assert_eq!(shape.dense_here().local[..2], [16, 32]);
        assert_eq!(shape.dense_there().remote[..2], [16, 32]);
        assert_eq!(shape.dense_there().local[..2], [24, 100]);
    }

    #[test]
    fn impossible_shapes_are_errors() {
        for (counts, strides) in [(&[-1][..], &[][..]), (&[8, -2], &[8]), (&[8, 2], &[-8]), (&[8; 9], &[8; 8])] {
            let error = shape(counts, strides, strides).unwrap_err().to_string();
            assert!(error.contains('-') || error.contains("8 stride levels"), "{error}");
        }
    }
}
