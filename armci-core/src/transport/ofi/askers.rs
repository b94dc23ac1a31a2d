//! Who has asked something of this rank, and what the provider calls the endpoints that wait for its answers.
//!
//! A context's number is used again by the next thread that attaches, with another endpoint. Guaranteed: of each number of
//! a rank one address is kept, and the one before it is given back to the provider once no answer is on its way there.
//! So what is kept is bounded by ranks and contexts, however many threads come and go. Each rank and context has a number,
//! the same as long as the job lasts, by which `replies.rs` keeps them apart.

use std::collections::HashMap;

use super::domain::Domain;
use super::packet::Asker;
use crate::error::Result;

/// See the module. Only the owner of the service context touches it.
#[derive(Debug, Default)]
pub(super) struct Askers {
    /// By rank and context.
    known: HashMap<(u32, u16), Known>,
    /// What is to be given back.
    retired: Vec<u64>,
}

/// An asker.
#[derive(Debug)]
struct Known {
    number: usize,
    address: Vec<u8>,
    /// What the provider calls the address.
    name: u64,
}

impl Askers {
    /// The number of whoever asks, and what the provider calls the endpoint.
    ///
    /// # Errors
    /// What the provider has to say of a new address.
    pub(super) fn find(&mut self, domain: &Domain, asker: Asker, address: &[u8]) -> Result<(usize, u64)> {
        let key = (asker.rank, asker.context);
        let known = self.known.get_mut(&key);
        if let Some(known) = &known
            && known.address == address
        {
            return Ok((known.number, known.name));
        }
        let name = domain.insert(address)?;
        if let Some(known) = known {
            self.retired.push(std::mem::replace(&mut known.name, name));
            known.address = address.to_vec();
            return Ok((known.number, name));
        }
        let number = self.known.len();
        self.known.insert(key, Known { number, address: address.to_vec(), name });
        Ok((number, name))
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
