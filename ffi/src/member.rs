//! The process-global: this process's membership of its job.
//!
//! C passes no object around, so a thread's [`World`] is found here, in its own storage: the one that joined, for the
//! thread that called `ARMCI_Init`; for another thread, if threads were asked for at initialisation, one that is
//! attached at its first call and leaves when the thread ends. What any thread may ask (has somebody joined, as which
//! rank) lies beside it in atomics. The first member is never dropped: C may call, and other ranks may reach its memory,
//! until the process ends.
//!
//! # Safety
//! ATTACHED-ONCE: an attached member is allocated by its thread, which alone refers to it, by [`MEMBER`]; that is
//! cleared before the member is freed, at the end of the thread, when no call of that thread is under way. FIRST-MEMBER:
//! what is stored there lives as long as the process, and is taken from there by the thread alone that stored it and so
//! finds its own number beside it. EXIT-HANDLER: it runs in `exit`, calls nothing that needs another thread or a
//! destructor that has run, and does not unwind into C.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::c_int;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use armci_core::job::Aborter;
use armci_core::{Error, Mutexes, Result, Threads, World};

use crate::aggregate::Aggregates;
use crate::groups::Groups;
use crate::here::thread;
use crate::mpi::{MPI_Comm, mpi};
use crate::notify::Notices;

/// What a thread of a rank is and has.
pub(crate) struct Member {
    pub(crate) world: World,
    /// What this thread collects under aggregate handles.
    pub(crate) aggregates: Aggregates,
    /// None for a thread that only attached.
    primary: Option<Primary>,
}

/// What belongs to the thread that joined: all that is collective.
pub(crate) struct Primary {
    pub(crate) groups: Groups,
    pub(crate) mutexes: RefCell<Option<Mutexes>>,
    pub(crate) notices: Notices,
}

/// Whether threads other than the one that joins may communicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threading {
    One,
    Many,
}

thread_local! {
    /// Without a destructor, so that it can be read as long as the thread lives.
    static MEMBER: Cell<Option<&'static Member>> = const { Cell::new(None) };
    /// What detaches the thread when it ends.
    static ATTACHED: OnceCell<Attached> = const { OnceCell::new() };
}
/// A number that no thread has.
const NO_THREAD: usize = usize::MAX;
/// The thread that joined, by its number, and its member: what its own storage holds, for a quicker look.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(NO_THREAD);
static FIRST: AtomicPtr<Member> = AtomicPtr::new(ptr::null_mut());
/// The process that has joined: a forked child has all of this, too, and is no rank.
static PROCESS: OnceLock<u32> = OnceLock::new();
/// This process's rank, once it has joined.
static RANK: OnceLock<usize> = OnceLock::new();
/// What tells the launcher that this rank gives up, once it has joined.
static ABORTER: OnceLock<Aborter> = OnceLock::new();
/// Calls of `ARMCI_Init` that `ARMCI_Finalize` has not matched yet. Only the member's thread writes it once it is
/// not 0, so a load and a store do; others merely look, and nothing else is read on the strength of it.
static INITS: AtomicUsize = AtomicUsize::new(0);
/// Whether threads were asked for.
static THREADED: AtomicBool = AtomicBool::new(false);
/// What they attach through.
static THREADS: Mutex<Option<Threads>> = Mutex::new(None);

/// This thread's member.
#[inline]
pub(crate) fn member() -> Result<&'static Member> {
    if FIRST_THREAD.load(Ordering::Relaxed) == thread() {
        // SAFETY: FIRST-MEMBER.
        return Ok(unsafe { &*FIRST.load(Ordering::Relaxed) });
    }
    other_thread()
}

/// The member of a thread that did not join, or that has no number.
#[cold]
#[inline(never)]
fn other_thread() -> Result<&'static Member> {
    match MEMBER.get() {
        Some(member) => Ok(member),
        None => attach(),
    }
}

/// This thread's world.
#[inline]
pub(crate) fn world() -> Result<&'static World> {
    member().map(|member| &member.world)
}

/// What collective calls need; refused to threads that only attached.
pub(crate) fn primary() -> Result<(&'static World, &'static Primary)> {
    let member = member()?;
    match &member.primary {
        Some(primary) => Ok((&member.world, primary)),
        None => Err(Error::Argument("is for the thread that called ARMCI_Init, and was called from another".into())),
    }
}

/// A thread's membership, which ends with it.
struct Attached(*mut Member);

impl Drop for Attached {
    fn drop(&mut self) {
        MEMBER.set(None);
        // SAFETY: ATTACHED-ONCE.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Attaches this thread, if it may be.
#[cold]
#[inline(never)]
fn attach() -> Result<&'static Member> {
    if RANK.get().is_none() {
        return Err(Error::Argument("called before ARMCI_Init".into()));
    }
    if !THREADED.load(Ordering::Relaxed) {
        return Err(Error::Argument(
            "called from another thread than ARMCI_Init was: for that, initialise with ARMCI_Init_thread and \
             MPI_THREAD_SERIALIZED (2) or MPI_THREAD_MULTIPLE (3)"
                .into(),
        ));
    }
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let threads = threads.ok_or_else(|| Error::Argument("called before ARMCI_Init".into()))?;
    let world = threads.attach()?;
    let member = Box::into_raw(Box::new(Member { world, aggregates: Aggregates::default(), primary: None }));
    let attached = Attached(member);
    // Dropped with the closure, or handed back and dropped, if it cannot be kept.
    if !matches!(ATTACHED.try_with(move |kept| kept.set(attached).is_ok()), Ok(true)) {
        return Err(Error::Argument("called from a thread that is ending".into()));
    }
    // SAFETY: ATTACHED-ONCE: it lives as long as the thread does.
    let member: &'static Member = unsafe { &*member };
    MEMBER.set(Some(member));
    Ok(member)
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

/// Joins the job, or counts if this process has. `comm` stands for all ranks, if it is given.
pub(crate) fn join(threading: Threading, comm: Option<MPI_Comm>) -> Result<()> {
    let inits = INITS.load(Ordering::Relaxed);
    if inits == 0 {
        let world = World::init()?;
        if let Some(mpi) = mpi().filter(|mpi| mpi.is_running()) {
            mpi.check(comm.unwrap_or(mpi.world()), world.rank(), world.size())?;
        }
        // A job of one may be joined again, and is the same rank again.
        RANK.get_or_init(|| world.rank());
        PROCESS.get_or_init(std::process::id);
        let aborter = world.aborter()?;
        ABORTER.get_or_init(|| aborter);
        *THREADS.lock().unwrap_or_else(PoisonError::into_inner) = Some(world.threads());
        let groups = Groups::new(&world, comm);
        let primary = Primary { groups, mutexes: RefCell::default(), notices: Notices::default() };
        let aggregates = Aggregates::default();
        let member = Box::leak(Box::new(Member { world, aggregates, primary: Some(primary) }));
        FIRST.store(member, Ordering::Relaxed);
        MEMBER.set(Some(member));
        let known = if thread() == 0 { NO_THREAD } else { thread() };
        FIRST_THREAD.store(known, Ordering::Relaxed);
        leave_after_mpi()?;
    } else {
        primary()?;
    }
    if threading == Threading::Many {
        THREADED.store(true, Ordering::Relaxed);
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
    let (world, _) = primary()?;
    if inits == 1 {
        let left = member()?.aggregates.finish().and(world.finalize());
        // Who was refused, since other threads are attached, is still a member.
        if world.is_open() {
            return left;
        }
        *THREADS.lock().unwrap_or_else(PoisonError::into_inner) = None;
        THREADED.store(false, Ordering::Relaxed);
        INITS.store(0, Ordering::Relaxed);
        return left;
    }
    INITS.store(inits - 1, Ordering::Relaxed);
    Ok(())
}

/// Sees to it that a process that exits after `MPI_Finalize` leaves in order, though `ARMCI_Finalize` was called less
/// often than `ARMCI_Init`: as Global Arrays does, whose TCGMSG joins, too, when its counter is used first, and leaves in a
/// call that programs have no need of. Other ARMCIs end with their MPI.
fn leave_after_mpi() -> Result<()> {
    static ONCE: OnceLock<bool> = OnceLock::new();
    // SAFETY: EXIT-HANDLER.
    if mpi().is_none() || *ONCE.get_or_init(|| unsafe { libc::atexit(at_exit) } == 0) {
        return Ok(());
    }
    Err(Error::System { call: "atexit", source: std::io::ErrorKind::OutOfMemory.into() })
}

extern "C" fn at_exit() {
    let _ = catch_unwind(|| {
        let ranks_process = PROCESS.get() == Some(&std::process::id());
        if ranks_process && is_joined() && mpi().is_some_and(|mpi| mpi.has_ended()) {
            // Who exits from another thread is seen to by whoever watches; nobody is left to hear of an error.
            let _ = primary().and_then(|(world, _)| world.take_leave());
        }
    });
}

/// How MPI spells the levels of thread support.
pub(crate) fn threading(level: c_int) -> Result<Threading> {
    match level {
        0 | 1 => Ok(Threading::One),
        2 | 3 => Ok(Threading::Many),
        _ => Err(Error::Argument(format!(
            "{level} is no level of thread support: there are MPI_THREAD_SINGLE (0), FUNNELED (1), SERIALIZED (2) and \
             MULTIPLE (3)"
        ))),
    }
}
