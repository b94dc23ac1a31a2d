//! Every function that this library exports is called by a C program of the suite.
//!
//! Called, not only named: programs are linked so that the dynamic linker binds a function when it is called first, and it
//! is asked to write down what it binds (`LD_DEBUG=bindings`, see ld.so(8)).

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use armci::catalogue;
use armci_core::job::Job;
use common::program::{Build, SUITE};
use common::scratch;

/// The functions of `libarmci` that a program calls on its ranks.
fn called(program: &Path, arguments: &[&str]) -> BTreeSet<String> {
    let directory = scratch("calls-bindings");
    let _ = fs::remove_dir_all(&directory); // of an earlier program
    fs::create_dir_all(&directory).unwrap();
    let job = Job::new(2, program).unwrap().args(arguments).no_input(true).quiet(true);
    let job = job.capture_stdout(true).capture_stderr(true).timeout(Duration::from_secs(60));
    let bound = directory.join("bound");
    job.env("LD_DEBUG", "bindings")
        .env("LD_DEBUG_OUTPUT", bound.to_str().unwrap())
        .env("LD_BIND_NOW", "")
        .run()
        .unwrap();
    let files = fs::read_dir(&directory).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let files: Vec<String> = files.collect();
    // binding file PROGRAM [0] to LIBRARY [0]: normal symbol `NAME'
    let from = format!("binding file {} ", program.display());
    let lines = files.iter().flat_map(|file| file.lines()).filter(|line| line.contains(&from));
    let to_us = lines.filter_map(|line| line.split_once("libarmci.so.1 [0]: normal symbol `"));
    to_us.filter_map(|(_, name)| Some(name.split_once('\'')?.0.to_owned())).collect()
}

#[test]
fn every_export_is_called_by_a_c_program() {
    let mut all = BTreeSet::new();
    for name in SUITE {
        all.extend(called(&Build::of(name).compile().unwrap(), &[]));
        if name != "profiler" {
            all.extend(called(&Build { twins: true, ..Build::of(name) }.compile().unwrap(), &[]));
        }
    }
    let gives_up = Build::of("gives_up").compile().unwrap();
    for how in ["abort", "error", "communicator"] {
        all.extend(called(&gives_up, &[how, "1"]));
    }
    let exports = catalogue::functions().into_iter().flat_map(|function| [Some(function.name), function.twin]);
    let never: Vec<&str> = exports.flatten().filter(|name| !all.contains(*name)).collect();
    assert_eq!(never, [""; 0], "no program in tests/c calls these");
}
