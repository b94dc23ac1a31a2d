//! What runs Global Arrays' own programs (`clients/global-arrays/own-tests`) tells those that fail on this library alone
//! from all others, reads its recipes and inputs right, and ends what does not end.
//!
//! Their source need not be here: a few programs in its shape stand in for it (`own-tests-tree`).

mod common;

use std::io::Write;
use std::process::Command;

use common::{installed, package, scratch};

/// Whether a program can be started.
fn there_is(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn what_fails_on_this_library_alone_is_told_from_the_rest() {
    let programs = ["python3", "m4", "mpicc.openmpi", "mpifort.openmpi"];
    let search = Command::new("cc").arg("-print-file-name=libga-openmpi.a").output();
    let archive = search.is_ok_and(|output| output.stdout.starts_with(b"/"));
    if !archive || !programs.into_iter().all(there_is) {
        // Not `eprintln!`, which the harness keeps to itself.
        writeln!(std::io::stderr(), "left out: Global Arrays for Open MPI, or one of {programs:?}").unwrap();
        return;
    }
    let clients = package().join("tests/clients/global-arrays");
    let mut harness = Command::new("timeout");
    harness.args(["--kill-after=5", "180"]).arg(clients.join("own-tests"));
    harness.arg("--armci").arg(installed()).arg("--work").arg(scratch("own-tests"));
    harness.arg("--source").arg(clients.join("own-tests-tree")).args(["--ranks", "2", "--seconds", "10"]);
    let output = harness.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let said = format!("{printed}\n{}", String::from_utf8_lossy(&output.stderr));

    let row = |program: &str| {
        let begin = format!("| `{program}` | 2 | ");
        let row = printed.lines().find_map(|line| line.strip_prefix(&begin));
        row.unwrap_or_else(|| panic!("no row of {program}: {said}")).to_owned()
    };
    assert_eq!(row("global/testing/sum"), "passes | passes |");
    assert_eq!(row("global/testing/differs"), "passes | complains: element # is wrong |");
    assert_eq!(row("global/testing/silent"), "exit code 3 | passes |");
    assert_eq!(row("global/testing/does-not-end"), "passes | not done after 10 s |");
    assert_eq!(row("global/testing/made"), "passes | passes |");
    assert_eq!(row("global/testing/made_otherwise"), "passes | passes |");
    assert_eq!(row("global/examples/words/words"), "passes | passes |");
    assert!(!printed.contains("without_fortran") && !printed.contains("of_another_system"), "{said}");
    assert!(printed.contains("ARMCI-MPI: 6 pass, 1 do not; ours: 5 pass, 2 do not"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}
