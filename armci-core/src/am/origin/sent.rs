//! What is known of something that is under way in a request slot: what it does where, how it goes, and what becomes of
//! its reply. Pure: whoever asks has a copy.

use crate::am::landing::{Landing, Tag, Which};
use crate::consistency::{Access, Outstanding};

/// A message under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) what: Outstanding,
    pub(super) handler: u16,
    pub(super) answer: Answer,
    pub(super) by: By,
    /// Whether it is on this node.
    pub(super) near: bool,
}

/// How something is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// As a message; those to one target are served in the order sent.
    Message,
    /// As a remote memory access between nodes, of so many bytes.
    Access(usize),
    /// As a message between nodes whose payload is fetched, or whose reply is stored: it is served at any time, and what
    /// is sent after it may be served before. Whether its sender stays in its call until it is over.
    Bulk { in_call: bool },
}

/// What is done with a reply.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// Whoever sent the message collects it.
    Awaited,
    /// It only says that the message was served.
    Acknowledgement,
    /// It is data.
    Data { tag: Tag, landing: Landing },
}

impl Sent {
    /// Whether its reply is dealt with by whoever finds it.
    pub(super) fn detached(&self) -> bool {
        !matches!(self.answer, Answer::Awaited)
    }

    /// Whether it changes something at its target, perhaps.
    pub(super) fn changes(&self) -> bool {
        match self.answer {
            Answer::Acknowledgement => true,
            Answer::Data { .. } => self.what.access == Access::Put,
            Answer::Awaited => false,
        }
    }

    /// Whether it and a later access of this kind give the same in any order, where neither order is kept.
    pub(super) fn commutes_with(&self, later: Access) -> bool {
        (self.what.access, later) == (Access::Accumulate, Access::Accumulate)
    }

    /// The get, or the put that is still being read, it belongs to.
    pub(super) fn tag(&self) -> Option<Tag> {
        match self.answer {
            Answer::Data { tag, .. } => Some(tag),
            Answer::Awaited | Answer::Acknowledgement => None,
        }
    }

    /// Whether it is one of these gets.
    pub(super) fn is_of(&self, which: Which) -> bool {
        self.tag().is_some_and(|tag| which.includes(tag, self.what.target))
    }
}
