//! Sending a message with a tag.

use bytemuck::Pod;

use super::{ASK, DATA, EAGER_MAX, Letter, MESSAGE, OFFER, Piece};
use crate::error::Result;
use crate::node::message::STAGING_BYTES;
use crate::watch::{Call, Kind};
use crate::world::World;

impl World {
    /// Sends `data` to rank `target`, to be received there by [`World::receive`] (`armci_msg_snd`).
    ///
    /// On return `data` may be reused; whether the message has been received is not known. A message of up to 16 KiB
    /// is kept by the target until it is received, and this returns at once; a longer one waits for its receive, and
    /// so does a short one while the target holds 16 MiB that it has not received. A message to oneself never waits.
    /// While it waits, this rank serves whatever others ask of it. Messages of one rank to another are received in the
    /// order sent, as far as the same receive would take them. For the thread that joined.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// use armci_core::{Source, World};
    ///
    /// let world = World::init()?;
    /// let right = (world.rank() + 1) % world.size();
    /// world.send_to(right, 7, &[2.5, 3.5])?;
    /// let mut pair = [0.0; 2];
    /// let received = world.receive(Source::Any, 7, &mut pair)?;
    /// assert_eq!((received.bytes, pair), (16, [2.5, 3.5]));
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Rank`](crate::Error::Rank);
    /// [`Error::Argument`](crate::Error::Argument) in a thread that only attached.
    #[track_caller]
    pub fn send_to<T: Pod>(&self, target: usize, tag: i32, data: &[T]) -> Result<()> {
        let data = bytemuck::cast_slice(data);
        self.sending(target, data.len(), || {
            if let Some(offer) = self.begin_send(target, tag, data)? {
                self.finish_send(offer);
            }
            Ok(())
        })
    }

    /// Runs what sends a message, and tells who watches.
    #[inline]
    #[track_caller]
    pub(super) fn sending<T>(&self, target: usize, bytes: usize, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_plain() { run() } else { self.watched(&Call::to(Kind::Send, target, bytes), run) }
    }

    /// Sends a message, or offers it, which is to be finished then.
    pub(super) fn begin_send<'a>(&self, target: usize, tag: i32, data: &'a [u8]) -> Result<Option<Offer<'a>>> {
        let mailbox = &self.primary()?.mailbox;
        self.node().node_of(target)?;
        self.check_send(target, tag);
        if target == self.rank() {
            mailbox.keep(target, tag, data);
            return Ok(None);
        }
        let letter = Letter { tag, zero: 0, serial: mailbox.next_serial(), length: data.len() as u64 };
        let short = data.len() <= EAGER_MAX;
        if short && mailbox.may_go_unasked(target, data.len()) {
            self.post_to(target, MESSAGE, bytemuck::bytes_of(&letter), data, true);
            return Ok(None);
        }
        let desk = self.service().desk();
        desk.open_offer(letter.serial);
        let (handler, with) = if short { (ASK, data) } else { (OFFER, &[][..]) };
        let slot = self.post_to(target, handler, bytemuck::bytes_of(&letter), with, false);
        let taken = self.origin().collect(slot, |reply| reply == [1]);
        if !matches!(taken, Ok(false)) {
            desk.close_offer();
        }
        Ok((!taken?).then_some(Offer { target, serial: letter.serial, data }))
    }

    /// Waits until an offer is cleared, and sends what was offered.
    pub(super) fn finish_send(&self, offer: Offer<'_>) {
        let desk = self.service().desk();
        self.origin().wait(|| desk.cleared());
        let Offer { target, serial, data } = offer;
        for (number, piece) in data.chunks(STAGING_BYTES).enumerate() {
            let header = Piece { serial, offset: (number * STAGING_BYTES) as u64 };
            self.post_to(target, DATA, bytemuck::bytes_of(&header), piece, true);
        }
    }

    /// Waits until `ready`; if the offer that is open, if any, is cleared meanwhile, sends what was offered.
    pub(super) fn wait_offering(&self, offer: &mut Option<Offer<'_>>, mut ready: impl FnMut() -> bool) {
        let desk = self.service().desk();
        loop {
            self.origin().wait(|| ready() || (offer.is_some() && desk.cleared()));
            match offer.take_if(|_| desk.cleared()) {
                Some(cleared) => self.finish_send(cleared),
                None => return,
            }
        }
    }
}

/// A message that waits for its receiver.
pub(super) struct Offer<'a> {
    target: usize,
    serial: u64,
    data: &'a [u8],
}
