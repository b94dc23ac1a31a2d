//! What one core can do to a megabyte: the best of several copies, the best of several loops `y += a * x`.
//!
//! None of it is the runtime's code: it is what the runtime's copies and loops are held against.
//!
//! # Safety
//! TWO-MEGABYTES: source and target are page-aligned buffers of [`MIB`] bytes of their own, the target held by
//! exclusive reference: what `ways` calls BOTH-MAPPED, and enough alignment for stores past the caches.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::contiguous::MIB;
use crate::figure::Figure;
use crate::line::{Cores, pin};
use crate::timing::{Pages, sample_plain};
use crate::ways::{Copy, Loop, Way, copies, loops, streams};

/// Nanoseconds to copy and to accumulate 1 MiB, warm: the best way's.
pub struct Bulk {
    /// `y = x`.
    pub copy: Option<Figure>,
    /// `y = x` where the other core has just written `y`.
    pub copy_dirty: Option<Figure>,
    /// `y += a * x`.
    pub accumulate: Option<Figure>,
}

/// The best of several ways.
fn best<F: std::marker::Copy>(ways: &[Way<F>], mut measure: impl FnMut(F) -> Option<Figure>) -> Option<Figure> {
    ways.iter().filter_map(|(_, way)| measure(*way)).min_by(|a, b| a.median.total_cmp(&b.median))
}

/// Every copy of a megabyte to a page.
fn all_copies() -> Vec<Way<Copy>> {
    copies().into_iter().chain(streams()).collect()
}

fn copy(way: Copy, to: &mut Pages, from: &Pages) {
    // SAFETY: TWO-MEGABYTES.
    unsafe { way(to.numbers_mut().as_mut_ptr().cast(), black_box(from.numbers()).as_ptr().cast(), MIB) }
}

fn add(way: Loop, to: &mut Pages, from: &Pages) {
    // SAFETY: TWO-MEGABYTES.
    unsafe { way(to.numbers_mut().as_mut_ptr(), black_box(from.numbers()).as_ptr(), MIB / 8) }
}

/// Measures them all on the origin's core.
pub fn bulk(cores: Cores, samples: usize) -> Bulk {
    let warm = std::thread::scope(|scope| {
        let timed = scope.spawn(|| {
            pin(cores.origin);
            let (from, mut to) = (Pages::new(MIB, 1.0), Pages::new(MIB, 0.0));
            let copied = best(&all_copies(), |way| sample_plain(samples, 2, || copy(way, &mut to, &from)));
            (copied, best(&loops(), |way| sample_plain(samples, 2, || add(way, &mut to, &from))))
        });
        timed.join().unwrap_or((None, None))
    });
    let (copy, accumulate) = warm;
    Bulk { copy, copy_dirty: best(&all_copies(), |way| dirty(cores, samples, way)), accumulate }
}

/// A copy over what the owner's core has just written: the two cores take turns.
fn dirty(cores: Cores, samples: usize, way: Copy) -> Option<Figure> {
    let to = Mutex::new(Pages::new(MIB, 0.0));
    let turn = AtomicUsize::new(0);
    let take_turns = &|cpu: usize, first: usize, action: &mut dyn FnMut(&mut Pages, &Pages)| {
        pin(cpu);
        let from = Pages::new(MIB, 1.0);
        for mine in (first..2 * samples).step_by(2) {
            while turn.load(Ordering::Acquire) != mine {
                std::hint::spin_loop();
            }
            if let Ok(mut to) = to.lock() {
                action(&mut to, &from);
            }
            turn.store(mine + 1, Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        let (_, write) = loops()[0];
        scope.spawn(move || take_turns(cores.owner, 0, &mut |to, from| add(write, to, from)));
        let timed = scope.spawn(|| {
            let mut taken = Vec::with_capacity(samples);
            take_turns(cores.origin, 1, &mut |to, from| {
                let start = Instant::now();
                copy(way, to, from);
                taken.push(start.elapsed().as_secs_f64() * 1e9);
            });
            Figure::of(taken)
        });
        timed.join().unwrap_or(None)
    })
}
