//! Which region lies where in a slot: what an address is looked up in.
//!
//! Each rank keeps a map of its own slot in the slot, so that any rank of the
//! node finds the region at an address in two loads, however many regions there
//! are, whichever heap they came from. A *page* that lies in one region has its
//! index there (or nothing, in none); one that several share is marked, and
//! each of its *lines* has an index. Blocks are whole lines, so no line is shared.
//!
//! The map takes 1/2048 of the slot's addresses for pages and 1/32 for lines;
//! memory only where pages hold regions or parts of them.
//!
//! # Safety
//! ADDRESS-MAP: behind the control block of every slot lie [`AddressMap::len`]
//! bytes, mapped as long as the node exists, zero at first, that no heap hands
//! out and that are accessed only as the atomics of such a map.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

use super::heap::{LINE, PAGE};

/// A page that several regions share, or that one fills in part.
const SHARED: u16 = u16::MAX;

/// The map of one slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressMap<'a> {
    /// One word per page, then one per line.
    words: *const AtomicU16,
    slot_len: u64,
    window: PhantomData<&'a AtomicU16>,
}

impl<'a> AddressMap<'a> {
    /// Bytes of the map of a slot of `slot_len` bytes.
    pub(crate) fn len(slot_len: u64) -> u64 {
        ((slot_len / PAGE + slot_len / LINE) * size_of::<AtomicU16>() as u64).next_multiple_of(PAGE)
    }

    /// The map of a slot.
    ///
    /// # Safety
    /// ADDRESS-MAP for `'a`: it lies at `at`.
    #[inline]
    pub(crate) unsafe fn at(at: *const u8, slot_len: u64) -> Self {
        AddressMap { words: at.cast(), slot_len, window: PhantomData }
    }

    #[inline]
    fn word(&self, index: u64) -> &'a AtomicU16 {
        debug_assert!(index < self.slot_len / PAGE + self.slot_len / LINE);
        // SAFETY: ADDRESS-MAP; callers compute the index from an offset in the slot.
        unsafe { &*self.words.add(index as usize) }
    }

    #[inline]
    fn page(&self, offset: u64) -> &'a AtomicU16 {
        self.word(offset / PAGE)
    }

    #[inline]
    fn line(&self, offset: u64) -> &'a AtomicU16 {
        self.word(self.slot_len / PAGE + offset / LINE)
    }

    /// The index of the region at `offset` of the slot.
    #[inline]
    pub(crate) fn find(&self, offset: u64) -> Option<u32> {
        if offset >= self.slot_len {
            return None;
        }
        let mut word = self.page(offset).load(Ordering::Acquire);
        if word == SHARED {
            word = self.line(offset).load(Ordering::Acquire);
        }
        word.checked_sub(1).map(u32::from)
    }

    /// Enters a block, whole lines of the slot, as that of region `index`; or takes it out again.
    pub(crate) fn enter(&self, block: Range<u64>, index: Option<u32>) {
        let word = index.map_or(0, |index| index as u16 + 1);
        let (first, end) = (block.start.next_multiple_of(PAGE), block.end / PAGE * PAGE);
        let lines = |range: Range<u64>| {
            if range.is_empty() {
                return;
            }
            for offset in range.clone().step_by(LINE as usize) {
                self.line(offset).store(word, Ordering::Relaxed);
            }
            self.page(range.start).store(SHARED, Ordering::Release);
        };
        if first > end {
            return lines(block);
        }
        lines(block.start..first);
        for offset in (first..end).step_by(PAGE as usize) {
            self.page(offset).store(word, Ordering::Release);
        }
        lines(end..block.end);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOT: u64 = 64 * PAGE;

    /// What to do: enter a block of so many lines at a line, if it is free there; or take the n-th out again.
    #[derive(Debug, Clone)]
    enum Step {
        Enter(u64, u64),
        Leave(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..SLOT / LINE, prop_oneof![1..70u64, 60..700u64]).prop_map(|(at, len)| Step::Enter(at, len)),
            2 => any::<usize>().prop_map(Step::Leave),
        ]
    }

    proptest! {
        #[test]
        fn finds_what_a_list_of_blocks_says(steps in prop::collection::vec(step(), 1..60)) {
            let memory = vec![0u64; AddressMap::len(SLOT) as usize / 8];
            // SAFETY: ADDRESS-MAP for this test: zeroed, large enough, aligned, and used by nothing else.
            let map = unsafe { AddressMap::at(memory.as_ptr().cast(), SLOT) };
            let mut live: Vec<(Range<u64>, u32)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Enter(at, len) => {
                        let block = at * LINE..((at + len) * LINE).min(SLOT);
                        if live.iter().all(|(other, _)| other.end <= block.start || block.end <= other.start) {
                            map.enter(block.clone(), Some(number as u32));
                            live.push((block, number as u32));
                        }
                    }
                    Step::Leave(which) if !live.is_empty() => {
                        let (block, _) = live.swap_remove(which % live.len());
                        map.enter(block, None);
                    }
                    Step::Leave(_) => {}
                }
                for offset in (0..SLOT).step_by(LINE as usize) {
                    let expected = live.iter().find(|(block, _)| block.contains(&offset)).map(|(_, index)| *index);
                    prop_assert_eq!(map.find(offset + number as u64 % LINE), expected);
                }
            }
        }
    }
}
