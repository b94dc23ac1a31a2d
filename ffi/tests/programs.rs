//! C programs, as users write them, on ranks.
//!
//! Each is compiled with the system's compiler, linked against this library, and run as jobs of several ranks.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use armci_core::job::{Job, Outcome};
use common::program::{Build, Language, OTHERS, SUITE, WITH_MPI, check};
use common::{Link, package};

/// A job of a program, seen from outside.
fn job(program: &PathBuf, ranks: usize) -> Job {
    Job::new(ranks, program)
        .unwrap()
        .capture_stdout(true)
        .capture_stderr(true)
        .quiet(true)
        .no_input(true)
        .timeout(Duration::from_secs(60))
}

fn written(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a job, which must succeed.
fn success(job: &Job) -> Outcome {
    let outcome = job.run().unwrap();
    assert_eq!(outcome.code, 0, "{job:?}: {:?}\n{}", outcome.failed, written(&outcome.stderr));
    outcome
}

/// Runs a program of the suite, which must say what it should.
fn says(name: &str, ranks: usize, job: &Job) {
    let outcome = success(job);
    check(name, ranks, &written(&outcome.stdout), &written(&outcome.stderr));
}

/// One to four ranks: as C over each protocol, with and without progress thread; as C++; and through the functions'
/// second names.
fn in_all_ways(name: &'static str) {
    let program = Build::of(name).compile().unwrap();
    let cpp = Build { language: Language::Cpp, ..Build::of(name) }.compile();
    // Who defines a function itself wants that very name.
    let twins = (name != "profiler").then(|| Build { twins: true, ..Build::of(name) }.compile().unwrap());
    for ranks in 1..=4 {
        for protocol in ["rma", "am"] {
            for progress in ["thread", "none"] {
                let job = job(&program, ranks).env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress);
                says(name, ranks, &job);
            }
        }
        for other in cpp.iter().chain(&twins) {
            says(name, ranks, &job(other, ranks));
        }
    }
}

/// Two ranks apart, and four on two nodes, over each protocol, with and without progress thread.
fn between_nodes(name: &'static str) {
    let program = Build::of(name).compile_to(&format!("programs-{name}-between-nodes")).unwrap();
    for ranks in [2, 4] {
        for protocol in ["rma", "am"] {
            for progress in ["thread", "none"] {
                let job = job(&program, ranks).nodes(2).unwrap().env("NODES", "2");
                says(name, ranks, &job.env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress));
            }
        }
    }
}

#[test]
fn transfers_are_exact_between_nodes() {
    between_nodes("transfers");
}

#[test]
fn collectives_are_exact_between_nodes() {
    between_nodes("collectives");
}

#[test]
fn what_does_not_block_is_complete_when_waited_for_between_nodes() {
    between_nodes("nonblocking");
}

#[test]
fn groups_may_span_nodes() {
    between_nodes("groups");
}

#[test]
fn messages_mutexes_flags_and_the_rest_do_what_they_say_between_nodes() {
    between_nodes("messages");
}

#[test]
fn threads_communicate_between_nodes() {
    between_nodes("threads");
}

#[test]
fn a_profiler_may_stand_before_a_function_between_nodes() {
    between_nodes("profiler");
}

#[test]
fn wrong_calls_are_refused_with_one_line_each_between_nodes() {
    between_nodes("refusals");
}

#[test]
fn transfers_are_exact() {
    in_all_ways("transfers");
}

#[test]
fn collectives_are_exact() {
    in_all_ways("collectives");
}

#[test]
fn what_does_not_block_is_complete_when_waited_for() {
    in_all_ways("nonblocking");
}

#[test]
fn groups_have_ranks_memory_and_collectives_of_their_own() {
    in_all_ways("groups");
}

#[test]
fn messages_mutexes_flags_and_the_rest_do_what_they_say() {
    in_all_ways("messages");
}

#[test]
fn threads_communicate_where_they_were_asked_for() {
    in_all_ways("threads");
}

#[test]
fn a_profiler_may_stand_before_a_function() {
    in_all_ways("profiler");
}

#[test]
fn wrong_calls_are_refused_with_one_line_each() {
    in_all_ways("refusals");
}

#[test]
fn the_static_library_links_too() {
    for name in ["transfers", "collectives"] {
        let program = Build { link: Link::Static, ..Build::of(name) }.compile().unwrap();
        says(name, 2, &job(&program, 2));
    }
}

#[test]
fn no_program_is_forgotten_and_each_is_cpp_too() {
    let files = std::fs::read_dir(package().join("tests/c")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "c"));
    let files: BTreeSet<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let known: BTreeSet<String> = [&SUITE[..], &WITH_MPI, &OTHERS].concat().into_iter().map(str::to_owned).collect();
    assert_eq!(files, known, "tests/c and the lists in tests/common/program.rs");
    // The suite is compiled as C++ to be run here, and what needs an MPI is where there is one (`launchers`).
    for name in OTHERS {
        Build { language: Language::Cpp, ..Build::of(name) }.compile_to(&format!("compiles-{name}"));
    }
}

#[test]
fn giving_up_ends_the_job_with_the_code() {
    let program = Build::of("gives_up").compile().unwrap();
    let cases = [
        ("error", 37, 37, "ARMCI_Error: I give up (code 37)"),
        ("error", 0, 1, "ARMCI_Error: I give up (code 0)"),
        ("error", 256, 1, "ARMCI_Error: I give up (code 256)"),
        ("silent", 5, 5, "ARMCI_Error:  (code 5)"),
        ("stdin", 7, 7, "ARMCI_Error: somebody reads (code 7)"),
        ("stream", 8, 8, "ARMCI_Error: somebody reads (code 8)"),
        ("abort", 6, 6, "armci_msg_abort: code 6"),
        ("fence", 99, 1, "ARMCI_Fence: rank 99 does not exist"),
        ("fence", -1, 1, "ARMCI_Fence: rank -1 does not exist"),
        ("value", 0, 1, "ARMCI_GetValueDouble: address 0x"),
        ("root", 7, 1, "armci_msg_brdcst: rank 7 does not exist"),
        ("operation", 1, 1, "armci_msg_dgop: operation \"or\" is unknown"),
        ("group", 0, 1, "ARMCI_Group_free: the group at 0x"),
        ("world", 0, 1, "ARMCI_Group_free: the group of all ranks"),
        ("communicator", 0, 1, "armci_group_comm: this program is linked with no MPI"),
        ("member", 77, 1, "ARMCI_Group_create: rank 77 does not exist: the group has"),
        ("handle", 0, 1, "ARMCI_INIT_HANDLE: the handle is NULL"),
        ("mutex", 3, 1, "ARMCI_Lock: there are no mutexes"),
        ("mutex", -3, 1, "ARMCI_Lock: the mutex is -3, which is negative"),
        ("scope", 333, 1, "armci_msg_bcast_scope: 333 is no scope"),
        ("type", -99, 1, "armci_msg_gop_scope: -99 is no type"),
        ("select", 7, 1, "armci_msg_sel: records of 7 bytes"),
        ("domain", 1, 1, "armci_domain_count: 1 is no kind of domain"),
        ("node", 5, 1, "armci_domain_nprocs: domain 5 does not exist"),
        ("tag", -1, 1, "armci_msg_snd: the tag is -1, which is negative"),
        ("access", 0, 1, "ARMCI_Access_begin: address 0x"),
        ("short", 4, 1, "armci_msg_rcv: the message from rank"),
    ];
    for ranks in [1, 3] {
        for (how, number, code, line) in cases {
            let job = job(&program, ranks).args([how, &number.to_string()]);
            let outcome = job.run().unwrap();
            let stderr = written(&outcome.stderr);
            assert_eq!(outcome.code, code, "{how} {number}: {stderr}");
            assert_eq!(outcome.failed.unwrap().rank, ranks - 1);
            assert!(stderr.starts_with(&format!("armci: rank {}: {line}", ranks - 1)), "{how} {number}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            assert!(written(&outcome.stdout).contains("before\n"), "what C had buffered was lost");
        }
        let early = job(&program, ranks).args(["early", "0"]).run().unwrap();
        assert_ne!(early.code, 0, "to leave without ARMCI_Finalize is a failure");
    }
    let cpp = Build { language: Language::Cpp, ..Build::of("gives_up") }.compile();
    if let Some(program) = cpp {
        let outcome = job(&program, 3).args(["error", "37"]).run().unwrap();
        assert_eq!(outcome.code, 37, "{}", written(&outcome.stderr));
    }
    // Without a launcher, too, an error does not look like success.
    let alone = Command::new(program).args(["error", "256"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
}
