//! The C programs of `peers/`: which library each is linked with, how it is started, and what it is to measure.
//!
//! The same source is linked with a peer's library and with ours: what differs between two columns is the library
//! alone. A figure's name has the program's prefix, so that one source may be run in several ways.

use crate::between_rows;
use crate::peer::{HOW_TO_INSTALL, Library, Link, Mpi, Program, Source, Start};

const ARMCI_C: Source = ("armci.c", include_str!("../peers/armci.c"));
const GLOBAL_ARRAYS_C: Source = ("global_arrays.c", include_str!("../peers/global_arrays.c"));
const MPI_RMA_C: Source = ("mpi_rma.c", include_str!("../peers/mpi_rma.c"));
const NOTHING_C: Source = ("nothing.c", include_str!("../peers/nothing.c"));
const UCX_C: Source = ("ucx.c", include_str!("../peers/ucx.c"));
/// What the programs include of each other, beside all of them.
pub const SHARED: [Source; 2] =
    [("sampling.h", include_str!("../peers/sampling.h")), ("pair.h", include_str!("../peers/pair.h"))];
const OUR_HEADERS: [Source; 2] = [
    ("armci.h", include_str!("../../ffi/include/armci.h")),
    ("message.h", include_str!("../../ffi/include/message.h")),
];

const HOW_TO_INSTALL_GA: &str =
    "apt-get install libglobalarrays-dev libopenmpi-dev openmpi-bin gfortran (or: make bench)";
const SIGNS_OF_GA: &[&str] = &["ga.h", "-lga", "scalapack", "-larmci", "-lgfortran"];

/// The ways to link with Debian's Global Arrays, of which the first that works is taken, on some ARMCI: the libraries of
/// linear algebra that it names are often there without what links to them by their plain names.
macro_rules! global_arrays_on {
    ($armci:literal) => {
        &[
            &["-lga-openmpi", "-lscalapack-openmpi", "-llapack", "-lblas", $armci, "-lgfortran", "-lm"],
            &[
                "-lga-openmpi",
                "-l:libscalapack-openmpi.so.2.2",
                "-l:liblapack.so.3",
                "-l:libblas.so.3",
                $armci,
                "-lgfortran",
                "-lm",
            ],
        ]
    };
}

static ARMCI_MPI: Library = Library {
    name: "ARMCI-MPI",
    sources: &[ARMCI_C],
    headers: &[],
    mpi: Mpi::Open,
    options: &[],
    link: Link::Installed(&[&["-larmci-openmpi"]]),
    signs: &["armci.h", "-larmci"],
    how_to_install: HOW_TO_INSTALL,
};

static GLOBAL_ARRAYS: Library = Library {
    name: "Global Arrays",
    sources: &[GLOBAL_ARRAYS_C],
    link: Link::Installed(global_arrays_on!("-larmci-openmpi")),
    signs: SIGNS_OF_GA,
    how_to_install: HOW_TO_INSTALL_GA,
    ..ARMCI_MPI_LIKE
};

/// What other libraries begin with.
pub const ARMCI_MPI_LIKE: Library = Library {
    name: "",
    sources: &[],
    headers: &[],
    mpi: Mpi::Open,
    options: &[],
    link: Link::Installed(&[]),
    signs: &[],
    how_to_install: HOW_TO_INSTALL,
};

static OURS: Library = Library {
    name: "libarmci beside Open MPI",
    sources: &[ARMCI_C],
    headers: &OUR_HEADERS,
    link: Link::Ours(&[&["-larmci"]]),
    ..ARMCI_MPI_LIKE
};

static OURS_ALONE: Library = Library {
    name: "libarmci without an MPI",
    sources: &[ARMCI_C],
    headers: &OUR_HEADERS,
    mpi: Mpi::No,
    options: &["-DARMCI_NO_MPI"],
    link: Link::Ours(&[&["-larmci"]]),
    how_to_install: "apt-get install gcc",
    ..ARMCI_MPI_LIKE
};

static GLOBAL_ARRAYS_ON_OURS: Library = Library {
    name: "Global Arrays on libarmci",
    sources: &[GLOBAL_ARRAYS_C],
    headers: &OUR_HEADERS,
    link: Link::Ours(global_arrays_on!("-larmci")),
    signs: SIGNS_OF_GA,
    how_to_install: HOW_TO_INSTALL_GA,
    ..ARMCI_MPI_LIKE
};

/// All but its transfers of one element is our library's.
static GLOBAL_ARRAYS_ON_NOTHING: Library = Library {
    name: "Global Arrays on nothing",
    sources: &[GLOBAL_ARRAYS_C, NOTHING_C],
    options: &["-DON_NOTHING"],
    ..GLOBAL_ARRAYS_ON_OURS
};

static GLOBAL_ARRAYS_ON_MPI_PR: Library = Library {
    name: "Global Arrays on ComEx MPI-PR",
    sources: &[GLOBAL_ARRAYS_C],
    link: Link::MpiPr(&[
        &["-lga", "-larmci", "-lcomex", "-lm"],
        &["-lga", "-larmci", "-lcomex", "-llapack", "-lblas", "-lgfortran", "-lm"],
    ]),
    signs: &["ga.h", "-lga", "-larmci", "-lcomex"],
    how_to_install: "build Global Arrays for Open MPI with ./configure --with-mpi-pr, name its prefix by --mpi-pr DIR",
    ..ARMCI_MPI_LIKE
};

/// MPI's own one-sided operations.
static OPEN_MPI_RMA: Library = Library { name: "Open MPI RMA", sources: &[MPI_RMA_C], link: HERE, ..ARMCI_MPI_LIKE };
static MPICH_RMA: Library = Library {
    name: "MPICH RMA",
    sources: &[MPI_RMA_C],
    mpi: Mpi::Mpich,
    link: HERE,
    how_to_install: "apt-get install libmpich-dev mpich",
    ..ARMCI_MPI_LIKE
};

/// What Open MPI and MPICH stand on themselves, where there is a network for it.
static UCX: Library = Library {
    name: "UCX",
    sources: &[UCX_C],
    mpi: Mpi::No,
    link: Link::Installed(&[&["-lucp", "-lucs"]]),
    signs: &["ucp.h", "-lucp", "-lucs"],
    how_to_install: "apt-get install libucx-dev",
    ..ARMCI_MPI_LIKE
};

/// Nothing but what the compiler links by itself.
const HERE: Link = Link::Installed(&[&[]]);

/// A peer's program of two ranks, each on its core.
pub const PAIR: Program = Program {
    library: &ARMCI_MPI,
    prefix: "",
    argument: "pair",
    ranks: 2,
    start: Start::Mpirun { bound: true },
    ours: false,
};

/// What is measured for the table beside our own ranks.
pub static PROGRAMS: [Program; 5] = [
    PAIR,
    Program { argument: "barrier", ..PAIR },
    Program { argument: "barrier", ranks: 8, start: Start::Mpirun { bound: false }, ..PAIR },
    Program { library: &GLOBAL_ARRAYS, ..PAIR },
    Program { library: &GLOBAL_ARRAYS, argument: "spread", ranks: 4, start: Start::Mpirun { bound: false }, ..PAIR },
];

/// What is measured for the sweep.
pub static SWEEP: Program = Program { argument: "sweep", ..PAIR };

/// What `armci-bench peers` and the report run beyond the table's programs: each with a prefix of its own.
pub static BEYOND: [Program; 5] = [
    Program { library: &OPEN_MPI_RMA, prefix: "openmpi_rma_", argument: "rma", ..PAIR },
    Program { library: &MPICH_RMA, prefix: "mpich_rma_", argument: "rma", start: Start::Mpiexec, ..PAIR },
    Program { library: &UCX, prefix: "ucx_", argument: "near", start: Start::Alone, ..PAIR },
    Program { library: &UCX, prefix: "ucx_far_", argument: "far", start: Start::Alone, ..PAIR },
    // Its provider for processes of one node.
    Program { library: &between_rows::LIBFABRIC, prefix: "fi_shm_", argument: "shm:", start: Start::Alone, ..PAIR },
];

/// Programs that are run together, under a name for `--only`.
#[derive(Debug)]
pub struct Set {
    /// The name.
    pub name: &'static str,
    /// The programs, in the order in which they are run: what is compared, next to each other.
    pub programs: &'static [Program],
}

/// One of our library's.
const CLIENT: Program = Program { ours: true, prefix: "c_", argument: "interface", ..PAIR };
/// One of Global Arrays on it.
const ARRAYS_CLIENT: Program = Program { library: &GLOBAL_ARRAYS_ON_OURS, prefix: "ga_", argument: "pair", ..CLIENT };

/// C programs on our library, each beside the same on a peer's.
pub static SETS: [Set; 3] = [
    Set { name: "between", programs: &between_rows::PEERS },
    Set {
        name: "c",
        programs: &[
            Program { library: &OURS_ALONE, start: Start::ArmciRun, ..CLIENT },
            Program { argument: "interface", prefix: "c_", ..PAIR },
            Program { library: &OURS, prefix: "c_mpirun_", ..CLIENT },
        ],
    },
    Set {
        name: "c-arrays",
        programs: &[
            Program { library: &GLOBAL_ARRAYS_ON_NOTHING, prefix: "nothing_", argument: "own", ..ARRAYS_CLIENT },
            ARRAYS_CLIENT,
            Program { library: &GLOBAL_ARRAYS, prefix: "ga_", ..PAIR },
            Program { prefix: "ga_asleep_", argument: "asleep", ..ARRAYS_CLIENT },
            // A third process serves, and there may be but two cores: the owner sleeps, and nobody is bound.
            Program {
                library: &GLOBAL_ARRAYS_ON_MPI_PR,
                prefix: "ga_mpi_pr_",
                argument: "asleep",
                ranks: 3,
                start: Start::Mpirun { bound: false },
                ..PAIR
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Limit;

    /// A row of a C program is measured by one of the programs, and so is what it is held against: by its prefix.
    #[test]
    fn every_row_of_a_c_program_has_one() {
        let known = |name: &str, ours: bool| {
            let programs = SETS.iter().flat_map(|set| set.programs).filter(|program| program.ours == ours);
            programs.into_iter().any(|program| name.starts_with(program.prefix))
        };
        let rows = crate::client_rows::ALL.iter().flat_map(|group| group.rows);
        for row in rows {
            assert!(known(row.name, true), "{}", row.name);
            assert!(row.peer.is_none_or(|name| known(name, false)), "{}", row.name);
            match row.limit {
                Some(Limit::Peer(name)) => assert!(known(name, false), "{name}"),
                Some(Limit::Ours(name)) => assert!(known(name, true) || name == "put_located_1", "{name}"),
                _ => {}
            }
        }
    }
}
