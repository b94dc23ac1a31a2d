//! The world: a rank's membership of its job, and all it can do there.
//!
//! One value holds everything (there is no global state): the node's memory,
//! the service and origin contexts, the progress thread, the heap's books. It
//! is a handle; clones share it. Here are joining and leaving. What a rank does
//! in between is written as further methods in rooms of their own: `allocation`,
//! `rma`, `rmw`, `notify`, `collectives`, `messages`, `msg`.

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use progress_thread::{Options, ProgressThread};

use crate::am::board::Board;
use crate::am::origin::Origin;
use crate::am::service::{HeldService, Service};
use crate::collectives::Collective;
use crate::config::{Config, Progress, Protocol};
use crate::context::{Context, DirectBelow, Primary, Shared, Threads, has_left};
use crate::error::{Error, Result};
use crate::gathering::Gathering;
use crate::job;
use crate::memory::books::Books;
use crate::memory::private::Private;
use crate::memory::region_cache::RegionCache;
use crate::msg::Mailbox;
use crate::node::Node;
use crate::stats::{Counters, Statistics};
use crate::topology::Seat;
use crate::transport::Wire;
use crate::watch::served::ServedWatch;
use crate::watch::timeline::Output;
use crate::watch::{Watch, Watching, ending};

/// How long a wait spins before it sleeps, with a core per rank and without.
const SPIN: Duration = Duration::from_micros(50);
const SPIN_CROWDED: Duration = Duration::ZERO;

/// A rank's membership of its job, as one thread has it.
///
/// Made by [`World::init`], ended by [`World::finalize`]; both are collective,
/// and a rank that leaves without the latter ends the job with an error.
/// Belongs to the thread that made it; other threads of the rank get one of
/// their own from [`World::threads`].
#[derive(Clone)]
pub struct World {
    context: Rc<Context>,
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
    /// If the launcher is gone, the node's memory cannot be shared, or the timeline's file cannot be created. A process that joins the job of its launcher
    /// twice ends the job.
    pub fn init_with(config: Config) -> Result<Self> {
        let mut bootstrap = job::bootstrap()?;
        let seat = bootstrap.seat();
        let output = Output::create(config.trace.as_deref(), bootstrap.identity())?;
        let node = Arc::new(Node::join(&mut *bootstrap, config.slot, config.memory)?);
        let transport = Wire::new(node.clone());
        let threaded = config.progress == Progress::Thread;
        let (desk, mailbox) = Mailbox::new();
        let watching = Watching::asked(&config, node.who().rank);
        let served = ServedWatch::asked(&watching);
        let service = Arc::new(Service::new(node.clone(), transport.clone(), desk, threaded, seat.shares, served));
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
        let primary = Primary {
            books: RefCell::new(Books::new(node.heap_len())),
            everyone: Rc::new(Gathering::of_node(node.clone())),
            board: Board::new(&service),
            progress: RefCell::new(progress),
            bootstrap: RefCell::new(bootstrap),
            mailbox,
            output: RefCell::new(output),
        };
        let shared = Shared::new(config, node, transport, service, spin, crowded, watching);
        let world = World::of(Context::new(&shared, Some(primary))?);
        // Only now is every rank ready to be sent to.
        world.meet_everybody()?;
        world.log_joined(&seat);
        Ok(world)
    }

    /// Tells the log who this is, and where it sits.
    fn log_joined(&self, seat: &Seat) {
        let (who, window) = (self.node().who(), self.node().window());
        let bytes = window.slot_len() * self.node().ranks() as u64;
        tracing::info!(
            rank = who.rank,
            size = who.size,
            node = who.node,
            nodes = who.nodes,
            crowded = seat.crowded,
            window = format_args!("{:#x}, {bytes} bytes", window.base()),
            "joined"
        );
        let Ok(primary) = self.primary() else { return };
        let cpu = primary.progress.borrow().as_ref().map(|thread| thread.cpu());
        match (cpu, seat.progress_cpu) {
            (Some(None), Some(asked)) => {
                tracing::warn!(rank = who.rank, cpu = asked, "the progress thread may not sit where it should");
            }
            (Some(cpu), _) => tracing::debug!(rank = who.rank, cpu, shares = seat.shares, "the progress thread serves"),
            (None, _) => tracing::debug!(rank = who.rank, "no progress thread: messages wait until this rank calls in"),
        }
    }

    /// This rank's number, `0..size`.
    #[inline]
    pub fn rank(&self) -> usize {
        self.context.node.who().rank
    }

    /// How many ranks the job has.
    #[inline]
    pub fn size(&self) -> usize {
        self.context.node.who().size
    }

    /// How many nodes the job spans.
    pub fn nodes(&self) -> usize {
        self.context.node.who().nodes
    }

    /// The settings this rank joined with.
    pub fn config(&self) -> &Config {
        &self.context.shared.config
    }

    /// The path each kind of operation takes now.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.context.protocol.get()
    }

    /// Changes the path of this rank's operations from here on; their order is kept across the change.
    pub fn set_protocol(&self, protocol: Protocol) {
        self.context.set_protocol(protocol);
    }

    /// Leaves the job in order: everything is complete everywhere, then the progress thread stops. Collective.
    ///
    /// Any further use of this value, or of a clone of it, for communication is an error.
    ///
    /// # Errors
    /// As [`World::fence_all`]; or if the launcher is gone, this rank has left already, or other threads of it are
    /// attached: this rank has not left then.
    pub fn finalize(&self) -> Result<()> {
        let primary = self.primary()?;
        self.context.shared.close().map_err(|attached| {
            Error::Job(format!("{attached} threads of rank {} are attached: let them detach first", self.rank()))
        })?;
        // Who has not waited for a get finds its data there all the same, or keeps the refusal.
        self.origin().quiesce();
        // Even a rank with something to report must meet the others.
        let fenced = self.fence_all_now();
        if let Err(error) = &fenced {
            tracing::warn!(rank = self.rank(), "leaving, with an operation that failed: {error}");
        }
        if let Some(check) = &self.shared().check {
            check.finish(Collective { world: self, gathering: &primary.everyone });
        }
        let output = primary.output.take();
        let asked = ending::agree(self, &primary.everyone, output.as_ref());
        let met = self.meet_other_nodes();
        self.context.leave();
        // Nothing is under way: the thread has served its last, and with its end all that it noted is there.
        let progress = primary.progress.borrow_mut().take().map(ProgressThread::stop).unwrap_or_default();
        if asked.anything() {
            ending::tell(self, &primary.everyone, asked, output, progress);
        }
        met?;
        primary.bootstrap.borrow_mut().goodbye()?;
        tracing::info!(rank = self.rank(), "left");
        fenced
    }

    /// What lets other threads of this rank communicate.
    pub fn threads(&self) -> Threads {
        Threads::new(self.context.shared.clone())
    }

    /// Ends an attached thread's communication: completes all it did, and gives its context back. (A thread that
    /// merely drops its world does the same, but hears of no error.)
    ///
    /// # Errors
    /// As [`World::fence_all`]; the thread is detached all the same. [`Error::Argument`] in the thread that joined, which
    /// has [`World::finalize`].
    pub fn detach(self) -> Result<()> {
        if self.context.primary.is_some() {
            return Err(Error::Argument("the thread that joined was to detach: it leaves with finalize".into()));
        }
        self.origin().quiesce();
        let fenced = self.fence_all_now();
        self.context.leave();
        fenced
    }

    /// Lets nobody serve this rank's messages, neither its progress thread nor a wait of any of its threads, until the
    /// guard is dropped.
    ///
    /// **A hook for tests**: it makes messages to this rank outstanding for as long as a test likes. Whoever waits for
    /// one of them meanwhile hangs, this thread's own barriers included if any rank comes to them with such a message.
    /// What came in is served when the guard is dropped.
    pub fn hold_service(&self) -> HeldService<'_> {
        self.service().hold()
    }

    /// What this thread has done, and its rank served, so far.
    pub fn statistics(&self) -> Statistics {
        let (served_by_thread, served_by_main) = self.service().served();
        Statistics {
            served_by_thread,
            served_by_main,
            conflicts: self.origin().conflicts(),
            node_memory: self.node().ledger().granted(),
            region_cache: self.cache().map(|cache| cache.borrow().counts()).unwrap_or_default(),
            ..self.count().volumes()
        }
    }

    /// Refuses whatever needs other ranks once this one has left.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.context.is_open() {
            return Ok(());
        }
        Err(has_left(self.rank()))
    }

    /// Whether an operation goes its shortest way; see [`Context::is_plain`].
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.context.is_plain()
    }

    /// Which operations go by remote memory access.
    #[inline(always)]
    pub(crate) fn direct(&self) -> &DirectBelow {
        self.context.direct()
    }

    /// What watches this thread's calls, if anything does.
    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.context.watch.as_deref()
    }

    /// Runs what a call of the program's consists of, all of which is told as made where the program made that call.
    #[inline]
    #[track_caller]
    pub(crate) fn as_one_call<R>(&self, run: impl FnOnce() -> R) -> R {
        if self.is_plain() {
            return run();
        }
        let before = self.context.site.replace(Some(Location::caller()));
        let done = run();
        self.context.site.set(before);
        done
    }

    /// Where the program made the call that led here.
    #[track_caller]
    pub(crate) fn call_site(&self) -> &'static Location<'static> {
        self.context.site.get().unwrap_or(Location::caller())
    }

    /// What this thread knows of regions elsewhere, if they are resolved so.
    pub(crate) fn cache(&self) -> Option<&RefCell<RegionCache>> {
        self.context.cache.as_ref()
    }

    /// The rank's part in what is collective; refused to threads that only attached, and once this rank has left.
    #[inline]
    pub(crate) fn primary(&self) -> Result<&Primary> {
        self.check_open()?;
        self.context.primary.as_ref().ok_or_else(|| {
            Error::Argument(format!(
                "an attached thread of rank {} made a collective call: those are for the thread that joined",
                self.rank()
            ))
        })
    }

    /// Meets all ranks, wherever they are. Serves nobody once its own node has met, when nobody there can need it.
    fn meet_everybody(&self) -> Result<()> {
        self.primary()?.everyone.meet(self.origin());
        self.meet_other_nodes()
    }

    /// Meets the ranks of other nodes, once those of this one have met.
    fn meet_other_nodes(&self) -> Result<()> {
        let primary = self.primary()?;
        if self.nodes() > 1 {
            primary.bootstrap.borrow_mut().all_gather(&[])?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn of(context: Rc<Context>) -> Self {
        World { context }
    }

    /// What finds this world again as long as somebody has it.
    #[inline]
    pub(crate) fn downgrade(&self) -> Weak<Context> {
        Rc::downgrade(&self.context)
    }

    /// All ranks, for a collective call; refused, on all alike, if they are not all on this node.
    #[inline]
    pub(crate) fn collective(&self) -> Result<Collective<'_>> {
        let gathering = &self.primary()?.everyone;
        self.node().reach_all()?;
        gathering.ready()?;
        Ok(Collective { world: self, gathering })
    }

    /// What the threads of this rank share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.context.shared
    }

    /// What this rank hands out of its slot by itself.
    pub(crate) fn private(&self) -> &Private {
        &self.context.shared.private
    }

    /// The context that serves this rank's inbox.
    pub(crate) fn service(&self) -> &Service {
        &self.context.shared.service
    }

    #[inline]
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.context.node
    }

    #[inline]
    pub(crate) fn transport(&self) -> &Wire {
        &self.context.transport
    }

    #[inline]
    pub(crate) fn origin(&self) -> &Origin {
        &self.context.origin
    }

    #[inline]
    pub(crate) fn count(&self) -> &Counters {
        &self.context.count
    }
}
