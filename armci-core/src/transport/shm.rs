//! Ranks of one node: remote memory access is the processor itself.
//!
//! put and get are copies between mapped memory, atomics are the processor's,
//! and no owner takes part. Active messages go through the target's
//! [`ring`]; who is woken for them is settled by its `attention`.
//!
//! # Safety
//! WINDOW-MAPPED (see `memory/window.rs`) for the remote side of every access;
//! REQUEST-SLOT: from the moment a message is sent until its reply cell is
//! complete, the message's reply cell content and staging chunk belong to
//! whoever serves it, and the origin does not touch them.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::{Again, Capabilities, Incoming, Outgoing, Remote, Rmw, RmwKind, Served, Transport};
use crate::accumulate::kernels::ElementKind;
use crate::accumulate::protocol::{apply_patch, apply_row};
use crate::copy::{self, Patch};
use crate::node::message::{INLINE_MAX, Message, STAGING_BYTES};
use crate::node::{Node, ring};

/// The transport of a node.
#[derive(Debug, Clone)]
pub(crate) struct Shm {
    node: Arc<Node>,
}

impl Shm {
    /// The transport among the ranks of `node`.
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Shm { node }
    }

    #[inline]
    fn address(&self, remote: Remote) -> *mut u8 {
        self.node.window().address(remote.slot, remote.offset)
    }
}

impl Transport for Shm {
    fn capabilities(&self) -> Capabilities {
        Capabilities { rma: true, accumulate: true, rmw: true }
    }

    #[inline]
    unsafe fn put(&self, to: Remote, from: *const u8, len: usize) {
        // SAFETY: WINDOW-MAPPED and the caller's promise. A put to oneself may come from the very same memory.
        unsafe { copy::copy_overlapping(self.address(to), from, len) };
    }

    #[inline]
    unsafe fn get(&self, from: Remote, to: *mut u8, len: usize) {
        // SAFETY: WINDOW-MAPPED and the caller's promise.
        unsafe { copy::copy_overlapping(to, self.address(from), len) };
        // Who polls a flag with a get and then gets the data sees what was written before the flag.
        fence(Ordering::Acquire);
    }

    #[inline]
    unsafe fn put_patch(&self, to: Remote, from: *const u8, patch: &Patch) {
        // SAFETY: WINDOW-MAPPED and the caller's promise.
        unsafe { copy::copy_patch(self.address(to), from, patch) };
    }

    #[inline]
    unsafe fn get_patch(&self, from: Remote, to: *mut u8, patch: &Patch) {
        // SAFETY: WINDOW-MAPPED and the caller's promise.
        unsafe { copy::copy_patch(to, self.address(from), patch) };
        fence(Ordering::Acquire);
    }

    #[inline]
    unsafe fn accumulate(&self, to: Remote, from: *const u8, patch: &Patch, kind: ElementKind, alpha: &[u8; 16]) {
        let locks = &self.node.control(to.slot).locks;
        // SAFETY: WINDOW-MAPPED and the caller's promise; the locks are those of the target.
        unsafe { apply_patch(locks, to.offset, self.address(to), from, patch, kind, alpha) };
    }

    #[inline]
    unsafe fn accumulate_row(&self, to: Remote, from: *const u8, len: usize, kind: ElementKind, alpha: &[u8; 16]) {
        let locks = &self.node.control(to.slot).locks;
        // SAFETY: WINDOW-MAPPED and the caller's promise; the locks are those of the target.
        unsafe { apply_row(locks, to.offset, self.address(to), from, len, kind, alpha) };
    }

    #[inline]
    unsafe fn rmw(&self, at: Remote, rmw: Rmw) -> u64 {
        let word = self.address(at);
        let Rmw { kind, wide, operand, compare } = rmw;
        // SAFETY: WINDOW-MAPPED, and aligned by the caller's promise; every access to a counter is atomic.
        unsafe {
            if wide {
                let word = AtomicU64::from_ptr(word.cast());
                match kind {
                    RmwKind::FetchAdd => word.fetch_add(operand, Ordering::AcqRel),
                    RmwKind::Swap => word.swap(operand, Ordering::AcqRel),
                    RmwKind::CompareSwap => word
                        .compare_exchange(compare, operand, Ordering::AcqRel, Ordering::Acquire)
                        .unwrap_or_else(|found| found),
                }
            } else {
                let word = AtomicU32::from_ptr(word.cast());
                u64::from(match kind {
                    RmwKind::FetchAdd => word.fetch_add(operand as u32, Ordering::AcqRel),
                    RmwKind::Swap => word.swap(operand as u32, Ordering::AcqRel),
                    RmwKind::CompareSwap => word
                        .compare_exchange(compare as u32, operand as u32, Ordering::AcqRel, Ordering::Acquire)
                        .unwrap_or_else(|found| found),
                })
            }
        }
    }

    #[inline]
    unsafe fn signal(&self, to: Remote, value: u64) {
        // SAFETY: WINDOW-MAPPED, and aligned by the caller's promise; who waits for the word reads it atomically.
        let word = unsafe { AtomicU64::from_ptr(self.address(to).cast()) };
        // Release: who finds the value finds what was written before it.
        word.store(value, Ordering::Release);
        self.node.control(to.slot).main_bell.ring();
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn send(&self, context: usize, target: usize, message: &Outgoing<'_>) -> Result<(), Again> {
        let control = self.node.control_of(target);
        let [first, second] = message.inline;
        let inline_len = first.len() + second.len();
        assert!(inline_len <= INLINE_MAX, "{inline_len} bytes of arguments");
        control
            .inbox
            .push(|place: *mut Message| {
                // SAFETY: the place is ours until it is stamped, and the lengths were checked above.
                unsafe {
                    (*place).handler = message.handler;
                    (*place).inline_len = inline_len as u16;
                    (*place).source = self.node.who().rank as u32;
                    (*place).context = context as u16;
                    (*place).slot = message.slot as u16;
                    (*place).staged_len = message.staged_len as u32;
                    let inline = (&raw mut (*place).inline).cast::<u8>();
                    inline.copy_from_nonoverlapping(first.as_ptr(), first.len());
                    inline.add(first.len()).copy_from_nonoverlapping(second.as_ptr(), second.len());
                }
            })
            .map_err(|ring::Full| Again)?;
        if !control.attention.somebody_looks() {
            if control.attention.threaded() {
                control.service_bell.ring();
            } else {
                control.main_bell.ring();
            }
        }
        Ok(())
    }

    #[inline]
    unsafe fn serve_one(&self, serve: &mut dyn FnMut(&Incoming<'_>) -> Served) -> bool {
        // SAFETY: SERVICE-OWNER is RING-SINGLE-CONSUMER.
        let served = unsafe {
            self.node.mine().inbox.pop(|message| {
                let source = message.source as usize;
                let block = self.node.context(source, message.context.into());
                let cell = &block.replies[usize::from(message.slot)];
                let staging = block.staging[usize::from(message.slot)].0.with_mut(|chunk| chunk.cast::<u8>());
                let reply_inline = cell.inline.with_mut(|inline| inline.cast::<u8>());
                let incoming = Incoming {
                    handler: message.handler,
                    source: message.source as usize,
                    inline: &message.inline[..(message.inline_len as usize).min(INLINE_MAX)],
                    // SAFETY: REQUEST-SLOT: the chunk is ours to read until the reply is complete.
                    staged: std::slice::from_raw_parts(staging, (message.staged_len as usize).min(STAGING_BYTES)),
                    reply_inline,
                    reply_staged: staging,
                    reply_room: STAGING_BYTES,
                };
                let (status, len) = serve(&incoming);
                cell.complete(status, len);
                self.node.control_of(source).main_bell.ring();
            })
        };
        served.is_some()
    }

    #[inline]
    fn has_message(&self) -> bool {
        self.node.mine().inbox.has_message()
    }

    fn begin_looking(&self) {
        self.node.mine().attention.enter();
    }

    fn end_looking(&self) {
        self.node.mine().attention.leave();
    }

    fn pass_on(&self) {
        let mine = self.node.mine();
        // Without a progress thread, another thread of the rank may sleep in a wait.
        if mine.attention.threaded() { mine.service_bell.ring() } else { mine.main_bell.ring() }
    }

    fn sleep_unless(&self, ready: impl FnOnce() -> bool) {
        self.node.mine().main_bell.sleep_unless(ready);
    }

    #[inline]
    fn wake_waiters(&self) {
        self.node.mine().main_bell.ring();
    }

    fn sleep_as_server_unless(&self, ready: impl FnOnce() -> bool) {
        self.node.mine().service_bell.sleep_on_futex_unless(ready);
    }

    fn wake_server(&self) {
        self.node.mine().service_bell.ring();
    }
}
