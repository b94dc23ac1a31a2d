//! Programs under valgrind's memcheck.
//!
//! A rank in which something is found ends with a code of its own, and what was found is in a file of each process, where no
//! output of the program's is between.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::launch::{is_installed, skipped};
use super::{package, scratch};

/// The exit code of a rank in which something was found.
pub const FOUND: i32 = 99;
/// What is set so that valgrind can follow: less reserved address space, and none of hwloc's questions to the processor,
/// which valgrind's cannot answer (an MPI's hwloc would say so on standard error).
pub const SETTINGS: [(&str, &str); 2] = [("ARMCI_SLOT", "64M"), ("HWLOC_COMPONENTS", "-x86")];

/// Valgrind, and where it writes to.
pub struct Valgrind {
    directory: PathBuf,
    leaks: bool,
}

impl Valgrind {
    /// For one job, of this name; none where it is not installed.
    pub fn new(name: &str) -> Option<Self> {
        if !is_installed("valgrind") {
            skipped("under valgrind: it is not installed");
            return None;
        }
        let directory = scratch(&format!("valgrind-{}-{name}", env!("CARGO_CRATE_NAME")));
        let _ = fs::remove_dir_all(&directory); // of an earlier run
        fs::create_dir_all(&directory).unwrap();
        Some(Valgrind { directory, leaks: false })
    }

    /// Memory that nothing points to any more at the end counts, too. (MPIs leave some behind.)
    pub fn with_leaks(self) -> Self {
        Valgrind { leaks: true, ..self }
    }

    /// The command line up to the program's arguments.
    pub fn command(&self, program: &Path) -> Vec<OsString> {
        // Nobody attaches a debugger, whose pipes would stay where a program is killed.
        let mut words = ["valgrind", "--quiet", "--vgdb=no"].map(str::to_owned).to_vec();
        words.push(format!("--error-exitcode={FOUND}"));
        words.push(format!("--suppressions={}", package().join("tests/valgrind.supp").display()));
        words.push(format!("--log-file={}/%p", self.directory.display()));
        if self.leaks {
            words.extend(
                ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
                    .map(str::to_owned),
            );
        }
        words.into_iter().map(OsString::from).chain([program.into()]).collect()
    }

    /// What was found. What valgrind says of itself, of a system call that it does not know, and so fails, or of a flag that
    /// it does not heed, is nothing that a program did.
    pub fn found(&self) -> String {
        let files = fs::read_dir(&self.directory).unwrap();
        let all: String = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        // ==PROCESS== is of memcheck, --PROCESS-- of valgrind.
        let of_the_program = |line: &&str| line.starts_with("==") && !line.contains("== WARNING: valgrind ignores ");
        all.lines().filter(of_the_program).map(|line| format!("{line}\n")).collect()
    }
}
