//! The one wait: spin briefly, then sleep in the kernel until a peer rings.
//!
//! Every wait for another rank goes through [`wait_until`]. While it spins it
//! also helps: whatever can be advanced meanwhile (the service context) is
//! advanced by whoever is awake.
//!
//! It never yields to the scheduler. Next to a computing thread that costs a
//! time slice, 4 ms; and even among ranks that all wait for each other, on
//! fewer cores, it was measured slower than sleeping by a factor of ten
//! (Linux 6.18, 8 ranks on 2 cores: barrier 0.6-1.8 ms against 0.06).

use std::time::{Duration, Instant};

use super::bell::Bell;
use crate::primitive::spin_loop;

/// How often the clock is looked at while spinning.
const LOOKS_PER_CLOCK: u32 = 64;

/// What a waiting thread does besides waiting.
pub(crate) trait Help {
    /// The thread begins to spin.
    fn enter(&self);
    /// Does what can be done now; whether there was anything.
    fn help(&self) -> bool;
    /// Whether there is something to be done.
    fn has_work(&self) -> bool;
    /// The thread stops spinning: it goes to sleep, or its wait is over.
    fn leave(&self);
    /// Runs `sleep`, in which the thread sleeps.
    fn asleep(&self, sleep: impl FnOnce());
}

/// Waits until `ready`, helping meanwhile; sleeps on `bell` after spinning for `spin` in vain.
///
/// Whoever makes `ready` true, or gives `help` work, must ring `bell` afterwards.
#[inline]
pub(crate) fn wait_until(bell: &Bell, spin: Duration, help: &impl Help, mut ready: impl FnMut() -> bool) {
    if !ready() {
        wait_long(bell, spin, help, &mut ready);
    }
}

fn wait_long(bell: &Bell, spin: Duration, help: &impl Help, ready: &mut impl FnMut() -> bool) {
    help.enter();
    let mut deadline = None;
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            if ready() {
                help.leave();
                return;
            }
            if help.help() {
                deadline = None;
            }
            spin_loop();
        }
        let now = Instant::now();
        if now >= *deadline.get_or_insert(now + spin) {
            help.leave();
            help.asleep(|| bell.sleep_unless(|| ready() || help.has_work()));
            help.enter();
            deadline = None;
        }
    }
}
