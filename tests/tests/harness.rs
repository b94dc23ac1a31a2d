//! The harness keeps its own promises: good bodies pass, bad ones are named, hanging ones end.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use armci_core::job::bootstrap;
use tests::Ranks;

/// Runs a job that ought to make its test fail, and returns what the test would have said.
fn complaint(job: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(job).expect_err("the job should not have been accepted");
    panic.downcast_ref::<String>().expect("the harness panics with a formatted message").clone()
}

#[test]
fn several_jobs_of_one_test_each_run_their_own_body() {
    for ranks in [1, 3, 2] {
        Ranks::new(ranks).env("MY_SETTING", &ranks.to_string()).run_bare(|| {
            let mut job = bootstrap().unwrap();
            assert_eq!(job.identity().size, ranks);
            assert_eq!(std::env::var("MY_SETTING").unwrap(), ranks.to_string());
            job.goodbye().unwrap();
        });
    }
    Ranks::new(2).run_bare(|| assert!(std::env::var("MY_SETTING").is_err()));
}

#[test]
fn an_expected_failure_is_an_outcome() {
    let outcome = Ranks::new(3).expect_failure_bare(|| {
        let mut job = bootstrap().unwrap();
        assert_ne!(job.identity().rank, 1, "rank 1 is unhappy");
        let _ = job.goodbye();
    });
    assert_eq!(outcome.code, 101);
    assert_eq!(outcome.failed.unwrap().rank, 1);
    let stderr = String::from_utf8(outcome.stderr).unwrap();
    assert!(stderr.lines().any(|line| line.starts_with("[1] ") && line.contains("rank 1 is unhappy")), "{stderr}");
}

#[test]
fn a_failed_rank_fails_the_test_and_is_named() {
    let said = complaint(|| {
        Ranks::new(2).on_one_node().env("WHY", "because").run_bare(|| std::process::abort());
    });
    for part in ["a_failed_rank_fails_the_test_and_is_named", "(2 ranks, WHY=because)", "killed by signal 6 (SIGABRT)"]
    {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_hang_ends() {
    let begin = Instant::now();
    let said = complaint(|| {
        Ranks::new(2).timeout(Duration::from_millis(300)).run_bare(|| std::thread::sleep(Duration::from_secs(100)));
    });
    assert!(said.contains("`a_hang_ends`") && said.contains("not done after 300ms"), "{said}");
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_unexpected_success_fails_the_test() {
    let said = complaint(|| drop(Ranks::new(1).expect_failure_bare(|| ())));
    assert!(said.contains("a failure was expected"), "{said}");
}

#[test]
fn a_body_that_no_rank_reaches_fails_the_test() {
    let stray = std::thread::Builder::new().name("no test of this name".into());
    let said = stray.spawn(|| complaint(|| Ranks::new(2).run_bare(|| ()))).unwrap().join().unwrap();
    assert!(said.contains("only 0 of 2 ranks ran the body"), "{said}");
}

#[test]
#[ignore = "shows that ignored tests find their ranks too"]
fn an_ignored_test_runs_on_ranks() {
    Ranks::new(2).run_bare(|| bootstrap().unwrap().goodbye().unwrap());
}
