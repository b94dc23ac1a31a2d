//! `armci.h` declares what this library exports, and both say what ARMCI's own header says.
//!
//! The tables that the exports were made from are printed as a C file of assertions; the compiler holds it against
//! a header. ARMCI's is that of ARMCI-MPI (Debian's `libarmci-mpi-dev`); where it is not installed, and only there,
//! that comparison is left out, and standard error says so.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::process::Command;

use armci::abi;
use common::{cc, package, run, scratch};

/// The C file of assertions.
fn assertions() -> String {
    let mut c = String::from("#include <armci.h>\n#include <stddef.h>\n");
    for abi::Constant { name, value } in abi::constants() {
        writeln!(c, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    for abi::Layout { name, size, fields } in abi::layouts() {
        writeln!(c, "_Static_assert(sizeof({name}) == {size}, \"{name}\");").unwrap();
        for (field, offset) in fields {
            writeln!(c, "_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");").unwrap();
        }
    }
    for abi::Function { name, returns, arguments } in abi::functions() {
        let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        let same = format!("__builtin_types_compatible_p(__typeof__({name}), {returns} ({arguments}))");
        writeln!(c, "_Static_assert({same}, \"{name}\");").unwrap();
    }
    c
}

#[test]
fn our_header_has_the_types_of_our_exports() {
    let file = scratch("ours.c");
    fs::write(&file, assertions()).unwrap();
    run(cc().arg("-pedantic").arg("-I").arg(package().join("include")).arg("-fsyntax-only").arg(&file));
    // A header is for C++ too, where there is a compiler for it.
    let cpp = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if Command::new(&cpp).arg("--version").output().is_ok() {
        let options = ["-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
        run(Command::new(cpp).args(options).arg(package().join("include/armci.h")));
    }
}

#[test]
fn our_header_declares_our_exports_and_no_more() {
    let header = fs::read_to_string(package().join("include/armci.h")).unwrap();
    // A declaration begins its line with a type, and its name is what stands before the parenthesis.
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .collect();
    let exported: BTreeSet<&str> = abi::functions().iter().map(|function| function.name).collect();
    assert_eq!(declared, exported);
}

#[test]
fn the_original_header_says_the_same() {
    // It includes MPI's, for what we do not have; a stand-in does for reading it.
    let stand_in = scratch("stand-in");
    fs::create_dir_all(&stand_in).unwrap();
    fs::write(stand_in.join("mpi.h"), "typedef int MPI_Comm;\n").unwrap();
    let file = scratch("original.c");
    fs::write(&file, format!("{}\n#ifndef ARMCI_MPI\n#error another ARMCI\n#endif\n", assertions())).unwrap();
    let probe = scratch("probe.c");
    // Whatever else is wrong with the header fails the test.
    fs::write(
        &probe,
        "#if !__has_include(<armci.h>)\nMISSING\n#else\n#include <armci.h>\n#ifdef ARMCI_MPI\nFOUND\n#endif\n#endif\n",
    )
    .unwrap();

    let read = |how, file| run(cc().arg("-I").arg(&stand_in).arg(how).arg(file)).stdout;
    let probed = String::from_utf8(read("-E", &probe)).unwrap();
    let says = |word| probed.lines().any(|line| line == word);
    if says("FOUND") {
        read("-fsyntax-only", &file);
        return;
    }
    let instead = if says("MISSING") { "there is none" } else { "there is another ARMCI's" };
    // Not `eprintln!`, which the harness keeps to itself.
    writeln!(std::io::stderr(), "left out: ARMCI-MPI's armci.h is not installed, {instead} (Debian: libarmci-mpi-dev)")
        .unwrap();
}
