//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use armci_core::Config;
use clap::{Parser, ValueEnum};

use crate::basis::{self, BasisSet, BasisText, Functions};
use crate::error::{Result, ScfError};
use crate::molecule::Molecule;
use crate::scf::{Guess, Problem, Settings};
use crate::text::read_text;

/// Closed-shell Hartree-Fock on distributed arrays, with tasks from a shared counter.
#[derive(Debug, Clone, Parser)]
#[command(name = "scf", version, about, after_help = AFTER)]
pub struct Cli {
    /// Molecule as an XYZ file (angstrom)
    #[arg(value_name = "FILE.xyz")]
    pub file: PathBuf,

    /// Basis set by name, or a file in NWChem's format
    #[arg(long, short, default_value = "6-31g*", value_name = "NAME|PATH")]
    pub basis: String,

    /// Cartesian d and f functions (the default for 3-21G and the 6-31G family)
    #[arg(long, conflicts_with = "spherical")]
    pub cartesian: bool,

    /// Spherical d and f functions (the default for STO-3G, 6-311G and the Dunning sets)
    #[arg(long)]
    pub spherical: bool,

    /// Charge of the molecule
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-10_000..=10_000))]
    pub charge: i64,

    /// Ranks to start; all cores by default. Inside a launched job the launcher has decided
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,

    /// Who serves active messages while a rank computes
    #[arg(long, value_name = "MODE")]
    pub progress: Option<ProgressMode>,

    /// Path of remote operations: rma, am, or per operation such as rmw=am,accumulate=am
    #[arg(long)]
    pub protocol: Option<String>,

    /// Functions per block of shells (a task is a pair of blocks against a row of others) [default: by size, 3 to 12]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub block: Option<u32>,

    /// Tasks taken from the counter at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: u32,

    /// Largest element of the residual FDS - SDF at convergence; the energy must settle to a hundredth of it
    #[arg(long, default_value = "1e-5", value_parser = convergence)]
    pub convergence: f64,

    /// Iterations at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: u32,

    /// Leave out integrals that change no element of the Fock matrix by this much (Schwarz bound times
    /// density), once the residual is below 1e-3; before, 1e-7 [default: 1e-10, or a thousandth of
    /// --convergence if that is smaller]
    #[arg(long, value_parser = positive)]
    pub screening: Option<f64>,

    /// Starting density
    #[arg(long, default_value = "atoms")]
    pub guess: GuessName,

    /// Build every Fock matrix from the whole density, not from its change
    #[arg(long)]
    pub full_builds: bool,

    /// Leave out combinations of functions whose overlap eigenvalue is below this
    #[arg(long, default_value = "1e-5", value_parser = positive, value_name = "EIGENVALUE")]
    pub dependence: f64,

    /// One JSON object on standard output, nothing else
    #[arg(long)]
    pub json: bool,

    /// Counter and Fock accumulates by active message, once with and once without the progress
    /// thread; prints the difference, fails if the thread served nothing
    #[arg(long, conflicts_with_all = ["progress", "protocol"])]
    pub compare_progress: bool,
}

const AFTER: &str = "Basis sets: STO-3G, 3-21G, 6-31G, 6-31G*, 6-31G**, 6-31+G*, 6-31++G**, 6-311G*, 6-311G**, \
cc-pVDZ, cc-pVTZ, aug-cc-pVDZ (H to Ar; 6-31++G** has no He).\n\
Exit codes: 0 converged, 1 failed, 2 wrong usage, 3 not converged (the best energy so far is printed).";

/// Who serves active messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// A progress thread in every rank.
    Thread,
    /// Only ranks that are inside a call.
    None,
}

/// How to start, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuessName {
    /// Superposed densities of the atoms.
    Atoms,
    /// Orbitals of the core Hamiltonian.
    Core,
}

fn convergence(text: &str) -> std::result::Result<f64, String> {
    match positive(text) {
        Ok(x) if x <= LOOSEST => Ok(x),
        _ => Err(format!("expected a positive number of at most {LOOSEST}")),
    }
}

/// Beyond this residual nothing has converged.
const LOOSEST: f64 = 0.1;

/// Screening by more than this part of the convergence threshold shows in the residual.
const SCREENING_SHARE: f64 = 1e-3;

fn positive(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a positive number".to_owned()),
    }
}

/// Input as text, before it is understood: what rank 0 reads and the others are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputText {
    /// The XYZ file's text.
    pub molecule: String,
    /// The basis set's name and text.
    pub basis: BasisText,
}

impl Cli {
    /// Checks what the parser of the command line cannot: that the values go together, and the
    /// runtime's settings, those of the environment too.
    ///
    /// # Errors
    /// [`ScfError::Usage`], or what the runtime says of a setting.
    pub fn check(&self) -> Result<Config> {
        let most = self.convergence * SCREENING_SHARE;
        // Decimal fractions are not exact.
        if self.screening() > most * (1.0 + 1e-9) {
            return Err(ScfError::Usage(format!(
                "--screening {:e} is too coarse for --convergence {:e}: the error of the screening would pass for \
                 convergence; give at most a thousandth of that ({most:.2e}), or none",
                self.screening(),
                self.convergence
            )));
        }
        let mut config = Config::from_env()?;
        for (name, value) in self.runtime_settings() {
            config.set(name, &value)?;
        }
        Ok(config)
    }

    /// The screening threshold: what was asked for, or what the convergence needs.
    pub fn screening(&self) -> f64 {
        self.screening.unwrap_or_else(|| (self.convergence * SCREENING_SHARE).min(1e-10))
    }

    /// Reads the files.
    ///
    /// # Errors
    /// A file is unreadable, or the basis set is unknown.
    pub fn read(&self) -> Result<InputText> {
        Ok(InputText { molecule: read_text(&self.file)?, basis: basis::find(&self.basis)? })
    }

    /// Understands the files.
    ///
    /// # Errors
    /// They are malformed, or do not make a closed-shell molecule.
    pub fn problem(&self, input: &InputText) -> Result<Problem> {
        let molecule = Molecule::from_xyz(&self.file.display().to_string(), &input.molecule, self.charge)?;
        molecule.occupied()?;
        let basis = BasisSet::parse(&input.basis)?;
        for atom in &molecule.atoms {
            basis.shells(atom.element)?;
        }
        let functions = match (self.cartesian, self.spherical) {
            (true, _) => Functions::Cartesian,
            (_, true) => Functions::Spherical,
            _ => basis.functions,
        };
        Ok(Problem { molecule, basis, functions })
    }

    /// The calculation's settings.
    pub fn settings(&self) -> Settings {
        Settings {
            convergence: self.convergence,
            max_iterations: self.max_iterations as usize,
            screening: self.screening(),
            block: self.block.map(|b| b as usize),
            chunk: self.chunk as usize,
            guess: match self.guess {
                GuessName::Atoms => Guess::Atoms,
                GuessName::Core => Guess::Core,
            },
            incremental: !self.full_builds,
            dependence: self.dependence,
        }
    }

    /// Ranks to start when the program starts its own.
    pub fn own_ranks(&self) -> usize {
        match self.ranks {
            Some(n) => n as usize,
            None => std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }

    /// Settings of the runtime that the command line makes: names and values, as the environment would hold them.
    pub fn runtime_settings(&self) -> Vec<(&'static str, String)> {
        let mut list = Vec::new();
        if let Some(mode) = self.progress {
            list.push(("ARMCI_PROGRESS", if mode == ProgressMode::Thread { "thread" } else { "none" }.to_owned()));
        }
        if let Some(protocol) = &self.protocol {
            list.push(("ARMCI_PROTOCOL", protocol.clone()));
        }
        list
    }

    /// The same command line for the two halves of a comparison: JSON, and no comparison.
    pub fn plain_arguments(&self) -> Vec<OsString> {
        let skip = ["--compare-progress", "--json"];
        let mut list: Vec<OsString> = std::env::args_os().skip(1).filter(|a| !skip.iter().any(|s| a == s)).collect();
        list.insert(0, "--json".into());
        list
    }
}
