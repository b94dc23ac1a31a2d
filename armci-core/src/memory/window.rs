//! The window: every rank of a node maps the memory of all of them, at the same address.
//!
//! Each rank owns one memfd. Its length is the rank's slot, a power of two;
//! pages exist once touched. All slots of a node lie side by side in one
//! address range that every rank could reserve, agreed when the job starts. So
//! a pointer means the same on the whole node, and an address resolves to
//! (rank, offset) by shift and mask. Descriptors are passed over a socket
//! (`sharing.rs`) and closed once mapped: nothing lies in a file system, nothing is inherited, and whatever kills a
//! rank frees its memory.
//!
//! # Safety
//! WINDOW-MAPPED: from [`Window::join`] until the value is dropped, the range
//! `base .. base + (slots << shift)` is mapped readable and writable, as shared
//! memory. It holds only plain old data, atomics among it, and is reached only
//! through raw pointers and atomics.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::MemfdFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::ledger;
use super::sharing::{self, Gift, Place};
use crate::error::{Error, Result};
use crate::job::{Bootstrap, Identity};

/// The most address space a window takes: what the smallest common processors offer, less half.
const WINDOW_MAX: u64 = 1 << 46;
/// Candidate ranges for a window start here, one step apart.
const CANDIDATE_FIRST: u64 = 1 << 44;
const CANDIDATE_STEP: u64 = 1 << 40;
const CANDIDATES: u32 = 64;
/// Memory is populated in pieces of this size, so that ranks do so side by side.
const POPULATE_PIECE: u64 = 32 << 20;

/// The mapped memory of all ranks of a node.
#[derive(Debug)]
pub(crate) struct Window {
    base: u64,
    shift: u32,
    slots: usize,
}

/// What [`Window::join`] brings.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) window: Window,
    /// The first rank of each node of the job, and the node's number; in the order of ranks.
    pub(crate) nodes: Vec<(usize, usize)>,
}

/// What each rank tells its neighbours before anything is mapped.
#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Offer {
    node: u64,
    local_rank: u64,
    /// Where the ranks of the node meet, if this is the first of them.
    place: Place,
    inode: u64,
    shift: u64,
    /// Bit `k`: the `k`-th candidate range is free here.
    candidates: u64,
}

impl Window {
    /// Maps the memory of all ranks of this node; collective over the job.
    ///
    /// # Errors
    /// If no range of addresses is free in every rank, or the ranks of this node are not consecutive; on all ranks alike
    /// if one of them cannot map a neighbour's.
    pub(crate) fn join(bootstrap: &mut dyn Bootstrap, slot: Option<u64>) -> Result<Joined> {
        let who = bootstrap.identity().clone();
        let shift = slot_shift(slot, who.local_size);
        let memory = create_memory(who.rank, shift)?;
        let lifeline = bootstrap.lifeline()?;
        // Two jobs of one in one process must not settle on the same range.
        static JOINING: Mutex<()> = Mutex::new(());
        let _joining = JOINING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::invent()?;
        let listener = if who.local_rank == 0 && who.local_size > 1 { Some(place.open()?) } else { None };
        let offer = Offer {
            node: who.node as u64,
            local_rank: who.local_rank as u64,
            place,
            inode: inode(&memory)?,
            shift: shift.into(),
            candidates: free_candidates((who.local_size as u64) << shift),
        };
        let offers = gather(bootstrap, &offer)?;
        let peers = neighbours(&who, &offers)?;

        let shift = peers.iter().map(|peer| peer.shift as u32).min().unwrap_or(shift);
        let common = peers.iter().fold(u64::MAX, |common, peer| common & peer.candidates);
        if common == 0 {
            let len = (peers.len() as u64) << shift;
            return Err(Error::Job(format!(
                "no range of {len} bytes of addresses is free in every rank of this node (tried {CANDIDATES}, from \
                 {CANDIDATE_FIRST:#x} on); in this rank {}; a smaller ARMCI_SLOT needs less",
                what_is_in_the_way(len),
            )));
        }
        let window = Self::reserve(candidate(preferred(common, who.node)), shift, peers.len())?;
        let gift = Gift { memory: memory.as_fd(), lifeline: lifeline.as_ref().map(AsFd::as_fd) };
        let take = |slot: usize, theirs: OwnedFd| {
            let found = inode(&theirs)?;
            if found == peers[slot].inode {
                return window.map(slot, &theirs);
            }
            let said = peers[slot].inode;
            Err(Error::Job(format!(
                "rank {slot} of this node passed another file (inode {found}) than it said ({said})"
            )))
        };
        let shared = window.map(who.local_rank, &memory).and_then(|()| match peers.len() {
            1 => Ok(None),
            slots => sharing::share(&peers[0].place, listener.as_ref(), who.local_rank, slots, &gift, take),
        });
        let next = agree(bootstrap, shared)?;
        bootstrap.watch(who.rank - who.local_rank + (who.local_rank + 1) % peers.len(), next)?;
        Ok(Joined { window, nodes: first_ranks(&offers) })
    }

    /// Where the window begins.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of a slot.
    pub(crate) fn slot_len(&self) -> u64 {
        1 << self.shift
    }

    /// Ranks of the node.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The address of a byte of a slot. Both are checked by the caller.
    #[inline]
    pub(crate) fn address(&self, slot: usize, offset: u64) -> *mut u8 {
        debug_assert!(slot < self.slots);
        // Wrapping: registered memory, which its owner alone reaches so, lies anywhere.
        (self.base + ((slot as u64) << self.shift)).wrapping_add(offset) as *mut u8
    }

    /// The slot and the offset in it that an address lies at.
    #[inline]
    pub(crate) fn resolve(&self, address: usize) -> Option<(usize, u64)> {
        let distance = (address as u64).wrapping_sub(self.base);
        let slot = (distance >> self.shift) as usize;
        (slot < self.slots).then_some((slot, distance & (self.slot_len() - 1)))
    }

    /// Makes pages of a slot resident.
    pub(crate) fn populate(&self, slot: usize, range: Range<u64>) -> Result<()> {
        let mut from = range.start;
        while from < range.end {
            let to = range.end.min(from + POPULATE_PIECE);
            let address = self.address(slot, from).cast::<c_void>();
            // SAFETY: WINDOW-MAPPED: the range lies in a slot; populating changes no content.
            let populated = unsafe { rustix::mm::madvise(address, (to - from) as usize, Advice::LinuxPopulateWrite) };
            match populated {
                Ok(()) => {}
                Err(rustix::io::Errno::INVAL) => self.touch(slot, from..to),
                Err(errno) => return Err(Error::system("madvise(MADV_POPULATE_WRITE)", errno)),
            }
            from = to;
        }
        Ok(())
    }

    /// Populates by hand, for kernels before 5.14.
    fn touch(&self, slot: usize, range: Range<u64>) {
        for offset in range.step_by(super::heap::PAGE as usize) {
            // SAFETY: WINDOW-MAPPED; an atomic addition of nothing changes nothing, whoever else writes.
            unsafe { std::sync::atomic::AtomicU8::from_ptr(self.address(slot, offset)) }
                .fetch_add(0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Gives pages of a slot back to the system; they read as zero afterwards.
    pub(crate) fn give_back(&self, slot: usize, range: Range<u64>) -> Result<()> {
        let address = self.address(slot, range.start).cast::<c_void>();
        let len = (range.end - range.start) as usize;
        // SAFETY: WINDOW-MAPPED; the caller's books say that nothing lives in these pages.
        unsafe { rustix::mm::madvise(address, len, Advice::LinuxRemove) }
            .map_err(|errno| Error::system("madvise(MADV_REMOVE)", errno))
    }

    /// Reserves the whole range, without access yet.
    fn reserve(base: u64, shift: u32, slots: usize) -> Result<Self> {
        let len = (slots as u64) << shift;
        let address = reserve_range(base, len)
            .map_err(|errno| Error::system("mmap of the window that every rank had found free", errno))?;
        debug_assert_eq!(address, base);
        Ok(Window { base, shift, slots })
    }

    /// Maps a rank's memory over its part of the reservation.
    fn map(&self, slot: usize, memory: &OwnedFd) -> Result<()> {
        let address = self.address(slot, 0).cast::<c_void>();
        let len = self.slot_len() as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the range is our own reservation, and nothing points into it yet.
        unsafe { rustix::mm::mmap(address, len, access, flags, memory, 0) }
            .map_err(|errno| Error::system("mmap of a rank's memory", errno))?;
        // A forked child sees no window, a core dump no neighbour's memory; huge pages where the system lets us.
        // None of it is needed for anything to work, so refusals do not matter.
        for advice in [Advice::LinuxDontFork, Advice::LinuxDontDump, Advice::LinuxHugepage] {
            // SAFETY: WINDOW-MAPPED; none of these changes content or access in this process.
            let _ = unsafe { rustix::mm::madvise(address, len, advice) };
        }
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the range is ours; whoever holds an address in it holds the window too.
        let _ = unsafe { rustix::mm::munmap(self.base as *mut c_void, self.slots << self.shift) };
    }
}

/// The slot's size as a power of two: as asked, or what the node has, and no more than fits the window.
fn slot_shift(asked: Option<u64>, ranks: usize) -> u32 {
    let wanted = asked.unwrap_or_else(|| ledger::memory_of_this_machine().next_power_of_two());
    wanted.ilog2().min((WINDOW_MAX / ranks.next_power_of_two() as u64).ilog2())
}

fn create_memory(rank: usize, shift: u32) -> Result<OwnedFd> {
    let memory = rustix::fs::memfd_create(format!("armci-rank-{rank}"), MemfdFlags::CLOEXEC)
        .map_err(|errno| Error::system("memfd_create", errno))?;
    rustix::fs::ftruncate(&memory, 1 << shift).map_err(|errno| Error::system("ftruncate of a memfd", errno))?;
    Ok(memory)
}

/// Waits until all ranks have mapped what they were to map; one that could not fails all.
///
/// Most likely the neighbour whose memory cannot be had has died. The launcher then ends the job and says so, if
/// only nobody spoke before: so one more meeting precedes the error. A dead rank does not take part in it, even if
/// it still did in the first, and so it never ends.
fn agree<T>(bootstrap: &mut dyn Bootstrap, mapped: Result<T>) -> Result<T> {
    let all = bootstrap.all_gather(&[u8::from(mapped.is_ok())])?;
    let Some(rank) = all.iter().position(|share| share[..] != [1]) else { return mapped };
    bootstrap.meet()?;
    mapped.and(Err(Error::Job(format!("rank {rank} could not map the memory of a neighbour, as it says itself"))))
}

fn inode(memory: &OwnedFd) -> Result<u64> {
    rustix::fs::fstat(memory).map(|stat| stat.st_ino).map_err(|errno| Error::system("fstat", errno))
}

/// What the ranks of this node offer, in the order of their slots.
fn neighbours<'a>(who: &Identity, offers: &'a [Offer]) -> Result<Vec<&'a Offer>> {
    let mine = |(_, peer): &(usize, &Offer)| peer.node == who.node as u64;
    let found = offers.iter().enumerate().filter(mine).count();
    if found != who.local_size {
        let expected = who.local_size;
        return Err(Error::Job(format!("{found} ranks report to be on this node, {expected} were expected")));
    }
    let in_place = |(rank, peer): &(usize, &Offer)| *rank + who.local_rank == who.rank + peer.local_rank as usize;
    let peers: Vec<_> = offers.iter().enumerate().filter(mine).take_while(in_place).map(|(_, peer)| peer).collect();
    if peers.len() == found {
        return Ok(peers);
    }
    Err(Error::Job(format!(
        "the ranks of node {} are not consecutive, as they must be: have the launcher fill one node after the other",
        who.node
    )))
}

/// Where the ranks of each node begin.
fn first_ranks(offers: &[Offer]) -> Vec<(usize, usize)> {
    let mut nodes: Vec<_> = offers.iter().map(|offer| offer.node as usize).enumerate().collect();
    nodes.dedup_by_key(|(_, node)| *node);
    nodes
}

fn gather(bootstrap: &mut dyn Bootstrap, offer: &Offer) -> Result<Vec<Offer>> {
    let offers = bootstrap.all_gather(bytemuck::bytes_of(offer))?;
    offers
        .iter()
        .enumerate()
        .map(|(rank, bytes)| {
            bytemuck::try_pod_read_unaligned(bytes).map_err(|_| {
                Error::Job(format!(
                    "rank {rank} speaks another version of this library: start all ranks from one build"
                ))
            })
        })
        .collect()
}

/// Which of the candidates a node takes. Each begins to look at another one, so that an address that is given with a
/// rank of the wrong node mostly means nothing there.
fn preferred(common: u64, node: usize) -> u32 {
    let first = node as u32 % CANDIDATES;
    (common.rotate_right(first).trailing_zeros() + first) % CANDIDATES
}

fn candidate(index: u32) -> u64 {
    CANDIDATE_FIRST + u64::from(index) * CANDIDATE_STEP
}

/// Which candidate ranges of `len` bytes this process could reserve.
fn free_candidates(len: u64) -> u64 {
    let mut free = 0;
    for index in 0..CANDIDATES {
        if let Ok(base) = reserve_range(candidate(index), len) {
            // SAFETY: the reservation was made a moment ago and nothing points into it.
            let _ = unsafe { rustix::mm::munmap(base as *mut c_void, len as usize) };
            free |= 1 << index;
        }
    }
    free
}

fn reserve_range(base: u64, len: u64) -> rustix::io::Result<u64> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: with FIXED_NOREPLACE the call never touches an existing mapping.
    let address =
        unsafe { rustix::mm::mmap_anonymous(base as *mut c_void, len as usize, ProtFlags::empty(), flags) }? as u64;
    if address == base {
        return Ok(base);
    }
    // A kernel that does not know the flag takes the address as a hint only.
    // SAFETY: this is the mapping just made.
    let _ = unsafe { rustix::mm::munmap(address as *mut c_void, len as usize) };
    Err(rustix::io::Errno::EXIST)
}

/// Why the first candidate range cannot be had, as far as this process can tell.
fn what_is_in_the_way(len: u64) -> String {
    match reserve_range(candidate(0), len) {
        Ok(base) => {
            // SAFETY: the reservation was made a moment ago and nothing points into it.
            let _ = unsafe { rustix::mm::munmap(base as *mut c_void, len as usize) };
            "the first one is free".into()
        }
        Err(rustix::io::Errno::NOMEM) => "the address space is limited (see `ulimit -v`)".into(),
        Err(errno) => {
            let end = candidate(0) + len;
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let overlaps = |line: &&str| {
                let bounds = line.split(' ').next().and_then(|range| range.split_once('-'));
                let [from, to] = bounds
                    .map_or([0, 0], |(from, to)| [from, to].map(|bound| u64::from_str_radix(bound, 16).unwrap_or(0)));
                from < end && to > candidate(0)
            };
            let line = maps.lines().find(overlaps).unwrap_or("something that /proc/self/maps does not show");
            format!(
                "the first one is refused ({errno}): {}",
                line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
            )
        }
    }
}
