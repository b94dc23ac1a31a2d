//! What we use of `pmix.h`, in Rust.
//!
//! Our own declarations of the interface; the test `pmix_header` compiles a C program against the installed header and
//! compares sizes, offsets, constants and signatures ([`FACTS`], [`SIGNATURES`]).

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// Room for the name of a job, with its zero byte.
pub const NAMESPACE: usize = 256;
/// Room for a key, with its zero byte.
pub const KEY: usize = 512;

/// All went well.
pub const SUCCESS: c_int = 0;
/// There is no server where the environment says.
pub const UNREACHABLE: c_int = -25;
/// Stands for all ranks of a job.
pub const EVERYBODY: u32 = u32::MAX - 1;
/// Values for all ranks, wherever they are.
pub const FOR_ALL: u8 = 3;
/// A truth value.
pub const BOOL: u16 = 1;
/// A number of 32 bits without sign.
pub const UINT32: u16 = 14;
/// Bytes.
pub const BYTES: u16 = 27;
/// The key under which the server keeps the number of ranks.
pub const JOB_SIZE: &str = "pmix.job.size";
/// Whether a fence brings everybody's values along.
pub const COLLECT_DATA: &str = "pmix.collect";

/// Names a rank (`pmix_proc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// The job's name.
    pub namespace: [u8; NAMESPACE],
    /// The rank in it.
    pub rank: u32,
}

/// Bytes somewhere (`pmix_byte_object_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// Where.
    pub bytes: *mut c_char,
    /// How many.
    pub size: usize,
}

/// What a value may be, of the kinds we use; the room of all kinds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    /// [`BOOL`].
    pub flag: u8,
    /// [`UINT32`].
    pub uint32: u32,
    /// [`BYTES`].
    pub bytes: Bytes,
    /// The largest kind takes so much.
    pub room: [u64; 3],
}

/// A value and its kind (`pmix_value_t`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    /// One of the constants above.
    pub kind: u16,
    /// The value.
    pub data: Data,
}

/// A wish (`pmix_info_t`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Info {
    /// What about.
    pub key: [u8; KEY],
    /// Whether it must be granted.
    pub flags: u32,
    /// What is wished.
    pub value: Value,
}

/// `PMIx_Init`.
pub type Init = unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int;
/// `PMIx_Finalize`.
pub type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
/// `PMIx_Abort`.
pub type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> c_int;
/// `PMIx_Put`.
pub type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
/// `PMIx_Commit`.
pub type Commit = unsafe extern "C" fn() -> c_int;
/// `PMIx_Fence`.
pub type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int;
/// `PMIx_Get`.
pub type Get = unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
/// `PMIx_Error_string`.
pub type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
/// C's `free`, by which values are given back.
pub type Free = unsafe extern "C" fn(*mut c_void);

/// C expressions, and what they must be.
pub const FACTS: &[(&str, i64)] = &[
    ("sizeof(pmix_proc_t)", size_of::<Process>() as i64),
    ("offsetof(pmix_proc_t, nspace)", offset_of!(Process, namespace) as i64),
    ("offsetof(pmix_proc_t, rank)", offset_of!(Process, rank) as i64),
    ("sizeof(pmix_byte_object_t)", size_of::<Bytes>() as i64),
    ("offsetof(pmix_byte_object_t, bytes)", offset_of!(Bytes, bytes) as i64),
    ("offsetof(pmix_byte_object_t, size)", offset_of!(Bytes, size) as i64),
    ("sizeof(pmix_value_t)", size_of::<Value>() as i64),
    ("sizeof(pmix_data_type_t)", size_of::<u16>() as i64),
    ("offsetof(pmix_value_t, type)", offset_of!(Value, kind) as i64),
    ("offsetof(pmix_value_t, data.flag)", offset_of!(Value, data) as i64),
    ("offsetof(pmix_value_t, data.uint32)", offset_of!(Value, data) as i64),
    ("offsetof(pmix_value_t, data.bo)", offset_of!(Value, data) as i64),
    ("sizeof(((pmix_value_t *)0)->data.flag)", 1),
    ("sizeof(pmix_info_t)", size_of::<Info>() as i64),
    ("offsetof(pmix_info_t, key)", offset_of!(Info, key) as i64),
    ("offsetof(pmix_info_t, flags)", offset_of!(Info, flags) as i64),
    ("offsetof(pmix_info_t, value)", offset_of!(Info, value) as i64),
    ("PMIX_MAX_NSLEN + 1", NAMESPACE as i64),
    ("PMIX_MAX_KEYLEN + 1", KEY as i64),
    ("PMIX_SUCCESS", SUCCESS as i64),
    ("PMIX_ERR_UNREACH", UNREACHABLE as i64),
    ("(long)(PMIX_RANK_WILDCARD)", EVERYBODY as i64),
    ("PMIX_GLOBAL", FOR_ALL as i64),
    ("PMIX_BOOL", BOOL as i64),
    ("PMIX_UINT32", UINT32 as i64),
    ("PMIX_BYTE_OBJECT", BYTES as i64),
];

/// C's names of keys, and what they must be.
pub const KEYS: &[(&str, &str)] = &[("PMIX_JOB_SIZE", JOB_SIZE), ("PMIX_COLLECT_DATA", COLLECT_DATA)];

/// Functions, and the types they must have.
pub const SIGNATURES: &[(&str, &str)] = &[
    ("PMIx_Init", "int (*)(pmix_proc_t *, pmix_info_t *, size_t)"),
    ("PMIx_Finalize", "int (*)(const pmix_info_t *, size_t)"),
    ("PMIx_Abort", "int (*)(int, const char *, pmix_proc_t *, size_t)"),
    ("PMIx_Put", "int (*)(unsigned char, const char *, pmix_value_t *)"),
    ("PMIx_Commit", "int (*)(void)"),
    ("PMIx_Fence", "int (*)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t)"),
    ("PMIx_Get", "int (*)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **)"),
    ("PMIx_Error_string", "const char *(*)(int)"),
];
