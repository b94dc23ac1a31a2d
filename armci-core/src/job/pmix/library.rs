//! `libpmix.so.2`, loaded when it is needed, and its functions with safe arguments.
//!
//! # Safety
//! PMIX-ABI: a function that is found under a name in the library has the type that `abi.rs` gives it, as the header of
//! every version with this soname declares it. Arrays are passed with their lengths; strings end with a zero byte; what
//! the library gives away was made by `malloc` and is freed once. It is never unloaded, so the pointers stay good. The
//! library may be called from any thread.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::abi;
use crate::error::{Error, Result};

const NAME: &CStr = c"libpmix.so.2";

/// The functions we call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Library {
    init: abi::Init,
    finalize: abi::Finalize,
    abort: abi::Abort,
    put: abi::Put,
    commit: abi::Commit,
    fence: abi::Fence,
    get: abi::Get,
    error_string: abi::ErrorString,
}

impl Library {
    /// Loads it, or finds the copy that an MPI has loaded.
    pub(super) fn load() -> Result<Self> {
        // Its own plug-ins look for its symbols, so they are made known to all.
        // SAFETY: PMIX-ABI; the name is a C string, and the library's constructors run nothing of ours.
        let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if library.is_null() {
            // SAFETY: `dlopen` has failed on this thread, so there is a text, or NULL.
            let why = unsafe { text(libc::dlerror()) };
            return Err(Error::Job(format!(
                "this process was started by a launcher that speaks PMIx, but {} cannot be loaded ({why}): install \
                 it (Debian: libpmix2), add its directory to LD_LIBRARY_PATH, or say ARMCI_BOOTSTRAP=alone for a job \
                 of one",
                NAME.to_string_lossy()
            )));
        }
        let find = |name: &CStr| {
            // SAFETY: the library is open and stays so; the name is a C string.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            if symbol.is_null() {
                let (library, name) = (NAME.to_string_lossy(), name.to_string_lossy());
                return Err(Error::Job(format!("{library} has no {name}: is it another library of that name?")));
            }
            Ok(symbol)
        };
        // SAFETY: PMIX-ABI, for each of these.
        unsafe {
            Ok(Self {
                init: std::mem::transmute::<*mut c_void, abi::Init>(find(c"PMIx_Init")?),
                finalize: std::mem::transmute::<*mut c_void, abi::Finalize>(find(c"PMIx_Finalize")?),
                abort: std::mem::transmute::<*mut c_void, abi::Abort>(find(c"PMIx_Abort")?),
                put: std::mem::transmute::<*mut c_void, abi::Put>(find(c"PMIx_Put")?),
                commit: std::mem::transmute::<*mut c_void, abi::Commit>(find(c"PMIx_Commit")?),
                fence: std::mem::transmute::<*mut c_void, abi::Fence>(find(c"PMIx_Fence")?),
                get: std::mem::transmute::<*mut c_void, abi::Get>(find(c"PMIx_Get")?),
                error_string: std::mem::transmute::<*mut c_void, abi::ErrorString>(find(c"PMIx_Error_string")?),
            })
        }
    }

    /// Joins the job, or counts if this process has; says which rank this is.
    pub(super) fn init(&self) -> std::result::Result<abi::Process, c_int> {
        let mut process = abi::Process { namespace: [0; abi::NAMESPACE], rank: 0 };
        // SAFETY: PMIX-ABI; no wishes.
        match unsafe { (self.init)(&mut process, std::ptr::null_mut(), 0) } {
            abi::SUCCESS => Ok(process),
            code => Err(code),
        }
    }

    pub(super) fn finalize(&self) -> c_int {
        // SAFETY: PMIX-ABI; no wishes.
        unsafe { (self.finalize)(std::ptr::null(), 0) }
    }

    /// Asks for the end of all ranks of the job.
    pub(super) fn abort(&self, code: i32, reason: &str) {
        let reason = c_string(reason);
        // SAFETY: PMIX-ABI; no ranks are all ranks. How it went matters to nobody: the caller ends either way.
        unsafe { (self.abort)(code, reason.as_ptr(), std::ptr::null_mut(), 0) };
    }

    /// Keeps bytes for all ranks.
    pub(super) fn put(&self, key: &str, bytes: &[u8]) -> c_int {
        let key = c_string(key);
        let data = abi::Data { bytes: abi::Bytes { bytes: bytes.as_ptr().cast_mut().cast(), size: bytes.len() } };
        let mut value = abi::Value { kind: abi::BYTES, data };
        // SAFETY: PMIX-ABI; the library copies the value, and does not write to it.
        match unsafe { (self.put)(abi::FOR_ALL, key.as_ptr(), &mut value) } {
            // SAFETY: PMIX-ABI.
            abi::SUCCESS => unsafe { (self.commit)() },
            code => code,
        }
    }

    /// Waits for all ranks of the job, and brings along what they have put.
    pub(super) fn fence(&self) -> c_int {
        let mut collect = abi::Info {
            key: [0; abi::KEY],
            flags: 0,
            value: abi::Value { kind: abi::BOOL, data: abi::Data { room: [0; 3] } },
        };
        collect.key[..abi::COLLECT_DATA.len()].copy_from_slice(abi::COLLECT_DATA.as_bytes());
        collect.value.data.flag = 1;
        // SAFETY: PMIX-ABI; one wish; no ranks are all ranks.
        unsafe { (self.fence)(std::ptr::null(), 0, &collect, 1) }
    }

    /// Bytes that a rank has put.
    pub(super) fn get_bytes(&self, process: &abi::Process, key: &str) -> std::result::Result<Vec<u8>, c_int> {
        self.get(process, key, abi::BYTES, |value| {
            // SAFETY: PMIX-ABI: the kind was checked, so this is the field that is set. Without bytes the pointer may be
            // NULL. They were made by `malloc` for us, and are freed here.
            unsafe {
                let abi::Bytes { bytes, size } = value.data.bytes;
                let copy =
                    if bytes.is_null() { Vec::new() } else { std::slice::from_raw_parts(bytes.cast(), size).to_vec() };
                libc::free(bytes.cast());
                copy
            }
        })
    }

    /// A number that the server keeps.
    pub(super) fn get_number(&self, process: &abi::Process, key: &str) -> std::result::Result<u32, c_int> {
        // SAFETY: PMIX-ABI: the kind was checked, so this is the field that is set.
        self.get(process, key, abi::UINT32, |value| unsafe { value.data.uint32 })
    }

    fn get<T>(
        &self,
        process: &abi::Process,
        key: &str,
        kind: u16,
        read: impl FnOnce(&abi::Value) -> T,
    ) -> std::result::Result<T, c_int> {
        let key = c_string(key);
        let mut value = std::ptr::null_mut();
        // SAFETY: PMIX-ABI; no wishes.
        let code = unsafe { (self.get)(process, key.as_ptr(), std::ptr::null(), 0, &mut value) };
        if code != abi::SUCCESS || value.is_null() {
            return Err(if code == abi::SUCCESS { abi::UNREACHABLE } else { code });
        }
        // SAFETY: PMIX-ABI: the value was made for us.
        let found = unsafe { &*value };
        // A value of another kind is not freed in depth: it is not ours to know how.
        let result = if found.kind == kind { Ok(read(found)) } else { Err(abi::UNREACHABLE) };
        // SAFETY: PMIX-ABI: made by `malloc`, and not used any more.
        unsafe { libc::free(value.cast()) };
        result
    }

    /// What a code means.
    pub(super) fn meaning(&self, code: c_int) -> String {
        // SAFETY: PMIX-ABI: the text is the library's own, and is there as long as the library.
        let text = unsafe { text((self.error_string)(code)) };
        format!("{text} ({code})")
    }
}

/// A C string as ours.
///
/// # Safety
/// It is NULL, or ends with a zero byte and lasts during the call.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return "for no reason that is known".into();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// Ours as a C string; a zero byte ends it.
fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
