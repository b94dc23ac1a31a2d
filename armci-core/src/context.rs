//! Contexts: how each thread of a rank communicates by itself.
//!
//! ```text
//!   rank           Shared: node, service context, private heap, settings
//!                    |             |                  |
//!   thread         World         World              World      one each, never handed on
//!                    |             |                  |
//!                  origin        origin             origin     request slots, order, counters of its own
//!                 + Primary
//! ```
//!
//! The thread that joined has the *primary* context, which alone takes part in
//! what is collective. Others attach through [`Threads`](crate::Threads), communicate with no
//! lock between them (paper 004: addressability by rank, separability by
//! context), and detach. Nothing orders operations of different threads but
//! what the program does between them: a fence completes those of the calling
//! thread.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use progress_thread::ProgressThread;

use crate::am::board::Board;
use crate::am::origin::Origin;
use crate::am::service::Service;
use crate::config::{Config, Path, Protocol, Resolve};
use crate::error::{Error, Result};
use crate::gathering::Gathering;
use crate::job::Bootstrap;
use crate::memory::books::Books;
use crate::memory::heap::PAGE;
use crate::memory::place_cache::PlaceCache;
use crate::memory::private::Private;
use crate::memory::region::REGISTERED;
use crate::memory::region_cache::RegionCache;
use crate::msg::Mailbox;
use crate::node::Node;
use crate::node::message::{ContextBlock, MAX_CONTEXTS};
use crate::stats::Counters;
use crate::transport::{Capabilities, Transport, Wire};
use crate::watch::check::state::Check;
use crate::watch::timeline::Output;
use crate::watch::{Own, Watch, Watching};

/// What all threads of a rank share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) node: Arc<Node>,
    pub(crate) transport: Wire,
    pub(crate) service: Arc<Service>,
    pub(crate) private: Private,
    /// What looks for conflicts, if anything does.
    pub(crate) check: Option<Check>,
    /// How long a wait spins before it sleeps, and whether cores are scarce.
    pub(crate) spin: Duration,
    pub(crate) crowded: bool,
    /// Threads attached now.
    pub(crate) attached: AtomicUsize,
    /// What its threads and whoever serves it tell of themselves, if they are asked to.
    pub(crate) watching: Arc<Watching>,
    numbers: Mutex<Numbers>,
}

/// The numbers of contexts.
#[derive(Debug)]
struct Numbers {
    /// Those that were in use and are free again; each has its block.
    free: Vec<usize>,
    /// The lowest that was never in use.
    next: usize,
}

impl Shared {
    /// What the threads of a rank share, before any thread has a context.
    pub(crate) fn new(
        config: Config,
        node: Arc<Node>,
        transport: Wire,
        service: Arc<Service>,
        spin: Duration,
        crowded: bool,
        watching: Arc<Watching>,
    ) -> Arc<Self> {
        let private = Private::new(node.clone());
        // The first context's block is part of the control block.
        let numbers = Mutex::new(Numbers { free: vec![0], next: 1 });
        let attached = AtomicUsize::new(0);
        let check = Check::asked(&config, &service, &node);
        Arc::new(Shared {
            config,
            node,
            transport,
            service,
            private,
            check,
            spin,
            crowded,
            attached,
            watching,
            numbers,
        })
    }

    /// A context number that nobody has, with its block in place.
    fn take_number(&self) -> Result<usize> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.free.pop() {
            return Ok(number);
        }
        let number = numbers.next;
        if number == MAX_CONTEXTS {
            return Err(Error::Argument(format!(
                "{MAX_CONTEXTS} threads of rank {} communicate, which is all that can: let some detach first",
                self.node.who().rank
            )));
        }
        let block = self.private.allocate(size_of::<ContextBlock>() as u64 + PAGE, false)?;
        self.node.set_context(number, self.private.offset(&block).next_multiple_of(PAGE));
        numbers.next += 1;
        Ok(number)
    }

    /// Takes a number back.
    fn give_number_back(&self, number: usize) {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).free.push(number);
    }
}

/// A thread's context. Whoever has it is its only thread.
pub(crate) struct Context {
    pub(crate) protocol: Cell<Protocol>,
    state: Cell<u8>,
    direct: DirectBelow,
    /// What is told of every call, if anything is.
    pub(crate) watch: Option<Box<Watch>>,
    /// Where the program made the call that the thread is in, if that consists of others.
    pub(crate) site: Cell<Option<&'static Location<'static>>>,
    /// What is known of regions elsewhere, if they are resolved through it.
    pub(crate) cache: Option<RefCell<RegionCache>>,
    /// What is known of addresses of ranks elsewhere.
    pub(crate) places: RefCell<PlaceCache>,
    pub(crate) node: Arc<Node>,
    pub(crate) transport: Wire,
    pub(crate) origin: Origin,
    pub(crate) count: Counters,
    pub(crate) primary: Option<Primary>,
    pub(crate) shared: Arc<Shared>,
    number: usize,
}

/// What belongs to the thread that joined: the rank's part in all that is collective.
pub(crate) struct Primary {
    pub(crate) books: RefCell<Books>,
    /// All ranks of the job.
    pub(crate) everyone: Rc<Gathering>,
    pub(crate) board: Board,
    pub(crate) progress: RefCell<Option<ProgressThread>>,
    pub(crate) bootstrap: RefCell<Box<dyn Bootstrap>>,
    pub(crate) mailbox: Mailbox,
    /// The file of the timeline, if this rank writes it.
    pub(crate) output: RefCell<Option<Output>>,
}

impl Context {
    /// A context for the calling thread.
    pub(crate) fn new(shared: &Arc<Shared>, primary: Option<Primary>) -> Result<Rc<Self>> {
        let number = shared.take_number()?;
        let Shared { node, transport, service, .. } = &**shared;
        let tracking = shared.config.conflicts;
        let (spin, crowded) = (shared.spin, shared.crowded);
        let origin = Origin::new(number, node.clone(), transport.clone(), service.clone(), spin, crowded, tracking);
        // Who joins will meet the other nodes; other threads open theirs when they first reach one.
        if primary.is_some() {
            origin.open_line()?;
        }
        let resolves = shared.config.resolve == Resolve::Cache;
        let cache =
            (resolves || transport.has_beyond()).then(|| RefCell::new(RegionCache::new(shared.config.region_cache)));
        let direct = DirectBelow::default();
        direct.set(shared.config.protocol, transport.capabilities());
        let watch = Watch::asked(&shared.watching, number);
        let unserved = transport.has_beyond() && !service.has_thread();
        let state = if resolves { CACHED } else { PLAIN }
            | if unserved { UNSERVED } else { PLAIN }
            | if watch.is_some() || shared.check.is_some() { WATCHED } else { PLAIN };
        Ok(Rc::new(Context {
            protocol: Cell::new(shared.config.protocol),
            state: Cell::new(state),
            watch,
            site: Cell::new(None),
            direct,
            cache,
            places: RefCell::new(PlaceCache::new(shared.config.region_cache)),
            node: node.clone(),
            transport: transport.clone(),
            origin,
            count: Counters::default(),
            primary,
            shared: shared.clone(),
            number,
        }))
    }
}

/// The state of a context in which an operation has nothing to look out for.
const PLAIN: u8 = 0;
/// Bits of the other states: the thread has left; places are resolved through the cache; calls are watched; see there.
const LEFT: u8 = 1;
const CACHED: u8 = 2;
const WATCHED: u8 = 4;
/// Nobody else serves what comes from other nodes, which may be all that a loop of operations on this node waits for.
const UNSERVED: u8 = 8;

impl Context {
    /// Whether an operation goes its shortest way: the thread has not left, and nothing unusual was asked for.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.state.get() == PLAIN
    }

    /// Whether the thread has not left.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state.get() & LEFT == 0
    }

    /// Whether an operation on this node should look for what comes from others.
    #[inline]
    pub(crate) fn is_unserved(&self) -> bool {
        self.state.get() & (UNSERVED | LEFT) == UNSERVED
    }

    /// Notes that the thread has left.
    pub(crate) fn leave(&self) {
        self.state.set(self.state.get() | LEFT);
    }

    /// Changes the path of operations.
    pub(crate) fn set_protocol(&self, protocol: Protocol) {
        self.protocol.set(protocol);
        self.direct.set(protocol, self.transport.capabilities());
    }

    /// Below which region index an operation goes by remote memory access.
    #[inline(always)]
    pub(crate) fn direct(&self) -> &DirectBelow {
        &self.direct
    }
}

/// For each kind of operation, the region index below which it goes by remote memory access: that of regions outside
/// the window, which nobody but their owner reaches so; or 0, if messages were asked for or the transport cannot.
#[derive(Debug, Default)]
pub(crate) struct DirectBelow {
    pub(crate) put: Cell<u32>,
    pub(crate) get: Cell<u32>,
    pub(crate) accumulate: Cell<u32>,
    pub(crate) rmw: Cell<u32>,
    /// Flags: put, with the atomics that wake who waits.
    pub(crate) signal: Cell<u32>,
}

impl DirectBelow {
    fn set(&self, protocol: Protocol, can: Capabilities) {
        let below = |asked: Path, capable: bool| if asked == Path::Rma && capable { REGISTERED.start } else { 0 };
        self.put.set(below(protocol.put, can.rma));
        self.get.set(below(protocol.get, can.rma));
        self.accumulate.set(below(protocol.accumulate, can.accumulate));
        self.rmw.set(below(protocol.rmw, can.rmw));
        self.signal.set(below(protocol.put, can.rma && can.rmw));
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.primary.is_some() {
            return;
        }
        if self.is_open() {
            // A slot may be given to the next thread only once nobody replies to it any more.
            self.transport.fence();
            self.origin.quiesce();
            if let Err(error) = self.origin.fence(None) {
                tracing::error!("a thread that has ended without `detach` left an error behind: {error}");
            }
        }
        self.shared.watching.leave(self.watch.as_deref(), Own::of(&self.origin, self.cache.as_ref()));
        self.shared.give_number_back(self.number);
        // Last: who finalizes finds all of the above.
        self.shared.attached.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Takes the place of the count of attached threads when the rank leaves.
pub(crate) const CLOSED: usize = usize::MAX / 2;

impl Shared {
    /// Lets no thread attach any more, unless some are attached, whose number is the error.
    pub(crate) fn close(&self) -> std::result::Result<(), usize> {
        self.attached.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }
}

/// What is said to who communicates after its rank has left.
pub(crate) fn has_left(rank: usize) -> Error {
    Error::Job(format!("rank {rank} has left the job with finalize: nothing can be asked of others any more"))
}
