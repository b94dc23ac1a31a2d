//! Copies and loops `y += a * x` by other means than the runtime's: what its own are held against.
//!
//! They take raw pointers, so that they can be tried on the very memory that the runtime works on, at any alignment.
//! Each has a name. None promises to keep words whole, none finds out by itself which is best: whoever measures takes
//! the best.
//!
//! # Safety
//! BOTH-MAPPED: the bytes that are read and those that are written are mapped, do not overlap, and nobody else
//! writes either meanwhile; the caller vouches for it. FEATURE-FOUND: a function compiled for an instruction set is
//! handed out only where the processor said it has it.
#![allow(unsafe_code)]

use std::hint::black_box;

/// Copies so many bytes to the first pointer from the second: requires BOTH-MAPPED.
pub type Copy = unsafe fn(*mut u8, *const u8, usize);

/// Adds a multiple of so many numbers at the second pointer to those at the first: requires BOTH-MAPPED.
pub type Loop = unsafe fn(*mut f64, *const f64, usize);

/// Copies rows: requires BOTH-MAPPED for all of them.
pub type CopyRows = unsafe fn(*mut u8, *const u8, &Rows);

/// One way, by name.
pub type Way<F> = (&'static str, F);

/// Rows of a copy, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// How long a row is.
    pub row: usize,
    /// How many there are.
    pub count: usize,
    /// How far apart they begin at the target.
    pub to: usize,
    /// The same at the source.
    pub from: usize,
}

/// What `y += a * x` multiplies with.
pub const SCALE: f64 = 1.5;

/// Copies that leave the target in the caches: the C library's, the string instruction's, plain loops.
pub fn copies() -> Vec<Way<Copy>> {
    let mut ways: Vec<Way<Copy>> = vec![("memcpy", memcpy)];
    #[cfg(target_arch = "x86_64")]
    ways.extend(x86::copies());
    ways
}

/// Copies past the caches; the target must begin on a multiple of 32 bytes.
pub fn streams() -> Vec<Way<Copy>> {
    #[cfg(target_arch = "x86_64")]
    return x86::streams();
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// Loops `y += a * x`.
pub fn loops() -> Vec<Way<Loop>> {
    let mut ways: Vec<Way<Loop>> = vec![("plain", add_scaled)];
    #[cfg(target_arch = "x86_64")]
    ways.extend(x86::loops());
    ways
}

/// Copies of rows of this length.
pub fn rows(row: usize) -> Vec<Way<CopyRows>> {
    let mut ways: Vec<Way<CopyRows>> = vec![("memcpy", memcpy_rows)];
    #[cfg(target_arch = "x86_64")]
    ways.extend(x86::rows(row));
    ways
}

unsafe fn memcpy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: BOTH-MAPPED.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

unsafe fn memcpy_rows(to: *mut u8, from: *const u8, rows: &Rows) {
    for row in 0..rows.count {
        // SAFETY: BOTH-MAPPED, row by row.
        unsafe { memcpy(to.add(row * rows.to), from.add(row * rows.from), rows.row) }
    }
}

unsafe fn add_scaled(to: *mut f64, from: *const f64, numbers: usize) {
    let a = black_box(SCALE);
    for at in 0..numbers {
        // SAFETY: BOTH-MAPPED.
        unsafe { *to.add(at) += a * *from.add(at) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::{Copy, CopyRows, Loop, Rows, SCALE, Way, add_scaled, memcpy};

    pub(super) fn copies() -> Vec<Way<Copy>> {
        let mut ways: Vec<Way<Copy>> = vec![("movsb", strings)];
        if is_x86_feature_detected!("avx2") {
            ways.push(("avx2", copy_256)); // FEATURE-FOUND, here and below: by the line above
        }
        if is_x86_feature_detected!("avx512f") {
            ways.push(("avx512", copy_512));
        }
        ways
    }

    pub(super) fn streams() -> Vec<Way<Copy>> {
        let mut ways: Vec<Way<Copy>> = Vec::new();
        if is_x86_feature_detected!("avx2") {
            ways.push(("streams", stream_256));
        }
        ways
    }

    pub(super) fn loops() -> Vec<Way<Loop>> {
        let mut ways: Vec<Way<Loop>> = Vec::new();
        if is_x86_feature_detected!("avx2") {
            ways.push(("avx2", add_256));
        }
        if is_x86_feature_detected!("avx512f") {
            ways.push(("avx512", add_512));
        }
        ways
    }

    /// Without and with asking for rows ahead.
    pub(super) fn rows(row: usize) -> Vec<Way<CopyRows>> {
        let mut ways: Vec<Way<CopyRows>> = Vec::new();
        if row >= 256 {
            ways.push(("movsb", string_rows));
        }
        if row.is_multiple_of(16) && row < 64 {
            ways.push(("sse2", rows_128::<0>));
            ways.push(("sse2, 16 rows ahead", rows_128::<16>));
            ways.push(("sse2, 32 rows ahead", rows_128::<32>));
        }
        if is_x86_feature_detected!("avx2") && row.is_multiple_of(32) {
            ways.push(("avx2", rows_256::<0>));
            ways.push(("avx2, 4 rows ahead", rows_256::<4>));
            ways.push(("avx2, 16 rows ahead", rows_256::<16>));
        }
        if is_x86_feature_detected!("avx512f") && row.is_multiple_of(64) {
            ways.push(("avx512", rows_512::<0>));
            ways.push(("avx512, 4 rows ahead", rows_512::<4>));
            ways.push(("avx512, 16 rows ahead", rows_512::<16>));
        }
        ways
    }

    unsafe fn strings(to: *mut u8, from: *const u8, bytes: usize) {
        // SAFETY: BOTH-MAPPED; the direction flag is clear by the ABI.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _,
                inout("rdi") to => _,
                inout("rsi") from => _,
                options(nostack, preserves_flags)
            );
        }
    }

    unsafe fn string_rows(to: *mut u8, from: *const u8, rows: &Rows) {
        for row in 0..rows.count {
            // SAFETY: BOTH-MAPPED, row by row.
            unsafe { strings(to.add(row * rows.to), from.add(row * rows.from), rows.row) }
        }
    }

    /// A plain loop of four vectors, then of one, then whatever is left.
    macro_rules! copy {
        ($name:ident, $feature:literal, $bytes:literal, $load:ident, $store:ident) => {
            #[target_feature(enable = $feature)]
            unsafe fn $name(to: *mut u8, from: *const u8, bytes: usize) {
                const SIZE: usize = $bytes;
                let mut at = 0;
                // SAFETY: BOTH-MAPPED: each step moves what lies between `at` and `bytes`, and `stream_256` is
                // called where the target is aligned.
                unsafe {
                    while at + 4 * SIZE <= bytes {
                        let four: [_; 4] = [
                            $load(from.add(at).cast()),
                            $load(from.add(at + SIZE).cast()),
                            $load(from.add(at + 2 * SIZE).cast()),
                            $load(from.add(at + 3 * SIZE).cast()),
                        ];
                        $store(to.add(at).cast(), four[0]);
                        $store(to.add(at + SIZE).cast(), four[1]);
                        $store(to.add(at + 2 * SIZE).cast(), four[2]);
                        $store(to.add(at + 3 * SIZE).cast(), four[3]);
                        at += 4 * SIZE;
                    }
                    while at + SIZE <= bytes {
                        $store(to.add(at).cast(), $load(from.add(at).cast()));
                        at += SIZE;
                    }
                    if at < bytes {
                        memcpy(to.add(at), from.add(at), bytes - at);
                    }
                }
            }
        };
    }
    copy!(copy_256, "avx2", 32, _mm256_loadu_si256, _mm256_storeu_si256);
    copy!(copy_512, "avx512f", 64, _mm512_loadu_si512, _mm512_storeu_si512);
    copy!(stream_cached_end, "avx2", 32, _mm256_loadu_si256, _mm256_stream_si256);

    #[target_feature(enable = "avx2")]
    unsafe fn stream_256(to: *mut u8, from: *const u8, bytes: usize) {
        assert!(to.addr().is_multiple_of(32));
        // SAFETY: BOTH-MAPPED; aligned, as was just checked.
        unsafe { stream_cached_end(to, from, bytes) };
        _mm_sfence();
    }

    macro_rules! add {
        ($name:ident, $feature:literal, $lanes:literal, $set:ident, $load:ident, $store:ident, $mul:ident, $add:ident) => {
            #[target_feature(enable = $feature)]
            unsafe fn $name(to: *mut f64, from: *const f64, numbers: usize) {
                const LANES: usize = $lanes;
                let a = $set(black_box(SCALE));
                let mut at = 0;
                // SAFETY: BOTH-MAPPED: each step works on what lies between `at` and `numbers`.
                unsafe {
                    while at + 4 * LANES <= numbers {
                        let four: [_; 4] = [
                            $add($load(to.add(at)), $mul(a, $load(from.add(at)))),
                            $add($load(to.add(at + LANES)), $mul(a, $load(from.add(at + LANES)))),
                            $add($load(to.add(at + 2 * LANES)), $mul(a, $load(from.add(at + 2 * LANES)))),
                            $add($load(to.add(at + 3 * LANES)), $mul(a, $load(from.add(at + 3 * LANES)))),
                        ];
                        $store(to.add(at), four[0]);
                        $store(to.add(at + LANES), four[1]);
                        $store(to.add(at + 2 * LANES), four[2]);
                        $store(to.add(at + 3 * LANES), four[3]);
                        at += 4 * LANES;
                    }
                    while at + LANES <= numbers {
                        $store(to.add(at), $add($load(to.add(at)), $mul(a, $load(from.add(at)))));
                        at += LANES;
                    }
                    if at < numbers {
                        add_scaled(to.add(at), from.add(at), numbers - at);
                    }
                }
            }
        };
    }
    add!(add_256, "avx2", 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_mul_pd, _mm256_add_pd);
    add!(add_512, "avx512f", 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_mul_pd, _mm512_add_pd);

    /// Rows of whole vectors; `AHEAD` rows ahead are asked for, unless it is 0.
    macro_rules! rows {
        ($name:ident, $feature:literal, $bytes:literal, $load:ident, $store:ident) => {
            #[target_feature(enable = $feature)]
            unsafe fn $name<const AHEAD: usize>(to: *mut u8, from: *const u8, rows: &Rows) {
                const SIZE: usize = $bytes;
                let (mut to, mut from) = (to, from);
                for _ in 0..rows.count {
                    if AHEAD > 0 {
                        _mm_prefetch::<_MM_HINT_T0>(to.wrapping_add(AHEAD * rows.to).cast());
                        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD * rows.from).cast());
                    }
                    let mut at = 0;
                    while at < rows.row {
                        // SAFETY: BOTH-MAPPED: a row is a whole number of vectors.
                        unsafe { $store(to.add(at).cast(), $load(from.add(at).cast())) };
                        at += SIZE;
                    }
                    (to, from) = (to.wrapping_add(rows.to), from.wrapping_add(rows.from));
                }
            }
        };
    }
    rows!(rows_128, "sse2", 16, _mm_loadu_si128, _mm_storeu_si128);
    rows!(rows_256, "avx2", 32, _mm256_loadu_si256, _mm256_storeu_si256);
    rows!(rows_512, "avx512f", 64, _mm512_loadu_si512, _mm512_storeu_si512);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_copy_copies() {
        let from: Vec<u8> = (0..1000u32).map(|at| (at % 251) as u8).collect();
        for bytes in [0, 1, 31, 64, 100, 256, 999] {
            for (_, way) in copies() {
                let mut to = vec![0; 1000];
                // SAFETY: BOTH-MAPPED: two vectors of their own, of at least so many bytes.
                unsafe { way(to.as_mut_ptr(), from.as_ptr(), bytes) };
                assert_eq!(to[..bytes], from[..bytes]);
                assert!(to[bytes..].iter().all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn every_loop_adds() {
        let from: Vec<f64> = (0..100).map(f64::from).collect();
        for numbers in [0, 1, 7, 33, 100] {
            for (_, way) in loops() {
                let mut to = vec![1.0; 100];
                // SAFETY: BOTH-MAPPED: two vectors of their own, of at least so many numbers.
                unsafe { way(to.as_mut_ptr(), from.as_ptr(), numbers) };
                for at in 0..100 {
                    assert_eq!(to[at], if at < numbers { 1.0 + SCALE * from[at] } else { 1.0 });
                }
            }
        }
    }

    #[test]
    fn every_way_of_rows_copies_rows() {
        for row in [16, 64, 256] {
            let from: Vec<u8> = (0..5 * row).map(|at| (at % 251) as u8).collect();
            for (_, way) in rows(row) {
                let mut to = vec![0; 10 * row];
                // SAFETY: BOTH-MAPPED: five rows one after the other here, two lengths apart there.
                unsafe { way(to.as_mut_ptr(), from.as_ptr(), &Rows { row, count: 5, to: 2 * row, from: row }) };
                for (to, from) in to.chunks(2 * row).zip(from.chunks(row)) {
                    assert_eq!(&to[..row], from);
                    assert!(to[row..].iter().all(|byte| *byte == 0));
                }
            }
        }
    }
}
