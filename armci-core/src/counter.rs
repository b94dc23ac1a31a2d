//! A counter that ranks draw tasks from: the load balance of paper 003 (Figure 15), and of Global Arrays'
//! `NGA_Read_inc`.
//!
//! Guaranteed: each number is handed out at most once between two resets, and none is left out before the largest that
//! was. The counter never wraps: a draw that finds it at 2^62 or beyond is given back and refused, and one
//! draw takes at most 2^32, so that all ranks together cannot come near 2^63 between a draw and its being given back.

use std::cell::Cell;
use std::iter::FusedIterator;
use std::ops::Range;

use crate::allocation::Region;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::memory::GlobalPtr;

/// Numbers that are drawn at once at most.
const MOST: i64 = 1 << 32;
/// Where a counter ends.
const END: i64 = 1 << 62;

/// A counter that the ranks of a group draw tasks from.
///
/// It lives on one rank, the first unless another was chosen. Each number is handed out exactly once. With the default
/// path a draw is one atomic addition in that rank's memory, whatever it is doing; with `ARMCI_PROTOCOL=rmw=am` its
/// progress thread serves it.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// let world = armci_core::World::init()?;
/// let counter = armci_core::SharedCounter::create(&world)?;
/// let mut done = 0;
/// for task in counter.tasks(10) {
///     assert!(task? < 10);
///     done += 1;
/// }
/// assert_eq!(done, 10); // a job of one does all the work itself
/// counter.reset()?;
/// assert_eq!(counter.next_chunk(5)?, 0..5);
/// counter.destroy()?;
/// world.finalize()
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a counter that is not destroyed keeps its memory until the job ends"]
pub struct SharedCounter {
    group: Group,
    region: Region,
    home: usize,
    place: GlobalPtr<i64>,
    /// Whether this rank has seen the end of a task loop since the last reset.
    ran_out: Cell<bool>,
}

impl SharedCounter {
    /// A counter at 0, on the first rank of a `&World`, `&Team` or `&Group`. Collective.
    ///
    /// # Errors
    /// As [`World::allocate`](crate::World::allocate).
    #[track_caller]
    pub fn create(group: impl Into<Group>) -> Result<Self> {
        Self::create_on(group, 0)
    }

    /// A counter at 0 that lives on rank `home` of the group. Collective.
    ///
    /// # Errors
    /// [`Error::Rank`]; as [`World::allocate`](crate::World::allocate).
    #[track_caller]
    pub fn create_on(group: impl Into<Group>, home: usize) -> Result<Self> {
        let group = group.into();
        group.world_rank(home)?;
        // A line of its own: what else lies there would be fought over with every draw.
        let region = group.allocate(64)?;
        let place = region.at(home, 0);
        let counter = SharedCounter { group, region, home, place, ran_out: Cell::new(false) };
        counter.reset()?;
        Ok(counter)
    }

    /// The ranks that draw from it.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Draws the next number.
    ///
    /// # Errors
    /// If the counter was destroyed, or the job has ended; [`Error::Argument`] after 2^62 numbers.
    #[inline]
    #[track_caller]
    pub fn next(&self) -> Result<i64> {
        self.draw(1)
    }

    /// Draws the next `count` numbers at once.
    ///
    /// # Errors
    /// As [`SharedCounter::next`]; [`Error::Argument`] for fewer than one or more than 2^32.
    #[inline]
    #[track_caller]
    pub fn next_chunk(&self, count: i64) -> Result<Range<i64>> {
        if !(1..=MOST).contains(&count) {
            return Err(Error::Argument(format!("{count} numbers were drawn at once: 1 to {MOST} can be")));
        }
        let first = self.draw(count)?;
        Ok(first..first + count)
    }

    #[inline]
    #[track_caller]
    fn draw(&self, count: i64) -> Result<i64> {
        let first = self.group.world().fetch_add(self.place, count)?;
        if first < END { Ok(first) } else { self.give_back(count) }
    }

    #[cold]
    #[track_caller]
    fn give_back(&self, count: i64) -> Result<i64> {
        self.group.world().add(self.place, -count)?;
        Err(Error::Argument(format!("a counter that has handed out {END} numbers has no more: reset it")))
    }

    /// The tasks `0..count`, of which each rank that goes through them draws its share: each is somebody's, once.
    ///
    /// Ranks draw one at a time, or several by [`Tasks::in_chunks`]. An error ends the loop. A loop that was left may be
    /// taken up again by calling this again with the same count; before the counter serves another loop, all ranks reset
    /// it.
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// # let world = armci_core::World::init()?;
    /// let counter = armci_core::SharedCounter::create(&world)?;
    /// let mut sum = 0;
    /// for task in counter.tasks(1000).in_chunks(10) {
    ///     sum += task?;
    /// }
    /// let mut sum = [sum as u64];
    /// world.all_reduce(&mut sum, armci_core::Reduce::Sum)?;
    /// assert_eq!(sum[0], 999 * 1000 / 2);
    /// counter.destroy()?;
    /// # world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Of each draw: as [`SharedCounter::next`]; [`Error::Argument`] if this rank has come to the end of a loop
    /// since the last reset.
    pub fn tasks(&self, count: usize) -> Tasks<'_> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        Tasks { counter: self, count, chunk: 1, drawn: 0..0, at_end: false }
    }

    /// Sets the counter back to 0. Collective: no rank draws before all have reset.
    ///
    /// # Errors
    /// As [`SharedCounter::next`]; the ranks meet all the same.
    #[track_caller]
    pub fn reset(&self) -> Result<()> {
        self.group.meet()?;
        let world = self.group.world();
        let set = if self.group.rank() == self.home {
            world.put_value(0i64, self.place).and_then(|()| world.fence(self.place.rank()))
        } else {
            Ok(())
        };
        self.group.meet()?;
        self.ran_out.set(false);
        set
    }

    /// Frees the counter. Collective.
    ///
    /// # Errors
    /// As [`World::free`](crate::World::free).
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        self.group.world().free(self.region)
    }
}

/// The tasks that this rank draws, of [`SharedCounter::tasks`]; rising, and fused.
#[derive(Debug)]
#[must_use = "tasks are drawn as the iterator is gone through"]
pub struct Tasks<'a> {
    counter: &'a SharedCounter,
    count: i64,
    chunk: i64,
    /// Drawn, and not handed out yet.
    drawn: Range<i64>,
    at_end: bool,
}

impl Tasks<'_> {
    /// Draws so many tasks at a time, for tasks that are short beside a draw. (Those of a chunk that the loop leaves
    /// unfinished are lost: nobody else gets them.)
    pub fn in_chunks(mut self, tasks: usize) -> Self {
        self.chunk = i64::try_from(tasks).unwrap_or(MOST).clamp(1, MOST);
        self
    }

    #[inline]
    #[track_caller]
    fn draw(&mut self) -> Result<Range<i64>> {
        if self.counter.ran_out.get() {
            return Err(Error::Argument(
                "a task loop began on a counter that another has used up: reset it between loops".into(),
            ));
        }
        let drawn = self.counter.next_chunk(self.chunk)?;
        Ok(drawn.start..drawn.end.min(self.count))
    }
}

impl Iterator for Tasks<'_> {
    type Item = Result<usize>;

    #[inline]
    fn next(&mut self) -> Option<Result<usize>> {
        if self.drawn.is_empty() {
            if self.at_end {
                return None;
            }
            match self.draw() {
                Ok(drawn) => self.drawn = drawn,
                Err(error) => {
                    self.at_end = true;
                    return Some(Err(error));
                }
            }
            if self.drawn.is_empty() {
                self.at_end = true;
                self.counter.ran_out.set(true);
                return None;
            }
        }
        self.drawn.next().map(|task| Ok(task as usize))
    }
}

impl FusedIterator for Tasks<'_> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::World;

    #[test]
    fn a_counter_at_its_end_refuses_and_never_wraps() {
        let world = World::init().unwrap();
        let counter = SharedCounter::create(&world).unwrap();
        world.put_value(END - 3, counter.place).unwrap();
        assert_eq!(counter.next_chunk(MOST).unwrap(), END - 3..END - 3 + MOST);
        for _ in 0..1000 {
            assert!(matches!(counter.next_chunk(MOST), Err(Error::Argument(_))));
            assert!(matches!(counter.next(), Err(Error::Argument(_))));
        }
        assert_eq!(world.get_value(counter.place).unwrap(), END - 3 + MOST);
        assert!(matches!(counter.next_chunk(i64::MAX), Err(Error::Argument(_))));
        let mut tasks = counter.tasks(usize::MAX);
        assert!(matches!(tasks.next(), Some(Err(Error::Argument(_)))));
        assert!(tasks.next().is_none());
        counter.reset().unwrap();
        assert_eq!(counter.tasks(3).in_chunks(usize::MAX).map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2]);
        counter.destroy().unwrap();
        world.finalize().unwrap();
    }
}
