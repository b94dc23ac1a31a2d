//! The promises of this room, held against plain references on random shapes.

use super::contiguous::*;
use super::isa::{Isa, Level, isa};
use super::lane::Narrow;
use super::*;
use proptest::prelude::*;

const GUARD: usize = 64;

/// Bytes that differ from their neighbours and between `salt`s.
fn bytes(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(167) ^ (i >> 8) ^ salt) as u8).collect()
}

/// A buffer in which any address modulo the page can be picked.
struct Arena {
    bytes: Vec<u8>,
    start: usize,
}

impl Arena {
    fn new(len: usize, offset: usize, salt: usize) -> Self {
        let bytes = bytes(len + offset + 2 * GUARD + 4096, salt);
        let start = GUARD + (4096 - (bytes.as_ptr() as usize + GUARD) % 4096) % 4096 + offset % 4096;
        Arena { bytes, start }
    }

    fn at(&mut self) -> *mut u8 {
        self.bytes[self.start..].as_mut_ptr()
    }
}

type Way = Box<dyn Fn(*mut u8, *const u8, usize)>;

/// Every way this processor can go, each usable from 17 bytes up.
fn ways() -> Vec<(String, Way)> {
    let mut ways: Vec<(String, Way)> = Vec::new();
    for (fast_strings, part) in [(false, false), (true, false), (true, true)] {
        if fast_strings && !isa().fast_strings {
            continue;
        }
        for level in [Level::Portable, Level::Avx2, Level::Avx512] {
            if level > isa().level {
                continue;
            }
            let isa = Isa { level, fast_strings };
            ways.push((
                format!("{isa:?}, part {part}"),
                // SAFETY: called with mapped ranges, at a level this processor has.
                Box::new(move |dst, src, len| unsafe {
                    let whole = if part { usize::MAX } else { len };
                    match level {
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx512 => copy_avx512(dst, src, len, whole, isa),
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx2 => copy_avx2(dst, src, len, whole, isa),
                        _ => copy_by::<Narrow>(dst, src, len, whole, isa),
                    }
                }),
            ));
        }
    }
    ways
}

fn check(name: &str, go: &dyn Fn(*mut u8, *const u8, usize), len: usize, dst_at: usize, src_at: usize) {
    let mut src = Arena::new(len, src_at, 1);
    let mut dst = Arena::new(len, dst_at, 2);
    let mut expected = dst.bytes.clone();
    expected[dst.start..dst.start + len].copy_from_slice(&src.bytes[src.start..src.start + len]);
    let before = src.bytes.clone();
    go(dst.at(), src.at(), len);
    assert!(dst.bytes == expected, "{name}: {len} bytes to {dst_at} from {src_at}");
    assert!(src.bytes == before, "{name}: source changed");
}

/// The public entrance as a plain function.
fn entrance(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: called with mapped ranges only.
    unsafe { copy(dst, src, len) }
}

#[test]
fn every_short_length_at_every_alignment_copies_exactly() {
    for len in 0..=68 {
        for dst_at in 0..17 {
            for src_at in 0..17 {
                check("copy", &entrance, len, dst_at, src_at);
            }
        }
    }
}

#[test]
fn every_way_copies_exactly_around_its_thresholds() {
    for (name, go) in &ways() {
        for len in (17..700).chain([1023, 1024, 1025, 4095, 4096, 4097, (24 << 10) - 1, 24 << 10, (24 << 10) + 1]) {
            for (dst_at, src_at) in [(0, 0), (8, 0), (0, 8), (1, 0), (63, 64), (3, 4095), (511, 0), (64, 60)] {
                check(name, go, len, dst_at, src_at);
            }
        }
    }
}

#[test]
fn large_blocks_copy_exactly_past_the_caches_and_through_strings() {
    for (name, go) in &ways() {
        for len in [(512 << 10) + 5, (16 << 20) + 3, (32 << 20) + 77] {
            for (dst_at, src_at) in [(8, 0), (5, 1000), (32, 0)] {
                check(name, go, len, dst_at, src_at);
            }
        }
    }
}

#[test]
fn overlapping_ranges_copy_as_if_through_a_buffer() {
    for len in [0, 1, 7, 8, 9, 100, 5000] {
        for shift in [0, 1, 8, 64, len / 2, len, len + 1] {
            for up in [true, false] {
                let mut all = bytes(2 * len + 100, 3);
                let (to, from) = if up { (shift, 0) } else { (0, shift) };
                let mut expected = all.clone();
                expected.copy_within(from..from + len, to);
                let base = all.as_mut_ptr();
                // SAFETY: both ranges lie in `all`.
                unsafe { copy_overlapping(base.add(to), base.add(from), len) };
                assert_eq!(all, expected, "{len} bytes, {from} to {to}");
            }
        }
    }
}

/// Two threads: one copies whole patterns, the other must never see half of one in an aligned word.
#[test]
fn aligned_words_are_never_torn() {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    for len in [8usize, 16, 24, 40, 256, 1000, 4096, 40 << 10] {
        let words = len / 8;
        let cells: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sources = [vec![0u64; words], vec![u64::MAX; words]];
                for round in 0..(20_000_000 / len).min(20_000) {
                    let src = sources[round % 2].as_ptr();
                    // SAFETY: both ranges are `len` bytes; the target is atomics, whose inside may be written.
                    unsafe { copy(cells.as_ptr() as *mut u8, src.cast(), len) };
                }
                stop.store(true, Relaxed);
            });
            while !stop.load(Relaxed) {
                for cell in &cells {
                    let seen = cell.load(Relaxed);
                    assert!(seen == 0 || seen == u64::MAX, "{len} bytes: {seen:#x}");
                }
            }
        });
    }
}

/// Counts and both sides' strides, each side with gaps of its own; strides are at least the extent below.
fn shapes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>, Vec<usize>)> {
    let row = prop_oneof![
        Just(8usize),
        Just(16),
        Just(24),
        Just(32),
        Just(40),
        Just(48),
        Just(64),
        Just(96),
        Just(128),
        Just(256),
        0usize..700
    ];
    (row, prop::collection::vec((1usize..5, 0usize..3, 0usize..40, 0usize..3, 0usize..40), 0..5)).prop_map(
        |(row, levels)| {
            let (mut counts, mut dst, mut src) = (vec![row], vec![], vec![]);
            let (mut dst_extent, mut src_extent) = (row, row);
            for (count, dst_gap, dst_size, src_gap, src_size) in levels {
                dst.push(dst_extent + if dst_gap == 0 { 0 } else { dst_size });
                src.push(src_extent + if src_gap == 0 { 0 } else { src_size });
                dst_extent = dst[dst.len() - 1] * count;
                src_extent = src[src.len() - 1] * count;
                counts.push(count);
            }
            (counts, dst, src)
        },
    )
}

/// Byte offsets of all rows, by counting in mixed radix.
fn row_offsets(counts: &[usize], strides: &[usize]) -> Vec<usize> {
    let total: usize = counts[1..].iter().product();
    (0..total)
        .map(|mut n| {
            counts[1..]
                .iter()
                .zip(strides)
                .map(|(count, stride)| {
                    let index = n % count;
                    n /= count;
                    index * stride
                })
                .sum()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_length_at_any_alignment_copies_exactly(len in 0usize..70_000, dst_at in 0usize..4096, src_at in 0usize..4096) {
        check("copy", &entrance, len, dst_at, src_at);
        for (name, go) in &ways() {
            if len > 16 {
                check(name, go, len, dst_at, src_at);
            }
        }
    }

    #[test]
    fn strided_copies_touch_their_rows_and_nothing_else((counts, dst_strides, src_strides) in shapes(), at in 0usize..64) {
        let extent = |strides: &[usize]| counts[1..].iter().zip(strides).map(|(c, s)| (c - 1) * s).sum::<usize>() + counts[0];
        let mut src = Arena::new(extent(&src_strides), at, 1);
        let mut dst = Arena::new(extent(&dst_strides), at / 2, 2);
        let mut expected = dst.bytes.clone();
        for (to, from) in row_offsets(&counts, &dst_strides).into_iter().zip(row_offsets(&counts, &src_strides)) {
            let row = src.bytes[src.start + from..][..counts[0]].to_vec();
            expected[dst.start + to..][..counts[0]].copy_from_slice(&row);
        }
        let original = dst.bytes.clone();
        let (to, from) = (dst.at(), src.at());
        // SAFETY: the arenas hold the extents.
        unsafe { copy_patch(to, from, &Patch::new(&dst_strides, &src_strides, &counts)) };
        prop_assert_eq!(&dst.bytes, &expected);
        for level in [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|level| *level <= isa().level) {
            dst.bytes.copy_from_slice(&original);
            let patch = Patch::new(&dst_strides, &src_strides, &counts);
            let plane = patch.plane();
            let go = rows::choose(plane.row, level);
            let (to, from) = (dst.at(), src.at());
            // SAFETY: the arenas hold the extents, the processor has the level.
            patch.for_each_plane(to, from, |to, from| unsafe { go(to, from, &plane) });
            prop_assert_eq!(&dst.bytes, &expected, "{:?}", level);
        }
    }

    #[test]
    fn the_walk_visits_every_byte_once_and_inner_levels_first((counts, dst_strides, src_strides) in shapes()) {
        let patch = Patch::new(&dst_strides, &src_strides, &counts);
        let (dst, src) = (std::ptr::without_provenance_mut::<u8>(1 << 20), std::ptr::without_provenance::<u8>(1 << 30));
        let mut seen = Vec::new();
        let mut rows = 0;
        // SAFETY: the visitor reads no memory.
        unsafe {
            patch.for_each_row(dst, src, |to, from, bytes| {
                rows += 1;
                seen.extend((0..bytes).map(|i| (to as usize - (1 << 20) + i, from as usize - (1 << 30) + i)));
            });
        }
        prop_assert_eq!(rows, patch.rows());
        let expected: Vec<_> = row_offsets(&counts, &dst_strides).into_iter().zip(row_offsets(&counts, &src_strides))
            .flat_map(|(to, from)| (0..counts[0]).map(move |i| (to + i, from + i))).collect();
        prop_assert_eq!(seen, expected);
    }
}
