//! The rows of what is measured between nodes, and their peers: a program on bare libfabric, and MPICH's one-sided
//! operations by the same way.

use crate::between::{PROVIDER, PROVIDER_TO_SLEEP_OVER};
use crate::contiguous::MIB;
use crate::peer::{Library, Link, Mpi, Program, Start};
use crate::programs::{ARMCI_MPI_LIKE, PAIR};
use crate::row::Limit::{Machine, Ours, Peer};
use crate::row::{Anchor, Bound, Group, ROW, Row, Unit};

/// What is below us between nodes.
pub static LIBFABRIC: Library = Library {
    name: "libfabric",
    sources: &[("libfabric.c", include_str!("../peers/libfabric.c"))],
    mpi: Mpi::No,
    link: Link::Installed(&[&["-lfabric"]]),
    signs: &["rdma/fabric.h", "-lfabric"],
    how_to_install: "apt-get install libfabric-dev",
    ..ARMCI_MPI_LIKE
};

static MPICH: Library = Library {
    name: "MPICH",
    sources: &[("mpi_far.c", include_str!("../peers/mpi_far.c"))],
    mpi: Mpi::Mpich,
    link: Link::Installed(&[&[]]),
    signs: &["mpi.h", "-lmpich"],
    how_to_install: "apt-get install libmpich-dev mpich",
    ..ARMCI_MPI_LIKE
};

/// On bare libfabric.
const BARE: Program = Program { library: &LIBFABRIC, prefix: "fi_", argument: PROVIDER, start: Start::Alone, ..PAIR };

/// What they run.
pub static PEERS: [Program; 3] = [
    BARE,
    Program { prefix: "fi_sleeps_", argument: PROVIDER_TO_SLEEP_OVER, ..BARE },
    Program { library: &MPICH, prefix: "mpi_", argument: "far", start: Start::MpiexecApart, ..PAIR },
];

/// What the same takes by MPICH.
const fn mpi(name: &'static str, theirs: &'static str, what: &'static str) -> Row {
    Row { name, what, peer: Some(theirs), ..ROW }
}

/// A megabyte.
const fn mega(name: &'static str, what: &'static str) -> Row {
    Row { name, what, unit: Unit::Rate(MIB), ..ROW }
}

/// The target waits in a call.
static ATTENTIVE: [Row; 11] = [
    Row {
        limit: Some(Peer("fi_read_8")),
        bound: Some(Bound::times(1.05)),
        tail: true,
        anchor: Anchor::both("15-16.5 us (libfabric)"),
        ..mpi("far_get_8", "mpi_get_8", "get 8 B (limit: bare libfabric)")
    },
    Row {
        name: "far_get_8_again",
        what: "  the same (limit: bare libfabric that could sleep)",
        limit: Some(Peer("fi_sleeps_read_8")),
        ..ROW
    },
    Row {
        limit: Some(Machine("tcp_8")),
        tail: true,
        anchor: Anchor::both("14.8 us (libfabric)"),
        ..mpi("far_put_8", "mpi_put_8", "put 8 B and fence (limit: raw TCP, there and back)")
    },
    Row {
        limit: Some(Machine("tcp_8")),
        tail: true,
        anchor: Anchor::both("21.9 us (libfabric)"),
        ..mpi("far_add", "mpi_add", "fetch-add (limit: likewise)")
    },
    Row {
        name: "far_put_8_flow",
        what: "put 8 B, many under way, each (limit: bare libfabric, 64 under way)",
        limit: Some(Peer("fi_write_8_flow")),
        bound: Some(Bound::share(0.9)),
        ..ROW
    },
    Row {
        limit: Some(Peer("fi_write_1m_stream")),
        bound: Some(Bound::share(0.95)),
        peer: Some("mpi_put_1m"),
        ..mega("far_put_1m", "put 1 MiB, 8 under way (limit: bare libfabric, likewise; peer: one)")
    },
    Row {
        limit: Some(Peer("fi_read_1m_stream")),
        bound: Some(Bound::share(0.95)),
        peer: Some("mpi_get_1m"),
        ..mega("far_get_1m", "get 1 MiB, 8 under way (limit: bare libfabric, likewise; peer: one)")
    },
    Row { limit: Some(Peer("fi_write_1m")), ..mega("far_put_once", "put 1 MiB and fence (limit: bare libfabric)") },
    Row { limit: Some(Peer("fi_read_1m")), ..mega("far_get_once", "get 1 MiB (limit: bare libfabric)") },
    Row {
        limit: Some(Ours("far_put_once")),
        bound: Some(Bound::share(0.7)),
        ..mega("far_put_rows", "put 1 MiB in rows of 64 B, and fence (limit: in one piece)")
    },
    Row {
        limit: Some(Ours("far_get_once")),
        bound: Some(Bound::share(0.7)),
        ..mega("far_get_rows", "get 1 MiB in rows of 64 B (limit: in one piece)")
    },
];

/// With the progress thread on its rank's core.
const fn shared(name: &'static str, what: &'static str) -> Row {
    Row { name, what, tail: true, bound: Some(Bound::at_most(60e3)), anchor: Anchor::both("never (tcp)"), ..ROW }
}

/// With the progress thread on a core of its own.
const fn apart(name: &'static str, attentive: &'static str, what: &'static str) -> Row {
    Row { name, what, limit: Some(Ours(attentive)), bound: Some(Bound::times(2.0)), ..ROW }
}

/// The target computes.
static COMPUTING: [Row; 10] = [
    apart("far_get_8_apart", "far_get_8", "get 8 B, its thread has a core (limit: attentive)"),
    apart("far_put_8_apart", "far_put_8", "put 8 B and fence, likewise"),
    apart("far_add_apart", "far_add", "fetch-add, likewise"),
    Row { peer: Some("mpi_get_8_busy"), ..shared("far_get_8_shared", "get 8 B, its thread shares its core") },
    shared("far_put_8_shared", "put 8 B and fence, likewise"),
    Row { peer: Some("mpi_add_busy"), ..shared("far_add_shared", "fetch-add, likewise") },
    Row { name: "far_kept_shared", what: "  speed the owner kept", unit: Unit::Share, ..ROW },
    mega("far_put_1m_busy", "put 1 MiB and fence, likewise"),
    mega("far_get_1m_busy", "get 1 MiB, likewise"),
    Row {
        limit: Some(Ours("far_put_1m_busy")),
        bound: Some(Bound::share(0.8)),
        ..mega("far_acc_1m_busy", "accumulate 1 MiB and fence, likewise (limit: put)")
    },
];

/// Time of both ranks in a phase, with and without progress threads.
macro_rules! phase {
    ($phase:literal) => {
        Row {
            name: concat!("far_scf_", $phase, "_thread"),
            what: concat!("  ", $phase),
            limit: Some(Ours(concat!("far_scf_", $phase, "_none"))),
            ..ROW
        }
    };
}

/// A whole program.
static SCF: [Row; 13] = [
    Row {
        name: "far_scf_share",
        what: "time in the counter, of that without",
        unit: Unit::Used,
        bound: Some(Bound::at_most(0.2)),
        ..ROW
    },
    Row { name: "far_scf_draw_share", what: "  for a number, of that without", unit: Unit::Used, ..ROW },
    Row { name: "far_scf_piece", what: "  a task's computation", ..ROW },
    phase!("counter"),
    phase!("get"),
    phase!("accumulate"),
    phase!("integrals"),
    phase!("wait"),
    phase!("wall"),
    Row { name: "far_scf_long_share", what: "tasks twice as long: time in the counter", unit: Unit::Used, ..ROW },
    Row { name: "far_scf_long_draw_share", what: "  for a number, of that without", unit: Unit::Used, ..ROW },
    Row { name: "far_scf_long_piece", what: "  a task's computation", ..ROW },
    Row { name: "far_scf_long_wall_thread", what: "  wall", limit: Some(Ours("far_scf_long_wall_none")), ..ROW },
];

macro_rules! cached {
    ($way:literal, $what:literal) => {
        [
            Row { name: concat!("far_cache_", $way, "_hits"), what: $what, unit: Unit::Share, ..ROW },
            Row { name: concat!("far_cache_", $way, "_p10"), what: "  10 % of gets are below", ..ROW },
            Row { name: concat!("far_cache_", $way, "_p50"), what: "  50 %", ..ROW },
            Row { name: concat!("far_cache_", $way, "_p90"), what: "  90 %", ..ROW },
            Row { name: concat!("far_cache_", $way, "_p99"), what: "  99 %", ..ROW },
            Row { name: concat!("far_cache_", $way, "_hit"), what: "  a hit, median", ..ROW },
            Row {
                name: concat!("far_cache_", $way, "_cost"),
                what: "  what a miss takes more (limit: a message and its answer)",
                limit: Some(Ours("far_cache_ask")),
                ..ROW
            },
        ]
    };
}

static EVEN: [Row; 7] = cached!("even", "hits, every region as likely as another");
static SKEWED: [Row; 7] = cached!("skewed", "hits, the k-th region with a likelihood of 1/k");
static TURNED: [Row; 7] = cached!("turned", "hits, the other way round");

macro_rules! predicted {
    ($name:literal, $what:literal) => {
        Row { name: $name, what: $what, limit: Some(Ours(concat!($name, "_predicted"))), ..ROW }
    };
}

static MODEL: [Row; 22] = [
    Row { name: "far_model_o", what: "o: the processor starts a get", ..ROW },
    Row { name: "far_model_l", what: "L: from there to the end of 8 bytes", ..ROW },
    Row { name: "far_model_g", what: "1/G: bytes in a stream", unit: Unit::Rate(1), ..ROW },
    predicted!("far_rdma_64", "(7) get 64 B"),
    predicted!("far_rdma_1024", "(7) get 1 KiB"),
    predicted!("far_rdma_8192", "(7) get 8 KiB"),
    predicted!("far_rdma_65536", "(7) get 64 KiB"),
    predicted!("far_rdma_262144", "(7) get 256 KiB"),
    predicted!("far_rdma_1048576", "(7) get 1 MiB"),
    predicted!("far_message_64", "(8) get 64 B by message"),
    predicted!("far_message_1024", "(8) get 1 KiB by message"),
    predicted!("far_message_8192", "(8) get 8 KiB by message"),
    predicted!("far_message_65536", "(8) get 64 KiB by message"),
    predicted!("far_message_262144", "(8) get 256 KiB by message"),
    predicted!("far_message_1048576", "(8) get 1 MiB by message"),
    predicted!("far_rows_16384", "(9) get 1 MiB in rows of 16 KiB"),
    predicted!("far_rows_32768", "(9) get 1 MiB in rows of 32 KiB"),
    predicted!("far_rows_65536", "(9) get 1 MiB in rows of 64 KiB"),
    Row { name: "far_time_context", what: "(2) a context is made", ..ROW },
    Row { name: "far_time_endpoint", what: "(4) it reaches a rank for the first time", ..ROW },
    Row { name: "far_time_region", what: "(6) a region is allocated", ..ROW },
    Row {
        name: "far_size_context",
        what: "(1) memory of a context, its thread and its connection",
        unit: Unit::Bytes,
        ..ROW
    },
];

/// All groups.
pub static ALL: [Group; 7] = [
    Group { title: "Between nodes, over TCP on loopback, the target waits in a call (peer: MPICH)", rows: &ATTENTIVE },
    Group { title: "Between nodes, the target computes (peer: MPICH)", rows: &COMPUTING },
    Group { title: "Between nodes, SCF of (H2O)3, 2 ranks' time with progress threads (limit: without)", rows: &SCF },
    Group { title: "Between nodes, 256 regions, of which the cache holds 16", rows: &EVEN },
    Group { title: "Between nodes, likewise, some used more often than others", rows: &SKEWED },
    Group { title: "Between nodes, likewise, afterwards others are used more often", rows: &TURNED },
    Group { title: "Between nodes, paper 003's model (limit: predicted from o, L and G)", rows: &MODEL },
];
