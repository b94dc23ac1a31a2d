//! What a thread collects under handles that aggregate.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;

use armci_core::{Aggregate, NbHandle, Result, World};

/// Operations of one handle.
pub(crate) struct Collected {
    pub(crate) aggregate: Aggregate,
    /// Those that are not collected: of many rows or segments.
    pub(crate) others: NbHandle,
}

/// All such handles of a thread, by number.
#[derive(Default)]
pub(crate) struct Aggregates {
    open: RefCell<BTreeMap<u64, Collected>>,
    next: Cell<u64>,
}

impl Aggregates {
    /// Opens one, and says its number.
    pub(crate) fn open(&self, world: &World) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        let collected = Collected { aggregate: world.aggregate(), others: NbHandle::default() };
        self.open.borrow_mut().insert(number, collected);
        number
    }

    /// One that is open.
    pub(crate) fn get(&self, number: u64) -> Option<RefMut<'_, Collected>> {
        RefMut::filter_map(self.open.borrow_mut(), |open| open.get_mut(&number)).ok()
    }

    /// Completes one, which is no more.
    pub(crate) fn close(&self, world: &World, number: u64) -> Result<()> {
        let Some(mut collected) = self.open.borrow_mut().remove(&number) else { return Ok(()) };
        collected.wait(world)?;
        Ok(())
    }

    /// Sends what all have collected: whatever completes the thread's operations begins with it.
    #[inline]
    pub(crate) fn send(&self) {
        if self.next.get() > 0 {
            self.open.borrow_mut().values_mut().for_each(|collected| collected.aggregate.send());
        }
    }

    /// Completes all of them, which are no more.
    pub(crate) fn finish(&self) -> Result<()> {
        let open = self.open.take();
        open.into_values().map(|collected| collected.aggregate.finish()).fold(Ok(()), Result::and)
    }
}

impl Collected {
    /// Sends what was collected, and waits for all.
    pub(crate) fn wait(&mut self, world: &World) -> Result<()> {
        self.aggregate.wait().and(world.wait_for(&mut self.others))
    }
}
