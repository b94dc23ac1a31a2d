//! The rows of C programs: our library's C interface beside ARMCI-MPI, started by our launcher and by `mpirun`, and
//! Global Arrays on it, beside Global Arrays on ARMCI-MPI and on ComEx with a progress rank.

use crate::arrays;
use crate::contiguous::MIB;
use crate::row::Limit::{Ours, Peer};
use crate::row::{Anchor, Bound, Group, ROW, Row, Unit};

/// How much of the peer's latency a call of 8 bytes may take.
const SMALL: Bound = Bound::times(0.3);
/// How much of its time a strided transfer in rows of 16 bytes may take.
const ROWS: Bound = Bound::share(10.0);
/// What a transfer through Global Arrays may take on top of what that takes itself.
const ON_TOP: Bound = Bound::plus(25.0);

/// Never slower than the peer.
macro_rules! never_slower {
    ($prefix:literal, $name:literal, $what:expr, $unit:expr) => {
        Row {
            name: concat!($prefix, $name),
            what: $what,
            unit: $unit,
            peer: Some(concat!("c_", $name)),
            default_path: true,
            ..ROW
        }
    };
}

/// The same, and at most so much of it.
macro_rules! share {
    ($prefix:literal, $name:literal, $what:expr, $unit:expr, $bound:expr) => {
        Row {
            limit: Some(Peer(concat!("c_", $name))),
            bound: Some($bound),
            ..never_slower!($prefix, $name, $what, $unit)
        }
    };
}

/// All that is asked of the interface, of ranks that were started in one way.
macro_rules! interface {
    ($prefix:literal) => {
        [
            share!($prefix, "put_8", "put 8 B", Unit::Time, SMALL),
            share!($prefix, "get_8", "get 8 B", Unit::Time, SMALL),
            share!($prefix, "acc_8", "accumulate 8 B", Unit::Time, SMALL),
            never_slower!($prefix, "put_64", "put 64 B", Unit::Time),
            never_slower!($prefix, "get_64", "get 64 B", Unit::Time),
            never_slower!($prefix, "acc_64", "accumulate 64 B", Unit::Time),
            never_slower!($prefix, "put_512", "put 512 B", Unit::Time),
            never_slower!($prefix, "get_512", "get 512 B", Unit::Time),
            never_slower!($prefix, "acc_512", "accumulate 512 B", Unit::Time),
            never_slower!($prefix, "put_4096", "put 4 KiB", Unit::Time),
            never_slower!($prefix, "get_4096", "get 4 KiB", Unit::Time),
            never_slower!($prefix, "acc_4096", "accumulate 4 KiB", Unit::Time),
            never_slower!($prefix, "put_32768", "put 32 KiB", Unit::Rate(32 << 10)),
            never_slower!($prefix, "get_32768", "get 32 KiB", Unit::Rate(32 << 10)),
            never_slower!($prefix, "acc_32768", "accumulate 32 KiB", Unit::Rate(32 << 10)),
            never_slower!($prefix, "put_262144", "put 256 KiB", Unit::Rate(256 << 10)),
            never_slower!($prefix, "get_262144", "get 256 KiB", Unit::Rate(256 << 10)),
            never_slower!($prefix, "acc_262144", "accumulate 256 KiB", Unit::Rate(256 << 10)),
            never_slower!($prefix, "put_1048576", "put 1 MiB", Unit::Rate(MIB)),
            never_slower!($prefix, "get_1048576", "get 1 MiB", Unit::Rate(MIB)),
            never_slower!($prefix, "acc_1048576", "accumulate 1 MiB", Unit::Rate(MIB)),
            share!($prefix, "put_rows", "put 1 MiB, rows of 16 B two lengths apart there", Unit::Rate(MIB), ROWS),
            share!($prefix, "get_rows", "get 1 MiB, such rows", Unit::Rate(MIB), ROWS),
            never_slower!($prefix, "add_idle", "fetch-add, owner idle", Unit::Time),
            Row {
                limit: Some(Ours(concat!($prefix, "add_idle"))),
                bound: Some(Bound::times(1.2)),
                ..never_slower!($prefix, "add_busy", "fetch-add, owner computes (limit: idle)", Unit::Time)
            },
            never_slower!($prefix, "kept_busy", "  speed the owner kept", Unit::Share).informative(),
        ]
    };
}

static LAUNCHED: [Row; 26] = interface!("c_");
static BESIDE_MPI: [Row; 26] = interface!("c_mpirun_");

/// What the way in from C costs: the runtime finds a place by its address, too.
static BORDER: [Row; 1] = [Row {
    name: "c_border_put_8",
    what: "put 8 B through C (limit: the runtime's own, by address)",
    limit: Some(Ours("put_located_1")),
    bound: Some(Bound::plus(5.0)),
    ..ROW
}];

/// A call through Global Arrays, beside the same on ARMCI-MPI.
macro_rules! on_ours {
    ($name:literal, $what:literal) => {
        Row { name: concat!("ga_", $name), what: $what, peer: Some(concat!("ga_", $name)), default_path: true, ..ROW }
    };
}

/// The same for few bytes, which may take what it takes on nothing, and a little.
macro_rules! small {
    ($name:literal, $what:literal) => {
        Row { limit: Some(Ours(concat!("nothing_", $name))), bound: Some(ON_TOP), ..on_ours!($name, $what) }
    };
}

static ARRAYS: [Row; 9] = [
    small!("array_get_8", "NGA_Get 8 B"),
    small!("array_put_8", "NGA_Put 8 B"),
    small!("array_get_16", "NGA_Get 16 B"),
    small!("array_put_16", "NGA_Put 16 B"),
    on_ours!("array_add", "NGA_Read_inc"),
    Row { unit: Unit::Rate(arrays::PATCH), ..on_ours!("array_patch", "NGA_Get 256x256") },
    on_ours!("array_create_unfilled", "NGA_Create and GA_Destroy, 100x100"),
    on_ours!("array_create", "  the same, with GA_Zero"),
    // A prefix of Global Arrays may not be at hand: what is held against it can then not be checked.
    Row {
        name: "ga_asleep_array_add",
        what: "NGA_Read_inc, owner asleep (limit: ComEx MPI-PR)",
        limit: Some(Peer("ga_mpi_pr_array_add")),
        anchor: Anchor::both("4.7 us (MPI-PR)"),
        bound: Some(Bound::times(0.1)),
        if_there: true,
        ..ROW
    },
];

/// What the same calls take on ComEx, for information.
static COMEX: [Row; 2] = [
    Row {
        name: "ga_asleep_array_get_8",
        what: "NGA_Get 8 B, owner asleep (limit: ComEx MPI-PR)",
        limit: Some(Peer("ga_mpi_pr_array_get_8")),
        anchor: Anchor::both("115-120 ns (MPI-PR)"),
        ..ROW
    },
    Row {
        name: "ga_asleep_array_put_8",
        what: "NGA_Put 8 B, likewise",
        limit: Some(Peer("ga_mpi_pr_array_put_8")),
        anchor: Anchor::both("107-120 ns (MPI-PR)"),
        ..ROW
    },
];

/// All groups.
pub const ALL: [Group; 5] = [
    Group { title: "C interface, started by armci-run (peer: the same source on ARMCI-MPI)", rows: &LAUNCHED },
    Group { title: "C interface, started by Open MPI's mpirun (peer: likewise)", rows: &BESIDE_MPI },
    Group { title: "The border between C and the runtime", rows: &BORDER },
    Group { title: "Global Arrays on libarmci (limit: its own share; peer: on ARMCI-MPI)", rows: &ARRAYS },
    Group { title: "Global Arrays on libarmci beside ComEx", rows: &COMEX },
];
