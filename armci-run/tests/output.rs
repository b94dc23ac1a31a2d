//! Tagged output: whole lines, in order within a rank, however they were written.

mod common;

use common::Run;

#[test]
fn tagged_lines_are_whole() {
    let script = "i=0; while [ $i -lt 300 ]; do printf 'li'; printf 'ne %s ' $i; printf 'of a rank\\n'; echo error $i >&2; i=$((i+1)); done; printf unended";
    let ended = Run::new(&["-n", "4", "--tag-output", "sh", "-c", script]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for rank in 0..4 {
        let tag = format!("[{rank}] ");
        let lines: Vec<_> = ended
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix(&tag))
            .collect();
        let expected: Vec<_> = (0..300)
            .map(|i| format!("line {i} of a rank"))
            .chain(["unended".to_owned()])
            .collect();
        assert_eq!(lines, expected);
    }
    assert_eq!(ended.stdout.lines().count(), 4 * 301);
    assert_eq!(
        ended
            .stderr
            .lines()
            .filter(|line| line.contains("] error "))
            .count(),
        4 * 300
    );
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
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal(rustix::process::Signal::TERM);
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
