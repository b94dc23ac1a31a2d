//! Joining, leaving, giving up.
//!
//! # Safety
//! C-STRING: a message is NULL or ends with a zero byte.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};

use crate::abi::c_functions;
use crate::{entry, member};

c_functions! {
    /// Joins the job; further calls are counted.
    code fn ARMCI_Init() -> c_int = member::join;

    /// [`ARMCI_Init`]; the arguments of `main` are left as they are.
    code fn ARMCI_Init_args(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int = member::join;

    /// Whether [`ARMCI_Init`] was called, and [`ARMCI_Finalize`] not yet as often. Any thread may ask.
    answer fn ARMCI_Initialized() -> c_int = || Ok(member::is_joined().into());

    /// Leaves the job, at the call that matches the first [`ARMCI_Init`].
    code fn ARMCI_Finalize() -> c_int = member::leave;

    /// Releases what would outlive a rank that gives up. The kernel takes everything back by itself, so there is
    /// nothing to do; being an emergency call, it meets no other rank and is no [`ARMCI_Finalize`].
    answer fn ARMCI_Cleanup() = || Ok(());

    /// Says why, and ends the job with `code`, or with 1 if the code would look like success. Any thread may.
    answer fn ARMCI_Error(msg: *const c_char, code: c_int) = || {
        // SAFETY: C-STRING.
        let text = if msg.is_null() { "".into() } else { unsafe { CStr::from_ptr(msg) }.to_string_lossy() };
        entry::say("ARMCI_Error", &format_args!("{} (code {code})", text.trim_end()));
        entry::end(code)
    };
}
