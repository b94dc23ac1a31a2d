//! The world: a rank's membership of its job, and all it can do there.
//!
//! One value holds everything (there is no global state): the node's memory,
//! the service and origin contexts, the progress thread, the heap's books. It
//! is a handle; clones share it. Here are joining and leaving. What a rank does
//! in between is written as further methods in rooms of their own: `allocation`,
//! `rma`, `rmw`, `notify`, `collectives`, `messages`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use progress_thread::{Options, ProgressThread};

use crate::am::origin::Origin;
use crate::am::service::Service;
use crate::config::{Config, Progress, Protocol};
use crate::error::{Error, Result};
use crate::job::{self, Bootstrap};
use crate::memory::books::Books;
use crate::node::Node;
use crate::node::exchange::ExchangeBuffers;
use crate::stats::{Counters, Statistics};
use crate::sync::bell::Bell;
use crate::transport::Wire;

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
    books: RefCell<Books>,
    /// Rounds of exchange so far.
    rounds: Cell<u64>,
    open: Cell<bool>,
    progress: RefCell<Option<ProgressThread>>,
    bootstrap: RefCell<Box<dyn Bootstrap>>,
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
        let heap_len = node.heap_len();
        let world = World {
            inner: Rc::new(Inner {
                protocol: Cell::new(config.protocol),
                config,
                node,
                transport,
                service,
                origin,
                count: Counters::default(),
                books: RefCell::new(Books::new(heap_len)),
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

    /// What is allocated.
    pub(crate) fn books(&self) -> &RefCell<Books> {
        &self.inner.books
    }

    /// The context that serves this rank's inbox.
    pub(crate) fn service(&self) -> &Service {
        &self.inner.service
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
