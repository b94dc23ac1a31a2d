//! The periodic table as far as closed-shell Hartree-Fock with shipped basis sets needs it:
//! symbols, atomic numbers, and the ground-state shell filling used for the starting density.

/// Symbols of the elements hydrogen to krypton; the index is the atomic number minus one.
pub const SYMBOLS: [&str; 36] = [
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr",
];

/// An element, by its atomic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element(u8);

impl Element {
    /// The element with atomic number `z`, if this program knows it.
    pub fn from_number(z: u8) -> Option<Self> {
        (1..=SYMBOLS.len()).contains(&usize::from(z)).then_some(Self(z))
    }

    /// The element a user means by `text`: a symbol in any case, or an atomic number.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(z) = text.parse() {
            return Self::from_number(z);
        }
        let index = SYMBOLS.iter().position(|s| s.eq_ignore_ascii_case(text))?;
        u8::try_from(index + 1).ok().map(Self)
    }

    /// Atomic number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Chemical symbol.
    pub fn symbol(self) -> &'static str {
        SYMBOLS[usize::from(self.0) - 1]
    }

    /// Electrons in the s, p and d shells of the neutral atom, filled in the order of the
    /// periodic table, one entry per shell, innermost first.
    ///
    /// The exceptions (Cr, Cu) are filled like their neighbours: this only feeds a starting guess.
    pub fn shells(self) -> [Vec<f64>; 3] {
        const ORDER: [usize; 8] = [0, 0, 1, 0, 1, 0, 2, 1]; // 1s 2s 2p 3s 3p 4s 3d 4p
        let mut left = f64::from(self.0);
        let mut shells = [vec![], vec![], vec![]];
        for l in ORDER {
            if left <= 0.0 {
                break;
            }
            let room = (4 * l + 2) as f64;
            shells[l].push(left.min(room));
            left -= room;
        }
        shells
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.symbol())
    }
}

/// A list of elements the way a person would write it: runs become `H-Ne`.
pub fn describe(elements: impl IntoIterator<Item = Element>) -> String {
    let mut numbers: Vec<u8> = elements.into_iter().map(Element::number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [only] => Element(*only).to_string(),
            [first, .., last] => format!("{}-{}", Element(*first), Element(*last)),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_numbers_are_both_understood() {
        assert_eq!(Element::parse("cl").unwrap().number(), 17);
        assert_eq!(Element::parse("8").unwrap().symbol(), "O");
        assert!(Element::parse("Xx").is_none());
        assert!(Element::parse("0").is_none());
    }

    #[test]
    fn shells_hold_all_electrons() {
        for z in 1..=36 {
            let shells = Element::from_number(z).unwrap().shells();
            let sum: f64 = shells.iter().flatten().sum();
            assert!((sum - f64::from(z)).abs() < 1e-12);
        }
        assert_eq!(Element::parse("O").unwrap().shells(), [vec![2.0, 2.0], vec![4.0], vec![]]);
    }

    #[test]
    fn runs_are_abbreviated() {
        let list = [1, 2, 3, 8, 10].map(|z| Element::from_number(z).unwrap());
        assert_eq!(describe(list), "H-Li, O, Ne");
    }
}
