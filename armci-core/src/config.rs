//! Every setting, in one table.
//!
//! A setting is an environment variable, read once when a rank joins its job,
//! checked there, and kept in [`Config`]. [`SETTINGS`] is the only list of
//! them: the README's table is printed from it, and a test holds both together.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};

/// One row of the table of settings.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// What it may hold.
    pub values: &'static str,
    /// What holds when it is not set.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// Every setting that a user may make.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "ARMCI_BOOTSTRAP",
        values: "`auto`, `armci-run`, `pmi`, `pmix`, `alone`",
        default: "`auto`",
        meaning: "who tells a rank which one it is: `armci-run`, a launcher that speaks PMI-1 over `PMI_FD` (MPICH's `mpiexec`, `srun --mpi=pmi2`), one that speaks PMIx (Open MPI's `mpirun`, `srun --mpi=pmix`), nobody (a job of one), or the first of these that is there",
    },
    Setting {
        name: "ARMCI_NODES",
        values: "nodes, at least 1",
        default: "1",
        meaning: "virtual nodes that the ranks are split into, if another launcher than `armci-run` started all of them on one node; they share no memory (for tests; `armci-run` has `--nodes`)",
    },
    Setting {
        name: "ARMCI_VERBOSE",
        values: "`0`, `1`",
        default: "`0`",
        meaning: "whether each rank says on standard error, when it joins, which of these it was and why",
    },
    Setting {
        name: "ARMCI_PROGRESS",
        values: "`thread`, `none`",
        default: "`thread`",
        meaning: "who serves active messages while a rank computes: its progress thread, or nobody until the rank calls in (for study; unsafe for programs that block elsewhere)",
    },
    Setting {
        name: "ARMCI_PROGRESS_CPU",
        values: "a processor, or a list such as `3,7`: one for each rank of a node",
        default: "one beside its rank's, where ranks are bound and one is free; else its rank's",
        meaning: "where progress threads stay; what is named here is theirs alone, and they spin there for a moment before they sleep",
    },
    Setting {
        name: "ARMCI_PROTOCOL",
        values: "`rma`, `am`, or a list such as `rmw=am,accumulate=am`",
        default: "`rma`",
        meaning: "the path of `put`, `get`, `accumulate` and `rmw`: directly into the target's memory, or by active message",
    },
    Setting {
        name: "ARMCI_SLOT",
        values: "bytes, with `K`, `M`, `G` or `T`",
        default: "the node's memory, rounded up to a power of two",
        meaning: "address space reserved for each rank's memory (a power of two, at least 16M; set it small under valgrind)",
    },
    Setting {
        name: "ARMCI_MEMORY",
        values: "bytes, with `K`, `M`, `G` or `T`",
        default: "available memory and cgroup limits, less a margin",
        meaning: "how much memory the ranks of a node may allocate together",
    },
    Setting {
        name: "ARMCI_STATS",
        values: "`0`, `1`",
        default: "`0`",
        meaning: "whether rank 0 (with several nodes, the first rank of each) writes to standard error, when the job ends, what it did: per operation and per region calls, bytes, paths and times, and what was served",
    },
    Setting {
        name: "ARMCI_TRACE",
        values: "a file's name",
        default: "none",
        meaning: "where to write a timeline of all ranks' calls, for Perfetto (https://ui.perfetto.dev); with several nodes, a file for each",
    },
    Setting {
        name: "ARMCI_TRACE_EVENTS",
        values: "events, at least 1",
        default: "200000",
        meaning: "events that each rank keeps for the timeline (48 bytes each), the first ones; how many lack then is told",
    },
    Setting {
        name: "ARMCI_CHECK",
        values: "`0`, `1`",
        default: "`0`",
        meaning: "whether to look for accesses of different ranks that conflict without a synchronisation between them: each pair of places in the program is written to standard error as it is found, a summary when the job ends, which is as it would have been otherwise (slow; for debugging; on all ranks alike)",
    },
    Setting {
        name: "ARMCI_RESOLVE",
        values: "`table`, `cache`",
        default: "`table`",
        meaning: "how a rank finds where a region lies on another rank of its node: in that rank's table, or through its cache of remote regions, as between nodes (for study)",
    },
    Setting {
        name: "ARMCI_REGION_CACHE",
        values: "entries, at least 1",
        default: "1024",
        meaning: "remote regions that each communicating thread's cache holds",
    },
    Setting {
        name: "ARMCI_FABRIC",
        values: "`PROVIDER` or `PROVIDER:INTERFACE`, as `fi_info` lists them",
        default: "the fastest that libfabric offers and that reaches all hosts",
        meaning: "what ranks on different nodes communicate through (`ARMCI_VERBOSE=1` says what was chosen, and why)",
    },
    Setting {
        name: "ARMCI_FABRIC_POLL",
        values: "microseconds, at least 1",
        default: "100",
        meaning: "how long threads sleep between looks at a fabric that cannot wake them",
    },
    Setting {
        name: "ARMCI_SPIN",
        values: "microseconds",
        default: "50, or 0 with more ranks than cores",
        meaning: "how long a waiting rank spins before it sleeps in the kernel",
    },
    Setting {
        name: "ARMCI_CONFLICTS",
        values: "`region`, `target`",
        default: "`region`",
        meaning: "what an operation waits for when its path differs from that of earlier ones under way to its target: those to its own region, or all (the naive scheme of paper 003, for study)",
    },
];

/// Who tells a process which rank it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartedBy {
    /// Whichever of the others is there, in their order.
    Auto,
    /// Our own launcher.
    ArmciRun,
    /// A launcher that speaks PMI-1 over an inherited descriptor.
    Pmi,
    /// A launcher that speaks PMIx.
    Pmix,
    /// Nobody: a job of one.
    Alone,
}

/// Who serves active messages while a rank computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// A progress thread of the rank (paper 003, "AT").
    Thread,
    /// Nobody: only the rank itself, whenever it waits inside a call (paper 003, "D").
    None,
}

/// How an operation reaches its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// By remote memory access, wherever the transport can.
    Rma,
    /// By active message, always.
    Am,
}

/// How a rank finds where a region lies on another rank of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resolve {
    /// In that rank's table.
    Table,
    /// Through its own cache of remote regions, which asks that rank by message.
    Cache,
}

/// The path asked for, per kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// For `put` and its strided forms.
    pub put: Path,
    /// For `get` and its strided forms.
    pub get: Path,
    /// For `accumulate` and its strided forms.
    pub accumulate: Path,
    /// For read-modify-write: fetch-and-add, swap, compare-and-swap.
    pub rmw: Path,
}

impl Protocol {
    /// The same path for every operation.
    pub const fn all(path: Path) -> Self {
        Protocol { put: path, get: path, accumulate: path, rmw: path }
    }
}

/// How far a rank's operations are kept apart when order is to be kept between their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conflicts {
    /// Per region and target: an operation waits for earlier ones to its own region.
    Region,
    /// Per target: it waits for all earlier ones there (paper 003, the naive scheme).
    Target,
    /// Not at all, which **breaks the order** that is promised. The environment's word for it, `off`, stands in no table: it
    /// is there for tests that show that they would notice.
    Off,
}

/// The settings of a rank, as read and checked when it joined.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Who tells this process which rank it is.
    pub bootstrap: StartedBy,
    /// Whether to say on standard error who that was, and why.
    pub verbose: bool,
    /// Who serves active messages while this rank computes.
    pub progress: Progress,
    /// Where the progress threads of a node's ranks stay, in turn; none: where they were given a place.
    pub progress_cpu: Vec<usize>,
    /// The path of each kind of operation.
    pub protocol: Protocol,
    /// Address space per rank in bytes, if asked for.
    pub slot: Option<u64>,
    /// Memory the ranks of a node may allocate together in bytes, if asked for.
    pub memory: Option<u64>,
    /// Whether calls are counted and timed, and a report is written in the end.
    pub stats: bool,
    /// Where to write a timeline, if anywhere.
    pub trace: Option<PathBuf>,
    /// Events that a rank keeps for it.
    pub trace_events: u32,
    /// Whether to look for conflicting accesses.
    pub check: bool,
    /// How regions on other ranks of the node are found.
    pub resolve: Resolve,
    /// Entries of the cache of remote regions.
    pub region_cache: NonZeroU32,
    /// Virtual nodes that ranks of another launcher are split into, if they share a node.
    pub nodes: NonZeroU32,
    /// What ranks on different nodes communicate through, if asked for: a provider of libfabric, and perhaps one of its
    /// interfaces.
    pub fabric: Option<(String, Option<String>)>,
    /// Faults of the fabric, for tests, as `ARMCI_FABRIC_FAULTS` lists them; that one stands in no table.
    #[doc(hidden)]
    pub fabric_faults: Option<String>,
    /// How long threads sleep between looks at a fabric that cannot wake them.
    pub fabric_poll: Duration,
    /// How long a wait spins before it sleeps, if asked for.
    pub spin: Option<Duration>,
    /// How far operations are kept apart.
    pub conflicts: Conflicts,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            bootstrap: StartedBy::Auto,
            verbose: false,
            progress: Progress::Thread,
            progress_cpu: Vec::new(),
            protocol: Protocol::all(Path::Rma),
            slot: None,
            memory: None,
            fabric: None,
            nodes: NonZeroU32::MIN,
            fabric_faults: None,
            fabric_poll: Duration::from_micros(100),
            spin: None,
            conflicts: Conflicts::Region,
            resolve: Resolve::Table,
            stats: false,
            trace: None,
            trace_events: 200_000,
            check: false,
            region_cache: NonZeroU32::new(1024).unwrap_or(NonZeroU32::MIN),
        }
    }
}

impl Config {
    /// Reads the settings from the environment; an empty variable is none.
    ///
    /// # Errors
    /// [`Error::Setting`] names the first variable that is not understood.
    pub fn from_env() -> Result<Self> {
        let mut config = Config::default();
        for Setting { name, .. } in SETTINGS {
            match std::env::var_os(name) {
                Some(value) if !value.is_empty() => config.set(name, &value.to_string_lossy())?,
                _ => {}
            }
        }
        config.fabric_faults = std::env::var("ARMCI_FABRIC_FAULTS").ok().filter(|list| !list.is_empty());
        Ok(config)
    }

    /// Makes one setting, by its name in [`SETTINGS`] and a value as the environment would hold it.
    ///
    /// # Errors
    /// [`Error::Setting`] if the value is not understood, [`Error::Argument`] if there is no such setting.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            return Err(Error::Argument(format!("there is no setting {name}")));
        };
        let parsed = match setting.name {
            "ARMCI_BOOTSTRAP" => parse_started_by(value).map(|launcher| self.bootstrap = launcher),
            "ARMCI_VERBOSE" => parse_switch(value).map(|verbose| self.verbose = verbose),
            "ARMCI_PROGRESS" => parse_progress(value).map(|progress| self.progress = progress),
            "ARMCI_PROGRESS_CPU" => parse_processors(value).map(|processors| self.progress_cpu = processors),
            "ARMCI_PROTOCOL" => parse_protocol(value).map(|protocol| self.protocol = protocol),
            "ARMCI_SLOT" => parse_bytes(value)
                .filter(|bytes| bytes.is_power_of_two() && *bytes >= 16 << 20)
                .map(|bytes| self.slot = Some(bytes)),
            "ARMCI_MEMORY" => parse_bytes(value).map(|bytes| self.memory = Some(bytes)),
            "ARMCI_STATS" => parse_switch(value).map(|stats| self.stats = stats),
            "ARMCI_TRACE" => Some(value.into()).map(|file| self.trace = Some(file)),
            "ARMCI_TRACE_EVENTS" => {
                value.parse().ok().filter(|events| *events > 0).map(|events| self.trace_events = events)
            }
            "ARMCI_CHECK" => parse_switch(value).map(|check| self.check = check),
            "ARMCI_RESOLVE" => parse_resolve(value).map(|resolve| self.resolve = resolve),
            "ARMCI_NODES" => value.parse().ok().map(|nodes| self.nodes = nodes),
            "ARMCI_REGION_CACHE" => value.parse().ok().map(|entries| self.region_cache = entries),
            "ARMCI_SPIN" => value.parse().ok().map(|us| self.spin = Some(Duration::from_micros(us))),
            "ARMCI_FABRIC" => parse_fabric(value).map(|wanted| self.fabric = Some(wanted)),
            "ARMCI_FABRIC_POLL" => parse_period(value).map(|period| self.fabric_poll = period),
            "ARMCI_CONFLICTS" => parse_conflicts(value).map(|conflicts| self.conflicts = conflicts),
            _ => unreachable!("every setting of the table has an arm here"),
        };
        parsed.ok_or_else(|| Error::Setting { name: setting.name, value: value.into(), expected: setting.values })
    }

    /// The table of settings as Markdown, for the README.
    pub fn table() -> String {
        let mut table = String::from("| setting | values | default | meaning |\n|---|---|---|---|\n");
        for Setting { name, values, default, meaning } in SETTINGS {
            table.push_str(&format!("| `{name}` | {values} | {default} | {meaning} |\n"));
        }
        table
    }
}

fn parse_switch(value: &str) -> Option<bool> {
    match value {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn parse_started_by(value: &str) -> Option<StartedBy> {
    match value {
        "auto" => Some(StartedBy::Auto),
        "armci-run" => Some(StartedBy::ArmciRun),
        "pmi" => Some(StartedBy::Pmi),
        "pmix" => Some(StartedBy::Pmix),
        "alone" => Some(StartedBy::Alone),
        _ => None,
    }
}

fn parse_progress(value: &str) -> Option<Progress> {
    match value {
        "thread" => Some(Progress::Thread),
        "none" => Some(Progress::None),
        _ => None,
    }
}

/// The names that libfabric gives: of a provider, and, after a colon, of an interface.
fn parse_fabric(value: &str) -> Option<(String, Option<String>)> {
    let named =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || ";_-.@/[]%".contains(c));
    let (provider, interface) = match value.split_once(':') {
        Some((provider, interface)) => (provider, Some(interface)),
        None => (value, None),
    };
    (named(provider) && interface.is_none_or(named)).then(|| (provider.into(), interface.map(Into::into)))
}

fn parse_processors(list: &str) -> Option<Vec<usize>> {
    list.split(',').map(|processor| processor.parse().ok()).collect()
}

fn parse_period(value: &str) -> Option<Duration> {
    value.parse().ok().filter(|us| *us > 0).map(Duration::from_micros)
}

fn parse_resolve(value: &str) -> Option<Resolve> {
    match value {
        "table" => Some(Resolve::Table),
        "cache" => Some(Resolve::Cache),
        _ => None,
    }
}

fn parse_path(value: &str) -> Option<Path> {
    match value {
        "rma" => Some(Path::Rma),
        "am" => Some(Path::Am),
        _ => None,
    }
}

fn parse_conflicts(value: &str) -> Option<Conflicts> {
    match value {
        "region" => Some(Conflicts::Region),
        "target" => Some(Conflicts::Target),
        "off" => Some(Conflicts::Off),
        _ => None,
    }
}

fn parse_protocol(value: &str) -> Option<Protocol> {
    if let Some(path) = parse_path(value) {
        return Some(Protocol::all(path));
    }
    let mut protocol = Protocol::all(Path::Rma);
    for item in value.split(',') {
        let (operation, path) = item.split_once('=')?;
        let path = parse_path(path.trim())?;
        match operation.trim() {
            "put" => protocol.put = path,
            "get" => protocol.get = path,
            "accumulate" | "acc" => protocol.accumulate = path,
            "rmw" => protocol.rmw = path,
            _ => return None,
        }
    }
    Some(protocol)
}

fn parse_bytes(value: &str) -> Option<u64> {
    let (digits, shift) = match value.chars().last()?.to_ascii_uppercase() {
        'K' => (&value[..value.len() - 1], 10),
        'M' => (&value[..value.len() - 1], 20),
        'G' => (&value[..value.len() - 1], 30),
        'T' => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> Result<Config> {
        let mut config = Config::default();
        config.set(name, value).map(|()| config)
    }

    #[test]
    fn every_setting_has_a_reader() {
        for setting in SETTINGS {
            // A value nobody accepts must be an error, not a panic. (A file may have any name.)
            assert!(setting.name == "ARMCI_TRACE" || with(setting.name, "?").is_err(), "{} accepts '?'", setting.name);
        }
    }

    #[test]
    fn the_readme_has_this_table() {
        let readme = include_str!("../../README.md");
        assert!(readme.contains(&Config::table()), "README.md wants this table:\n\n{}", Config::table());
    }

    #[test]
    fn protocols_are_per_operation() {
        let protocol = with("ARMCI_PROTOCOL", "rmw=am, acc=am").unwrap().protocol;
        assert_eq!(protocol, Protocol { put: Path::Rma, get: Path::Rma, accumulate: Path::Am, rmw: Path::Am });
        assert_eq!(with("ARMCI_PROTOCOL", "am").unwrap().protocol, Protocol::all(Path::Am));
        assert!(with("ARMCI_PROTOCOL", "put").is_err());
        assert!(with("ARMCI_PROTOCOL", "put=tcp").is_err());
    }

    #[test]
    fn sizes_carry_units_and_overflow_is_an_error() {
        assert_eq!(with("ARMCI_SLOT", "64m").unwrap().slot, Some(64 << 20));
        assert!(with("ARMCI_SLOT", "48M").is_err(), "not a power of two");
        assert!(with("ARMCI_SLOT", "99999999999T").is_err());
        assert!(with("ARMCI_MEMORY", "µ").is_err());
    }
}
