//! The order of one rank's own operations: what a later one waits for, where their paths keep no order by themselves.
//!
//! What is under way is in the records of the slots. On this node messages to one target are served in the order sent, and
//! what is done in place is done when its call returns; so there only an access in place waits, for messages. Between
//! nodes accesses to remote memory are under way, too, and pass each other and messages; and so do long messages, which
//! come behind what was sent before them, but before or behind what is sent after them.

use super::Origin;
use super::sent::{By, Sent};
use crate::am::builtin;
use crate::config::Conflicts;
use crate::consistency::{self, Access, ConflictCounts, Outstanding};
use crate::memory::RegionId;

impl Origin {
    /// Before an access in place, on this node: waits for what its order demands.
    #[inline]
    pub(crate) fn order(&self, target: usize, region: RegionId, access: Access) {
        if self.detached_near.get() != 0 {
            // What is over shall not be looked at again before the next access.
            self.reap();
            self.order_behind(target, region, access, |_| false);
        }
    }

    /// Before a remote memory access of `bytes` bytes to another node: as [`Origin::order`].
    pub(crate) fn order_access(&self, target: usize, region: RegionId, access: Access, bytes: usize) {
        if self.detached.get() == 0 {
            return;
        }
        let in_order = |bytes| self.transport.fabric().is_some_and(|fabric| fabric.orders_writes(bytes));
        self.order_behind(target, region, access, |earlier| match earlier.by {
            By::Access(before) => {
                (earlier.what.access, access) == (Access::Put, Access::Put) && in_order(bytes.max(before))
            }
            By::Message | By::Bulk { .. } => false,
        });
    }

    /// Before a transfer to another node by long messages, all of which it concerns: as [`Origin::order`].
    pub(crate) fn order_bulk(&self, target: usize, region: RegionId, access: Access) {
        if self.detached.get() == 0 {
            return;
        }
        self.order_behind(target, region, access, |earlier| match earlier.by {
            By::Message => true,
            By::Access(_) => false,
            By::Bulk { .. } => earlier.commutes_with(access),
        });
    }

    /// Before a message to another node: waits for the remote memory accesses and long messages that it is to come behind.
    /// One that transfers something minds its region, any other may tell of whatever was written before it.
    pub(super) fn order_behind_accesses(&self, handler: u16, what: &Outstanding) {
        if self.detached.get() == 0 {
            return;
        }
        match what.region {
            Some(region) if builtin::transfers(handler) => {
                self.order_behind(what.target, region, what.access, |earlier| match earlier.by {
                    By::Message => true,
                    By::Access(_) => false,
                    By::Bulk { .. } => earlier.commutes_with(what.access),
                });
            }
            _ if [builtin::DESCRIBE, builtin::LOCATE].contains(&handler) => (),
            _ => self.wait_for(|sent| {
                let written = matches!(sent.what.access, Access::Put | Access::Accumulate);
                sent.by != By::Message && sent.detached() && written && sent.what.target == what.target
            }),
        }
    }

    /// Waits for what is under way and conflicts with an access, save for what `keeps_order` with it.
    ///
    /// Whether something has ended meanwhile is asked only if it matters: between nodes a look takes the provider's
    /// system calls, and one before each of many puts cost them a third of their rate.
    fn order_behind(&self, target: usize, region: RegionId, access: Access, keeps_order: impl Fn(&Sent) -> bool) {
        let minds = |sent: &Sent| sent.detached() && !keeps_order(sent);
        let status = || {
            let sent = self.sent.borrow();
            let outstanding = self.slots().filter_map(|slot| sent[slot]).filter(minds).map(|sent| sent.what);
            consistency::status(outstanding, target, region)
        };
        if self.tracking == Conflicts::Off || !status().1.holds_up(access) {
            return;
        }
        self.reap();
        let (of_region, of_target) = status();
        if !of_target.holds_up(access) {
            return;
        }
        let mut counts = self.conflicts.get();
        let same_region = of_region.holds_up(access);
        let by_target = self.tracking == Conflicts::Target;
        match (same_region, by_target) {
            (true, _) => counts.waits += 1,
            (false, true) => counts.false_waits += 1,
            (false, false) => counts.avoided += 1,
        }
        self.conflicts.set(counts);
        if same_region || by_target {
            self.wait_for(|sent| {
                let Outstanding { target: to, region: of, access: earlier } = sent.what;
                let concerned = to == target && (by_target || of == Some(region));
                minds(sent) && concerned && earlier.holds_up(access)
            });
        }
    }

    /// What keeping order has cost, and what tracking conflicts per region has saved.
    pub(crate) fn conflicts(&self) -> ConflictCounts {
        self.conflicts.get()
    }
}
