//! The packets for replies: who is being answered, and what waits to be sent or to be served.
//!
//! Somebody who asks much and takes no answers (who was stopped, or sits behind a slow line) must not be what others wait
//! behind. So each asker, which is a context of a rank, has a queue of its own for replies that the provider does not
//! take now, and may have no more packets than are free. So the first may have half of them, which is one for each of its
//! request slots, the next half of what that leaves, and so on: six askers that hold on to all they may have leave one
//! packet, and only a seventh is what others wait behind. What an asker asks beyond its share is put off, in its
//! order and out of the buffer that it came in.
//!
//! What is kept of an asker is bounded by its slots, and nothing that it asks is refused: each request is sent in a
//! slot of its context (see `Line::send`), which is free again when the answer has come, and the next thread gets the context's
//! number when all its slots are.

use std::collections::VecDeque;

use super::abi;
use crate::node::message::REQUEST_SLOTS;

/// Packets for replies.
pub(super) const REPLIES: usize = 2 * REQUEST_SLOTS;

/// Which of them, and how many bytes of it are to be sent.
pub(super) type Unsent = (usize, usize);

/// Where a packet goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// The number of whoever asked (see `askers.rs`).
    pub(super) asker: usize,
    pub(super) rank: usize,
    /// What the provider calls the endpoint.
    pub(super) endpoint: u64,
}

/// See the module. Only the owner of the service context touches it.
#[derive(Debug)]
pub(super) struct Replies {
    free: Vec<usize>,
    /// Of each packet that is taken.
    ways: [Way; REPLIES],
    /// Those that nobody may be waiting for any more.
    dispensable: [bool; REPLIES],
    /// By their numbers.
    accounts: Vec<Account>,
    /// Those with unsent replies, and those with requests that were put off; whose turn it is first.
    unsent: VecDeque<usize>,
    put_off: VecDeque<usize>,
}

/// What there is of one asker.
#[derive(Debug, Default)]
struct Account {
    /// Packets that it has.
    held: usize,
    unsent: VecDeque<Unsent>,
    put_off: VecDeque<Vec<u8>>,
}

impl Replies {
    pub(super) fn new() -> Self {
        Replies {
            free: (0..REPLIES).collect(),
            ways: [Way { asker: 0, rank: 0, endpoint: abi::ADDR_UNSPEC }; REPLIES],
            dispensable: [false; REPLIES],
            accounts: Vec::new(),
            unsent: VecDeque::new(),
            put_off: VecDeque::new(),
        }
    }

    fn account(&mut self, asker: usize) -> &mut Account {
        if asker >= self.accounts.len() {
            self.accounts.resize_with(asker + 1, Account::default);
        }
        &mut self.accounts[asker]
    }

    /// Whether any packet is free.
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Packets that are taken.
    pub(super) fn taken(&self) -> usize {
        REPLIES - self.free.len()
    }

    /// Whether this asker may have one more.
    pub(super) fn may_take(&self, asker: usize) -> bool {
        self.accounts.get(asker).map_or(0, |account| account.held) < self.free.len()
    }

    /// Takes a packet, if its asker may have one more.
    pub(super) fn take(&mut self, way: Way) -> Option<usize> {
        let packet = if self.may_take(way.asker) { self.free.pop()? } else { return None };
        self.account(way.asker).held += 1;
        self.ways[packet] = way;
        Some(packet)
    }

    /// Gives a packet back, which is not under way any more.
    pub(super) fn put_back(&mut self, packet: usize) {
        let asker = self.ways[packet].asker;
        self.account(asker).held -= 1;
        self.ways[packet].endpoint = abi::ADDR_UNSPEC;
        self.dispensable[packet] = false;
        self.free.push(packet);
    }

    /// Nobody may be waiting for what is in this packet when it gets there.
    pub(super) fn dispense_with(&mut self, packet: usize) {
        self.dispensable[packet] = true;
    }

    /// Whether that is so.
    pub(super) fn is_dispensable(&self, packet: usize) -> bool {
        self.dispensable[packet]
    }

    /// Where a packet goes, or went last.
    pub(super) fn way(&self, packet: usize) -> Way {
        self.ways[packet]
    }

    /// Whether some packet is on its way to this endpoint.
    pub(super) fn go_to(&self, endpoint: u64) -> bool {
        self.ways.iter().any(|way| way.endpoint == endpoint)
    }

    /// Whether its asker has replies that were not taken, behind which this one goes.
    pub(super) fn is_behind_unsent(&self, packet: usize) -> bool {
        self.accounts.get(self.ways[packet].asker).is_some_and(|account| !account.unsent.is_empty())
    }

    /// Keeps a reply that the provider does not take now.
    pub(super) fn keep_unsent(&mut self, unsent: Unsent) {
        let asker = self.ways[unsent.0].asker;
        let account = self.account(asker);
        account.unsent.push_back(unsent);
        if account.unsent.len() == 1 {
            self.unsent.push_back(asker);
        }
    }

    /// Whether some reply was not sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Lends each asker's unsent replies to `send` in their order, until that says that the next is not taken.
    pub(super) fn send(&mut self, mut send: impl FnMut(Way, Unsent) -> bool) {
        for _ in 0..self.unsent.len() {
            let Some(asker) = self.unsent.pop_front() else { return };
            let queue = &mut self.accounts[asker].unsent;
            while let Some(next) = queue.front() {
                if !send(self.ways[next.0], *next) {
                    break;
                }
                queue.pop_front();
            }
            if !queue.is_empty() {
                self.unsent.push_back(asker);
            }
        }
    }

    /// Whether anything of this asker is here: a packet that it has, or a request that was put off.
    pub(super) fn has_some_of(&self, asker: usize) -> bool {
        self.accounts.get(asker).is_some_and(|account| account.held != 0 || !account.put_off.is_empty())
    }

    /// Whether a request of this asker goes behind others of it that were put off.
    pub(super) fn is_behind(&self, asker: usize) -> bool {
        self.accounts.get(asker).is_some_and(|account| !account.put_off.is_empty())
    }

    /// Puts a request off; refuses what is beyond the slots of an asker, which nobody of ours sends.
    pub(super) fn put_off(&mut self, asker: usize, request: &[u8]) -> Result<(), String> {
        let account = self.account(asker);
        match account.put_off.len() {
            REQUEST_SLOTS.. => return Err("whoever asks has more requests under way than slots".into()),
            0 => self.put_off.push_back(asker),
            _ => (),
        }
        self.account(asker).put_off.push_back(request.to_vec());
        Ok(())
    }

    /// Takes out the next request that was put off and may be served now.
    pub(super) fn resume(&mut self) -> Option<Vec<u8>> {
        let place = self.next_to_resume()?;
        let asker = self.put_off.remove(place)?;
        let queue = &mut self.accounts[asker].put_off;
        let request = queue.pop_front();
        if !queue.is_empty() {
            self.put_off.push_back(asker);
        }
        request
    }

    /// Whether there is one.
    pub(super) fn can_resume(&self) -> bool {
        self.next_to_resume().is_some()
    }

    fn next_to_resume(&self) -> Option<usize> {
        self.put_off.iter().position(|asker| self.may_take(*asker))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn way(asker: usize) -> Way {
        Way { asker, rank: 100 + asker, endpoint: 7 * asker as u64 }
    }

    /// All packets that these askers get, one after the other.
    fn taken(replies: &mut Replies, asker: usize) -> Vec<usize> {
        std::iter::from_fn(|| replies.take(way(asker))).collect()
    }

    #[test]
    fn who_holds_on_to_packets_leaves_some_to_others() {
        let mut replies = Replies::new();
        let held: Vec<_> = [3, 1, 2].map(|asker| taken(&mut replies, asker)).into();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8]);
        assert_eq!(replies.taken(), 56);
        assert!(!replies.may_take(3) && replies.may_take(0));
        assert!(replies.go_to(7) && !replies.go_to(0));
        // What is given back is everybody's.
        held[0].iter().for_each(|packet| replies.put_back(*packet));
        assert!(replies.may_take(1) && !replies.go_to(21));
        // However many hold on, the next one finds a packet until all are gone.
        assert!((4..20).all(|asker| replies.take(way(asker)).is_some()));
    }

    #[test]
    fn replies_that_are_not_taken_hold_up_their_own_asker_alone() {
        let mut replies = Replies::new();
        for asker in [0, 1, 0, 1, 2] {
            let packet = replies.take(way(asker)).unwrap();
            replies.keep_unsent((packet, packet + 1));
        }
        let mut sent = Vec::new();
        replies.send(|way, (packet, len)| {
            assert_eq!((way.rank, len), (100 + way.asker, packet + 1));
            let taken = way.asker != 0;
            if taken {
                sent.push(way.asker);
            }
            taken
        });
        assert_eq!(sent, [1, 1, 2]);
        assert!(replies.has_unsent());
        let mut packets = Vec::new();
        replies.send(|_, (packet, _)| {
            packets.push(packet);
            true
        });
        assert_eq!(packets, [REPLIES - 1, REPLIES - 3], "in their order");
        assert!(!replies.has_unsent());
    }

    #[test]
    fn what_is_put_off_is_resumed_in_its_order_and_bounded() {
        let mut replies = Replies::new();
        let held = taken(&mut replies, 0);
        for number in 0..REQUEST_SLOTS as u8 {
            replies.put_off(0, &[0, number]).unwrap();
        }
        assert!(replies.put_off(0, &[0]).is_err());
        replies.put_off(1, &[1]).unwrap();
        assert!(replies.is_behind(0) && replies.is_behind(1) && !replies.is_behind(2));
        assert_eq!(replies.resume(), Some(vec![1]));
        assert!(!replies.can_resume() && replies.resume().is_none());
        replies.put_back(held[0]);
        for number in 0..REQUEST_SLOTS as u8 {
            assert_eq!(replies.resume(), Some(vec![0, number]));
        }
        assert!(!replies.is_behind(0) && !replies.can_resume());
    }
}
