//! `libfabric.so.1`, loaded when ranks of other nodes are to be reached, and its objects, which end when they are
//! dropped.
//!
//! # Safety
//! FABRIC-ABI: a function that is found under a name in the library has the type that `abi.rs` gives it, and so have
//! those in the tables of its objects, as the headers of every version with this soname declare them. The library is
//! never unloaded. FABRIC-OBJECT: an [`Object`] owns what the library opened; it is closed once, after everything that
//! was opened from it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use super::abi;
use crate::error::{Error, Result};

const NAME: &CStr = c"libfabric.so.1";

/// The functions that the library has by name; all others are in the tables of its objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Library {
    version: Version,
    get_info: abi::GetInfo,
    free_info: abi::FreeInfo,
    dup_info: abi::DupInfo,
    fabric: abi::OpenFabric,
    error_string: abi::StrError,
}

impl Library {
    /// Loads it, and asks for its version: it has read none of its settings yet.
    ///
    /// # Errors
    /// [`Error::Fabric`] if it is not there.
    pub(super) fn load() -> Result<Self> {
        // SAFETY: FABRIC-ABI; the name is a C string, and the library's constructors run nothing of ours.
        let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let name = NAME.to_string_lossy();
        if library.is_null() {
            // SAFETY: `dlopen` has failed on this thread, so there is a text, or NULL.
            let why = unsafe { text(libc::dlerror()) };
            return Err(Error::Fabric(format!(
                "ranks on several nodes reach each other through libfabric, but {name} cannot be loaded ({why}): \
                 install it (Debian: libfabric1), or add its directory to LD_LIBRARY_PATH"
            )));
        }
        let find = |symbol: &CStr| {
            // SAFETY: the library is open and stays so; the name is a C string.
            let found = unsafe { libc::dlsym(library, symbol.as_ptr()) };
            if found.is_null() {
                let symbol = symbol.to_string_lossy();
                return Err(Error::Fabric(format!("{name} has no {symbol}: is it another library of that name?")));
            }
            Ok(found)
        };
        // SAFETY: FABRIC-ABI, for each of these.
        unsafe {
            let version = std::mem::transmute::<*mut c_void, abi::GetVersion>(find(c"fi_version")?);
            Ok(Library {
                version: Version::of(version()),
                get_info: std::mem::transmute::<*mut c_void, abi::GetInfo>(find(c"fi_getinfo")?),
                free_info: std::mem::transmute::<*mut c_void, abi::FreeInfo>(find(c"fi_freeinfo")?),
                dup_info: std::mem::transmute::<*mut c_void, abi::DupInfo>(find(c"fi_dupinfo")?),
                fabric: std::mem::transmute::<*mut c_void, abi::OpenFabric>(find(c"fi_fabric")?),
                error_string: std::mem::transmute::<*mut c_void, abi::StrError>(find(c"fi_strerror")?),
            })
        }
    }

    /// Which it is.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// What a code means; negative ones are the same.
    pub(super) fn meaning(&self, code: c_int) -> String {
        // SAFETY: FABRIC-ABI: the text is the library's own, or NULL.
        unsafe { text((self.error_string)(code.wrapping_abs())) }
    }

    /// A wish to be filled in.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn wish(&self) -> Result<Infos> {
        // SAFETY: FABRIC-ABI: a copy of nothing is an empty one, with all its parts.
        let first = NonNull::new(unsafe { (self.dup_info)(ptr::null()) });
        let first = first.ok_or_else(|| Error::Fabric("libfabric has no memory for a request".into()))?;
        Ok(Infos { first, library: *self })
    }

    /// What is on offer for a wish, best first; nothing may be.
    ///
    /// # Errors
    /// What the library has to say.
    pub(super) fn offers(&self, wish: &Infos) -> Result<Option<Infos>> {
        let mut first = ptr::null_mut();
        // SAFETY: FABRIC-ABI; no host, no service.
        let code =
            unsafe { (self.get_info)(abi::VERSION, ptr::null(), ptr::null(), 0, wish.first.as_ptr(), &mut first) };
        match (code, NonNull::new(first)) {
            (0, Some(first)) => Ok(Some(Infos { first, library: *self })),
            (0, None) | (NO_DATA, _) => Ok(None),
            (code, _) => {
                Err(Error::Fabric(format!("libfabric cannot say what there is: {} ({code})", self.meaning(code))))
            }
        }
    }

    /// Opens the fabric of an offer.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn fabric(&self, offer: &Infos) -> Result<Object<abi::Fabric>> {
        let mut fabric = ptr::null_mut();
        // SAFETY: FABRIC-ABI; an offer has all its parts.
        let code = unsafe { (self.fabric)(offer.first.as_ref().fabric_attr, &mut fabric, ptr::null_mut()) };
        self.opened("its fabric", code, fabric)
    }

    /// What was opened, unless it was not.
    pub(super) fn opened<T: HasFid>(&self, what: &str, code: c_int, object: *mut T) -> Result<Object<T>> {
        self.check(what, code)?;
        let object = NonNull::new(object);
        object.map(Object).ok_or_else(|| Error::Fabric(format!("the provider opened {what}, and there is nothing")))
    }

    /// Refuses a code that is not 0.
    pub(super) fn check(&self, what: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        Err(Error::Fabric(format!("the provider refuses {what}: {} ({code})", self.meaning(code))))
    }
}

/// A version of libfabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl Version {
    /// As the library packs it.
    fn of(packed: u32) -> Self {
        Version { major: packed >> 16, minor: packed & 0xffff }
    }
}

impl From<[u32; 2]> for Version {
    fn from([major, minor]: [u32; 2]) -> Self {
        Version { major, minor }
    }
}

impl From<Version> for [u32; 2] {
    fn from(version: Version) -> Self {
        [version.major, version.minor]
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// No offer.
const NO_DATA: c_int = -61;

/// Offers, best first; or one wish.
#[derive(Debug)]
pub(super) struct Infos {
    pub(super) first: NonNull<abi::Info>,
    library: Library,
}

impl Infos {
    /// One after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = &abi::Info> {
        // SAFETY: FABRIC-ABI: a list that ends with NULL, which lives as long as this.
        std::iter::successors(Some(unsafe { self.first.as_ref() }), |info| unsafe { info.next.as_ref() })
    }

    /// A copy of one of them.
    pub(super) fn copy(&self, info: &abi::Info) -> Result<Infos> {
        // SAFETY: FABRIC-ABI: it copies one with its parts.
        let first = NonNull::new(unsafe { (self.library.dup_info)(info) });
        let first = first.ok_or_else(|| Error::Fabric("libfabric has no memory for a copy".into()))?;
        Ok(Infos { first, library: self.library })
    }

    /// The first of them.
    pub(super) fn get(&self) -> &abi::Info {
        // SAFETY: FABRIC-ABI; it lives as long as this.
        unsafe { self.first.as_ref() }
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: FABRIC-ABI: the list is ours, and this is its end.
        unsafe { (self.library.free_info)(self.first.as_ptr()) };
    }
}

// SAFETY: FABRIC-ABI: plain memory, which nobody changes.
unsafe impl Send for Infos {}
// SAFETY: FABRIC-ABI: as above.
unsafe impl Sync for Infos {}

impl abi::Info {
    /// Its provider, with what that is layered over.
    pub(super) fn provider(&self) -> String {
        // SAFETY: FABRIC-ABI: an offer has all its parts; the name is a C string or NULL.
        unsafe { self.fabric_attr.as_ref().map_or(String::new(), |fabric| text(fabric.prov_name)) }
    }

    /// Its domain, most often a network interface.
    pub(super) fn domain(&self) -> String {
        self.domain_attr().map_or(String::new(), |domain| {
            // SAFETY: FABRIC-ABI: a C string or NULL.
            unsafe { text(domain.name) }
        })
    }

    /// What there is to say of its domain.
    pub(super) fn domain_attr(&self) -> Option<&abi::DomainAttr> {
        // SAFETY: FABRIC-ABI: an offer has all its parts, which live as long as it.
        unsafe { self.domain_attr.as_ref() }
    }

    /// What there is to say of sending.
    pub(super) fn tx_attr(&self) -> Option<&abi::TxAttr> {
        // SAFETY: FABRIC-ABI: as above.
        unsafe { self.tx_attr.as_ref() }
    }

    /// What there is to say of its endpoints.
    pub(super) fn ep_attr(&self) -> Option<&abi::EpAttr> {
        // SAFETY: FABRIC-ABI: as above.
        unsafe { self.ep_attr.as_ref() }
    }

    /// The bytes of the own address, as far as it is known already.
    pub(super) fn source(&self) -> &[u8] {
        if self.src_addr.is_null() {
            return &[];
        }
        // SAFETY: FABRIC-ABI: the address has that length.
        unsafe { std::slice::from_raw_parts(self.src_addr.cast(), self.source_len()) }
    }
}

/// Whatever begins with a [`abi::Fid`].
///
/// # Safety
/// It does, and C lays it out.
pub(super) unsafe trait HasFid {}
// SAFETY: as `abi.rs` has them, and the test of the header holds it to that.
unsafe impl HasFid for abi::Fabric {}
// SAFETY: as above.
unsafe impl HasFid for abi::Domain {}
// SAFETY: as above.
unsafe impl HasFid for abi::Av {}
// SAFETY: as above.
unsafe impl HasFid for abi::Cq {}
// SAFETY: as above.
unsafe impl HasFid for abi::Ep {}
// SAFETY: as above.
unsafe impl HasFid for abi::Mr {}

/// Something that the library opened.
#[derive(Debug)]
pub(super) struct Object<T: HasFid>(NonNull<T>);

impl<T: HasFid> Object<T> {
    /// As the library's functions take it.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// Its beginning.
    pub(super) fn fid(&self) -> *mut abi::Fid {
        self.0.as_ptr().cast()
    }

    fn ops(&self) -> &abi::Ops {
        // SAFETY: FABRIC-OBJECT: it is open, so it has its table.
        unsafe { &*(*self.fid()).ops }
    }

    /// Its fields.
    pub(super) fn get(&self) -> &T {
        // SAFETY: FABRIC-OBJECT: it is open, and the library moves nothing.
        unsafe { self.0.as_ref() }
    }

    /// Ties another object to it.
    pub(super) fn bind<U: HasFid>(&self, other: &Object<U>, flags: u64) -> c_int {
        // SAFETY: FABRIC-ABI; both are open.
        unsafe { (self.ops().bind)(self.fid(), other.fid(), flags) }
    }

    /// Gives it a command.
    ///
    /// # Safety
    /// The argument is what the command takes.
    pub(super) unsafe fn control(&self, command: c_int, argument: *mut c_void) -> c_int {
        // SAFETY: FABRIC-ABI, and the caller's promise.
        unsafe { (self.ops().control)(self.fid(), command, argument) }
    }
}

impl<T: HasFid> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: FABRIC-OBJECT.
        let code = unsafe { (self.ops().close)(self.fid()) };
        if code != 0 {
            tracing::debug!(code, "libfabric does not close something");
        }
    }
}

// SAFETY: FABRIC-OBJECT: objects are not bound to threads; who may call what at the same time is the endpoint's matter.
unsafe impl<T: HasFid> Send for Object<T> {}
// SAFETY: as above: the domain is asked to be safe for threads.
unsafe impl<T: HasFid> Sync for Object<T> {}

/// A C string as ours; nothing if there is none.
///
/// # Safety
/// It is NULL, or ends with a zero byte and lasts during the call.
pub(super) unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// A copy of a string that libfabric frees together with the wish it is put into.
pub(super) fn owned_by_c(string: &str) -> *mut c_char {
    let string = CString::new(string).unwrap_or_default();
    // SAFETY: it copies a C string, by `malloc`, which is what the library frees by.
    unsafe { libc::strdup(string.as_ptr()) }
}
