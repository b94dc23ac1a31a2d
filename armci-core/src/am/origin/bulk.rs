//! Long messages between nodes: their payload, or their reply, lies in a long buffer or in memory of the program, which the
//! target fetches from or stores to.
//!
//! # Who moves it on
//! The target holds a landing, of which it has few, until this side has let it fetch or store. So a rank that computes must
//! not be what others wait behind. Either the call stays until its long messages are over, looking at its line
//! ([`Through::Line`]); or, for operations with handles, their places are reached through the service endpoint,
//! which the progress thread looks at ([`Through::Service`]). Without such a thread all stay in their calls.
//!
//! # Safety
//! REQUEST-SLOT (see `am/origin.rs`), BULK-BUFFER (see `transport/ofi/bulk.rs`), LANDING (see `am/landing.rs`).
#![allow(unsafe_code)]

use super::Origin;
use super::sent::{Answer, By, Sent};
use crate::am::handlers::LONG;
use crate::am::landing::{Landing, Tag};
use crate::consistency::Outstanding;
use crate::node::message::Status;
use crate::transport::Outgoing;
use crate::transport::ofi::{BULK_BYTES, Errand, Line, Place, Through};

impl Origin {
    /// The line by which long messages go to a rank, and whose endpoint moves those on of an operation that a later
    /// wait is for, or not; none if there are no long messages to this rank. `stores` says that replies are long.
    pub(crate) fn bulk_to(&self, rank: usize, later: bool, stores: bool) -> Option<(&Line, Through)> {
        let line = self.line_to(rank).filter(|line| line.takes_bulk(stores))?;
        let served = later && self.service.has_thread() && line.shares_memory();
        Some((line, if served { Through::Service } else { Through::Line }))
    }

    /// Takes a long buffer, waiting for one if all are under way.
    pub(crate) fn claim_bulk(&self, line: &Line) -> usize {
        let mut claimed = line.claim_bulk();
        if let Some(claimed) = claimed {
            return claimed;
        }
        self.wait(|| {
            claimed = claimed.or_else(|| {
                self.reap();
                line.claim_bulk()
            });
            claimed.is_some()
        });
        claimed.unwrap_or_default()
    }

    /// Sends a message in a claimed slot whose payload is at a place: in long buffer `buffer`, which is given back when
    /// it was served, or in memory of the program. Its order was seen to.
    pub(crate) fn post_fetched(&self, message: &Outgoing<'_>, what: Outstanding, place: &Place, buffer: Option<usize>) {
        self.post_bulk(message, what, Answer::Acknowledgement, place, buffer);
        // What the target has asked for meanwhile leaves through the line only if somebody looks: behind this request, so that
        // it knows of the next piece before it has the last.
        if let (Some(line), Through::Line) = (self.line_to(what.target), place.through) {
            line.move_on();
        }
    }

    /// Sends a message in a claimed slot whose reply of `len` bytes is stored in a long buffer, and unpacked from there. Its
    /// order was seen to.
    ///
    /// # Safety
    /// LANDING, for `landing`.
    pub(crate) unsafe fn post_stored(
        &self,
        message: &Outgoing<'_>,
        what: Outstanding,
        (tag, landing): (Tag, Landing),
        place: &Place,
        buffer: usize,
    ) {
        self.post_bulk(message, what, Answer::Data { tag, landing }, place, Some(buffer));
    }

    fn post_bulk(
        &self,
        message: &Outgoing<'_>,
        what: Outstanding,
        answer: Answer,
        place: &Place,
        buffer: Option<usize>,
    ) {
        let Some(line) = self.line_to(what.target) else { unreachable!("a rank of this node") };
        let by = By::Bulk { in_call: place.through == Through::Line };
        self.bulk[message.slot].set(buffer);
        let sent = Sent { what, handler: message.handler & !LONG, answer, by, near: false };
        self.begin(message.slot, sent, || line.send(what.target, message, Some(place)));
    }

    /// Sends a message that belongs to an operation with long ones, whose order was seen to with them.
    ///
    /// # Safety
    /// LANDING, for `landing`, if there is one.
    pub(crate) unsafe fn post_among(&self, message: &Outgoing<'_>, what: Outstanding, data: Option<(Tag, Landing)>) {
        let Some(line) = self.line_to(what.target) else { unreachable!("a rank of this node") };
        let answer = data.map_or(Answer::Acknowledgement, |(tag, landing)| Answer::Data { tag, landing });
        let sent = Sent { what, handler: message.handler & !LONG, answer, by: By::Message, near: false };
        self.begin(message.slot, sent, || line.send(what.target, message, None));
    }

    /// Waits until no long message is under way that its sender stays for.
    pub(crate) fn settle_bulk(&self) {
        self.wait_for(|sent| sent.by == By::Bulk { in_call: true });
    }

    /// Where the reply in a slot lies, if it was stored in a long buffer.
    pub(super) fn stored(&self, slot: usize, status: Status, len: usize) -> Option<*const u8> {
        let buffer = self.bulk[slot].get().filter(|_| status == Status::Done && len <= BULK_BYTES)?;
        let is_data = matches!(self.sent.borrow()[slot]?.answer, Answer::Data { .. });
        self.line.get().filter(|_| is_data).map(|line| line.bulk_at(buffer).cast_const())
    }

    /// A place in a long buffer.
    pub(crate) fn bulk_place(line: &Line, errand: Errand, through: Through, buffer: usize, len: usize) -> Place {
        // A buffer that was claimed is registered: only the end of the line changes that.
        let Some(place) = line.bulk_place(errand, through, buffer, len) else { unreachable!("a buffer without a key") };
        place
    }
}
