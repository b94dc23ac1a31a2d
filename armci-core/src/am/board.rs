//! The board: what ranks that are about to make a team have told this one.
//!
//! Each notice stands under a key that all of them compute alike, and is taken down once all have come. (What is told
//! is where a member's block lies; see `team.rs`.)

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use super::handlers::{Delivery, HandlerId, Reply};
use super::service::Service;
use crate::node::message::STAGING_BYTES;

/// Where a member's block lies in its slot, as messages tell it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct Told {
    pub(crate) member: u64,
    /// [`NO_MEMORY`] if there is none.
    pub(crate) offset: u64,
}

/// Told in place of an offset.
pub(crate) const NO_MEMORY: u64 = u64::MAX;
/// Members told of in one message, behind its key.
pub(crate) const TOLD_MAX: usize = (STAGING_BYTES - size_of::<u64>()) / size_of::<Told>();

/// Notices, by key.
type Notices = Mutex<HashMap<u64, Vec<Told>>>;

/// A rank's board.
#[derive(Debug)]
pub(crate) struct Board {
    notices: Arc<Notices>,
    handler: HandlerId,
    /// How often each list of ranks, by its digest, has had a key.
    keys: RefCell<HashMap<u64, u64>>,
}

fn add(notices: &Notices, key: u64, told: impl IntoIterator<Item = Told>) {
    notices.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().extend(told);
}

impl Board {
    /// Registers the message that notices come with: on every rank as the first handler.
    pub(crate) fn new(service: &Arc<Service>) -> Self {
        let notices = Arc::<Notices>::default();
        let (place, served) = (notices.clone(), Arc::downgrade(service));
        let collect = move |delivery: Delivery<'_>, _: &mut Reply| {
            let Some((key, told)) = delivery.payload.split_first_chunk() else { return Err("no key came".into()) };
            let told = told.chunks_exact(size_of::<Told>()).map(bytemuck::pod_read_unaligned);
            add(&place, u64::from_ne_bytes(*key), told);
            if let Some(service) = served.upgrade() {
                service.ring_waiters();
            }
            Ok(())
        };
        let handler = service.handlers().register(Box::new(collect));
        Board { notices, handler: handler.expect("the first handler fits the table"), keys: RefCell::default() }
    }

    /// What notices are sent to.
    pub(crate) fn handler(&self) -> HandlerId {
        self.handler
    }

    /// A key for the next team of these ranks, which all of them compute alike.
    pub(crate) fn key(&self, ranks: &[u32]) -> u64 {
        let mut hasher = DefaultHasher::new();
        ranks.hash(&mut hasher);
        let mut keys = self.keys.borrow_mut();
        let times = keys.entry(hasher.finish()).or_insert(0);
        *times += 1;
        times.hash(&mut hasher);
        hasher.finish()
    }

    /// Puts up notices.
    pub(crate) fn add(&self, key: u64, told: impl IntoIterator<Item = Told>) {
        add(&self.notices, key, told);
    }

    /// Takes down the notices under a key, once they are all of `count`.
    pub(crate) fn take(&self, key: u64, count: usize) -> Option<Vec<Told>> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.get(&key).is_some_and(|told| told.len() == count) { notices.remove(&key) } else { None }
    }
}
