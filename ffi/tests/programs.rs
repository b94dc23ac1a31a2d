//! C programs, as users write them, on ranks.
//!
//! Each is compiled with the system's compiler, linked against this library, and run as jobs of several ranks.

mod common;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use armci_core::job::{Job, Outcome};
use common::{Link, cc, installed, library, package, run, scratch};

/// Compiles `tests/c/<name>.c`.
fn compile(name: &str, link: Link) -> PathBuf {
    compile_by(cc(), "", name, link)
}

/// The same as C++; none without a compiler for it.
fn compile_as_cpp(name: &str) -> Option<PathBuf> {
    let cpp = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if Command::new(&cpp).arg("--version").output().is_err() {
        return None;
    }
    let mut cpp = Command::new(cpp);
    cpp.args(["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]);
    Some(compile_by(cpp, "-cpp", name, Link::Shared))
}

fn compile_by(mut cc: Command, suffix: &str, name: &str, link: Link) -> PathBuf {
    let program = scratch(&format!("{name}-{link:?}{suffix}"));
    cc.arg("-DARMCI_NO_MPI").arg("-I").arg(package().join("include"));
    cc.arg(package().join(format!("tests/c/{name}.c"))).args(["-x", "none", "-o"]).arg(&program);
    match link {
        Link::Shared => {
            let directory = installed().to_str().unwrap();
            cc.args(["-L", directory, "-larmci", &format!("-Wl,-rpath,{directory}"), "-lpthread"])
        }
        Link::Static => cc.arg(library(Link::Static)).args(["-lhwloc", "-lgcc_s", "-lm", "-lpthread", "-ldl"]),
    };
    run(&mut cc);
    program
}

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

/// One to four ranks, over each protocol, with and without progress thread.
fn matrix(program: &PathBuf, check: impl Fn(usize, Outcome)) {
    for ranks in 1..=4 {
        for protocol in ["rma", "am"] {
            for progress in ["thread", "none"] {
                let job = job(program, ranks).env("ARMCI_PROTOCOL", protocol).env("ARMCI_PROGRESS", progress);
                check(ranks, success(&job));
            }
        }
    }
}

fn all_done(ranks: usize, outcome: Outcome) {
    assert_eq!(written(&outcome.stdout), "done\n".repeat(ranks));
    assert_eq!(written(&outcome.stderr), "");
}

#[test]
fn transfers_are_exact() {
    matrix(&compile("transfers", Link::Shared), all_done);
}

#[test]
fn collectives_are_exact() {
    matrix(&compile("collectives", Link::Shared), all_done);
}

/// In C and in C++.
fn both_languages(name: &str) {
    matrix(&compile(name, Link::Shared), all_done);
    if let Some(program) = compile_as_cpp(name) {
        all_done(2, success(&job(&program, 2)));
    }
}

#[test]
fn what_does_not_block_is_complete_when_waited_for() {
    both_languages("nonblocking");
}

#[test]
fn groups_have_ranks_memory_and_collectives_of_their_own() {
    both_languages("groups");
}

#[test]
fn messages_mutexes_flags_and_the_rest_do_what_they_say() {
    both_languages("messages");
}

#[test]
fn threads_communicate_where_they_were_asked_for() {
    both_languages("threads");
}

#[test]
fn a_profiler_may_stand_before_a_function() {
    both_languages("profiler");
}

#[test]
fn wrong_calls_are_refused_with_one_line_each() {
    matrix(&compile("refusals", Link::Shared), |ranks, outcome| {
        let stdout = written(&outcome.stdout);
        let refusals = stdout.lines().map(|line| line.strip_suffix(" refusals").unwrap().parse::<usize>().unwrap());
        let refusals: Vec<usize> = refusals.collect();
        assert_eq!(refusals.len(), ranks);
        let stderr = written(&outcome.stderr);
        assert_eq!(stderr.lines().count(), refusals.iter().sum::<usize>(), "{stderr}");
        for line in stderr.lines() {
            let rest = line.strip_prefix("armci: ").unwrap_or_else(|| panic!("{line}"));
            let named = if rest.contains("called before") {
                rest.starts_with("ARMCI_Put: ")
            } else {
                (0..ranks).any(|rank| rest.starts_with(&format!("rank {rank}: ARMCI_")))
            };
            assert!(named, "{line}");
        }
    });
}

#[test]
fn the_static_library_links_too() {
    for name in ["transfers", "collectives"] {
        all_done(2, success(&job(&compile(name, Link::Static), 2)));
    }
}

#[test]
fn giving_up_ends_the_job_with_the_code() {
    let program = compile("gives_up", Link::Shared);
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
    // Without a launcher, too, an error does not look like success.
    let alone = Command::new(program).args(["error", "256"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
}
