//! The machine's own limits, in one go, and how busy others keep it.

use std::time::Duration;

use crate::counter::PACE;
use crate::figure::Figures;
use crate::line::{self, Cores};
use crate::timing::Effort;
use crate::{limits, tcp, wake};

/// Measures every limit that a row refers to.
pub fn measure(cores: Cores, effort: Effort) -> Figures {
    let mut figures = Figures::default();
    let (add, word) = line::owned(cores, effort.samples);
    figures.add("owned_add", add);
    figures.add("owned_word", word);
    let bulk = limits::bulk(cores, effort.samples);
    figures.add("copy_1m", bulk.copy);
    figures.add("copy_dirty", bulk.copy_dirty);
    figures.add("loop_1m", bulk.accumulate);
    figures.add("served", wake::served(cores, effort.window, None));
    figures.add("served_paced", wake::served(cores, effort.window, Some(PACE)));
    figures.add("barrier_2", wake::barrier_of_two(cores, effort.samples));
    figures.add("barrier_8", wake::barrier_of_eight(effort.samples));
    figures.add("tcp_8", tcp::round_trip(cores, effort.samples));
    figures
}

/// Processor time since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    busy: u64,
    all: u64,
}

impl Load {
    /// The share of all cores that is used while this program sleeps for a moment; 0 if the kernel does not say.
    pub fn of_others() -> f64 {
        let Some(before) = Load::now() else { return 0.0 };
        std::thread::sleep(Duration::from_millis(300));
        Load::now().map_or(0.0, |now| (now.busy - before.busy) as f64 / (now.all - before.all).max(1) as f64)
    }

    fn now() -> Option<Self> {
        Load::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the line of all processors: user, nice, system, idle, waiting, ...
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .take(8)
            .collect();
        let all = fields.iter().sum();
        let idle: u64 = fields.get(3..5)?.iter().sum();
        Some(Load { busy: all - idle, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_are_not_busy() {
        let load = Load::parse("cpu  10 1 5 80 4 0 0 0 0 0\ncpu0 1 1 1 1\n");
        assert_eq!(load, Some(Load { busy: 16, all: 100 }));
        assert_eq!(Load::parse("nonsense"), None);
    }
}
