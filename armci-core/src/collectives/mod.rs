//! What all ranks do together: barrier, broadcast, all-reduce, gather.
//!
//! All are collective: every rank calls them in the same order, with the same
//! sizes. Reductions combine in rank order on every rank, so all get the same bits.
//!
//! # Safety
//! EXCHANGE-ROUND (see `node/exchange.rs`): rounds are made by `World::round` only, which keeps their order.
#![allow(unsafe_code)]

use bytemuck::Pod;

use crate::context::Primary;
use crate::error::{Error, Result};
use crate::node::exchange::EXCHANGE_BYTES;
use crate::world::World;

/// How a reduction combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduce {
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// A number that reductions combine: `i32`, `i64`, `u64`, `f32`, `f64`.
pub trait Number: Pod + sealed::Sealed {
    /// `self` and `other`, combined.
    fn combine(self, reduce: Reduce, other: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty: $add:ident, $mul:ident);* $(;)?) => {$(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            #[inline]
            fn combine(self, reduce: Reduce, other: Self) -> Self {
                match reduce {
                    Reduce::Sum => self.$add(other),
                    Reduce::Product => self.$mul(other),
                    Reduce::Min => self.min(other),
                    Reduce::Max => self.max(other),
                }
            }
        }
    )*};
}
use std::ops::{Add, Mul};
numbers! {
    i32: wrapping_add, wrapping_mul;
    i64: wrapping_add, wrapping_mul;
    u64: wrapping_add, wrapping_mul;
    f32: add, mul;
    f64: add, mul;
}

impl World {
    /// Shows `mine` to all ranks and meets them; returns the round to read the others' buffers with.
    fn round(&self, primary: &Primary, mine: &[u8]) -> u64 {
        let round = primary.rounds.replace(primary.rounds.get() + 1);
        // SAFETY: EXCHANGE-ROUND: our own buffers, and this round's barrier comes next.
        unsafe { self.exchange_of(self.rank()).write(round, mine) };
        self.meet();
        round
    }

    /// Waits until all ranks are here and everything any of them wrote is in place (`ARMCI_Barrier`). Collective.
    ///
    /// # Errors
    /// [`Error::Refused`] if a put or accumulate by message was refused since the last fence.
    pub fn barrier(&self) -> Result<()> {
        self.primary()?;
        // Even a rank with something to report must meet the others.
        let fenced = self.fence_all();
        self.meet();
        fenced
    }

    /// Waits until all ranks are here, and completes nothing (`armci_msg_barrier`). Collective.
    ///
    /// # Errors
    /// If this rank has left the job.
    pub fn synchronize(&self) -> Result<()> {
        self.primary()?;
        self.meet();
        Ok(())
    }

    /// Gives every rank the values that `root` has (`armci_msg_brdcst`). Collective.
    ///
    /// # Errors
    /// [`Error::Rank`] if there is no such root.
    pub fn broadcast<T: Pod>(&self, root: usize, values: &mut [T]) -> Result<()> {
        let primary = self.primary()?;
        if root >= self.size() {
            return Err(Error::Rank { rank: root, size: self.size() });
        }
        for piece in bytemuck::cast_slice_mut::<T, u8>(values).chunks_mut(EXCHANGE_BYTES) {
            let mine = if root == self.rank() { &*piece } else { &[] };
            let round = self.round(primary, mine);
            if root != self.rank() {
                // SAFETY: EXCHANGE-ROUND: `round` has passed this round's barrier.
                unsafe { self.exchange_of(root).read(round, piece) };
            }
        }
        Ok(())
    }

    /// Combines the values of all ranks, element by element, and gives all the result (`armci_msg_gop`). Collective.
    ///
    /// # Errors
    /// If the job has ended.
    pub fn all_reduce<T: Number>(&self, values: &mut [T], reduce: Reduce) -> Result<()> {
        let primary = self.primary()?;
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
            let round = self.round(primary, bytemuck::cast_slice(piece));
            let theirs = &mut theirs[..piece.len()];
            for rank in 0..self.size() {
                // SAFETY: EXCHANGE-ROUND: `round` has passed this round's barrier.
                unsafe { self.exchange_of(rank).read(round, bytemuck::cast_slice_mut(theirs)) };
                for (value, other) in piece.iter_mut().zip(&*theirs) {
                    *value = if rank == 0 { *other } else { value.combine(reduce, *other) };
                }
            }
        }
        Ok(())
    }

    /// Gives every rank the values of every rank, in rank order. Collective; all bring the same number.
    ///
    /// # Errors
    /// If the job has ended.
    pub fn all_gather<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
        let primary = self.primary()?;
        let mut all = vec![T::zeroed(); mine.len() * self.size()];
        let bytes = bytemuck::cast_slice_mut::<T, u8>(&mut all);
        let mine: &[u8] = bytemuck::cast_slice(mine);
        for (index, piece) in mine.chunks(EXCHANGE_BYTES).enumerate() {
            let round = self.round(primary, piece);
            for rank in 0..self.size() {
                let start = rank * mine.len() + index * EXCHANGE_BYTES;
                let to = &mut bytes[start..start + piece.len()];
                // SAFETY: EXCHANGE-ROUND: `round` has passed this round's barrier.
                unsafe { self.exchange_of(rank).read(round, to) };
            }
        }
        Ok(all)
    }
}
