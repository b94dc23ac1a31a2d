//! The rows of the table: what each figure is held against, and what is asked of it.
//!
//! Anchors are the published figures of machines like this one, for near and for far cores; the limits are measured
//! in the run itself.

use crate::row::Limit::{Best, Machine, Ours};
use crate::row::{Anchor, Bound, Group, ROW, Row, Unit};
use crate::{alignment, arrays, between_rows, client_rows, matmul};

const MIB: usize = crate::contiguous::MIB;

/// A default path that the peer has too, under the same name.
const fn both(name: &'static str, what: &'static str) -> Row {
    Row { name, what, peer: Some(name), default_path: true, ..ROW }
}

/// What the peer does too.
static BESIDE_PEER: [Row; 11] = [
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

/// 8 bytes to or from the only allocation.
const fn alone(name: &'static str, what: &'static str, at_most: f64) -> Row {
    Row { name, what, limit: Some(Ours("word_1")), bound: Some(Bound::at_most(at_most)), ..ROW }
}

/// The same with many alive, beside the only one.
macro_rules! among {
    ($way:literal, $alive:literal, $what:literal) => {
        Row {
            name: concat!($way, "_", $alive),
            what: $what,
            limit: Some(Ours(concat!($way, "_1"))),
            bound: Some(Bound::times(1.5)),
            ..ROW
        }
    };
}

/// 8 bytes, and finding where they go.
static SMALL: [Row; 12] = [
    Row { anchor: Anchor::both("4 ns (GASNet)"), ..alone("put_ptr_1", "put 8 B by pointer", 8.0) },
    among!("put_ptr", 256, "  among 256, the newest or the oldest (limit: alone)"),
    among!("put_ptr", 10000, "  among 10,000"),
    Row { anchor: Anchor::both("4 ns (GASNet)"), ..alone("get_ptr_1", "get 8 B by pointer", 8.0) },
    among!("get_ptr", 256, "  among 256"),
    among!("get_ptr", 10000, "  among 10,000"),
    alone("put_located_1", "put 8 B by (rank, address)", 20.0),
    among!("put_located", 256, "  among 256"),
    among!("put_located", 10000, "  among 10,000"),
    alone("get_located_1", "get 8 B by (rank, address)", 20.0),
    among!("get_located", 256, "  among 256"),
    among!("get_located", 10000, "  among 10,000"),
];

/// A fetch-and-add, which may take as long as a line takes between the cores.
const fn add(name: &'static str, what: &'static str) -> Row {
    Row { name, what, tail: true, limit: Some(Ours("line_passed")), bound: Some(Bound::times(1.2)), ..ROW }
}

/// What each of several threads takes, of what each of as many ranks does.
const fn each(name: &'static str, of_ranks: &'static str, what: &'static str) -> Row {
    Row { name, what, limit: Some(Ours(of_ranks)), bound: Some(Bound::times(1.1)), ..ROW }
}

/// How a place is found.
static RESOLVED: [Row; 3] = [
    Row { name: "put_by_table", what: "found in the owner's table", bound: Some(Bound::at_most(8.0)), ..ROW },
    Row { name: "put_cached", what: "found in the cache of remote regions", limit: Some(Ours("put_by_table")), ..ROW },
    Row { name: "put_missed", what: "not found there: the owner is asked", ..ROW },
];

/// Threads with contexts of their own.
static THREADS: [Row; 5] = [
    each("each_put_8_threads", "each_put_8_ranks", "put 8 B"),
    each("each_get_8_threads", "each_get_8_ranks", "get 8 B"),
    each("each_put_4k_threads", "each_put_4k_ranks", "put 4 KiB"),
    each("each_get_4k_threads", "each_get_4k_ranks", "get 4 KiB"),
    each("each_add_threads", "each_add_ranks", "fetch-add"),
];

/// The counter, in the owner's memory.
static COUNTER: [Row; 5] = [
    add("add_waits", "fetch-add, owner in a barrier"),
    add("add_sleeps", "fetch-add, owner asleep"),
    add("add_computes", "fetch-add, owner computes"),
    Row {
        name: "add_spread",
        what: "  slowest of the three / fastest",
        unit: Unit::Factor,
        bound: Some(Bound::at_most(1.2)),
        ..ROW
    },
    // For information: the way to the place, some 15 ns, is not hidden by anything here.
    Row { bound: None, ..add("add_passed", "fetch-add on a line the owner changed last") },
];

/// A fetch-and-add that a progress thread serves.
const fn served(name: &'static str, what: &'static str, at_most: f64) -> Row {
    Row {
        name,
        what,
        tail: true,
        anchor: Anchor::both("0.9 us (futex)"),
        bound: Some(Bound::at_most(at_most)),
        tail_at_most: Some(100e3),
        ..ROW
    }
}

/// By message, although it could be done in place: what every operation costs that the memory cannot do by itself.
static SERVED: [Row; 6] = [
    served("add_served_idle", "fetch-add, owner in a barrier, and so a core free for the thread", 1e3),
    served("add_served_asleep", "fetch-add, owner asleep, likewise", 1e3),
    Row { limit: Some(Machine("served")), ..served("add_served", "fetch-add, owner computes on the same core", 25e3) },
    Row { name: "kept_served", what: "  speed the owner kept", unit: Unit::Share, anchor: Anchor::both("93 %"), ..ROW },
    Row {
        limit: Some(Machine("served_paced")),
        anchor: Anchor::both("17 us (futex)"),
        ..served("add_served_paced", "  the same, a draw every 200 us", 25e3)
    },
    Row { name: "acc_1m_am", what: "accumulate 1 MiB", unit: Unit::Rate(MIB), limit: Some(Machine("loop_1m")), ..ROW },
];

/// Time where the start of a transfer is what counts, a rate above.
const fn unit(bytes: usize) -> Unit {
    if bytes < 16 << 10 { Unit::Time } else { Unit::Rate(bytes) }
}

/// A transfer of so many bytes at its worst alignment, beside the best copy there.
macro_rules! any {
    ($name:literal, $bytes:literal, $size:literal) => {
        Row {
            name: concat!($name, "_any_", $bytes),
            what: concat!($name, " ", $size),
            unit: unit($bytes),
            limit: Some(Best),
            bound: Some(alignment::bound($bytes)),
            ..ROW
        }
    };
}

/// Contiguous transfers.
static ANY_ALIGNMENT: [Row; 14] = [
    any!("put", 64, "64 B"),
    any!("put", 512, "512 B"),
    any!("put", 4096, "4 KiB"),
    any!("put", 16384, "16 KiB"),
    any!("put", 65536, "64 KiB"),
    any!("put", 262144, "256 KiB"),
    any!("put", 1048576, "1 MiB"),
    any!("get", 64, "64 B"),
    any!("get", 512, "512 B"),
    any!("get", 4096, "4 KiB"),
    any!("get", 16384, "16 KiB"),
    any!("get", 65536, "64 KiB"),
    any!("get", 262144, "256 KiB"),
    any!("get", 1048576, "1 MiB"),
];

/// A megabyte in rows, beside the best loop written for rows of that length.
macro_rules! strided {
    ($name:literal, $row:literal, $size:literal, $share:literal) => {
        Row {
            name: concat!($name, "_rows_", $row),
            what: concat!($name, " 1 MiB, rows of ", $size),
            unit: Unit::Rate(MIB),
            limit: Some(Best),
            bound: Some(Bound::share($share)),
            ..ROW
        }
    };
}

/// Strided transfers.
static STRIDED: [Row; 8] = [
    strided!("put", 16, "16 B", 0.85),
    strided!("put", 64, "64 B", 0.9),
    strided!("put", 256, "256 B", 0.95),
    strided!("put", 4096, "4 KiB", 0.95),
    strided!("get", 16, "16 B", 0.85),
    strided!("get", 64, "64 B", 0.9),
    strided!("get", 256, "256 B", 0.95),
    strided!("get", 4096, "4 KiB", 0.95),
];

/// Accumulates of so many bytes, beside the best loop.
macro_rules! accumulate {
    ($bytes:literal, $size:literal) => {
        Row {
            name: concat!("acc_", $bytes),
            what: concat!("accumulate ", $size),
            unit: unit($bytes),
            limit: Some(Best),
            bound: Some(if $bytes < 64 << 10 { Bound::plus(15.0) } else { Bound::share(0.95) }),
            ..ROW
        }
    };
}

/// Accumulates of `f64`.
static ACCUMULATE: [Row; 7] = [
    accumulate!(8, "8 B"),
    accumulate!(64, "64 B"),
    accumulate!(512, "512 B"),
    accumulate!(4096, "4 KiB"),
    accumulate!(65536, "64 KiB"),
    accumulate!(262144, "256 KiB"),
    accumulate!(1048576, "1 MiB"),
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

/// An operation through an array, beside the runtime's own; Global Arrays has it too.
macro_rules! array {
    ($name:literal, $what:literal, $bound:expr) => {
        Row { limit: Some(Ours(concat!($name, "_raw"))), bound: Some($bound), ..both($name, $what) }
    };
}

/// Arrays.
static ARRAYS: [Row; 10] = [
    array!("array_put_8", "put an element", Bound::plus(60.0)),
    array!("array_get_8", "get an element", Bound::plus(60.0)),
    array!("array_put_16", "put a row of 16 B", Bound::plus(60.0)),
    array!("array_get_16", "get a row of 16 B", Bound::plus(60.0)),
    array!("array_add", "read-increment, owner idle", Bound::plus(40.0)),
    Row { unit: Unit::Rate(arrays::PATCH), ..array!("array_patch", "get 256x256 from one owner", Bound::share(0.9)) },
    Row {
        unit: Unit::Rate(arrays::PATCH),
        ..array!("array_spread", "get 256x256 from four owners", Bound::share(0.9))
    },
    Row {
        limit: Some(Ours("array_barrier")),
        bound: Some(Bound::times(4.0)),
        ..both("array_create_unfilled", "create and destroy 100x100 (limit: a barrier)")
    },
    // Without a bound of its own: writing the zeros alone takes two barriers.
    Row { limit: Some(Ours("array_barrier")), ..both("array_create", "  the same, filled with zeros") },
    Row {
        name: "matmul",
        what: "product of 2048x2048 f64, 2 ranks (limit: the library's product of halves, on both cores at once)",
        unit: Unit::Speed(matmul::OPERATIONS),
        limit: Some(Ours("matmul_local")),
        bound: Some(Bound::share(0.85)),
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

/// What our own ranks measure.
static BESIDE_LIMITS: [Group; 12] = [
    Group { title: "Beside ARMCI-MPI (peer)", rows: &BESIDE_PEER },
    Group { title: "Small (limit: a store to the same word)", rows: &SMALL },
    Group { title: "The counter (limit: a line passes between the cores)", rows: &COUNTER },
    Group { title: "By message, served by a progress thread (limit: a thread written for this alone)", rows: &SERVED },
    Group { title: "Contiguous, at its worst alignment (limit: the best copy there)", rows: &ANY_ALIGNMENT },
    Group { title: "Strided, into rows two lengths apart (limit: the best loop written for them)", rows: &STRIDED },
    Group { title: "Accumulate of f64 (limit: the best loop over the same memory)", rows: &ACCUMULATE },
    Group { title: "Two threads of a rank at once, each (limit: two ranks)", rows: &THREADS },
    Group { title: "Put 8 B, 64 regions in turn", rows: &RESOLVED },
    Group { title: "Together", rows: &TOGETHER },
    Group { title: "Arrays (limit: the runtime's own operation; peer: Global Arrays)", rows: &ARRAYS },
    Group { title: "The job", rows: &JOB },
];

/// All groups, in order: of our own ranks, then of C programs.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    BESIDE_LIMITS.iter().chain(&between_rows::ALL).chain(&client_rows::ALL)
}

/// All rows, in order.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    groups().flat_map(|group| group.rows)
}

/// What the machine's own figures are, in words, for the lines above the table.
pub const LIMITS: &[(&str, &str, Unit)] = &[
    ("owned_word", "8 bytes to a line it owns", Unit::Time),
    ("owned_add", "fetch-add on a line it owns", Unit::Time),
    ("copy_1m", "best copy of 1 MiB, warm", Unit::Rate(MIB)),
    ("copy_dirty", "best copy of 1 MiB, the other core wrote the target last", Unit::Rate(MIB)),
    ("loop_1m", "best y += a x of 1 MiB, warm", Unit::Rate(MIB)),
    ("tcp_8", "8 bytes there and back by TCP over loopback, both sides spinning", Unit::Time),
];
