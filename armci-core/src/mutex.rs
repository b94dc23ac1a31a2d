//! Mutexes among ranks: some on each rank, any of which every rank may lock.
//!
//! Guaranteed: one holder at a time; first come, first served; what a holder
//! wrote, by whichever path and to whichever rank, is complete before the next
//! holder's [`Mutexes::lock`] returns. A waiter looks only at its own memory,
//! sleeps if it takes long, and costs the mutex's rank one read-modify-write
//! however long it waits. Not guaranteed: anything about a rank that ends while
//! it holds one (its job ends with it).
//!
//! # Protocol
//! The queue lock of `sync/queue_lock.rs`, spread over the ranks' memories. The
//! tail of a mutex lies on its rank. For each mutex of the job each rank has a
//! node, `next` and `turn`, in its own memory. Ranks are numbered from 1 there.
//!
//! Words of other ranks are set by `World::raise` and waited for by
//! `World::wait_until` (see `notify.rs`), which sleeps and is woken; the tail is
//! changed by read-modify-writes only. Both take the path that the protocol
//! setting gives, and each rank's may differ. In place, these are the accesses
//! that the lock demands; by message the server makes the same ones, between
//! the acquire of the inbox and the release of the reply cell, which only
//! lengthens the chain from one holder to the next.
//!
//! Before a holder hands over it completes all its writes, by a fence.
//!
//! *Nobody is left waiting.* Once a rank has swapped itself into the tail,
//! nothing but the end of the job keeps it from telling its predecessor:
//! `raise` speaks for no earlier operation, so that a refused one cannot stop
//! it. Unlocking waits for such a rank only, which itself waits for credits at
//! most. A mutex that is locked by message needs its rank to serve, as all
//! messages do.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use crate::allocation::Region;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::memory::GlobalPtr;
use crate::sync::queue_lock::{self, Word, Words};

/// A tail has a line of its own: all ranks change it.
const TAIL_WORDS: usize = 8;
/// The words of a node.
const NODE_WORDS: usize = 2;
/// Mutexes of all ranks together: their nodes take 16 MiB a rank.
const MAX_MUTEXES: u64 = 1 << 20;

/// Mutexes that every rank of a group may lock, some on each of its ranks.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// use armci_core::{Mutexes, World};
///
/// let world = World::init()?;
/// let sums = world.allocate(16)?;
/// world.put(&[0i64, 0], sums.at(world.rank(), 0))?;
/// let mutexes = Mutexes::create(&world, 1)?; // one on each rank
///
/// // Change two words of rank 0 together.
/// let guard = mutexes.guard(0, 0)?;
/// let mut both = [0i64; 2];
/// world.get(sums.at(0, 0), &mut both)?;
/// world.put(&[both[0] + 1, both[1] - 1], sums.at(0, 0))?;
/// guard.unlock()?; // completes the put; so does dropping the guard
///
/// world.barrier()?;
/// world.get(sums.at(0, 0), &mut both)?;
/// assert_eq!(both, [world.size() as i64, -(world.size() as i64)]);
/// mutexes.destroy()?;
/// # world.free(sums)?;
/// world.finalize()
/// # }
/// ```
#[derive(Debug)]
#[must_use = "mutexes that are not destroyed keep their memory until the job ends"]
pub struct Mutexes {
    group: Group,
    /// Each rank's part: the nodes for all mutexes of the job, then the tails of its own.
    region: Region,
    /// How many mutexes the ranks before each rank have together; at the end, how many there are.
    before: Vec<usize>,
    /// Those this rank holds, as (rank, index).
    held: RefCell<Vec<(usize, usize)>>,
}

impl Mutexes {
    /// Makes `mine` mutexes on this rank, perhaps more or fewer on others, perhaps none; all free. Collective over a
    /// `&World`, `&Team` or `&Group`, whose numbers of ranks are meant below (`ARMCI_Create_mutexes`).
    ///
    /// # Errors
    /// As [`World::allocate`](crate::World::allocate); [`Error::Argument`] if the ranks ask for more than 1,048,576 together. On all ranks
    /// alike.
    pub fn create(group: impl Into<Group>, mine: usize) -> Result<Self> {
        let group = group.into();
        let counts = group.all_gather(&[mine as u64])?;
        let total = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        if total > MAX_MUTEXES {
            return Err(Error::Argument(format!(
                "{total} mutexes were asked for by all ranks together, at most {MAX_MUTEXES} can be"
            )));
        }
        let mut before = vec![0];
        before.extend(counts.iter().scan(0, |sum, count| {
            *sum += *count as usize;
            Some(*sum)
        }));
        let words = tails_from(total as usize) + mine * TAIL_WORDS;
        let region = group.allocate(8 * words)?;
        let cleared = group.world().put(&vec![0i64; words], region.at(group.rank(), 0));
        let ready = group.sync();
        cleared.and(ready)?;
        Ok(Mutexes { group, region, before, held: RefCell::default() })
    }

    /// How many mutexes `rank` has; none if there is no such rank.
    pub fn count(&self, rank: usize) -> usize {
        self.before.get(rank..).and_then(|from| Some(from.get(1)? - from.first()?)).unwrap_or(0)
    }

    /// Locks mutex `index` of `rank`, waiting as long as others hold it or came first (`ARMCI_Lock`).
    ///
    /// Whatever its holders before wrote before they unlocked it is in place on return.
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Argument`] if that rank has no such mutex, or this rank holds it already.
    pub fn lock(&self, rank: usize, index: usize) -> Result<()> {
        let words = self.words_to_queue(rank, index)?;
        queue_lock::lock(&words, number(self.group.rank()))?;
        self.held.borrow_mut().push((rank, index));
        Ok(())
    }

    /// Locks mutex `index` of `rank` if it is free, and says whether it did; as [`Mutexes::lock`].
    ///
    /// # Errors
    /// As [`Mutexes::lock`].
    pub fn try_lock(&self, rank: usize, index: usize) -> Result<bool> {
        let words = self.words_to_queue(rank, index)?;
        let free = queue_lock::try_lock(&words, number(self.group.rank()))?;
        if free {
            self.held.borrow_mut().push((rank, index));
        }
        Ok(free)
    }

    /// Unlocks mutex `index` of `rank`, which this rank holds: completes everywhere all that this rank put and
    /// accumulated, then lets the next rank in (`ARMCI_Unlock`).
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Argument`] if that rank has no such mutex, or this rank does not hold it.
    /// [`Error::Refused`] as [`World::fence_all`](crate::World::fence_all); it is unlocked all the same.
    pub fn unlock(&self, rank: usize, index: usize) -> Result<()> {
        self.exists(rank, index)?;
        self.group.world().check_open()?;
        let mut held = self.held.borrow_mut();
        let Some(position) = held.iter().position(|mutex| *mutex == (rank, index)) else {
            return Err(Error::Argument(format!(
                "rank {} was to unlock mutex {index} of rank {rank}, which it does not hold",
                self.group.rank()
            )));
        };
        held.swap_remove(position);
        drop(held);
        let fenced = self.group.world().fence_all();
        queue_lock::unlock(&WordsOf { mutexes: self, rank, index }, number(self.group.rank()))?;
        fenced
    }

    /// Locks mutex `index` of `rank` until the guard is dropped, or unlocked to hear of errors (`GA_Lock`, `GA_Unlock`);
    /// as [`Mutexes::lock`].
    ///
    /// # Errors
    /// As [`Mutexes::lock`].
    pub fn guard(&self, rank: usize, index: usize) -> Result<MutexGuard<'_>> {
        self.lock(rank, index)?;
        Ok(MutexGuard { mutexes: self, rank, index })
    }

    /// Frees the mutexes. Collective (`ARMCI_Destroy_mutexes`).
    ///
    /// # Errors
    /// As [`World::free`](crate::World::free); [`Error::Argument`] if this rank holds some. They are freed all the same.
    pub fn destroy(self) -> Result<()> {
        let freed = self.group.world().free(self.region);
        match self.held.borrow().as_slice() {
            [] => freed,
            [(rank, index), more @ ..] => Err(Error::Argument(format!(
                "mutexes were destroyed while rank {} held mutex {index} of rank {rank} and {} more",
                self.group.rank(),
                more.len()
            ))),
        }
    }

    /// Checks that this rank may queue for a mutex; its words.
    fn words_to_queue(&self, rank: usize, index: usize) -> Result<WordsOf<'_>> {
        self.exists(rank, index)?;
        let me = self.group.rank();
        if self.held.borrow().contains(&(rank, index)) {
            return Err(Error::Argument(format!(
                "rank {me} was to lock mutex {index} of rank {rank}, which it holds already"
            )));
        }
        Ok(WordsOf { mutexes: self, rank, index })
    }

    /// Refuses what is no mutex.
    fn exists(&self, rank: usize, index: usize) -> Result<()> {
        let size = self.group.size();
        if rank >= size {
            return Err(Error::Rank { rank, size });
        }
        let count = self.count(rank);
        if index < count {
            return Ok(());
        }
        Err(Error::Argument(format!("mutex {index} of rank {rank} does not exist: that rank has {count}")))
    }
}

/// A mutex that this rank holds, and unlocks when this is dropped; of [`Mutexes::guard`].
#[derive(Debug)]
#[must_use = "a guard that is dropped at once holds its mutex for nothing"]
pub struct MutexGuard<'a> {
    mutexes: &'a Mutexes,
    rank: usize,
    index: usize,
}

impl MutexGuard<'_> {
    /// Unlocks the mutex, and says how that went.
    ///
    /// # Errors
    /// As [`Mutexes::unlock`].
    pub fn unlock(self) -> Result<()> {
        let MutexGuard { mutexes, rank, index } = self;
        std::mem::forget(self);
        mutexes.unlock(rank, index)
    }
}

impl Drop for MutexGuard<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.mutexes.unlock(self.rank, self.index) {
            let Self { rank, index, .. } = self;
            tracing::warn!("mutex {index} of rank {rank} was unlocked by its guard, with an error: {error}");
        }
    }
}

/// The words of one mutex, as this rank reaches them.
struct WordsOf<'a> {
    mutexes: &'a Mutexes,
    rank: usize,
    index: usize,
}

impl WordsOf<'_> {
    fn tail(&self) -> GlobalPtr<i64> {
        let Mutexes { before, region, .. } = self.mutexes;
        region.at(self.rank, tails_from(before[before.len() - 1]) + self.index * TAIL_WORDS)
    }

    /// A word of the node of rank `of`.
    fn place(&self, word: Word, of: usize) -> GlobalPtr<i64> {
        let Mutexes { before, region, .. } = self.mutexes;
        let node = (before[self.rank] + self.index) * NODE_WORDS;
        region.at(of, node + usize::from(word == Word::Turn))
    }

    /// A word of this rank's own node.
    fn own(&self, word: Word) -> GlobalPtr<i64> {
        self.place(word, self.mutexes.group.rank())
    }
}

impl Words for WordsOf<'_> {
    fn clear(&self, word: Word) -> Result<()> {
        self.mutexes.group.world().own_word(self.own(word)).map(|word| word.store(0, Ordering::Relaxed))
    }

    fn glance(&self, word: Word) -> Result<i64> {
        self.mutexes.group.world().own_word(self.own(word)).map(|word| word.load(Ordering::Relaxed))
    }

    fn wait(&self, word: Word, holds: impl Fn(i64) -> bool) -> Result<i64> {
        self.mutexes.group.world().wait_until(self.own(word), holds)
    }

    fn raise(&self, word: Word, of: i64, value: i64) -> Result<()> {
        self.mutexes.group.world().raise(self.place(word, (of - 1) as usize), value)
    }

    fn swap_tail(&self, value: i64) -> Result<i64> {
        self.mutexes.group.world().swap(self.tail(), value)
    }

    fn compare_swap_tail(&self, expected: i64, value: i64) -> Result<i64> {
        self.mutexes.group.world().compare_swap(self.tail(), expected, value)
    }
}

/// The word at which the tails begin, behind the nodes for `total` mutexes.
fn tails_from(total: usize) -> usize {
    (total * NODE_WORDS).next_multiple_of(TAIL_WORDS)
}

/// A rank as tails and nodes name it: 0 is nobody.
fn number(rank: usize) -> i64 {
    rank as i64 + 1
}
