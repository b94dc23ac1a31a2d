//! Who owns what: a matrix cut into blocks, one per rank.
//!
//! Ranks form a grid, rows of the grid first; each axis is cut into pieces
//! whose lengths differ by at most one. Nothing is stored per rank: owner and
//! block are computed.

use std::ops::Range;

use crate::patch::Patch;

/// One axis, cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    len: usize,
    pieces: usize,
}

impl Axis {
    /// The first `len % pieces` pieces are one longer than the rest.
    fn piece(self, index: usize) -> Range<usize> {
        let (short, longer) = (self.len / self.pieces, self.len % self.pieces);
        let start = index * short + index.min(longer);
        start..start + short + usize::from(index < longer)
    }

    /// The piece that `at < len` lies in.
    fn piece_of(self, at: usize) -> usize {
        let (short, longer) = (self.len / self.pieces, self.len % self.pieces);
        let in_longer = longer * (short + 1);
        if at < in_longer { at / (short + 1) } else { longer + (at - in_longer) / short }
    }

    /// The pieces that a range touches.
    fn pieces_of(self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        self.piece_of(range.start)..self.piece_of(range.end - 1) + 1
    }
}

/// How a matrix is spread over ranks: regular blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distribution {
    axes: [Axis; 2],
}

impl Distribution {
    /// Spreads a matrix of `shape` over at most `ranks` ranks, in blocks of at least `min_block` where the shape
    /// allows, as near to square as can be. Ranks that would get nothing own nothing.
    pub fn blocks(shape: [usize; 2], ranks: usize, min_block: [usize; 2]) -> Self {
        let most = [0, 1].map(|axis| (shape[axis] / min_block[axis].max(1)).max(1));
        let grids = (1..=ranks.max(1)).flat_map(|used| {
            (1..=used.min(most[0])).filter(move |rows| used % rows == 0).map(move |rows| [rows, used / rows])
        });
        // Most ranks used first; then the grid whose blocks have the shortest outline.
        let outline = |[rows, cols]: [usize; 2]| shape[0].div_ceil(rows) + shape[1].div_ceil(cols);
        let best = grids
            .filter(|grid| grid[1] <= most[1])
            .min_by_key(|grid| (ranks - grid[0] * grid[1], outline(*grid)))
            .unwrap_or([1, 1]);
        Distribution { axes: [0, 1].map(|axis| Axis { len: shape[axis], pieces: best[axis] }) }
    }

    /// The matrix's shape.
    pub fn shape(&self) -> [usize; 2] {
        self.axes.map(|axis| axis.len)
    }

    /// Ranks along rows and columns.
    pub fn grid(&self) -> [usize; 2] {
        self.axes.map(|axis| axis.pieces)
    }

    /// The block of a rank; empty if it owns nothing.
    pub fn block(&self, rank: usize) -> Patch {
        let [rows, cols] = self.axes;
        if rank >= rows.pieces * cols.pieces {
            return Patch { rows: 0..0, cols: 0..0 };
        }
        Patch { rows: rows.piece(rank / cols.pieces), cols: cols.piece(rank % cols.pieces) }
    }

    /// The owner of an element; `None` outside the matrix.
    pub fn owner(&self, [row, col]: [usize; 2]) -> Option<usize> {
        let [rows, cols] = self.axes;
        (row < rows.len && col < cols.len).then(|| rows.piece_of(row) * cols.pieces + cols.piece_of(col))
    }

    /// The ranks that own a part of a patch, each with its part, in rank order.
    pub fn owners<'a>(&'a self, patch: &'a Patch) -> impl Iterator<Item = (usize, Patch)> + 'a {
        let [rows, cols] = self.axes;
        rows.pieces_of(&patch.rows).flat_map(move |row| {
            cols.pieces_of(&patch.cols).map(move |col| {
                let rank = row * cols.pieces + col;
                (rank, self.block(rank).intersection(patch))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn grids_are_near_square_and_respect_small_matrices() {
        assert_eq!(Distribution::blocks([100, 100], 4, [1, 1]).grid(), [2, 2]);
        assert_eq!(Distribution::blocks([1000, 10], 4, [1, 1]).grid(), [4, 1]);
        assert_eq!(Distribution::blocks([10, 10], 4, [6, 1]).grid(), [1, 4]);
        assert_eq!(Distribution::blocks([2, 1], 7, [1, 1]).grid(), [2, 1]);
        assert_eq!(Distribution::blocks([0, 5], 3, [1, 1]).block(2).shape(), [0, 1]);
    }

    proptest! {
        #[test]
        fn blocks_tile_the_matrix(rows in 0usize..40, cols in 0usize..40, ranks in 1usize..14, min in 1usize..9) {
            let distribution = Distribution::blocks([rows, cols], ranks, [min, min]);
            let mut owner = vec![None; rows * cols];
            for rank in 0..ranks {
                let block = distribution.block(rank);
                for row in block.rows {
                    for col in block.cols.clone() {
                        prop_assert_eq!(owner[row * cols + col].replace(rank), None);
                        prop_assert_eq!(distribution.owner([row, col]), Some(rank));
                    }
                }
            }
            prop_assert!(owner.iter().all(Option::is_some));
        }

        #[test]
        fn owners_cover_a_patch_once(
            (len, a, b) in (1usize..40).prop_flat_map(|len| (Just(len), 0..=len, 0..=len)), ranks in 1usize..14
        ) {
            let distribution = Distribution::blocks([len, 7], ranks, [1, 1]);
            let patch = Patch { rows: a.min(b)..a.max(b), cols: 2..6 };
            let parts: Vec<_> = distribution.owners(&patch).collect();
            let covered: usize = parts.iter().map(|(_, part)| part.shape().iter().product::<usize>()).sum();
            prop_assert_eq!(covered, patch.rows.len() * 4);
            for (rank, part) in parts {
                prop_assert!(!part.is_empty());
                prop_assert_eq!(distribution.owner([part.rows.start, part.cols.start]), Some(rank));
                prop_assert_eq!(distribution.owner([part.rows.end - 1, part.cols.end - 1]), Some(rank));
            }
        }
    }
}
