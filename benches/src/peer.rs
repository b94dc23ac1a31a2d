//! C programs of ours in `peers/`, each on a library that it is linked with: ARMCI-MPI, and Global Arrays on it, on Open
//! MPI from the distribution's packages; and our own, beside the same MPI or without one.
//!
//! A library may be missing, may not link, may hang or crash: each becomes a reason below the table, never an error of
//! the run. However the run ends, `mpirun` is asked to end, and it ends its ranks; the files go with it unless the run
//! is killed outright.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use armci_core::job::{Bind, Job};
use tempfile::TempDir;

use crate::command::{fresh_directory, run};
use crate::figure::Figures;
use crate::jobs::DEFAULTS;
use crate::programs::SHARED;
use crate::timing::Effort;

/// The longest a program may take, or its compiler.
const LIMIT: Duration = Duration::from_secs(60);

/// What to say where Open MPI is not installed.
pub const HOW_TO_INSTALL: &str = "apt-get install libarmci-mpi-dev libopenmpi-dev openmpi-bin (or: make bench)";

/// A file to compile, and what is in it.
pub type Source = (&'static str, &'static str);

/// Ways to link, of which the first that works is taken.
pub type Links = &'static [&'static [&'static str]];

/// Which MPI a program is compiled and started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// None.
    No,
    /// Open MPI.
    Open,
    /// MPICH.
    Mpich,
}

impl Mpi {
    /// What `--version` says of its programs.
    fn sign(self) -> &'static str {
        if self == Mpi::Mpich { "HYDRA" } else { "Open MPI" }
    }

    fn compiler(self) -> Result<&'static str, String> {
        match self {
            Mpi::No => Ok("cc"),
            Mpi::Open => found(["mpicc.openmpi", "mpicc"], Mpi::Open),
            // Its compiler says which C compiler it is, and not whose it is: it is known by its name alone.
            Mpi::Mpich => ["mpicc.mpich"].into_iter().find(|name| starts(name)).ok_or_else(no_mpich),
        }
    }
}

/// Where a library is.
#[derive(Clone, Copy, Debug)]
pub enum Link {
    /// Where the compiler looks.
    Installed(Links),
    /// It is the one that this program was built with, or another of ours that was named.
    Ours(Links),
    /// In a Global Arrays on ComEx MPI-PR that was named.
    MpiPr(Links),
}

/// A library, and our program for it.
#[derive(Debug)]
pub struct Library {
    /// What it is called.
    pub name: &'static str,
    /// The program.
    pub sources: &'static [Source],
    /// Headers to find before others.
    pub headers: &'static [Source],
    /// Which MPI the program uses.
    pub mpi: Mpi,
    /// How it is compiled.
    pub options: &'static [&'static str],
    /// How it is linked.
    pub link: Link,
    /// What a compiler says where it is missing.
    pub signs: &'static [&'static str],
    /// What to do then.
    pub how_to_install: &'static str,
}

/// Who starts the ranks.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Open MPI's launcher, which binds them to cores or does not.
    Mpirun {
        /// Whether it does.
        bound: bool,
    },
    /// MPICH's, which binds them to cores.
    Mpiexec,
    /// Ours, which binds them to cores.
    ArmciRun,
    /// MPICH's launcher, which binds them to cores, and the ranks are told that they share no memory.
    MpiexecApart,
    /// The program itself starts who else it needs.
    Alone,
}

/// What a library's program measures, and how it is started for that.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The library.
    pub library: &'static Library,
    /// What the names of its figures begin with.
    pub prefix: &'static str,
    /// What it measures.
    pub argument: &'static str,
    /// How many ranks do.
    pub ranks: usize,
    /// Who starts them.
    pub start: Start,
    /// Whether what it measures is ours.
    pub ours: bool,
}

/// Where libraries are that no package has.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Our shared library, if it is not beside this program.
    pub libarmci: Option<PathBuf>,
    /// The prefix of a Global Arrays on ComEx MPI-PR.
    pub mpi_pr: Option<PathBuf>,
}

impl Places {
    /// Our library.
    fn ours(&self) -> Result<PathBuf, String> {
        let beside = || std::env::current_exe().ok().map(|program| program.with_file_name("libarmci.so"));
        let file = self.libarmci.clone().or_else(beside).and_then(|file| file.canonicalize().ok());
        file.filter(|file| file.is_file()).ok_or_else(|| {
            "there is no libarmci.so beside this program: cargo build --release -p armci-ffi, or --libarmci FILE".into()
        })
    }
}

/// Programs, by library: compiled, or why not.
#[derive(Debug, Default)]
pub struct Peers(Vec<(&'static str, Result<Peer, String>)>);

impl Peers {
    /// Compiles those that these programs are of.
    pub fn build(programs: &[Program], places: &Places) -> Self {
        let mut peers = Peers::default();
        for Program { library, .. } in programs {
            if peers.0.iter().all(|(name, _)| *name != library.name) {
                peers.0.push((library.name, Peer::build(library, places)));
            }
        }
        peers
    }

    /// Runs one of the programs.
    ///
    /// # Errors
    /// Why there are no figures, in words for below the table.
    pub fn measure(&self, program: Program, effort: Effort) -> Result<Figures, String> {
        let name = program.library.name;
        let Some((_, peer)) = self.0.iter().find(|(built, _)| *built == name) else {
            return Err(format!("{name}: not asked for"));
        };
        let peer = peer.as_ref().map_err(Clone::clone);
        let figures =
            peer.and_then(|peer| peer.measure(program, effort)).map_err(|reason| format!("{name}: {reason}"))?;
        Ok(figures.with_prefix(program.prefix))
    }
}

/// A compiled program; its directory goes with it.
#[derive(Debug)]
struct Peer {
    directory: TempDir,
}

/// What a program is called in its directory.
const PROGRAM: &str = "program";

impl Peer {
    /// Compiles it; or says why there is none.
    fn build(library: &Library, places: &Places) -> Result<Self, String> {
        let directory = fresh_directory().map_err(|error| format!("cannot make a directory: {error}"))?;
        let here = directory.path();
        for (file, text) in library.sources.iter().chain(library.headers).chain(&SHARED) {
            fs::write(here.join(file), text).map_err(|error| format!("cannot write {file}: {error}"))?;
        }
        let (options, links) = library.found(here, places)?;
        let compiler = library.mpi.compiler()?;
        let mut said = String::new();
        for link in links {
            let mut command = Command::new(compiler);
            command.args(["-O3", "-I."]).args(library.options).args(&options);
            command.args(library.sources.iter().map(|(file, _)| file)).args(["-o", PROGRAM]);
            let compiled = run(command.args(*link).current_dir(here), here, LIMIT)?;
            if compiled.status.is_some_and(|status| status.success()) {
                return Ok(Peer { directory });
            }
            said = compiled.stderr;
        }
        let missing = library.signs.iter().any(|what| said.contains(what));
        Err(if missing {
            format!("it is not installed: {}", library.how_to_install)
        } else {
            format!("{compiler} fails: {}", first_line(&said))
        })
    }

    /// Runs a program of its library.
    fn measure(&self, program: Program, effort: Effort) -> Result<Figures, String> {
        let file = self.directory.path().join(PROGRAM);
        let arguments =
            [program.argument.to_owned(), effort.samples.to_string(), effort.window.as_millis().to_string()];
        let what = format!("'{}' with {} ranks", program.argument, program.ranks);
        let stdout = match program.start {
            Start::Mpirun { bound } => {
                let mut command = Command::new(found(["mpirun.openmpi", "mpirun"], Mpi::Open)?);
                command.args(["--oversubscribe", "--bind-to", if bound { "core" } else { "none" }]);
                if rustix::process::geteuid().is_root() {
                    command.arg("--allow-run-as-root");
                }
                command.args(["-n", &program.ranks.to_string()]).arg(file).args(arguments).envs(DEFAULTS);
                self.run(&mut command, &what)?
            }
            Start::Mpiexec => {
                let mut command = Command::new(found(["mpiexec.mpich", "mpiexec.hydra"], Mpi::Mpich)?);
                command.args(["-bind-to", "core", "-n", &program.ranks.to_string()]).arg(file).args(arguments);
                self.run(command.envs(DEFAULTS), &what)?
            }
            Start::MpiexecApart => {
                let mut command = Command::new(found(["mpiexec.mpich", "mpiexec.hydra"], Mpi::Mpich)?);
                command.args(["-bind-to", "core", "-n", &program.ranks.to_string()]).arg(file).args(arguments);
                // By way of the loopback interface, whatever both could do else.
                command.env("MPIR_CVAR_NOLOCAL", "1").env("UCX_TLS", "tcp,self");
                self.run(&mut command, &what)?
            }
            Start::Alone => self.run(Command::new(file).args(arguments), &what)?,
            Start::ArmciRun => {
                let job = Job::new(program.ranks, file).map_err(|error| error.to_string())?;
                let job = job.args(arguments).bind(Bind::Core).no_input(true).quiet(true).timeout(LIMIT);
                let job = DEFAULTS.iter().fold(job, |job, (name, value)| job.env(name, value));
                let ran = job.capture_stdout(true).capture_stderr(true).run().map_err(|error| error.to_string())?;
                if ran.code != 0 {
                    let said = String::from_utf8_lossy(&ran.stderr);
                    return Err(format!("{what} failed (code {}): {}", ran.code, first_line(&said)));
                }
                String::from_utf8_lossy(&ran.stdout).into_owned()
            }
        };
        Figures::parse(&stdout).map_err(|error| error.to_string())
    }

    /// Runs a command, and returns what it printed.
    fn run(&self, command: &mut Command, what: &str) -> Result<String, String> {
        let ran = run(command, self.directory.path(), LIMIT)?;
        let status = ran.status.ok_or_else(|| format!("{what} did not end within {} s", LIMIT.as_secs()))?;
        if !status.success() {
            return Err(format!("{what} failed ({status}): {}", first_line(&ran.stderr)));
        }
        Ok(ran.stdout)
    }
}

impl Library {
    /// What the compiler must know to find it, and the ways to link with it; or why it is not there.
    fn found(&self, directory: &Path, places: &Places) -> Result<(Vec<String>, Links), String> {
        match self.link {
            Link::Installed(links) => Ok((Vec::new(), links)),
            Link::Ours(links) => {
                let file = places.ours()?;
                for (target, link) in [(file.as_path(), "libarmci.so.1"), (Path::new("libarmci.so.1"), "libarmci.so")] {
                    let made = symlink(target, directory.join(link));
                    made.map_err(|error| format!("cannot make a link to {}: {error}", target.display()))?;
                }
                Ok((vec!["-L.".into(), format!("-Wl,-rpath,{}", directory.display())], links))
            }
            Link::MpiPr(links) => {
                let prefix =
                    places.mpi_pr.as_ref().ok_or_else(|| format!("none was named: {}", self.how_to_install))?;
                let prefix = prefix.canonicalize().map_err(|error| format!("{}: {error}", prefix.display()))?;
                let prefix = prefix.display();
                Ok((vec![format!("-I{prefix}/include"), format!("-L{prefix}/lib")], links))
            }
        }
    }
}

/// The first of these that is there, and of this MPI.
fn found(names: [&'static str; 2], mpi: Mpi) -> Result<&'static str, String> {
    let found = names.into_iter().find(|name| is_of(name, mpi));
    found.ok_or_else(|| {
        if mpi == Mpi::Mpich { no_mpich() } else { format!("Open MPI is not installed: {HOW_TO_INSTALL}") }
    })
}

fn no_mpich() -> String {
    "MPICH is not installed: apt-get install libmpich-dev mpich".into()
}

/// Whether there is such a program at all.
fn starts(name: &str) -> bool {
    Command::new(name).arg("--version").stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// Whether this compiler or launcher is there, and this MPI's.
fn is_of(name: &str, mpi: Mpi) -> bool {
    let said = |argument: &str| Command::new(name).arg(argument).stdin(Stdio::null()).output();
    let signed = |text: &[u8]| String::from_utf8_lossy(text).contains(mpi.sign());
    said("--version").is_ok_and(|output| output.status.success() && signed(&output.stdout))
        || said("--showme:version").is_ok_and(|output| signed(&output.stdout) || signed(&output.stderr))
}

fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("---"))
        .unwrap_or("it did not say why")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::SETS;

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let places = Places { libarmci: Some("/no/such/libarmci.so".into()), mpi_pr: None };
        let programs: Vec<Program> = SETS.iter().flat_map(|set| set.programs).copied().collect();
        let reasons: Vec<String> = programs
            .iter()
            .filter(|program| !matches!(program.library.link, Link::Installed(_)))
            .map(|program| Peer::build(program.library, &places).map(drop).unwrap_err())
            .collect();
        assert!(reasons.iter().any(|reason| reason.contains("--libarmci FILE")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("--mpi-pr DIR")), "{reasons:?}");
        assert_eq!(reasons.len(), 6);
    }
}
