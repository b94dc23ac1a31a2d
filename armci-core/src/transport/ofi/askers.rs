//! Who has asked something of this rank, and what the provider calls the endpoints that wait for its answers.
//!
//! A context's number is used again by the next thread that attaches, with another endpoint. Guaranteed: of each number of
//! a rank one address is kept, and the one before it is given back to the provider once no answer is on its way there.
//! So what is kept is bounded by ranks and contexts, however many threads come and go. Each rank and context has a number,
//! the same as long as the job lasts, by which `replies.rs` keeps them apart.
//!
//! Requests of a line are let through in the order in which they were sent: one that comes too early waits here for those before
//! it. There are no more of them than a line has slots. A rank numbers its lines, so what is left of an earlier line of a context
//! is known.

use std::collections::{BTreeMap, HashMap};

use super::domain::Domain;
use super::packet::{Asker, Standing};
use crate::error::Result;
use crate::node::message::REQUEST_SLOTS;

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
    order: Order,
}

/// Which request of an asker is next.
#[derive(Debug, Default)]
pub(super) struct Order {
    line: u32,
    next: u32,
    /// Those that came before it, by number.
    early: BTreeMap<u32, Vec<u8>>,
}

/// What is to be done with a request that has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the next.
    Now,
    /// It was kept, and will be.
    Later,
    /// It has been, or is of an earlier line, or can be none of ours.
    Never,
}

impl Order {
    /// Whose turn it is; keeps the packet of who comes early.
    pub(super) fn turn(&mut self, standing: Standing, packet: &[u8]) -> Turn {
        match standing.line.wrapping_sub(self.line) as i32 {
            0 => (),
            // All that the line before it asked was answered, or its context would not have another.
            1.. => *self = Order { line: standing.line, ..Order::default() },
            _ => return Turn::Never,
        }
        match standing.number.wrapping_sub(self.next) as usize {
            0 => {
                self.next = self.next.wrapping_add(1);
                Turn::Now
            }
            1..REQUEST_SLOTS => {
                self.early.insert(standing.number, packet.to_vec());
                Turn::Later
            }
            _ => Turn::Never,
        }
    }

    /// One that was early, and is the next.
    pub(super) fn follow(&mut self) -> Option<Vec<u8>> {
        let packet = self.early.remove(&self.next)?;
        self.next = self.next.wrapping_add(1);
        Some(packet)
    }
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
        self.known.insert(key, Known { number, address: address.to_vec(), name, order: Order::default() });
        Ok((number, name))
    }

    /// Whether this is an earlier line of an asker than the one that is known: what comes of it is of no account.
    pub(super) fn is_over(&self, asker: Asker, line: u32) -> bool {
        let known = self.known.get(&(asker.rank, asker.context));
        known.is_some_and(|known| (line.wrapping_sub(known.order.line) as i32) < 0)
    }

    /// The order of an asker that was found before.
    pub(super) fn order(&mut self, asker: Asker) -> Option<&mut Order> {
        self.known.get_mut(&(asker.rank, asker.context)).map(|known| &mut known.order)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn requests_pass_in_the_order_in_which_they_were_sent() {
        let mut order = Order::default();
        let at = |number| Standing { line: 1, number };
        assert_eq!(order.turn(at(1), b"b"), Turn::Later);
        assert_eq!(order.follow(), None);
        assert_eq!(order.turn(at(2), b"c"), Turn::Later);
        assert_eq!(order.turn(at(0), b"a"), Turn::Now);
        assert_eq!([order.follow(), order.follow(), order.follow()], [Some(b"b".to_vec()), Some(b"c".to_vec()), None]);
        // What comes again, or is further ahead than a line has slots.
        let beyond = 3 + REQUEST_SLOTS as u32;
        for number in [0, 2, beyond, u32::MAX] {
            assert_eq!(order.turn(at(number), b"?"), Turn::Never, "{number}");
        }
        assert_eq!(order.turn(at(beyond - 1), b"!"), Turn::Later);
        // Another line begins at the beginning, the one before is over, and around the end it goes on.
        assert_eq!(order.turn(Standing { line: 2, number: 0 }, b"d"), Turn::Now);
        assert_eq!(order.turn(at(4), b"e"), Turn::Never);
        assert_eq!(order.follow(), None);
        order.next = u32::MAX;
        let at = |number| Standing { line: 2, number };
        assert_eq!(order.turn(at(0), b"f"), Turn::Later);
        assert_eq!(order.turn(at(u32::MAX), b"e"), Turn::Now);
        assert_eq!(order.follow(), Some(b"f".to_vec()));
    }
}
