//! Who has asked something of this rank, and what the provider calls the endpoints that wait for its answers.
//!
//! A context's number is used again by the next thread that attaches, with another endpoint. Guaranteed: of each number of
//! a rank one address is kept, and the one before it is given back to the provider once no answer is on its way there.
//! So what is kept is bounded by ranks and contexts, however many threads come and go.

use std::collections::HashMap;

use super::domain::Domain;
use super::packet::Asker;
use crate::error::Result;

/// See the module. Only the owner of the service context touches it.
#[derive(Debug, Default)]
pub(super) struct Askers {
    /// By rank and context: the address, and what the provider calls it.
    known: HashMap<(u32, u16), (Vec<u8>, u64)>,
    /// What is to be given back.
    retired: Vec<u64>,
}

impl Askers {
    /// What the provider calls the endpoint of whoever asks.
    ///
    /// # Errors
    /// What the provider has to say of a new address.
    pub(super) fn name(&mut self, domain: &Domain, asker: Asker, address: &[u8]) -> Result<u64> {
        let key = (asker.rank, asker.context);
        if let Some((known, name)) = self.known.get(&key)
            && known == address
        {
            return Ok(*name);
        }
        let name = domain.insert(address)?;
        if let Some((_, before)) = self.known.insert(key, (address.to_vec(), name)) {
            self.retired.push(before);
        }
        Ok(name)
    }

    /// Gives back what nobody answers to any more.
    pub(super) fn tidy(&mut self, domain: &Domain, is_answered: impl Fn(u64) -> bool) {
        self.retired.retain(|name| {
            let stays = is_answered(*name);
            if !stays {
                domain.remove(*name);
            }
            stays
        });
    }
}
