//! A thread that advances whatever can be advanced, and sleeps when there is nothing to do.
//!
//! One-sided communication promises progress while the target computes; somebody has to make it.
//! This crate is that somebody and nothing else: it does not know what it advances.
//!
//! ```text
//!             advance() > 0                    the kernel, or wake()
//!               +-----+                     +--------------------------+
//!               v     |                     v                          |
//!   start ---> busy --+-- advance() = 0 --> spinning -- for `spin` --> parked
//!               ^                             |
//!               +------- advance() > 0 -------+            stop: from anywhere, after at most one wake()
//! ```
//!
//! The thread is polite: it spins for a bounded time ([`Options::spin`]), then sleeps in the kernel
//! until work arrives. It may be pinned to a processor ([`Options::cpu`]), say the SMT sibling of
//! the core that computes, be told to give way or to go before others ([`Options::nice`]), and to take short turns that begin at
//! once ([`Options::slice`]). Where it sits is a matter of
//! speed only: a pin that the system refuses is no error ([`ProgressThread::cpu`] tells). The thread
//! blocks all signals that are sent to the process, so that those go to the program's own threads;
//! faults of its own (`SIGSEGV` and the like) still reach their handlers.
//!
//! A panic inside [`Advance`] ends the process with a message: peers wait for this thread's work,
//! and would wait forever.
//!
//! # Example
//!
//! ```
//! use std::sync::{Arc, Condvar, Mutex};
//! use std::time::Duration;
//! use progress_thread::{Advance, Options, ProgressThread};
//!
//! /// A mailbox: whoever posts a letter rings the bell.
//! #[derive(Default)]
//! struct Mailbox {
//!     state: Mutex<(u32, bool)>, // letters, rung
//!     bell: Condvar,
//! }
//!
//! impl Advance for Mailbox {
//!     fn advance(&self) -> usize {
//!         std::mem::take(&mut self.state.lock().unwrap().0) as usize
//!     }
//!     fn park(&self) {
//!         let idle = |state: &mut (u32, bool)| state.0 == 0 && !state.1;
//!         self.bell.wait_while(self.state.lock().unwrap(), idle).unwrap().1 = false;
//!     }
//!     fn wake(&self) {
//!         self.state.lock().unwrap().1 = true;
//!         self.bell.notify_one();
//!     }
//! }
//!
//! let mailbox = Arc::new(Mailbox::default());
//! let thread = ProgressThread::start(Arc::clone(&mailbox) as Arc<dyn Advance>, Options::named("postman"))?;
//! mailbox.state.lock().unwrap().0 += 3;
//! mailbox.bell.notify_one();
//! while thread.statistics().served < 3 {
//!     std::thread::sleep(Duration::from_millis(1));
//! }
//! assert_eq!(thread.stop().served, 3);
//! # Ok::<(), std::io::Error>(())
//! ```

mod niceness;
mod signals;
mod slice;
mod statistics;

pub use signals::{Blocked, block_all_but_faults};
pub use statistics::Statistics;

use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

use statistics::Counters;

/// How long a thread that goes before others serves at a stretch beside one of them, and how long it then sleeps: however much there
/// is to serve, they get their part.
const STRETCH: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_micros(100);

/// Something that makes progress when it is called, and knows how to wait for a reason to call it.
pub trait Advance: Send + Sync + 'static {
    /// Does what can be done now; returns how many units were done.
    fn advance(&self) -> usize;

    /// Sleeps in the kernel until work may have arrived or [`Advance::wake`] was called.
    /// Level-triggered: returns at once if work is there already, or if a wake has come since the
    /// last `park` returned. Returning for no reason is allowed; the thread will ask again.
    fn park(&self);

    /// Whether to spin now, where [`Options::spin`] allows it, before parking. Asked again and again while the
    /// thread spins: a thread that shares its core says so only while nobody computes there.
    fn may_spin(&self) -> bool {
        true
    }

    /// Wakes the parked thread; if it is not parked, its next [`Advance::park`] returns at once.
    ///
    /// A wake may last: parks after that one may return at once, too. [`ProgressThread`] wakes only
    /// to stop, so an implementation may take the first wake as the word that no park shall sleep
    /// any more; one that also wakes for work would rather sleep again.
    fn wake(&self);
}

/// How a [`ProgressThread`] behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The thread's name, as debuggers show it (the kernel keeps 15 bytes).
    pub name: String,
    /// The processor the thread stays on, if the system allows it; none: where the scheduler puts it,
    /// within the starting thread's mask. The processor may lie outside that mask: whether the mask
    /// is a wish that binds this thread too is for the caller to know.
    pub cpu: Option<usize>,
    /// How long to keep calling [`Advance::advance`] without success before parking, as long as
    /// [`Advance::may_spin`] agrees.
    pub spin: Duration,
    /// How much the thread gives way to others: 0 to 19; or goes before them, down to -20: a wish, taken as far as
    /// the system allows, and not by a process that was told to give way. A thread that goes before others pauses now
    /// and then while [`Advance::may_spin`] says that one of them wants the core. None: as the starting thread.
    pub nice: Option<i32>,
    /// How long the scheduler lets it run at once: a thread of short turns that wakes where another computes has not
    /// that long to wait for its own. A wish, like the processor. None: as the starting thread.
    pub slice: Option<Duration>,
}

impl Options {
    /// An unpinned thread of this name that spins for 50 microseconds.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), cpu: None, spin: Duration::from_micros(50), nice: None, slice: None }
    }
}

/// A running progress thread. Dropping it stops it.
#[derive(Debug)]
pub struct ProgressThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    settled: Settled,
}

/// What came of the wishes.
#[derive(Clone, Copy, Debug)]
struct Settled {
    cpu: Option<usize>,
    nice: Option<i32>,
}

/// What the thread and its owner both see.
struct Shared {
    work: Arc<dyn Advance>,
    stop: AtomicBool,
    counters: Counters,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("stop", &self.stop)
            .field("statistics", &self.counters.read())
            .finish_non_exhaustive()
    }
}

impl ProgressThread {
    /// Starts the thread; when this returns, it has settled ([`ProgressThread::cpu`]) and advances.
    ///
    /// # Errors
    /// If there can be no more threads, or the niceness is not ours to choose.
    pub fn start(work: Arc<dyn Advance>, options: Options) -> io::Result<Self> {
        let shared = Arc::new(Shared { work, stop: AtomicBool::new(false), counters: Counters::default() });
        let (report, settled) = mpsc::sync_channel(1);
        let thread = {
            // The new thread inherits the mask, so no signal ever finds it unprepared.
            let _blocked = block_all_but_faults()?;
            let (shared, name) = (Arc::clone(&shared), options.name.clone());
            thread::Builder::new().name(name).spawn(move || {
                let settling = settle(&options);
                let before_others = settling.as_ref().ok().map(|settled| settled.nice.is_some_and(|nice| nice < 0));
                // The starting thread waits for this; it cannot be gone.
                let _ = report.send(settling);
                if let Some(before_others) = before_others {
                    shared.run_or_abort(&options, before_others);
                }
            })?
        };
        let settled = settled.recv().map_err(|_| io::Error::other("the progress thread died while it started"))??;
        Ok(Self { shared, thread: Some(thread), settled })
    }

    /// The processor the thread is pinned to: that of [`Options::cpu`], or none if none was asked for
    /// or the system refused (it does not exist, is offline, or lies outside our cgroup's cpuset).
    #[must_use]
    pub fn cpu(&self) -> Option<usize> {
        self.settled.cpu
    }

    /// How nice the thread is, if [`Options::nice`] asked for something.
    #[must_use]
    pub fn nice(&self) -> Option<i32> {
        self.settled.nice
    }

    /// Stops the thread and returns what it has done. Work that arrives later is not served.
    #[must_use = "dropping the thread stops it too"]
    pub fn stop(mut self) -> Statistics {
        self.join();
        self.statistics()
    }

    /// What the thread has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.read()
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The flag before the wake: a thread that this wake finds parked sees the flag when it
            // returns.
            self.shared.stop.store(true, Ordering::Release);
            self.shared.work.wake();
            // It cannot have panicked: a panic there ends the process.
            let _ = thread.join();
        }
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.join();
    }
}

/// Applies what the options ask of the calling thread.
fn settle(options: &Options) -> io::Result<Settled> {
    let cpu = options.cpu.filter(|&cpu| pin(cpu));
    let nice = options.nice.map(niceness::set).transpose()?;
    if let Some(slice) = options.slice {
        slice::shorten(slice);
    }
    Ok(Settled { cpu, nice })
}

/// Ties the calling thread to a processor; returns whether that could be done.
fn pin(cpu: usize) -> bool {
    if cpu >= CpuSet::MAX_CPU {
        return false;
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).is_ok()
}

impl Shared {
    fn run_or_abort(&self, options: &Options, before_others: bool) {
        if panic::catch_unwind(AssertUnwindSafe(|| self.run(options.spin, before_others))).is_err() {
            // The panic's own message has been printed by the panic hook. Not with `eprintln`, which
            // panics itself when nobody reads standard error.
            let _ = writeln!(
                io::stderr(),
                "thread '{}' panicked while others depend on its progress; ending this process",
                options.name
            );
            std::process::abort();
        }
    }

    fn run(&self, spin: Duration, before_others: bool) {
        let mut idle_since = None;
        let mut rested = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            let served = self.work.advance();
            self.counters.round(served);
            if served > 0 {
                idle_since = None;
                if before_others && rested.elapsed() >= STRETCH && !self.work.may_spin() {
                    thread::sleep(PAUSE);
                    rested = Instant::now();
                }
            } else if !self.work.may_spin() || has_been_idle(&mut idle_since, spin) {
                self.counters.park();
                self.work.park();
                idle_since = None;
                if before_others {
                    rested = Instant::now();
                }
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Whether nothing has been done for `spin`; `since` remembers when that began.
fn has_been_idle(since: &mut Option<Instant>, spin: Duration) -> bool {
    if spin.is_zero() {
        return true;
    }
    let now = Instant::now();
    now.duration_since(*since.get_or_insert(now)) >= spin
}
