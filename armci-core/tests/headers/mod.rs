//! C, asked about headers: whether declarations of ours are those that are installed.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Installed headers, and how the compiler finds them.
pub struct Headers {
    prelude: String,
    options: Vec<String>,
}

impl Headers {
    /// These headers of a package of `pkg-config`'s. Where they are not installed, the test says so, with what to
    /// install on Debian, and is over.
    pub fn find(package: &str, headers: &[&str], debian: &str) -> Option<Self> {
        let includes: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        let prelude = format!("{includes}#include <stddef.h>\n#include <stdint.h>\n#include <sys/uio.h>\n");
        let asked = Command::new("pkg-config").args(["--cflags", package]).output();
        let words = |text: Vec<u8>| String::from_utf8_lossy(&text).split_whitespace().map(str::to_owned).collect();
        let known = asked.ok().filter(|output| output.status.success()).map(|output| words(output.stdout));
        let found = known.into_iter().chain([Vec::new()]).find(|options| {
            let headers = Headers { prelude: prelude.clone(), options: options.clone() };
            headers.takes("").is_ok()
        });
        if found.is_none() {
            use std::io::Write;
            let line = format!("SKIPPED: {} is not installed (Debian: {debian})\n", headers.join(", "));
            // Past the test harness, which keeps the words of tests that pass.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        found.map(|options| Headers { prelude, options })
    }

    /// The compiler, with the words for the preprocessor.
    fn cc(&self) -> Command {
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.arg("-std=gnu11").args(&self.options);
        cc
    }

    /// A file with this text behind the headers.
    fn file(&self, text: &str) -> PathBuf {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.c", env!("CARGO_CRATE_NAME"));
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, format!("{}{text}", self.prelude)).unwrap();
        file
    }

    /// Whether C takes this behind the headers; what it says otherwise.
    pub fn takes(&self, text: &str) -> Result<(), String> {
        let output = self.cc().arg("-fsyntax-only").arg(self.file(text)).output().map_err(|error| error.to_string())?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }

    /// What the preprocessor makes of this behind the headers.
    #[allow(dead_code, reason = "not every test asks for it")]
    pub fn preprocessed(&self, text: &str) -> String {
        let output = self.cc().args(["-E", "-P"]).arg(self.file(text)).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Holds expressions of C to their values, and others to their types; says so if the compiler does not, and makes
    /// sure that it would.
    pub fn hold(&self, facts: &[(&str, i64)], types: &[(&str, &str)]) {
        let fact = |(expression, value): (&str, i64)| {
            format!("_Static_assert(({expression}) == ({value}), \"{expression} is not {value}\");\n")
        };
        let kind = |(expression, kind): (&str, &str)| {
            format!("_Static_assert(_Generic({expression}, {kind}: 1, default: 0), \"{expression} is another\");\n")
        };
        let mut text = String::new();
        facts.iter().for_each(|known| text.write_str(&fact(*known)).unwrap());
        types.iter().for_each(|known| text.write_str(&kind(*known)).unwrap());
        self.takes(&text).unwrap();

        let (expression, value) = facts[0];
        assert!(self.takes(&fact((expression, value + 1))).unwrap_err().contains(&format!("is not {}", value + 1)));
        let (expression, _) = types[0];
        assert!(self.takes(&kind((expression, "struct nothing *"))).unwrap_err().contains("is another"));
    }
}
