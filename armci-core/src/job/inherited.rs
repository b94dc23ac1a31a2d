//! The descriptor that a rank inherits from its launcher, before it is known to be one.
//!
//! # Safety
//! INHERITED-CONTROL: a descriptor named by `ARMCI_JOB` is used only after `fstat` (harmless on any
//! number) showed it to be the socket the launcher made for this rank. Nothing in this process has
//! another claim to it, and nothing here closes it, so a borrow of it lives as long as the process.
//! INHERITED-PMI: a descriptor named by `PMI_FD` is used only after `fstat` showed it to be a socket, and for nothing but
//! to be asked about, duplicated and marked close-on-exec. An MPI of this process may close it, in `MPI_Finalize`: then
//! these calls fail, or tell of another descriptor; they change no content.
#![allow(unsafe_code)]

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::Errno;

/// Borrows a descriptor by its number, if that is open.
pub(super) fn inherited(descriptor: RawFd) -> Result<BorrowedFd<'static>, Errno> {
    if descriptor < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: INHERITED-CONTROL, INHERITED-PMI. The number is not -1. Only `fcntl(F_GETFD)` and `fstat` are called
    // on it until it is found to be what was meant; neither changes anything, whatever
    // the number stands for.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    rustix::io::fcntl_getfd(borrowed)?;
    Ok(borrowed)
}
