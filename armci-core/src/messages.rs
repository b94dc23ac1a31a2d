//! A user's own active messages: register a handler, send to it, wait for its reply.

use crate::am::{Delivery, HandlerId, Reply};
use crate::consistency::{Access, Outstanding};
use crate::error::{Error, Result};
use crate::node::message::{INLINE_MAX, STAGING_BYTES};
use crate::transport::Outgoing;
use crate::world::World;

impl World {
    /// Registers a handler for active messages. Every rank registers the same handlers in the same order, and
    /// passes a barrier before the first message.
    ///
    /// The handler runs on the target's progress thread, or on a thread of the target that waits in a call. It must
    /// not communicate. What it returns as an error reaches the sender as [`Error::Refused`].
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

    /// Sends a message, has it served, and returns the reply.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::OtherNode`]; if the payload exceeds [`STAGING_BYTES`](crate::STAGING_BYTES), or the
    /// target refused.
    pub fn request(&self, target: usize, handler: HandlerId, payload: &[u8]) -> Result<Vec<u8>> {
        let slot = self.send_user(target, handler, payload, false)?;
        self.origin().collect(slot, <[u8]>::to_vec)
    }

    /// Sends a message and goes on; [`World::fence`] waits until it has been served. The reply is dropped.
    ///
    /// # Errors
    /// As [`World::request`], except that a refusal is the next fence's error.
    pub fn send(&self, target: usize, handler: HandlerId, payload: &[u8]) -> Result<()> {
        self.send_user(target, handler, payload, true).map(drop)
    }

    fn send_user(&self, target: usize, handler: HandlerId, payload: &[u8], detached: bool) -> Result<usize> {
        self.check_open()?;
        self.node().reach(target)?;
        if payload.len() > STAGING_BYTES {
            return Err(Error::MessageTooLong { bytes: payload.len(), limit: STAGING_BYTES });
        }
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
