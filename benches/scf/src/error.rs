//! Everything that can go wrong, as one typed error.
//!
//! Each variant says what was asked, what was found and what to do about it. A calculation
//! that does not converge is not an error here: it has a result (the best energy so far, if any) and
//! its own exit code, see [`crate::scf::Outcome`].

use std::path::PathBuf;

/// The ways in which a run of `scf` can fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScfError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file as the user named it.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The XYZ text is not an XYZ file.
    #[error("{file}:{line}:{column}: {message}")]
    Xyz {
        /// The file as the user named it.
        file: String,
        /// One-based line.
        line: usize,
        /// One-based column, in characters.
        column: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// Two nuclei at the same place.
    #[error(
        "{file}: atoms {first} and {second} ({symbols}) coincide: {distance:.4} angstrom apart (lines {lines}); \
         remove one of them or correct its coordinates"
    )]
    Coincident {
        /// The file as the user named it.
        file: String,
        /// One-based number of the first atom.
        first: usize,
        /// One-based number of the second atom.
        second: usize,
        /// Their element symbols.
        symbols: String,
        /// The lines they stand on.
        lines: String,
        /// Their distance in angstrom.
        distance: f64,
    },
    /// A basis-set file is malformed.
    #[error("{file}:{line}:{column}: {message}")]
    Basis {
        /// The file or the name of the shipped set.
        file: String,
        /// One-based line.
        line: usize,
        /// One-based column, in characters.
        column: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// No shipped basis set, and no file, has this name.
    #[error("unknown basis set \"{name}\"; available: {available}; or give the path of a file in NWChem's format")]
    UnknownBasis {
        /// The name asked for.
        name: String,
        /// Names of all shipped sets.
        available: String,
    },
    /// The basis set does not cover an element of the molecule.
    #[error("basis set {basis} has no functions for {element}; it covers {available}")]
    ElementNotInBasis {
        /// The basis set's name.
        basis: String,
        /// The element's symbol.
        element: String,
        /// Elements it has.
        available: String,
    },
    /// Closed-shell Hartree-Fock needs pairs of electrons.
    #[error(
        "{electrons} electrons cannot all be paired (charge {charge}): closed-shell Hartree-Fock needs an even \
         number; choose another --charge"
    )]
    OddElectrons {
        /// Electrons in the molecule.
        electrons: i64,
        /// Its charge.
        charge: i64,
    },
    /// The charge takes away more electrons than there are.
    #[error("charge {charge} leaves {electrons} electrons; at least 2 are needed")]
    TooFewElectrons {
        /// Electrons in the molecule.
        electrons: i64,
        /// Its charge.
        charge: i64,
    },
    /// More occupied orbitals than basis functions.
    #[error(
        "{orbitals} occupied orbitals need at least as many independent basis functions; {basis} gives {functions}"
    )]
    BasisTooSmall {
        /// Doubly occupied orbitals.
        orbitals: usize,
        /// Linearly independent functions.
        functions: usize,
        /// The basis set's name.
        basis: String,
    },
    /// The energy became NaN or infinite.
    #[error(
        "iteration {iteration}: the energy is {energy}; the geometry or the basis set is unphysical, \
         or memory was damaged"
    )]
    NotFinite {
        /// Which iteration.
        iteration: usize,
        /// What came out.
        energy: f64,
    },
    /// The report could not be written.
    #[error("cannot write to standard output: {0}; the result is lost")]
    Output(#[source] std::io::Error),
    /// A command-line value makes no sense.
    #[error("{0}")]
    Usage(String),
    /// `--compare-progress` found that the thread did nothing, or that the runs disagree.
    #[error("{0}")]
    Compare(String),
    /// The runtime failed.
    #[error(transparent)]
    Armci(#[from] armci_core::Error),
    /// A distributed array failed.
    #[error(transparent)]
    Array(#[from] global_arrays::Error),
    /// The input was rejected, and rank 0 has said why.
    #[error("rank 0 could not read the input")]
    ReportedByRankZero,
}

impl ScfError {
    /// The exit code for it: 2 for wrong usage, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Usage(_) | Self::Armci(armci_core::Error::Setting { .. })) { 2 } else { 1 }
    }

    /// Whether the runtime failed, rather than the input or the calculation.
    pub fn is_runtime(&self) -> bool {
        matches!(self, Self::Armci(_) | Self::Array(_))
    }
}

/// The result type of this program.
pub type Result<T> = std::result::Result<T, ScfError>;
