//! The grid of blocks that a regular distribution chooses.

use crate::axes::Axes;

/// The blocks along each axis for at most `ranks` ranks, of at least `min_block` elements where the shape allows: as many
/// blocks as can be, and of these choices the one whose blocks have the smallest surface (the least is fetched
/// from neighbours then).
pub(crate) fn choose(shape: &[usize], ranks: usize, min_block: &[usize]) -> Axes<usize> {
    let dims = shape.len();
    if dims == 0 {
        return Axes::splat(dims, 1);
    }
    let most = Axes::from_fn(dims, |axis| (shape[axis] / min_block[axis].max(1)).max(1));
    let mut search =
        Search { shape, most, grid: Axes::splat(dims, 1), best: Axes::splat(dims, 1), surface: f64::INFINITY };
    for used in (1..=ranks.max(1)).rev() {
        search.split(0, used);
        if search.surface < f64::INFINITY {
            break;
        }
    }
    search.best
}

struct Search<'a> {
    shape: &'a [usize],
    most: Axes<usize>,
    grid: Axes<usize>,
    best: Axes<usize>,
    surface: f64,
}

impl Search<'_> {
    /// Tries all ways to write `used` as a product over the axes from `axis` on.
    fn split(&mut self, axis: usize, used: usize) {
        if axis + 1 == self.grid.len() {
            // What is left goes to the last axis, whole.
            if used <= self.most[axis] {
                self.grid[axis] = used;
                self.consider();
            }
            return;
        }
        for pieces in (1..=used.min(self.most[axis])).filter(|pieces| used.is_multiple_of(*pieces)) {
            self.grid[axis] = pieces;
            self.split(axis + 1, used / pieces);
        }
    }

    fn consider(&mut self) {
        // Of a block: the sum over its axes of volume / length, whose volume is the same for all grids.
        let surface =
            self.shape.iter().zip(self.grid.iter()).map(|(len, pieces)| *pieces as f64 / (*len).max(1) as f64).sum();
        if surface < self.surface {
            self.surface = surface;
            self.best = self.grid;
        }
    }
}
