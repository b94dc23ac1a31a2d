//! What a rank finds when it starts, and what cannot be started.

mod common;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use armci_core::topology::Topology;
use common::{Run, play, play_outside};

#[test]
fn a_program_that_cannot_be_started_is_one_clear_line() {
    for (program, code) in [("no-such-program-anywhere", 127), ("/etc/passwd", 126), ("/etc", 126)] {
        let ended = Run::new(&["-n", "2", program]).end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(program), "{}", ended.stderr);
    }
}

#[test]
fn no_ranks_is_one_clear_line() {
    let ended = Run::new(&["-n", "0", "true"]).end();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(1), "armci-run: a job needs at least one rank; 0 were asked for\n")
    );
}

#[test]
fn absurdly_many_ranks_are_one_clear_line() {
    let ended = Run::new(&["-n", "99999999999", "true"]).end();
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("99999999999") && ended.stderr.contains("16384"), "{}", ended.stderr);
}

#[test]
fn no_nodes_or_more_than_ranks_are_one_clear_line() {
    for (nodes, line) in [
        ("0", "armci-run: a job needs at least one node; 0 were asked for\n"),
        ("3", "armci-run: 3 nodes were asked for, but the job has only 2 ranks: each node needs one\n"),
    ] {
        let ended = Run::new(&["-n", "2", "--nodes", nodes, "true"]).end();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), line));
    }
}

#[test]
fn ranks_know_their_place_on_virtual_nodes() {
    play_outside(|role| {
        let mut job = armci_core::job::bootstrap().unwrap();
        let who = job.identity().clone();
        let found = [who.node, who.nodes, who.local_rank, who.local_size, who.nodes_here];
        let expected: &[[usize; 5]] = match role {
            "1 node" => &[[0, 1, 0, 3, 1], [0, 1, 1, 3, 1], [0, 1, 2, 3, 1]],
            "2 nodes" => &[[0, 2, 0, 1, 2], [1, 2, 0, 2, 2], [1, 2, 1, 2, 2]],
            _ => &[[0, 3, 0, 1, 3], [1, 3, 0, 1, 3], [2, 3, 0, 1, 3]],
        };
        assert_eq!((who.size, found), (3, expected[who.rank]), "{role}");
        job.goodbye().unwrap();
    });
    let this = std::env::current_exe().unwrap();
    for (nodes, role) in [("1", "1 node"), ("2", "2 nodes"), ("3", "3 nodes")] {
        let test = ["--exact", "ranks_know_their_place_on_virtual_nodes"];
        let words = [&["-n", "3", "--nodes", nodes, this.to_str().unwrap()][..], &test].concat();
        let ended = Run::new(&words).env("ARMCI_RUN_TEST_ROLE", role).end();
        assert_eq!(ended.code, Some(0), "{role}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn too_many_ranks_are_ended_again() {
    // Descriptors run out midway.
    let script = format!("ulimit -n 40; exec {} -n 100 sleep 100", env!("CARGO_BIN_EXE_armci-run"));
    let ended = Run::new(&["-n", "1", "sh", "-c", &script]).end();
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.messages()[0].contains("ulimit -n") && ended.messages()[0].contains("ending the other"),
        "{}",
        ended.stderr
    );
}

#[test]
fn arguments_and_settings_reach_the_program() {
    let ended = Run::new(&[
        "-n",
        "1",
        "--progress",
        "none",
        "sh",
        "-c",
        "echo $ARMCI_PROGRESS $ARMCI_PROTOCOL \"$@\"",
        "sh",
        "-n",
        "--bind",
        "a b",
    ])
    .env("ARMCI_PROTOCOL", "am")
    .end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "none am -n --bind a b\n"));
}

#[test]
fn only_rank_0_reads_standard_input() {
    let (reader, writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut { writer }, b"for rank 0\n").unwrap();
    let ended = Run::new(&["-n", "3", "--tag-output", "cat"]).stdin(reader).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "[0] for rank 0\n"));
}

/// The processors of a mask as `/proc/PID/status` writes it, such as `0-2,5`.
fn processors(list: &str) -> Vec<usize> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<usize>().unwrap()..=last.parse().unwrap()
    };
    list.trim().split(',').flat_map(range).collect()
}

/// What the ranks' shells, started after these options and words, find as their masks.
fn masks(ranks: usize, options: &[&str], words: &[&str]) -> Vec<Vec<usize>> {
    let ranks_text = ranks.to_string();
    let mut line = vec!["-n", &ranks_text, "--tag-output"];
    line.extend(options.iter().chain(words));
    line.extend(["sed", "-n", "s/^Cpus_allowed_list:[[:space:]]*//p", "/proc/self/status"]);
    let ended = Run::new(&line).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let of_rank = |rank| ended.stdout.lines().find_map(|line| line.strip_prefix(&format!("[{rank}] ")).map(processors));
    (0..ranks)
        .map(|rank| of_rank(rank).unwrap_or_else(|| panic!("rank {rank} said nothing: {}", ended.stdout)))
        .collect()
}

#[test]
fn unbound_ranks_have_the_launchers_processors() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ours = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(processors).unwrap();
    assert_eq!(masks(2, &[], &[]), [ours.clone(), ours]);
}

#[test]
fn bound_ranks_have_one_core_and_start_over_when_there_are_more() {
    let topology = Topology::load().unwrap();
    let cores = topology.cores().len();
    let masks = masks(cores + 2, &["--bind", "core"], &[]);
    for (rank, mask) in masks.iter().enumerate() {
        let mut core = topology.core_of(rank, cores + 2).clone();
        core.sort_unstable();
        assert_eq!(*mask, core, "rank {rank}");
    }
    assert_eq!(masks[..cores].iter().collect::<HashSet<_>>().len(), cores, "a core each: {masks:?}");
    assert_eq!(masks[cores..], masks[..2.min(cores)], "and then from the first");
}

#[test]
fn a_wrappers_mask_holds_for_the_progress_thread_too() {
    play_outside(|role| {
        let mut job = armci_core::job::bootstrap().unwrap();
        let mask = rustix::thread::sched_getaffinity(None).unwrap();
        let seat = job.seat();
        let inside = seat.progress_cpu.is_none_or(|cpu| mask.is_set(cpu));
        // Bound, the launcher may have chosen a core beside the rank's; a wrapper's mask forbids it.
        assert!(inside || role == "bound", "{role}: {seat:?}");
        assert!(role != "unbound" || seat.progress_cpu.is_none(), "{seat:?}");
        assert!(!seat.crowded, "one rank: {seat:?}");
        job.goodbye().unwrap();
    });
    let topology = Topology::load().unwrap();
    let this = std::env::current_exe().unwrap();
    let test = ["--exact", "a_wrappers_mask_holds_for_the_progress_thread_too"];
    let elsewhere = topology.cores().last().unwrap()[0].to_string();
    for (role, options, wrapper) in [
        ("bound", &["--bind", "core"][..], &[][..]),
        ("bound, then narrowed", &["--bind", "core"], &["taskset", "-c", &elsewhere]),
        ("unbound", &[], &["taskset", "-c", &elsewhere]),
    ] {
        if role == "bound, then narrowed" && topology.cores().len() == 1 {
            continue; // nowhere else to go
        }
        let words = [&["-n", "1"], options, wrapper, &[this.to_str().unwrap()], &test].concat();
        let ended = Run::new(&words).env("ARMCI_RUN_TEST_ROLE", role).end();
        assert_eq!(ended.code, Some(0), "{role}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_job_is_crowded_by_all_its_ranks_and_cores_bound_or_not() {
    play_outside(|role| {
        let mut job = armci_core::job::bootstrap().unwrap();
        assert_eq!(job.seat().crowded, role == "crowded");
        job.goodbye().unwrap();
    });
    let test = "a_job_is_crowded_by_all_its_ranks_and_cores_bound_or_not";
    let processors = std::thread::available_parallelism().unwrap().get();
    let this = std::env::current_exe().unwrap();
    for bind in ["none", "core"] {
        for (ranks, role) in [(processors, "roomy"), (processors + 1, "crowded")] {
            let ranks = ranks.to_string();
            let words = ["-n", &ranks, "--bind", bind, this.to_str().unwrap(), "--exact", test];
            let ended = Run::new(&words).env("ARMCI_RUN_TEST_ROLE", role).end();
            assert_eq!(ended.code, Some(0), "{bind}, {role}: {}{}", ended.stdout, ended.stderr);
        }
    }
}

#[test]
fn ranks_inherit_nothing_but_their_own_socket() {
    let ended = Run::new(&["-n", "3", "--tag-output", "sh", "-c", "ls -l /proc/$$/fd | grep -c socket:"]).end();
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 1", "[1] 1", "[2] 1"], "{}", ended.stderr);
}

#[test]
fn a_stale_environment_makes_a_job_of_one() {
    play_outside(|role| {
        let mut job = armci_core::job::bootstrap().unwrap();
        assert_eq!(job.identity().size, if role == "child" { 1 } else { 2 });
        assert_eq!(armci_core::job::is_rank(), role != "child");
        if role != "child" {
            // A program that a rank starts sees the rank's ARMCI_JOB, but not its socket.
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(std::env::args_os().skip(1))
                .env("ARMCI_RUN_TEST_ROLE", "child")
                .status()
                .unwrap();
            assert!(child.success());
        }
        job.goodbye().unwrap();
    });
    let ended = Run::role(2, "a_stale_environment_makes_a_job_of_one", "parent").end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_job_within_a_rank_is_a_job_of_its_own() {
    play_outside(|role| {
        let mut job = armci_core::job::bootstrap().unwrap();
        assert_eq!(job.identity().size, if role == "inner" { 3 } else { 2 });
        if role == "outer" {
            let inner =
                armci_core::job::Job::this_program(3).unwrap().env("ARMCI_RUN_TEST_ROLE", "inner").run().unwrap();
            assert_eq!(inner.code, 0, "{:?}", inner.failed);
        }
        job.goodbye().unwrap();
    });
    let ended = Run::role(2, "a_job_within_a_rank_is_a_job_of_its_own", "outer").end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn an_unreadable_ticket_is_an_error() {
    play_outside(|_| {
        let error = armci_core::job::bootstrap().err().unwrap().to_string();
        assert!(error.contains("ARMCI_JOB"), "{error}");
    });
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_unreadable_ticket_is_an_error"])
        .envs([("ARMCI_JOB", "rank 3 of many"), ("ARMCI_RUN_TEST_ROLE", "confused")])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn sixteen_ranks_are_through_their_exchanges_in_time() {
    play_outside(|_| {
        let mut job = armci_core::job::bootstrap().unwrap();
        for round in 0..2 {
            let shares = job.all_gather(&vec![round; 4096 + job.identity().rank]).unwrap();
            assert!(shares.iter().enumerate().all(|(rank, share)| *share == vec![round; 4096 + rank]));
        }
        job.goodbye().unwrap();
    });
    let begin = Instant::now();
    let ended = Run::role(16, "sixteen_ranks_are_through_their_exchanges_in_time", "exchange").end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // 30 ms on an idle machine of two cores; tests run beside each other.
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[test]
fn all_ranks_share_a_secret_that_no_other_job_has() {
    play(|_, _| {
        let secret =
            std::env::var("ARMCI_JOB").unwrap().split(' ').find(|word| word.starts_with("secret=")).unwrap().to_owned();
        println!("{secret}");
    });
    let secrets = || -> Vec<String> {
        let ended = Run::role(3, "all_ranks_share_a_secret_that_no_other_job_has", "tell").end();
        ended.stdout.lines().filter_map(|line| line.find("secret=").map(|at| line[at..].to_owned())).collect()
    };
    let (first, second) = (secrets(), secrets());
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.iter().all(|secret| *secret == first[0]) && first[0] != second[0], "{first:?} {second:?}");
}
