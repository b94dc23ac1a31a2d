//! Molecules: the XYZ reader, units, nuclear repulsion.
//!
//! Guarantees: a [`Molecule`] has at least one atom, coordinates of at most [`FARTHEST`], and no two nuclei
//! closer than [`CLOSEST`]. Whatever is wrong with a file is reported with its line and column.

use crate::elements::{Element, SYMBOLS};
use crate::error::{Result, ScfError};
use crate::text::{parse_real, words};

/// Bohr per angstrom. NWChem's figure, not today's CODATA (1.889 726 124 6...): energies are
/// meant to be compared with NWChem's digit by digit.
pub const BOHR_PER_ANGSTROM: f64 = 1.889_725_988_58;

/// Nuclei closer than this many angstrom are taken for a mistake.
pub const CLOSEST: f64 = 0.05;

/// Coordinates beyond this many angstrom are taken for a mistake; squares of distances and their
/// products with exponents stay far from overflow.
pub const FARTHEST: f64 = 1e6;

/// A nucleus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atom {
    /// Which element.
    pub element: Element,
    /// Where, in bohr.
    pub position: [f64; 3],
}

impl Atom {
    /// The charge of the nucleus.
    pub fn charge(&self) -> f64 {
        f64::from(self.element.number())
    }

    /// Position in angstrom.
    pub fn angstrom(&self) -> [f64; 3] {
        self.position.map(|x| x / BOHR_PER_ANGSTROM)
    }
}

/// A molecule: its nuclei, what the file says about it, and its charge.
#[derive(Debug, Clone, PartialEq)]
pub struct Molecule {
    /// Nuclei in the order of the file.
    pub atoms: Vec<Atom>,
    /// The comment line of the file.
    pub comment: String,
    /// Total charge.
    pub charge: i64,
}

impl Molecule {
    /// Reads the text of an XYZ file: the number of atoms, a comment, then one atom a line
    /// (symbol and three coordinates in angstrom; anything further on the line is left alone).
    /// `file` is only used in messages.
    ///
    /// # Errors
    /// [`ScfError::Xyz`] with line and column, or [`ScfError::Coincident`].
    pub fn from_xyz(file: &str, text: &str, charge: i64) -> Result<Self> {
        let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
        let fail = |line: usize, column: usize, message: String| {
            Err(ScfError::Xyz { file: file.to_owned(), line, column, message })
        };

        let mut head = words(lines.first().copied().unwrap_or(""));
        let Some((column, word)) = head.next() else {
            return fail(1, 1, "expected the number of atoms, found an empty line".into());
        };
        let count: usize = match word.parse() {
            Ok(0) => return fail(1, column, "the molecule has no atoms".into()),
            Ok(n) => n,
            Err(_) => return fail(1, column, format!("expected the number of atoms, found {word:?}")),
        };
        if let Some((column, word)) = head.next() {
            return fail(1, column, format!("expected only the number of atoms on this line, found also {word:?}"));
        }

        let mut atoms = Vec::new();
        for index in 0..count {
            let line = index + 3;
            let Some(content) = lines.get(line - 1) else {
                return fail(lines.len() + 1, 1, format!("the file ends after {index} of {count} atoms"));
            };
            match parse_atom(content) {
                Ok(atom) => atoms.push(atom),
                Err((column, message)) => return fail(line, column, message),
            }
        }
        for (index, content) in lines.iter().enumerate().skip(count + 2) {
            if let Some((column, word)) = words(content).next() {
                let message = format!("expected the end after {count} atoms (line 1), found {word:?}");
                return fail(index + 1, column, message);
            }
        }

        // A comment is printed: it must not move the cursor or colour the screen.
        let comment: String = lines.get(1).copied().unwrap_or("").chars().filter(|c| !c.is_control()).collect();
        let molecule = Self { atoms, comment: comment.trim().to_owned(), charge };
        molecule.check_distances(file)?;
        Ok(molecule)
    }

    fn check_distances(&self, file: &str) -> Result<()> {
        for (second, b) in self.atoms.iter().enumerate() {
            for (first, a) in self.atoms[..second].iter().enumerate() {
                let distance = distance(a.position, b.position) / BOHR_PER_ANGSTROM;
                if distance < CLOSEST {
                    return Err(ScfError::Coincident {
                        file: file.to_owned(),
                        first: first + 1,
                        second: second + 1,
                        symbols: format!("{}, {}", a.element, b.element),
                        lines: format!("{} and {}", first + 3, second + 3),
                        distance,
                    });
                }
            }
        }
        Ok(())
    }

    /// Number of electrons.
    pub fn electrons(&self) -> i64 {
        self.atoms.iter().map(|a| i64::from(a.element.number())).sum::<i64>() - self.charge
    }

    /// Number of doubly occupied orbitals.
    ///
    /// # Errors
    /// The electrons cannot be paired, or there are none.
    pub fn occupied(&self) -> Result<usize> {
        let (electrons, charge) = (self.electrons(), self.charge);
        if electrons < 2 {
            return Err(ScfError::TooFewElectrons { electrons, charge });
        }
        if electrons % 2 != 0 {
            return Err(ScfError::OddElectrons { electrons, charge });
        }
        Ok(usize::try_from(electrons / 2).unwrap_or_default())
    }

    /// Repulsion energy of the nuclei in hartree.
    pub fn nuclear_repulsion(&self) -> f64 {
        let pair = |a: &Atom, b: &Atom| a.charge() * b.charge() / distance(a.position, b.position);
        self.atoms.iter().enumerate().map(|(i, a)| self.atoms[..i].iter().map(|b| pair(a, b)).sum::<f64>()).sum()
    }

    /// Nuclei as the integral library takes them.
    pub fn point_charges(&self) -> Vec<([f64; 3], f64)> {
        self.atoms.iter().map(|a| (a.position, a.charge())).collect()
    }

    /// Centre of nuclear charge in bohr: the origin of the dipole moment (which only matters for ions).
    pub fn charge_centre(&self) -> [f64; 3] {
        let total: f64 = self.atoms.iter().map(Atom::charge).sum();
        [0, 1, 2].map(|k| self.atoms.iter().map(|a| a.charge() * a.position[k]).sum::<f64>() / total)
    }

    /// Sum formula, carbon and hydrogen first.
    pub fn formula(&self) -> String {
        let mut counts = std::collections::BTreeMap::<&str, usize>::new();
        for atom in &self.atoms {
            *counts.entry(atom.element.symbol()).or_default() += 1;
        }
        let mut out = String::new();
        let first: &[&str] = if counts.contains_key("C") { &["C", "H"] } else { &["H"] };
        for symbol in first {
            if let Some(n) = counts.remove(symbol) {
                out += &term(symbol, n);
            }
        }
        for (symbol, n) in counts {
            out += &term(symbol, n);
        }
        return out;

        fn term(symbol: &str, n: usize) -> String {
            if n == 1 { symbol.to_owned() } else { format!("{symbol}{n}") }
        }
    }
}

/// One atom's line; an error carries the column.
fn parse_atom(content: &str) -> std::result::Result<Atom, (usize, String)> {
    let mut fields = words(content);
    let end = content.chars().count() + 1;
    let Some((column, symbol)) = fields.next() else {
        return Err((1, "expected an atom (symbol x y z), found an empty line".into()));
    };
    let Some(element) = Element::parse(symbol) else {
        let known = SYMBOLS.join(" ");
        return Err((column, format!("unknown element {symbol:?}; known are {known}")));
    };
    let mut position = [0.0; 3];
    for (x, axis) in position.iter_mut().zip(["x", "y", "z"]) {
        let Some((column, word)) = fields.next() else {
            return Err((end, format!("expected the {axis} coordinate of {element}, found the end of the line")));
        };
        *x = match parse_real(word) {
            Some(value) if value.abs() > FARTHEST => {
                let message = format!("the {axis} coordinate of {element} is {word}, beyond {FARTHEST:e} angstrom");
                return Err((column, message));
            }
            Some(value) => value * BOHR_PER_ANGSTROM,
            None => {
                return Err((column, format!("expected the {axis} coordinate of {element}, found {word:?}")));
            }
        };
    }
    Ok(Atom { element, position })
}

/// Distance of two points.
pub(crate) fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATER: &str = include_str!("../molecules/h2o.xyz");

    fn place(text: &str) -> (usize, usize, String) {
        match Molecule::from_xyz("m.xyz", text, 0) {
            Err(ScfError::Xyz { line, column, message, .. }) => (line, column, message),
            other => panic!("expected an XYZ error, got {other:?}"),
        }
    }

    #[test]
    fn nuclear_repulsion_of_water_is_nwchems() {
        let water = Molecule::from_xyz("h2o.xyz", WATER, 0).unwrap();
        assert!((water.nuclear_repulsion() - 9.192_094_668_657).abs() < 5e-12);
        assert_eq!(water.occupied().unwrap(), 5);
        assert_eq!(water.formula(), "H2O");
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(place("").0, 1);
        assert_eq!(place("three\n\n").1, 1);
        assert_eq!(place("  x\n\n").1, 3);
        let (line, column, message) = place("2\nbad\nH 0 0 0\nH 0 zero 1\n");
        assert_eq!((line, column), (4, 5));
        assert!(message.contains("y coordinate") && message.contains("zero"));
        let (line, column, message) = place("1\n\n  Qq 0 0 0\n");
        assert_eq!((line, column), (3, 3));
        assert!(message.contains("Qq") && message.contains("Ne"));
        let (line, column, _) = place("1\n\nH 0 0\n");
        assert_eq!((line, column), (3, 6));
        assert_eq!(place("2\n\nH 0 0 0\n").0, 4);
        assert_eq!(place("1\n\nH 0 0 0\nH 0 0 1\n").0, 4);
        assert_eq!(place("1\n\nH 0 0 inf\n").1, 7);
        assert_eq!(place("0\n\n").1, 1);
        let (line, column, message) = place("1\n\nH 0 -1e7 0\n");
        assert_eq!((line, column), (3, 5));
        assert!(message.contains("beyond 1e6"), "{message}");
    }

    #[test]
    fn fortran_exponents_and_trailing_columns_are_read() {
        let text = "1\n\nHe 0.0D+00 1.0d-1 -2 0.3 extra\n\n";
        let atom = Molecule::from_xyz("m", text, 0).unwrap().atoms[0];
        assert!((atom.angstrom()[1] - 0.1).abs() < 1e-15);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_a_comment_cannot_command_the_terminal() {
        let molecule = Molecule::from_xyz("m", "\u{feff}1\nred \u{1b}[31mhelium\r\nHe 0 0 0\n", 0).unwrap();
        assert_eq!(molecule.comment, "red [31mhelium");
    }

    #[test]
    fn coincident_atoms_and_unpaired_electrons_are_refused() {
        let twice = Molecule::from_xyz("m", "2\n\nH 0 0 0\nH 0 0 0.01\n", 0);
        assert!(matches!(twice, Err(ScfError::Coincident { first: 1, second: 2, .. })));
        let radical = Molecule::from_xyz("m", "1\n\nH 0 0 0\n", 0).unwrap();
        assert!(matches!(radical.occupied(), Err(ScfError::TooFewElectrons { .. })));
        let lithium = Molecule::from_xyz("m", "1\n\nLi 0 0 0\n", 0).unwrap();
        assert!(matches!(lithium.occupied(), Err(ScfError::OddElectrons { electrons: 3, .. })));
        let cation = Molecule::from_xyz("m", "1\n\nLi 0 0 0\n", 1).unwrap();
        assert_eq!(cation.occupied().unwrap(), 1);
    }
}
