//! What one core can do to a megabyte: the best of several copies, the best of several loops `y += a * x`.
//!
//! None of it is the runtime's code: it is what the runtime's copies and loops are held against.
//!
//! # Safety
//! FEATURE-FOUND: a function compiled for an instruction set is called only where the processor said it has it.
//! EQUAL-LENGTH: both sides of a copy are slices of the same length, checked.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::contiguous::MIB;
use crate::figure::Figure;
use crate::line::{Cores, pin};
use crate::timing::{Pages, sample_plain};

/// Nanoseconds to copy and to accumulate 1 MiB, warm: the best way's.
pub struct Bulk {
    /// `y = x`.
    pub copy: Option<Figure>,
    /// `y = x` where the other core has just written `y`.
    pub copy_dirty: Option<Figure>,
    /// `y += a * x`.
    pub accumulate: Option<Figure>,
}

type Copy = fn(&mut [f64], &[f64]);

/// The best of several ways.
fn best(ways: &[Copy], measure: impl FnMut(&Copy) -> Option<Figure>) -> Option<Figure> {
    ways.iter().filter_map(measure).min_by(|a, b| a.median.total_cmp(&b.median))
}

/// Measures them all on the origin's core.
pub fn bulk(cores: Cores, samples: usize) -> Bulk {
    let warm = std::thread::scope(|scope| {
        let timed = scope.spawn(|| {
            pin(cores.origin);
            let (from, mut to) = (Pages::new(MIB, 1.0), Pages::new(MIB, 0.0));
            [copies(), loops()].map(|ways| {
                best(&ways, |way| sample_plain(samples, 2, || way(to.numbers_mut(), black_box(from.numbers()))))
            })
        });
        timed.join().unwrap_or([None; 2])
    });
    let [copy, accumulate] = warm;
    Bulk { copy, copy_dirty: best(&copies(), |way| dirty(cores, samples, *way)), accumulate }
}

/// A copy over what the owner's core has just written: the two cores take turns.
fn dirty(cores: Cores, samples: usize, way: Copy) -> Option<Figure> {
    let to = Mutex::new(Pages::new(MIB, 0.0));
    let turn = AtomicUsize::new(0);
    let take_turns = |cpu: usize, first: usize, action: &mut dyn FnMut(&mut [f64], &[f64])| {
        pin(cpu);
        let from = Pages::new(MIB, 1.0);
        for mine in (first..2 * samples).step_by(2) {
            while turn.load(Ordering::Acquire) != mine {
                std::hint::spin_loop();
            }
            if let Ok(mut to) = to.lock() {
                action(to.numbers_mut(), black_box(from.numbers()));
            }
            turn.store(mine + 1, Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| take_turns(cores.owner, 0, &mut |to, from| add_scaled(to, from)));
        let timed = scope.spawn(|| {
            let mut taken = Vec::with_capacity(samples);
            take_turns(cores.origin, 1, &mut |to, from| {
                let start = Instant::now();
                way(to, from);
                taken.push(start.elapsed().as_secs_f64() * 1e9);
            });
            Figure::of(taken)
        });
        timed.join().unwrap_or(None)
    })
}

fn plain_copy(to: &mut [f64], from: &[f64]) {
    to.copy_from_slice(from);
}

#[inline(always)]
fn add_scaled(to: &mut [f64], from: &[f64]) {
    let a = black_box(1.5);
    for (y, x) in to.iter_mut().zip(from) {
        *y += a * x;
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn copies() -> Vec<Copy> {
    vec![plain_copy]
}

#[cfg(not(target_arch = "x86_64"))]
fn loops() -> Vec<Copy> {
    vec![add_scaled]
}

#[cfg(target_arch = "x86_64")]
use x86::{copies, loops};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Copy, add_scaled, plain_copy};
    use std::arch::x86_64::{
        _mm_sfence, _mm256_load_pd, _mm256_store_pd, _mm256_stream_pd, _mm512_load_pd, _mm512_store_pd,
    };

    pub(super) fn copies() -> Vec<Copy> {
        let mut ways: Vec<Copy> = vec![plain_copy, strings];
        if is_x86_feature_detected!("avx2") {
            // SAFETY: FEATURE-FOUND, by the line above.
            ways.push(|to, from| unsafe { vectors_256(to, from) });
            // SAFETY: as above.
            ways.push(|to, from| unsafe { stream_256(to, from) });
        }
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: FEATURE-FOUND, by the line above.
            ways.push(|to, from| unsafe { vectors_512(to, from) });
        }
        ways
    }

    pub(super) fn loops() -> Vec<Copy> {
        let mut ways: Vec<Copy> = vec![add_scaled];
        if is_x86_feature_detected!("avx2") {
            // SAFETY: FEATURE-FOUND, by the line above.
            ways.push(|to, from| unsafe { add_256(to, from) });
        }
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: FEATURE-FOUND, by the line above.
            ways.push(|to, from| unsafe { add_512(to, from) });
        }
        ways
    }

    fn strings(to: &mut [f64], from: &[f64]) {
        assert_eq!(to.len(), from.len());
        // SAFETY: EQUAL-LENGTH; the direction flag is clear by the ABI.
        unsafe {
            std::arch::asm!(
                "rep movsq",
                inout("rcx") to.len() => _,
                inout("rdi") to.as_mut_ptr() => _,
                inout("rsi") from.as_ptr() => _,
                options(nostack, preserves_flags)
            );
        }
    }

    macro_rules! vectors {
        ($name:ident, $feature:literal, $lanes:literal, $load:ident, $store:ident) => {
            #[target_feature(enable = $feature)]
            fn $name(to: &mut [f64], from: &[f64]) {
                assert!(to.as_ptr().addr() % 64 == 0 && from.as_ptr().addr() % 64 == 0);
                for (y, x) in to.chunks_exact_mut(2 * $lanes).zip(from.chunks_exact(2 * $lanes)) {
                    // SAFETY: each chunk holds two vectors, and begins on a multiple of their size as the slices do.
                    unsafe {
                        let (low, high) = ($load(x.as_ptr()), $load(x.as_ptr().add($lanes)));
                        $store(y.as_mut_ptr(), low);
                        $store(y.as_mut_ptr().add($lanes), high);
                    }
                }
                _mm_sfence();
            }
        };
    }
    vectors!(vectors_256, "avx2", 4, _mm256_load_pd, _mm256_store_pd);
    vectors!(stream_256, "avx2", 4, _mm256_load_pd, _mm256_stream_pd);
    vectors!(vectors_512, "avx512f", 8, _mm512_load_pd, _mm512_store_pd);

    #[target_feature(enable = "avx2")]
    fn add_256(to: &mut [f64], from: &[f64]) {
        add_scaled(to, from);
    }

    #[target_feature(enable = "avx512f")]
    fn add_512(to: &mut [f64], from: &[f64]) {
        add_scaled(to, from);
    }
}
