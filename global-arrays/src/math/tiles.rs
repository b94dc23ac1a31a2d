//! Cutting a patch into pieces that a cache holds, so that no operation needs memory in proportion to a block.

use crate::axes::{Axes, advance};
use crate::patch::Patch;

/// Bytes of one operand that are worked on at a time: some of them fit into a core's own cache.
pub(crate) const AT_A_TIME: usize = 256 << 10;

/// Elements of `T` that are worked on at a time.
pub(crate) const fn elements<T>() -> usize {
    let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    if size > AT_A_TIME { 1 } else { AT_A_TIME / size }
}

/// The shape of a piece of at most `most` elements with rows as long as can be.
pub(crate) fn long_rows(shape: &Axes<usize>, most: usize) -> Axes<usize> {
    let mut tile = shape.map(|_| 1);
    let mut left = most.max(1);
    for axis in (0..shape.len()).rev() {
        tile[axis] = shape[axis].clamp(1, left);
        left /= tile[axis];
        if tile[axis] < shape[axis] {
            break;
        }
    }
    tile
}

/// Cuts a patch into tiles of this shape; those at the far ends may be smaller.
pub(crate) fn tiles(patch: &Patch, tile: &Axes<usize>) -> impl Iterator<Item = Patch> + use<> {
    let (patch, tile) = (*patch, *tile);
    let shape = patch.shape();
    let counts = Axes::from_fn(shape.len(), |axis| shape[axis].div_ceil(tile[axis]));
    let mut next = (!patch.is_empty()).then(|| counts.map(|_| 0));
    std::iter::from_fn(move || {
        let at = next.as_mut()?;
        let found = Patch::from_fn(at.len(), |axis| {
            let range = patch.range(axis);
            let start = range.start + at[axis] * tile[axis];
            start..(start + tile[axis]).min(range.end)
        });
        if !advance(at, &counts) {
            next = None;
        }
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tiles_are_small_and_cover_each_element_once(
            ranges in prop::collection::vec((0usize..5, 0usize..9), 1..5),
            most in 1usize..60,
        ) {
            let patch = Patch::from_fn(ranges.len(), |axis| ranges[axis].0..ranges[axis].0 + ranges[axis].1);
            let tile = long_rows(&patch.shape(), most);
            let all: Vec<_> = tiles(&patch, &tile).collect();
            prop_assert!(all.iter().all(|piece| piece.len() <= most && !piece.is_empty()));
            prop_assert_eq!(all.iter().map(Patch::len).sum::<usize>(), patch.len());
            for (number, piece) in all.iter().enumerate() {
                prop_assert_eq!(piece.intersection(&patch), *piece);
                prop_assert!(all[..number].iter().all(|other| other.intersection(piece).is_empty()));
            }
        }
    }
}
