//! A heap: which bytes of a slot are in use, free, and resident.
//!
//! It only keeps books on offsets; it touches no memory and talks to nobody.
//! In the symmetric heap every rank makes the same calls in the same order
//! (allocation is collective), so every rank's books are equal and one offset
//! describes an allocation on all of them. The private heap's books are its rank's own.
//!
//! Populating fresh memory is slow (15-30 us a page where this was measured)
//! and codes create arrays by the hundred, so a freed block stays resident:
//! small ones in lists by size class, to be handed out again in constant time;
//! all others as merged free ranges, best fit first. Only above a high-water
//! mark are free pages given back ([`Heap::trim`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Alignment of every block: a cache line.
pub(crate) const LINE: u64 = 64;
/// Granularity of residence.
pub(crate) const PAGE: u64 = 4096;
/// Largest block kept in a list of its size class.
const CLASS_MAX: u64 = 1 << 20;
/// Size classes per doubling.
const CLASSES_PER_DOUBLING: u32 = 8;

/// A block handed out by the heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// First byte, from the beginning of the heap.
    pub(crate) offset: u64,
    /// Bytes, rounded up from what was asked.
    pub(crate) len: u64,
}

/// The books of one heap.
#[derive(Debug)]
pub(crate) struct Heap {
    capacity: u64,
    /// Everything from here on was never handed out.
    frontier: u64,
    /// Free blocks by size class, last freed first out.
    quick: Vec<Vec<u64>>,
    /// Free ranges, merged: start to length, and by length.
    by_start: BTreeMap<u64, u64>,
    by_len: BTreeSet<(u64, u64)>,
    /// Resident pages: start to end, merged.
    resident: BTreeMap<u64, u64>,
    resident_bytes: u64,
    in_use: u64,
}

impl Heap {
    /// A heap of `capacity` bytes, all free, none resident.
    pub(crate) fn new(capacity: u64) -> Self {
        Heap {
            capacity,
            frontier: 0,
            quick: vec![Vec::new(); class_of(CLASS_MAX) + 1],
            by_start: BTreeMap::new(),
            by_len: BTreeSet::new(),
            resident: BTreeMap::new(),
            resident_bytes: 0,
            in_use: 0,
        }
    }

    /// Takes a block of at least `bytes`; `None` if no free range is that large.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<Block> {
        let len = round_up_to_class(bytes)?;
        let offset = if len <= CLASS_MAX && !self.quick[class_of(len)].is_empty() {
            self.quick[class_of(len)].pop()?
        } else if let Some(&(free_len, start)) = self.by_len.range((len, 0)..).next() {
            self.remove_free(start, free_len);
            if free_len > len {
                self.insert_free(start + len, free_len - len);
            }
            start
        } else {
            let end = self.frontier.checked_add(len)?;
            if end > self.capacity {
                // What lies in the lists may merge into something large enough.
                return self.flush_quick().then(|| self.allocate(bytes)).flatten();
            }
            std::mem::replace(&mut self.frontier, end)
        };
        self.in_use += len;
        Some(Block { offset, len })
    }

    /// The block that [`Heap::allocate`] would give, if one of that size lies ready, resident, in a list.
    pub(crate) fn ready(&self, bytes: u64) -> Option<Block> {
        let len = round_up_to_class(bytes).filter(|len| *len <= CLASS_MAX)?;
        let offset = *self.quick[class_of(len)].last()?;
        // What lies in the lists is resident: see `abandon`.
        Some(Block { offset, len })
    }

    /// Takes a block back that is not resident, since something failed.
    pub(crate) fn abandon(&mut self, block: Block) {
        self.in_use -= block.len;
        self.merge_free(block.offset, block.len);
    }

    /// Takes a resident block back.
    pub(crate) fn free(&mut self, block: Block) {
        let Block { offset, len } = block;
        self.in_use -= len;
        if len <= CLASS_MAX {
            self.quick[class_of(len)].push(offset);
        } else {
            self.merge_free(offset, len);
        }
    }

    /// The pages of a block that are not resident yet.
    pub(crate) fn absent(&self, block: &Block) -> Vec<Range<u64>> {
        let (mut at, end) = pages(block);
        let before = self.resident.range(..=at).next_back();
        let mut absent = Vec::new();
        for (&start, &stop) in before.into_iter().chain(self.resident.range(at + 1..end)) {
            if start > at {
                absent.push(at..start.min(end));
            }
            at = at.max(stop);
        }
        if at < end {
            absent.push(at..end);
        }
        absent
    }

    /// Notes that all pages of a block are resident.
    pub(crate) fn mark_resident(&mut self, block: &Block) {
        let added: u64 = self.absent(block).iter().map(|range| range.end - range.start).sum();
        if added == 0 {
            return;
        }
        self.resident_bytes += added;
        let (mut start, mut end) = pages(block);
        if let Some((&before, &stop)) = self.resident.range(..=start).next_back()
            && stop >= start
        {
            start = before;
            end = end.max(stop);
        }
        let swallowed: Vec<u64> = self.resident.range(start..=end).map(|(&start, _)| start).collect();
        for start in swallowed {
            end = end.max(self.resident.remove(&start).unwrap_or(end));
        }
        self.resident.insert(start, end);
    }

    /// Once more than `mark` bytes are resident without being in use: forgets
    /// all free resident pages and returns them, for the caller to give back.
    pub(crate) fn trim(&mut self, mark: u64) -> Vec<Range<u64>> {
        if self.resident_bytes.saturating_sub(self.in_use) <= mark {
            return Vec::new();
        }
        self.flush_quick();
        let mut given_back = Vec::new();
        let free = self.by_start.iter().map(|(&start, &len)| (start, start + len));
        let free: Vec<_> = free.chain([(self.frontier, self.capacity)]).collect();
        for (start, end) in free {
            // Only pages that lie wholly in free bytes.
            let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
            let mut touched: Vec<(u64, u64)> = Vec::new();
            if start < end {
                let before = self.resident.range(..start).next_back();
                touched.extend(before.map(|(&start, &stop)| (start, stop)));
                touched.extend(self.resident.range(start..end).map(|(&start, &stop)| (start, stop)));
            }
            for (from, to) in touched {
                let (gone_from, gone_to) = (from.max(start), to.min(end));
                if gone_from >= gone_to {
                    continue;
                }
                self.resident.remove(&from);
                if from < gone_from {
                    self.resident.insert(from, gone_from);
                }
                if gone_to < to {
                    self.resident.insert(gone_to, to);
                }
                self.resident_bytes -= gone_to - gone_from;
                given_back.push(gone_from..gone_to);
            }
        }
        given_back
    }

    /// How far from its beginning the heap has anything in use or resident, in whole pages: two heaps that grow towards
    /// each other share none.
    pub(crate) fn reach(&self) -> u64 {
        let resident = self.resident.last_key_value().map_or(0, |(_, &end)| end);
        resident.max(self.frontier.next_multiple_of(PAGE))
    }

    /// Bytes free in all, in whatever pieces.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.capacity - self.in_use
    }

    /// Bytes that are resident, in use or free.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// Moves every block of the size-class lists into the merged ranges; whether there was one.
    fn flush_quick(&mut self) -> bool {
        let mut any = false;
        for class in 0..self.quick.len() {
            let len = size_of_class(class);
            for offset in std::mem::take(&mut self.quick[class]) {
                self.merge_free(offset, len);
                any = true;
            }
        }
        any
    }

    fn merge_free(&mut self, mut start: u64, mut len: u64) {
        if let Some((&before, &before_len)) = self.by_start.range(..start).next_back()
            && before + before_len == start
        {
            self.remove_free(before, before_len);
            start = before;
            len += before_len;
        }
        if let Some(&after_len) = self.by_start.get(&(start + len)) {
            self.remove_free(start + len, after_len);
            len += after_len;
        }
        if start + len == self.frontier {
            self.frontier = start;
        } else {
            self.insert_free(start, len);
        }
    }

    fn insert_free(&mut self, start: u64, len: u64) {
        self.by_start.insert(start, len);
        self.by_len.insert((len, start));
    }

    fn remove_free(&mut self, start: u64, len: u64) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
    }
}

/// First and end page boundary around a block.
fn pages(block: &Block) -> (u64, u64) {
    (block.offset / PAGE * PAGE, (block.offset + block.len).next_multiple_of(PAGE))
}

/// The size class whose blocks hold `len` bytes, for `len` of at most [`CLASS_MAX`].
fn class_of(len: u64) -> usize {
    let lines = len.div_ceil(LINE).max(1);
    let low = CLASSES_PER_DOUBLING as u64;
    if lines <= low {
        return lines as usize - 1;
    }
    // Above the first eight lines, eight steps to each doubling.
    let doubling = (lines - 1).ilog2() - low.ilog2();
    let step = (lines - 1) >> doubling;
    (doubling as u64 * low + step) as usize
}

/// Bytes of a block of `class`.
fn size_of_class(class: usize) -> u64 {
    let low = CLASSES_PER_DOUBLING as usize;
    if class < low {
        return (class as u64 + 1) * LINE;
    }
    let doubling = class / low - 1;
    let step = class - doubling * low;
    ((step as u64 + 1) << doubling) * LINE
}

fn round_up_to_class(bytes: u64) -> Option<u64> {
    if bytes <= CLASS_MAX { Some(size_of_class(class_of(bytes))) } else { bytes.checked_next_multiple_of(PAGE) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_cover_every_size_with_little_waste() {
        for len in 1..=CLASS_MAX {
            let size = size_of_class(class_of(len));
            assert!(size >= len, "class of {len} has only {size}");
            assert!(size - len < LINE.max(len / 7), "{len} bytes take {size}");
            if len.is_multiple_of(LINE) {
                assert_eq!(class_of(size_of_class(class_of(len))), class_of(len));
            }
        }
        assert_eq!(size_of_class(class_of(CLASS_MAX)), CLASS_MAX);
    }

    #[test]
    fn a_freed_block_comes_back_resident() {
        let mut heap = Heap::new(1 << 30);
        let block = heap.allocate(80_000).unwrap();
        assert_eq!(heap.absent(&block), vec![0..81_920; 1]);
        heap.mark_resident(&block);
        assert!(heap.absent(&block).is_empty());
        heap.free(block.clone());
        assert_eq!(heap.allocate(80_000).unwrap(), block);
        assert!(heap.absent(&block).is_empty());
    }

    #[test]
    fn what_a_heap_reaches_is_whole_pages() {
        let mut heap = Heap::new(1 << 30);
        assert_eq!(heap.reach(), 0);
        let block = heap.allocate(1).unwrap();
        assert_eq!(heap.reach(), PAGE);
        heap.mark_resident(&block);
        assert_eq!(heap.reach(), PAGE);
        let next = heap.allocate(2 << 20).unwrap();
        assert_eq!(heap.reach(), (2 << 20) + PAGE);
        heap.abandon(next);
        assert_eq!(heap.reach(), PAGE);
    }

    #[test]
    fn the_whole_heap_can_be_had_and_no_more() {
        let mut heap = Heap::new(1 << 24);
        assert!(heap.allocate((1 << 24) + 1).is_none());
        assert!(heap.allocate(u64::MAX).is_none());
        let small: Vec<_> = (0..16).map(|_| heap.allocate(1 << 20).unwrap()).collect();
        assert!(heap.allocate(1).is_none());
        small.into_iter().for_each(|block| heap.free(block));
        // The pieces merge again.
        assert_eq!(heap.allocate(1 << 24).unwrap(), Block { offset: 0, len: 1 << 24 });
    }

    #[test]
    fn above_the_mark_free_pages_are_given_back() {
        let mut heap = Heap::new(1 << 30);
        let blocks: Vec<_> = (0..4).map(|_| heap.allocate(4 << 20).unwrap()).collect();
        blocks.iter().for_each(|block| heap.mark_resident(block));
        let [first, second, third, fourth] = blocks.try_into().unwrap();
        heap.free(second.clone());
        assert!(heap.trim(4 << 20).is_empty());
        heap.free(fourth.clone());
        let given_back = heap.trim(4 << 20);
        assert_eq!(given_back, [second.offset..third.offset, fourth.offset..fourth.offset + fourth.len]);
        assert_eq!(heap.resident_bytes(), first.len + third.len);
        let again = heap.allocate(4 << 20).unwrap();
        assert_eq!(heap.absent(&again), vec![again.offset..again.offset + again.len; 1]);
    }

    proptest! {
        /// Against a plain model: live blocks never overlap, residence is what was marked and not trimmed.
        #[test]
        fn live_blocks_are_disjoint(steps in prop::collection::vec((0u8..4, 1u64..3_000_000), 1..120)) {
            let mut heap = Heap::new(64 << 20);
            let mut live: Vec<Block> = Vec::new();
            let mut resident = vec![false; (64 << 20) / PAGE as usize];
            for (what, size) in steps {
                match what {
                    0 | 1 => if let Some(block) = heap.allocate(size) {
                        prop_assert!(block.len >= size && block.offset % LINE == 0);
                        prop_assert!(block.offset + block.len <= 64 << 20);
                        for other in &live {
                            prop_assert!(block.offset + block.len <= other.offset || other.offset + other.len <= block.offset);
                        }
                        for range in heap.absent(&block) {
                            for page in range.start / PAGE..range.end / PAGE {
                                prop_assert!(!resident[page as usize]);
                                resident[page as usize] = true;
                            }
                        }
                        heap.mark_resident(&block);
                        let (start, end) = pages(&block);
                        prop_assert!(resident[(start / PAGE) as usize..(end / PAGE) as usize].iter().all(|page| *page));
                        live.push(block);
                    },
                    2 => if !live.is_empty() {
                        heap.free(live.swap_remove(size as usize % live.len()));
                    },
                    _ => for range in heap.trim(size) {
                        for block in &live {
                            let (start, end) = pages(block);
                            prop_assert!(range.end <= start || end <= range.start, "gave back pages in use");
                        }
                        for page in range.start / PAGE..range.end / PAGE {
                            prop_assert!(resident[page as usize]);
                            resident[page as usize] = false;
                        }
                    },
                }
                prop_assert_eq!(heap.resident_bytes(), resident.iter().filter(|page| **page).count() as u64 * PAGE);
            }
        }
    }
}
