//! The C programs of `tests/c`: in which ways each is compiled, and what it must say when it has run.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use armci::catalogue;

use super::launch::{Mpi, is_installed};
use super::{Link, compiler, installed, library, package, run, scratch};

/// Those that need nothing: they run on any ranks, and without a launcher.
pub const SUITE: [&str; 8] =
    ["transfers", "collectives", "nonblocking", "groups", "messages", "threads", "profiler", "refusals"];
/// Those that need an MPI.
pub const WITH_MPI: [&str; 1] = ["communicators"];
/// Those that a test of their own runs: they end in ways of their own.
pub const OTHERS: [&str; 3] = ["gives_up", "beside_mpi", "careless"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
}

/// One way to compile a program.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    pub name: &'static str,
    pub language: Language,
    /// The MPI to link with.
    pub mpi: Option<Mpi>,
    pub link: Link,
    /// Whether every function is called by the name that profilers have for it, where there is one.
    pub twins: bool,
}

impl Build {
    /// In C, without MPI.
    pub fn of(name: &'static str) -> Self {
        Build { name, language: Language::C, mpi: None, link: Link::Shared, twins: false }
    }

    /// Compiles it; none where there is no C++ compiler.
    pub fn compile(self) -> Option<PathBuf> {
        let Build { name, language, mpi, link, twins } = self;
        let mpi = mpi.map_or("alone", |mpi| mpi.name);
        let twins = if twins { "-twins" } else { "" };
        // Tests that run side by side must not write one file.
        self.compile_to(&format!("{}-{name}-{language:?}-{mpi}-{link:?}{twins}", env!("CARGO_CRATE_NAME")))
    }

    /// The same, into a file of this name.
    pub fn compile_to(self, file: &str) -> Option<PathBuf> {
        let program = scratch(file);
        let mut compiler = self.compiler()?;
        compiler.arg("-D_DEFAULT_SOURCE").arg(if self.mpi.is_some() { "-DWITH_MPI" } else { "-DARMCI_NO_MPI" });
        compiler.arg("-I").arg(package().join("include"));
        if self.twins {
            compiler.arg("-include").arg(twins());
        }
        compiler.arg(package().join(format!("tests/c/{}.c", self.name))).args(["-x", "none", "-o"]).arg(&program);
        match self.link {
            Link::Shared => {
                let directory = installed().to_str().unwrap();
                compiler.args(["-L", directory, "-larmci", &format!("-Wl,-rpath,{directory}"), "-lpthread"])
            }
            Link::Static => {
                compiler.arg(library(Link::Static)).args(["-lhwloc", "-lgcc_s", "-lm", "-lpthread", "-ldl"])
            }
        };
        // Bound at the first call, so that the dynamic linker can tell what was called.
        compiler.arg("-Wl,-z,lazy");
        run(&mut compiler);
        Some(program)
    }

    fn compiler(self) -> Option<Command> {
        let own = |variable: &str, otherwise: &str| std::env::var(variable).unwrap_or_else(|_| otherwise.into());
        if self.language == Language::C {
            return Some(compiler(self.mpi.map_or_else(|| own("CC", "cc"), |mpi| mpi.compiler.into())));
        }
        let name = self.mpi.map_or_else(|| own("CXX", "c++"), |mpi| mpi.cpp.into());
        if !is_installed(&name) && !PathBuf::from(&name).is_file() {
            super::launch::skipped(&format!("as C++: {name} is not installed"));
            return None;
        }
        let mut cpp = Command::new(name);
        cpp.args(["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]);
        // MPI's classes of old, whose headers have warnings of their own.
        cpp.args(["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]);
        Some(cpp)
    }
}

/// A header after which a program means a function's second name when it says the first.
fn twins() -> PathBuf {
    static ONCE: OnceLock<PathBuf> = OnceLock::new();
    let write = || {
        let file = scratch(&format!("twins-{}.h", env!("CARGO_CRATE_NAME")));
        let mut header = String::from("#include <armci.h>\n");
        for function in catalogue::functions() {
            if let Some(twin) = function.twin {
                writeln!(header, "#define {} {twin}", function.name).unwrap();
            }
        }
        fs::write(&file, header).unwrap();
        file
    };
    ONCE.get_or_init(write).clone()
}

/// Holds what a program of the suite wrote on so many ranks against what it must: that each is done, or how often each
/// was refused something, with a line for every time.
pub fn check(name: &str, ranks: usize, stdout: &str, stderr: &str) {
    if !["refusals", "communicators"].contains(&name) {
        assert_eq!((stdout, stderr), ("done\n".repeat(ranks).as_str(), ""), "{name}, {ranks} ranks");
        return;
    }
    let refusals = stdout.lines().map(|line| line.strip_suffix(" refusals").and_then(|count| count.parse().ok()));
    let refusals: Vec<usize> = refusals.map(|count| count.unwrap_or_else(|| panic!("{stdout}\n{stderr}"))).collect();
    assert_eq!(refusals.len(), ranks, "{name}: {stdout}\n{stderr}");
    assert!(refusals.iter().all(|count| *count > 0), "{name}: {stdout}");
    assert_eq!(stderr.lines().count(), refusals.iter().sum::<usize>(), "{name}: {stderr}");
    for line in stderr.lines() {
        let rest = line.strip_prefix("armci: ").unwrap_or_else(|| panic!("{name}: {line}"));
        let of_a_rank = (0..ranks).any(|rank| rest.starts_with(&format!("rank {rank}: ARMCI_")));
        // Before the job was joined nobody has a number.
        let before = (rest.starts_with("ARMCI_Put: ") && rest.contains("called before"))
            || rest.starts_with("ARMCI_Init_thread_comm: ");
        assert!(of_a_rank || before, "{name}: {line}");
    }
}
