//! Compiling C in a test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
