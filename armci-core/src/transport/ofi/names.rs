//! What a provider calls the ranks: each domain has names of its own for their service endpoints, made when a rank is
//! first spoken to.

use std::cell::RefCell;
use std::collections::HashMap;

use super::domain::Domain;
use super::fabric::Fabric;

/// The names in one domain of the ranks that were spoken to.
#[derive(Debug, Default)]
pub(super) struct Names(RefCell<HashMap<usize, u64>>);

impl Names {
    /// That of a rank. Ends the job if its address is none.
    pub(super) fn of(&self, rank: usize, domain: &Domain, fabric: &Fabric) -> u64 {
        *self.0.borrow_mut().entry(rank).or_insert_with(|| {
            domain
                .insert(fabric.address_of(rank))
                .unwrap_or_else(|error| fabric.give_up(Some(rank), &format!("its address is not understood: {error}")))
        })
    }
}
