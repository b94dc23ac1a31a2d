//! An endpoint and its completion queue: what one context sends, receives, reads and writes through.
//!
//! Guaranteed: nothing here waits. An operation is taken or not ([`Trouble::Again`]); whoever is told "again" looks at
//! the queue, which is what makes room. Completions bring back the context that the operation was given.
//!
//! # Safety
//! FABRIC-ABI, FABRIC-OBJECT (see `library.rs`). OPERATION-MEMORY: the buffers of an operation, and the [`Token`] whose
//! address is its context, stay where they are and belong to the provider until its completion was taken out.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::abi;
use super::domain::Domain;
use super::faults::Faults;
use super::library::Object;
use crate::error::Result;

/// Words that an operation lends the provider; its address tells operations apart.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Token {
    words: std::cell::UnsafeCell<[u64; 8]>,
}

impl Default for Token {
    fn default() -> Self {
        Token { words: std::cell::UnsafeCell::new([0; 8]) }
    }
}

/// Why an operation was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is no room now: look at the queue, and try once more.
    Again,
    /// It never will be, by this code of libfabric's.
    Error(c_int),
}

/// An operation that failed after it was taken.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    /// Which.
    pub(super) context: *mut c_void,
    /// Its code.
    pub(super) code: c_int,
    /// What that means, and what the provider adds.
    pub(super) reason: String,
}

impl Failed {
    /// Whether only a message that nobody of ours sends was too long.
    pub(super) fn is_too_long(&self) -> bool {
        self.code == TRUNCATED
    }
}

/// Memory of this process, and what it is registered as if the provider wants that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local {
    pub(super) at: *mut u8,
    pub(super) desc: *mut c_void,
}

/// Remote memory, as operations name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The endpoint it is bound to.
    pub(super) endpoint: u64,
    /// Its address there, or offset.
    pub(super) address: u64,
    pub(super) key: u64,
}

/// An endpoint of this process. One thread at a time uses it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    // In this order they are dropped.
    endpoint: Object<abi::Ep>,
    queue: Object<abi::Cq>,
    wait: Option<RawFd>,
    /// How often in a row the provider has kept from sleep whoever asked.
    kept_awake: AtomicU32,
    domain: Arc<Domain>,
    /// What tests ask for.
    faults: Option<Box<Faults>>,
}

const AGAIN: isize = -11;
const ERROR_AVAILABLE: isize = -259;
/// A connection that the peer has left.
const GONE: c_int = 104;
/// A message that is longer than the buffer that it came to.
const TRUNCATED: c_int = 265;

impl Endpoint {
    /// Opens one.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn open(domain: &Arc<Domain>) -> Result<Self> {
        let library = domain.library();
        let (queue, wait) = domain.open_queue()?;
        let endpoint = domain.open_endpoint()?;
        library.check("an endpoint its addresses", endpoint.bind(domain.addresses(), 0))?;
        library.check("an endpoint its queue", endpoint.bind(&queue, abi::SEND | abi::RECV))?;
        // SAFETY: FABRIC-ABI: this command takes no argument.
        library.check("to enable an endpoint", unsafe { endpoint.control(abi::ENABLE, ptr::null_mut()) })?;
        let faults = domain.faults(endpoint.as_ptr() as u64 >> 4);
        let kept_awake = AtomicU32::new(0);
        Ok(Endpoint { endpoint, queue, wait, kept_awake, domain: domain.clone(), faults })
    }

    /// Its address, for others.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn name(&self) -> Result<Vec<u8>> {
        let mut name = vec![0u8; 256];
        let mut len = name.len();
        // SAFETY: FABRIC-ABI; the length says how much room there is.
        let code = unsafe {
            let cm = &*self.endpoint.get().cm;
            (cm.getname)(self.endpoint.fid(), name.as_mut_ptr().cast(), &mut len)
        };
        self.domain.library().check("an endpoint's address", code)?;
        name.truncate(len);
        Ok(name)
    }

    /// The object, for what is bound to it.
    pub(super) fn object(&self) -> &Object<abi::Ep> {
        &self.endpoint
    }

    /// What becomes readable when there may be something to take out, or to move on; none if the provider has no such
    /// thing.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor is the queue's, and open as long as that is.
        self.wait.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Whether [`Endpoint::descriptor`] tells the truth now: nothing has come since it was last looked at.
    pub(super) fn may_sleep(&self) -> bool {
        // Without a descriptor there is nothing to ask, and some providers do not survive the question.
        let may = self.wait.is_none() || self.domain.may_wait(&self.queue);
        let times = if may { 0 } else { self.kept_awake.load(Ordering::Relaxed).saturating_add(1) };
        self.kept_awake.store(times, Ordering::Relaxed);
        may
    }

    /// How often in a row the answer was no. Data may be flowing; or libfabric 1.17's tcp goes on saying so for
    /// milliseconds (its issue 8947, mended in 1.19), and who believed it would keep a core from the thread that it
    /// waits for.
    pub(super) fn kept_awake(&self) -> u32 {
        self.kept_awake.load(Ordering::Relaxed)
    }

    /// Whether tests want an attempt refused.
    fn refuses(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.refuses())
    }

    /// Whether tests want a request to come before others.
    pub(super) fn lets_overtake(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.overtakes())
    }

    /// Whether tests want the next request lost.
    pub(super) fn loses_request(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.loses_request())
    }

    /// Whether tests want a reply that has come lost.
    pub(super) fn loses_reply(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.loses_reply())
    }

    /// Whether tests want a reply to come twice.
    pub(super) fn repeats(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.comes_twice())
    }

    /// Whether tests want an answer of so many bytes to this rank not taken now.
    pub(super) fn withholds(&self, rank: usize, bytes: usize) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.withholds(rank, bytes))
    }

    /// Posts a buffer for a message.
    ///
    /// # Safety
    /// OPERATION-MEMORY.
    pub(super) unsafe fn receive(&self, buffer: Local, len: usize, token: &Token) -> std::result::Result<(), Trouble> {
        // SAFETY: FABRIC-ABI, OPERATION-MEMORY.
        told(unsafe {
            let msg = &*self.endpoint.get().msg;
            let Local { at, desc } = buffer;
            (msg.recv)(self.endpoint.as_ptr(), at.cast(), len, desc, abi::ADDR_UNSPEC, token.context())
        })
    }

    /// Sends a message in two pieces.
    ///
    /// # Safety
    /// OPERATION-MEMORY.
    pub(super) unsafe fn send(
        &self,
        to: u64,
        pieces: [(Local, usize); 2],
        token: &Token,
    ) -> std::result::Result<(), Trouble> {
        if self.refuses() {
            return Err(Trouble::Again);
        }
        let iov = pieces.map(|(local, len)| abi::Iov { base: local.at.cast(), len });
        let mut desc = pieces.map(|(local, _)| local.desc);
        let message = abi::Msg {
            iov: iov.as_ptr(),
            desc: desc.as_mut_ptr(),
            iov_count: if pieces[1].1 == 0 { 1 } else { 2 },
            addr: to,
            context: token.context(),
            data: 0,
        };
        // SAFETY: FABRIC-ABI, OPERATION-MEMORY.
        told(unsafe {
            let msg = &*self.endpoint.get().msg;
            (msg.sendmsg)(self.endpoint.as_ptr(), &message, abi::COMPLETION)
        })
    }

    /// Writes to remote memory; complete when it is there.
    ///
    /// # Safety
    /// OPERATION-MEMORY; the target's memory is there to be written.
    pub(super) unsafe fn write(
        &self,
        to: Target,
        from: Local,
        len: usize,
        token: &Token,
    ) -> std::result::Result<(), Trouble> {
        // SAFETY: OPERATION-MEMORY.
        unsafe {
            self.access(to, from, len, token, |rma, endpoint, message| {
                (rma.writemsg)(endpoint, message, abi::COMPLETION | abi::DELIVERY_COMPLETE)
            })
        }
    }

    /// Reads remote memory.
    ///
    /// # Safety
    /// OPERATION-MEMORY.
    pub(super) unsafe fn read(
        &self,
        from: Target,
        to: Local,
        len: usize,
        token: &Token,
    ) -> std::result::Result<(), Trouble> {
        // SAFETY: OPERATION-MEMORY.
        unsafe {
            self.access(from, to, len, token, |rma, endpoint, message| {
                (rma.readmsg)(endpoint, message, abi::COMPLETION)
            })
        }
    }

    /// # Safety
    /// OPERATION-MEMORY.
    unsafe fn access(
        &self,
        target: Target,
        local: Local,
        len: usize,
        token: &Token,
        call: impl FnOnce(&abi::RmaOps, *mut abi::Ep, &abi::MsgRma) -> isize,
    ) -> std::result::Result<(), Trouble> {
        if self.refuses() {
            return Err(Trouble::Again);
        }
        debug_assert!(!self.domain.wants_local() || !local.desc.is_null(), "memory that is not registered");
        let iov = abi::Iov { base: local.at.cast(), len };
        let remote = abi::RmaIov { addr: target.address, len, key: target.key };
        let mut desc = local.desc;
        let message = abi::MsgRma {
            iov: &iov,
            desc: &mut desc,
            iov_count: 1,
            addr: target.endpoint,
            rma_iov: &remote,
            rma_iov_count: 1,
            context: token.context(),
            data: 0,
        };
        // SAFETY: FABRIC-ABI.
        let rma = unsafe { &*self.endpoint.get().rma };
        told(call(rma, self.endpoint.as_ptr(), &message))
    }

    /// Moves on what can be moved on, and takes completions out.
    ///
    /// # Errors
    /// The operation that failed.
    pub(super) fn poll<'a>(
        &self,
        room: &'a mut [abi::Completion],
    ) -> std::result::Result<&'a [abi::Completion], Failed> {
        if self.faults.as_ref().is_some_and(|faults| faults.holds_back()) {
            return Ok(&[]);
        }
        let queue = self.queue.as_ptr();
        // SAFETY: FABRIC-ABI; the format of completions is that of `Completion`, and the room is as large as said.
        let taken = unsafe { ((*self.queue.get().ops).read)(queue, room.as_mut_ptr().cast(), room.len()) };
        match taken {
            AGAIN | 0 => Ok(&[]),
            ERROR_AVAILABLE => Err(self.failed()),
            count if count > 0 => match &self.faults {
                Some(faults) if faults.fails(count as usize) => {
                    let reason = "a fault that ARMCI_FABRIC_FAULTS asked for".into();
                    Err(Failed { context: room[0].context, code: GONE, reason })
                }
                _ => Ok(&room[..count as usize]),
            },
            code => {
                let reason = self.domain.library().meaning(code as c_int);
                Err(Failed { context: ptr::null_mut(), code: -(code as c_int), reason })
            }
        }
    }

    fn failed(&self) -> Failed {
        // SAFETY: FABRIC-ABI: zeroes are a valid entry, and ask for no further data.
        let mut entry: abi::CqError = unsafe { std::mem::zeroed() };
        // SAFETY: FABRIC-ABI.
        let (code, reason) = unsafe {
            let ops = &*self.queue.get().ops;
            (ops.readerr)(self.queue.as_ptr(), &mut entry, 0);
            let add = (ops.strerror)(self.queue.as_ptr(), entry.prov_errno, entry.err_data, ptr::null_mut(), 0);
            (entry.err, super::library::text(add))
        };
        let meaning = self.domain.library().meaning(code);
        let reason = if reason.is_empty() || reason == meaning { meaning } else { format!("{meaning} ({reason})") };
        Failed { context: entry.context, code, reason }
    }
}

impl Token {
    fn context(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }
}

fn told(code: isize) -> std::result::Result<(), Trouble> {
    match code {
        0 => Ok(()),
        AGAIN => Err(Trouble::Again),
        code => Err(Trouble::Error(code as c_int)),
    }
}
