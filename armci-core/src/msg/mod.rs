//! Two-sided messages with tags: what the C API's message layer (`armci_msg_snd`, `armci_msg_rcv`) stands on.
//!
//! ```text
//!   sender: send_to                    serving thread of the receiver          receiver: receive
//!   short   MESSAGE, nobody waits  ->  copies it, hands it over      ~~~~~>    takes it off the shelf
//!           ASK now and then       ->  the same; or, holding enough,
//!                                      hands over the news of it     ~~~~~>    as below
//!   long    OFFER (tag, length)    ->  hands over the news of it     ~~~~~>    matches it, lends its buffer,
//!           waits                  <-  .  .  .  .  .  .  .  .  .  .  .  .  .   says CLEAR
//!           DATA, DATA, ...        ->  copies into the lent buffer   ~~~~~>    sleeps until all is there
//! ```
//!
//! [`desk`] is what the serving thread and the rank's own thread share; [`mailbox`] is the own thread's side of it,
//! where messages are matched; [`send`] and [`receive`] are the calls.
//!
//! # Protocol
//! *Matching* is done by the one thread that receives, so no lock guards it: whoever serves the inbox hands each
//! arrival over through a channel, and rings the bell at which that thread sleeps.
//!
//! *Order per pair.* Whatever its size, a message announces itself by one active message, MESSAGE, ASK or OFFER, and
//! those of one rank are served in the order sent. Arrivals are numbered as they are taken out of the channel, and the
//! lowest number that matches is received. So a short message cannot overtake a long one.
//!
//! *Bounded memory.* A short message ([`EAGER_MAX`]) is accepted unasked, as long as its sender has sent less than
//! [`BUDGET`] since it last asked. Then it asks: the message goes awaited, and the reply says whether the target took
//! it, which renews the budget, or holds [`HELD_MAX`] already and took only the news of it, which makes it a long
//! message. A rank so holds at most `HELD_MAX`, a budget per sender, and one offer per sender. Asking with the message
//! itself spares a separate probe: the message keeps its place in the order either way.
//!
//! *Long messages.* The sender waits until its offer is matched; one offer per rank is open at a time. CLEAR tells it
//! so; its reply tells the receiver whether the sender knew of the offer, so a receive of something never sent is an
//! error and not a wait for ever. DATA messages name the offer and their place in it, and are refused unless they
//! continue exactly what has arrived. They go detached, through the request slots: packing one overlaps with the
//! copy of another out of its chunk.
//!
//! *To oneself* a message goes straight to the shelf, whatever its size: nobody else could ever receive it.
//!
//! *No deadlock of ours.* Handlers hand over, they do not communicate; CLEAR is sent by the receiving thread, DATA by the sending
//! one. Who waits in any of these serves its own inbox. What remains is the program's: two ranks that each send the
//! other a long message before either receives wait for ever, as in MPI; [`World::send_receive`](crate::World::send_receive) is for
//! those.

mod desk;
mod mailbox;
mod receive;
mod send;

pub(crate) use desk::{Desk, serves};
pub(crate) use mailbox::Mailbox;

use bytemuck::{Pod, Zeroable};

use crate::node::message::STAGING_BYTES;

/// A short message that is accepted unasked.
pub(crate) const MESSAGE: u16 = 32;
/// A short message whose sender waits to hear whether it was accepted.
pub(crate) const ASK: u16 = 33;
/// The news of a long message.
pub(crate) const OFFER: u16 = 34;
/// The receiver of an offered message is ready for its data.
pub(crate) const CLEAR: u16 = 35;
/// A piece of an offered message.
pub(crate) const DATA: u16 = 36;

/// Bytes of the longest message that goes unasked: what fits one active message.
const EAGER_MAX: usize = STAGING_BYTES;
/// What a rank may send to another before it asks.
const BUDGET: usize = 128 << 10;
/// What a rank holds unreceived before it answers no.
const HELD_MAX: usize = 16 << 20;
/// What a message costs whoever holds it, besides its bytes.
const OVERHEAD: usize = 256;

/// What a message of `bytes` bytes takes from a budget.
fn charge(bytes: usize) -> usize {
    bytes + OVERHEAD
}

/// The fixed part of MESSAGE, ASK and OFFER; the data of a short one follows.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Letter {
    tag: i32,
    zero: u32,
    /// The sender's number for it.
    serial: u64,
    /// Bytes.
    length: u64,
}

/// The fixed part of CLEAR, where `offset` is 0, and of DATA.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Piece {
    serial: u64,
    /// First byte of the message that follows here.
    offset: u64,
}

/// Whose messages a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Anybody's.
    Any,
    /// Those of this rank.
    Rank(usize),
}

/// Which messages a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// With any tag.
    Any,
    /// With this one.
    Is(i32),
}

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Source::Rank(rank)
    }
}

impl From<i32> for Tag {
    fn from(tag: i32) -> Self {
        Tag::Is(tag)
    }
}

/// What is known of a message that was received, or could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The rank that sent it.
    pub source: usize,
    /// Its tag.
    pub tag: i32,
    /// Its length.
    pub bytes: usize,
}

/// Which messages a call asks for.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    source: Source,
    tag: Tag,
}

impl Wanted {
    fn includes(self, source: usize, tag: i32) -> bool {
        (self.source == Source::Any || self.source == Source::Rank(source))
            && (self.tag == Tag::Any || self.tag == Tag::Is(tag))
    }
}
