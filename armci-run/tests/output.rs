//! Tagged output: whole lines, all of them, in order within a rank, however they were written and
//! however they are read; and a launcher that neither grows nor waits meanwhile.

mod common;

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use armci_core::job::Job;
use common::{Run, wait_until};
use rustix::process::Signal;

#[test]
fn tagged_lines_are_whole() {
    let script = "i=0; while [ $i -lt 300 ]; do printf 'li'; printf 'ne %s ' $i; printf 'of a rank\\n'; echo error $i >&2; i=$((i+1)); done; printf unended";
    let ended = Run::new(&["-n", "4", "--tag-output", "sh", "-c", script]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for rank in 0..4 {
        let tag = format!("[{rank}] ");
        let lines: Vec<_> = ended.stdout.lines().filter_map(|line| line.strip_prefix(&tag)).collect();
        let expected: Vec<_> = (0..300).map(|i| format!("line {i} of a rank")).chain(["unended".to_owned()]).collect();
        assert_eq!(lines, expected);
    }
    assert_eq!(ended.stdout.lines().count(), 4 * 301);
    assert_eq!(ended.stderr.lines().filter(|line| line.contains("] error ")).count(), 4 * 300);
}

#[test]
fn the_reason_comes_after_the_last_words() {
    let ended = Run::new(&[
        "-n",
        "2",
        "--tag-output",
        "sh",
        "-c",
        "case \"$ARMCI_JOB\" in *rank=1*) echo 'last words' >&2; exit 3;; esac; sleep 100",
    ])
    .end();
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(ended.code, Some(3));
    assert_eq!(lines[0], "[1] last words");
    assert!(lines[1].starts_with("armci-run: rank 1 "), "{lines:?}");
}

#[test]
fn a_reader_that_stops_reading_stops_neither_launcher_nor_signals() {
    let mut running = Run::new(&["-n", "2", "--tag-output", "yes"]).start();
    running.line();
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_reader_that_is_gone_ends_endless_ranks() {
    let mut running = Run::new(&["-n", "2", "--tag-output", "yes"]).start();
    running.line();
    drop(running.child.stdout.take());
    // Both ranks die of SIGPIPE, as they would without a launcher in between.
    assert_eq!(running.end().code, Some(128 + 13));
}

#[test]
fn untagged_output_is_the_ranks_own() {
    let ended = Run::new(&["-n", "1", "sh", "-c", "printf unended"]).end();
    assert_eq!(ended.stdout, "unended");
}

/// How many numbers each of two ranks writes: 5 MiB from both, 8 MiB with tags, which is more than
/// the launcher and all pipes hold.
const NUMBERS: usize = 400_000;

fn two_ranks_count() -> Run {
    Run::new(&["-n", "2", "--tag-output", "seq", "1", &NUMBERS.to_string()])
}

fn assert_complete(stdout: &str) {
    for rank in 0..2 {
        let tag = format!("[{rank}] ");
        let mut lines = stdout.lines().filter_map(|line| line.strip_prefix(&tag));
        for number in 1..=NUMBERS {
            assert_eq!(lines.next(), Some(number.to_string().as_str()), "rank {rank}");
        }
    }
    assert_eq!(stdout.lines().count(), 2 * NUMBERS);
}

#[test]
fn a_prompt_reader_gets_every_line() {
    let ended = two_ranks_count().end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_complete(&ended.stdout);
}

#[test]
fn a_late_reader_gets_every_line() {
    let running = two_ranks_count().start();
    // Long enough for the ranks to fill everything and wait, or to end.
    std::thread::sleep(Duration::from_millis(500));
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_complete(&ended.stdout);
}

#[test]
fn a_slow_reader_gets_every_line() {
    let mut running = two_ranks_count().start();
    let (mut text, mut piece) = (Vec::new(), vec![0; 32 << 10]);
    let mut stdout = running.child.stdout.take().unwrap();
    loop {
        match stdout.read(&mut piece).unwrap() {
            0 => break,
            length => text.extend_from_slice(&piece[..length]),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(running.end().code, Some(0));
    assert_complete(&String::from_utf8(text).unwrap());
}

#[test]
fn what_the_last_rank_left_in_its_pipe_is_not_lost_behind_a_full_backlog() {
    // Rank 1 fills the backlog and waits; rank 0 says a word and ends well; nobody reads until then.
    let script = "case \"$ARMCI_JOB\" in *rank=0*) sleep 0.3; echo a word;; *) seq 1 800000;; esac";
    let running = Run::new(&["-n", "2", "--tag-output", "sh", "-c", script]).start();
    std::thread::sleep(Duration::from_millis(600));
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 800_001);
    assert!(ended.stdout.contains("[0] a word\n"));
}

#[test]
fn the_launcher_does_not_grow_with_what_it_passes_on() {
    for prompt in [true, false] {
        let run = Run::new(&["-n", "2", "--tag-output", "yes"]);
        let running = if prompt { run.stdout(Stdio::null()) } else { run }.start();
        std::thread::sleep(Duration::from_millis(700));
        let peak = running.peak_kib();
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, Some(143));
        // A backlog of 4 MiB, twice while it is moved, and the program itself.
        assert!(peak < 32 << 10, "{peak} KiB, reader prompt: {prompt}");
    }
}

#[test]
fn a_deadline_is_kept_while_output_is_captured() {
    let begin = Instant::now();
    let job = Job::new(2, "yes").unwrap().capture_stdout(true).quiet(true).timeout(Duration::from_millis(200));
    let outcome = job.run().unwrap();
    assert_eq!((outcome.code, outcome.timed_out), (124, true));
    assert!(outcome.stdout.starts_with(b"y\ny\n"));
    // And 200 ms of grace; without a bound on what is read at a time, it would never end.
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[test]
fn a_daemon_that_keeps_the_output_open_is_not_waited_for() {
    let mut running = Run::new(&["-n", "2", "--tag-output", "sh", "-c", "setsid sleep 2 & echo started"]).start();
    let begin = Instant::now();
    let mut text = String::new();
    running.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(text.lines().count(), 2, "{text}");
    wait_until("the daemons to end", || running.states().is_empty());
}

#[test]
fn a_lost_standard_error_loses_messages_only() {
    let mut running =
        Run::new(&["-n", "2", "sh", "-c", "case \"$ARMCI_JOB\" in *rank=1*) sleep 0.3; exit 3;; esac; sleep 100"])
            .start();
    drop(running.child.stderr.take());
    assert_eq!(running.end().code, Some(3));
}
