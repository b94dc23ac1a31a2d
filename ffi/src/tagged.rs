//! The message layer: send and receive.
//!
//! # Safety
//! C-BUFFER, as in `collective`. C-WORD: an `int` may be written at `msglen`, unless that is NULL.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use armci_core::{Error, Result, Source};

use crate::abi::c_functions;
use crate::arguments::rank;
use crate::collective::elements;
use crate::member::primary;

c_functions! {
    /// Sends `len` bytes to rank `to`.
    answer fn armci_msg_snd(tag: c_int, buffer: *mut c_void, len: c_int, to: c_int) = || {
        let (world, _) = primary()?;
        let to = rank(world, to)?;
        // SAFETY: C-BUFFER.
        world.send_to(to, tagged(tag)?, unsafe { elements(buffer.cast::<u8>(), len)? })
    };

    /// Receives a message with this tag from rank `from`; says how long it was.
    answer fn armci_msg_rcv(tag: c_int, buffer: *mut c_void, buflen: c_int, msglen: *mut c_int, from: c_int) = || {
        let (world, _) = primary()?;
        let from = Source::Rank(rank(world, from)?);
        // SAFETY: C-BUFFER, C-WORD.
        unsafe { receive(from, tag, buffer, buflen, msglen) }.map(drop)
    };

    /// Receives a message with this tag from any rank; says how long it was, and returns whose.
    answer fn armci_msg_rcvany(tag: c_int, buffer: *mut c_void, buflen: c_int, msglen: *mut c_int) -> c_int =
        // SAFETY: C-BUFFER, C-WORD.
        || unsafe { receive(Source::Any, tag, buffer, buflen, msglen) };
}

/// Refuses what is no tag: negative ones are ours.
fn tagged(tag: c_int) -> Result<i32> {
    if tag >= 0 { Ok(tag) } else { Err(Error::Argument(format!("the tag is {tag}, which is negative"))) }
}

/// # Safety
/// C-BUFFER, C-WORD.
unsafe fn receive(from: Source, tag: c_int, buffer: *mut c_void, buflen: c_int, msglen: *mut c_int) -> Result<c_int> {
    let (world, _) = primary()?;
    // SAFETY: C-BUFFER.
    let received = world.receive(from, tagged(tag)?, unsafe { elements(buffer.cast::<u8>(), buflen)? })?;
    if !msglen.is_null() {
        // SAFETY: C-WORD.
        unsafe { msglen.write(received.bytes as c_int) };
    }
    Ok(received.source as c_int)
}
