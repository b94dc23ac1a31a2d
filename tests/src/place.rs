//! Which test this is, and which of its jobs: what a rank must know to find the body it was started
//! for.

use std::cell::Cell;

/// Tells a rank the number of its job within the test.
pub(crate) const JOB: &str = "ARMCI_TEST_JOB";

/// Tells a process of the test binary that it is to be the agent of a host.
pub(crate) const AGENT: &str = "ARMCI_TEST_AGENT";

thread_local! {
    /// How many jobs this test has reached. A test is one thread.
    static REACHED: Cell<usize> = const { Cell::new(0) };
    /// The name of the test that counted, for a harness that runs several tests on one thread.
    static COUNTING: Cell<String> = const { Cell::new(String::new()) };
}

/// The name of the running test, as `--exact` takes it.
///
/// The test harness gives each test a thread of that name. Where it runs a test on its main thread,
/// it was told the name.
pub(crate) fn test_name() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => name_after_exact(std::env::args()).expect("jobs are started from the thread of a #[test] function"),
    }
}

/// The filter beside `--exact`: the only argument that is no option.
fn name_after_exact(arguments: impl Iterator<Item = String>) -> Option<String> {
    let arguments: Vec<_> = arguments.skip(1).collect();
    arguments.iter().any(|argument| argument == "--exact").then_some(())?;
    arguments.into_iter().find(|argument| !argument.starts_with('-'))
}

/// The number of the job that this test reaches now.
pub(crate) fn next_job(test: &str) -> usize {
    if COUNTING.replace(test.to_owned()) != test {
        REACHED.set(0);
    }
    REACHED.replace(REACHED.get() + 1)
}

/// The number of the job that this rank was started for.
pub(crate) fn my_job() -> Option<usize> {
    std::env::var(JOB).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_beside_exact() {
        let of = |line: &str| name_after_exact(line.split(' ').map(str::to_owned));
        assert_eq!(of("binary --exact a::b --nocapture").as_deref(), Some("a::b"));
        assert_eq!(of("binary a::b --exact").as_deref(), Some("a::b"));
        assert_eq!(of("binary a"), None);
        assert_eq!(test_name(), "place::tests::the_name_stands_beside_exact");
    }

    #[test]
    fn jobs_are_counted_per_test() {
        assert_eq!([next_job("one"), next_job("one"), next_job("two"), next_job("two")], [0, 1, 0, 1]);
    }
}
