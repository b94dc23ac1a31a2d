//! A rank of a launcher that is not ours: all that is to be known is made of its key-value store.
//!
//! ```text
//!   join      each rank puts a card (its machine, its network, its processors), a fence, each gets all cards:
//!             who shares a node, where there is room to sit
//!   gather    put, fence, get from everyone; each round under a key of its own, since stores forget nothing
//!   ring      where there are several nodes, the first rank of each puts its addresses, a fence, and connects to the next
//!   watch     a thread asleep on the next rank's lifeline, on whoever started this process, and on those connections
//!   leave     say goodbye on the own lifeline; let the store go
//! ```
//!
//! Guaranteed: after [`Hosted::join`] a neighbour's death, or the loss of a neighbouring host, ends this rank, and the job,
//! whether the launcher sees it or not. The store is not touched between the end of joining and the end of the job, so that
//! an MPI of the same process finds it as it would without us. Not guaranteed: joining while another thread is inside
//! `MPI_Init`.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::{Pod, Zeroable};
use rustix::thread::CpuSet;

use super::abort::Aborter;
use super::guard::{Guard, Neighbour};
use super::network::proof::Secret;
use super::place::Place;
use super::ring::{self, Opening};
use super::{Bootstrap, Identity};
use crate::error::{Error, Result};
use crate::topology::{self, Seat};

/// What a launcher of the PMI family offers.
///
/// Keys are numbers that are used once. What was put before a fence can be had after it. Fences are collective.
pub(super) trait KeyValues: Send {
    /// This rank's number: the one that `MPI_COMM_WORLD` gives it.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn size(&self) -> usize;
    /// Keeps bytes for all.
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()>;
    /// Waits until all ranks have called it.
    fn fence(&mut self) -> Result<()>;
    /// What a rank has put.
    fn get(&mut self, rank: usize, key: u64) -> Result<Vec<u8>>;
    /// How to end the job.
    fn aborter(&self) -> Aborter;
    /// Lets the store go; afterwards, leaving with exit code 0 is no failure.
    fn finish(&mut self) -> Result<()>;
}

/// A rank started by such a launcher.
pub(super) struct Hosted<K> {
    store: K,
    round: u64,
    identity: Identity,
    seat: Seat,
    guard: Guard,
}

/// What a rank tells of itself first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct Card {
    place: Place,
    /// Processors the rank may use, and how many of them its cgroup grants at a time.
    processors: [u64; 16],
    at_once: u64,
    /// Virtual nodes that it would have the ranks split into.
    nodes: u64,
    /// The first rank's is the job's, by which nodes know each other.
    secret: [u64; 2],
}

/// A process stands for one rank, and stores forget nothing: a second joining would read the first one's words.
static JOINED: AtomicBool = AtomicBool::new(false);

impl<K: KeyValues> Hosted<K> {
    /// Finds out who shares which node; where all do, plays as many as rank 0 asks for. Collective.
    ///
    /// # Errors
    /// If the launcher is gone, or this process has joined before.
    pub(super) fn join(store: K, nodes: NonZeroU32) -> Result<Self> {
        if JOINED.swap(true, Ordering::Relaxed) {
            return Err(Error::Job(format!(
                "rank {} has joined its job before; a rank is one process, and initializes once",
                store.rank()
            )));
        }
        Self::join_again(store, nodes)
    }

    /// [`Hosted::join`] for tests, which play several ranks.
    fn join_again(mut store: K, nodes: NonZeroU32) -> Result<Self> {
        let mine = Card { nodes: u64::from(nodes.get()), ..Card::mine()? };
        let (rank, size) = (store.rank(), store.size());
        let mut round = 0;
        let cards = gather(&mut store, &mut round, bytemuck::bytes_of(&mine))?
            .iter()
            .enumerate()
            .map(|(rank, bytes)| {
                bytemuck::try_pod_read_unaligned(bytes).map_err(|_| {
                    Error::Job(format!(
                        "rank {rank} speaks another version of this library: start all ranks from one build"
                    ))
                })
            })
            .collect::<Result<Vec<Card>>>()?;
        let identity = identity(rank, size, &cards);
        let seat = seat(&identity, &cards);
        let neighbours = join_ring(&mut store, &mut round, &identity, &cards)?;
        let guard = Guard::new(rank, store.aborter(), neighbours);
        Ok(Self { store, round, identity, seat, guard })
    }
}

impl<K: KeyValues> Bootstrap for Hosted<K> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn all_gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        gather(&mut self.store, &mut self.round, mine)
    }

    fn meet(&mut self) -> Result<()> {
        self.store.fence()
    }

    fn lifeline(&mut self) -> Result<Option<OwnedFd>> {
        self.guard.lifeline().map(Some)
    }

    fn watch(&mut self, neighbour: usize, lifeline: Option<OwnedFd>) -> Result<()> {
        self.guard.watch(neighbour, lifeline)
    }

    fn goodbye(&mut self) -> Result<()> {
        self.guard.stop();
        self.store.finish()
    }

    fn seat(&self) -> Seat {
        self.seat
    }

    fn aborter(&self) -> Aborter {
        self.store.aborter()
    }
}

/// Everybody's bytes.
fn gather(store: &mut impl KeyValues, round: &mut u64, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
    let key = *round;
    *round += 1;
    store.put(key, mine)?;
    store.fence()?;
    let me = store.rank();
    (0..store.size()).map(|rank| if rank == me { Ok(mine.to_vec()) } else { store.get(rank, key) }).collect()
}

/// Connects the first ranks of nodes in a ring; the others have no part in it.
fn join_ring(store: &mut impl KeyValues, round: &mut u64, who: &Identity, cards: &[Card]) -> Result<Vec<Neighbour>> {
    if who.nodes == 1 {
        return Ok(Vec::new());
    }
    let key = *round;
    *round += 1;
    let first = &cards[0];
    let at_home = cards.iter().all(|card| card.place == first.place);
    let opening = (who.local_rank == 0).then(|| Opening::new(Secret(first.secret), who.node, who.nodes, at_home));
    if let Some(opening) = &opening {
        store.put(key, &opening.tell(who.rank))?;
    }
    store.fence()?;
    let Some(opening) = opening else { return Ok(Vec::new()) };
    let firsts = first_ranks(cards);
    let [before, behind] = opening.neighbours().map(|node| store.get(firsts[node], key));
    opening.connect(who.rank, [before?, behind?], ring::LIMIT)
}

impl Card {
    fn mine() -> Result<Self> {
        let mask = rustix::thread::sched_getaffinity(None).map_err(|e| Error::system("sched_getaffinity", e))?;
        let mut processors = [0u64; 16];
        for cpu in (0..CpuSet::MAX_CPU.min(1024)).filter(|cpu| mask.is_set(*cpu)) {
            processors[cpu / 64] |= 1 << (cpu % 64);
        }
        let at_once = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        Ok(Self { place: Place::mine()?, processors, at_once, nodes: 1, secret: Secret::invent()?.0 })
    }

    fn count(&self) -> usize {
        self.processors.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn overlaps(&self, other: &Card) -> bool {
        self.processors.iter().zip(&other.processors).any(|(mine, theirs)| mine & theirs != 0)
    }
}

/// Where a rank stands, by everybody's cards. Nodes are numbered as they come up first. A single one plays as many as the
/// first rank asks for, or as there are ranks.
fn identity(rank: usize, size: usize, cards: &[Card]) -> Identity {
    let nodes = places(cards);
    if let Some(virtual_nodes) = virtual_nodes(&nodes, cards) {
        return Identity::on_one_machine(rank, size, virtual_nodes);
    }
    let mine = cards[rank].place;
    let here = |cards: &[Card]| cards.iter().filter(|card| card.place == mine).count();
    let node = nodes.iter().position(|node| *node == mine).unwrap_or_default();
    let nodes_here = nodes.iter().filter(|node| node.machine == mine.machine).count();
    Identity {
        rank,
        size,
        local_rank: here(&cards[..rank]),
        local_size: here(cards),
        nodes: nodes.len(),
        node,
        nodes_here,
    }
}

/// All places, as they come up first.
fn places(cards: &[Card]) -> Vec<Place> {
    let mut places = Vec::new();
    for card in cards {
        if !places.contains(&card.place) {
            places.push(card.place);
        }
    }
    places
}

/// How many nodes a single place plays, if more than one.
fn virtual_nodes(places: &[Place], cards: &[Card]) -> Option<usize> {
    (places.len() == 1 && cards[0].nodes > 1).then(|| cards.len().min(cards[0].nodes as usize))
}

/// The first rank of each node.
fn first_ranks(cards: &[Card]) -> Vec<usize> {
    let places = places(cards);
    if let Some(nodes) = virtual_nodes(&places, cards) {
        let first = |rank: &usize| Identity::on_one_machine(*rank, cards.len(), nodes).local_rank == 0;
        return (0..cards.len()).filter(first).collect();
    }
    places.iter().filter_map(|place| cards.iter().position(|card| card.place == *place)).collect()
}

/// Where a rank and its progress thread sit: a launcher may have bound ranks, to one processor each or to shared ones.
///
/// Where nobody is bound this is what the topology says. Otherwise the progress thread stays where its rank is, and
/// counts on a processor of its own if there are two for each rank that may go there.
fn seat(who: &Identity, cards: &[Card]) -> Seat {
    let mine = &cards[who.rank];
    let here: Vec<_> = cards.iter().filter(|card| card.place.machine == mine.place.machine).collect();
    if here.iter().all(|card| card.processors == mine.processors) && mine.count() > 1 {
        // The nodes of one machine, virtual ones for instance, share its processors.
        let before = cards[..who.rank].iter().filter(|card| card.place.machine == mine.place.machine).count();
        return topology::quick_seat(before, here.len());
    }
    let any = |cards: &[&Card]| {
        let union = (0..16).map(|word| cards.iter().fold(0, |union, card| union | card.processors[word]));
        union.map(u64::count_ones).sum::<u32>() as usize
    };
    let rivals: HashSet<usize> =
        here.iter().enumerate().filter(|(_, card)| card.overlaps(mine)).map(|(index, _)| index).collect();
    let granted = if (mine.at_once as usize) < mine.count() { mine.at_once as usize } else { usize::MAX };
    Seat {
        progress_cpu: None,
        shares: mine.count().min(granted) < 2 * rivals.len(),
        crowded: here.len() > any(&here).min(granted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::{Arc, Barrier, Mutex};

    type Values = HashMap<(usize, u64), Vec<u8>>;

    /// A store in this process.
    struct Shared {
        rank: usize,
        size: usize,
        values: Arc<Mutex<Values>>,
        barrier: Arc<Barrier>,
    }

    impl KeyValues for Shared {
        fn rank(&self) -> usize {
            self.rank
        }
        fn size(&self) -> usize {
            self.size
        }
        fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
            assert!(self.values.lock().unwrap().insert((self.rank, key), value.to_vec()).is_none());
            Ok(())
        }
        fn fence(&mut self) -> Result<()> {
            self.barrier.wait();
            Ok(())
        }
        fn get(&mut self, rank: usize, key: u64) -> Result<Vec<u8>> {
            Ok(self.values.lock().unwrap()[&(rank, key)].clone())
        }
        fn aborter(&self) -> Aborter {
            Aborter::default()
        }
        fn finish(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn ranks_of_one_machine_share_a_node_and_gather() {
        let (values, barrier) = (Arc::new(Mutex::new(HashMap::new())), Arc::new(Barrier::new(3)));
        std::thread::scope(|scope| {
            for rank in 0..3 {
                let store = Shared { rank, size: 3, values: values.clone(), barrier: barrier.clone() };
                scope.spawn(move || {
                    let mut job = Hosted::join_again(store, NonZeroU32::MIN).unwrap();
                    let who = job.identity().clone();
                    assert_eq!((who.rank, who.local_rank, who.local_size, who.nodes), (rank, rank, 3, 1));
                    for round in 0..3u8 {
                        job.meet().unwrap();
                        let all = job.all_gather(&vec![round; rank]).unwrap();
                        assert_eq!(all, [vec![], vec![round], vec![round; 2]]);
                    }
                    job.goodbye().unwrap();
                });
            }
        });
    }

    #[test]
    fn first_ranks_of_nodes_know_each_other() {
        let (values, barrier) = (Arc::new(Mutex::new(HashMap::new())), Arc::new(Barrier::new(5)));
        std::thread::scope(|scope| {
            for rank in 0..5 {
                let store = Shared { rank, size: 5, values: values.clone(), barrier: barrier.clone() };
                scope.spawn(move || {
                    let mut job = Hosted::join_again(store, NonZeroU32::new(3).unwrap()).unwrap();
                    let who = job.identity().clone();
                    let watched = if who.local_rank == 0 { 2 } else { 0 };
                    assert_eq!((who.nodes, job.guard.watched_beyond()), (3, watched), "rank {rank}");
                    job.watch(rank, None).unwrap();
                    job.meet().unwrap();
                    job.goodbye().unwrap();
                });
            }
        });
    }

    fn card(machine: u64, network: u64, processors: u64) -> Card {
        let mut card = Card {
            place: Place { machine: [machine; 2], network },
            processors: [0; 16],
            secret: [0; 2],
            at_once: processors.count_ones().into(),
            nodes: 1,
        };
        card.processors[0] = processors;
        card
    }

    #[test]
    fn nodes_are_machines_and_networks() {
        let cards = [card(1, 5, 3), card(1, 5, 3), card(1, 6, 3), card(2, 5, 3), card(1, 5, 3)];
        let all: Vec<_> = (0..5).map(|rank| identity(rank, 5, &cards)).collect();
        let places: Vec<_> = all.iter().map(|who| (who.node, who.local_rank, who.local_size, who.nodes_here)).collect();
        assert_eq!(places, [(0, 0, 3, 2), (0, 1, 3, 2), (1, 0, 1, 2), (2, 0, 1, 1), (0, 2, 3, 2)]);
        assert!(all.iter().all(|who| who.nodes == 3));
        assert_eq!(first_ranks(&cards), [0, 2, 3]);
    }

    #[test]
    fn a_node_plays_as_many_as_its_first_rank_asks_for() {
        let places = |asked: [u64; 3], networks: [u64; 3]| {
            let cards: Vec<_> = (0..3).map(|rank| Card { nodes: asked[rank], ..card(1, networks[rank], 3) }).collect();
            let all = (0..3).map(|rank| identity(rank, 3, &cards));
            all.map(|who| (who.node, who.local_rank, who.local_size, who.nodes)).collect::<Vec<_>>()
        };
        assert_eq!(first_ranks(&[Card { nodes: 2, ..card(1, 1, 3) }, card(1, 1, 3), card(1, 1, 3)]), [0, 1]);
        assert_eq!(places([2, 1, 7], [1; 3]), [(0, 0, 1, 2), (1, 0, 2, 2), (1, 1, 2, 2)]);
        assert_eq!(places([9, 1, 1], [1; 3]), [(0, 0, 1, 3), (1, 0, 1, 3), (2, 0, 1, 3)]);
        assert_eq!(places([1, 9, 9], [1; 3]), [(0, 0, 3, 1), (0, 1, 3, 1), (0, 2, 3, 1)]);
        // Where there are several, there are no others.
        assert_eq!(places([3; 3], [1, 1, 2]), [(0, 0, 2, 2), (0, 1, 2, 2), (1, 0, 1, 2)]);
    }

    #[test]
    fn bound_ranks_are_crowded_by_all_processors_not_by_their_own() {
        let seats = |masks: &[u64]| {
            let cards: Vec<_> = masks.iter().map(|mask| card(1, 1, *mask)).collect();
            let seat = |rank| seat(&identity(rank, masks.len(), &cards), &cards);
            (0..masks.len()).map(seat).map(|seat| (seat.shares, seat.crowded)).collect::<Vec<_>>()
        };
        assert_eq!(seats(&[1, 2]), [(true, false); 2]);
        assert_eq!(seats(&[1, 1, 2]), [(true, true); 3]);
        assert_eq!(seats(&[0b11, 0b1100]), [(false, false); 2]);
        assert_eq!(seats(&[0b11, 0b11, 0b1100]), [(true, false), (true, false), (false, false)]);
    }
}
