//! What a row of the table is: a figure of ours, the limit it is held against, and what is asked of it.
//!
//! A limit is a figure of the same run: the machine's, measured by threads of this program, or one that the ranks
//! took themselves, on the same memory and in turn with ours. What is asked is a multiple of the limit, a number, or
//! a multiple and a number on top.

use crate::line::Class;

/// How a figure is printed, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time; less is better.
    Time,
    /// Time for so many bytes, printed as GB/s; more is better.
    Rate(usize),
    /// Time for so many floating-point operations, printed as GFLOP/s; more is better.
    Speed(usize),
    /// A share of 1 that is kept; more is better.
    Share,
    /// A share of 1 that is used; less is better.
    Used,
    /// Bytes; fewer are better.
    Bytes,
    /// Something counted; fewer are better.
    Count,
    /// A ratio to something else; less is better.
    Factor,
}

impl Unit {
    /// A value in this unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Rate(bytes) => format!("{:.1} GB/s", bytes as f64 / value),
            Unit::Speed(operations) => format!("{:.1} GFLOP/s", operations as f64 / value),
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Used => format!("{:.3} %", value * 100.0),
            Unit::Count => format!("{value:.0}"),
            Unit::Factor => format!("{value:.2}"),
            Unit::Bytes if value < 1024.0 => format!("{value:.0} B"),
            Unit::Bytes if value < 1024.0 * 1024.0 => format!("{:.1} KiB", value / 1024.0),
            Unit::Bytes => format!("{:.1} MiB", value / 1024.0 / 1024.0),
            Unit::Time if value < 1e3 => format!("{value:.1} ns"),
            Unit::Time if value < 1e6 => format!("{:.2} us", value / 1e3),
            Unit::Time => format!("{:.2} ms", value / 1e6),
        }
    }

    /// What must not be exceeded, in words: a time that must not be exceeded is a rate that must be reached.
    pub fn show_bound(self, bound: f64) -> String {
        let sign = if matches!(self, Unit::Rate(_) | Unit::Speed(_)) { ">=" } else { "<=" };
        format!("{sign} {}", self.show(bound))
    }
}

/// A number from the anchors, for near and for far cores.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// For near cores.
    pub near: &'static str,
    /// For far ones.
    pub far: &'static str,
}

impl Anchor {
    /// No anchor.
    pub const NONE: Anchor = Anchor::both("-");

    /// The same for both.
    pub const fn both(text: &'static str) -> Self {
        Anchor { near: text, far: text }
    }

    /// The one for this class.
    pub fn of(self, class: Class) -> &'static str {
        match class {
            Class::Near => self.near,
            Class::Far => self.far,
        }
    }
}

/// The figure of the same run that another is held against.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// One of the machine's.
    Machine(&'static str),
    /// One of a peer's.
    Peer(&'static str),
    /// Another of ours.
    Ours(&'static str),
    /// The best of the ways that our ranks tried beside it.
    Best,
}

impl Limit {
    /// The name of the peer's figure, if it is one.
    #[cfg(test)]
    pub fn of_a_peer(self) -> Option<&'static str> {
        if let Limit::Peer(name) = self { Some(name) } else { None }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Machine(name) | Limit::Peer(name) | Limit::Ours(name) => name,
            Limit::Best => "the best loop",
        }
    }
}

/// What a median must not exceed: so many times the row's limit, and so much on top.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    times: f64,
    near: f64,
    far: f64,
}

impl Bound {
    /// This many (nanoseconds, or whatever the row counts).
    pub const fn at_most(most: f64) -> Self {
        Bound::by_class(most, most)
    }

    /// This many on near cores, that many on far ones.
    pub const fn by_class(near: f64, far: f64) -> Self {
        Bound { times: 0.0, near, far }
    }

    /// This many times the limit.
    pub const fn times(times: f64) -> Self {
        Bound { times, near: 0.0, far: 0.0 }
    }

    /// The limit and this many nanoseconds.
    pub const fn plus(more: f64) -> Self {
        Bound { times: 1.0, near: more, far: more }
    }

    /// At least this share of the limit's speed.
    pub const fn share(share: f64) -> Self {
        Bound::times(1.0 / share)
    }

    /// What is asked, in words, of a row with this limit and unit.
    pub fn words(self, limit: Option<Limit>, unit: Unit, class: Class) -> String {
        let name = limit.map_or("?", Limit::name);
        let more = match class {
            Class::Near => self.near,
            Class::Far => self.far,
        };
        match unit {
            _ if self.times == 0.0 => unit.show_bound(more),
            // A time that may be so many times as long is a rate of that share.
            Unit::Rate(_) | Unit::Speed(_) => format!(">= {} of {name}", short(1.0 / self.times)),
            _ if more == 0.0 => format!("<= {} x {name}", short(self.times)),
            _ => format!("<= {} x {name} + {}", short(self.times), unit.show(more)).replace("<= 1 x ", "<= "),
        }
    }

    /// What that comes to; none if it takes a limit that was not measured.
    pub fn value(self, limit: Option<f64>, class: Class) -> Option<f64> {
        let more = match class {
            Class::Near => self.near,
            Class::Far => self.far,
        };
        if self.times == 0.0 { Some(more) } else { Some(self.times * limit? + more) }
    }
}

/// A factor as it was asked for, without the noise of its last digits.
fn short(factor: f64) -> f64 {
    (factor * 1e3).round() / 1e3
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Our figure's name. If there are figures of this name with `_to` and `_from` behind it, they say at which
    /// offsets of target and source it was taken.
    pub name: &'static str,
    /// What it is, in words.
    pub what: &'static str,
    /// How it is printed.
    pub unit: Unit,
    /// Whether its bad end matters.
    pub tail: bool,
    /// What it is held against, if there is something.
    pub limit: Option<Limit>,
    /// The published figure.
    pub anchor: Anchor,
    /// The name of the peer's figure, if it has one.
    pub peer: Option<&'static str>,
    /// Whether it is a default path, which must not be slower than the peer's.
    pub default_path: bool,
    /// What it must not exceed.
    pub bound: Option<Bound>,
    /// What its bad end must not exceed.
    pub tail_at_most: Option<f64>,
    /// Whether it is judged only where there is something to judge it by.
    pub if_there: bool,
}

/// A row of which nothing is said yet.
pub const ROW: Row = Row {
    name: "",
    what: "",
    unit: Unit::Time,
    tail: false,
    limit: None,
    anchor: Anchor::NONE,
    peer: None,
    default_path: false,
    bound: None,
    tail_at_most: None,
    if_there: false,
};

impl Row {
    /// Whether something is asked of it.
    pub fn is_judged(&self) -> bool {
        self.default_path || self.bound.is_some()
    }

    /// Shown beside the peer's, without a verdict.
    pub const fn informative(self) -> Self {
        Row { default_path: false, ..self }
    }
}

/// Rows under one heading.
#[derive(Debug)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The rows, in order.
    pub rows: &'static [Row],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_units() {
        assert_eq!(Unit::Rate(1 << 20).show(1_048_576.0 / 40.0), "40.0 GB/s");
        assert_eq!(Unit::Time.show(12_340.0), "12.34 us");
        assert_eq!(Unit::Share.show(0.931), "93 %");
        assert_eq!(Unit::Bytes.show(1.5 * 1024.0 * 1024.0), "1.5 MiB");
        assert_eq!(Unit::Rate(1 << 20).show_bound(1_048_576.0 / 40.0), ">= 40.0 GB/s");
    }

    #[test]
    fn a_bound_may_lean_on_a_limit() {
        assert_eq!(Bound::by_class(1.0, 2.0).value(None, Class::Far), Some(2.0));
        assert_eq!(Bound::plus(8.0).value(Some(10.0), Class::Near), Some(18.0));
        assert_eq!(Bound::share(0.5).value(Some(10.0), Class::Near), Some(20.0));
        assert_eq!(Bound::share(0.5).value(None, Class::Near), None);
        let words = |bound: Bound, unit| bound.words(Some(Limit::Best), unit, Class::Far);
        assert_eq!(words(Bound::by_class(1e3, 2e3), Unit::Time), "<= 2.00 us");
        assert_eq!(words(Bound::share(0.95), Unit::Rate(8)), ">= 0.95 of the best loop");
        assert_eq!(words(Bound::times(1.2), Unit::Time), "<= 1.2 x the best loop");
        assert_eq!(words(Bound::plus(8.0), Unit::Time), "<= the best loop + 8.0 ns");
    }
}
