//! What we use of libfabric's headers, in Rust.
//!
//! Our own declarations of the interface; the test `ofi_header` compiles a C program against the installed headers and
//! compares sizes, offsets, constants and signatures ([`FACTS`], [`OPERATIONS`]). The data path of libfabric is tables
//! of functions behind its objects, so no shim in C is needed. Fields that we never look at are left unnamed.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// The version of the interface that these declarations are of: what all later ones of this soname understand.
pub const VERSION: u32 = 1 << 16 | 11;

// Capabilities, and flags of operations.
/// Messages.
pub const MSG: u64 = 1 << 1;
/// Remote memory access.
pub const RMA: u64 = 1 << 2;
/// What remote memory access may do.
pub const READ: u64 = 1 << 8;
/// To write.
pub const WRITE: u64 = 1 << 9;
/// To receive.
pub const RECV: u64 = 1 << 10;
/// To send.
pub const SEND: u64 = 1 << 11;
/// To be read.
pub const REMOTE_READ: u64 = 1 << 12;
/// To be written.
pub const REMOTE_WRITE: u64 = 1 << 13;
/// A completion is to be reported.
pub const COMPLETION: u64 = 1 << 24;
/// A completion says that the data are where they were to go.
pub const DELIVERY_COMPLETE: u64 = 1 << 28;

// What registered memory is like.
/// Buffers of the own side are registered too.
pub const MR_LOCAL: c_int = 1 << 2;
/// Remote places are named by their addresses, not by offsets.
pub const MR_VIRT_ADDR: c_int = 1 << 4;
/// What is registered has memory behind it.
pub const MR_ALLOCATED: c_int = 1 << 5;
/// The provider chooses keys.
pub const MR_PROV_KEY: c_int = 1 << 6;
/// Registered memory belongs to an endpoint.
pub const MR_ENDPOINT: c_int = 1 << 9;

// Modes: what a provider asks of us.
/// Each operation lends the provider some words.
pub const CONTEXT: u64 = 1 << 59;
/// Each operation lends the provider more words.
pub const CONTEXT2: u64 = 1 << 52;

// Order between operations of one endpoint to another.
/// A write and an earlier write.
pub const ORDER_WAW: u64 = 1 << 4;

/// A reliable endpoint without connections.
pub const EP_RDM: c_int = 3;
/// The provider looks after its queues' lengths.
pub const RM_ENABLED: c_int = 2;
/// Any number of threads may call anything.
pub const THREAD_SAFE: c_int = 1;
/// A queue that cannot be waited for.
pub const WAIT_NONE: c_int = 0;
/// A queue with a descriptor to wait for.
pub const WAIT_FD: c_int = 3;
/// Completions carry flags and lengths.
pub const CQ_FORMAT_MSG: c_int = 2;
/// Command: what to wait for.
pub const GETWAIT: c_int = 5;
/// Command: ready for use.
pub const ENABLE: c_int = 6;
/// Messages from anybody; also, no address.
pub const ADDR_UNSPEC: u64 = u64::MAX;

/// What every object begins with (`struct fid`).
#[repr(C)]
#[derive(Debug)]
pub struct Fid {
    class: usize,
    context: *mut c_void,
    /// What can be done with any object.
    pub ops: *const Ops,
}

/// `struct fi_ops`.
#[repr(C)]
#[derive(Debug)]
pub struct Ops {
    size: usize,
    /// Ends the object.
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    /// Ties another object to it.
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    /// Commands.
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

impl Info {
    /// Bytes of the own address.
    pub fn source_len(&self) -> usize {
        self.src_addrlen
    }
}

/// `struct fi_tx_attr`.
#[repr(C)]
#[derive(Debug)]
pub struct TxAttr {
    caps: u64,
    mode: u64,
    /// Flags that all operations are to have.
    pub op_flags: u64,
    /// Order of what is sent.
    pub msg_order: u64,
    comp_order: u64,
    /// Bytes at most of what is sent by copy.
    pub inject_size: usize,
    /// Operations under way at most.
    pub size: usize,
    iov_limit: usize,
}

/// `struct fi_ep_attr`.
#[repr(C)]
#[derive(Debug)]
pub struct EpAttr {
    /// [`EP_RDM`].
    pub kind: c_int,
    protocol: u32,
    protocol_version: u32,
    /// Bytes of a transfer at most.
    pub max_msg_size: usize,
    msg_prefix_size: usize,
    max_order_raw_size: usize,
    max_order_war_size: usize,
    /// Up to which size writes keep their order.
    pub max_order_waw_size: usize,
}

/// `struct fi_domain_attr`.
#[repr(C)]
#[derive(Debug)]
pub struct DomainAttr {
    domain: *mut Fid,
    /// The network interface, mostly.
    pub name: *mut c_char,
    /// How many threads may call what.
    pub threading: c_int,
    control_progress: c_int,
    /// Who moves data on.
    pub data_progress: c_int,
    /// Who looks after the queues' lengths.
    pub resource_mgmt: c_int,
    av_type: c_int,
    /// What registered memory is like.
    pub mr_mode: c_int,
    mr_key_size: usize,
}

/// `struct fi_fabric_attr`.
#[repr(C)]
#[derive(Debug)]
pub struct FabricAttr {
    fabric: *mut Fid,
    name: *mut c_char,
    /// The provider, with what it is layered over.
    pub prov_name: *mut c_char,
    /// Its version.
    pub prov_version: u32,
}

/// What a provider offers, or what we ask for (`struct fi_info`).
#[repr(C)]
#[derive(Debug)]
pub struct Info {
    /// The next offer.
    pub next: *mut Info,
    /// Capabilities.
    pub caps: u64,
    /// What it asks of us.
    pub mode: u64,
    /// The format of addresses.
    pub addr_format: u32,
    src_addrlen: usize,
    dest_addrlen: usize,
    /// Our own address, as far as it is known.
    pub src_addr: *mut c_void,
    dest_addr: *mut c_void,
    handle: *mut Fid,
    /// Sending.
    pub tx_attr: *mut TxAttr,
    rx_attr: *mut c_void,
    /// The endpoint.
    pub ep_attr: *mut EpAttr,
    /// The domain.
    pub domain_attr: *mut DomainAttr,
    /// The fabric.
    pub fabric_attr: *mut FabricAttr,
}

/// `struct fid_fabric`.
#[repr(C)]
#[derive(Debug)]
pub struct Fabric {
    /// Its beginning.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FabricOps,
}

/// `struct fi_ops_fabric`.
#[repr(C)]
#[derive(Debug)]
pub struct FabricOps {
    size: usize,
    /// Opens a domain.
    pub domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
    passive_ep: *const c_void,
    eq_open: *const c_void,
    wait_open: *const c_void,
    /// Whether one may go to sleep over these queues' descriptors.
    pub trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
}

/// `struct fid_domain`.
#[repr(C)]
#[derive(Debug)]
pub struct Domain {
    /// Its beginning.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const DomainOps,
    /// What it can do with memory.
    pub mr: *const MrOps,
}

/// `struct fi_ops_domain`.
#[repr(C)]
#[derive(Debug)]
pub struct DomainOps {
    size: usize,
    /// Opens an address vector.
    pub av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
    /// Opens a completion queue.
    pub cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
    /// Opens an endpoint.
    pub endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
}

/// `struct fi_ops_mr`.
#[repr(C)]
#[derive(Debug)]
pub struct MrOps {
    size: usize,
    /// Registers memory: object, address, length, access, offset, key asked for, flags, result, context.
    pub reg:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut Mr, *mut c_void) -> c_int,
}

/// Registered memory (`struct fid_mr`).
#[repr(C)]
#[derive(Debug)]
pub struct Mr {
    /// Its beginning.
    pub fid: Fid,
    /// What operations of the own side name it by.
    pub mem_desc: *mut c_void,
    /// What others name it by.
    pub key: u64,
}

/// `struct fi_av_attr`.
#[repr(C)]
#[derive(Debug)]
pub struct AvAttr {
    /// Its kind; 0 leaves that to the provider.
    pub kind: c_int,
    rx_ctx_bits: c_int,
    /// About how many addresses there will be.
    pub count: usize,
    ep_per_node: usize,
    name: *const c_char,
    map_addr: *mut c_void,
    flags: u64,
}

/// An address vector (`struct fid_av`).
#[repr(C)]
#[derive(Debug)]
pub struct Av {
    /// Its beginning.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const AvOps,
}

/// `struct fi_ops_av`.
#[repr(C)]
#[derive(Debug)]
pub struct AvOps {
    size: usize,
    /// Takes addresses in.
    pub insert: unsafe extern "C" fn(*mut Av, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
    insertsvc: *const c_void,
    insertsym: *const c_void,
    /// Forgets addresses.
    pub remove: unsafe extern "C" fn(*mut Av, *mut u64, usize, u64) -> c_int,
}

/// `struct fi_cq_attr`.
#[repr(C)]
#[derive(Debug)]
pub struct CqAttr {
    /// Completions it holds.
    pub size: usize,
    flags: u64,
    /// [`CQ_FORMAT_MSG`].
    pub format: c_int,
    /// [`WAIT_FD`] or [`WAIT_NONE`].
    pub wait_obj: c_int,
    signaling_vector: c_int,
    wait_cond: c_int,
    wait_set: *mut Fid,
}

/// A completion queue (`struct fid_cq`).
#[repr(C)]
#[derive(Debug)]
pub struct Cq {
    /// Its beginning.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const CqOps,
}

/// `struct fi_ops_cq`.
#[repr(C)]
#[derive(Debug)]
pub struct CqOps {
    size: usize,
    /// Takes completions out.
    pub read: unsafe extern "C" fn(*mut Cq, *mut c_void, usize) -> isize,
    readfrom: *const c_void,
    /// Takes the one out that failed.
    pub readerr: unsafe extern "C" fn(*mut Cq, *mut CqError, u64) -> isize,
    sread: *const c_void,
    sreadfrom: *const c_void,
    signal: *const c_void,
    /// What a provider's error means.
    pub strerror: unsafe extern "C" fn(*mut Cq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

/// A completion (`struct fi_cq_msg_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// What the operation was given.
    pub context: *mut c_void,
    /// What kind of operation it was.
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
}

/// An operation that failed (`struct fi_cq_err_entry`).
#[repr(C)]
#[derive(Debug)]
pub struct CqError {
    /// What the operation was given.
    pub context: *mut c_void,
    /// What kind of operation it was.
    pub flags: u64,
    len: usize,
    buf: *mut c_void,
    data: u64,
    tag: u64,
    olen: usize,
    /// The error.
    pub err: c_int,
    /// The provider's own word for it.
    pub prov_errno: c_int,
    /// What else the provider has to say.
    pub err_data: *mut c_void,
    err_data_size: usize,
    /// For what later versions have more.
    room: [u64; 6],
}

const _: () = assert!(size_of::<CqError>() == 128);

/// An endpoint (`struct fid_ep`).
#[repr(C)]
#[derive(Debug)]
pub struct Ep {
    /// Its beginning.
    pub fid: Fid,
    ops: *const c_void,
    /// Its address.
    pub cm: *const CmOps,
    /// Messages.
    pub msg: *const MsgOps,
    /// Remote memory access.
    pub rma: *const RmaOps,
}

/// `struct fi_ops_cm`.
#[repr(C)]
#[derive(Debug)]
pub struct CmOps {
    size: usize,
    setname: *const c_void,
    /// The endpoint's address.
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
}

/// `struct fi_ops_msg`.
#[repr(C)]
#[derive(Debug)]
pub struct MsgOps {
    size: usize,
    /// Posts a buffer.
    pub recv: unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    recvv: *const c_void,
    recvmsg: *const c_void,
    send: *const c_void,
    sendv: *const c_void,
    /// Sends.
    pub sendmsg: unsafe extern "C" fn(*mut Ep, *const Msg, u64) -> isize,
}

/// `struct iovec`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Iov {
    /// Where.
    pub base: *mut c_void,
    /// How many bytes.
    pub len: usize,
}

/// `struct fi_msg`.
#[repr(C)]
#[derive(Debug)]
pub struct Msg {
    /// The pieces.
    pub iov: *const Iov,
    /// What their memory is registered as.
    pub desc: *mut *mut c_void,
    /// How many pieces.
    pub iov_count: usize,
    /// To whom.
    pub addr: u64,
    /// What comes back with the completion.
    pub context: *mut c_void,
    /// Not used.
    pub data: u64,
}

/// `struct fi_rma_iov`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RmaIov {
    /// The place at the target.
    pub addr: u64,
    /// How many bytes.
    pub len: usize,
    /// The key of its memory.
    pub key: u64,
}

/// `struct fi_msg_rma`.
#[repr(C)]
#[derive(Debug)]
pub struct MsgRma {
    /// The pieces here.
    pub iov: *const Iov,
    /// What their memory is registered as.
    pub desc: *mut *mut c_void,
    /// How many pieces.
    pub iov_count: usize,
    /// Whose memory.
    pub addr: u64,
    /// The pieces there.
    pub rma_iov: *const RmaIov,
    /// How many pieces.
    pub rma_iov_count: usize,
    /// What comes back with the completion.
    pub context: *mut c_void,
    /// Not used.
    pub data: u64,
}

/// `struct fi_ops_rma`.
#[repr(C)]
#[derive(Debug)]
pub struct RmaOps {
    size: usize,
    read: *const c_void,
    readv: *const c_void,
    /// Reads.
    pub readmsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> isize,
    write: *const c_void,
    writev: *const c_void,
    /// Writes.
    pub writemsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> isize,
}

/// `fi_version`.
pub type GetVersion = unsafe extern "C" fn() -> u32;
/// `fi_getinfo`.
pub type GetInfo = unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
/// `fi_freeinfo`.
pub type FreeInfo = unsafe extern "C" fn(*mut Info);
/// `fi_dupinfo`.
pub type DupInfo = unsafe extern "C" fn(*const Info) -> *mut Info;
/// `fi_fabric`.
pub type OpenFabric = unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, *mut c_void) -> c_int;
/// `fi_strerror`.
pub type StrError = unsafe extern "C" fn(c_int) -> *const c_char;

macro_rules! offsets {
    ($($c:literal: $rust:ident { $($theirs:literal: $ours:ident),* $(,)? }),* $(,)?) => {
        &[$($(concat!("offsetof(struct ", $c, ", ", $theirs, ")")),*),*]
    };
}

macro_rules! values {
    ($($c:literal: $rust:ident { $($theirs:literal: $ours:ident),* $(,)? }),* $(,)?) => {
        &[$($(offset_of!($rust, $ours) as i64),*),*]
    };
}

macro_rules! layouts {
    ($($all:tt)*) => {
        /// C expressions of offsets.
        pub const OFFSETS: &[&str] = offsets!($($all)*);
        /// What they must be.
        pub const OFFSETS_HERE: &[i64] = values!($($all)*);
    };
}

layouts! {
    "fid": Fid { "ops": ops },
    "fi_ops": Ops { "close": close, "bind": bind, "control": control },
    "fi_tx_attr": TxAttr { "op_flags": op_flags, "msg_order": msg_order, "inject_size": inject_size, "size": size },
    "fi_ep_attr": EpAttr { "type": kind, "max_msg_size": max_msg_size, "max_order_waw_size": max_order_waw_size },
    "fi_domain_attr": DomainAttr {
        "name": name, "threading": threading, "data_progress": data_progress, "resource_mgmt": resource_mgmt,
        "mr_mode": mr_mode,
    },
    "fi_fabric_attr": FabricAttr { "prov_name": prov_name, "prov_version": prov_version },
    "fi_info": Info {
        "next": next, "caps": caps, "mode": mode, "addr_format": addr_format, "src_addr": src_addr,
        "tx_attr": tx_attr, "ep_attr": ep_attr, "domain_attr": domain_attr,
        "fabric_attr": fabric_attr,
    },
    "fid_fabric": Fabric { "ops": ops },
    "fi_ops_fabric": FabricOps { "domain": domain, "trywait": trywait },
    "fid_domain": Domain { "ops": ops, "mr": mr },
    "fi_ops_domain": DomainOps { "av_open": av_open, "cq_open": cq_open, "endpoint": endpoint },
    "fi_ops_mr": MrOps { "reg": reg },
    "fid_mr": Mr { "mem_desc": mem_desc, "key": key },
    "fi_av_attr": AvAttr { "type": kind, "count": count },
    "fid_av": Av { "ops": ops },
    "fi_ops_av": AvOps { "insert": insert, "remove": remove },
    "fi_cq_attr": CqAttr { "size": size, "format": format, "wait_obj": wait_obj },
    "fid_cq": Cq { "ops": ops },
    "fi_ops_cq": CqOps { "read": read, "readerr": readerr, "strerror": strerror },
    "fi_cq_msg_entry": Completion { "op_context": context, "flags": flags, "len": len },
    "fi_cq_err_entry": CqError {
        "op_context": context, "flags": flags, "err": err, "prov_errno": prov_errno, "err_data": err_data,
    },
    "fid_ep": Ep { "cm": cm, "msg": msg, "rma": rma },
    "fi_ops_cm": CmOps { "getname": getname },
    "fi_ops_msg": MsgOps { "recv": recv, "sendmsg": sendmsg },
    "fi_msg": Msg {
        "msg_iov": iov, "desc": desc, "iov_count": iov_count, "addr": addr, "context": context, "data": data,
    },
    "fi_rma_iov": RmaIov { "addr": addr, "len": len, "key": key },
    "fi_msg_rma": MsgRma {
        "msg_iov": iov, "desc": desc, "iov_count": iov_count, "addr": addr, "rma_iov": rma_iov,
        "rma_iov_count": rma_iov_count, "context": context, "data": data,
    },
    "fi_ops_rma": RmaOps { "readmsg": readmsg, "writemsg": writemsg },
}

/// Other C expressions, and what they must be.
pub const FACTS: &[(&str, i64)] = &[
    ("sizeof(struct fi_cq_msg_entry)", size_of::<Completion>() as i64),
    // As of 1.20 it has more at its end. Who was asked for an interface of before is to leave that alone; none may run over.
    ("sizeof(struct fi_cq_err_entry) <= 128", 1),
    ("sizeof(struct fi_av_attr)", size_of::<AvAttr>() as i64),
    ("sizeof(struct fi_cq_attr)", size_of::<CqAttr>() as i64),
    ("sizeof(struct fi_msg)", size_of::<Msg>() as i64),
    ("sizeof(struct fi_msg_rma)", size_of::<MsgRma>() as i64),
    ("sizeof(struct fi_rma_iov)", size_of::<RmaIov>() as i64),
    ("sizeof(struct iovec)", size_of::<Iov>() as i64),
    ("FI_MSG", MSG as i64),
    ("FI_RMA", RMA as i64),
    ("FI_READ", READ as i64),
    ("FI_WRITE", WRITE as i64),
    ("FI_RECV", RECV as i64),
    ("FI_SEND", SEND as i64),
    ("FI_REMOTE_READ", REMOTE_READ as i64),
    ("FI_REMOTE_WRITE", REMOTE_WRITE as i64),
    ("FI_COMPLETION", COMPLETION as i64),
    ("FI_DELIVERY_COMPLETE", DELIVERY_COMPLETE as i64),
    ("FI_MR_LOCAL", MR_LOCAL as i64),
    ("FI_MR_VIRT_ADDR", MR_VIRT_ADDR as i64),
    ("FI_MR_ALLOCATED", MR_ALLOCATED as i64),
    ("FI_MR_PROV_KEY", MR_PROV_KEY as i64),
    ("FI_MR_ENDPOINT", MR_ENDPOINT as i64),
    ("FI_CONTEXT", CONTEXT as i64),
    ("FI_CONTEXT2", CONTEXT2 as i64),
    ("FI_ORDER_WAW", ORDER_WAW as i64),
    ("FI_EP_RDM", EP_RDM as i64),
    ("FI_RM_ENABLED", RM_ENABLED as i64),
    ("FI_THREAD_SAFE", THREAD_SAFE as i64),
    ("FI_WAIT_NONE", WAIT_NONE as i64),
    ("FI_WAIT_FD", WAIT_FD as i64),
    ("FI_CQ_FORMAT_MSG", CQ_FORMAT_MSG as i64),
    ("FI_GETWAIT", GETWAIT as i64),
    ("FI_ENABLE", ENABLE as i64),
    ("(long)FI_ADDR_UNSPEC", ADDR_UNSPEC as i64),
];

/// Operations in libfabric's tables, as C expressions, and the types they must have.
pub const OPERATIONS: &[(&str, &str)] = &[
    ("((struct fi_ops *)0)->close", "int (*)(struct fid *)"),
    ("((struct fi_ops *)0)->bind", "int (*)(struct fid *, struct fid *, uint64_t)"),
    ("((struct fi_ops *)0)->control", "int (*)(struct fid *, int, void *)"),
    (
        "((struct fi_ops_fabric *)0)->domain",
        "int (*)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *)",
    ),
    ("((struct fi_ops_fabric *)0)->trywait", "int (*)(struct fid_fabric *, struct fid **, int)"),
    (
        "((struct fi_ops_domain *)0)->av_open",
        "int (*)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *)",
    ),
    (
        "((struct fi_ops_domain *)0)->cq_open",
        "int (*)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *)",
    ),
    (
        "((struct fi_ops_domain *)0)->endpoint",
        "int (*)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *)",
    ),
    (
        "((struct fi_ops_mr *)0)->reg",
        "int (*)(struct fid *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t, struct fid_mr **, void *)",
    ),
    ("((struct fi_ops_av *)0)->insert", "int (*)(struct fid_av *, const void *, size_t, uint64_t *, uint64_t, void *)"),
    ("((struct fi_ops_av *)0)->remove", "int (*)(struct fid_av *, uint64_t *, size_t, uint64_t)"),
    ("((struct fi_ops_cq *)0)->read", "ssize_t (*)(struct fid_cq *, void *, size_t)"),
    ("((struct fi_ops_cq *)0)->readerr", "ssize_t (*)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t)"),
    ("((struct fi_ops_cq *)0)->strerror", "const char *(*)(struct fid_cq *, int, const void *, char *, size_t)"),
    ("((struct fi_ops_cm *)0)->getname", "int (*)(struct fid *, void *, size_t *)"),
    ("((struct fi_ops_msg *)0)->recv", "ssize_t (*)(struct fid_ep *, void *, size_t, void *, uint64_t, void *)"),
    ("((struct fi_ops_msg *)0)->sendmsg", "ssize_t (*)(struct fid_ep *, const struct fi_msg *, uint64_t)"),
    ("((struct fi_ops_rma *)0)->readmsg", "ssize_t (*)(struct fid_ep *, const struct fi_msg_rma *, uint64_t)"),
    ("((struct fi_ops_rma *)0)->writemsg", "ssize_t (*)(struct fid_ep *, const struct fi_msg_rma *, uint64_t)"),
    ("&fi_version", "uint32_t (*)(void)"),
    (
        "&fi_getinfo",
        "int (*)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **)",
    ),
    ("&fi_freeinfo", "void (*)(struct fi_info *)"),
    ("&fi_dupinfo", "struct fi_info *(*)(const struct fi_info *)"),
    ("&fi_fabric", "int (*)(struct fi_fabric_attr *, struct fid_fabric **, void *)"),
    ("&fi_strerror", "const char *(*)(int)"),
];
