//! What a progress thread costs while there is nothing to do: the processor time of all threads but the rank's own,
//! while the rank sleeps outside the library.

use std::fs;
use std::time::{Duration, Instant};

use armci_core::{Reduce, World};

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::Effort;

/// Measures `idle_thread`, a share of a core, the worst rank's; collective, rank 0 reports.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    world.barrier()?;
    // Whoever still looked out for messages has time to fall asleep.
    std::thread::sleep(Duration::from_millis(20));
    let (start, before) = (Instant::now(), others());
    std::thread::sleep(effort.window * 5 / 2);
    let used = others().zip(before).map(|(now, before)| (now - before) / start.elapsed().as_secs_f64());
    // A share is at least 0, so less says that a rank does not know.
    let mut words = [used.unwrap_or(0.0), if used.is_some() { 0.0 } else { 1.0 }];
    world.all_reduce(&mut words, Reduce::Max)?;
    let [worst, unknown] = words;
    if world.rank() == 0 && unknown == 0.0 {
        figures.add("idle_thread", Some(Figure::single(worst)));
    }
    Ok(())
}

/// Seconds of processor time of this process's other threads so far; none if there are none, or the kernel does not
/// say.
fn others() -> Option<f64> {
    let main = std::process::id().to_string();
    let mut sum = None;
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        if thread.file_name().to_str() != Some(&main) {
            *sum.get_or_insert(0.0) += running_time(&fs::read_to_string(thread.path().join("schedstat")).ok()?)?;
        }
    }
    sum
}

/// Reads `schedstat`: nanoseconds on a processor, nanoseconds waiting for one, times it got one.
fn running_time(text: &str) -> Option<f64> {
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_on_a_processor_is_the_first_number() {
        assert_eq!(running_time("2000000000 5 7\n"), Some(2.0));
        assert_eq!(running_time(""), None);
    }
}
