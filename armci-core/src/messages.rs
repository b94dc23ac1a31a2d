//! A user's own active messages: register a handler, send to it, wait for its reply.
//!
//! [`World::send`] and [`World::request`] carry a payload, [`World::send_long`] and
//! [`World::request_long`] also put data; `am/mod.rs` says which sizes travel how.

use bytemuck::Pod;

use crate::am::handlers::{LONG, LongArgs};
use crate::am::{Delivery, HandlerId, Reply};
use crate::consistency::{Access, Outstanding};
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::transport::{Outgoing, Transport};
use crate::watch::{Call, Kind};
use crate::world::World;

impl World {
    /// Registers a handler for active messages. Every rank registers the same handlers in the same order, and
    /// passes a barrier before the first message.
    ///
    /// The handler runs on the target's progress thread, or on a thread of the target that waits in a call. It must
    /// not communicate. Threads and processes that it starts inherit where the progress thread sits, and its niceness. What it returns as an error reaches the sender as [`Error::Refused`].
    ///
    /// # Errors
    /// If the table is full.
    pub fn register<F>(&self, handler: F) -> Result<HandlerId>
    where
        F: Fn(Delivery<'_>, &mut Reply) -> std::result::Result<(), String> + Send + Sync + 'static,
    {
        let registered = self.service().handlers().register(Box::new(handler));
        registered.ok_or_else(|| Error::Argument("256 handlers are registered, which is all that fit".into()))
    }

    /// Sends a message, has it served, and returns the reply: a remote procedure call.
    ///
    /// A payload of up to [`INLINE_MAX`](crate::INLINE_MAX) bytes is the fastest.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// // A procedure that every rank offers: the sum of some numbers.
    /// let sum = world.register(|delivery, reply| {
    ///     let (numbers, rest) = delivery.payload.as_chunks::<8>();
    ///     if !rest.is_empty() {
    ///         return Err(format!("{} bytes are no whole numbers", delivery.payload.len()));
    ///     }
    ///     let sum: f64 = numbers.iter().map(|number| f64::from_ne_bytes(*number)).sum();
    ///     reply.set(&sum.to_ne_bytes())
    /// })?;
    /// world.barrier()?; // every rank has it now
    ///
    /// let right = (world.rank() + 1) % world.size();
    /// let numbers = [1.0f64, 2.0, 3.5];
    /// let answer = world.request(right, sum, bytemuck::cast_slice(&numbers))?;
    /// assert_eq!(answer, 6.5f64.to_ne_bytes());
    ///
    /// // What the procedure returns as an error is the caller's.
    /// assert!(world.request(right, sum, b"abc").is_err());
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Rank`]; if the payload exceeds [`STAGING_BYTES`](crate::STAGING_BYTES), or the
    /// target refused.
    #[track_caller]
    pub fn request(&self, target: usize, handler: HandlerId, payload: &[u8]) -> Result<Vec<u8>> {
        self.message(target, payload.len(), || {
            let slot = self.send_user(target, handler, payload, false)?;
            let answer = self.origin().collect(slot, <[u8]>::to_vec);
            self.check_reply(target);
            answer
        })
    }

    /// Sends a message and goes on; [`World::fence`] waits until it has been served. The reply is dropped.
    ///
    /// # Errors
    /// As [`World::request`], except that a refusal is the next fence's error.
    #[track_caller]
    pub fn send(&self, target: usize, handler: HandlerId, payload: &[u8]) -> Result<()> {
        self.message(target, payload.len(), || self.send_user(target, handler, payload, true).map(drop))
    }

    /// Puts `data` to `target`, and then has `handler` run at that rank with `arguments`, of up to
    /// [`STAGING_BYTES`](crate::STAGING_BYTES), and the place of the data: a *long* message.
    ///
    /// The data may have any length, and goes whichever way a put goes; when the handler runs, it is in place, and
    /// [`Delivery::data`] says where. On return `data` may be reused; [`World::fence`] waits until the message has
    /// been served.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// let world = armci_core::World::init()?;
    /// let region = world.allocate(8 * 100_000)?;
    /// let largest = world.register(|delivery, reply| {
    ///     let data = delivery.data.ok_or("data is expected")?;
    ///     let largest = data.to_vec::<f64>().into_iter().fold(f64::MIN, f64::max);
    ///     reply.set(&largest.to_ne_bytes())
    /// })?;
    /// world.barrier()?;
    /// let right = (world.rank() + 1) % world.size();
    /// let row: Vec<f64> = (0..100_000).map(|i| f64::from(i % 977)).collect();
    /// let answer = world.request_long(largest, &[], &row, region.at(right, 0))?;
    /// assert_eq!(answer, 976f64.to_ne_bytes());
    /// # world.barrier()?;
    /// # world.free(region)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`World::send`], about the arguments; as [`World::put`], about the data. Nothing was written or sent then.
    #[track_caller]
    pub fn send_long<T: Pod>(
        &self,
        handler: HandlerId,
        arguments: &[u8],
        data: &[T],
        target: GlobalPtr<T>,
    ) -> Result<()> {
        fits(arguments)?;
        self.put(data, target)?;
        self.message(target.rank(), arguments.len(), || {
            self.send_placed(handler, arguments, size_of_val(data), target.cast(), true);
            Ok(())
        })
    }

    /// As [`World::send_long`], and waits for the reply.
    ///
    /// # Errors
    /// As [`World::send_long`]; or if the target refused.
    #[track_caller]
    pub fn request_long<T: Pod>(
        &self,
        handler: HandlerId,
        arguments: &[u8],
        data: &[T],
        target: GlobalPtr<T>,
    ) -> Result<Vec<u8>> {
        fits(arguments)?;
        self.put(data, target)?;
        self.message(target.rank(), arguments.len(), || {
            let slot = self.send_placed(handler, arguments, size_of_val(data), target.cast(), false);
            let answer = self.origin().collect(slot, <[u8]>::to_vec);
            self.check_reply(target.rank());
            answer
        })
    }

    /// Runs what sends a message to a rank, and tells who watches.
    #[inline]
    #[track_caller]
    fn message<T>(&self, target: usize, bytes: usize, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_plain() { run() } else { self.watched(&Call::to(Kind::Message, target, bytes), run) }
    }

    /// Sends the message that follows so many bytes put to `target`.
    fn send_placed(
        &self,
        handler: HandlerId,
        arguments: &[u8],
        bytes: usize,
        target: GlobalPtr<u8>,
        detached: bool,
    ) -> usize {
        // By message, the data goes the way of the message, ahead of it; by remote memory access it is in place when
        // this is past.
        self.transport().fence();
        self.check_fence(Some(target.rank()));
        self.check_handler(target.rank());
        let place = LongArgs { region: target.region.to_bits(), offset: target.offset, bytes: bytes as u64 };
        self.post_to(target.rank(), handler.0 | LONG, bytemuck::bytes_of(&place), arguments, detached)
    }

    fn send_user(&self, target: usize, handler: HandlerId, payload: &[u8], detached: bool) -> Result<usize> {
        self.check_open()?;
        self.node().node_of(target)?;
        fits(payload)?;
        self.check_handler(target);
        Ok(self.post_to(target, handler.0, &[], payload, detached))
    }

    /// Sends a message that changes nothing the conflict tracker knows of: `header` in the message itself, `data`
    /// behind it if it fits there, else staged. Says in which slot.
    pub(crate) fn post_to(&self, target: usize, handler: u16, header: &[u8], data: &[u8], detached: bool) -> usize {
        let origin = self.origin();
        let slot = origin.claim();
        let short = header.len() + data.len() <= INLINE_MAX;
        if !short {
            origin.stage(slot, data);
        }
        let (inline, staged_len) = if short { ([header, data], 0) } else { ([header, &[]], data.len()) };
        let message = Outgoing { handler, slot, inline, staged_len };
        origin.post(&message, Outstanding { target, region: None, access: Access::Other }, detached);
        slot
    }
}

/// Refuses what is too long for one message.
fn fits(payload: &[u8]) -> Result<()> {
    if payload.len() > STAGING_BYTES {
        return Err(Error::MessageTooLong { bytes: payload.len(), limit: STAGING_BYTES });
    }
    Ok(())
}
