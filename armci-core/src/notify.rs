//! Put-with-flag, and waiting for a flag.
//!
//! [`World::put_notify`] puts data and then sets a flag beside it;
//! [`World::wait_until`] sleeps, if need be, until a flag of this rank says what
//! it is to say. Who finds the flag finds the data. Nothing is said about the
//! order in which flags set by *different* ranks are seen.
//!
//! # Protocol
//! A flag is one word. It is set by [`Transport::signal`]: an atomic store with
//! release, then a ring of the main bell of the rank it lies on, which is where
//! that rank's waits sleep. By remote memory access the origin does both itself,
//! so nobody serves anything; by message, whoever serves the target does.
//!
//! *Data before flag.* What this rank wrote by remote memory access is written
//! when its call returns, so the store with release comes after it; by message
//! the inbox releases it to the server, whose store comes after that. What it
//! wrote by messages is waited for before a flag is set by remote memory access,
//! whichever region it went to. A flag by message waits for nothing: messages of
//! one rank to one target are served in the order sent, each to its end. The
//! waiter reads the flag with acquire, so it has everything before it.
//!
//! *No lost wake-up.* The store precedes the ring, and a sleeper looks at the
//! flag once more after it has announced its sleep: the bell's protocol (see
//! `sync/bell.rs`) with the flag as what is published.
//!
//! # Safety
//! REGION-LIVE: what [`World::resolve`] returns lies inside a live region, so it
//! is mapped. WINDOW-MAPPED (see `memory/window.rs`): what a region occupied stays
//! mapped after the region was freed, as long as the world exists. LENT (see `allocation/registered.rs`): memory that
//! was registered is looked at only while its name is held back from being given up.
#![allow(unsafe_code)]

use std::panic::Location;
use std::sync::atomic::{AtomicI64, Ordering};

use bytemuck::Pod;

use crate::am::builtin::{self, SignalArgs};
use crate::am::origin::outstanding;
use crate::consistency::Access;
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::transport::{Outgoing, Transport};
use crate::watch::{Extent, Kind};
use crate::world::World;

/// Bytes of a flag.
const FLAG: usize = size_of::<i64>();

impl World {
    /// Copies `source` to `target`, then sets `flag`, on the same rank, to `value` and wakes that rank if it waits in
    /// [`World::wait_until`] (`ARMCI_Put_flag`).
    ///
    /// Who finds the flag set finds the data in place, and so everything else that this rank put to or accumulated at
    /// that rank before, whichever paths they took. On return `source` may be reused.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let (data, flags) = (world.allocate(8 * 100)?, world.allocate(8)?);
    /// let right = (world.rank() + 1) % world.size();
    /// world.put_value(0i64, flags.at(world.rank(), 0))?;
    /// world.barrier()?;
    ///
    /// world.put_notify(&[2.5; 100], data.at(right, 0), flags.at(right, 0), 1)?;
    /// // The left neighbour does the same here.
    /// world.wait_value(flags.at(world.rank(), 0), 1)?;
    /// assert_eq!(world.get_value::<f64>(data.at(world.rank(), 99))?, 2.5);
    /// # world.free(flags)?;
    /// # world.free(data)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`World::put`]; if the flag does not exist, is not aligned, or lies on another rank than `target`; nothing
    /// was written then. If an earlier put or accumulate to that rank was refused and this is found out here, the data
    /// was written and the flag was not.
    #[track_caller]
    pub fn put_notify<T: Pod>(
        &self,
        source: &[T],
        target: GlobalPtr<T>,
        flag: GlobalPtr<i64>,
        value: i64,
    ) -> Result<()> {
        if target.rank != flag.rank {
            return Err(Error::Argument(format!(
                "data was put to rank {} with a flag on rank {}: both must lie on one rank",
                target.rank, flag.rank
            )));
        }
        self.resolve(flag, FLAG as u64)?;
        self.aligned(flag, FLAG, "a flag")?;
        self.put(source, target)?;
        self.notify(flag, value)
    }

    /// Sets `flag` to `value` and wakes its rank if it waits in [`World::wait_until`]; what this rank put to and
    /// accumulated at that rank before is in place before the flag.
    ///
    /// # Errors
    /// As [`World::put_notify`].
    #[track_caller]
    pub fn notify(&self, flag: GlobalPtr<i64>, value: i64) -> Result<()> {
        if self.is_plain() {
            self.notify_now(flag, value, Location::caller())
        } else {
            self.notify_watched(flag, value)
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn notify_watched(&self, flag: GlobalPtr<i64>, value: i64) -> Result<()> {
        let call = self.call_on(Kind::Notify, flag.cast(), FLAG, Extent::Bytes);
        self.watched(&call, || self.notify_now(flag, value, call.site))
    }

    #[inline]
    fn notify_now(&self, flag: GlobalPtr<i64>, value: i64, at: &Location<'_>) -> Result<()> {
        self.resolve(flag, FLAG as u64)?;
        if self.raises_directly(flag) {
            self.fence(flag.rank())?;
        }
        // Who finds the flag finds the data, on either path.
        self.check_fence(Some(flag.rank()));
        self.raise_now(flag, value, at)
    }

    /// Whether a flag is set by remote memory access.
    fn raises_directly(&self, flag: GlobalPtr<i64>) -> bool {
        flag.region.index < self.direct().signal.get() && self.node().slot_of(flag.rank()).is_some()
    }

    /// As [`World::notify`], but what went by messages may still be under way.
    #[track_caller]
    pub(crate) fn raise(&self, flag: GlobalPtr<i64>, value: i64) -> Result<()> {
        if self.is_plain() { self.raise_now(flag, value, Location::caller()) } else { self.raise_watched(flag, value) }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn raise_watched(&self, flag: GlobalPtr<i64>, value: i64) -> Result<()> {
        let call = self.call_on(Kind::Notify, flag.cast(), FLAG, Extent::Bytes);
        self.watched(&call, || self.raise_now(flag, value, call.site))
    }

    fn raise_now(&self, flag: GlobalPtr<i64>, value: i64, at: &Location<'_>) -> Result<()> {
        let to = self.resolve(flag, FLAG as u64)?;
        self.aligned(flag, FLAG, "a flag")?;
        self.count().put(FLAG);
        self.check_notify(flag, at);
        if self.raises_directly(flag) {
            self.origin().order(flag.rank(), flag.region, Access::Put);
            // SAFETY: REGION-LIVE, aligned.
            unsafe { self.transport().signal(to, value as u64) };
        } else {
            self.transport().fence();
            let origin = self.origin();
            let slot = origin.claim();
            let arguments = SignalArgs { region: flag.region.to_bits(), offset: flag.offset, value: value as u64 };
            let inline = [bytemuck::bytes_of(&arguments), &[]];
            let message = Outgoing { handler: builtin::SIGNAL, slot, inline, staged_len: 0 };
            origin.post(&message, outstanding(flag.rank(), flag.region, Access::Put), true);
        }
        Ok(())
    }

    /// Waits until `holds` says yes to what `flag`, a word of this rank, holds, and returns that.
    ///
    /// Serves this rank's messages meanwhile, and sleeps if it takes long. It is woken by [`World::notify`] and
    /// [`World::put_notify`], and by nothing else for certain: a word that a plain put or a read-modify-write changes
    /// may be found changed, or slept over for ever. `holds` may be asked any number of times, must be quick, and must
    /// not communicate.
    ///
    /// # Errors
    /// If the flag is not a word of this rank; [`Error::NoRegion`], also if it lies in registered memory that is taken
    /// back meanwhile; [`Error::Bounds`], [`Error::Misaligned`].
    #[track_caller]
    pub fn wait_until(&self, flag: GlobalPtr<i64>, holds: impl FnMut(i64) -> bool) -> Result<i64> {
        if self.is_plain() {
            self.wait_until_now(flag, holds, Location::caller())
        } else {
            self.wait_until_watched(flag, holds)
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_until_watched(&self, flag: GlobalPtr<i64>, holds: impl FnMut(i64) -> bool) -> Result<i64> {
        let call = self.call_on(Kind::Wait, flag.cast(), 0, Extent::Bytes);
        self.watched(&call, || self.wait_until_now(flag, holds, call.site))
    }

    fn wait_until_now(
        &self,
        flag: GlobalPtr<i64>,
        mut holds: impl FnMut(i64) -> bool,
        at: &Location<'_>,
    ) -> Result<i64> {
        let word = self.own_place(flag)?;
        // A put of our own by message comes first.
        self.origin().order(self.rank(), flag.region, Access::Get);
        // SAFETY: REGION-LIVE, aligned; mapped by WINDOW-MAPPED, or while this runs, by LENT; whoever changes a flag
        // while it is waited for does so by atomics. Acquire: pairs with the release of `signal`.
        let look = || unsafe { AtomicI64::from_ptr(word) }.load(Ordering::Acquire);
        let in_window = !flag.region.is_registered();
        let mut value = Some(0);
        self.origin().wait(|| {
            value = if in_window { Some(look()) } else { self.private().while_lent(flag.region, look) };
            value.is_none_or(&mut holds)
        });
        self.check_wait(flag, at);
        value.ok_or(Error::NoRegion { region: flag.region, rank: self.rank() })
    }

    /// Waits until `flag`, a word of this rank, holds `value`; as [`World::wait_until`].
    ///
    /// # Errors
    /// As [`World::wait_until`].
    #[track_caller]
    pub fn wait_value(&self, flag: GlobalPtr<i64>, value: i64) -> Result<()> {
        self.wait_until(flag, |found| found == value).map(drop)
    }

    /// A word of this rank in the window, to be read and written in place.
    pub(crate) fn own_word(&self, place: GlobalPtr<i64>) -> Result<&AtomicI64> {
        let word = self.own_place(place)?;
        if place.region.is_registered() {
            return Err(Error::NoRegion { region: place.region, rank: self.rank() });
        }
        // SAFETY: REGION-LIVE, aligned, and WINDOW-MAPPED for as long as the borrow of the world lasts; whoever
        // changes a flag while it is waited for does so by atomics.
        Ok(unsafe { AtomicI64::from_ptr(word) })
    }

    /// Where a word of this rank lies.
    fn own_place(&self, place: GlobalPtr<i64>) -> Result<*mut i64> {
        let at = self.resolve(place, FLAG as u64)?;
        if place.rank() != self.rank() {
            return Err(Error::Argument(format!(
                "rank {} was to wait for a flag on rank {}: only a word of its own can be waited for",
                self.rank(),
                place.rank
            )));
        }
        self.aligned(place, FLAG, "a flag")?;
        let word: *mut i64 = self.node().window().address(at.slot, at.offset).cast();
        // Registered memory has the alignment of what it holds, whatever that of its offsets.
        if !word.is_aligned() {
            let GlobalPtr { region, offset, .. } = place;
            return Err(Error::Misaligned { region, rank: self.rank(), offset, align: FLAG, what: "a flag" });
        }
        Ok(word)
    }
}
