//! How much of a non-blocking transfer hides behind computation: a transfer alone, as long a computation alone, and both,
//! the computation between start and wait. All of the shorter hidden is 100 %; none, 0 %.
//!
//! Over the memory of a node the processor itself copies, so nothing hides, and need not: what counts is that by message
//! or between nodes a transfer goes on while its rank computes.

use std::time::{Duration, Instant};

use armci_core::World;

use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::record::Record;
use crate::setup::{Notes, Setup};
use crate::stats::{Stats, batches};
use crate::timing::compute_unit;

/// Bytes of a transfer.
const SIZES: [usize; 5] = [1 << 10, 4 << 10, 16 << 10, 128 << 10, MIB];

/// Measures; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, setup: &Setup, notes: &mut Notes) -> Result<()> {
    let (effort, sizes) = (setup.effort(), if setup.sizes.is_empty() { &SIZES[..] } else { &setup.sizes });
    let target = Target::allocate(world, sizes.iter().copied().max().unwrap_or(8))?;
    if world.rank() == 1 {
        for &bytes in sizes {
            for (name, put) in [("put", true), ("get", false)] {
                let mut buffer = vec![1.0f64; bytes / 8];
                let mut transfer = |compute: &mut dyn FnMut()| {
                    let mine = std::mem::take(&mut buffer);
                    let handle =
                        if put { world.put_nb(mine, target.on(0))? } else { world.get_nb(target.on(0), mine)? };
                    compute();
                    buffer = handle.wait()?;
                    // A put is over when it is there.
                    if put { world.fence(0) } else { Ok(()) }
                };
                let samples = (effort.samples / 4).max(10);
                let alone = batches(samples, effort.window / 2, || transfer(&mut || {}))?;
                let Some(alone) = alone else { continue };
                let length = Duration::from_nanos(alone.median as u64);
                let computation = batches(samples, effort.window / 2, || {
                    compute(length);
                    Ok::<(), armci_core::Error>(())
                })?;
                let both = batches(samples, effort.window / 2, || transfer(&mut || compute(length)))?;
                if let (Some(computation), Some(both)) = (computation, both) {
                    let id = format!("overlap/{name}");
                    notes.time(
                        &format!("{id}/alone"),
                        "bytes",
                        bytes,
                        Some(alone),
                        setup.limit(format!("copy/{bytes}")),
                    );
                    notes.add(Record::new(id, hidden(alone, computation, both), "share").at("bytes", bytes as f64));
                }
            }
        }
    }
    target.free(world)
}

/// Computes for so long, without a call.
fn compute(length: Duration) {
    let begin = Instant::now();
    let mut x = 1.0;
    // Pieces of 10 us are too long for a small transfer.
    while begin.elapsed() < length {
        if length > Duration::from_micros(100) {
            x = compute_unit(x);
        } else {
            std::hint::spin_loop();
        }
    }
    std::hint::black_box(x);
}

/// The share of the shorter that is hidden.
fn hidden(transfer: Stats, computation: Stats, both: Stats) -> f64 {
    let shorter = transfer.median.min(computation.median);
    ((transfer.median + computation.median - both.median) / shorter).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_a_share_of_the_shorter() {
        let of = |value: f64| Stats::of(vec![value]).unwrap();
        assert_eq!(hidden(of(10.0), of(10.0), of(20.0)), 0.0);
        assert_eq!(hidden(of(10.0), of(10.0), of(10.0)), 1.0);
        assert_eq!(hidden(of(10.0), of(12.0), of(17.0)), 0.5);
        assert_eq!(hidden(of(10.0), of(10.0), of(30.0)), 0.0, "hindered is not less than not hidden");
    }
}
