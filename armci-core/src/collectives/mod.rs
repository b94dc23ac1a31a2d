//! What ranks do together: barrier, broadcast, all-reduce, gather, exchange.
//!
//! All are collective over the world or a team: each of its ranks calls them in the same order, with the same sizes,
//! from the thread that joined. Reductions combine in rank order on every rank, so all get the same bits. On a node
//! every member writes what it has into its own buffer, all meet, each reads what it needs (`gathering.rs`).

mod reduce;

pub use reduce::{Number, Reduce};

use std::rc::Rc;

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::gathering::{Gathering, Phase, Round};
use crate::node::exchange::EXCHANGE_BYTES;
use crate::watch::{Call, Kind};
use crate::world::World;

/// A reduction of at least this many bytes is divided among its ranks, if they are several.
const DIVIDE_BYTES: usize = 2048;
const DIVIDE_RANKS: usize = 4;

impl World {
    /// All ranks, for a collective call.
    #[inline]
    pub(crate) fn collective(&self) -> Result<Collective<'_>> {
        let gathering = &self.primary()?.everyone;
        gathering.ready()?;
        Ok(Collective { world: self, gathering })
    }
}

/// A gathering, and the context of the thread that is its member.
#[derive(Clone, Copy)]
pub(crate) struct Collective<'a> {
    pub(crate) world: &'a World,
    pub(crate) gathering: &'a Rc<Gathering>,
}

impl<'a> Collective<'a> {
    /// Runs a call of this kind, and tells who watches.
    #[inline]
    #[track_caller]
    pub(crate) fn call<T>(self, kind: Kind, bytes: usize, run: impl FnOnce(Self) -> Result<T>) -> Result<T> {
        if self.world.is_plain() {
            return run(self);
        }
        self.world.watched(&Call::of_all(kind, None, bytes), || run(self))
    }

    /// Meets all; nothing else.
    #[inline]
    pub(crate) fn meet(self) {
        self.checked(|| self.gathering.meet(self.world.origin()));
    }

    /// Shows `mine` to all and meets them.
    #[inline]
    fn round(self, mine: &[u8]) -> Round<'a> {
        let gathering = self.gathering;
        self.checked(|| gathering.round(self.world.origin(), mine))
    }

    /// Meets all in `meet`, and tells the checker so.
    #[inline]
    fn checked<R>(self, meet: impl FnOnce() -> R) -> R {
        let number = self.world.check_arrive(self.gathering);
        let met = meet();
        self.world.check_leave(self.gathering, number);
        met
    }

    #[inline]
    pub(crate) fn barrier(self) -> Result<()> {
        // Even a rank with something to report must meet the others.
        let fenced = self.world.fence_all_now();
        self.meet();
        fenced
    }

    /// Arrives at a barrier that others may still have to come to.
    pub(crate) fn begin(self) -> Arrival {
        let Collective { world, gathering } = self;
        let fenced = world.fence_all_now();
        let meeting = world.check_arrive(gathering);
        let phase = gathering.begin(world.origin());
        Arrival { world: world.clone(), gathering: gathering.clone(), phase, ended: false, fenced, meeting }
    }

    pub(crate) fn broadcast<T: Pod>(self, root: usize, values: &mut [T]) -> Result<()> {
        self.gathering.check(root)?;
        let is_root = root == self.gathering.me();
        for piece in bytemuck::cast_slice_mut::<T, u8>(values).chunks_mut(EXCHANGE_BYTES) {
            let round = self.round(if is_root { &*piece } else { &[] });
            if !is_root {
                round.read(root, 0, piece);
            }
        }
        Ok(())
    }

    pub(crate) fn all_reduce<T: Number>(self, values: &mut [T], reduce: Reduce) -> Result<()> {
        reduce::check::<T>(reduce)?;
        // A few numbers, the common case, need no memory from the allocator.
        let (mut few, mut many);
        let theirs: &mut [T] = if values.len() <= 8 {
            few = [T::zeroed(); 8];
            &mut few
        } else {
            many = vec![T::zeroed(); values.len().min(EXCHANGE_BYTES / size_of::<T>())];
            &mut many
        };
        for piece in values.chunks_mut(theirs.len()) {
            let theirs = &mut theirs[..piece.len()];
            if size_of_val(piece) >= DIVIDE_BYTES && self.gathering.len() >= DIVIDE_RANKS {
                self.reduce_divided(piece, theirs, reduce);
            } else {
                self.reduce_whole(piece, 0, theirs, reduce);
            }
        }
        Ok(())
    }

    /// Shows `values`, and combines those of all in the range of `theirs` that begins at element `from`, into the same
    /// range of `values`.
    fn reduce_whole<T: Number>(self, values: &mut [T], from: usize, theirs: &mut [T], reduce: Reduce) {
        let round = self.round(bytemuck::cast_slice(values));
        let result = &mut values[from..from + theirs.len()];
        for member in 0..self.gathering.len() {
            round.read(member, from * size_of::<T>(), bytemuck::cast_slice_mut(theirs));
            for (value, other) in result.iter_mut().zip(&*theirs) {
                *value = if member == 0 { *other } else { value.combine(reduce, *other) };
            }
        }
        let changes_one = matches!(reduce, Reduce::AbsMin | Reduce::AbsMax | Reduce::All | Reduce::Any);
        if self.gathering.len() == 1 && changes_one {
            // Nothing was combined: the sign, or a number other than 0 and 1, is still there.
            result.iter_mut().for_each(|value| *value = value.combine(reduce, *value));
        }
    }

    /// The same for all values: each rank combines its share of them, and all show each other the results.
    fn reduce_divided<T: Number>(self, values: &mut [T], theirs: &mut [T], reduce: Reduce) {
        let (ranks, me) = (self.gathering.len(), self.gathering.me());
        let share = values.len().div_ceil(ranks);
        let of = |member: usize| (member * share).min(values.len())..((member + 1) * share).min(values.len());
        let shares: Vec<_> = (0..ranks).map(of).collect();
        let mine = shares[me].clone();
        self.reduce_whole(values, mine.start, &mut theirs[..mine.len()], reduce);
        let round = self.round(bytemuck::cast_slice(&values[mine]));
        for (member, share) in shares.into_iter().enumerate().filter(|(member, _)| *member != me) {
            round.read(member, 0, bytemuck::cast_slice_mut(&mut values[share]));
        }
    }

    /// Whether all have the same digest; all meet.
    #[inline]
    pub(crate) fn agree(self, digest: u64) -> bool {
        self.checked(|| self.gathering.agree(self.world.origin(), digest))
    }

    pub(crate) fn all_gather<T: Pod>(self, mine: &[T]) -> Vec<T> {
        let mut all = vec![T::zeroed(); mine.len() * self.gathering.len()];
        let bytes = bytemuck::cast_slice_mut::<T, u8>(&mut all);
        let mine: &[u8] = bytemuck::cast_slice(mine);
        for (index, piece) in mine.chunks(EXCHANGE_BYTES).enumerate() {
            let round = self.round(piece);
            for member in 0..self.gathering.len() {
                let start = member * mine.len() + index * EXCHANGE_BYTES;
                round.read(member, 0, &mut bytes[start..start + piece.len()]);
            }
        }
        all
    }

    pub(crate) fn exchange<T: Pod>(self, mine: &[T]) -> Result<Vec<T>> {
        let (ranks, me) = (self.gathering.len(), self.gathering.me());
        if !mine.len().is_multiple_of(ranks) {
            let len = mine.len();
            return Err(Error::Argument(format!(
                "{len} elements were to be exchanged by {ranks} ranks in equal shares"
            )));
        }
        let mut all = vec![T::zeroed(); mine.len()];
        let to = bytemuck::cast_slice_mut::<T, u8>(&mut all);
        let from: &[u8] = bytemuck::cast_slice(mine);
        let block = from.len() / ranks;
        // A round shows a piece for every member.
        let piece = (EXCHANGE_BYTES / ranks).clamp(1, block.max(1));
        let mut shown = Vec::with_capacity(piece * ranks);
        for start in (0..block).step_by(piece) {
            let len = piece.min(block - start);
            shown.clear();
            (0..ranks).for_each(|member| shown.extend_from_slice(&from[member * block + start..][..len]));
            let round = self.round(&shown);
            for member in 0..ranks {
                round.read(member, me * len, &mut to[member * block + start..][..len]);
            }
        }
        Ok(all)
    }
}

/// A barrier that this rank has arrived at; see [`World::begin_barrier`].
#[derive(Debug)]
#[must_use = "whoever arrives at a barrier has to wait for the others some time"]
pub struct Arrival {
    world: World,
    gathering: Rc<Gathering>,
    /// What is to end.
    phase: Phase,
    /// It is known that all are here, and the ranks are free for other calls.
    ended: bool,
    fenced: Result<()>,
    /// What the checker calls it.
    meeting: u64,
}

impl Arrival {
    /// Whether all have arrived. Serves this rank's messages, so that who asks again and again holds nobody up.
    pub fn test(&mut self) -> bool {
        if self.ended {
            return true;
        }
        self.world.origin().serve();
        if self.gathering.is_over(self.phase) {
            self.end();
        }
        self.ended
    }

    /// Waits, unless it is known that all have arrived.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.gathering.end(self.world.origin(), self.phase);
            self.world.check_leave(&self.gathering, self.meeting);
        }
    }

    /// Waits until all have arrived. (Dropping it does the same, but hears of no error.)
    ///
    /// # Errors
    /// As [`World::barrier`].
    pub fn wait(mut self) -> Result<()> {
        std::mem::replace(&mut self.fenced, Ok(()))
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.end();
    }
}

/// The calls, which the world and teams have alike.
macro_rules! faces {
    ($face:ty) => {
        impl $face {
            /// Waits until all ranks are here and everything any of them wrote is in place (`ARMCI_Barrier`).
            /// Collective.
            ///
            /// What a rank's other threads wrote is in place if they have fenced.
            ///
            /// # Errors
            /// [`Error::Refused`](crate::Error::Refused) if a put or accumulate by message was refused since the last
            /// fence.
            #[inline]
            #[track_caller]
            pub fn barrier(&self) -> Result<()> {
                self.collective()?.call(Kind::Barrier, 0, Collective::barrier)
            }

            /// Begins a barrier: completes everything this rank wrote, says that it is here, and goes on; all are here
            /// once [`Arrival::test`] says so, or [`Arrival::wait`] returns. Collective.
            ///
            /// No other collective call over the same ranks may come in between: it is refused, to all alike. (That all
            /// have arrived, a rank knows once it has asked, waited, or dropped the [`Arrival`].)
            ///
            /// # Errors
            /// If this rank has left the job. What [`barrier`](Self::barrier) would report, [`Arrival::wait`] does.
            #[track_caller]
            pub fn begin_barrier(&self) -> Result<Arrival> {
                self.collective()?.call(Kind::Barrier, 0, |all| Ok(all.begin()))
            }

            /// Waits until all ranks are here, and completes nothing (`armci_msg_barrier`). Collective.
            ///
            /// # Errors
            /// If this rank has left the job.
            #[inline]
            #[track_caller]
            pub fn synchronize(&self) -> Result<()> {
                self.collective()?.call(Kind::Barrier, 0, |all| {
                    all.meet();
                    Ok(())
                })
            }

            /// Gives every rank the values that rank `root` of these has (`armci_msg_brdcst`). Collective.
            ///
            /// # Errors
            /// [`Error::Rank`](crate::Error::Rank) if there is no such root.
            #[track_caller]
            pub fn broadcast<T: Pod>(&self, root: usize, values: &mut [T]) -> Result<()> {
                let bytes = size_of_val(values);
                self.collective()?.call(Kind::Collective, bytes, |all| all.broadcast(root, values))
            }

            /// Combines the values of all ranks, element by element, and gives all the result (`armci_msg_gop`).
            /// Collective.
            ///
            /// # Errors
            /// [`Error::Argument`](crate::Error::Argument) if these numbers cannot be combined so.
            #[track_caller]
            pub fn all_reduce<T: Number>(&self, values: &mut [T], reduce: Reduce) -> Result<()> {
                let bytes = size_of_val(values);
                self.collective()?.call(Kind::Collective, bytes, |all| all.all_reduce(values, reduce))
            }

            /// Gives every rank the values of all, in rank order; all have equally many. Collective.
            ///
            /// # Errors
            /// If this rank has left the job.
            #[track_caller]
            pub fn all_gather<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
                self.collective()?.call(Kind::Collective, size_of_val(mine), |all| Ok(all.all_gather(mine)))
            }

            /// Gives each rank its share of everybody's values: `mine` has one block for each rank, in rank order, and
            /// so has the result from each rank. Collective.
            ///
            /// # Errors
            /// [`Error::Argument`](crate::Error::Argument) if `mine` does not divide into equal blocks.
            #[track_caller]
            pub fn exchange<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
                self.collective()?.call(Kind::Collective, size_of_val(mine), |all| all.exchange(mine))
            }
        }
    };
}
pub(crate) use faces;
faces!(World);
