//! Contiguous copies of more than 16 bytes.
//!
//! Guarantees the promises of [`copy`](super::copy) at the speed of the best of the known ways, of which none is
//! best everywhere:
//!
//! - up to eight vectors (narrow ones up to 64 bytes): load all, then store all, from both ends towards the middle,
//!   no loop;
//! - up to half a page: a loop of four vectors at a time, which ends with the last four;
//! - a vector loop with aligned stores while source and target fit the first-level cache;
//! - `rep movs` above that, where the processor is quick at it: it is the only way to overwrite a cached line
//!   without reading it first, up to 1.8 times as fast when another core wrote the target last;
//! - the vector loop with the target prefetched for writing where `rep movs` is slow or unavailable;
//! - stores past the caches for blocks that no cache would hold anyway.
//!
//! **The trap.** `rep movs` falls to a fraction of its speed (a sixteenth on Zen 4) when the target lies a few
//! bytes above the source *modulo the page size*; the C library's `memcpy` falls with it. [`string_trap`] knows
//! where. A forward vector loop suffers there too, each load appearing to depend on the store just made (addresses
//! are first compared by their low 12 bits), so inside the window the loop runs backward.
//!
//! # Safety
//! BOTH-MAPPED and RACY-BYTES as in [`copy`](super::copy); LANE-ENABLED as in [`Lane`].
#![allow(unsafe_code)]

use super::isa::{Isa, Level, isa};
use super::lane::{Lane, Narrow, fence, prefetch_for_writing};

/// Up to here narrow vectors do: asking which wider ones there are, and leaving them again, costs more than they save.
const NARROW_TO: usize = 64;

/// From here `rep movs` beats the vector loop: source and target together no longer fit a first-level cache of
/// 48 KiB. (Measured on Zen 5: 16 KiB 165 against 265 GB/s, 32 KiB 165 against 100.)
const STRINGS_FROM: usize = 24 << 10;

/// A part of a larger transfer is moved by `rep movs` from here: below, its start-up (some 10 ns) costs more than it saves.
const STRINGS_LEAST: usize = 2 << 10;

/// From here lines are prefetched for writing where the vector loop is used.
const PREFETCH_FROM: usize = 1 << 20;

/// From here stores go past the caches. Below, a cached target is worth more, even to the copy itself
/// (16 MiB warm is the break-even without `rep movs`).
const STREAM_FROM: usize = 16 << 20;

/// The same where `rep movs` is usable and moves whole lines to whole lines: it avoids reading the target too.
const STREAM_FROM_STRINGS: usize = 32 << 20;

const PAGE: usize = 4096;

/// Up to here a block is but a few groups of vectors, whose start and end are most of its time.
const FEW: usize = PAGE / 2;

/// Copies more than 16 bytes, as a part of a transfer of `whole` bytes: what its caches can hold decides the way.
///
/// # Safety
/// BOTH-MAPPED for `len` bytes, `len > 16`.
#[inline(never)]
pub(super) unsafe fn copy_long(dst: *mut u8, src: *const u8, len: usize, whole: usize) {
    debug_assert!(len > 16);
    // SAFETY: BOTH-MAPPED; LANE-ENABLED: each function is called at its own level, and the narrow lane at any.
    unsafe {
        if len <= NARROW_TO {
            return copy_short::<Narrow>(dst, src, len);
        }
        let isa = isa();
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => copy_avx512(dst, src, len, whole, isa),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => copy_avx2(dst, src, len, whole, isa),
            _ => copy_narrow(dst, src, len, whole, isa),
        }
    }
}

/// A function of its own, so that [`copy_long`] has no registers to save for it and only jumps.
///
/// # Safety
/// As [`copy_long`].
#[inline(never)]
unsafe fn copy_narrow(dst: *mut u8, src: *const u8, len: usize, whole: usize, isa: Isa) {
    // SAFETY: BOTH-MAPPED; the narrow lane needs no feature.
    unsafe { copy_by::<Narrow>(dst, src, len, whole, isa) }
}

/// # Safety
/// As [`copy_long`], at [`Level::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn copy_avx512(dst: *mut u8, src: *const u8, len: usize, whole: usize, isa: Isa) {
    // SAFETY: BOTH-MAPPED; LANE-ENABLED by this function's feature.
    unsafe { copy_by::<std::arch::x86_64::__m512i>(dst, src, len, whole, isa) }
}

/// # Safety
/// As [`copy_long`], at [`Level::Avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy_avx2(dst: *mut u8, src: *const u8, len: usize, whole: usize, isa: Isa) {
    // SAFETY: BOTH-MAPPED; LANE-ENABLED by this function's feature.
    unsafe { copy_by::<std::arch::x86_64::__m256i>(dst, src, len, whole, isa) }
}

/// Chooses the way, for one width of vector.
///
/// # Safety
/// As [`copy_long`], LANE-ENABLED for `V`.
#[inline(always)]
pub(super) unsafe fn copy_by<V: Lane>(dst: *mut u8, src: *const u8, len: usize, whole: usize, isa: Isa) {
    // SAFETY: passed on; each way is called with the least length it asks for.
    unsafe {
        if len <= 8 * V::SIZE {
            copy_short::<V>(dst, src, len);
        } else if whole < STRINGS_FROM {
            if behind_by_little(dst, src) {
                backward::<V>(dst, src, len);
            } else if len <= FEW {
                forward_short::<V>(dst, src, len);
            } else {
                forward::<V, false>(dst, src, len);
            }
        } else {
            copy_block::<V>(dst, src, len, isa);
        }
    }
}

/// Blocks larger than the first-level cache, and parts of such.
///
/// # Safety
/// As [`copy_by`], `len > 8 * V::SIZE`.
#[inline(always)]
unsafe fn copy_block<V: Lane>(dst: *mut u8, src: *const u8, len: usize, isa: Isa) {
    let strings = isa.fast_strings && len >= STRINGS_LEAST && !string_trap(dst, src);
    let stream_from =
        if strings && distance_in_page(dst, src).is_multiple_of(64) { STREAM_FROM_STRINGS } else { STREAM_FROM };
    // SAFETY: passed on.
    unsafe {
        if len >= stream_from {
            stream::<V::Half>(dst, src, len); // 32-byte streams: never slower than 64, faster from odd addresses
        } else if strings {
            by_strings::<V>(dst, src, len);
        } else if len >= PREFETCH_FROM {
            forward::<V, true>(dst, src, len);
        } else {
            forward::<V, false>(dst, src, len);
        }
    }
}

/// How far the target lies above the source, as the processor first sees it: within a page.
#[inline(always)]
fn distance_in_page(dst: *mut u8, src: *const u8) -> usize {
    (dst as usize).wrapping_sub(src as usize) % PAGE
}

/// Whether `rep movs` would crawl: Zen 4 below 16 bytes, Zen 5 below 64.
#[inline(always)]
fn string_trap(dst: *mut u8, src: *const u8) -> bool {
    (1..64).contains(&distance_in_page(dst, src))
}

/// Whether a forward loop's loads would run into its own recent stores.
#[inline(always)]
fn behind_by_little(dst: *mut u8, src: *const u8) -> bool {
    (1..512).contains(&distance_in_page(dst, src))
}

/// 17 bytes to eight vectors: everything is in registers before the first store.
///
/// # Safety
/// As [`copy_by`], `16 < len <= 8 * V::SIZE`.
#[inline(always)]
pub(super) unsafe fn copy_short<V: Lane>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: passed on; a pair of ends covers `2 * N * SIZE` bytes and reaches in from both by at most `len`.
    unsafe {
        if len < V::SIZE {
            if len < <V::Half as Lane>::SIZE {
                return ends::<<V::Half as Lane>::Half, 1>(dst, src, len);
            }
            ends::<V::Half, 1>(dst, src, len);
        } else if len <= 2 * V::SIZE {
            ends::<V, 1>(dst, src, len);
        } else if len <= 4 * V::SIZE {
            ends::<V, 2>(dst, src, len);
        } else {
            ends::<V, 4>(dst, src, len);
        }
    }
}

/// `N` vectors from the front and `N` from the back, which may share bytes.
///
/// # Safety
/// As [`copy_by`], `N * V::SIZE <= len <= 2 * N * V::SIZE`.
#[inline(always)]
unsafe fn ends<V: Lane, const N: usize>(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!(N * V::SIZE <= len && len <= 2 * N * V::SIZE);
    let back = len - N * V::SIZE;
    // SAFETY: BOTH-MAPPED: front and back are each `N * SIZE <= len` bytes inside the ranges.
    unsafe {
        // No closures in here: they would not inherit the vector features.
        let (mut front, mut rear) = ([V::load(src); N], [V::load(src.add(back)); N]);
        for i in 1..N {
            front[i] = V::load(src.add(i * V::SIZE));
            rear[i] = V::load(src.add(back + i * V::SIZE));
        }
        for (i, lane) in front.into_iter().enumerate() {
            lane.store(dst.add(i * V::SIZE));
        }
        for (i, lane) in rear.into_iter().enumerate() {
            lane.store(dst.add(back + i * V::SIZE));
        }
    }
}

/// Bytes the loops load before they store, beyond [`FEW`]. More does not help on a plain path, and hurts when source
/// and target are aligned differently.
const GROUP: usize = 128;

/// # Safety
/// As [`copy_by`]; `GROUP` bytes at both pointers.
#[inline(always)]
unsafe fn group<V: Lane>(dst: *mut u8, src: *const u8) {
    // SAFETY: passed on; each arm is taken with the lane of which it holds `GROUP` bytes.
    unsafe {
        match GROUP / V::SIZE {
            2 => ends::<V, 1>(dst, src, GROUP),
            4 => ends::<V, 2>(dst, src, GROUP),
            _ => ends::<V, 4>(dst, src, GROUP),
        }
    }
}

/// A loop upward for a few groups: four vectors at a time, the first vector and the last four stored apart.
///
/// Whether the target is aligned is branched upon, not reckoned with, so that the source is read while the target's
/// address is still being found out. Not beyond half a page, where loads would run ahead of stores that look as if
/// they were to the same address (see the trap above): that costs more than waiting.
///
/// # Safety
/// As [`copy_by`], `len >= 4 * V::SIZE`.
#[inline(always)]
unsafe fn forward_short<V: Lane>(dst: *mut u8, src: *const u8, len: usize) {
    let head = (dst as usize).wrapping_neg() % V::SIZE;
    // SAFETY: passed on; BOTH-MAPPED for the first vector.
    unsafe {
        if head == 0 {
            fours::<V>(dst, src, len, 0);
        } else {
            V::load(src).store(dst);
            fours::<V>(dst, src, len, head);
        }
    }
}

/// Four vectors at a time from `at` on, the last four up to `len`.
///
/// # Safety
/// As [`forward_short`].
#[inline(always)]
unsafe fn fours<V: Lane>(dst: *mut u8, src: *const u8, len: usize, mut at: usize) {
    let four = 4 * V::SIZE;
    // SAFETY: BOTH-MAPPED: each group ends at most at `len`, and `len` holds one.
    unsafe {
        while at + four < len {
            ends::<V, 2>(dst.add(at), src.add(at), four);
            at += four;
        }
        ends::<V, 2>(dst.add(len - four), src.add(len - four), four);
    }
}

/// A loop upward with aligned stores; the first and last vector are stored apart and may share bytes with it.
/// `PREFETCH` asks for the target's lines 1 KiB ahead.
///
/// # Safety
/// As [`copy_by`], `len >= V::SIZE`.
#[inline(always)]
unsafe fn forward<V: Lane, const PREFETCH: bool>(dst: *mut u8, src: *const u8, len: usize) {
    const AHEAD: usize = 1024;
    let last = len - V::SIZE;
    let mut at = V::SIZE - dst as usize % V::SIZE;
    // SAFETY: BOTH-MAPPED: `at` stays at most `len - GROUP` for groups and below `last` for single vectors.
    unsafe {
        let (head, tail) = (V::load(src), V::load(src.add(last)));
        head.store(dst);
        while at + GROUP <= len {
            if PREFETCH {
                prefetch_for_writing(dst.wrapping_add(at + AHEAD));
                prefetch_for_writing(dst.wrapping_add(at + AHEAD + 64));
            }
            group::<V>(dst.add(at), src.add(at));
            at += GROUP;
        }
        while at < last {
            V::load(src.add(at)).store(dst.add(at));
            at += V::SIZE;
        }
        tail.store(dst.add(last));
    }
}

/// The same loop downward.
///
/// # Safety
/// As [`copy_by`], `len >= 2 * V::SIZE`.
#[inline(always)]
unsafe fn backward<V: Lane>(dst: *mut u8, src: *const u8, len: usize) {
    let last = len - V::SIZE;
    // SAFETY: BOTH-MAPPED: everything from `end` up to `len` is stored, `end` only falls, and never below 0.
    unsafe {
        let (head, tail) = (V::load(src), V::load(src.add(last)));
        tail.store(dst.add(last));
        let mut end = len - (dst as usize + len) % V::SIZE;
        while end >= GROUP {
            end -= GROUP;
            group::<V>(dst.add(end), src.add(end));
        }
        while end > V::SIZE {
            end -= V::SIZE;
            V::load(src.add(end)).store(dst.add(end));
        }
        head.store(dst);
    }
}

/// The loop upward with stores past the caches, ordered before returning.
///
/// # Safety
/// As [`copy_by`], `len >= V::SIZE`.
#[inline(always)]
unsafe fn stream<V: Lane>(dst: *mut u8, src: *const u8, len: usize) {
    let last = len - V::SIZE;
    let mut at = V::SIZE - dst as usize % V::SIZE;
    // SAFETY: BOTH-MAPPED as in `forward`; `dst + at` is aligned by the choice of its first value.
    unsafe {
        V::load(src).store(dst);
        while at + GROUP <= len {
            for piece in (at..at + GROUP).step_by(V::SIZE) {
                V::load(src.add(piece)).stream(dst.add(piece));
            }
            at += GROUP;
        }
        while at < last {
            V::load(src.add(at)).store(dst.add(at));
            at += V::SIZE;
        }
        V::load(src.add(last)).store(dst.add(last));
    }
    fence();
}

/// `rep movsq` on a target brought to a line's start; whole words, so that aligned ones cannot be torn.
///
/// # Safety
/// As [`copy_by`], `len >= 128`.
#[inline(always)]
unsafe fn by_strings<V: Lane>(dst: *mut u8, src: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        let head = (dst as usize).wrapping_neg() % 64;
        let words = (len - head) / 8;
        // SAFETY: BOTH-MAPPED: the string covers `head..head + 8 * words`, the ends what is left, all within `len`.
        // The direction flag is clear by the ABI; the stores of a string operation are ordered before later ones.
        unsafe {
            if head != 0 {
                ends::<Narrow, 2>(dst, src, 64); // not otherwise: it would fetch the line that is about to be replaced
            }
            std::arch::asm!(
                "rep movsq",
                inout("rcx") words => _,
                inout("rsi") src.add(head) => _,
                inout("rdi") dst.add(head) => _,
                options(nostack, preserves_flags)
            );
            if !(len - head).is_multiple_of(8) {
                super::move_8(dst.add(len - 8), src.add(len - 8));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: passed on; never chosen here, `fast_strings` is false.
    unsafe {
        forward::<V, false>(dst, src, len);
    }
}
