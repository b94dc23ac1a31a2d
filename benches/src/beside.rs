//! One thing of ours in turn with several ways to do the same, and the best of those.
//!
//! The figures are `NAME`, ours, and `NAME:WAY` for each way. Which way is the best is decided once all rounds are in:
//! the best of medians over rounds has less of luck in it than the median of bests.

use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::timing::{Side, in_turn};

/// Measures `ours` and the others, in turn; returns our figure and that of the best of the others.
///
/// # Errors
/// The first error of a call.
pub fn measure<'a>(
    figures: &mut Figures,
    name: &str,
    samples: usize,
    batch: usize,
    ours: Side<'a, armci_core::Error>,
    others: impl Iterator<Item = (&'static str, Side<'a, armci_core::Error>)>,
) -> Result<Option<(Figure, Figure)>> {
    let (names, ways): (Vec<_>, Vec<_>) = others.unzip();
    let mut sides: Vec<_> = std::iter::once(ours).chain(ways).collect();
    let taken = in_turn(samples, batch, &mut sides)?;
    let all_names = std::iter::once(name.to_owned()).chain(names.iter().map(|way| format!("{name}:{way}")));
    for (name, figure) in all_names.zip(&taken) {
        figures.add(name, *figure);
    }
    Ok(figures.get(name).zip(best(figures, name).map(|(_, best)| best)))
}

/// The best of the ways beside a figure, and which one it is.
pub fn best<'a>(figures: &'a Figures, name: &str) -> Option<(&'a str, Figure)> {
    let prefix = format!("{name}:");
    let ways = figures.from(&prefix).map_while(|(name, figure)| Some((name.strip_prefix(&prefix)?, figure)));
    ways.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_way_is_found_among_others_names() {
        let mut figures = Figures::default();
        for (name, value) in [("a", 1.0), ("a:x", 5.0), ("a:y", 4.0), ("a;", 0.5), ("ab:x", 0.1)] {
            figures.add(name, Some(Figure::single(value)));
        }
        assert_eq!(best(&figures, "a"), Some(("y", Figure::single(4.0))));
        assert_eq!(best(&figures, "b"), None);
    }
}
