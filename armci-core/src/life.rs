//! Joining a job, and leaving it in order.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use progress_thread::{Options, ProgressThread};

use crate::am::board::Board;
use crate::am::service::Service;
use crate::collectives::Collective;
use crate::config::{Config, Progress};
use crate::context::{Context, Primary, Shared};
use crate::error::{Error, Result};
use crate::gathering::Gathering;
use crate::job;
use crate::memory::books::Books;
use crate::msg::Mailbox;
use crate::node::Node;
use crate::topology::Seat;
use crate::transport::{Wire, ofi};
use crate::watch::served::ServedWatch;
use crate::watch::timeline::Output;
use crate::watch::{Watching, ending};
use crate::world::World;

/// How long a wait spins before it sleeps, with a core per rank and without.
const SPIN: Duration = Duration::from_micros(50);
const SPIN_CROWDED: Duration = Duration::ZERO;
/// How long the progress thread runs at once where it shares a core: the least that schedulers take.
const SLICE: Duration = Duration::from_micros(100);
/// It goes before what computes there, since it runs only while others ask for something; where ranks are more than cores, it
/// would go before those of others, too.
const BEFORE_ALL: i32 = -20;

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
    /// If the launcher is gone, the node's memory cannot be shared, or the timeline's file cannot be created. A process
    /// that joins the job of its launcher twice ends the job.
    pub fn init_with(config: Config) -> Result<Self> {
        let mut bootstrap = job::bootstrap_by(config.bootstrap, config.nodes, config.verbose)?;
        let mut seat = bootstrap.seat();
        if !config.progress_cpu.is_empty() {
            let local_rank = bootstrap.identity().local_rank;
            let own = config.progress_cpu[local_rank % config.progress_cpu.len()];
            seat = Seat { progress_cpu: Some(own), shares: false, ..seat };
        }
        let output = Output::create(config.trace.as_deref(), bootstrap.identity())?;
        let node = Arc::new(Node::join(&mut *bootstrap, config.slot, config.memory)?);
        let transport = Self::join_nodes(&mut *bootstrap, &node, &config)?;
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
                nice: (seat.shares && !crowded).then_some(BEFORE_ALL),
                slice: Some(SLICE),
            };
            let started = ProgressThread::start(service.clone(), options);
            Some(started.map_err(|source| Error::System { call: "starting the progress thread", source })?)
        } else {
            None
        };
        let spin = config.spin.unwrap_or(if crowded { SPIN_CROWDED } else { SPIN });
        let primary = Primary {
            books: RefCell::new(Books::new(node.heap_len())),
            everyone: Rc::new(Gathering::of_all(node.clone())),
            board: Board::new(&service),
            progress: RefCell::new(progress),
            bootstrap: RefCell::new(bootstrap),
            mailbox,
            output: RefCell::new(output),
        };
        let shared = Shared::new(config, node, transport, service, spin, crowded, watching);
        let world = World::of(Context::new(&shared, Some(primary))?);
        world.primary()?.everyone.open(world.origin());
        // Only now is every rank ready to be sent to.
        world.primary()?.everyone.near().meet(world.origin());
        world.meet_other_nodes()?;
        world.log_joined(&seat);
        Ok(world)
    }

    /// Whether ranks on several nodes could be joined from here: whether libfabric is found.
    ///
    /// # Errors
    /// [`Error::Fabric`] if it is not.
    pub fn check_fabric() -> Result<()> {
        ofi::is_here()
    }

    /// Opens the way to the other nodes, if there are any.
    fn join_nodes(bootstrap: &mut dyn job::Bootstrap, node: &Arc<Node>, config: &Config) -> Result<Wire> {
        let near = Wire::near(node.clone());
        if node.who().nodes == 1 {
            return Ok(near);
        }
        let wanted = config.fabric.clone().map(|(provider, domain)| ofi::Wanted { provider, domain });
        let faults = match &config.fabric_faults {
            Some(list) => list.parse().map_err(|()| Error::Setting {
                name: "ARMCI_FABRIC_FAULTS",
                value: list.clone(),
                expected: "a list of words as in transport/ofi/faults.rs",
            })?,
            None => ofi::Asked::default(),
        };
        let (fabric, service) = ofi::Fabric::join(bootstrap, node, wanted.as_ref(), &faults, config.verbose)?;
        let reception = ofi::Reception::open(&fabric, service)?;
        near.with(node.clone(), fabric, reception, config.fabric_poll)
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
        let settled = primary.progress.borrow().as_ref().map(|thread| (thread.cpu(), thread.nice()));
        if let (Some((None, _)), Some(asked)) = (settled, seat.progress_cpu) {
            tracing::warn!(rank = who.rank, cpu = asked, "the progress thread may not sit where it should");
        }
        let seated = seated(settled, seat);
        tracing::debug!(rank = who.rank, "{seated}");
        if self.shared().config.verbose {
            // In one piece, as all ranks write; without a reader nobody is to be told.
            let _ = std::io::stderr().write_all(format!("armci: rank {}: {seated}\n", who.rank).as_bytes());
        }
    }

    /// Leaves the job in order: everything is complete everywhere, then the progress thread stops. Collective.
    ///
    /// Any further use of this value, or of a clone of it, for communication is an error.
    ///
    /// # Errors
    /// As [`World::fence_all`]; or if the launcher is gone, this rank has left already, a split-phase barrier of all is
    /// under way, or other threads of this rank are attached: this rank has not left then.
    pub fn finalize(&self) -> Result<()> {
        let primary = self.primary()?;
        primary.everyone.ready()?;
        self.shared().close().map_err(|attached| {
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
        let asked = ending::agree(self, primary.everyone.near(), output.as_ref());
        let met = self.meet_for_the_last_time(&primary.everyone);
        self.context().leave();
        // Nothing is under way: the thread has served its last, and with its end all that it noted is there.
        let progress = primary.progress.borrow_mut().take().map(ProgressThread::stop).unwrap_or_default();
        if asked.anything() {
            ending::tell(self, primary.everyone.near(), asked, output, progress);
        }
        met?;
        primary.bootstrap.borrow_mut().goodbye()?;
        tracing::info!(rank = self.rank(), "left");
        fenced
    }

    /// Leaves the job without meeting anybody, for a process that is about to exit and whose ranks have met for the last
    /// time by other means: nothing is completed or reported, and no rank may communicate with this one any more.
    ///
    /// # Errors
    /// [`Error::Argument`] in an attached thread; [`Error::Job`] in the midst of joining or leaving, or if the launcher is
    /// gone.
    pub fn take_leave(&self) -> Result<()> {
        let mut bootstrap = self.primary()?.bootstrap.try_borrow_mut().map_err(|_| {
            Error::Job(format!("rank {} was to leave its job while it joins or leaves it", self.rank()))
        })?;
        bootstrap.goodbye()
    }

    /// What tells whatever started the job that this rank gives up. Any thread may have it, and use it at any time, also
    /// when nothing else works any more; then the process is to exit.
    ///
    /// # Errors
    /// [`Error::Argument`] in an attached thread: the thread that joined hands it out.
    pub fn aborter(&self) -> Result<job::Aborter> {
        Ok(self.primary()?.bootstrap.borrow().aborter())
    }

    /// Ends an attached thread's communication: completes all it did, and gives its context back, once the last clone of
    /// this handle is gone. (A thread that merely drops its world does the same, but hears of no error.)
    ///
    /// # Errors
    /// As [`World::fence_all`]; the thread is detached all the same. [`Error::Argument`] in the thread that joined, which
    /// has [`World::finalize`].
    pub fn detach(self) -> Result<()> {
        if self.context().primary.is_some() {
            return Err(Error::Argument("the thread that joined was to detach: it leaves with finalize".into()));
        }
        self.origin().quiesce();
        let fenced = self.fence_all_now();
        self.context().leave();
        fenced
    }

    /// Meets all ranks, wherever they are; then nobody needs anybody any more.
    fn meet_for_the_last_time(&self, everyone: &Gathering) -> Result<()> {
        everyone.meet(self.origin());
        // What leaders sent each other for that is acknowledged, and what was acknowledged is on its way.
        self.origin().quiesce();
        self.service().settle();
        self.meet_other_nodes()
    }

    /// Meets the ranks of other nodes, once those of this one have met.
    fn meet_other_nodes(&self) -> Result<()> {
        let primary = self.primary()?;
        if self.nodes() > 1 {
            primary.bootstrap.borrow_mut().meet()?;
        }
        Ok(())
    }
}

/// Where the progress thread sits, and before whom, for people.
fn seated(settled: Option<(Option<usize>, Option<i32>)>, seat: &Seat) -> String {
    let Some((cpu, nice)) = settled else {
        return "no progress thread: requests wait until this rank calls in".into();
    };
    let place = cpu.map_or("where the scheduler puts it".into(), |cpu| format!("on processor {cpu}"));
    match (seat.shares, nice) {
        (false, _) => format!("the progress thread sits {place}"),
        (true, Some(nice)) if nice < 0 => {
            format!("the progress thread sits {place} and goes before the computation there (niceness {nice})")
        }
        (true, Some(_)) => format!(
            "the progress thread sits {place} and may not go before the computation there: some requests wait for the end of its turn \
             (`ulimit -e 40` lets it, where nobody told the process to give way)"
        ),
        (true, None) => format!("the progress thread sits {place}; ranks share the processors"),
    }
}
