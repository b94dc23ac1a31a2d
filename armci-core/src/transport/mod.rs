//! The wire, behind one trait.
//!
//! [`Transport`] is all that the rest of the crate knows of it: remote memory
//! access as far as [`Capabilities`] say, and active messages. [`shm`] joins
//! the ranks of one node, [`ofi`] the nodes; [`Wire`] is what a process has of both.
//! Every decision between remote memory access and
//! active message is taken above, by capability, never by name.
//!
//! # Safety
//! Only declarations: what a caller of each `unsafe` method promises is said there.
#![allow(unsafe_code)]

pub(crate) mod ofi;
mod shm;
mod wire;

pub(crate) use wire::Wire;

use crate::accumulate::kernels::ElementKind;
use crate::copy::Patch;
use crate::node::message::Status;

/// What a transport does without the target's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Put and get.
    pub(crate) rma: bool,
    /// Accumulate, atomic per element.
    pub(crate) accumulate: bool,
    /// Read-modify-write of 4 and 8 bytes.
    pub(crate) rmw: bool,
}

/// What a read-modify-write does to its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmwKind {
    FetchAdd,
    Swap,
    CompareSwap,
}

/// One read-modify-write, on 8 bytes if `wide` or else on 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rmw {
    pub(crate) kind: RmwKind,
    pub(crate) wide: bool,
    pub(crate) operand: u64,
    pub(crate) compare: u64,
}

/// A byte in the memory of a rank: whose slot, and how far into it. (Messages name ranks: a slot means something on
/// its node only.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remote {
    /// [`Remote::FAR`] for a rank of another node.
    pub(crate) slot: usize,
    pub(crate) offset: u64,
}

impl Remote {
    /// Stands for the slot of a rank that shares no memory with this one.
    const FAR: usize = usize::MAX;

    /// A place on another node, which is known to be there.
    pub(crate) fn far(offset: u64) -> Self {
        Remote { slot: Self::FAR, offset }
    }

    /// Whether it lies on this node.
    #[inline(always)]
    pub(crate) fn is_near(self) -> bool {
        self.slot != Self::FAR
    }
}

/// A message to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) handler: u16,
    /// The request slot whose reply cell and staging chunk belong to this message.
    pub(crate) slot: usize,
    /// At most [`INLINE_MAX`](crate::node::message::INLINE_MAX) bytes.
    pub(crate) inline: [&'a [u8]; 2],
    /// Bytes of the slot's staging chunk that travel too.
    pub(crate) staged_len: usize,
}

/// A message that arrived, while it is being served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub(crate) handler: u16,
    /// The rank that sent it.
    pub(crate) source: usize,
    /// What the message carried itself.
    pub(crate) inline: &'a [u8],
    /// What travelled in the staging chunk.
    pub(crate) staged: &'a [u8],
    /// Where a reply of up to [`REPLY_INLINE_MAX`](crate::node::message::REPLY_INLINE_MAX) bytes is to be written.
    pub(crate) reply_inline: *mut u8,
    /// Where a longer one is to be written, at least [`STAGING_BYTES`](crate::node::message::STAGING_BYTES).
    /// It may be the place of `staged`, which is over once this is written.
    pub(crate) reply_staged: *mut u8,
    /// Bytes of a reply that data may fill.
    pub(crate) reply_room: usize,
}

/// How serving a message ended: the reply's status and length.
pub(crate) type Served = (Status, usize);

/// The transport cannot take more now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Again;

/// A kind of wire.
///
/// Remote memory access is locally complete and ordered when a call returns;
/// [`Transport::fence`] completes it remotely. Bounds, alignment and rank are
/// checked by the caller.
pub(crate) trait Transport {
    /// What it does without the target's help.
    fn capabilities(&self) -> Capabilities;

    /// Copies `len` bytes from `from` to the target.
    ///
    /// # Safety
    /// Both sides are mapped for `len` bytes; the remote one lies in a live region.
    unsafe fn put(&self, to: Remote, from: *const u8, len: usize);

    /// Copies `len` bytes from the target to `to`.
    ///
    /// # Safety
    /// As for [`Transport::put`].
    unsafe fn get(&self, from: Remote, to: *mut u8, len: usize);

    /// Copies a patch to the target.
    ///
    /// # Safety
    /// As for [`Transport::put`], for every row of the patch.
    unsafe fn put_patch(&self, to: Remote, from: *const u8, patch: &Patch);

    /// Copies a patch from the target.
    ///
    /// # Safety
    /// As for [`Transport::put`], for every row of the patch.
    unsafe fn get_patch(&self, from: Remote, to: *mut u8, patch: &Patch);

    /// Adds `alpha` times a patch of elements of `kind` to the target's, atomically per element.
    ///
    /// # Safety
    /// As for [`Transport::put`], for every row; rows are whole elements, aligned at the target.
    unsafe fn accumulate(&self, to: Remote, from: *const u8, patch: &Patch, kind: ElementKind, alpha: &[u8; 16]);

    /// [`Transport::accumulate`] of one row of `len` bytes.
    ///
    /// # Safety
    /// As for [`Transport::accumulate`].
    unsafe fn accumulate_row(&self, to: Remote, from: *const u8, len: usize, kind: ElementKind, alpha: &[u8; 16]);

    /// Changes a word of the target and returns what it held.
    ///
    /// # Safety
    /// The word is mapped, aligned and in a live region.
    unsafe fn rmw(&self, at: Remote, rmw: Rmw) -> u64;

    /// Stores a word at the target with release, then wakes the threads of the target that wait inside a call.
    ///
    /// # Safety
    /// As for [`Transport::rmw`], 8 bytes.
    unsafe fn signal(&self, to: Remote, value: u64);

    /// Makes all that this thread did by remote memory access visible at its targets.
    fn fence(&self);

    /// Sends an active message of an origin context to rank `target`; those of one context to one target arrive in order.
    ///
    /// # Errors
    /// [`Again`] if the target's inbox is full; nothing was sent.
    fn send(&self, context: usize, target: usize, message: &Outgoing<'_>) -> Result<(), Again>;

    /// Takes the oldest message that arrived, has it served, and replies; whether there was one.
    ///
    /// # Safety
    /// SERVICE-OWNER: only the holder of the service context calls this.
    unsafe fn serve_one(&self, serve: &mut dyn FnMut(&Incoming<'_>) -> Served) -> bool;

    /// Whether a message waits to be served. The one that is being served waits no more.
    fn has_message(&self) -> bool;

    /// A thread of this rank begins to look at the inbox, so that senders need not wake the server.
    fn begin_looking(&self);

    /// A thread stops looking. It must look once more afterwards, and serve or pass on what it finds.
    fn end_looking(&self);

    /// Wakes who can serve this rank: its progress thread, or, without one, its threads that sleep in a wait.
    fn pass_on(&self);

    /// Sleeps, as a thread that waits inside a call, until somebody may have made `ready` true.
    fn sleep_unless(&self, ready: impl FnOnce() -> bool)
    where
        Self: Sized;

    /// Wakes the threads of this rank that wait inside a call. To be called after what they wait for was published.
    fn wake_waiters(&self);

    /// Sleeps, as the progress thread, until a message may have come or [`Transport::wake_server`] was called.
    fn sleep_as_server_unless(&self, ready: impl FnOnce() -> bool)
    where
        Self: Sized;

    /// Wakes the progress thread.
    fn wake_server(&self);
}
