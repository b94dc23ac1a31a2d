//! Running sums, and packing what a mask chooses, along vectors.
//!
//! A mask is a vector beside, whose elements that are not zero begin segments, or choose. Each rank takes an equal share of
//! the range, whoever owns it (in a regular distribution of a whole vector, that is what it owns): it looks at its share
//! once, all tell each other in a few words what they found, and goes through it again to write.

use std::ops::Range;

use bytemuck::Pod;
use ndarray::{Array1, Ix1, s};

use crate::array::GlobalArray;
use crate::error::{Error, Result};
use crate::math::element::Element;
use crate::math::operand::{Operand, Overlap};
use crate::math::tiles::elements;
use crate::slice::GlobalSlice;

/// Whether a running sum has the element that stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scan {
    /// All elements of the segment up to this one.
    Inclusive,
    /// All before this one: 0 at the beginning of a segment.
    Exclusive,
}

impl<T: Element> GlobalSlice<'_, T, Ix1> {
    /// Makes the elements running sums of those of `source`, begun anew where `mask` is not zero (`GA_Scan_add`). What
    /// stands before the first such place is left as it is. `source` may be what is changed. Collective over the group of
    /// what is changed, whose ranks all have the others too.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if lengths differ, or if patches of one array overlap without being the same;
    /// [`Error::Elsewhere`]; if a transfer fails.
    #[track_caller]
    pub fn scan_add<M: Element>(
        &self,
        source: impl Operand<T, Ix1>,
        mask: impl Operand<M, Ix1>,
        scan: Scan,
    ) -> Result<()> {
        let (operation, source, mask) = ("a running sum", source.as_slice(), mask.as_slice());
        self.beside_each_other(operation, &source, &mask)?;
        let share = self.share();
        let parts = self.contributed(operation, |_| {
            let (mut sum, mut found) = (T::zeroed(), 0);
            for range in chunks::<T>(share.clone()) {
                for (x, begins) in source.range(range.clone())?.into_iter().zip(mask.range(range)?) {
                    if !begins.vanishes() {
                        (sum, found) = (T::zeroed(), 1);
                    }
                    sum = T::plus(sum, x);
                }
            }
            Ok((sum, found))
        })?;
        // The segment that is open where this rank begins.
        let mut open = None;
        for (sum, found) in &parts[..self.array.group.rank()] {
            open = match open {
                Some(before) if *found == 0 => Some(T::plus(before, *sum)),
                None if *found == 0 => None,
                _ => Some(*sum),
            };
        }
        self.written(share, |range| {
            let (mut values, mask) = (source.range(range.clone())?, mask.range(range.clone())?);
            let first = if open.is_some() { 0 } else { mask.iter().take_while(|begins| begins.vanishes()).count() };
            for (value, begins) in values.iter_mut().zip(mask).skip(first) {
                let before = open.filter(|_| begins.vanishes()).unwrap_or(T::zeroed());
                let after = T::plus(before, *value);
                *value = if scan == Scan::Inclusive { after } else { before };
                open = Some(after);
            }
            self.put_range(range.start + first, &values.slice(s![first..]).to_owned())
        })
    }
}

impl<T: Pod> GlobalSlice<'_, T, Ix1> {
    /// Makes each element that of `source` at the last place, up to its own, where `mask` is not zero; zero, where there is
    /// none before (`GA_Scan_copy`). Collective; as [`GlobalSlice::scan_add`].
    ///
    /// # Errors
    /// As [`GlobalSlice::scan_add`].
    #[track_caller]
    pub fn scan_copy<M: Element>(&self, source: impl Operand<T, Ix1>, mask: impl Operand<M, Ix1>) -> Result<()> {
        let (operation, source, mask) = ("a copy along segments", source.as_slice(), mask.as_slice());
        self.beside_each_other(operation, &source, &mask)?;
        let share = self.share();
        // Only where the last segment begins: its element, of whatever size, is fetched by those who want it.
        let parts = self.contributed(operation, |_| {
            let mut last = None;
            for range in chunks::<M>(share.clone()) {
                let found = mask.range(range.clone())?.iter().rposition(|begins| !begins.vanishes());
                last = found.map(|found| range.start + found).or(last);
            }
            Ok((0u64, last.map_or(u64::MAX, |last| last as u64)))
        })?;
        let before = parts[..self.array.group.rank()].iter().rev().find(|(_, last)| *last != u64::MAX);
        let mut open = match before {
            Some((_, last)) if !share.is_empty() => {
                source.range(*last as usize..*last as usize + 1).map(|found| found[0])
            }
            _ => Ok(T::zeroed()),
        };
        // Nobody writes before all have what they want of others.
        let met = self.array.sync();
        let done = self.written(share, |range| {
            let mut value = std::mem::replace(&mut open, Ok(T::zeroed()))?;
            let (mut values, mask) = (source.range(range.clone())?, mask.range(range.clone())?);
            for (element, begins) in values.iter_mut().zip(mask) {
                if !begins.vanishes() {
                    value = *element;
                }
                *element = value;
            }
            open = Ok(value);
            self.put_range(range.start, &values)
        });
        met.and(done)
    }

    /// Writes the elements of `source` where `mask` is not zero, one after the other, to the beginning of this patch, and
    /// says how many there were (`GA_Pack`). Collective over the group of what is changed, whose ranks all have the
    /// others too.
    ///
    /// # Errors
    /// [`Error::Mismatch`], on all ranks, if `source` and `mask` differ in length, if there are more elements than this
    /// patch has, or if it overlaps either; [`Error::Elsewhere`]; if a transfer fails.
    #[track_caller]
    pub fn pack<M: Element>(&self, source: impl Operand<T, Ix1>, mask: impl Operand<M, Ix1>) -> Result<usize> {
        let (operation, source, mask) = ("packing", source.as_slice(), mask.as_slice());
        source.same_shape(operation, &mask)?;
        self.apart(operation, &source)?;
        self.apart(operation, &mask)?;
        let share = self.share_of(source.patch.len());
        let (mut next, chosen) = self.chosen(operation, &mask, share.clone())?;
        self.holds(operation, chosen)?;
        self.written(share, |range| {
            let (values, mask) = (source.range(range.clone())?, mask.range(range)?);
            let chosen: Array1<T> =
                values.iter().zip(&mask).filter(|(_, chosen)| !chosen.vanishes()).map(|(x, _)| *x).collect();
            next += chosen.len();
            self.put_range(next - chosen.len(), &chosen)
        })?;
        Ok(chosen)
    }

    /// Writes the elements of `source`, one after the other from its beginning, to where `mask` is not zero, and says how
    /// many those were (`GA_Unpack`); others stay as they are. Collective, as [`GlobalSlice::pack`].
    ///
    /// # Errors
    /// [`Error::Mismatch`], on all ranks, if `mask` has not this patch's length, if `source` has too few elements, or if
    /// this patch overlaps either; [`Error::Elsewhere`]; if a transfer fails.
    #[track_caller]
    pub fn unpack<M: Element>(&self, source: impl Operand<T, Ix1>, mask: impl Operand<M, Ix1>) -> Result<usize> {
        let (operation, source, mask) = ("unpacking", source.as_slice(), mask.as_slice());
        self.same_shape(operation, &mask)?;
        self.apart(operation, &source)?;
        self.apart(operation, &mask)?;
        let share = self.share();
        let (mut next, chosen) = self.chosen(operation, &mask, share.clone())?;
        source.holds(operation, chosen)?;
        self.written(share, |range| {
            let mask = mask.range(range.clone())?;
            let count = mask.iter().filter(|chosen| !chosen.vanishes()).count();
            let (taken, mut values) = (source.range(next..next + count)?, self.range(range.clone())?);
            let places = values.iter_mut().zip(&mask).filter(|(_, chosen)| !chosen.vanishes());
            for ((place, _), value) in places.zip(taken) {
                *place = value;
            }
            next += count;
            self.put_range(range.start, &values)
        })?;
        Ok(chosen)
    }

    /// How many elements of a mask are not zero: before this rank's share, and in all.
    #[track_caller]
    fn chosen<M: Element>(
        &self,
        operation: &'static str,
        mask: &GlobalSlice<'_, M, Ix1>,
        share: Range<usize>,
    ) -> Result<(usize, usize)> {
        let parts = self.contributed(operation, |_| {
            let mut count = 0;
            for range in chunks::<M>(share) {
                count += mask.range(range)?.iter().filter(|chosen| !chosen.vanishes()).count() as u64;
            }
            Ok((0u64, count))
        })?;
        let sum = |parts: &[(u64, u64)]| parts.iter().map(|(_, count)| *count as usize).sum::<usize>();
        Ok((sum(&parts[..self.array.group.rank()]), sum(&parts)))
    }

    /// Writes this rank's share, and meets the others, who write theirs.
    #[track_caller]
    fn written(&self, share: Range<usize>, mut write: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
        self.ended(chunks::<T>(share).try_for_each(&mut write))
    }

    /// Which part of the patch this rank goes through.
    fn share(&self) -> Range<usize> {
        self.share_of(self.patch.len())
    }

    fn share_of(&self, len: usize) -> Range<usize> {
        let (ranks, rank) = (self.array.group.size(), self.array.group.rank());
        let from = |rank: usize| rank * (len / ranks) + rank.min(len % ranks);
        from(rank)..from(rank + 1)
    }

    /// Elements, counted from the patch's beginning.
    fn range(&self, range: Range<usize>) -> Result<Array1<T>> {
        let start = self.patch.range(0).start;
        self.array.get(start + range.start..start + range.end)
    }

    fn put_range(&self, first: usize, values: &Array1<T>) -> Result<()> {
        let first = self.patch.range(0).start + first;
        self.array.put(first..first + values.len(), values)
    }

    fn beside_each_other<U: Pod, M: Pod>(
        &self,
        operation: &'static str,
        source: &GlobalSlice<'_, U, Ix1>,
        mask: &GlobalSlice<'_, M, Ix1>,
    ) -> Result<()> {
        self.same_shape(operation, source)?;
        self.same_shape(operation, mask)?;
        self.not_shifted(operation, source)?;
        self.not_shifted(operation, mask)
    }

    fn apart<U: Pod>(&self, operation: &'static str, other: &GlobalSlice<'_, U, Ix1>) -> Result<()> {
        if self.overlap(other) == Overlap::Apart {
            return Ok(());
        }
        let why = format!("{} and {} of array '{}' overlap", self.patch, other.patch, self.array.name());
        Err(Error::Mismatch { operation, why })
    }

    fn holds(&self, operation: &'static str, count: usize) -> Result<()> {
        if count <= self.patch.len() {
            return Ok(());
        }
        let why = format!("the mask chooses {count} elements, more than {} of '{}' has", self.patch, self.array.name());
        Err(Error::Mismatch { operation, why })
    }
}

impl<T: Element> GlobalArray<T, Ix1> {
    /// Makes the elements running sums of those of `source`; see [`GlobalSlice::scan_add`] (`GA_Scan_add`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::scan_add`].
    #[track_caller]
    pub fn scan_add<M: Element>(
        &self,
        source: impl Operand<T, Ix1>,
        mask: impl Operand<M, Ix1>,
        scan: Scan,
    ) -> Result<()> {
        self.whole().scan_add(source, mask, scan)
    }
}

impl<T: Pod> GlobalArray<T, Ix1> {
    /// Copies along segments; see [`GlobalSlice::scan_copy`] (`GA_Scan_copy`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::scan_add`].
    #[track_caller]
    pub fn scan_copy<M: Element>(&self, source: impl Operand<T, Ix1>, mask: impl Operand<M, Ix1>) -> Result<()> {
        self.whole().scan_copy(source, mask)
    }

    /// Packs what a mask chooses; see [`GlobalSlice::pack`] (`GA_Pack`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::pack`].
    #[track_caller]
    pub fn pack<M: Element>(&self, source: impl Operand<T, Ix1>, mask: impl Operand<M, Ix1>) -> Result<usize> {
        self.whole().pack(source, mask)
    }

    /// Unpacks to where a mask chooses; see [`GlobalSlice::unpack`] (`GA_Unpack`). Collective.
    ///
    /// # Errors
    /// As [`GlobalSlice::unpack`].
    #[track_caller]
    pub fn unpack<M: Element>(&self, source: impl Operand<T, Ix1>, mask: impl Operand<M, Ix1>) -> Result<usize> {
        self.whole().unpack(source, mask)
    }
}

/// A range, in pieces that a cache holds.
fn chunks<T>(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(elements::<T>()).map(move |first| first..end.min(first + elements::<T>()))
}
