//! The domain: which provider reaches the other nodes, and what an endpoint stands on.
//!
//! The provider is chosen by capability: reliable messages and remote memory access, among those that cross
//! hosts, in the order in which libfabric offers them (fastest first). `ARMCI_FABRIC` names another, and the network
//! interface if need be. All ranks must have chosen the same; see `fabric.rs`.
//!
//! Each endpoint has a domain of its own ([`Domain::beside`]): providers keep one lock and one set of descriptors per
//! domain. In a common one the progress thread could not sleep for what had come for its rank's main thread, and kept
//! that from the core they share until its time slice ended.
//!
//! Where memory belongs to an endpoint (`FI_MR_ENDPOINT`) it is registered, bound to the endpoint and then enabled, as
//! `fi_mr(3)` wants it. The endpoint is enabled by then (`Endpoint::open` does that), which libfabric's own tests
//! keep to as well (its pull request 7938). A key is asked for after that, when the provider has chosen it.
//! No provider that wants this was at hand: tests have one pretend to, which takes the calls in this order and does nothing.
//!
//! # Safety
//! FABRIC-ABI, FABRIC-OBJECT (see `library.rs`).
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt::Write as _;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::abi;
use super::faults::{Asked, Faults};
use super::library::{Infos, Library, Object, owned_by_c};
use super::packet::{ADDRESS_MAX, PACKET_MAX};
use super::settings;
use crate::error::{Error, Result};

/// Providers that are there for testing, or that cannot cross hosts, or that are known to hang.
const NOT_UNASKED: [&str; 6] = ["shm", "sockets", "net", "udp", "ofi_hook", "sm2"];
/// What of an address on IP tells a loopback.
const LOOPBACK: &str = "lo";

/// Bytes of one access at most, whatever a provider says it takes: longer ones would keep others waiting, and not every
/// provider has met more than an `int` holds.
const LARGEST: usize = 1 << 30;

/// What is asked of the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The provider, or the part of its name before a `;`.
    pub(crate) provider: String,
    /// Its domain, most often a network interface.
    pub(crate) domain: Option<String>,
}

/// What an endpoint stands on.
#[derive(Debug)]
pub(super) struct Domain {
    // In this order they are dropped.
    addresses: Object<abi::Av>,
    domain: Object<abi::Domain>,
    fabric: Arc<Object<abi::Fabric>>,
    offer: Arc<Infos>,
    library: Library,
    /// Addresses that were taken in, less those that were given back.
    held: AtomicUsize,
    waits: bool,
    /// Whether a write can be asked to be complete only when it is there.
    delivers: bool,
    /// What tests ask for.
    faults: Asked,
    rank: usize,
    ranks: usize,
}

impl Domain {
    /// Chooses a provider and opens it; says why it was that one. `here` says that all ranks are in one network, that of
    /// this machine alone.
    ///
    /// # Errors
    /// [`Error::Fabric`] if there is no libfabric, or none of its providers will do.
    pub(super) fn open(
        wanted: Option<&Wanted>,
        faults: &Asked,
        here: bool,
        (rank, ranks): (usize, usize),
    ) -> Result<(Self, String)> {
        let library = Library::load()?;
        settings::set(wanted, library.version());
        let wish = library.wish()?;
        // SAFETY: FABRIC-ABI: a wish has all its parts; what is put there is freed with it.
        unsafe {
            let info = &mut *wish.first.as_ptr();
            info.caps = abi::MSG | abi::RMA;
            info.mode = abi::CONTEXT | abi::CONTEXT2;
            (*info.ep_attr).kind = abi::EP_RDM;
            (*info.tx_attr).op_flags = abi::DELIVERY_COMPLETE;
            let domain = &mut *info.domain_attr;
            domain.threading = abi::THREAD_SAFE;
            domain.resource_mgmt = abi::RM_ENABLED;
            domain.mr_mode =
                abi::MR_LOCAL | abi::MR_VIRT_ADDR | abi::MR_ALLOCATED | abi::MR_PROV_KEY | abi::MR_ENDPOINT;
            if let Some(wanted) = wanted {
                (*info.fabric_attr).prov_name = owned_by_c(&wanted.provider);
            }
        }
        // Those that say when a write is there come first; who does not is written to by messages.
        let certain = choose(library.offers(&wish)?.as_ref(), wanted, here);
        let (delivers, (offer, why)) = match certain {
            Ok(chosen) => (true, chosen),
            Err(_) => {
                // SAFETY: FABRIC-ABI: as above.
                unsafe { (*(*wish.first.as_ptr()).tx_attr).op_flags = 0 };
                (false, choose(library.offers(&wish)?.as_ref(), wanted, here)?)
            }
        };
        // Whether a completion says so is asked for by each write itself.
        // SAFETY: FABRIC-ABI: an offer has all its parts, or null for them.
        if let Some(tx) = unsafe { (*offer.first.as_ptr()).tx_attr.as_mut() } {
            tx.op_flags = 0;
        }
        let fabric = library.fabric(&offer)?;
        let (fabric, offer) = (Arc::new(fabric), Arc::new(offer));
        let (domain, addresses) = Self::parts(library, &fabric, &offer, ranks)?;
        let delivers = delivers && !faults.lacks_delivery;
        let faults = faults.clone();
        let held = AtomicUsize::new(0);
        let mut opened =
            Domain { addresses, domain, fabric, offer, library, held, waits: true, delivers, faults, rank, ranks };
        opened.waits = !opened.faults.lacks_wait && opened.queue(abi::WAIT_FD).is_ok();
        Ok((opened, why))
    }

    /// Another domain of the same provider, with nothing in common with this one but the network.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn beside(&self) -> Result<Self> {
        let Domain { library, waits, delivers, rank, ranks, .. } = *self;
        let (fabric, offer, faults) = (self.fabric.clone(), self.offer.clone(), self.faults.clone());
        let (domain, addresses) = Self::parts(library, &fabric, &offer, ranks)?;
        let held = AtomicUsize::new(0);
        Ok(Domain { addresses, domain, fabric, offer, library, held, waits, delivers, faults, rank, ranks })
    }

    fn parts(
        library: Library,
        fabric: &Object<abi::Fabric>,
        offer: &Infos,
        ranks: usize,
    ) -> Result<(Object<abi::Domain>, Object<abi::Av>)> {
        let mut domain = ptr::null_mut();
        // SAFETY: FABRIC-ABI.
        let code = unsafe {
            ((*fabric.get().ops).domain)(fabric.as_ptr(), offer.first.as_ptr(), &mut domain, ptr::null_mut())
        };
        let domain = library.opened("its domain", code, domain)?;
        // SAFETY: FABRIC-ABI: zeroes leave everything to the provider.
        let mut attributes: abi::AvAttr = unsafe { std::mem::zeroed() };
        attributes.count = ranks;
        let mut addresses = ptr::null_mut();
        // SAFETY: FABRIC-ABI.
        let code =
            unsafe { ((*domain.get().ops).av_open)(domain.as_ptr(), &mut attributes, &mut addresses, ptr::null_mut()) };
        Ok((domain, library.opened("an address vector", code, addresses)?))
    }

    pub(super) fn library(&self) -> Library {
        self.library
    }

    pub(super) fn addresses(&self) -> &Object<abi::Av> {
        &self.addresses
    }

    /// The provider.
    pub(super) fn provider(&self) -> String {
        self.offer.get().provider()
    }

    /// Whether queues have descriptors to wait for.
    pub(super) fn has_descriptors(&self) -> bool {
        self.waits
    }

    /// Whether writes of this many bytes to one place take effect in their order.
    pub(super) fn orders_writes(&self, bytes: usize) -> bool {
        let info = self.offer.get();
        let ordered = info.tx_attr().is_some_and(|tx| tx.msg_order & abi::ORDER_WAW != 0);
        ordered && info.ep_attr().is_some_and(|endpoint| bytes <= endpoint.max_order_waw_size)
    }

    /// Bytes of a transfer at most.
    pub(super) fn largest(&self) -> usize {
        let offered = self.offer.get().ep_attr().map_or(PACKET_MAX, |endpoint| endpoint.max_msg_size);
        offered.min(LARGEST).min(self.faults.largest.unwrap_or(LARGEST))
    }

    /// Whether a write that is complete is there.
    pub(super) fn delivers(&self) -> bool {
        self.delivers
    }

    /// What tests ask for of an endpoint.
    pub(super) fn faults(&self, seed: u64) -> Option<Box<Faults>> {
        Faults::of(&self.faults, self.rank, seed)
    }

    fn mr_mode(&self) -> c_int {
        self.offer.get().domain_attr().map_or(0, |domain| domain.mr_mode) | self.faults.wants
    }

    /// Whether registered memory belongs to an endpoint, which may end only after it.
    pub(super) fn binds_memory(&self) -> bool {
        self.mr_mode() & abi::MR_ENDPOINT != 0
    }

    /// Whether the own side's buffers must be registered.
    pub(super) fn wants_local(&self) -> bool {
        self.mr_mode() & abi::MR_LOCAL != 0
    }

    /// Whether what is registered must have memory behind it.
    pub(super) fn wants_memory(&self) -> bool {
        self.mr_mode() & abi::MR_ALLOCATED != 0
    }

    /// Whether places are named by their addresses, not by offsets in what is registered.
    pub(super) fn names_addresses(&self) -> bool {
        self.mr_mode() & abi::MR_VIRT_ADDR != 0
    }

    fn queue(&self, wait: c_int) -> Result<Object<abi::Cq>> {
        // SAFETY: FABRIC-ABI: zeroes leave everything to the provider.
        let mut attributes: abi::CqAttr = unsafe { std::mem::zeroed() };
        attributes.format = abi::CQ_FORMAT_MSG;
        attributes.wait_obj = wait;
        let mut queue = ptr::null_mut();
        // SAFETY: FABRIC-ABI.
        let code = unsafe {
            ((*self.domain.get().ops).cq_open)(self.domain.as_ptr(), &mut attributes, &mut queue, ptr::null_mut())
        };
        self.library.opened("a completion queue", code, queue)
    }

    /// A queue, and what to wait for it by.
    pub(super) fn open_queue(&self) -> Result<(Object<abi::Cq>, Option<RawFd>)> {
        if !self.waits {
            return Ok((self.queue(abi::WAIT_NONE)?, None));
        }
        let queue = self.queue(abi::WAIT_FD)?;
        let mut descriptor: c_int = -1;
        // SAFETY: FABRIC-ABI: this command of such a queue writes a descriptor.
        let code = unsafe { queue.control(abi::GETWAIT, ptr::from_mut(&mut descriptor).cast()) };
        self.library.check("the descriptor of a queue", code)?;
        Ok((queue, Some(descriptor)))
    }

    pub(super) fn open_endpoint(&self) -> Result<Object<abi::Ep>> {
        let mut endpoint = ptr::null_mut();
        // SAFETY: FABRIC-ABI.
        let code = unsafe {
            ((*self.domain.get().ops).endpoint)(
                self.domain.as_ptr(),
                self.offer.first.as_ptr(),
                &mut endpoint,
                ptr::null_mut(),
            )
        };
        self.library.opened("an endpoint", code, endpoint)
    }

    /// Whether nothing has come to a queue since it was looked at.
    pub(super) fn may_wait(&self, queue: &Object<abi::Cq>) -> bool {
        let mut fid = queue.fid();
        // SAFETY: FABRIC-ABI.
        unsafe { ((*self.fabric.get().ops).trywait)(self.fabric.as_ptr(), &mut fid, 1) == 0 }
    }

    /// Takes an address in.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) fn insert(&self, address: &[u8]) -> Result<u64> {
        let mut inserted = abi::ADDR_UNSPEC;
        // Providers read as much as their addresses have, or up to a zero byte, however few came.
        let mut room = [0u8; 4 * ADDRESS_MAX];
        let len = address.len().min(ADDRESS_MAX);
        room[..len].copy_from_slice(&address[..len]);
        // SAFETY: FABRIC-ABI; there is room behind the address for whatever the provider takes for one.
        let count = unsafe {
            let av = self.addresses.as_ptr();
            ((*self.addresses.get().ops).insert)(av, room.as_ptr().cast(), 1, &mut inserted, 0, ptr::null_mut())
        };
        if count != 1 {
            return Err(Error::Fabric(self.refuses("an address", count)));
        }
        self.held.fetch_add(1, Ordering::Relaxed);
        Ok(inserted)
    }

    /// Gives an address back, to which nothing is on its way.
    pub(super) fn remove(&self, mut address: u64) {
        // SAFETY: FABRIC-ABI; it was inserted, and is used no more.
        let code = unsafe { ((*self.addresses.get().ops).remove)(self.addresses.as_ptr(), &mut address, 1, 0) };
        match code {
            0 => drop(self.held.fetch_sub(1, Ordering::Relaxed)),
            code => tracing::warn!("{}", self.refuses("to forget an address", code)),
        }
    }

    /// How many addresses the provider keeps for this rank.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn refuses(&self, what: &str, code: c_int) -> String {
        format!("the provider refuses {what}: {} ({code})", self.library.meaning(code))
    }

    /// Registers memory for anything, under a key that the provider may replace.
    ///
    /// # Safety
    /// It stays mapped as long as what this returns.
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) unsafe fn register(
        &self,
        memory: *mut u8,
        len: usize,
        key: u64,
        bound_to: &super::endpoint::Endpoint,
    ) -> Result<Object<abi::Mr>> {
        let access = abi::REMOTE_READ | abi::REMOTE_WRITE | abi::READ | abi::WRITE | abi::SEND | abi::RECV;
        // SAFETY: the caller's promise.
        unsafe { self.register_for(access, memory, len, key, bound_to) }
    }

    /// Registers memory for what `access` says: what is only read need not be writable.
    ///
    /// # Safety
    /// As [`Domain::register`].
    ///
    /// # Errors
    /// What the provider has to say.
    pub(super) unsafe fn register_for(
        &self,
        access: u64,
        memory: *mut u8,
        len: usize,
        key: u64,
        bound_to: &super::endpoint::Endpoint,
    ) -> Result<Object<abi::Mr>> {
        let mut registered = ptr::null_mut();
        // SAFETY: FABRIC-ABI, and the caller's promise.
        let code = unsafe {
            let reg = (*self.domain.get().mr).reg;
            reg(self.domain.fid(), memory.cast(), len, access, 0, key, 0, &mut registered, ptr::null_mut())
        };
        let registered = self.library.opened("to register memory", code, registered)?;
        if self.binds_memory() {
            // A provider that only pretends to want this, for a test, has no such commands.
            let pretends = self.faults.wants & abi::MR_ENDPOINT != 0;
            let code = registered.bind(bound_to.object(), 0);
            if !pretends {
                self.library.check("memory its endpoint", code)?;
            }
            // SAFETY: FABRIC-ABI: this command takes no argument.
            let code = unsafe { registered.control(abi::ENABLE, ptr::null_mut()) };
            if !pretends {
                self.library.check("to enable memory", code)?;
            }
        }
        Ok(registered)
    }
}

/// Takes the first offer that will do; says why.
fn choose(offers: Option<&Infos>, wanted: Option<&Wanted>, here: bool) -> Result<(Infos, String)> {
    let all = || offers.into_iter().flat_map(Infos::iter);
    let mut passed_over = String::new();
    for info in all() {
        let (provider, domain) = (info.provider(), info.domain());
        let against = match wanted {
            Some(wanted) => match &wanted.domain {
                Some(asked) if *asked != domain => Some("is another interface than the one asked for"),
                _ => None,
            },
            None => NOT_UNASKED
                .iter()
                .any(|name| provider.starts_with(name))
                .then_some("is used only if ARMCI_FABRIC names it"),
        };
        let small = info.ep_attr().is_some_and(|endpoint| endpoint.max_msg_size < PACKET_MAX);
        let against = against.or(small.then_some("takes too short messages"));
        let named = wanted.is_some_and(|wanted| wanted.domain.is_some());
        let against = against.or_else(|| unreachable(info, &domain, here).filter(|_| !named));
        match against {
            None => {
                let mut why = format!("{provider} on {domain}");
                if !passed_over.is_empty() {
                    let _ = write!(why, "; passed over:{passed_over}");
                }
                let offers = offers.ok_or_else(|| Error::Fabric("an offer of nobody".into()))?;
                return Ok((offers.copy(info)?, why));
            }
            Some(against) => {
                let comma = if passed_over.is_empty() { "" } else { "," };
                let _ = write!(passed_over, "{comma} {provider} on {domain} ({against})");
            }
        }
    }
    let what = wanted.map_or_else(String::new, |wanted| {
        let domain = wanted.domain.as_ref().map_or_else(String::new, |domain| format!(" on {domain}"));
        format!(" called {}{domain}", wanted.provider)
    });
    Err(Error::Fabric(format!(
        "libfabric has no provider{what} with reliable messages and remote memory access between hosts; `fi_info -t \
         FI_EP_RDM -c 'FI_MSG|FI_RMA'` lists what it has, ARMCI_FABRIC=PROVIDER[:INTERFACE] chooses{}{passed_over}",
        if passed_over.is_empty() { "" } else { "; passed over:" }
    )))
}

/// Why an offer on IP would not reach the others, if so.
fn unreachable(info: &abi::Info, domain: &str, here: bool) -> Option<&'static str> {
    /// Formats of addresses.
    const IN: u32 = 2;
    const IN6: u32 = 3;
    let source = info.source();
    match info.addr_format {
        IN | IN6 => {
            let loopback = domain == LOOPBACK;
            // A link-local address means something on its link only.
            let local_to_link = info.addr_format == IN6 && source.get(8..10) == Some(&[0xfe, 0x80]);
            match (here, loopback, local_to_link) {
                (_, _, true) => Some("an address of one link"),
                (false, true, _) => Some("reaches this host alone"),
                (true, false, _) => Some("all ranks are on this host"),
                _ => None,
            }
        }
        _ => None,
    }
}
