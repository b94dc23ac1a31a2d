//! Moving bytes between mapped memories: the data path of put and get on a node.
//!
//! | | |
//! |---|---|
//! | [`copy`] | one contiguous block, any size, any alignment |
//! | [`copy_overlapping`] | the same, for a put to oneself |
//! | [`copy_patch`] | a patch of rows, up to [`MAX_LEVELS`] stride levels |
//! | [`Patch`] | the shape of such a patch, and the walk over it for whoever does something else with its rows |
//!
//! What is guaranteed: no byte outside the target range is written and none outside the source range is read; when
//! both addresses and the length are multiples of 8 (of 4), every aligned word of 8 (of 4) bytes arrives whole, so
//! that a concurrent reader sees the old number or the new one, never a mixture; and whatever was stored past the
//! caches is ordered before the function returns (`sfence`). What is not: nothing is said about the order in which
//! the words of one copy arrive, nor is a copy an acquire or a release of anything.
//!
//! Words of their own are moved by relaxed atomics. Larger blocks are moved by vector and string instructions,
//! which the architectures do not promise to be made of whole aligned words, but every x86-64 and ARMv8 processor
//! moves them so.
//!
//! # Safety
//! **BOTH-MAPPED**: source and target range stay mapped, readable and writable, while the call runs; the caller
//! holds them alive. **RACY-BYTES**: other ranks may write either range meanwhile. So both are only ever raw
//! pointers, each byte is moved as opaque bits and no decision depends on one.
#![allow(unsafe_code)]

mod contiguous;
pub(crate) mod isa;
mod lane;
mod patch;
mod rows;
mod strided;

pub use patch::{MAX_LEVELS, Patch};
pub use strided::copy_patch;

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Copies `len` bytes from `src` to `dst`, which must not overlap.
///
/// Up to 16 bytes the copy is inlined, and a word aligned on both sides is one load and one store. If the ranges
/// overlap, the target holds some mixture of old and new source bytes afterwards, and nothing worse happens:
/// [`copy_overlapping`] is for that.
///
/// # Safety
/// BOTH-MAPPED: `src` has `len` readable bytes and `dst` has `len` writable bytes.
#[inline(always)]
pub unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: BOTH-MAPPED is the caller's, and each arm moves exactly `len` bytes.
    unsafe {
        match len {
            8 => move_8(dst, src),
            17.. => contiguous::copy_long(dst, src, len, len),
            16 => {
                move_8(dst, src);
                move_8(dst.add(8), src.add(8));
            }
            4 => move_4(dst, src),
            0 => {}
            _ => copy_odd(dst, src, len),
        }
    }
}

/// Copies `len` bytes from `src` to `dst`, which may overlap: as if through a buffer between them.
///
/// # Safety
/// BOTH-MAPPED: `src` has `len` readable bytes and `dst` has `len` writable bytes.
#[inline]
pub unsafe fn copy_overlapping(dst: *mut u8, src: *const u8, len: usize) {
    let apart = (dst as usize).abs_diff(src as usize) >= len;
    // SAFETY: BOTH-MAPPED is the caller's.
    unsafe {
        if apart {
            copy(dst, src, len);
        } else {
            std::ptr::copy(src, dst, len);
        }
    }
}

/// The lengths below 16 that are no power of two, or too rare for the inlined path: two moves that may share bytes.
///
/// # Safety
/// BOTH-MAPPED, and `len` is 1 to 15.
#[inline]
unsafe fn copy_odd(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!((1..16).contains(&len));
    // SAFETY: BOTH-MAPPED; the second move of each arm ends at `len` and begins at or after 0.
    unsafe {
        match len {
            8.. => {
                move_8(dst, src);
                move_8(dst.add(len - 8), src.add(len - 8));
            }
            4.. => {
                move_4(dst, src);
                move_4(dst.add(len - 4), src.add(len - 4));
            }
            _ => {
                if len >= 2 {
                    move_2(dst, src);
                }
                dst.add(len - 1).write_volatile(src.add(len - 1).read_volatile());
            }
        }
    }
}

macro_rules! move_word {
    ($name:ident, $word:ty, $atomic:ty) => {
        /// Moves one word; as one atomic load and store if both sides are aligned.
        ///
        /// # Safety
        /// BOTH-MAPPED for the size of the word.
        #[inline(always)]
        unsafe fn $name(dst: *mut u8, src: *const u8) {
            let (to, from) = (dst.cast::<$word>(), src.cast::<$word>());
            // SAFETY: BOTH-MAPPED; RACY-BYTES is what the atomics are for, and they are used only where aligned.
            unsafe {
                if to.is_aligned() && from.is_aligned() {
                    let word = <$atomic>::from_ptr(from.cast_mut()).load(Relaxed);
                    <$atomic>::from_ptr(to).store(word, Relaxed);
                } else {
                    to.write_unaligned(from.read_unaligned());
                }
            }
        }
    };
}

move_word!(move_2, u16, AtomicU16);
move_word!(move_4, u32, AtomicU32);
move_word!(move_8, u64, AtomicU64);

#[cfg(test)]
mod tests;
