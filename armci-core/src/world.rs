//! The world: a rank's membership of its job, and all it can do there.
//!
//! One value holds everything (there is no global state): the node's memory,
//! the service and origin contexts, the progress thread, the heap's books. It
//! is a handle; clones share it. What a rank does with it lies in the rooms
//! of those operations (`rma`, `rmw`, `collectives`, `am`); here are joining,
//! leaving, and memory.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use progress_thread::{Options, ProgressThread};

use crate::am::handlers::{Delivery, HandlerId, Reply};
use crate::am::origin::Origin;
use crate::am::service::Service;
use crate::collectives::Reduce;
use crate::config::{Config, Progress, Protocol};
use crate::consistency::{Access, Outstanding};
use crate::error::{Error, Result};
use crate::job::{self, Bootstrap};
use crate::memory::heap::{Block, Heap};
use crate::memory::region::{MAX_REGIONS, Names, Part};
use crate::memory::{GlobalPtr, Region, RegionId};
use crate::node::exchange::ExchangeBuffers;
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::node::{HEAP_START, Node};
use crate::stats::{Counters, Statistics};
use crate::sync::bell::Bell;
use crate::transport::{Outgoing, Wire};

/// Free memory that a rank keeps resident, in bytes, before it gives pages back.
const KEEP_RESIDENT: u64 = 256 << 20;
/// How long a wait spins before it sleeps, with a core per rank and without.
const SPIN: Duration = Duration::from_micros(50);
const SPIN_CROWDED: Duration = Duration::ZERO;

/// A rank's membership of its job.
///
/// Made by [`World::init`], ended by [`World::finalize`]; both are collective,
/// and a rank that leaves without the latter ends the job with an error.
/// Belongs to the thread that made it.
#[derive(Clone)]
pub struct World {
    inner: Rc<Inner>,
}

struct Inner {
    config: Config,
    protocol: Cell<Protocol>,
    node: Arc<Node>,
    transport: Wire,
    service: Arc<Service>,
    origin: Origin,
    count: Counters,
    memory: RefCell<Books>,
    /// Rounds of exchange so far.
    rounds: Cell<u64>,
    open: Cell<bool>,
    progress: RefCell<Option<ProgressThread>>,
    bootstrap: RefCell<Box<dyn Bootstrap>>,
}

/// What is allocated: equal on every rank.
#[derive(Debug)]
struct Books {
    heap: Heap,
    names: Names,
    /// Which region begins where in every slot.
    by_offset: BTreeMap<u64, RegionId>,
    /// A digest of all allocations and frees so far, to be compared between ranks.
    history: u64,
}

impl Books {
    /// Takes note of an allocation or a free.
    fn note(&mut self, what: u64, id: RegionId) {
        let mut hasher = DefaultHasher::new();
        (self.history, what, id).hash(&mut hasher);
        self.history = hasher.finish();
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World(rank {} of {})", self.rank(), self.size())
    }
}

impl World {
    /// Joins the job this process was started in, or makes it a job of one rank, with the settings that the
    /// environment gives. Collective.
    ///
    /// # Errors
    /// As [`World::init_with`]; or if a setting is not understood.
    pub fn init() -> Result<Self> {
        Self::init_with(Config::from_env()?)
    }

    /// As [`World::init`], with these settings. `progress` and `protocol` may differ between ranks.
    ///
    /// # Errors
    /// If the launcher is gone, or the node's memory cannot be shared. A process that joins the job of its launcher
    /// twice ends the job.
    pub fn init_with(config: Config) -> Result<Self> {
        let mut bootstrap = job::bootstrap()?;
        let seat = bootstrap.seat();
        let node = Arc::new(Node::join(&mut *bootstrap, config.slot, config.memory)?);
        let transport = Wire::new(node.clone());
        let threaded = config.progress == Progress::Thread;
        let service = Arc::new(Service::new(node.clone(), transport.clone(), threaded, seat.shares));
        node.mine().attention.set_threaded(threaded);
        let crowded = seat.crowded;
        let progress = if threaded {
            let options = Options {
                name: format!("armci-{}", node.who().rank),
                cpu: seat.progress_cpu,
                spin: if crowded { Duration::ZERO } else { SPIN },
                nice: None,
            };
            let started = ProgressThread::start(service.clone(), options);
            Some(started.map_err(|source| Error::System { call: "starting the progress thread", source })?)
        } else {
            None
        };
        let spin = config.spin.unwrap_or(if crowded { SPIN_CROWDED } else { SPIN });
        let origin = Origin::new(node.clone(), transport.clone(), service.clone(), spin, crowded);
        let heap = Heap::new(node.heap_len());
        let world = World {
            inner: Rc::new(Inner {
                protocol: Cell::new(config.protocol),
                config,
                node,
                transport,
                service,
                origin,
                count: Counters::default(),
                memory: RefCell::new(Books { heap, names: Names::default(), by_offset: BTreeMap::new(), history: 0 }),
                rounds: Cell::new(0),
                open: Cell::new(true),
                progress: RefCell::new(progress),
                bootstrap: RefCell::new(bootstrap),
            }),
        };
        // Only now is every rank ready to be sent to.
        world.meet();
        Ok(world)
    }

    /// This rank's number, `0..size`.
    #[inline]
    pub fn rank(&self) -> usize {
        self.inner.node.who().rank
    }

    /// How many ranks the job has.
    #[inline]
    pub fn size(&self) -> usize {
        self.inner.node.who().size
    }

    /// How many nodes the job spans.
    pub fn nodes(&self) -> usize {
        self.inner.node.who().nodes
    }

    /// The settings this rank joined with.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The path each kind of operation takes now.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.inner.protocol.get()
    }

    /// Changes the path of this rank's operations from here on; their order is kept across the change.
    pub fn set_protocol(&self, protocol: Protocol) {
        self.inner.protocol.set(protocol);
    }

    /// Leaves the job in order: everything is complete everywhere, then the progress thread stops. Collective.
    ///
    /// Any further use of this value, or of a clone of it, for communication is an error.
    ///
    /// # Errors
    /// As [`World::barrier`]; or if the launcher is gone, or this rank has left already.
    pub fn finalize(&self) -> Result<()> {
        self.check_open()?;
        let fenced = self.barrier();
        self.inner.open.set(false);
        drop(self.inner.progress.borrow_mut().take());
        self.inner.bootstrap.borrow_mut().goodbye()?;
        fenced
    }

    /// Allocates memory that every rank can reach: `bytes` of it on this rank, perhaps different on others,
    /// perhaps none. Its content is arbitrary. Collective (`ARMCI_Malloc`).
    ///
    /// Every rank reserves as much as the largest part.
    ///
    /// # Errors
    /// On all ranks alike: [`Error::Memory`] if the node has not enough, [`Error::SlotFull`],
    /// [`Error::RegionTableFull`], [`Error::Diverged`]. Nothing was allocated then.
    pub fn allocate(&self, bytes: usize) -> Result<Region> {
        self.check_open()?;
        let mut books = self.inner.memory.borrow_mut();
        let wishes = self.all_gather(&[bytes as u64, books.history])?;
        let wishes = wishes.as_chunks::<2>().0;
        if let Some(rank) = wishes.iter().position(|wish| wish[1] != wishes[0][1]) {
            return Err(Error::Diverged { rank });
        }
        // From here on every rank computes the same, until memory is asked of the system.
        let largest = wishes.iter().map(|wish| wish[0]).max().unwrap_or(0);
        let id = books.names.take().ok_or(Error::RegionTableFull { limit: MAX_REGIONS })?;
        let block = match self.take_block(&mut books.heap, largest.max(1)) {
            Ok(block) => block,
            Err(error) => {
                books.names.give_back(id);
                return Err(error);
            }
        };
        let part = Part { offset: HEAP_START + block.offset, len: bytes as u64 };
        books.by_offset.insert(part.offset, id);
        books.note(largest, id);
        self.inner.node.mine().regions.publish(id, part);
        self.meet();
        Ok(Region { id, block, window: self.inner.node.window().base() })
    }

    /// Takes a block of the heap and makes it resident; on all ranks, or on none.
    fn take_block(&self, heap: &mut Heap, bytes: u64) -> Result<Block> {
        let slot = self.inner.node.window().slot_len();
        let full = |heap: &Heap| Error::SlotFull { rank: self.rank(), asked: bytes, slot, free: heap.free_bytes() };
        let block = heap.allocate(bytes).ok_or_else(|| full(heap))?;
        match self.make_resident(heap, &block) {
            Ok(()) => return Ok(block),
            Err(error) => {
                heap.free(block);
                if !matches!(error, Error::Memory { .. }) {
                    return Err(error);
                }
            }
        }
        // Free blocks that are kept resident may be what is missing. Every rank gives up its own, then all try again.
        self.trim(heap, 0);
        self.meet();
        let block = heap.allocate(bytes).ok_or_else(|| full(heap))?;
        self.make_resident(heap, &block).map(|()| block.clone()).inspect_err(|_| heap.free(block))
    }

    /// Has the ledger grant, and the system provide, what of a block is not resident yet; on all ranks, or on none.
    fn make_resident(&self, heap: &mut Heap, block: &Block) -> Result<()> {
        let node = &self.inner.node;
        let absent = heap.absent(block);
        if absent.is_empty() {
            return Ok(());
        }
        let wanted = absent.iter().map(|range| range.end - range.start).sum::<u64>();
        let refusal = match node.ledger().grant(wanted) {
            Err(refused) => [self.rank() as u64 + 1, wanted, refused.granted, refused.limit],
            Ok(()) => [0; 4],
        };
        // One rank's refusal is everybody's: the highest such rank speaks.
        let all: Vec<u64> = self.all_gather(&refusal)?;
        let speaker = all.as_chunks::<4>().0.iter().rfind(|refusal| refusal[0] != 0);
        if let Some(&[rank, asked, granted, limit]) = speaker {
            if refusal[0] == 0 {
                node.ledger().release(wanted);
            }
            return Err(Error::Memory { rank: rank as usize - 1, asked, granted, limit });
        }
        let me = node.who().local_rank;
        let in_slot = |range: &Range<u64>| HEAP_START + range.start..HEAP_START + range.end;
        let populated = absent.iter().try_for_each(|range| node.window().populate(me, in_slot(range)));
        let mut failed = [u64::from(populated.is_err())];
        self.all_reduce(&mut failed, Reduce::Sum)?;
        if failed == [0] {
            heap.mark_resident(block);
            return Ok(());
        }
        for range in &absent {
            self.give_back(range);
        }
        populated?;
        Err(Error::Job(format!("{} other ranks could not populate {wanted} bytes granted to them", failed[0])))
    }

    /// Gives free resident pages back, if more than `mark` bytes of them are kept.
    fn trim(&self, heap: &mut Heap, mark: u64) {
        for range in heap.trim(mark) {
            self.give_back(&range);
        }
    }

    /// Gives pages of the heap back to the system and the ledger.
    fn give_back(&self, range: &Range<u64>) {
        let node = &self.inner.node;
        let bytes = range.end - range.start;
        match node.window().give_back(node.who().local_rank, HEAP_START + range.start..HEAP_START + range.end) {
            Ok(()) => node.ledger().release(bytes),
            // They stay granted, as they are still there.
            Err(error) => tracing::warn!("{bytes} free bytes stay resident: {error}"),
        }
    }

    /// Frees a region. Collective (`ARMCI_Free`); completes everybody's operations first.
    ///
    /// # Errors
    /// As [`World::barrier`]; the region is freed all the same. [`Error::NoRegion`] if it is not one of this world;
    /// nothing is freed then.
    pub fn free(&self, region: Region) -> Result<()> {
        self.check_open()?;
        let fenced = self.barrier();
        self.own(&region)?;
        let Region { id, block, .. } = region;
        self.inner.node.mine().regions.withdraw(id);
        let mut books = self.inner.memory.borrow_mut();
        books.note(u64::MAX, id);
        books.names.give_back(id);
        books.by_offset.remove(&(HEAP_START + block.offset));
        books.heap.free(block);
        self.trim(&mut books.heap, KEEP_RESIDENT);
        fenced
    }

    /// This rank's part of a region, if the region is this world's and alive.
    fn own(&self, region: &Region) -> Result<Part> {
        let node = &self.inner.node;
        let part = node.mine().regions.part(region.id).filter(|_| region.window == node.window().base());
        part.ok_or(Error::NoRegion { region: region.id, rank: self.rank() })
    }

    /// Where this rank's own part of a region lies, and how many bytes it has.
    ///
    /// Other ranks may write there at any time: it is memory for raw pointers and atomics, not for references,
    /// unless the program keeps everybody else away by synchronising.
    ///
    /// # Errors
    /// [`Error::NoRegion`] if the region was freed.
    pub fn local_part(&self, region: &Region) -> Result<(*mut u8, usize)> {
        let node = &self.inner.node;
        let part = self.own(region)?;
        Ok((node.window().address(node.who().local_rank, part.offset), part.len as usize))
    }

    /// The address, the same on every rank of the node, at which the part of a region on `rank` begins.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::NoRegion`].
    pub fn address(&self, region: &Region, rank: usize) -> Result<*mut u8> {
        let node = &self.inner.node;
        let slot = node.slot_of(rank).ok_or(Error::Rank { rank, size: self.size() })?;
        // A region begins at the same offset in every slot.
        Ok(node.window().address(slot, self.own(region)?.offset))
    }

    /// The pointer to what lies at `address` in the memory of `rank`: the way of programs that know places as
    /// (rank, address), as ARMCI's C interface has them.
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Address`] if the address lies in no region of that rank.
    pub fn locate(&self, rank: usize, address: *const u8) -> Result<GlobalPtr<u8>> {
        let node = &self.inner.node;
        let slot = node.slot_of(rank).ok_or(Error::Rank { rank, size: self.size() })?;
        let nowhere = Error::Address { rank, address: address as usize };
        let Some((_, offset)) = node.window().resolve(address as usize).filter(|(found, _)| *found == slot) else {
            return Err(nowhere);
        };
        let books = self.inner.memory.borrow();
        let Some((start, id)) = books.by_offset.range(..=offset).next_back() else { return Err(nowhere) };
        let len = node.control(slot).regions.part(*id).map_or(0, |part| part.len);
        if offset - start > len {
            return Err(nowhere);
        }
        Ok(GlobalPtr::new(*id, slot as u32, offset - start))
    }

    /// Registers a handler for active messages. Every rank registers the same handlers in the same order, and
    /// passes a barrier before the first message.
    ///
    /// The handler runs on the target's progress thread, or on a thread of the target that waits in a call. It must
    /// not communicate. What it returns as an error reaches the sender as [`Error::Refused`].
    ///
    /// # Errors
    /// If the table is full.
    pub fn register<F>(&self, handler: F) -> Result<HandlerId>
    where
        F: Fn(Delivery<'_>, &mut Reply) -> std::result::Result<(), String> + Send + Sync + 'static,
    {
        let registered = self.inner.service.handlers().register(Box::new(handler));
        registered.ok_or_else(|| Error::Argument("256 handlers are registered, which is all that fit".into()))
    }

    /// Sends a message, has it served, and returns the reply.
    ///
    /// # Errors
    /// If there is no such rank, the payload exceeds [`STAGING_BYTES`](crate::STAGING_BYTES), or the target
    /// refused.
    pub fn request(&self, target: usize, handler: HandlerId, payload: &[u8]) -> Result<Vec<u8>> {
        let slot = self.send_user(target, handler, payload, false)?;
        self.inner.origin.collect(slot, <[u8]>::to_vec)
    }

    /// Sends a message and goes on; [`World::fence`] waits until it has been served. The reply is dropped.
    ///
    /// # Errors
    /// As [`World::request`], except that a refusal is the next fence's error.
    pub fn send(&self, target: usize, handler: HandlerId, payload: &[u8]) -> Result<()> {
        self.send_user(target, handler, payload, true).map(drop)
    }

    fn send_user(&self, target: usize, handler: HandlerId, payload: &[u8], detached: bool) -> Result<usize> {
        self.check_open()?;
        if target >= self.size() {
            return Err(Error::Rank { rank: target, size: self.size() });
        }
        if payload.len() > STAGING_BYTES {
            return Err(Error::MessageTooLong { bytes: payload.len(), limit: STAGING_BYTES });
        }
        let origin = &self.inner.origin;
        let slot = origin.claim();
        let short = payload.len() <= INLINE_MAX;
        if !short {
            origin.stage(slot, payload);
        }
        let inline: &[u8] = if short { payload } else { &[] };
        let staged_len = if short { 0 } else { payload.len() };
        let message = Outgoing { handler: handler.0, slot, inline: [inline, &[]], staged_len };
        origin.post(&message, Outstanding { target, region: None, access: Access::Other }, detached);
        Ok(slot)
    }

    /// What this rank has done and served so far.
    pub fn statistics(&self) -> Statistics {
        let inner = &*self.inner;
        let (served_by_thread, served_by_main) = inner.service.served();
        Statistics {
            served_by_thread,
            served_by_main,
            conflicts: inner.origin.conflicts(),
            node_memory: inner.node.ledger().granted(),
            ..inner.count.volumes()
        }
    }

    /// Refuses whatever needs other ranks once this one has left.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.inner.open.get() {
            return Ok(());
        }
        Err(Error::Job(format!(
            "rank {} has left the job with finalize: nothing can be asked of others any more",
            self.rank()
        )))
    }

    /// Meets all ranks; nothing else.
    pub(crate) fn meet(&self) {
        let node = &self.inner.node;
        let ranks = node.ranks();
        if ranks == 1 {
            return;
        }
        // Ranks without a progress thread sleep where messages wake them too.
        let others = || (0..ranks).map(|slot| node.control(slot)).filter(|control| !control.attention.threaded());
        let ring_others = || others().for_each(|control| control.main_bell.ring());
        let wait = |bell: &Bell, ready: &mut dyn FnMut() -> bool| self.inner.origin.wait_with_all(bell, ready);
        node.barrier().arrive(ranks as u32, ring_others, wait);
    }

    /// The number of the next round of exchange.
    pub(crate) fn next_round(&self) -> u64 {
        self.inner.rounds.replace(self.inner.rounds.get() + 1)
    }

    /// The exchange buffers of a rank.
    pub(crate) fn exchange_of(&self, rank: usize) -> &ExchangeBuffers {
        &self.inner.node.control(rank).exchange
    }

    #[inline]
    pub(crate) fn node(&self) -> &Node {
        &self.inner.node
    }

    #[inline]
    pub(crate) fn transport(&self) -> &Wire {
        &self.inner.transport
    }

    #[inline]
    pub(crate) fn origin(&self) -> &Origin {
        &self.inner.origin
    }

    #[inline]
    pub(crate) fn count(&self) -> &Counters {
        &self.inner.count
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_region_of_another_world_is_refused() {
        let (here, there) = (World::init().unwrap(), World::init().unwrap());
        let region = here.allocate(64).unwrap();
        let same_name = there.allocate(64).unwrap();
        assert_eq!(region.id(), same_name.id());
        assert!(matches!(there.local_part(&region), Err(Error::NoRegion { .. })));
        assert!(matches!(there.free(region), Err(Error::NoRegion { .. })));
        there.free(same_name).unwrap();
        let next = there.allocate(64).unwrap();
        there.put_value(1u8, next.at(0, 63)).unwrap();
        there.free(next).unwrap();
        there.finalize().unwrap();
        here.finalize().unwrap();
    }
}
