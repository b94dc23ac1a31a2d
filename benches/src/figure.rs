//! Figures: what a measurement yields, how it travels from a rank or a peer to the table, and what becomes of
//! several rounds.
//!
//! A figure travels as one line of JSON, `{"name":"put_8","median":4.1,"p99":4.4}`, in nanoseconds per operation
//! (or as a plain fraction). Ours and the peers' programs print the same lines, so one reader serves both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A measured quantity: the middle of its samples, and its bad end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Half of the samples are below.
    pub median: f64,
    /// 99 of 100 samples are below; where only one sample was taken, that sample.
    pub p99: f64,
}

impl Figure {
    /// The figure of some samples; an empty set has none.
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let at =
            |share: f64| samples.get(((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1)));
        Some(Figure { median: *at(0.5)?, p99: *at(0.99)? })
    }

    /// The figure in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Figure { median: self.median * factor, p99: self.p99 * factor }
    }

    /// The middle of two figures.
    #[must_use]
    pub fn mean(self, other: Self) -> Self {
        Figure { median: (self.median + other.median) / 2.0, p99: self.p99.max(other.p99) }
    }

    /// A figure of one sample.
    pub fn single(value: f64) -> Self {
        Figure { median: value, p99: value }
    }
}

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures(BTreeMap<String, Figure>);

#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    #[serde(flatten)]
    figure: Figure,
}

impl Figures {
    /// Adds a figure; one without samples is left out.
    pub fn add(&mut self, name: impl Into<String>, figure: Option<Figure>) {
        if let Some(figure) = figure {
            self.0.insert(name.into(), figure);
        }
    }

    /// Adds all of `other`'s.
    pub fn extend(&mut self, other: Figures) {
        self.0.extend(other.0);
    }

    /// The same figures under longer names.
    #[must_use]
    pub fn with_prefix(self, prefix: &str) -> Self {
        Figures(self.0.into_iter().map(|(name, figure)| (format!("{prefix}{name}"), figure)).collect())
    }

    /// The figure of this name.
    pub fn get(&self, name: &str) -> Option<Figure> {
        self.0.get(name).copied()
    }

    /// All figures in the order of their names, from this name on.
    pub fn from<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a str, Figure)> {
        self.0.range(name.to_owned()..).map(|(name, figure)| (name.as_str(), *figure))
    }

    /// Prints them, a line each.
    ///
    /// # Errors
    /// If standard output is gone.
    pub fn print(&self) -> Result<()> {
        use std::io::Write;
        let mut text = String::new();
        for (name, figure) in &self.0 {
            let line = Line { name: name.clone(), figure: *figure };
            // A map of finite numbers always has a JSON form.
            text.push_str(&serde_json::to_string(&line).unwrap_or_default());
            text.push('\n');
        }
        std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|source| Error::System { call: "write to standard output", source })
    }

    /// Reads what [`Figures::print`] or a peer printed; lines that do not begin with `{` are somebody's chatter.
    ///
    /// # Errors
    /// If a line begins like a figure and is none.
    pub fn parse(text: &str) -> Result<Self> {
        let mut figures = Figures::default();
        for line in text.lines().filter(|line| line.starts_with('{')) {
            let Line { name, figure } =
                serde_json::from_str(line).map_err(|source| Error::Figure { line: line.into(), source })?;
            figures.add(name, Some(figure));
        }
        Ok(figures)
    }

    /// The median round of each figure.
    pub fn median_of(rounds: &[Figures]) -> Self {
        let mut figures = Figures::default();
        for name in rounds.iter().flat_map(|round| round.0.keys()) {
            let of = |value: fn(Figure) -> f64| {
                let values = rounds.iter().filter_map(|round| round.get(name)).map(value).collect();
                Figure::of(values).map(|figure| figure.median)
            };
            let figure = of(|figure| figure.median).zip(of(|figure| figure.p99));
            figures.add(name, figure.map(|(median, p99)| Figure { median, p99 }));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_bad_end() {
        let figure = Figure::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(figure, Some(Figure { median: 51.0, p99: 100.0 }));
        assert_eq!(Figure::of(Vec::new()), None);
        assert_eq!(Figure::of(vec![3.0]), Some(Figure::single(3.0)));
    }

    #[test]
    fn rounds_are_combined_by_their_median() {
        let round = |value| {
            let mut figures = Figures::default();
            figures.add("put_8", Some(Figure::single(value)));
            figures
        };
        let all = Figures::median_of(&[round(9.0), round(4.0), Figures::default(), round(5.0)]);
        assert_eq!(all.get("put_8"), Some(Figure::single(5.0)));
    }

    #[test]
    fn chatter_is_skipped_and_nonsense_is_an_error() {
        let figures = Figures::parse("hello\n{\"name\":\"x\",\"median\":1,\"p99\":2.5}\n").unwrap();
        assert_eq!(figures.get("x"), Some(Figure { median: 1.0, p99: 2.5 }));
        assert!(Figures::parse("{\"name\":\"x\"}").is_err());
    }
}
