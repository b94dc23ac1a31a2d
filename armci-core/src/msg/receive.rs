//! Receiving messages, and looking for them; and sending one while another is received.
//!
//! What may have an offer open meanwhile is given it, and sends what was offered as soon as that is cleared.

use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};

use super::desk::{Arrival, Body};
use super::mailbox::Mailbox;
use super::send::Offer;
use super::{CLEAR, Piece, Received, Source, Tag, Wanted};
use crate::error::{Error, Result};
use crate::watch::{Call, Kind};
use crate::world::World;

impl World {
    /// Waits for the first message from `from` with `tag` and copies it to the beginning of `buffer` (`armci_msg_rcv`;
    /// with [`Source::Any`], `armci_msg_rcvany`).
    ///
    /// Serves this rank's active messages meanwhile, and sleeps if it takes long. A rank and a tag may be given as the
    /// numbers they are. For the thread that joined.
    ///
    /// # Errors
    /// [`Error::Rank`]. [`Error::BufferTooShort`] if the message is longer than `buffer`, and
    /// [`Error::Argument`] if it is no whole number of `T`: it stays then, to be received otherwise.
    #[track_caller]
    pub fn receive<T: Pod>(&self, from: impl Into<Source>, tag: impl Into<Tag>, buffer: &mut [T]) -> Result<Received> {
        self.receiving(|received| *received, || self.receive_offering(&mut None, from.into(), tag.into(), buffer))
    }

    /// Sends `data` to rank `to` and receives a message from `from`, both at once: ranks that exchange long messages,
    /// in pairs or around a ring, need not agree who sends first (MPI's `Sendrecv`).
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let (me, size) = (world.rank(), world.size());
    /// let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    /// let mine = vec![me as f64; 100_000];
    /// let mut theirs = vec![0.0; 100_000];
    /// world.send_receive(right, 1, &mine, left, 1, &mut theirs)?;
    /// assert_eq!(theirs, vec![left as f64; 100_000]);
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`World::send_to`], or if a rank is not to be reached: nothing was sent then. If the message that came does not
    /// suit `buffer`, as [`World::receive`]: `data` is sent all the same, which may wait for its receive.
    #[track_caller]
    pub fn send_receive<T: Pod>(
        &self,
        to: usize,
        tag: i32,
        data: &[T],
        from: impl Into<Source>,
        their_tag: impl Into<Tag>,
        buffer: &mut [T],
    ) -> Result<Received> {
        let (from, their_tag) = (from.into(), their_tag.into());
        self.wanted(from, their_tag)?;
        let data = bytemuck::cast_slice(data);
        // For who watches, the message is sent by its offer, and its data goes while the other is received.
        let mut offer = self.sending(to, data.len(), || self.begin_send(to, tag, data))?;
        self.receiving(
            |received| *received,
            || {
                let received = self.receive_offering(&mut offer, from, their_tag, buffer);
                if let Some(offer) = offer {
                    self.finish_send(offer);
                }
                received
            },
        )
    }

    /// Runs what receives a message, and tells who watches.
    #[inline]
    #[track_caller]
    fn receiving<T>(&self, what: impl FnOnce(&T) -> Received, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_plain() {
            return run();
        }
        // What tells where the program made the call must be run here.
        let call = Call::of_all(Kind::Receive, None, 0);
        let told = |done: &T| {
            let Received { source, bytes, .. } = what(done);
            Call { target: Some(source), bytes, ..call }
        };
        self.watched_as(told, run)
    }

    fn receive_offering<T: Pod>(
        &self,
        offer: &mut Option<Offer<'_>>,
        from: Source,
        tag: Tag,
        buffer: &mut [T],
    ) -> Result<Received> {
        let message = self.await_message::<T>(offer, from, tag, size_of_val(buffer))?;
        let bytes = message.length;
        self.deliver(offer, message, &mut bytemuck::cast_slice_mut(buffer)[..bytes])
    }

    /// As [`World::receive`], into memory as long as the message; says whose and which it was, too.
    ///
    /// # Errors
    /// As [`World::receive`], except that every message fits.
    #[track_caller]
    pub fn receive_vec<T: Pod>(&self, from: impl Into<Source>, tag: impl Into<Tag>) -> Result<(Received, Vec<T>)> {
        self.receiving(
            |(received, _): &(Received, Vec<T>)| *received,
            || {
                let message = self.await_message::<T>(&mut None, from.into(), tag.into(), usize::MAX)?;
                let mut data = vec![T::zeroed(); message.length.checked_div(size_of::<T>()).unwrap_or(0)];
                let received = self.deliver(&mut None, message, bytemuck::cast_slice_mut(&mut data))?;
                Ok((received, data))
            },
        )
    }

    /// Tells about the message that [`World::receive`] would take, if it is there; it stays. Does not wait
    /// (`armci_msg_probe`).
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Argument`] in a thread that only attached.
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<Tag>) -> Result<Option<Received>> {
        let (mailbox, wanted) = self.wanted(from.into(), tag.into())?;
        Ok(mailbox.find(wanted).or_else(|| {
            // Who only ever probes must be served too.
            self.origin().serve();
            mailbox.find(wanted)
        }))
    }

    fn wanted(&self, source: Source, tag: Tag) -> Result<(&Mailbox, Wanted)> {
        let mailbox = &self.primary()?.mailbox;
        if let Source::Rank(rank) = source {
            self.node().node_of(rank)?;
        }
        Ok((mailbox, Wanted { source, tag }))
    }

    /// Waits for a message and takes it off the shelf, if it is whole elements and `room` bytes hold it.
    fn await_message<T>(
        &self,
        offer: &mut Option<Offer<'_>>,
        source: Source,
        tag: Tag,
        room: usize,
    ) -> Result<Arrival> {
        let (mailbox, wanted) = self.wanted(source, tag)?;
        let mut found = mailbox.take_shelved(wanted);
        self.wait_offering(offer, || {
            if found.is_none() {
                found = mailbox.take_arriving(wanted);
            }
            found.is_some()
        });
        let Some(message) = found else { unreachable!("the wait was for this") };
        match suits::<T>(message.arrival.received(), room) {
            Ok(()) => Ok(message.arrival),
            Err(error) => {
                mailbox.put_back(message);
                Err(error)
            }
        }
    }

    /// Brings a message to where it shall lie, which is as long.
    fn deliver(&self, offer: &mut Option<Offer<'_>>, message: Arrival, place: &mut [u8]) -> Result<Received> {
        let received = message.received();
        match message.body {
            Body::Here(data) => {
                place.copy_from_slice(&data);
                if received.source != self.rank() {
                    self.service().desk().received(received.bytes);
                }
            }
            Body::Offered(serial) => self.fetch_offered(offer, received.source, serial, place)?,
        }
        self.check_receive(received.source, received.tag);
        Ok(received)
    }

    /// Has its sender send an offered message.
    fn fetch_offered(&self, offer: &mut Option<Offer<'_>>, source: usize, serial: u64, place: &mut [u8]) -> Result<()> {
        let bytes = place.len();
        self.service().desk().lend(source, serial, place, |arrived| {
            let clear = Piece { serial, ..Piece::zeroed() };
            let slot = self.post_to(source, CLEAR, bytemuck::bytes_of(&clear), &[], false);
            self.origin().collect(slot, |_| ())?;
            // Acquire: pairs with the release after the last piece.
            self.wait_offering(offer, || arrived.load(Ordering::Acquire) == bytes);
            Ok(())
        })
    }
}

/// Refuses a message that is no whole number of `T`, or longer than `room` bytes.
fn suits<T>(message: Received, room: usize) -> Result<()> {
    let (Received { source: rank, tag, bytes }, element) = (message, size_of::<T>());
    if !bytes.is_multiple_of(element) {
        return Err(Error::Argument(format!(
            "the message from rank {rank} with tag {tag} has {bytes} bytes, which are no whole number of elements of \
             {element} bytes: it stays, to be received as what it is"
        )));
    }
    if bytes > room {
        return Err(Error::BufferTooShort { rank, tag, bytes, room });
    }
    Ok(())
}
