//! `armci.h` and `message.h` declare what this library exports, and both say what ARMCI's own headers say.
//!
//! The tables that the exports were made from are printed as a C file of assertions; the compiler holds it against
//! headers. ARMCI's are those of ARMCI-MPI (Debian's `libarmci-mpi-dev`); where they are not installed, and only there,
//! that comparison is left out, and standard error says so.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use armci::abi::{Constant, Function, Layout};
use armci::mpi::Handles;
use armci::{catalogue, group};
use common::{cc, package, run, scratch};

/// What we have and ARMCI-MPI's headers do not declare: other ARMCIs do, or they are twins that it forgot.
const BEYOND: [&str; 9] = [
    "ARMCI_Init_mpi_comm",
    "PARMCI_Init_mpi_comm",
    "armci_group_comm",
    "armci_notify",
    "armci_notify_wait",
    "parmci_notify",
    "parmci_notify_wait",
    "PARMCI_Malloc_group",
    "PARMCI_Free_group",
];
/// What they declare and ARMCI-MPI itself does not define, either.
const NOWHERE: [&str; 1] = ["armci_grp_clus_brdcst"];

/// Every function, twins as functions of their own.
fn functions() -> Vec<Function> {
    let twin = |function: &Function| function.twin.map(|name| Function { name, twin: None, ..function.clone() });
    catalogue::functions().into_iter().flat_map(|function| twin(&function).into_iter().chain([function])).collect()
}

/// The C file of assertions about these functions, for handles of this width.
fn assertions(functions: impl Iterator<Item = Function>, handles: Handles) -> String {
    let mut c = String::from("#include <armci.h>\n#include <stddef.h>\n");
    for Constant { name, value } in catalogue::constants() {
        writeln!(c, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    let mut layout = |name: &str, size: usize, fields: &[(&str, usize)]| {
        writeln!(c, "_Static_assert(sizeof({name}) == {size}, \"{name}\");").unwrap();
        for (field, offset) in fields {
            writeln!(c, "_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");").unwrap();
        }
    };
    for Layout { name, size, fields } in catalogue::layouts() {
        layout(name, size, fields);
    }
    let of_group = group::LAYOUTS.iter().find(|layout| layout.handles == handles).unwrap();
    layout("ARMCI_Group", of_group.size, &of_group.fields());
    for Function { name, returns, arguments, .. } in functions {
        let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        let same = format!("__builtin_types_compatible_p(__typeof__({name}), {returns} ({arguments}))");
        writeln!(c, "_Static_assert({same}, \"{name}\");").unwrap();
    }
    c
}

/// A directory with an `mpi.h` whose handles have this width.
fn stand_in(handles: Handles) -> PathBuf {
    // Once: tests run side by side, and a compiler may be reading it.
    static WRITTEN: OnceLock<()> = OnceLock::new();
    let directory = |handles: Handles| scratch(&format!("mpi-{handles:?}"));
    WRITTEN.get_or_init(|| {
        let headers =
            [(Handles::Pointers, "typedef struct some_mpi *MPI_Comm;\n"), (Handles::Ints, "typedef int MPI_Comm;\n")];
        for (handles, definition) in headers {
            fs::create_dir_all(directory(handles)).unwrap();
            fs::write(directory(handles).join("mpi.h"), definition).unwrap();
        }
    });
    directory(handles)
}

#[test]
fn our_header_has_the_types_of_our_exports() {
    let include = package().join("include");
    for handles in [Handles::Pointers, Handles::Ints] {
        let file = scratch(&format!("ours-{handles:?}.c"));
        fs::write(&file, assertions(functions().into_iter(), handles)).unwrap();
        run(cc()
            .arg("-pedantic")
            .arg("-I")
            .arg(&include)
            .arg("-I")
            .arg(stand_in(handles))
            .arg("-fsyntax-only")
            .arg(&file));
        if handles == Handles::Pointers {
            // Without MPI the handles are pointers, too.
            let without = ["-pedantic", "-DARMCI_NO_MPI", "-DMPI_Comm=armci_comm_t", "-fsyntax-only"];
            run(cc().args(without).arg("-I").arg(&include).arg(&file));
        }
    }
    // A header is for C++ too, where there is a compiler for it.
    let cpp = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if Command::new(&cpp).arg("--version").output().is_ok() {
        for header in ["armci.h", "message.h"] {
            let options = ["-x", "c++", "-DARMCI_NO_MPI", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"];
            run(Command::new(&cpp).args(options).arg(&include).arg(include.join(header)));
        }
    }
}

#[test]
fn our_headers_declare_our_exports_and_no_more() {
    let read = |name: &str| fs::read_to_string(package().join("include").join(name)).unwrap();
    let headers = [read("armci.h"), read("message.h")];
    // A declaration begins its line with a type, and its name is what stands before the parenthesis.
    let declared: BTreeSet<&str> = headers
        .iter()
        .flat_map(|header| header.lines())
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .collect();
    let exported: BTreeSet<&str> = functions().iter().map(|function| function.name).collect();
    assert_eq!(declared, exported);
}

#[test]
fn the_original_headers_say_the_same() {
    let probe = scratch("probe.c");
    // Whatever else is wrong with the headers fails the test.
    fs::write(
        &probe,
        "#if !__has_include(<armci.h>)\nMISSING\n#else\n#include <armci.h>\n#ifdef ARMCI_MPI\nFOUND\n#endif\n#endif\n",
    )
    .unwrap();
    let read = |handles, how: &str, file: &Path| run(cc().arg("-I").arg(stand_in(handles)).arg(how).arg(file)).stdout;
    let probed = String::from_utf8(read(Handles::Ints, "-E", &probe)).unwrap();
    let says = |word| probed.lines().any(|line| line == word);
    if !says("FOUND") {
        let instead = if says("MISSING") { "there is none" } else { "there is another ARMCI's" };
        // Not `eprintln!`, which the harness keeps to itself.
        writeln!(
            std::io::stderr(),
            "left out: ARMCI-MPI's armci.h is not installed, {instead} (Debian: libarmci-mpi-dev)"
        )
        .unwrap();
        return;
    }
    for handles in [Handles::Pointers, Handles::Ints] {
        let file = scratch(&format!("original-{handles:?}.c"));
        let known = functions().into_iter().filter(|function| !BEYOND.contains(&function.name));
        fs::write(&file, assertions(known, handles)).unwrap();
        read(handles, "-fsyntax-only", &file);
    }
    // And all that is declared there is here.
    let ours: BTreeSet<&str> = functions().iter().map(|function| function.name).collect();
    let declared = probed.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '(').filter_map(|word| {
        let name = word.split_once('(')?.0;
        ["ARMCI_", "PARMCI_", "armci_", "parmci_"].iter().any(|prefix| name.starts_with(prefix)).then_some(name)
    });
    let missing: Vec<&str> = declared.filter(|name| !ours.contains(name) && !NOWHERE.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_table_of_functions_names_our_exports_and_their_twins() {
    let page = fs::read_to_string(package().join("README.md")).unwrap();
    let (_, table) = page.split_once("## Functions").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").next());
    // A name in backticks, followed by a P if it has a twin.
    let named = |entry: &str| {
        let (name, rest) = entry.trim_matches([' ', '|']).trim_start_matches('`').split_once('`')?;
        Some((name.to_owned(), rest == " P"))
    };
    let told: BTreeSet<_> = rows.flat_map(|row| row.split(", ")).filter_map(named).collect();
    let ours: BTreeSet<_> =
        catalogue::functions().iter().map(|function| (function.name.to_owned(), function.twin.is_some())).collect();
    assert_eq!(told, ours);
}
