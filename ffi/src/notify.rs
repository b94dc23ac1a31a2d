//! One rank tells another that what it wrote there is in place.
//!
//! A notice is an empty message behind a fence; it counts, so that none is lost and each is waited for once.
//!
//! # Safety
//! C-WORD: an `int` may be written at `pval`, unless that is NULL.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::abi::c_functions;
use crate::arguments::rank;
use crate::member::{member, primary};

/// The tag of notices, which no program's message has: those are not negative.
const TAG: i32 = i32::MIN;

/// How many were sent to each rank, and how many of each were waited for.
#[derive(Default)]
pub(crate) struct Notices {
    sent: RefCell<BTreeMap<usize, c_int>>,
    heard: RefCell<BTreeMap<usize, c_int>>,
}

fn count(of: &RefCell<BTreeMap<usize, c_int>>, rank: usize) -> c_int {
    let mut of = of.borrow_mut();
    let count = of.entry(rank).or_default();
    *count = count.wrapping_add(1);
    *count
}

c_functions! {
    /// Completes at `proc` what this rank wrote there, and tells it; returns how often it has been told so.
    answer fn armci_notify = parmci_notify(proc: c_int) -> c_int = || {
        let (world, primary) = primary()?;
        let rank = rank(world, proc)?;
        member()?.aggregates.send();
        world.fence(rank)?;
        world.send_to::<u8>(rank, TAG, &[])?;
        Ok(count(&primary.notices.sent, rank))
    };

    /// Waits for the next notice of `proc`, and says at `pval` which it was.
    code fn armci_notify_wait = parmci_notify_wait(proc: c_int, pval: *mut c_int) -> c_int = || {
        let (world, primary) = primary()?;
        let rank = rank(world, proc)?;
        world.receive::<u8>(rank, TAG, &mut [])?;
        let heard = count(&primary.notices.heard, rank);
        if !pval.is_null() {
            // SAFETY: C-WORD.
            unsafe { pval.write(heard) };
        }
        Ok(())
    };
}
