//! What one core can do to a megabyte: the best of several copies, the best of several loops `y += a * x`.
//!
//! None of it is the runtime's code: it is what the runtime's copies and loops are held against.
//!
//! # Safety
//! TWO-MEGABYTES: source and target are page-aligned buffers of [`MIB`] bytes of their own, or of at least as many as
//! are worked on, the target held by exclusive reference: what `ways` calls BOTH-MAPPED, and enough alignment for
//! stores past the caches.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ndarray::Array2;
use ndarray::linalg::general_mat_mul;

use crate::contiguous::MIB;
use crate::figure::Figure;
use crate::line::{Cores, pin};
use crate::timing::{Pages, batch_for, sample, sample_plain};
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

/// The best way to copy so many bytes, warm, on the origin's core.
pub fn copy_of(cores: Cores, bytes: usize, samples: usize) -> Option<Figure> {
    // Stores past the caches are for whole lines, and for much.
    let ways = if bytes.is_multiple_of(4096) { all_copies() } else { copies() };
    on_origin(cores, move || {
        let (from, mut to) = (Pages::new(bytes, 1.0), Pages::new(bytes, 0.0));
        best(&ways, |way| {
            sample_plain(samples, batch_for(bytes), || {
                // SAFETY: TWO-MEGABYTES.
                unsafe { way(to.numbers_mut().as_mut_ptr().cast(), black_box(from.numbers()).as_ptr().cast(), bytes) }
            })
        })
    })
}

/// The best loop `y += a * x` over so many bytes, warm, on the origin's core.
pub fn loop_of(cores: Cores, bytes: usize, samples: usize) -> Option<Figure> {
    on_origin(cores, move || {
        let (from, mut to) = (Pages::new(bytes, 1.0), Pages::new(bytes, 0.0));
        best(&loops(), |way| {
            sample_plain(samples, batch_for(bytes), || {
                // SAFETY: TWO-MEGABYTES.
                unsafe { way(to.numbers_mut().as_mut_ptr(), black_box(from.numbers()).as_ptr(), bytes / 8) }
            })
        })
    })
}

/// A thousand million operations of the local library's product of matrices, on the origin's core.
pub fn product(cores: Cores, samples: usize) -> Option<Figure> {
    const LENGTH: usize = 384;
    on_origin(cores, move || {
        let (a, b) = (Array2::<f64>::ones((LENGTH, LENGTH)), Array2::<f64>::ones((LENGTH, LENGTH)));
        let mut c = Array2::zeros((LENGTH, LENGTH));
        let took = sample_plain(samples, 1, || general_mat_mul(1.0, black_box(&a), &b, 0.0, &mut c));
        took.map(|took| took.scaled(1e9 / (2 * LENGTH * LENGTH * LENGTH) as f64))
    })
}

fn on_origin(cores: Cores, measure: impl FnOnce() -> Option<Figure> + Send) -> Option<Figure> {
    let timed = || {
        pin(cores.origin);
        measure()
    };
    std::thread::scope(|scope| scope.spawn(timed).join().unwrap_or(None))
}

/// The round trip of 8 bytes through the loopback's TCP, both sides looking without a pause.
pub fn tcp(cores: Cores, samples: usize) -> Option<Figure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let place = listener.local_addr().ok()?;
    let connect = move || -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(place)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    std::thread::scope(|scope| {
        let served = scope.spawn(move || -> std::io::Result<()> {
            pin(cores.owner);
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut word = [0; 8];
            while exactly(&mut stream, &mut word)? {
                stream.write_all(&word)?;
            }
            Ok(())
        });
        let asked = scope.spawn(move || -> std::io::Result<Option<Figure>> {
            pin(cores.origin);
            let (mut stream, mut word) = (connect()?, [7; 8]);
            sample(samples, 10, || {
                stream.write_all(&word)?;
                if exactly(&mut stream, &mut word)? { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
            })
        });
        let figure = asked.join().ok()?.ok()?;
        served.join().ok()?.ok()?;
        figure
    })
}

/// Reads so many bytes, spinning; false where the other side has closed before the first.
fn exactly(stream: &mut TcpStream, bytes: &mut [u8]) -> std::io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_comes_back_and_ends() {
        let figure = tcp(Cores { owner: 0, origin: 0 }, 2).expect("the loopback");
        assert!(figure.median > 0.0);
    }
}
