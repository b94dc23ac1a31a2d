//! The one switch between real atomics and loom's.
//!
//! Every lock-free structure of this crate takes its atomics, cells, fences and
//! futex from here, so that the loom models (`RUSTFLAGS="--cfg loom" cargo test
//! -p armci-core --lib loom`) run the very code that ranks run.
//!
//! # Safety
//! The one `unsafe impl` states that [`Cell`] may be shared between threads;
//! whoever reaches into it answers for exclusion, as with the cell of `std`.
#![allow(unsafe_code)]

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// An `UnsafeCell` whose accesses loom can watch.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Cell<T>(#[cfg(not(loom))] std::cell::UnsafeCell<T>, #[cfg(loom)] loom::cell::UnsafeCell<T>);

// SAFETY: the cell gives out only raw pointers, by methods that leave the proof of exclusion to the caller.
unsafe impl<T: Send> Sync for Cell<T> {}

impl<T> Cell<T> {
    /// Lends the content for reading, as a raw pointer.
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        #[cfg(not(loom))]
        return read(self.0.get());
        #[cfg(loom)]
        return self.0.with(read);
    }

    /// Lends the content for writing, as a raw pointer.
    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(not(loom))]
        return write(self.0.get());
        #[cfg(loom)]
        return self.0.with_mut(write);
    }

    /// A cell for the models, where no mapped memory provides one.
    #[cfg(loom)]
    pub(crate) fn new(value: T) -> Self {
        Cell(loom::cell::UnsafeCell::new(value))
    }
}

/// Sleeping in the kernel on a word that several processes share.
pub(crate) mod futex {
    use super::AtomicU32;

    /// Sleeps while `word` holds `expected`; may return early.
    #[cfg(not(loom))]
    pub(crate) fn wait(word: &AtomicU32, expected: u32) {
        use rustix::thread::futex;
        // Every error (the word changed, a signal came) means: look again.
        let _ = futex::wait(word, futex::Flags::empty(), expected, None);
    }

    /// Wakes at most `count` sleepers.
    #[cfg(not(loom))]
    pub(crate) fn wake(word: &AtomicU32, count: u32) {
        use rustix::thread::futex;
        let _ = futex::wake(word, futex::Flags::empty(), count);
    }

    /// A lost wake-up shows in the model as a loop that never ends.
    #[cfg(loom)]
    pub(crate) fn wait(word: &AtomicU32, expected: u32) {
        while word.load(super::Ordering::SeqCst) == expected {
            loom::thread::yield_now();
        }
    }

    #[cfg(loom)]
    pub(crate) fn wake(_word: &AtomicU32, _count: u32) {}
}
