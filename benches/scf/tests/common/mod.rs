//! Running the built program on real ranks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A molecule shipped with the program.
pub fn molecule(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("molecules").join(name)
}

/// Runs `scf` with these arguments, outside any job.
pub fn scf(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scf"));
    command.args(arguments).arg(file);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ARMCI_") {
            command.env_remove(name);
        }
    }
    command.output().expect("scf starts")
}

/// Runs `scf --json` and reads its result; the exit code must be `code`.
#[allow(dead_code)]
pub fn json(arguments: &[&str], file: &Path, code: i32) -> Value {
    let output = scf(&[&["--json"], arguments].concat(), file);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: one JSON object expected ({error}): {errors}"))
}

/// A number in a result.
#[allow(dead_code)]
pub fn number(result: &Value, pointer: &str) -> f64 {
    result.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer} in {result}"))
}

/// A file of the test's own, with this text.
#[allow(dead_code)]
pub fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the test's directory can be written");
    path
}
