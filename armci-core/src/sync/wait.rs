//! The one wait: spin briefly, then sleep in the kernel until a peer rings.
//!
//! Every wait for another rank's doing goes through [`wait_until`] (a full
//! inbox, for which nobody rings, and the element locks, which have a futex of
//! their own, are the exceptions). While it spins it also helps: whatever can
//! be advanced meanwhile (the service context) is advanced by whoever is awake.
//!
//! A wait for one rank never yields to the scheduler: next to a computing
//! thread that costs a time slice, 4 ms. Where *all* ranks of a node wait for
//! each other and there are more of them than cores, a yield hands the core to
//! the next rank far cheaper than a sleep and a wake-up (8 ranks on 2 cores: a
//! barrier in 5 us against 25). Whether nobody computes there is found out by
//! trying: a yield that takes long gave the core to a stranger, and the next
//! waits, more each time it happens, sleep at once. [`Patience`] keeps that account.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::primitive::spin_loop;

/// How often the clock is looked at while spinning.
const LOOKS_PER_CLOCK: u32 = 64;
/// A yield that took longer gave the core to somebody who computes.
const SLOW_YIELD: Duration = Duration::from_micros(100);
/// How many waits go without yielding after one slow yield, and at most after many.
const DISTRUST: u32 = 64;
const DISTRUST_MAX: u32 = 4096;

/// How a wait spends its time before it sleeps.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    yields: bool,
    /// Waits that still go without yielding, and how many the next slow yield costs.
    distrust: Cell<u32>,
    penalty: Cell<u32>,
}

impl Patience {
    /// Spins for `limit`.
    pub(crate) fn spinning(limit: Duration) -> Self {
        Patience { limit, yields: false, distrust: Cell::new(0), penalty: Cell::new(DISTRUST) }
    }

    /// Yields for `limit`: for waits of all for all, on fewer cores.
    pub(crate) fn yielding(limit: Duration) -> Self {
        Patience { yields: true, ..Self::spinning(limit) }
    }

    /// Whether this wait is to yield, and how long it is to stay awake.
    fn begin(&self) -> (bool, Duration) {
        match self.distrust.get() {
            0 => (self.yields, self.limit),
            left => {
                self.distrust.set(left - 1);
                (false, Duration::ZERO)
            }
        }
    }

    /// Takes note of how long yields took.
    fn judge(&self, slow: bool) {
        let penalty = self.penalty.get();
        if slow {
            self.distrust.set(penalty);
            self.penalty.set((penalty * 2).min(DISTRUST_MAX));
        } else {
            self.penalty.set((penalty / 2).max(DISTRUST));
        }
    }
}

/// What a waiting thread does besides waiting.
pub(crate) trait Help {
    /// The thread begins to spin.
    fn enter(&self);
    /// Does what can be done now; whether there was anything.
    fn help(&self) -> bool;
    /// The thread stops spinning: it goes to sleep, or its wait is over.
    fn leave(&self);
}

/// Waits until `ready`, helping meanwhile; calls `sleep` once `patience` is over.
///
/// `sleep` must return once `ready` may have become true, or there may be something to help with. It says whether anything
/// told it so: then it is worth spinning again; otherwise its caller looks, and goes on sleeping.
#[inline]
pub(crate) fn wait_until(
    patience: &Patience,
    help: &impl Help,
    mut sleep: impl FnMut(&mut dyn FnMut() -> bool) -> bool,
    mut ready: impl FnMut() -> bool,
) {
    if !ready() {
        wait_long(patience, help, &mut sleep, &mut ready);
    }
}

fn wait_long(
    patience: &Patience,
    help: &impl Help,
    sleep: &mut dyn FnMut(&mut dyn FnMut() -> bool) -> bool,
    ready: &mut dyn FnMut() -> bool,
) {
    let (yields, limit) = patience.begin();
    help.enter();
    // The clock is read only once the first looks were in vain.
    let mut deadline = None;
    // Whether it has slept, and nothing has told it to wake.
    let mut untold = false;
    loop {
        let looks = if yields || untold { 1 } else { LOOKS_PER_CLOCK };
        for _ in 0..looks {
            if ready() {
                help.leave();
                if yields {
                    patience.judge(false);
                }
                return;
            }
            if help.help() {
                (deadline, untold) = (None, false);
            }
            spin_loop();
        }
        let mut now = Instant::now();
        let until = *deadline.get_or_insert(now + limit);
        if yields {
            std::thread::yield_now();
            let before = std::mem::replace(&mut now, Instant::now());
            if now - before > SLOW_YIELD {
                patience.judge(true);
                help.leave();
                return wait_until(patience, help, sleep, ready);
            }
        }
        if now >= until {
            help.leave();
            untold = !sleep(ready);
            help.enter();
            if !untold {
                deadline = None;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Idle;

    impl Help for Idle {
        fn enter(&self) {}
        fn help(&self) -> bool {
            false
        }
        fn leave(&self) {}
    }

    #[test]
    fn who_is_told_nothing_looks_once_and_sleeps_again() {
        let (looks, naps, mut before) = (Cell::new(0), Cell::new(0), Vec::new());
        let sleep = |_: &mut dyn FnMut() -> bool| {
            before.push(looks.take());
            naps.set(naps.get() + 1);
            // The third time it is told something.
            naps.get() == 3
        };
        wait_until(&Patience::spinning(Duration::ZERO), &Idle, sleep, || {
            looks.set(looks.get() + 1);
            naps.get() == 6
        });
        assert_eq!(before, [LOOKS_PER_CLOCK + 1, 1, 1, LOOKS_PER_CLOCK, 1, 1]);
    }
}
