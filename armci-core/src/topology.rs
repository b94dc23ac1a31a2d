//! The cores of this node, and where a rank and its progress thread should sit on them.
//!
//! Guaranteed: every processor named here may be used by this process (its affinity mask, which
//! lies within its cgroup's cpuset, has been asked), and the answer depends on nothing but the cores
//! and the arguments, so that all ranks of a node agree. Not guaranteed: that other programs keep
//! away from them, or that a wrapper between launcher and rank leaves the rank all of them; the rank
//! checks (`job/rank.rs`).
//!
//! Asking hwloc takes 2 to 4 ms on a small virtual machine, whatever it is asked for (its
//! libraries' initialization outweighs the reading of two cores), and would take that from every
//! rank at once. So the launcher asks once, tells its ranks where to sit, and asks at all only if
//! ranks are to be bound or there are more processors than ranks ([`quick_seats`]).

use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::{BuildFlags, TypeFilter};

use crate::error::{Error, Result};

/// Whether ranks are tied to cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// A rank runs where the scheduler puts it.
    #[default]
    None,
    /// A rank stays on one core (all its SMT siblings); ranks beyond the last core start over at
    /// the first.
    Core,
}

/// How much room a rank and its progress thread have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The processor of the progress thread; none: it is not pinned.
    pub progress_cpu: Option<usize>,
    /// Whether the progress thread is likely to take time from some rank's core; then it should
    /// sleep rather than spin.
    pub shares: bool,
    /// Whether the node has more ranks than processors that the job may use; then a rank that spins
    /// takes time from another. Counted over the whole job's processors (and the time its cgroup
    /// grants), not over the one core a bound rank sees.
    pub crowded: bool,
}

/// A core: the processors (SMT siblings) of it that we may use; at least one.
pub type Core = Vec<usize>;

/// The cores of this node that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cores: Vec<Core>,
    /// How many threads can run at once: one on each processor, or fewer where a cgroup grants less
    /// time than that.
    at_once: usize,
}

impl Topology {
    /// Asks hwloc, within the calling thread's affinity mask.
    ///
    /// # Errors
    /// If hwloc cannot read the machine, or the mask cannot be read.
    pub fn load() -> Result<Self> {
        let hwloc =
            |error: &dyn std::fmt::Display| Error::Job(format!("hwloc cannot read this node's topology: {error}"));
        let mask = rustix::thread::sched_getaffinity(None).map_err(|e| Error::system("sched_getaffinity", e))?;
        let topology = hwlocality::Topology::builder()
            .with_flags(BuildFlags::empty())
            .map_err(|e| hwloc(&e))?
            .with_common_type_filter(TypeFilter::KeepNone)
            .map_err(|e| hwloc(&e))?
            .with_type_filter(ObjectType::Core, TypeFilter::KeepAll)
            .map_err(|e| hwloc(&e))?
            .build()
            .map_err(|e| hwloc(&e))?;
        let usable = |object: &hwlocality::object::TopologyObject| -> Core {
            let set = object.cpuset();
            set.iter()
                .flat_map(|set| set.iter_set())
                .map(usize::from)
                .filter(|&cpu| cpu < rustix::thread::CpuSet::MAX_CPU && mask.is_set(cpu))
                .collect()
        };
        let mut cores: Vec<Core> = topology.objects_with_type(ObjectType::Core).map(usable).collect();
        if cores.is_empty() {
            // Some virtual machines tell of processors only.
            cores = topology.objects_with_type(ObjectType::PU).map(usable).collect();
        }
        Ok(Self { at_once: usable_at_once(), ..Self::of(cores)? })
    }

    /// A node of these cores, in the order in which neighbours are near.
    ///
    /// # Errors
    /// If no core has a processor.
    pub fn of(mut cores: Vec<Core>) -> Result<Self> {
        cores.retain(|core| !core.is_empty());
        if cores.is_empty() {
            return Err(Error::Job(
                "no core of this node may be used by this process; look at its affinity mask (taskset -p)".into(),
            ));
        }
        Ok(Self { at_once: cores.iter().map(Vec::len).sum(), cores })
    }

    /// The usable cores.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// Whether `local_size` ranks are more than the cores.
    #[must_use]
    pub fn oversubscribed(&self, local_size: usize) -> bool {
        local_size > self.cores.len()
    }

    /// The core of a rank that is bound: ranks are spread evenly, so that free cores lie beside
    /// them.
    #[must_use]
    pub fn core_of(&self, local_rank: usize, local_size: usize) -> &Core {
        &self.cores[self.core_number(local_rank, local_size)]
    }

    fn core_number(&self, local_rank: usize, local_size: usize) -> usize {
        let stride = (self.cores.len() / local_size.max(1)).max(1);
        (local_rank * stride) % self.cores.len()
    }

    /// Where rank `local_rank` of the `local_size` on this node and its progress thread should sit.
    ///
    /// Bound: the thread goes to an SMT sibling of the rank's core, else to a core without a rank,
    /// else it shares the rank's. Not bound: nowhere in particular, since other jobs would number
    /// the cores in the same way and choose the same; as many threads as there are cores without a
    /// rank may count on the scheduler to find them one.
    #[must_use]
    pub fn seat(&self, local_rank: usize, local_size: usize, bind: Bind) -> Seat {
        let crowded = local_size > self.at_once;
        match bind {
            Bind::None => {
                let spare = self.cores.len().min(self.at_once).saturating_sub(local_size);
                Seat { progress_cpu: None, shares: local_rank >= spare, crowded }
            }
            Bind::Core => {
                let number = self.core_number(local_rank, local_size);
                let core = &self.cores[number];
                let beside = if self.oversubscribed(local_size) {
                    None
                } else {
                    core.get(1).copied().or_else(|| self.spare_core(number, local_rank, local_size))
                };
                Seat { progress_cpu: beside.or(Some(core[0])), shares: beside.is_none(), crowded }
            }
        }
    }

    /// A core on which no rank is bound and no other progress thread sits: the next one, where
    /// ranks are two or more apart; else one of those behind the last rank.
    fn spare_core(&self, number: usize, local_rank: usize, local_size: usize) -> Option<usize> {
        let spread = self.cores.len() >= 2 * local_size;
        let spare = if spread { number + 1 } else { local_size + local_rank };
        self.cores.get(spare).map(|core| core[0])
    }
}

/// The seat of a rank that is not bound, asking hwloc only if there are more processors than ranks.
#[must_use]
pub fn quick_seat(local_rank: usize, local_size: usize) -> Seat {
    seat_in(with_spare_processors(local_size).as_ref(), local_rank, local_size)
}

/// [`quick_seat`] of all ranks of this node.
#[must_use]
pub fn quick_seats(local_size: usize) -> Vec<Seat> {
    let topology = with_spare_processors(local_size);
    (0..local_size).map(|rank| seat_in(topology.as_ref(), rank, local_size)).collect()
}

fn seat_in(topology: Option<&Topology>, local_rank: usize, local_size: usize) -> Seat {
    let unknown = || Seat { progress_cpu: None, shares: true, crowded: local_size > usable_at_once() };
    topology.map_or_else(unknown, |topology| topology.seat(local_rank, local_size, Bind::None))
}

/// The cores, if ranks that are not bound could leave one of them free.
fn with_spare_processors(local_size: usize) -> Option<Topology> {
    if usable_at_once() > local_size { Topology::load().ok() } else { None }
}

/// How many threads of this process can run at once, by its affinity mask and its cgroup's quota.
fn usable_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn node(cores: usize, siblings: usize) -> Topology {
        Topology::of((0..cores).map(|core| (0..siblings).map(|sibling| core + sibling * cores).collect()).collect())
            .unwrap()
    }

    fn seats(topology: &Topology, ranks: usize, bind: Bind) -> Vec<Seat> {
        (0..ranks).map(|rank| topology.seat(rank, ranks, bind)).collect()
    }

    #[test]
    fn this_node_has_cores_we_may_use() {
        let mask = rustix::thread::sched_getaffinity(None).unwrap();
        let topology = Topology::load().unwrap();
        assert!(!topology.cores().is_empty());
        assert!(topology.cores().iter().flatten().all(|&cpu| mask.is_set(cpu)));
        assert_eq!(topology.cores().iter().flatten().count(), mask.count() as usize);
    }

    #[test]
    fn bound_ranks_take_their_smt_sibling() {
        let seat = Seat { progress_cpu: Some(3), shares: false, crowded: false };
        assert_eq!(node(2, 2).core_of(1, 2), &[1, 3]);
        assert_eq!(node(2, 2).seat(1, 2, Bind::Core), seat);
    }

    #[test]
    fn without_siblings_a_free_core_is_taken_once() {
        for (cores, ranks) in [(8, 2), (8, 3), (8, 4), (5, 4), (4, 3)] {
            let node = node(cores, 1);
            let seats = seats(&node, ranks, Bind::Core);
            let ranks_on: HashSet<_> = (0..ranks).map(|rank| node.core_of(rank, ranks)[0]).collect();
            assert_eq!(ranks_on.len(), ranks, "{cores} cores: {seats:?}");
            let alone: Vec<_> = seats.iter().filter(|seat| !seat.shares).filter_map(|seat| seat.progress_cpu).collect();
            assert_eq!(alone.len(), ranks.min(cores - ranks), "{cores} cores: {seats:?}");
            assert_eq!(alone.iter().collect::<HashSet<_>>().len(), alone.len(), "{seats:?}");
            assert!(alone.iter().all(|cpu| !ranks_on.contains(cpu)), "{seats:?}");
        }
    }

    #[test]
    fn a_full_node_shares_the_ranks_core() {
        let node = node(2, 1);
        assert_eq!(node.seat(1, 2, Bind::Core), Seat { progress_cpu: Some(1), shares: true, crowded: false });
        assert_eq!(node.core_of(2, 3), &[0]);
        assert!(node.oversubscribed(3) && !node.oversubscribed(2));
    }

    #[test]
    fn unbound_threads_are_not_pinned_and_count_on_spare_cores_only() {
        let shares = |cores, ranks| -> Vec<bool> {
            let seats = seats(&node(cores, 2), ranks, Bind::None);
            assert!(seats.iter().all(|seat| seat.progress_cpu.is_none()), "{seats:?}");
            seats.iter().map(|seat| seat.shares).collect()
        };
        assert_eq!(shares(2, 2), [true, true]);
        assert_eq!(shares(4, 3), [false, true, true]);
        assert_eq!(shares(4, 1), [false]);
    }

    #[test]
    fn a_node_is_crowded_when_ranks_outnumber_processors() {
        for bind in [Bind::None, Bind::Core] {
            for (siblings, ranks, crowded) in [(1, 2, false), (1, 3, true), (2, 4, false), (2, 5, true)] {
                let seats = seats(&node(2, siblings), ranks, bind);
                assert!(seats.iter().all(|seat| seat.crowded == crowded), "{bind:?}, {ranks} ranks: {seats:?}");
            }
        }
        let here = usable_at_once();
        assert!(!quick_seat(0, here).crowded && quick_seat(0, here + 1).crowded);
        assert!(quick_seats(here + 1).iter().all(|seat| seat.crowded));
    }
}
