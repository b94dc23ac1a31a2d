//! The rows of the table: what each figure is held against, and what is asked of it.
//!
//! Anchors are the published figures of machines like this one, for near and for far cores; the limits are measured
//! in the run itself.

use crate::row::Limit::{Machine, Ours};
use crate::row::{Anchor, Bound, Group, ROW, Row, Unit};

const MIB: usize = crate::contiguous::MIB;

/// A default path that the peer has too, under the same name.
const fn both(name: &'static str, what: &'static str) -> Row {
    Row { name, what, peer: Some(name), default_path: true, ..ROW }
}

/// What the peer does too.
static BESIDE_PEER: [Row; 16] = [
    Row { limit: Some(Machine("owned_word")), anchor: Anchor::both("4 ns (GASNet)"), ..both("put_8", "put 8 B") },
    Row { limit: Some(Machine("owned_word")), anchor: Anchor::both("4 ns (GASNet)"), ..both("get_8", "get 8 B") },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some(Machine("copy_1m")),
        anchor: Anchor::both("46 GB/s (copy)"),
        ..both("put_1048576", "put 1 MiB")
    },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some(Machine("copy_dirty")),
        anchor: Anchor { near: "46 GB/s (copy)", far: "26 GB/s (streams)" },
        ..both("put_dirty", "put 1 MiB, the owner wrote it last")
    },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some(Machine("copy_1m")),
        anchor: Anchor::both("46 GB/s (copy)"),
        ..both("get_1048576", "get 1 MiB")
    },
    Row {
        unit: Unit::Rate(MIB),
        limit: Some(Machine("loop_1m")),
        anchor: Anchor::both("48 GB/s (loop)"),
        ..both("acc_1m", "accumulate 1 MiB")
    },
    Row {
        name: "acc_1m_am",
        what: "accumulate 1 MiB, by message",
        unit: Unit::Rate(MIB),
        limit: Some(Machine("loop_1m")),
        ..ROW
    },
    Row {
        limit: Some(Machine("owned_add")),
        anchor: Anchor::both("2 ns (owned line)"),
        ..both("add_idle", "fetch-add, owner idle")
    },
    Row {
        limit: Some(Machine("owned_add")),
        anchor: Anchor::both("2 ns (owned line)"),
        tail: true,
        ..both("add_busy", "fetch-add, owner computes")
    },
    Row { unit: Unit::Share, ..both("kept_busy", "  speed the owner kept") }.informative(),
    Row {
        name: "add_served_idle",
        what: "fetch-add by thread, owner idle",
        tail: true,
        bound: Some(Bound::at_most(1e3)),
        tail_at_most: Some(100e3),
        ..ROW
    },
    Row {
        name: "add_served",
        what: "fetch-add by thread, owner computes",
        tail: true,
        limit: Some(Machine("served")),
        anchor: Anchor::both("0.9 us (futex)"),
        bound: Some(Bound::at_most(25e3)),
        tail_at_most: Some(100e3),
        ..ROW
    },
    Row { name: "kept_served", what: "  speed the owner kept", unit: Unit::Share, anchor: Anchor::both("93 %"), ..ROW },
    Row {
        name: "add_served_paced",
        what: "  the same, a draw every 200 us",
        tail: true,
        limit: Some(Machine("served_paced")),
        anchor: Anchor::both("17 us (futex)"),
        bound: Some(Bound::at_most(25e3)),
        tail_at_most: Some(100e3),
        ..ROW
    },
    Row {
        limit: Some(Machine("barrier_2")),
        anchor: Anchor::both("0.17 us (GASNet)"),
        tail: true,
        bound: Some(Bound::by_class(250.0, 500.0)),
        ..both("barrier_2", "barrier, 2 ranks")
    },
    Row {
        limit: Some(Machine("barrier_8")),
        anchor: Anchor::both("8 us (Open MPI, 4)"),
        tail: true,
        bound: Some(Bound::at_most(60e3)),
        ..both("barrier_8", "barrier, 8 ranks on 2 cores")
    },
];

/// What ranks do together, and with each other's help.
static TOGETHER: [Row; 3] = [
    Row {
        name: "am_request",
        what: "message and reply, 8 B, owner in a call",
        tail: true,
        anchor: Anchor::both("0.28 us (GASNet)"),
        bound: Some(Bound::by_class(350.0, 700.0)),
        ..ROW
    },
    Row {
        name: "am_flood",
        what: "message, many in a row, each",
        anchor: Anchor::both("94 ns (GASNet)"),
        bound: Some(Bound::at_most(100.0)),
        ..ROW
    },
    Row {
        name: "allocate_free",
        what: "allocate and free 64 B together (limit: a barrier)",
        tail: true,
        limit: Some(Ours("allocate_barrier")),
        anchor: Anchor::both("60 us (ARMCI-MPI)"),
        bound: Some(Bound::times(2.5)),
        ..ROW
    },
];

/// A figure after a thousand allocations, beside the same before them.
const fn grown(name: &'static str, before: &'static str, what: &'static str, unit: Unit) -> Row {
    Row { name, what, unit, limit: Some(Ours(before)), ..ROW }
}

/// What a job and its memory cost.
static JOB: [Row; 6] = [
    Row {
        name: "start_16",
        what: "start of 16 ranks, to the end of a barrier",
        anchor: Anchor::both("0.5 s (Hydra)"),
        bound: Some(Bound::at_most(200e6)),
        ..ROW
    },
    Row {
        name: "idle_thread",
        what: "idle progress thread, of a core",
        unit: Unit::Used,
        bound: Some(Bound::at_most(0.01)),
        ..ROW
    },
    grown(
        "resident_after",
        "resident_before",
        "64 ranks, 1,000 allocations (limit: none): resident, each",
        Unit::Bytes,
    ),
    grown("window_after", "window_before", "  window memory granted, each", Unit::Bytes),
    grown("tables_after", "tables_before", "  page tables, each", Unit::Bytes),
    Row {
        bound: Some(Bound::times(1.0)),
        ..grown("descriptors_after", "descriptors_before", "  descriptors, each", Unit::Count)
    },
];

/// The whole table.
pub static GROUPS: [Group; 3] = [
    Group { title: "Beside ARMCI-MPI", rows: &BESIDE_PEER },
    Group { title: "Together", rows: &TOGETHER },
    Group { title: "The job", rows: &JOB },
];

/// All rows, in order.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|group| group.rows)
}

/// What the machine's own figures are, in words, for the lines above the table.
pub const LIMITS: &[(&str, &str, Unit)] = &[
    ("owned_word", "8 bytes to a line it owns", Unit::Time),
    ("owned_add", "fetch-add on a line it owns", Unit::Time),
    ("copy_1m", "best copy of 1 MiB, warm", Unit::Rate(MIB)),
    ("copy_dirty", "best copy of 1 MiB, the other core wrote the target last", Unit::Rate(MIB)),
    ("loop_1m", "best y += a x of 1 MiB, warm", Unit::Rate(MIB)),
];
