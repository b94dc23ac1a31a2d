//! A job ends as a whole, says why once, and leaves nobody behind.

mod common;

use std::time::Duration;

use common::{Run, play, play_outside, wait_until};
use rustix::process::Signal;

/// A job that fails is over within this time, start included (and 200 ms of it are grace).
const A_SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_good_job_ends_with_zero_and_silence() {
    let ended = Run::new(&["-n", "3", "true"]).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn an_exit_code_ends_the_job_and_becomes_its_code() {
    let ended =
        Run::new(&["-n", "3", "sh", "-c", "case \"$ARMCI_JOB\" in *rank=1*) exit 7;; *) sleep 100;; esac"]).end();
    assert_eq!(ended.code, Some(7));
    let messages = ended.messages();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].starts_with("armci-run: rank 1 (pid ")
            && messages[0].ends_with(") exited with code 7; ending the other 2 ranks"),
        "{messages:?}"
    );
    assert!(ended.after < A_SECOND, "{:?}", ended.after);
}

#[test]
fn a_signal_is_named_within_a_second() {
    // Ranks that ignore SIGTERM, and have children of their own.
    let ended = Run::new(&[
        "-n",
        "4",
        "sh",
        "-c",
        "trap '' TERM; case \"$ARMCI_JOB\" in *rank=3*) kill -9 $$;; *) sleep 100 & sleep 100;; esac",
    ])
    .end();
    assert_eq!(ended.code, Some(137));
    let messages = ended.messages();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("rank 3 (pid ")
            && messages[0].ends_with("was killed by signal 9 (SIGKILL); ending the other 3 ranks"),
        "{messages:?}"
    );
    assert!(ended.after < A_SECOND, "{:?}", ended.after);
}

#[test]
fn the_other_ranks_may_flush_before_they_go() {
    let ended = Run::new(&["-n", "2", "sh", "-c", "case \"$ARMCI_JOB\" in *rank=0*) sleep 0.2; exit 5;; *) trap 'echo flushed; exit 1' TERM; sleep 100 & wait;; esac"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), "flushed\n"));
    assert_eq!(ended.messages().len(), 1, "{}", ended.stderr);
}

#[test]
fn background_children_of_a_good_job_are_ended_too() {
    let ended = Run::new(&["-n", "2", "sh", "-c", "sleep 100 >/dev/null 2>&1 &"]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn signals_to_the_launcher_end_the_ranks() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut running =
            Run::new(&["-n", "2", "sh", "-c", "trap '' INT TERM; sleep 100 & echo up; sleep 100"]).start();
        running.line();
        running.line();
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert_eq!(ended.messages().len(), 1, "{}", ended.stderr);
        assert!(ended.after < A_SECOND, "{:?}", ended.after);
    }
}

#[test]
fn stopped_ranks_are_ended_too() {
    let mut running = Run::new(&["-n", "2", "sh", "-c", "echo up; kill -STOP $$; sleep 100"]).start();
    running.line();
    running.line();
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
}

#[test]
fn a_suspended_job_goes_on_where_it_was() {
    let mut running = Run::new(&["-n", "2", "sh", "-c", "sleep 100 & echo up; wait"]).apart().start();
    running.line();
    running.line();
    let all = |state: char| running.states().chars().filter(|&c| c == state).count();
    for _ in 0..2 {
        running.signal(Signal::TSTP);
        // The launcher, two shells, two sleeps.
        wait_until("everybody to stop", || all('T') == 5);
        running.signal(Signal::CONT);
        wait_until("everybody to go on", || all('T') == 0 && all('S') == 5);
    }
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
}

#[test]
fn signals_that_the_launcher_was_told_to_ignore_do_not_end_the_job() {
    // What `nohup armci-run ...` and a background job of a script do.
    let script = "echo up; sleep 0.5";
    let mut running = Run::after("trap '' HUP INT", &["-n", "2", "sh", "-c", script]).start();
    running.line();
    running.line();
    running.signal(Signal::HUP);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn ranks_die_with_a_killed_launcher() {
    let mut running = Run::new(&["-n", "3", "sleep", "100"]).start();
    std::thread::sleep(Duration::from_millis(200));
    assert!(running.child.try_wait().unwrap().is_none());
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
}

#[test]
fn ranks_behind_a_shell_die_with_a_killed_launcher() {
    play(|_, _| {
        println!("joined");
        std::thread::sleep(Duration::from_secs(100));
    });
    let this = std::env::current_exe().unwrap();
    let script =
        format!("{} --exact ranks_behind_a_shell_die_with_a_killed_launcher --nocapture; true", this.display());
    let mut running = Run::new(&["-n", "2", "sh", "-c", &script]).env("ARMCI_RUN_TEST_ROLE", "sleeper").start();
    let mut joined = 0;
    while joined < 2 {
        joined += usize::from(running.line().ends_with("joined"));
    }
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
}

#[test]
fn leaving_without_finalize_is_a_failure() {
    play(|role, rank| {
        assert_eq!(role, "one leaves");
        if rank == 2 {
            std::process::exit(0);
        }
    });
    let ended = Run::role(4, "leaving_without_finalize_is_a_failure", "one leaves").end();
    assert_eq!(ended.code, Some(1));
    let messages = ended.messages();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("rank 2 (pid ") && messages[0].contains("left without finalize; ending the other 3 ranks"),
        "{messages:?}"
    );
}

#[test]
fn a_rank_that_never_joins_the_others_is_a_failure() {
    play_outside(|_| {
        let mut job = match std::env::var("ARMCI_JOB") {
            Ok(ticket) if ticket.contains("rank=1") => std::process::exit(0),
            _ => armci_core::job::bootstrap().unwrap(),
        };
        job.all_gather(b"anybody there?").unwrap();
    });
    let ended = Run::role(3, "a_rank_that_never_joins_the_others_is_a_failure", "one stays out").end();
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.messages()[0].contains("rank 1 (pid ") && ended.messages()[0].contains("without joining"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_bad_code_after_finalize_still_counts() {
    play_outside(|_| {
        let mut job = armci_core::job::bootstrap().unwrap();
        job.goodbye().unwrap();
        std::process::exit(if job.identity().rank == 0 { 9 } else { 0 });
    });
    assert_eq!(Run::role(2, "a_bad_code_after_finalize_still_counts", "late").end().code, Some(9));
}

#[test]
fn a_panic_is_called_one() {
    play(|_, rank| assert_ne!(rank, 0, "rank 0 is unhappy"));
    let ended = Run::role(2, "a_panic_is_called_one", "panic").end();
    assert_eq!(ended.code, Some(101));
    assert!(ended.messages()[0].contains("rank 0") && ended.messages()[0].contains("a Rust panic"), "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 0 is unhappy"));
}

#[test]
fn joining_twice_is_a_failure_not_a_deadlock() {
    play(|_, _| drop(armci_core::job::bootstrap()));
    let ended = Run::role(2, "joining_twice_is_a_failure_not_a_deadlock", "twice").end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.messages()[0].contains("joined twice"), "{}", ended.stderr);
}

#[test]
fn different_collective_calls_are_a_failure_not_a_deadlock() {
    play_outside(|_| {
        let mut job = armci_core::job::bootstrap().unwrap();
        let _ = if job.identity().rank == 0 { job.all_gather(b"x").map(drop) } else { job.goodbye() };
    });
    let ended = Run::role(2, "different_collective_calls_are_a_failure_not_a_deadlock", "differ").end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.messages()[0].contains("same order"), "{}", ended.stderr);
}
