//! Patches: rectangular pieces of an array.

use std::fmt;
use std::ops::Range;

/// A rectangular piece of a matrix: a range of rows and one of columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Patch {
    /// The rows.
    pub rows: Range<usize>,
    /// The columns.
    pub cols: Range<usize>,
}

impl Patch {
    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows.len(), self.cols.len()]
    }

    /// Whether it holds no element.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.cols.is_empty()
    }

    /// What it has in common with another.
    #[must_use]
    pub fn intersection(&self, other: &Patch) -> Patch {
        let common = |a: &Range<usize>, b: &Range<usize>| {
            let start = a.start.max(b.start);
            start..a.end.min(b.end).max(start)
        };
        Patch { rows: common(&self.rows, &other.rows), cols: common(&self.cols, &other.cols) }
    }

    /// Whether it lies inside a matrix of this shape, and no range runs backwards.
    pub(crate) fn is_inside(&self, [rows, cols]: [usize; 2]) -> bool {
        let inside = |range: &Range<usize>, len| range.start <= range.end && range.end <= len;
        inside(&self.rows, rows) && inside(&self.cols, cols)
    }
}

impl From<[Range<usize>; 2]> for Patch {
    fn from([rows, cols]: [Range<usize>; 2]) -> Self {
        Patch { rows, cols }
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}, {:?}]", self.rows, self.cols)
    }
}
