//! The process-global: this process's membership of its job.
//!
//! C passes no object around, so the [`World`] is found here. It belongs to the thread that called `ARMCI_Init` and
//! lies in that thread's storage; what other threads may ask (has somebody joined, as which rank) lies beside it in
//! atomics. A member is never dropped: C may call, and other ranks may reach its memory, until the process ends.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use armci_core::job::Aborter;
use armci_core::{Error, Region, Result, World};

/// What a rank is and has.
pub(crate) struct Member {
    pub(crate) world: World,
    pub(crate) allocations: RefCell<Allocations>,
}

/// The regions that `ARMCI_Malloc` made, numbered alike on every rank.
#[derive(Default)]
pub(crate) struct Allocations {
    /// The number of the youngest; the first has 1.
    last: u64,
    /// Each region, and where this rank's part begins, or 0 if it has none.
    by_number: BTreeMap<u64, (Region, usize)>,
    by_address: BTreeMap<usize, u64>,
}

impl Allocations {
    /// Remembers a region whose part here begins at `address`, or is empty if that is 0.
    pub(crate) fn keep(&mut self, region: Region, address: usize) {
        self.last += 1;
        self.by_number.insert(self.last, (region, address));
        if address != 0 {
            self.by_address.insert(address, self.last);
        }
    }

    /// The number of the region whose part here begins at `address`.
    pub(crate) fn number(&self, address: usize) -> Option<u64> {
        self.by_address.get(&address).copied()
    }

    /// Forgets a region and returns it.
    pub(crate) fn take(&mut self, number: u64) -> Option<Region> {
        let (region, address) = self.by_number.remove(&number)?;
        self.by_address.remove(&address);
        Some(region)
    }
}

thread_local! {
    /// Without a destructor, so that it can be read as long as the thread lives.
    static MEMBER: Cell<Option<&'static Member>> = const { Cell::new(None) };
}
/// This process's rank, once it has joined.
static RANK: OnceLock<usize> = OnceLock::new();
/// What tells the launcher that this rank gives up, once it has joined.
static ABORTER: OnceLock<Aborter> = OnceLock::new();
/// Calls of `ARMCI_Init` that `ARMCI_Finalize` has not matched yet. Only the member's thread writes it once it is
/// not 0, so a load and a store do; others merely look, and nothing else is read on the strength of it.
static INITS: AtomicUsize = AtomicUsize::new(0);

/// The member, for the thread that joined.
#[inline]
pub(crate) fn member() -> Result<&'static Member> {
    MEMBER.get().ok_or_else(absent)
}

/// The world, for the thread that joined.
#[inline]
pub(crate) fn world() -> Result<&'static World> {
    member().map(|member| &member.world)
}

#[cold]
fn absent() -> Error {
    Error::Argument(match RANK.get() {
        None => "called before ARMCI_Init".into(),
        Some(_) => "called from another thread than ARMCI_Init was: a rank communicates from that thread only".into(),
    })
}

/// This process's rank, if it has joined; any thread may ask.
pub(crate) fn rank() -> Option<usize> {
    RANK.get().copied()
}

/// Asks the launcher for the end of the job, if it does not see to that by itself; any thread may.
pub(crate) fn abort(code: i32) {
    if let Some(aborter) = ABORTER.get() {
        aborter.abort(code, "a rank gave up");
    }
}

/// Whether there is a member now; any thread may ask.
pub(crate) fn is_joined() -> bool {
    INITS.load(Ordering::Relaxed) > 0
}

/// Joins the job, or counts if this process has.
pub(crate) fn join() -> Result<()> {
    let inits = INITS.load(Ordering::Relaxed);
    if inits == 0 {
        let world = World::init()?;
        // A job of one may be joined again, and is the same rank again.
        RANK.get_or_init(|| world.rank());
        let aborter = world.aborter()?;
        ABORTER.get_or_init(|| aborter);
        MEMBER.set(Some(Box::leak(Box::new(Member { world, allocations: RefCell::default() }))));
    } else {
        member()?;
    }
    INITS.store(inits + 1, Ordering::Relaxed);
    Ok(())
}

/// Matches one [`join`]; the last one leaves the job. One too many does nothing.
pub(crate) fn leave() -> Result<()> {
    let inits = INITS.load(Ordering::Relaxed);
    if inits == 0 {
        return Ok(());
    }
    let world = world()?;
    INITS.store(inits - 1, Ordering::Relaxed);
    if inits == 1 { world.finalize() } else { Ok(()) }
}
