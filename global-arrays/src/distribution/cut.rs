//! One axis, cut into pieces.

use std::ops::Range;
use std::rc::Rc;

/// How an axis is cut. There is always a piece, though it may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Cut {
    /// Into so many pieces of `short` elements, of which the first `longer` have one more; of [`Cut::even`].
    Even { pieces: usize, short: usize, longer: usize },
    /// Into pieces of `size`; the last may be shorter.
    Sized { len: usize, size: usize },
    /// At these places: of the beginning of each piece, and of the end. Pieces may be empty.
    At(Rc<[usize]>),
}

impl Default for Cut {
    fn default() -> Self {
        Cut::even(0, 1)
    }
}

impl Cut {
    /// Into so many pieces, whose lengths differ by at most one: the first are the longer ones.
    pub(crate) fn even(len: usize, pieces: usize) -> Self {
        Cut::Even { pieces, short: len / pieces, longer: len % pieces }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Cut::Even { pieces, short, longer } => pieces * short + longer,
            Cut::Sized { len, .. } => *len,
            Cut::At(places) => places[places.len() - 1],
        }
    }

    #[inline]
    pub(crate) fn pieces(&self) -> usize {
        match self {
            Cut::Even { pieces, .. } => *pieces,
            Cut::Sized { len, size } => len.div_ceil(*size).max(1),
            Cut::At(places) => places.len() - 1,
        }
    }

    /// The length of the longest piece.
    pub(crate) fn longest(&self) -> usize {
        match self {
            Cut::Even { short, longer, .. } => short + usize::from(*longer > 0),
            Cut::Sized { len, size } => (*size).min(*len),
            Cut::At(places) => places.windows(2).map(|piece| piece[1] - piece[0]).max().unwrap_or(0),
        }
    }

    #[inline]
    pub(crate) fn piece(&self, index: usize) -> Range<usize> {
        match self {
            Cut::Even { short, longer, .. } => {
                let start = index * short + index.min(*longer);
                start..start + short + usize::from(index < *longer)
            }
            Cut::Sized { len, size } => index * size..(index + 1).saturating_mul(*size).min(*len),
            Cut::At(places) => places[index]..places[index + 1],
        }
    }

    /// The piece that `at < len` lies in.
    #[inline]
    pub(crate) fn piece_of(&self, at: usize) -> usize {
        match self {
            Cut::Even { pieces: 1, .. } => 0,
            Cut::Even { short, longer, .. } => {
                let in_longer = longer * (short + 1);
                if at < in_longer { at / (short + 1) } else { longer + (at - in_longer) / short }
            }
            Cut::Sized { size, .. } => at / size,
            Cut::At(places) => places.partition_point(|place| *place <= at) - 1,
        }
    }

    /// From the first to the last piece that a range touches.
    #[inline]
    pub(crate) fn pieces_of(&self, range: Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        self.piece_of(range.start)..self.piece_of(range.end - 1) + 1
    }
}
