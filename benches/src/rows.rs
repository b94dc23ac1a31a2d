//! The rows of the table: what each figure is held against.
//!
//! Anchors are the published figures of machines like this one, for near and for far cores; the limits are measured
//! in the run itself.

use crate::line::Class;

/// How a figure is printed, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time; less is better.
    Time,
    /// Time for so many bytes, printed as GB/s; more is better.
    Rate(usize),
    /// A share of 1; more is better.
    Share,
}

/// A number from the anchors, for near and for far cores.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    near: &'static str,
    far: &'static str,
}

impl Anchor {
    const NONE: Anchor = Anchor::both("-");

    const fn both(text: &'static str) -> Self {
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

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Our figure's name.
    pub name: &'static str,
    /// What it is, in words.
    pub what: &'static str,
    /// How it is printed.
    pub unit: Unit,
    /// Whether its bad end matters.
    pub tail: bool,
    /// The name of the machine's own limit, if there is one.
    pub limit: Option<&'static str>,
    /// The published figure.
    pub anchor: Anchor,
    /// The name of the peer's figure, if it has one.
    pub peer: Option<&'static str>,
    /// Whether it is a default path, which must not be slower than the peer's.
    pub default_path: bool,
    /// What it must not exceed, in nanoseconds.
    pub at_most: Option<f64>,
}

const ROW: Row = Row {
    name: "",
    what: "",
    unit: Unit::Time,
    tail: false,
    limit: None,
    anchor: Anchor::NONE,
    peer: None,
    default_path: false,
    at_most: None,
};

const MIB: usize = crate::contiguous::MIB;

/// A default path that the peer has too, under the same name.
const fn both(name: &'static str, what: &'static str) -> Row {
    Row { name, what, peer: Some(name), default_path: true, ..ROW }
}

/// All rows, in order.
pub static ROWS: [Row; 16] = [
    Row { limit: Some("owned_word"), anchor: Anchor::both("4 ns (GASNet)"), ..both("put_8", "put 8 B") },
    Row { limit: Some("owned_word"), anchor: Anchor::both("4 ns (GASNet)"), ..both("get_8", "get 8 B") },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some("copy_1m"),
        anchor: Anchor::both("46 GB/s (copy)"),
        ..both("put_1048576", "put 1 MiB")
    },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some("copy_dirty"),
        anchor: Anchor { near: "46 GB/s (copy)", far: "26 GB/s (streams)" },
        ..both("put_dirty", "put 1 MiB, the owner wrote it last")
    },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some("copy_1m"),
        anchor: Anchor::both("46 GB/s (copy)"),
        ..both("get_1048576", "get 1 MiB")
    },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some("loop_1m"),
        anchor: Anchor::both("48 GB/s (loop)"),
        ..both("acc_1m", "accumulate 1 MiB")
    },
    Row {
        name: "acc_1m_am",
        what: "accumulate 1 MiB, by message",
        unit: Unit::Rate(MIB),
        limit: Some("loop_1m"),
        ..ROW
    },
    Row {
        limit: Some("owned_add"),
        anchor: Anchor::both("2 ns (owned line)"),
        ..both("add_idle", "fetch-add, owner idle")
    },
    Row {
        limit: Some("owned_add"),
        anchor: Anchor::both("2 ns (owned line)"),
        tail: true,
        ..both("add_busy", "fetch-add, owner computes")
    },
    Row { unit: Unit::Share, ..both("kept_busy", "  speed the owner kept") }.informative(),
    Row { name: "add_served_idle", what: "fetch-add by thread, owner idle", tail: true, ..ROW },
    Row {
        name: "add_served",
        what: "fetch-add by thread, owner computes",
        tail: true,
        limit: Some("served"),
        anchor: Anchor::both("0.9 us (futex)"),
        at_most: Some(25e3),
        ..ROW
    },
    Row { name: "kept_served", what: "  speed the owner kept", unit: Unit::Share, anchor: Anchor::both("93 %"), ..ROW },
    Row {
        name: "add_served_paced",
        what: "  the same, a draw every 200 us",
        tail: true,
        limit: Some("served_paced"),
        anchor: Anchor::both("17 us (futex)"),
        at_most: Some(25e3),
        ..ROW
    },
    Row {
        limit: Some("barrier_2"),
        anchor: Anchor::both("0.17 us (GASNet)"),
        tail: true,
        ..both("barrier_2", "barrier, 2 ranks")
    },
    Row {
        limit: Some("barrier_8"),
        anchor: Anchor::both("8 us (Open MPI, 4)"),
        tail: true,
        ..both("barrier_8", "barrier, 8 ranks on 2 cores")
    },
];

impl Row {
    /// Whether something is asked of it.
    pub fn is_judged(&self) -> bool {
        self.default_path || self.at_most.is_some()
    }

    /// Shown beside the peer's, without a verdict.
    const fn informative(self) -> Self {
        Row { default_path: false, ..self }
    }
}

/// What the machine's own figures are, in words, for the lines above the table.
pub const LIMITS: &[(&str, &str, Unit)] = &[
    ("owned_word", "8 bytes to a line it owns", Unit::Time),
    ("owned_add", "fetch-add on a line it owns", Unit::Time),
    ("copy_1m", "best copy of 1 MiB, warm", Unit::Rate(MIB)),
    ("copy_dirty", "best copy of 1 MiB, the other core wrote the target last", Unit::Rate(MIB)),
    ("loop_1m", "best y += a x of 1 MiB, warm", Unit::Rate(MIB)),
];
