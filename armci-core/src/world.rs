//! The world: a rank's membership of its job, and all it can do there.
//!
//! One value holds everything (there is no global state): the node's memory,
//! the service and origin contexts, the progress thread, the heap's books. It
//! is a handle; clones share it. Here is what every call asks it. Joining and
//! leaving are in `life.rs`; what a rank does in between is written as further
//! methods in rooms of their own: `allocation`, `rma`, `rmw`, `notify`,
//! `collectives`, `messages`, `msg`.

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use crate::am::origin::Origin;
use crate::am::service::{HeldService, Service};
use crate::config::{Config, Protocol};
use crate::context::{Context, DirectBelow, Primary, Shared, has_left};
use crate::error::{Error, Result};
use crate::memory::private::Private;
use crate::memory::region_cache::RegionCache;
use crate::node::Node;
use crate::stats::{Counters, Statistics};
use crate::transport::Wire;
use crate::transport::ofi::Line;
use crate::watch::Watch;

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

    /// The number of the node that a rank is on (`armci_domain_id`); nodes are numbered from 0. Ranks of one node share
    /// memory: what one of them knows of a place by its address ([`World::address_of`]) is right for all.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// assert!(world.node_of(world.rank())? < world.nodes());
    /// assert!(world.node_of(world.size()).is_err());
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Rank`].
    pub fn node_of(&self, rank: usize) -> Result<usize> {
        self.context.node.node_of(rank)
    }

    /// Whether this thread can still communicate: it has neither finalized nor detached.
    pub fn is_open(&self) -> bool {
        self.context.is_open()
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

    /// Lets nobody serve this rank's messages, neither its progress thread nor a wait of any of its threads, until the
    /// guard is dropped.
    ///
    /// **A hook for tests**: it makes messages to this rank outstanding for as long as a test likes. Whoever waits for
    /// one of them meanwhile hangs, this thread's own barriers included if any rank comes to them with such a message;
    /// and so does who waits for this rank's own long transfers with handles to other nodes, which others fetch from it.
    /// What came in is served when the guard is dropped.
    pub fn hold_service(&self) -> HeldService<'_> {
        self.service().hold()
    }

    /// What this thread has done, and its rank served, so far.
    pub fn statistics(&self) -> Statistics {
        let (served_by_thread, served_by_main) = self.service().served();
        let (registrations, registered) = self.origin().line().map_or((0, 0), Line::lendings);
        Statistics {
            registrations,
            registered,
            served_by_thread,
            served_by_main,
            conflicts: self.origin().conflicts(),
            node_memory: self.node().ledger().granted(),
            addresses: self.transport().fabric().map_or(0, |fabric| fabric.addresses_held() as u64),
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

    /// What this thread has of its own.
    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn of(context: Rc<Context>) -> Self {
        World { context }
    }

    /// What finds this world again as long as somebody has it.
    #[inline]
    pub(crate) fn downgrade(&self) -> Weak<Context> {
        Rc::downgrade(&self.context)
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
