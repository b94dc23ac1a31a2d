//! Compiling C in a test, and linking it with the library.
#![allow(dead_code)] // each test file uses its part

pub mod launch;
pub mod program;
pub mod valgrind;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where this package's own files lie.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A place for what a test makes.
pub fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The C compiler, with warnings as errors.
pub fn cc() -> Command {
    compiler(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// Another compiler, in the same way.
pub fn compiler(program: impl AsRef<OsStr>) -> Command {
    let mut cc = Command::new(program);
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]);
    cc
}

/// Runs a compiler, which must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// How a program finds the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// `libarmci.so.1`.
    Shared,
    /// `libarmci.a`.
    Static,
}

/// The directory where cargo has put the library that this test was built with: that of this test itself. (The
/// copies one level up are those of the last `cargo build`.)
pub fn library(link: Link) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let file = test.with_file_name(match link {
        Link::Shared => "libarmci.so",
        Link::Static => "libarmci.a",
    });
    assert!(file.is_file(), "{} should have been built with this test", file.display());
    file
}

/// A directory where the library goes by the names it is installed under: that to link with, and that to run with.
pub fn installed() -> &'static Path {
    static ONCE: OnceLock<PathBuf> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Of this process alone: several link at once.
        let directory = scratch(&format!("lib-{}", env!("CARGO_CRATE_NAME")));
        let _ = fs::remove_dir_all(&directory); // of an earlier run, if there was one
        fs::create_dir_all(&directory).unwrap();
        symlink(library(Link::Shared), directory.join("libarmci.so.1")).unwrap();
        symlink("libarmci.so.1", directory.join("libarmci.so")).unwrap();
        directory
    })
}
