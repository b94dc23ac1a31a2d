//! The sockets of this process, for tests that break its connections.
//!
//! # Safety
//! DESCRIPTOR: a number from `/proc/self/fd` is borrowed for one call, which fails if it was closed meanwhile.
#![allow(unsafe_code)]

use std::os::fd::{BorrowedFd, RawFd};

use rustix::net::{AddressFamily, Shutdown, shutdown, sockopt::socket_domain};

/// Breaks what goes over IP by this descriptor; whether there was anything.
pub fn break_inet(number: RawFd) -> bool {
    // SAFETY: DESCRIPTOR.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let inet = matches!(socket_domain(descriptor), Ok(AddressFamily::INET | AddressFamily::INET6));
    inet && shutdown(descriptor, Shutdown::Both).is_ok()
}
