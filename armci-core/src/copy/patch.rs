//! The shape of a strided transfer, and the one walk over it.
//!
//! A [`Patch`] is ARMCI's description (a row of contiguous bytes, and up to seven levels of "so many times, so far
//! apart", each side with its own distances) brought to its simplest form: levels counted once are dropped, and
//! levels that lie contiguously on both sides are merged, so that the row is as long and the levels are as few as
//! they can be. Guarantees that every row is visited exactly once, inner levels first, without allocating. It does
//! not check that rows stay inside anything, nor that they are disjoint.
//!
//! # Safety
//! **PATCH-MAPPED**: the caller vouches that every row the shape describes, from the given start, lies in mapped
//! memory: `row` bytes at `start + sum(index[l] * stride[l])` for all indices below the counts.
#![allow(unsafe_code)]

/// ARMCI's limit on stride levels.
pub const MAX_LEVELS: usize = 7;

/// One stride level: how often, and how far apart on either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Level {
    count: usize,
    dst: usize,
    src: usize,
}

/// A strided transfer in its simplest form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    row: usize,
    /// The first `depth` are in use, innermost first.
    levels: [Level; MAX_LEVELS],
    depth: usize,
}

/// The rows of the innermost level, whose shape all planes of a patch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plane {
    pub row: usize,
    pub rows: usize,
    pub dst_stride: usize,
    pub src_stride: usize,
    /// Bytes of the whole patch.
    pub whole: usize,
}

/// Evenly spaced rows: so many bytes each, so far apart on either side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) row: usize,
    pub(crate) rows: usize,
    pub(crate) dst_stride: usize,
    pub(crate) src_stride: usize,
}

impl Patch {
    /// A patch of rows of `counts[0]` bytes; level `l` repeats what is below it `counts[l + 1]` times, its starts
    /// `dst_strides[l]` and `src_strides[l]` bytes apart. A count of zero anywhere makes it empty.
    ///
    /// # Panics
    /// If `counts` is not one longer than both `dst_strides` and `src_strides`, or these exceed [`MAX_LEVELS`].
    #[inline]
    pub fn new(dst_strides: &[usize], src_strides: &[usize], counts: &[usize]) -> Self {
        assert!(
            counts.len() == dst_strides.len() + 1
                && dst_strides.len() == src_strides.len()
                && dst_strides.len() <= MAX_LEVELS,
            "a patch of {} counts cannot have {} and {} strides",
            counts.len(),
            dst_strides.len(),
            src_strides.len()
        );
        let mut patch = Patch::row(counts[0]);
        for ((&count, &dst), &src) in counts[1..].iter().zip(dst_strides).zip(src_strides) {
            patch.push(count, dst, src);
        }
        patch
    }

    /// A patch of one row, to which levels may be added.
    #[inline]
    pub(crate) fn row(bytes: usize) -> Self {
        Patch { row: bytes, levels: [Level::default(); MAX_LEVELS], depth: 0 }
    }

    /// Adds a level around those there are, by merging where it continues the one below on both sides. At most
    /// [`MAX_LEVELS`] are added.
    #[inline]
    pub(crate) fn push(&mut self, count: usize, dst: usize, src: usize) {
        let level = Level { count, dst, src };
        if level.count == 0 {
            self.row = 0;
        } else if level.count == 1 {
            // Its strides are never taken.
        } else if self.depth == 0 {
            if level.dst == self.row && level.src == self.row {
                self.row *= level.count;
            } else {
                self.levels[0] = level;
                self.depth = 1;
            }
        } else {
            let below = &mut self.levels[self.depth - 1];
            if level.dst == below.dst.wrapping_mul(below.count) && level.src == below.src.wrapping_mul(below.count) {
                below.count *= level.count;
            } else {
                self.levels[self.depth] = level;
                self.depth += 1;
            }
        }
    }

    /// Rows after merging; zero if the patch is empty.
    #[inline]
    pub fn rows(&self) -> usize {
        if self.row == 0 { 0 } else { self.levels[..self.depth].iter().map(|level| level.count).product::<usize>() }
    }

    /// Bytes of a row after merging.
    #[inline]
    pub(crate) fn row_bytes(&self) -> usize {
        self.row
    }

    /// The bytes of its only row, if it is but one (or none, which has no bytes).
    #[inline]
    pub(crate) fn single_row(&self) -> Option<usize> {
        (self.depth == 0).then_some(self.row)
    }

    /// Bytes the patch moves.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.row * self.rows()
    }

    /// Calls `visit(dst, src, bytes)` once for each row, inner levels first.
    ///
    /// # Safety
    /// PATCH-MAPPED on both sides, as far as `visit` makes use of the pointers.
    #[inline(always)]
    pub unsafe fn for_each_row(&self, dst: *mut u8, src: *const u8, mut visit: impl FnMut(*mut u8, *const u8, usize)) {
        let plane = self.plane();
        self.for_each_plane(dst, src, |mut to, mut from| {
            for _ in 0..plane.rows {
                visit(to, from, plane.row);
                to = to.wrapping_add(plane.dst_stride);
                from = from.wrapping_add(plane.src_stride);
            }
        });
    }

    /// Calls `visit(dst, src, run)` for evenly spaced rows, all of the innermost level at a time.
    pub(crate) fn for_each_run(&self, dst: *mut u8, src: *const u8, mut visit: impl FnMut(*mut u8, *const u8, &Run)) {
        let Plane { row, rows, dst_stride, src_stride, .. } = self.plane();
        let run = Run { row, rows, dst_stride, src_stride };
        self.for_each_plane(dst, src, |to, from| visit(to, from, &run));
    }

    /// Calls `visit(offset, bytes)` once for each row of the target (if `dst`) or of the source, by its place from the
    /// start on.
    pub fn for_each_place(&self, dst: bool, mut visit: impl FnMut(usize, usize)) {
        let plane = self.plane();
        let stride = if dst { plane.dst_stride } else { plane.src_stride };
        // Places as if memory began with the patch.
        self.for_each_plane(std::ptr::null_mut(), std::ptr::null(), |to, from| {
            let first = if dst { to.addr() } else { from.addr() };
            (0..plane.rows).for_each(|row| visit(first.wrapping_add(row * stride), plane.row));
        });
    }

    /// How many levels there are after merging, and bytes of the rows of the innermost.
    pub(crate) fn depth_and_plane(&self) -> (usize, usize) {
        let plane = self.plane();
        (self.depth, plane.row * plane.rows)
    }

    /// The levels after merging, innermost first: how often, and how far apart in the target and in the source.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.levels[..self.depth].iter().map(|level| (level.count, level.dst, level.src))
    }

    /// Cuts the patch into blocks of up to `limit` bytes, which is not less than a row has, and up to `most` levels, at
    /// least one: calls `visit(dst, src, block)` with the place of each from the start on. Blocks are as large as whole
    /// levels and an even part of one more make them.
    pub(crate) fn for_each_block(&self, limit: usize, most: usize, mut visit: impl FnMut(usize, usize, &Patch)) {
        if self.rows() == 0 {
            return;
        }
        let (mut whole, mut inner) = (0, self.row);
        while whole < self.depth.min(most - 1) && inner * self.levels[whole].count <= limit {
            inner *= self.levels[whole].count;
            whole += 1;
        }
        let Some(Level { count, dst, src }) = self.levels[..self.depth].get(whole).copied() else {
            return visit(0, 0, self);
        };
        let most = (limit / inner).clamp(1, count);
        let part = count.div_ceil(count.div_ceil(most));
        let block = |count| {
            let mut block = Patch { depth: whole, ..self.clone() };
            if count > 1 {
                block.levels[whole].count = count;
                block.depth += 1;
            }
            block
        };
        let (usual, last) = (block(part), block(count - (count - 1) / part * part));
        // The starts of what is around: a patch of single bytes, at the levels that are not whole.
        let mut around = Patch { row: 1, levels: [Level::default(); MAX_LEVELS], depth: self.depth - whole - 1 };
        around.levels[..around.depth].copy_from_slice(&self.levels[whole + 1..self.depth]);
        // SAFETY: nothing is made of the pointers but their addresses: places as if memory began with the patch.
        unsafe {
            around.for_each_row(std::ptr::null_mut(), std::ptr::null(), |to, from, _| {
                for at in (0..count).step_by(part) {
                    let block = if at + part < count { &usual } else { &last };
                    visit(to.addr() + at * dst, from.addr() + at * src, block);
                }
            });
        }
    }

    /// The shape of each plane [`Patch::for_each_plane`] visits.
    #[inline]
    pub(super) fn plane(&self) -> Plane {
        let inner = if self.depth == 0 { Level { count: 1, dst: 0, src: 0 } } else { self.levels[0] };
        Plane { row: self.row, rows: inner.count, dst_stride: inner.dst, src_stride: inner.src, whole: self.bytes() }
    }

    /// The walk: calls `visit(dst, src)` with the start of each plane. Only addresses are computed here.
    #[inline(always)]
    pub(super) fn for_each_plane(&self, dst: *mut u8, src: *const u8, mut visit: impl FnMut(*mut u8, *const u8)) {
        if self.row == 0 {
            return;
        }
        let outer = self.levels.get(1..self.depth).unwrap_or_default();
        let (mut to, mut from) = (dst, src);
        let mut index = [0; MAX_LEVELS];
        loop {
            visit(to, from);
            let mut level = 0;
            loop {
                let Some(Level { count, dst, src }) = outer.get(level) else {
                    return;
                };
                index[level] += 1;
                to = to.wrapping_add(*dst);
                from = from.wrapping_add(*src);
                if index[level] < *count {
                    break;
                }
                index[level] = 0;
                to = to.wrapping_sub(dst.wrapping_mul(*count));
                from = from.wrapping_sub(src.wrapping_mul(*count));
                level += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Blocks keep to their bounds, and together have each row once.
        #[test]
        fn blocks_are_the_patch(
            row in 1..9usize,
            levels in proptest::collection::vec((1..5usize, 1..5_000usize, 1..5_000usize), 0..=MAX_LEVELS),
            limit in 0..200usize,
            most in 1..=MAX_LEVELS,
        ) {
            let mut patch = Patch::row(row);
            levels.into_iter().for_each(|(count, dst, src)| patch.push(count, dst, src));
            let limit = patch.row + limit;
            let rows = |patch: &Patch, to: usize, from: usize, rows: &mut Vec<_>| {
                let (to, from) = (std::ptr::without_provenance_mut(to), std::ptr::without_provenance(from));
                // SAFETY: the pointers are only looked at.
                unsafe { patch.for_each_row(to, from, |to, from, row| rows.push((to.addr(), from.addr(), row))) };
            };
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            rows(&patch, 7, 9, &mut expected);
            patch.for_each_block(limit, most, |to, from, block| {
                assert!(block.bytes() <= limit && block.depth <= most, "{block:?}, of {limit} bytes and {most} levels");
                rows(block, 7 + to, 9 + from, &mut found);
            });
            assert_eq!(found, expected, "{patch:?} in blocks of {limit} bytes and {most} levels");
        }
    }

    #[test]
    fn an_empty_patch_has_no_blocks() {
        Patch::new(&[5], &[5], &[3, 0]).for_each_block(100, 2, |_, _, _| panic!("an empty patch"));
    }

    fn depth_and_row(dst: &[usize], src: &[usize], counts: &[usize]) -> (usize, usize) {
        let patch = Patch::new(dst, src, counts);
        assert_eq!(patch.bytes(), counts.iter().product::<usize>());
        assert_eq!(patch.single_row(), (patch.depth == 0).then_some(patch.bytes()));
        (patch.depth, patch.row)
    }

    #[test]
    fn levels_contiguous_on_both_sides_merge() {
        assert_eq!(depth_and_row(&[8], &[8], &[8, 10]), (0, 80));
        assert_eq!(depth_and_row(&[8, 80], &[8, 80], &[8, 10, 3]), (0, 240));
        assert_eq!(depth_and_row(&[8], &[16], &[8, 10]), (1, 8));
        assert_eq!(depth_and_row(&[16, 160], &[24, 240], &[8, 10, 3]), (1, 8));
        assert_eq!(depth_and_row(&[16, 160], &[24, 241], &[8, 10, 3]), (2, 8));
        assert_eq!(depth_and_row(&[8, 100], &[8, 200], &[8, 10, 3]), (1, 80));
    }

    #[test]
    fn levels_counted_once_vanish_and_zero_empties() {
        assert_eq!(depth_and_row(&[1, 2, 3], &[4, 5, 6], &[8, 1, 1, 1]), (0, 8));
        assert_eq!(depth_and_row(&[16, 999, 160], &[16, 1, 160], &[8, 10, 1, 3]), (1, 8));
        assert_eq!(Patch::new(&[16, 32], &[16, 32], &[8, 0, 3]).rows(), 0);
        assert_eq!(Patch::new(&[], &[], &[0]).rows(), 0);
    }

    #[test]
    #[should_panic(expected = "cannot have")]
    fn counts_must_fit_the_strides() {
        Patch::new(&[16], &[16], &[8]);
    }
}
