//! Our declarations of PMIx are those of the installed header.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use armci_core::job::pmix::abi::{FACTS, KEYS, SIGNATURES};

/// The compiler, with these words for the preprocessor.
fn cc(options: &[String]) -> Command {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.arg("-std=c11").args(options);
    cc
}

/// A file with this text.
fn file(text: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("pmix-{number}.c"));
    std::fs::write(&file, text).unwrap();
    file
}

/// Whether C takes this; what it says otherwise.
fn compile(text: &str, options: &[String]) -> Result<(), String> {
    let output = cc(options).arg("-fsyntax-only").arg(file(text)).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The options by which the compiler finds `pmix.h`, if it does.
fn include() -> Option<Vec<String>> {
    let asked = Command::new("pkg-config").args(["--cflags", "pmix"]).output();
    let words = |text: Vec<u8>| String::from_utf8_lossy(&text).split_whitespace().map(str::to_owned).collect();
    let known = asked.ok().filter(|output| output.status.success()).map(|output| words(output.stdout));
    known.into_iter().chain([Vec::new()]).find(|options| compile("#include <pmix.h>\n", options).is_ok())
}

#[test]
fn our_declarations_of_pmix_are_the_headers() {
    let Some(options) = include() else {
        use std::io::Write;
        // Past the test harness, which keeps the words of tests that pass.
        let _ = std::io::stderr().write_all(b"SKIPPED: pmix.h is not installed (Debian: libpmix-dev)\n");
        return;
    };
    let prelude = "#include <pmix.h>\n#include <stddef.h>\n";
    let mut text = prelude.to_owned();
    for (expression, value) in FACTS {
        writeln!(text, "_Static_assert(({expression}) == ({value}), \"{expression} is not {value}\");").unwrap();
    }
    for (name, signature) in SIGNATURES {
        writeln!(text, "_Static_assert(_Generic(&{name}, {signature}: 1, default: 0), \"{name} is another\");")
            .unwrap();
    }
    compile(&text, &options).unwrap();

    // Strings are no constants to C; the preprocessor shows them.
    for (name, value) in KEYS {
        let output = cc(&options).args(["-E", "-P"]).arg(file(&format!("{prelude}THE_KEY {name}\n"))).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("THE_KEY \"{value}\"")), "{name} is not {value:?}");
    }

    // The test would notice.
    let (expression, value) = FACTS[0];
    let wrong = format!("{prelude}_Static_assert(({expression}) == ({value} + 1), \"another size\");\n");
    assert!(compile(&wrong, &options).unwrap_err().contains("another size"));
    let wrong =
        format!("{prelude}_Static_assert(_Generic(&PMIx_Commit, int (*)(int): 1, default: 0), \"another type\");\n");
    assert!(compile(&wrong, &options).unwrap_err().contains("another type"));
}
