//! Taking time: how much effort to spend, loops of samples, and memory that has been touched.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};

use crate::figure::Figure;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of operations too short to be bounded by time.
    pub samples: usize,
    /// How long a measurement with a computing rank lasts.
    pub window: Duration,
    /// Rounds of all sides in turn.
    pub rounds: usize,
}

impl Effort {
    /// What the published figures are taken with.
    pub const FULL: Effort = Effort { samples: 400, window: Duration::from_millis(400), rounds: 3 };
    /// To see that everything works.
    pub const QUICK: Effort = Effort { samples: 60, window: Duration::from_millis(60), rounds: 1 };
}

/// Times `samples` batches of `batch` calls, after some that do not count; nanoseconds per call.
///
/// # Errors
/// The first error of a call.
pub fn sample<E>(samples: usize, batch: usize, mut call: impl FnMut() -> Result<(), E>) -> Result<Option<Figure>, E> {
    let mut taken = Vec::with_capacity(samples);
    for round in 0..samples + samples / 10 + 2 {
        let start = Instant::now();
        for _ in 0..batch {
            call()?;
        }
        let elapsed = start.elapsed();
        if round >= samples / 10 + 2 {
            taken.push(elapsed.as_secs_f64() * 1e9 / batch as f64);
        }
    }
    Ok(Figure::of(taken))
}

/// [`sample`] of calls that cannot fail.
pub fn sample_plain(samples: usize, batch: usize, mut call: impl FnMut()) -> Option<Figure> {
    let infallible = sample(samples, batch, || {
        call();
        Ok::<(), std::convert::Infallible>(())
    });
    match infallible {
        Ok(figure) => figure,
    }
}

/// One of several things that are timed in turn: so many calls, in a loop of its own.
pub type Side<'a, E> = Box<dyn FnMut(usize) -> Result<(), E> + 'a>;

/// A side that makes this call.
pub fn side<'a, E>(mut call: impl FnMut() -> Result<(), E> + 'a) -> Side<'a, E> {
    Box::new(move |calls| (0..calls).try_for_each(|_| call()))
}

/// Times several things in turn, a batch of each, again and again, so that whatever changes meanwhile meets them all;
/// nanoseconds per call.
///
/// # Errors
/// The first error of a call.
pub fn in_turn<E>(samples: usize, batch: usize, sides: &mut [Side<'_, E>]) -> Result<Vec<Option<Figure>>, E> {
    let mut taken: Vec<Vec<f64>> = sides.iter().map(|_| Vec::with_capacity(samples)).collect();
    let uncounted = samples / 10 + 2;
    for round in 0..samples + uncounted {
        for (side, taken) in sides.iter_mut().zip(&mut taken) {
            let start = Instant::now();
            side(batch)?;
            let elapsed = start.elapsed();
            if round >= uncounted {
                taken.push(elapsed.as_secs_f64() * 1e9 / batch as f64);
            }
        }
    }
    Ok(taken.into_iter().map(Figure::of).collect())
}

/// Calls per sample for an operation on `bytes` bytes, so that reading the clock (20 to 40 ns) does not show.
pub fn batch_for(bytes: usize) -> usize {
    (1000 * 64 / bytes.max(64)).clamp(2, 1000)
}

/// Some 10 microseconds of arithmetic that touches no memory: one unit of a rank's "computation".
pub fn compute_unit(seed: f64) -> f64 {
    let mut x = seed;
    for _ in 0..5000 {
        x = black_box(x) * 0.999_999 + 1e-6;
    }
    x
}

/// Computes for `window`; units per second.
pub fn compute_for(window: Duration) -> f64 {
    let start = Instant::now();
    let (mut units, mut x) = (0u64, 1.0);
    loop {
        x = compute_unit(x);
        units += 1;
        let elapsed = start.elapsed();
        if elapsed >= window {
            black_box(x);
            return units as f64 / elapsed.as_secs_f64();
        }
    }
}

/// Spins, without a call to anybody, until `pause` has passed.
pub fn spin_for(pause: Duration) {
    let start = Instant::now();
    while start.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// A page of numbers.
#[repr(C, align(4096))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Page([f64; 512]);

/// Page-aligned numbers, touched.
pub struct Pages(Vec<Page>);

impl Pages {
    /// At least `bytes` bytes of them, all `value`.
    pub fn new(bytes: usize, value: f64) -> Self {
        Pages(vec![Page([value; 512]); bytes.div_ceil(4096)])
    }

    /// The numbers.
    pub fn numbers(&self) -> &[f64] {
        bytemuck::cast_slice(&self.0)
    }

    /// The numbers, to be changed.
    pub fn numbers_mut(&mut self) -> &mut [f64] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
