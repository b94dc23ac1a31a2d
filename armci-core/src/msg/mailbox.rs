//! The mailbox: a rank's messages as the one thread sees them that sends and receives.
//!
//! What has arrived and was not asked for lies on the *shelf*, numbered in the order taken out of the channel, by
//! source and tag: a receive that names both looks at one queue; one that leaves something open looks at the front of
//! each queue that matches, and takes the lowest number.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::mpsc::Receiver;

use super::desk::{Arrival, Body, Desk};
use super::{BUDGET, Received, Wanted, charge};

/// A thread's side of the desk.
#[derive(Debug)]
pub(crate) struct Mailbox {
    arrivals: Receiver<Arrival>,
    shelf: RefCell<Shelf>,
    /// What was sent unasked to each rank since it was last asked.
    spent: RefCell<HashMap<usize, usize>>,
    /// The number of the last message sent.
    serial: Cell<u64>,
}

/// An arrival and its number in the order of arrival.
#[derive(Debug)]
pub(super) struct Numbered {
    number: u64,
    pub(super) arrival: Arrival,
}

impl Arrival {
    /// What its receiver is told.
    pub(super) fn received(&self) -> Received {
        Received { source: self.source, tag: self.tag, bytes: self.length }
    }
}

impl Mailbox {
    /// A desk and the mailbox behind it.
    pub(crate) fn new() -> (Desk, Self) {
        let (desk, arrivals) = Desk::new();
        let (shelf, spent) = (RefCell::default(), RefCell::default());
        (desk, Mailbox { arrivals, shelf, spent, serial: Cell::new(0) })
    }

    /// The number of the next message to be sent.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    /// Whether a message of so many bytes may go unasked, which it then is taken to do; else the account begins anew.
    pub(super) fn may_go_unasked(&self, target: usize, bytes: usize) -> bool {
        let mut spent = self.spent.borrow_mut();
        let spent = spent.entry(target).or_insert(0);
        *spent += charge(bytes);
        let within = *spent <= BUDGET;
        if !within {
            *spent = 0;
        }
        within
    }

    /// Keeps a message of this rank to itself.
    pub(super) fn keep(&self, source: usize, tag: i32, data: &[u8]) {
        // What came before is numbered before.
        self.empty_channel();
        self.shelf.borrow_mut().put(Arrival { source, tag, length: data.len(), body: Body::Here(data.into()) });
    }

    /// Takes the first message that is wanted off the shelf, if there is one.
    pub(super) fn take_shelved(&self, wanted: Wanted) -> Option<Numbered> {
        self.shelf.borrow_mut().take(wanted)
    }

    /// Takes the first message that is wanted out of those that arrive; others go to the shelf, where it is not.
    pub(super) fn take_arriving(&self, wanted: Wanted) -> Option<Numbered> {
        let mut shelf = self.shelf.borrow_mut();
        for arrival in self.arrivals.try_iter() {
            if wanted.includes(arrival.source, arrival.tag) {
                return Some(shelf.number(arrival));
            }
            shelf.put(arrival);
        }
        None
    }

    /// Puts a message back where it was taken from.
    pub(super) fn put_back(&self, numbered: Numbered) {
        self.shelf.borrow_mut().put_back(numbered);
    }

    /// Tells about the first message that is wanted.
    pub(super) fn find(&self, wanted: Wanted) -> Option<Received> {
        self.empty_channel();
        self.shelf.borrow().find(wanted)
    }

    fn empty_channel(&self) {
        let mut shelf = self.shelf.borrow_mut();
        self.arrivals.try_iter().for_each(|arrival| shelf.put(arrival));
    }
}

type Key = (usize, i32);

/// Messages that have arrived and were not asked for.
#[derive(Debug, Default)]
struct Shelf {
    /// By source and tag, each in the order of arrival; no queue is empty.
    queues: HashMap<Key, VecDeque<Numbered>>,
    /// Arrivals so far.
    count: u64,
}

impl Shelf {
    fn number(&mut self, arrival: Arrival) -> Numbered {
        self.count += 1;
        Numbered { number: self.count, arrival }
    }

    fn put(&mut self, arrival: Arrival) {
        let numbered = self.number(arrival);
        self.queues.entry(key(&numbered)).or_default().push_back(numbered);
    }

    fn put_back(&mut self, numbered: Numbered) {
        self.queues.entry(key(&numbered)).or_default().push_front(numbered);
    }

    fn take(&mut self, wanted: Wanted) -> Option<Numbered> {
        let key = self.first(wanted)?;
        let Entry::Occupied(mut queue) = self.queues.entry(key) else { return None };
        let taken = queue.get_mut().pop_front();
        if queue.get().is_empty() {
            queue.remove();
        }
        taken
    }

    fn find(&self, wanted: Wanted) -> Option<Received> {
        let front = self.queues.get(&self.first(wanted)?)?.front()?;
        Some(front.arrival.received())
    }

    /// The queue whose front is the first to arrive of those wanted.
    fn first(&self, wanted: Wanted) -> Option<Key> {
        if let Wanted { source: super::Source::Rank(source), tag: super::Tag::Is(tag) } = wanted {
            return self.queues.contains_key(&(source, tag)).then_some((source, tag));
        }
        let fronts = self.queues.iter().filter(|((source, tag), _)| wanted.includes(*source, *tag));
        let first = fronts.min_by_key(|(_, queue)| queue.front().map(|front| front.number))?;
        Some(*first.0)
    }
}

fn key(numbered: &Numbered) -> Key {
    (numbered.arrival.source, numbered.arrival.tag)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::msg::{Source, Tag};

    fn arrival(source: usize, tag: i32, length: usize) -> Arrival {
        Arrival { source, tag, length, body: Body::Offered(1) }
    }

    proptest! {
        /// The shelf gives what a search through one list in the order of arrival would give.
        #[test]
        fn the_first_match_is_taken(
            steps in prop::collection::vec((any::<bool>(), 0usize..4, 0i32..4, any::<bool>()), 0..200),
        ) {
            let mut shelf = Shelf::default();
            let mut list: Vec<Received> = Vec::new();
            for (number, (puts, source, tag, backs)) in steps.into_iter().enumerate() {
                if puts {
                    list.push(arrival(source, tag, number).received());
                    shelf.put(arrival(source, tag, number));
                    continue;
                }
                let wanted = Wanted {
                    source: if source == 3 { Source::Any } else { Source::Rank(source) },
                    tag: if tag == 3 { Tag::Any } else { Tag::Is(tag) },
                };
                let expected = list.iter().position(|one| wanted.includes(one.source, one.tag));
                prop_assert_eq!(shelf.find(wanted), expected.map(|at| list[at]));
                let taken = shelf.take(wanted);
                prop_assert_eq!(taken.as_ref().map(|taken| taken.arrival.received()), expected.map(|at| list[at]));
                match (taken, expected) {
                    (Some(taken), _) if backs => shelf.put_back(taken),
                    (_, Some(at)) => drop(list.remove(at)),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_budget_is_asked_for_when_it_is_used_up() {
        let (_desk, mailbox) = Mailbox::new();
        let many = BUDGET / charge(8);
        for _ in 0..2 {
            assert!((0..many).all(|_| mailbox.may_go_unasked(1, 8)));
            assert!(!mailbox.may_go_unasked(1, 8));
        }
        assert!(mailbox.may_go_unasked(2, 8));
    }
}
