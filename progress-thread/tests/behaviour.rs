//! What the progress thread promises: it serves, sleeps when idle, stops at once, sits where it was
//! put, and never dies in silence.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use progress_thread::{Advance, Options, ProgressThread};
use rustix::thread::ClockId;

/// Counts down work; remembers the thread's processors and the processor time it has used.
#[derive(Default)]
struct Work {
    todo: AtomicUsize,
    panics: AtomicBool,
    woken: Mutex<bool>,
    bell: Condvar,
    seen: Mutex<Option<(Vec<usize>, Duration)>>,
}

impl Work {
    fn give(&self, units: usize) {
        self.todo.fetch_add(units, Ordering::Relaxed);
        self.wake();
    }
}

impl Advance for Work {
    fn advance(&self) -> usize {
        assert!(!self.panics.load(Ordering::Relaxed), "the work is broken");
        let mask = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
        let used = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
        *self.seen.lock().unwrap() = Some((cpus, Duration::new(used.tv_sec as u64, used.tv_nsec as u32)));
        self.todo.swap(0, Ordering::Relaxed)
    }

    fn park(&self) {
        let mut woken = self.bell.wait_while(self.woken.lock().unwrap(), |woken| !*woken).unwrap();
        *woken = false;
    }

    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.bell.notify_one();
    }
}

fn start(work: &Arc<Work>, options: Options) -> ProgressThread {
    ProgressThread::start(Arc::clone(work) as Arc<dyn Advance>, options).unwrap()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < limit, "waited 10 s for {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn work_is_served_while_running_and_while_parked() {
    let work = Arc::new(Work::default());
    let thread = start(&work, Options::named("serves"));
    for round in 1..=5 {
        wait_until("the thread to park", || thread.statistics().parks >= round);
        work.give(10);
        wait_until("the work to be served", || thread.statistics().served == 10 * round);
    }
    let statistics = thread.stop();
    assert_eq!(statistics.served, 50);
    assert!(statistics.rounds > statistics.fruitful && statistics.fruitful >= 5);
}

#[test]
fn an_idle_thread_sleeps() {
    let work = Arc::new(Work::default());
    let thread = start(&work, Options { spin: Duration::from_millis(2), ..Options::named("idles") });
    let begin = Instant::now();
    std::thread::sleep(Duration::from_millis(500));
    work.give(1);
    wait_until("the work to be served", || thread.statistics().served == 1);
    let used = work.seen.lock().unwrap().as_ref().unwrap().1;
    assert!(used < begin.elapsed() / 100, "used {used:?} of {:?}", begin.elapsed());
}

#[test]
fn stopping_takes_no_time() {
    for spin in [Duration::ZERO, Duration::from_secs(100)] {
        let work = Arc::new(Work::default());
        let thread = start(&work, Options { spin, ..Options::named("stops") });
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        drop(thread);
        assert!(begin.elapsed() < Duration::from_millis(100), "took {:?}", begin.elapsed());
    }
}

#[test]
fn stopping_right_after_starting_is_never_lost() {
    for _ in 0..300 {
        let work = Arc::new(Work::default());
        let _ = start(&work, Options { spin: Duration::ZERO, ..Options::named("brief") }).stop();
    }
}

#[test]
fn the_thread_sits_where_it_was_put() {
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    let last = (0..rustix::thread::CpuSet::MAX_CPU).rfind(|&cpu| mask.is_set(cpu)).unwrap();
    let work = Arc::new(Work::default());
    let thread = start(&work, Options { cpu: Some(last), nice: Some(5), ..Options::named("pinned") });
    wait_until("a first round", || work.seen.lock().unwrap().is_some());
    assert_eq!(work.seen.lock().unwrap().as_ref().unwrap().0, [last]);
    assert_eq!(thread.cpu(), Some(last));
    drop(thread);
    assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), mask, "the starting thread stays where it was");
}

/// Work without end, whose thread is never alone.
struct Endless {
    used: Mutex<Duration>,
    stopping: AtomicBool,
}

impl Advance for Endless {
    fn advance(&self) -> usize {
        let used = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
        *self.used.lock().unwrap() = Duration::new(used.tv_sec as u64, used.tv_nsec as u32);
        usize::from(!self.stopping.load(Ordering::Relaxed))
    }

    fn park(&self) {}

    fn may_spin(&self) -> bool {
        false
    }

    fn wake(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_goes_before_others_leaves_them_their_part() {
    let work = Arc::new(Endless { used: Mutex::default(), stopping: AtomicBool::new(false) });
    let options = Options { nice: Some(-20), ..Options::named("endless") };
    let thread = ProgressThread::start(Arc::clone(&work) as Arc<dyn Advance>, options).unwrap();
    if thread.nice() >= Some(0) {
        return eprintln!("skipped: no thread may go before others here");
    }
    let begin = Instant::now();
    std::thread::sleep(Duration::from_millis(500));
    let used = *work.used.lock().unwrap();
    // It pauses for a sixth of the time, or longer where the machine is busy.
    assert!(used < begin.elapsed() * 9 / 10, "used {used:?} of {:?}", begin.elapsed());
    assert!(thread.statistics().served > 0);
}

#[test]
fn a_processor_that_is_not_there_leaves_the_thread_where_it_was() {
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    let usable: Vec<_> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
    for cpu in [1023, 5000] {
        let work = Arc::new(Work::default());
        let thread = start(&work, Options { cpu: Some(cpu), ..Options::named("lost") });
        assert_eq!(thread.cpu(), None);
        wait_until("a first round", || work.seen.lock().unwrap().is_some());
        assert_eq!(work.seen.lock().unwrap().as_ref().unwrap().0, usable);
    }
}

#[test]
fn a_panic_ends_the_process_and_says_so() {
    const CHILD: &str = "PROGRESS_THREAD_TEST_PANICS";
    if std::env::var_os(CHILD).is_some() {
        let work = Arc::new(Work::default());
        work.panics.store(true, Ordering::Relaxed);
        let _thread = start(&work, Options::named("broken"));
        std::thread::sleep(Duration::from_secs(10));
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_panic_ends_the_process_and_says_so", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.status.code().is_none(), "{:?}", output.status);
    assert!(said.contains("the work is broken") && said.contains("thread 'broken' panicked"), "{said}");
}
