//! Who computes what of a product, and in which parts.
//!
//! A rank computes what it owns of the result, if blocks are large and all own about as much; else all take even shares,
//! whoever owns them. An axis is then cut where blocks of the operands end, so that parts can be read in place, unless
//! blocks are so small that copies cost less than many small products.

use std::ops::Range;

use bytemuck::Pod;
use ndarray::Ix2;

use crate::axes::Axes;
use crate::distribution::Distribution;
use crate::error::Result;
use crate::patch::Patch;
use crate::slice::GlobalSlice;

/// No cut makes a shorter segment than this along an axis, where the axis is as long: shorter ones cost more in the
/// kernels' packing and in passing over the result than a copy of an operand does.
const LEAST: usize = 128;

/// Longest segments along rows and columns of what must be copied, and along the axis that is summed over. Copies of
/// this size are spread over a thousand products each, and all buffers of a rank are at most 32 MiB of `f64`.
pub(super) const MOST: usize = 1024;
pub(super) const MOST_INNER: usize = 512;

/// Cuts `range` at these ends of blocks, which are in order: into segments of at least [`LEAST`] and at most `most`.
pub(super) fn segments(range: &Range<usize>, ends: impl IntoIterator<Item = usize>, most: usize) -> Vec<Range<usize>> {
    let mut cut = Vec::new();
    let mut start = range.start;
    for end in ends {
        if end >= start + LEAST && end + LEAST <= range.end {
            cut.push(start..end);
            start = end;
        }
    }
    if start < range.end {
        cut.push(start..range.end);
    }
    let evenly = |segment: Range<usize>| {
        let parts = segment.len().div_ceil(most);
        (0..parts).map(move |part| {
            let at = |part: usize| segment.start + part * segment.len() / parts;
            at(part)..at(part + 1)
        })
    };
    cut.into_iter().flat_map(evenly).collect()
}

/// The patches of the array that this rank computes, of a result that is `slice`; none of them is empty.
pub(super) fn shares<T: Pod>(slice: &GlobalSlice<'_, T, Ix2>) -> Result<Vec<Patch>> {
    let (array, patch) = (slice.array(), slice.patch());
    let ranks = array.group().size();
    let blocks: usize = (0..2).map(|axis| array.distribution().pieces_along(axis, patch.range(axis)).count()).product();
    if blocks <= ranks || patch.len() / blocks.max(1) >= LEAST * LEAST {
        let mut owned = vec![0; ranks];
        for (owner, part) in array.distribution().owners(patch) {
            owned[owner] += part.len();
        }
        let most = owned.into_iter().max().unwrap_or(0);
        if most * ranks * 4 <= patch.len() * 5 {
            return Ok(array.own_parts(patch)?.map(|part| part.patch).collect());
        }
    }
    let even = Distribution::regular(&patch.shape(), ranks, &Axes::splat(2, 1));
    let mine = even.block_on(array.group().rank()).filter(|mine| !mine.is_empty());
    let start = patch.start();
    Ok(mine
        .map(|mine| Patch::from_fn(2, |axis| start[axis] + mine.range(axis).start..start[axis] + mine.range(axis).end))
        .into_iter()
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn segments_cover_the_range_once_and_in_bounds(
            (len, ends) in (1usize..5000).prop_flat_map(|len| (Just(len), prop::collection::vec(1..=len, 0..20))),
            most in prop_oneof![Just(usize::MAX), 300usize..1024],
        ) {
            let (mut ends, range) = (ends, 7..7 + len);
            ends.sort_unstable();
            let cut = segments(&range, ends.iter().map(|end| end + 7), most);
            prop_assert_eq!(cut.first().map(|segment| segment.start), Some(7));
            prop_assert_eq!(cut.last().map(|segment| segment.end), Some(7 + len));
            prop_assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(cut.iter().all(|segment| segment.len() <= most && segment.len() >= len.min(LEAST)));
        }
    }
}
