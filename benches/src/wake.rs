//! What threads of one process, written for this one purpose, need to wait for each other: the limits of the served
//! counter and of the barriers.
//!
//! - *served*: a thread that sleeps on a futex beside a computing thread, on one core, answers requests from the
//!   other core. This is the least a progress thread has to do.
//! - *barrier of 2*: each writes a word of its own and spins on the other's.
//! - *barrier of 8*: arrivals are counted, and all but the last sleep until it wakes them.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::futex;

use crate::figure::Figure;
use crate::line::{Cores, Lonely, pin};
use crate::timing::{compute_unit, sample_plain, spin_for};

/// Something to sleep on, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

impl Word {
    fn sleep_while(&self, value: u32) {
        // Whatever makes it return early, the caller looks again.
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, value, None);
    }

    fn wake_all(&self) {
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

/// The round trip to a server that shares its core with a computing thread, for requests `pace` apart.
pub fn served(cores: Cores, window: Duration, pace: Option<Duration>) -> Option<Figure> {
    let [request, answer, asleep] = <[Word; 3]>::default();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cores.owner);
            let mut x = 1.0;
            while !stop.load(Ordering::Relaxed) {
                x = compute_unit(x);
            }
            x
        });
        scope.spawn(|| {
            pin(cores.owner);
            while !stop.load(Ordering::Relaxed) {
                let asked = request.0.load(Ordering::Acquire);
                if asked != answer.0.load(Ordering::Relaxed) {
                    answer.0.store(asked, Ordering::Release);
                    continue;
                }
                asleep.0.store(1, Ordering::SeqCst);
                if request.0.load(Ordering::SeqCst) == asked {
                    request.sleep_while(asked);
                }
                asleep.0.store(0, Ordering::SeqCst);
            }
        });
        let drawer = scope.spawn(|| {
            pin(cores.origin);
            let ask = || {
                let asked = request.0.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
                if asleep.0.load(Ordering::SeqCst) != 0 {
                    request.wake_all();
                }
                while answer.0.load(Ordering::Acquire) != asked {
                    std::hint::spin_loop();
                }
            };
            let (begin, mut samples) = (Instant::now(), Vec::new());
            while begin.elapsed() < window {
                if let Some(pause) = pace {
                    spin_for(pause);
                }
                let start = Instant::now();
                ask();
                samples.push(start.elapsed().as_secs_f64() * 1e9);
            }
            stop.store(true, Ordering::Relaxed);
            request.0.fetch_add(1, Ordering::SeqCst);
            request.wake_all();
            Figure::of(samples)
        });
        drawer.join().unwrap_or(None)
    })
}

/// The barrier of two spinning threads.
pub fn barrier_of_two(cores: Cores, samples: usize) -> Option<Figure> {
    let words = [Lonely::default(), Lonely::default()];
    let run = |me: usize, cpu: usize| {
        pin(cpu);
        let mut epoch = 0;
        sample_plain(samples, 100, || {
            epoch += 1;
            words[me].0.store(epoch, Ordering::Release);
            while words[1 - me].0.load(Ordering::Acquire) < epoch {
                std::hint::spin_loop();
            }
        })
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(1, cores.origin));
        scope.spawn(|| run(0, cores.owner)).join().unwrap_or(None)
    })
}

/// The barrier of eight sleeping threads, wherever the scheduler puts them.
pub fn barrier_of_eight(samples: usize) -> Option<Figure> {
    const THREADS: u32 = 8;
    let [arrived, epoch] = <[Word; 2]>::default();
    let run = || {
        sample_plain(samples, 10, || {
            let now = epoch.0.load(Ordering::Acquire);
            if arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == THREADS {
                arrived.0.store(0, Ordering::Relaxed);
                epoch.0.store(now.wrapping_add(1), Ordering::Release);
                epoch.wake_all();
            } else {
                while epoch.0.load(Ordering::Acquire) == now {
                    epoch.sleep_while(now);
                }
            }
        })
    };
    std::thread::scope(|scope| {
        for _ in 1..THREADS {
            scope.spawn(run);
        }
        scope.spawn(run).join().unwrap_or(None)
    })
}
