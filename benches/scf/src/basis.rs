//! Basis sets: the parser for NWChem's format, and the sets shipped with the program.
//!
//! A file is a sequence of contracted shells, each a header `O  S` (or `SP`, `P`, `D`, ...)
//! followed by lines of an exponent and one coefficient per contraction. Comments start with
//! `#`. A `BASIS "name" SPHERICAL|CARTESIAN` line says how the set was meant. Every column of
//! coefficients becomes a shell of its own; primitives with a zero coefficient are dropped.
//! A parsed set can be normalised: a shell without norm is refused with its line and column.
//!
//! The tables lie in `basis/`, each with its source, and are compiled into the program.

use std::collections::BTreeMap;
use std::path::Path;

use crate::elements::{self, Element};
use crate::error::{Result, ScfError};
use crate::shells::self_overlap;
use crate::text::{parse_real, read_text, words};

/// Cartesian or real spherical d and f functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Functions {
    /// Six d, ten f functions.
    Cartesian,
    /// Five d, seven f functions.
    Spherical,
}

impl std::fmt::Display for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cartesian => "Cartesian",
            Self::Spherical => "spherical",
        })
    }
}

/// A contracted shell as tabulated: coefficients belong to normalised primitives.
#[derive(Debug, Clone, PartialEq)]
pub struct Contraction {
    /// Angular momentum.
    pub l: usize,
    /// Exponents.
    pub exponents: Vec<f64>,
    /// Coefficients, as many as exponents.
    pub coefficients: Vec<f64>,
}

/// A basis set.
#[derive(Debug, Clone, PartialEq)]
pub struct BasisSet {
    /// The name to print.
    pub name: String,
    /// What the set itself asks for.
    pub functions: Functions,
    shells: BTreeMap<Element, Vec<Contraction>>,
}

/// A contraction whose squared norm is below this part of its coefficients' squares cancels itself.
const SMALLEST_NORM: f64 = 1e-10;

/// Highest angular momentum accepted (f; the integral library would go further, our tests do not).
pub const MAX_L: usize = 3;

/// Exponents accepted: far beyond any chemistry, well within what the integrals' formulas stand.
const EXPONENTS: std::ops::RangeInclusive<f64> = 1e-8..=1e12;

const LETTERS: [&str; 4] = ["S", "P", "D", "F"];

/// Name, file and text of every shipped set.
const SHIPPED: [(&str, &str); 12] = [
    ("STO-3G", include_str!("../basis/sto-3g.nw")),
    ("3-21G", include_str!("../basis/3-21g.nw")),
    ("6-31G", include_str!("../basis/6-31g.nw")),
    ("6-31G*", include_str!("../basis/6-31gs.nw")),
    ("6-31G**", include_str!("../basis/6-31gss.nw")),
    ("6-31+G*", include_str!("../basis/6-31+gs.nw")),
    ("6-31++G**", include_str!("../basis/6-31++gss.nw")),
    ("6-311G*", include_str!("../basis/6-311gs.nw")),
    ("6-311G**", include_str!("../basis/6-311gss.nw")),
    ("cc-pVDZ", include_str!("../basis/cc-pvdz.nw")),
    ("cc-pVTZ", include_str!("../basis/cc-pvtz.nw")),
    ("aug-cc-pVDZ", include_str!("../basis/aug-cc-pvdz.nw")),
];

/// The text of a basis set and the name to print for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasisText {
    /// Name or path.
    pub name: String,
    /// The table.
    pub text: String,
}

/// Names of the shipped sets, for help and error messages.
pub fn shipped_names() -> String {
    SHIPPED.map(|(name, _)| name).join(", ")
}

/// Finds a shipped set by name (case does not matter; `(d)` and `(d,p)` mean `*` and `**`),
/// or else reads `name` as the path of a file.
///
/// # Errors
/// [`ScfError::UnknownBasis`] lists what there is; [`ScfError::Read`] if the file is unreadable.
pub fn find(name: &str) -> Result<BasisText> {
    let wanted = name.to_lowercase().replace("(d,p)", "**").replace("(d)", "*");
    if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| shipped.to_lowercase() == wanted) {
        return Ok(BasisText { name: (*name).to_owned(), text: (*text).to_owned() });
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(ScfError::UnknownBasis { name: name.to_owned(), available: shipped_names() });
    }
    let text = read_text(path)?;
    Ok(BasisText { name: name.to_owned(), text })
}

impl BasisSet {
    /// Reads a table in NWChem's format.
    ///
    /// # Errors
    /// [`ScfError::Basis`] with line and column.
    pub fn parse(source: &BasisText) -> Result<Self> {
        let mut parser =
            Parser { file: &source.name, functions: Functions::Cartesian, shells: BTreeMap::new(), open: None };
        for (index, line) in source.text.lines().enumerate() {
            parser.line(index + 1, line.split('#').next().unwrap_or(""))?;
        }
        parser.close()?;
        if parser.shells.is_empty() {
            return Err(parser.error(1, 1, "no shells in this basis set".into()));
        }
        Ok(Self { name: source.name.clone(), functions: parser.functions, shells: parser.shells })
    }

    /// The shells of an element.
    ///
    /// # Errors
    /// [`ScfError::ElementNotInBasis`] lists the elements the set has.
    pub fn shells(&self, element: Element) -> Result<&[Contraction]> {
        let found = self.shells.get(&element).filter(|list| !list.is_empty());
        found.map(Vec::as_slice).ok_or_else(|| ScfError::ElementNotInBasis {
            basis: self.name.clone(),
            element: element.to_string(),
            available: elements::describe(self.shells.keys().copied()),
        })
    }
}

/// A shell whose rows are still being read.
struct Open {
    line: usize,
    element: Element,
    kind: String,
    rows: Vec<Vec<f64>>,
    /// The line of the first row, and the columns of its numbers.
    place: (usize, Vec<usize>),
}

struct Parser<'a> {
    file: &'a str,
    functions: Functions,
    shells: BTreeMap<Element, Vec<Contraction>>,
    open: Option<Open>,
}

impl Parser<'_> {
    fn error(&self, line: usize, column: usize, message: String) -> ScfError {
        ScfError::Basis { file: self.file.to_owned(), line, column, message }
    }

    fn line(&mut self, number: usize, content: &str) -> Result<()> {
        let fields: Vec<(usize, &str)> = words(content).collect();
        let Some(&(column, first)) = fields.first() else { return Ok(()) };
        if first.eq_ignore_ascii_case("end") {
            return self.close();
        }
        if first.eq_ignore_ascii_case("basis") {
            for (_, word) in &fields {
                match word.to_lowercase().as_str() {
                    "spherical" => self.functions = Functions::Spherical,
                    "cartesian" => self.functions = Functions::Cartesian,
                    _ => {}
                }
            }
            return self.close();
        }
        if parse_real(first).is_some() {
            return self.row(number, &fields);
        }
        self.close()?;
        let Some(element) = Element::parse(first) else {
            return Err(self.error(number, column, format!("unknown element {first:?}")));
        };
        let Some(&(column, kind)) = fields.get(1) else {
            return Err(self.error(
                number,
                content.trim_end().len() + 1,
                "expected a shell type (S, P, SP, D, F)".into(),
            ));
        };
        let kind = kind.to_uppercase();
        if kind != "SP" && !LETTERS.contains(&kind.as_str()) {
            let message = format!("expected a shell type (S, P, SP, D, F), found {kind:?}");
            return Err(self.error(number, column, message));
        }
        self.open = Some(Open { line: number, element, kind, rows: Vec::new(), place: (number, Vec::new()) });
        Ok(())
    }

    fn row(&mut self, number: usize, fields: &[(usize, &str)]) -> Result<()> {
        let mut row = Vec::with_capacity(fields.len());
        for &(column, word) in fields {
            match parse_real(word) {
                Some(value) => row.push(value),
                None => return Err(self.error(number, column, format!("expected a number, found {word:?}"))),
            }
        }
        let column = fields.first().map_or(1, |f| f.0);
        if row[0] <= 0.0 {
            return Err(self.error(number, column, format!("the exponent {} is not positive", row[0])));
        }
        if !EXPONENTS.contains(&row[0]) {
            let (least, most) = (EXPONENTS.start(), EXPONENTS.end());
            let message = format!("the exponent {:e} is beyond any use (below {least:e} or above {most:e})", row[0]);
            return Err(self.error(number, column, message));
        }
        let Some(open) = &self.open else {
            return Err(self.error(number, column, "numbers before any shell".into()));
        };
        let wanted = match (open.kind.as_str(), open.rows.first()) {
            (_, Some(first)) => first.len(),
            ("SP", None) => 3,
            _ => row.len().max(2),
        };
        if row.len() != wanted {
            let message = format!("expected an exponent and {} coefficients, found {} numbers", wanted - 1, row.len());
            return Err(self.error(number, column, message));
        }
        if let Some(open) = &mut self.open {
            if open.rows.is_empty() {
                open.place = (number, fields.iter().map(|f| f.0).collect());
            }
            open.rows.push(row);
        }
        Ok(())
    }

    /// Turns the rows read so far into shells.
    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.rows.is_empty() {
            return Err(self.error(
                open.line,
                1,
                format!("the {} {} shell has no primitives", open.element, open.kind),
            ));
        }
        let mut list = Vec::new();
        for column in 1..open.rows[0].len() {
            let l = match open.kind.as_str() {
                "SP" => column - 1,
                letter => LETTERS.iter().position(|x| *x == letter).unwrap_or_default(),
            };
            let used = open.rows.iter().filter(|row| row[column] != 0.0);
            let (exponents, coefficients): (Vec<f64>, Vec<f64>) = used.map(|row| (row[0], row[column])).unzip();
            let squares: f64 = coefficients.iter().map(|c| c * c).sum();
            // Also false if either is infinite or not a number, and for no coefficients at all.
            let normalisable = self_overlap(l, &exponents, &coefficients) > SMALLEST_NORM * squares;
            if !normalisable {
                let what = if exponents.is_empty() { "are all zero" } else { "make a function that has no norm" };
                let message = format!("the coefficients of the {} {} shell {what}", open.element, open.kind);
                return Err(self.error(open.place.0, open.place.1.get(column).copied().unwrap_or(1), message));
            }
            list.push(Contraction { l, exponents, coefficients });
        }
        self.shells.entry(open.element).or_default().append(&mut list);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BasisSet> {
        BasisSet::parse(&BasisText { name: "t".into(), text: text.into() })
    }

    fn symbol(s: &str) -> Element {
        Element::parse(s).unwrap()
    }

    #[test]
    fn every_shipped_set_parses_and_covers_the_first_rows() {
        for (name, _) in SHIPPED {
            let set = BasisSet::parse(&find(name).unwrap()).unwrap();
            for z in 1..=18 {
                if name == "6-31++G**" && z == 2 {
                    continue; // the published table has no helium
                }
                assert!(set.shells(Element::from_number(z).unwrap()).is_ok(), "{name} {z}");
            }
        }
    }

    #[test]
    fn sp_shells_and_general_contractions_become_shells() {
        let pople = BasisSet::parse(&find("6-31g(d)").unwrap()).unwrap();
        assert_eq!(pople.functions, Functions::Cartesian);
        let l: Vec<usize> = pople.shells(symbol("O")).unwrap().iter().map(|s| s.l).collect();
        assert_eq!(l, [0, 0, 1, 0, 1, 2]);
        let dunning = BasisSet::parse(&find("CC-PVDZ").unwrap()).unwrap();
        assert_eq!(dunning.functions, Functions::Spherical);
        let primitives: Vec<usize> = dunning.shells(symbol("O")).unwrap().iter().map(|s| s.exponents.len()).collect();
        assert_eq!(primitives, [8, 8, 1, 3, 1, 1]);
    }

    #[test]
    fn errors_name_line_and_column() {
        let place = |text: &str| match parse(text) {
            Err(ScfError::Basis { line, column, .. }) => (line, column),
            other => panic!("expected a basis error, got {other:?}"),
        };
        assert_eq!(place("H S\n 1.0 x\n"), (2, 6));
        assert_eq!(place("H Q\n"), (1, 3));
        assert_eq!(place("H S\n1.0 1.0\n2.0\n"), (3, 1));
        assert_eq!(place("H S\nHe S\n1 1\n"), (1, 1));
        assert_eq!(place("  Zz S\n"), (1, 3));
        assert_eq!(place("1.0 2.0\n"), (1, 1));
        assert_eq!(place("H SP\n1.0 2.0\n"), (2, 1));
        assert_eq!(place("H S\n-1.0 2.0\n"), (2, 1));
        assert_eq!(place("# nothing\n"), (1, 1));
        assert_eq!(place("H S\n1.0 0.0\n"), (2, 5));
        assert_eq!(place("H S\n1.0 1.0\n 1.0 -1.0\n"), (2, 5));
        assert_eq!(place("H S\n1.0 1e300\n"), (2, 5));
        assert_eq!(place("H S\n 1e-300 1.0\n"), (2, 2));
        assert_eq!(place("H SP\n1.0 1.0 0.0\n"), (2, 9));
    }

    #[test]
    fn unknown_names_list_what_there_is() {
        let message = find("6-31g***").unwrap_err().to_string();
        assert!(message.contains("6-31g***") && message.contains("aug-cc-pVDZ"));
        let missing = parse("H S\n1 1\n").unwrap();
        let message = missing.shells(symbol("O")).unwrap_err().to_string();
        assert!(message.contains("O") && message.contains("covers H"));
    }
}
