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
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use progress_thread::{Options, ProgressThread};

use crate::am::handlers::{Delivery, HandlerId, Reply};
use crate::am::message::{INLINE_MAX, STAGING_BYTES};
use crate::am::origin::Origin;
use crate::am::service::Service;
use crate::collectives::Reduce;
use crate::collectives::exchange::ExchangeBuffers;
use crate::config::{Config, Progress, Protocol};
use crate::consistency::{Access, Outstanding};
use crate::error::{Error, Result};
use crate::job::{self, Bootstrap};
use crate::memory::heap::{Block, Heap};
use crate::memory::region::{MAX_REGIONS, Names, Part};
use crate::memory::{GlobalPtr, Region, RegionId};
use crate::node::{HEAP_START, Node};
use crate::stats::{Counters, Statistics};
use crate::sync::bell::Bell;
use crate::transport::Outgoing;
use crate::transport::shm::Shm;

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
    transport: Shm,
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
    /// If a setting is not understood, the launcher is gone, the node's memory cannot be shared, or this process
    /// has joined before.
    pub fn init() -> Result<Self> {
        let config = Config::from_env()?;
        let mut bootstrap = job::bootstrap()?;
        let seat = bootstrap.seat();
        let node = Arc::new(Node::join(&mut *bootstrap, config.slot, config.memory)?);
        let transport = Shm::new(node.clone());
        let service = Arc::new(Service::new(node.clone(), transport.clone(), seat.shares));
        let threaded = config.progress == Progress::Thread;
        node.mine().attention.set_threaded(threaded);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let crowded = node.ranks() > cores;
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
        let origin = Origin::new(node.clone(), transport.clone(), service.clone(), spin);
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
                memory: RefCell::new(Books { heap, names: Names::default(), by_offset: BTreeMap::new() }),
                rounds: Cell::new(0),
                open: Cell::new(true),
                progress: RefCell::new(progress),
                bootstrap: RefCell::new(bootstrap),
            }),
        };
        // Only now is every rank ready to be sent to.
        world.synchronize();
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
    /// As [`World::barrier`]; or if the launcher is gone.
    pub fn finalize(&self) -> Result<()> {
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
    /// [`Error::RegionTableFull`]. Nothing was allocated then.
    pub fn allocate(&self, bytes: usize) -> Result<Region> {
        self.check_open()?;
        let mut largest = [bytes as u64];
        self.all_reduce(&mut largest, Reduce::Max)?;
        let [largest] = largest;
        // From here on every rank computes the same, until memory is asked of the system.
        let mut books = self.inner.memory.borrow_mut();
        let Books { heap, names, by_offset } = &mut *books;
        let Some(block) = heap.allocate(largest.max(1)) else {
            let slot = self.inner.node.window().slot_len();
            return Err(Error::SlotFull { rank: self.rank(), asked: largest, slot, free: heap.free_bytes() });
        };
        if !heap.absent(&block).is_empty()
            && let Err(error) = self.make_resident(heap, &block)
        {
            heap.free(block);
            return Err(error);
        }
        let Some(id) = names.take() else {
            heap.free(block);
            return Err(Error::RegionTableFull { limit: MAX_REGIONS });
        };
        let part = Part { offset: HEAP_START + block.offset, len: bytes as u64 };
        by_offset.insert(part.offset, id);
        self.inner.node.mine().regions.publish(id, part);
        self.synchronize();
        Ok(Region { id, block })
    }

    /// Has the ledger grant, and the system provide, what of a block is not resident yet; on all ranks, or on none.
    fn make_resident(&self, heap: &mut Heap, block: &Block) -> Result<()> {
        let node = &self.inner.node;
        let absent = heap.absent(block);
        let asked = absent.iter().map(|range| range.end - range.start).sum::<u64>();
        let me = node.who().local_rank;
        let refusal = match node.ledger().grant(asked) {
            Err(refused) => [self.rank() as u64 + 1, asked, refused.granted, refused.limit],
            Ok(()) => [0; 4],
        };
        // One rank's refusal is everybody's: the highest such rank speaks.
        let all: Vec<u64> = self.all_gather(&refusal)?;
        if let Some(&[rank, asked, granted, limit]) = all.as_chunks::<4>().0.iter().rfind(|refusal| refusal[0] != 0) {
            if refusal[0] == 0 {
                node.ledger().release(asked);
            }
            return Err(Error::Memory { rank: rank as usize - 1, asked, granted, limit });
        }
        let mut populated = Ok(());
        for range in absent {
            let range = HEAP_START + range.start..HEAP_START + range.end;
            populated = populated.and_then(|()| node.window().populate(me, range));
        }
        let mut failed = [u64::from(populated.is_err())];
        self.all_reduce(&mut failed, Reduce::Sum)?;
        heap.mark_resident(block);
        match (failed, populated) {
            ([0], _) => Ok(()),
            // The books say resident everywhere; what is not will be made so on first touch.
            (_, Err(error)) => Err(error),
            ([ranks], Ok(())) => {
                Err(Error::Job(format!("{ranks} ranks could not populate {asked} bytes granted to them")))
            }
        }
    }

    /// Frees a region. Collective (`ARMCI_Free`); completes everybody's operations first.
    ///
    /// # Errors
    /// As [`World::barrier`]; the region is freed all the same.
    pub fn free(&self, region: Region) -> Result<()> {
        let fenced = self.barrier();
        self.check_open()?;
        let Region { id, block } = region;
        let node = &self.inner.node;
        node.mine().regions.withdraw(id);
        let mut books = self.inner.memory.borrow_mut();
        books.names.give_back(id);
        books.by_offset.remove(&(HEAP_START + block.offset));
        books.heap.free(block);
        for range in books.heap.trim(KEEP_RESIDENT) {
            let bytes = range.end - range.start;
            let range = HEAP_START + range.start..HEAP_START + range.end;
            if let Err(error) = node.window().give_back(node.who().local_rank, range) {
                tracing::warn!("{bytes} free bytes stay resident: {error}");
            }
            node.ledger().release(bytes);
        }
        fenced
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
        let rank = self.rank();
        let part = node.mine().regions.part(region.id).ok_or(Error::NoRegion { region: region.id, rank })?;
        Ok((node.window().address(node.who().local_rank, part.offset), part.len as usize))
    }

    /// The address, the same on every rank of the node, at which the part of a region on `rank` begins.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::NoRegion`].
    pub fn address(&self, region: &Region, rank: usize) -> Result<*mut u8> {
        let node = &self.inner.node;
        let slot = node.slot_of(rank).ok_or(Error::Rank { rank, size: self.size() })?;
        let part = node.control(slot).regions.part(region.id).ok_or(Error::NoRegion { region: region.id, rank })?;
        Ok(node.window().address(slot, part.offset))
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
        F: Fn(Delivery<'_>, &mut Reply<'_>) -> std::result::Result<(), String> + Send + Sync + 'static,
    {
        let registered = self.inner.service.handlers().register(Box::new(handler));
        registered.ok_or_else(|| Error::Argument("256 handlers are registered, which is all that fit".into()))
    }

    /// Sends a message, has it served, and returns the reply.
    ///
    /// # Errors
    /// If there is no such rank, the payload exceeds [`STAGING_BYTES`](crate::am::STAGING_BYTES), or the target
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
        origin.post(&message, Outstanding { target, region: None, access: Access::User }, detached);
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
    pub(crate) fn synchronize(&self) {
        let node = &self.inner.node;
        let ranks = node.ranks();
        if ranks == 1 {
            return;
        }
        let ring_all = || (0..ranks).for_each(|slot| Bell::ring(&node.control(slot).main_bell));
        node.barrier().arrive(ranks as u32, ring_all, |ready| self.inner.origin.wait(ready));
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
    pub(crate) fn transport(&self) -> &Shm {
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
