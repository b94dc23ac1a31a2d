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
//! The queue lock of Mellor-Crummey and Scott, spread over the ranks' memories.
//! A mutex is one word on its rank, the *tail*: 0, or one more than the number
//! of the rank that came last. For each mutex of the job each rank has a *node*
//! of two words in its own memory: `next`, one more than the number of the rank
//! that came after it, or 0; and `turn`, 1 once the lock was handed to it.
//!
//! ```text
//!   tail of the mutex --> 4 (rank 3)           unlock by the holder, rank 1:
//!                                                complete all its writes (fence)
//!   rank 1   node: next = 4 (rank 3)             next = 0, and the tail still its own: tail = 0
//!   rank 3   node: turn = 0, waits               else wait for next, and set that rank's turn
//! ```
//!
//! *Lock*: clear the own node; swap the own number into the tail; if somebody
//! was there, tell it by its `next` and wait for the own `turn`. *Try*: clear
//! the own node; compare-and-swap the tail from 0. *Unlock*: as in the picture.
//! Words of other ranks are set by `World::raise` and waited for by
//! `World::wait_until` (see `notify.rs`), which sleeps and is woken; the tail is
//! changed by read-modify-writes only. Both take the path that the protocol
//! setting gives, and each rank's may differ.
//!
//! *Orderings.* The node is cleared by relaxed stores in the own memory before
//! the swap, which releases them; who comes next acquires them by its own swap
//! before it sets `next`. So `next` and `turn` are never cleared over what
//! somebody else wrote. Nor can a notice of an earlier turn come late: each is
//! set at most once between two clearings, and is awaited before the turn ends:
//! `turn` before the lock is entered, `next` unless the tail proves that there
//! is none. From the fence of one holder to the entry of the next leads the
//! release of the tail (a swap that finds 0 acquires what the unlock's
//! compare-and-swap wrote), or the release of `turn`, read with acquire. By
//! message the server makes the same accesses, between the acquire of the inbox
//! and the release of the reply cell, which only lengthens the chain.
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
use crate::memory::GlobalPtr;
use crate::world::World;

/// A tail has a line of its own: all ranks change it.
const TAIL_WORDS: usize = 8;
/// The words of a node.
const NODE_WORDS: usize = 2;
/// Mutexes of all ranks together: their nodes take 16 MiB a rank.
const MAX_MUTEXES: u64 = 1 << 20;

/// Mutexes that every rank may lock, some on each rank.
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
/// mutexes.lock(0, 0)?;
/// let mut both = [0i64; 2];
/// world.get(sums.at(0, 0), &mut both)?;
/// world.put(&[both[0] + 1, both[1] - 1], sums.at(0, 0))?;
/// mutexes.unlock(0, 0)?; // completes the put
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
pub struct Mutexes {
    world: World,
    /// Each rank's part: the nodes for all mutexes of the job, then the tails of its own.
    region: Region,
    /// How many mutexes the ranks before each rank have together; at the end, how many there are.
    before: Vec<usize>,
    /// Those this rank holds, as (rank, index).
    held: RefCell<Vec<(usize, usize)>>,
}

impl Mutexes {
    /// Makes `mine` mutexes on this rank, perhaps more or fewer on others, perhaps none; all free. Collective
    /// (`ARMCI_Create_mutexes`).
    ///
    /// # Errors
    /// As [`World::allocate`]; [`Error::Argument`] if the ranks ask for more than 1,048,576 together. On all ranks
    /// alike.
    pub fn create(world: &World, mine: usize) -> Result<Self> {
        let counts = world.all_gather(&[mine as u64])?;
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
        let region = world.allocate(8 * words)?;
        let cleared = world.put(&vec![0i64; words], region.at(world.rank(), 0));
        let ready = world.barrier();
        cleared.and(ready)?;
        Ok(Mutexes { world: world.clone(), region, before, held: RefCell::default() })
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
        let (tail, me) = self.prepare(rank, index)?;
        let predecessor = self.world.swap(tail, me)?;
        if predecessor != 0 {
            self.world.raise(self.next(rank, index, (predecessor - 1) as usize), me)?;
            self.world.wait_value(self.turn(rank, index, self.world.rank()), 1)?;
        }
        self.held.borrow_mut().push((rank, index));
        Ok(())
    }

    /// Locks mutex `index` of `rank` if it is free, and says whether it did; as [`Mutexes::lock`].
    ///
    /// # Errors
    /// As [`Mutexes::lock`].
    pub fn try_lock(&self, rank: usize, index: usize) -> Result<bool> {
        let (tail, me) = self.prepare(rank, index)?;
        let free = self.world.compare_swap(tail, 0, me)? == 0;
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
    /// [`Error::Refused`] as [`World::fence_all`]; it is unlocked all the same.
    pub fn unlock(&self, rank: usize, index: usize) -> Result<()> {
        self.exists(rank, index)?;
        self.world.check_open()?;
        let mut held = self.held.borrow_mut();
        let Some(position) = held.iter().position(|mutex| *mutex == (rank, index)) else {
            return Err(Error::Argument(format!(
                "rank {} was to unlock mutex {index} of rank {rank}, which it does not hold",
                self.world.rank()
            )));
        };
        held.swap_remove(position);
        drop(held);
        let fenced = self.world.fence_all();
        self.hand_over(rank, index)?;
        fenced
    }

    /// Lets the next rank into a mutex, or leaves it free.
    fn hand_over(&self, rank: usize, index: usize) -> Result<()> {
        let (world, me) = (&self.world, self.world.rank());
        let next = self.next(rank, index, me);
        // Relaxed: if somebody is there, the wait below reads it again with acquire.
        let nobody = world.own_word(next)?.load(Ordering::Relaxed) == 0;
        let mine = number(me);
        if nobody && world.compare_swap(self.tail(rank, index), mine, 0)? == mine {
            return Ok(());
        }
        let successor = world.wait_until(next, |next| next != 0)?;
        world.raise(self.turn(rank, index, (successor - 1) as usize), 1)
    }

    /// Frees the mutexes. Collective (`ARMCI_Destroy_mutexes`).
    ///
    /// # Errors
    /// As [`World::free`]; [`Error::Argument`] if this rank holds some. They are freed all the same.
    pub fn destroy(self) -> Result<()> {
        let freed = self.world.free(self.region);
        match self.held.borrow().as_slice() {
            [] => freed,
            [(rank, index), more @ ..] => Err(Error::Argument(format!(
                "mutexes were destroyed while rank {} held mutex {index} of rank {rank} and {} more",
                self.world.rank(),
                more.len()
            ))),
        }
    }

    /// Checks that this rank may queue for a mutex and clears its node; the mutex's tail, and this rank's number.
    fn prepare(&self, rank: usize, index: usize) -> Result<(GlobalPtr<i64>, i64)> {
        self.exists(rank, index)?;
        let me = self.world.rank();
        if self.held.borrow().contains(&(rank, index)) {
            return Err(Error::Argument(format!(
                "rank {me} was to lock mutex {index} of rank {rank}, which it holds already"
            )));
        }
        for word in [self.next(rank, index, me), self.turn(rank, index, me)] {
            self.world.own_word(word)?.store(0, Ordering::Relaxed);
        }
        Ok((self.tail(rank, index), number(me)))
    }

    /// Refuses what is no mutex.
    fn exists(&self, rank: usize, index: usize) -> Result<()> {
        let size = self.world.size();
        if rank >= size {
            return Err(Error::Rank { rank, size });
        }
        let count = self.count(rank);
        if index < count {
            return Ok(());
        }
        Err(Error::Argument(format!("mutex {index} of rank {rank} does not exist: that rank has {count}")))
    }

    fn tail(&self, rank: usize, index: usize) -> GlobalPtr<i64> {
        let total = self.before[self.before.len() - 1];
        self.region.at(rank, tails_from(total) + index * TAIL_WORDS)
    }

    /// Who comes after rank `of` in the queue for a mutex.
    fn next(&self, rank: usize, index: usize, of: usize) -> GlobalPtr<i64> {
        self.region.at(of, (self.before[rank] + index) * NODE_WORDS)
    }

    /// Whether it is the turn of rank `of`.
    fn turn(&self, rank: usize, index: usize, of: usize) -> GlobalPtr<i64> {
        self.next(rank, index, of).add(1)
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
