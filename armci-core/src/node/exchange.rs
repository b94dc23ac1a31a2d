//! The exchange: every rank shows a few bytes, every rank reads them all.
//!
//! The step that all collectives on a node are made of. Each rank writes its
//! contribution into its own buffer, all meet at the node's barrier, each reads
//! what it needs of the others.
//!
//! # Protocol
//! Two buffers, used in turn. A rank writes buffer `k % 2` for round `k` after
//! it left the barrier of round `k - 1`, which every rank entered only after it
//! had read round `k - 2`: the same buffer is free again.
//!
//! # Safety
//! EXCHANGE-ROUND: between writing and the round's barrier only the owner
//! touches a buffer; after it, and until the next round's barrier, all only read it.
#![allow(unsafe_code)]

use crate::copy::copy;
use crate::primitive::Cell;

/// Bytes a rank contributes to one round at most.
pub(crate) const EXCHANGE_BYTES: usize = 16 << 10;
/// Bytes of a buffer: between nodes, lengths travel too.
pub(crate) const BUFFER_BYTES: usize = EXCHANGE_BYTES + 64;

/// A rank's two buffers.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct ExchangeBuffers([Cell<[u8; BUFFER_BYTES]>; 2]);

impl ExchangeBuffers {
    /// Writes this rank's contribution to a round.
    ///
    /// # Safety
    /// EXCHANGE-ROUND: these are the caller's own buffers, and it has not yet arrived at this round's barrier.
    pub(crate) unsafe fn write(&self, round: u64, bytes: &[u8]) {
        assert!(bytes.len() <= BUFFER_BYTES);
        self.0[(round % 2) as usize].with_mut(|buffer| {
            // SAFETY: EXCHANGE-ROUND; the length was checked.
            unsafe { copy(buffer.cast::<u8>(), bytes.as_ptr(), bytes.len()) };
        });
    }

    /// Copies bytes of a contribution to a round, from byte `from` on.
    ///
    /// # Safety
    /// EXCHANGE-ROUND: the caller has left this round's barrier and not arrived at the next one's.
    pub(crate) unsafe fn read(&self, round: u64, from: usize, to: &mut [u8]) {
        assert!(from.checked_add(to.len()).is_some_and(|end| end <= BUFFER_BYTES));
        self.0[(round % 2) as usize].with(|buffer| {
            // SAFETY: EXCHANGE-ROUND; the length was checked. Ranks that break the round (by unequal calls) get
            // wrong bytes, since these are only copied.
            unsafe { copy(to.as_mut_ptr(), buffer.cast::<u8>().add(from), to.len()) };
        });
    }
}
