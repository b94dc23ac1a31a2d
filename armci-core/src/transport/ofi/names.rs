//! What a provider calls the ranks: each domain has names of its own for their service endpoints, made when a rank is
//! first spoken to. Beside each stands how many requests went there, which is their order.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::domain::Domain;
use super::fabric::Fabric;

/// The names in one domain of the ranks that were spoken to.
#[derive(Debug, Default)]
pub(super) struct Names(RefCell<HashMap<usize, Name>>);

#[derive(Debug)]
struct Name {
    endpoint: u64,
    requests: Cell<u32>,
}

impl Names {
    /// That of a rank. Ends the job if its address is none.
    pub(super) fn of(&self, rank: usize, domain: &Domain, fabric: &Fabric) -> u64 {
        let mut names = self.0.borrow_mut();
        let name = names.entry(rank).or_insert_with(|| {
            let endpoint = domain
                .insert(fabric.address_of(rank))
                .unwrap_or_else(|error| fabric.give_up(Some(rank), &format!("its address is not understood: {error}")));
            Name { endpoint, requests: Cell::new(0) }
        });
        name.endpoint
    }

    /// How many requests went to a rank, wrapping.
    pub(super) fn requests(&self, rank: usize) -> u32 {
        self.0.borrow().get(&rank).map_or(0, |name| name.requests.get())
    }

    /// One more went to a rank, which has a name.
    pub(super) fn count_request(&self, rank: usize) {
        if let Some(name) = self.0.borrow().get(&rank) {
            name.requests.set(name.requests.get().wrapping_add(1));
        }
    }
}
