//! The fabric: what the contexts of a rank share between nodes. Who is where, what is exported, how to give up.
//!
//! Joining, each rank shows the address of its service endpoint, its provider and its host. Addresses are kept as they
//! came, 16 to 64 bytes a rank, and made known to the provider when a rank is first spoken to. Those of origin contexts
//! travel with their requests.
//!
//! # Safety
//! EXPORTED: what is registered lies in this rank's slot of the window, which stays mapped as long as the node, which
//! the fabric keeps. It is registered from a region's first description until it is withdrawn, or as a whole.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::abi;
use super::dispositions::Dispositions;
use super::domain::{Domain, Wanted};
use super::endpoint::{Endpoint, Failed};
use super::faults::Asked;
use super::library::{Object, Version};
use super::packet::ADDRESS_MAX;
use crate::error::{Error, Result};
use crate::job::{Aborter, Bootstrap, host_name, random};
use crate::memory::RegionId;
use crate::memory::region::{Access, Part};
use crate::node::Node;

/// How long whoever knows better has to end this process, before it says what it knows.
const GRACE: Duration = Duration::from_secs(1);

/// What rank and fabric are to each other.
#[derive(Debug)]
pub(crate) struct Fabric {
    // Before the domain: it is dropped in this order.
    exports: Mutex<Exports>,
    domain: Arc<Domain>,
    node: Arc<Node>,
    /// What packets of this job show.
    secret: u64,
    /// Bytes of an address, and the addresses of all ranks' service endpoints.
    address_len: usize,
    addresses: Box<[u8]>,
    /// The hosts of the nodes.
    hosts: Box<[String]>,
    aborter: Aborter,
    /// How many lines this rank has opened.
    lines: AtomicU32,
}

/// What of this rank's memory others may reach.
#[derive(Debug)]
struct Exports {
    /// The whole slot, where the provider takes it.
    whole: Option<Object<abi::Mr>>,
    /// Each region by itself, otherwise.
    regions: HashMap<u32, (RegionId, Object<abi::Mr>)>,
}

/// What a rank shows when it joins; the address and the host follow, then the provider.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Card {
    secret: u64,
    address: u32,
    host: u32,
    /// Of libfabric: major, minor.
    version: [u32; 2],
}

impl Fabric {
    /// Opens the way to the other nodes. Collective. Returns the endpoint that serves this rank, too.
    ///
    /// # Errors
    /// [`Error::Fabric`] if there is no such way, on any rank.
    pub(crate) fn join(
        bootstrap: &mut dyn Bootstrap,
        node: &Arc<Node>,
        wanted: Option<&Wanted>,
        faults: &Asked,
        verbose: bool,
    ) -> Result<(Arc<Self>, Endpoint)> {
        let who = node.who().clone();
        let network = bootstrap.all_gather(&network()?)?;
        let here = network.iter().all(|other| *other == network[0]);
        let program = Dispositions::now();
        let opened = Domain::open(wanted, faults, here, (who.rank, who.size)).and_then(|(domain, why)| {
            let domain = Arc::new(domain);
            let service = Endpoint::open(&domain)?;
            let name = service.name()?;
            Ok((domain, service, name, why))
        });
        // The provider shm removes its files when a signal ends the process; no other that is in use needs to know.
        if !opened.as_ref().is_ok_and(|(domain, ..)| domain.provider().starts_with("shm")) {
            program.restore();
        }
        // Who has failed must meet the others all the same.
        let (mine, opened) = match opened {
            Ok((domain, service, name, why)) => {
                let host = host_name();
                let version = domain.library().version().into();
                let card =
                    Card { secret: random::<1>()?[0], address: name.len() as u32, host: host.len() as u32, version };
                let provider = domain.provider();
                let mine = [bytemuck::bytes_of(&card), &name, host.as_bytes(), provider.as_bytes()].concat();
                (mine, Ok((domain, service, why)))
            }
            Err(error) => (Vec::new(), Err(error)),
        };
        let all = bootstrap.all_gather(&mine)?;
        let (domain, service, why) = opened?;
        let cards = all.iter().enumerate().map(|(rank, card)| read(rank, card)).collect::<Result<Vec<_>>>()?;
        let (first, mine) = (&cards[0], &cards[who.rank]);
        if let Some(rank) = cards.iter().position(|card| card.provider != mine.provider) {
            return Err(Error::Fabric(format!(
                "rank {} on {} would use the provider {:?} of libfabric {}, and rank {rank} on {} {:?} of libfabric {}: have one \
                 version on all hosts, or name a provider with ARMCI_FABRIC",
                who.rank,
                mine.host,
                mine.provider,
                mine.version,
                cards[rank].host,
                cards[rank].provider,
                cards[rank].version
            )));
        }
        let address_len = cards.iter().map(|card| card.address.len()).max().unwrap_or(0);
        if address_len > ADDRESS_MAX {
            return Err(Error::Fabric(format!(
                "the provider {:?} has addresses of {address_len} bytes, of more than {ADDRESS_MAX}",
                mine.provider
            )));
        }
        let mut addresses = vec![0; address_len * who.size];
        for (place, card) in addresses.chunks_exact_mut(address_len.max(1)).zip(&cards) {
            place[..card.address.len()].copy_from_slice(card.address);
        }
        let mut hosts = vec![String::new(); who.nodes];
        for (rank, card) in cards.iter().enumerate().rev() {
            hosts[node.node_of(rank)?] = card.host.clone();
        }
        if verbose {
            let complete = if domain.delivers() { "of which the end is known" } else { "by message" };
            let sleeps = if domain.has_descriptors() { "by descriptor" } else { "by timer" };
            let line = format!(
                "armci: rank {}: other nodes through libfabric {}'s {why}; writes {complete}, sleeps {sleeps}, the own side's memory {}\n",
                who.rank,
                domain.library().version(),
                if domain.wants_local() { "is registered" } else { "needs no registration" },
            );
            // In one piece, as all ranks write; without a reader nobody is to be told.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        let secret = first.secret;
        let exports = Exports::open(&domain, node, &service)?;
        let fabric = Fabric {
            exports: Mutex::new(exports),
            domain,
            node: node.clone(),
            secret,
            address_len,
            addresses: addresses.into(),
            hosts: hosts.into(),
            aborter: bootstrap.aborter(),
            lines: AtomicU32::new(0),
        };
        Ok((Arc::new(fabric), service))
    }

    pub(super) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The number of a new line of this rank.
    pub(super) fn number_line(&self) -> u32 {
        self.lines.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    pub(super) fn secret(&self) -> u64 {
        self.secret
    }

    /// Whether writes of this many bytes to one place take effect in their order.
    pub(crate) fn orders_writes(&self, bytes: usize) -> bool {
        self.domain.orders_writes(bytes)
    }

    /// The address of a rank's service endpoint.
    pub(super) fn address_of(&self, rank: usize) -> &[u8] {
        &self.addresses[rank * self.address_len..][..self.address_len]
    }

    /// How many addresses of others' endpoints the provider keeps for the service endpoint.
    pub(crate) fn addresses_held(&self) -> usize {
        self.domain.held()
    }

    /// How others reach a part of a region of this rank; `None` if they cannot.
    pub(crate) fn export(&self, service: &Endpoint, id: RegionId, part: Part) -> Option<Access> {
        if id.is_registered() {
            return None;
        }
        let place = self.node.window().address(self.node.who().local_rank, part.offset);
        let base = if self.domain.names_addresses() { place as u64 } else { 0 };
        let mut exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(whole) = &exports.whole {
            let offset = if self.domain.names_addresses() { 0 } else { part.offset };
            return Some(Access { address: base + offset, key: whole.get().key });
        }
        if let Some((known, registered)) = exports.regions.get(&id.index)
            && *known == id
        {
            return Some(Access { address: base, key: registered.get().key });
        }
        let key = random::<1>().ok()?[0];
        // SAFETY: EXPORTED.
        let registered = unsafe { self.domain.register(place, part.len as usize, key, service) };
        match registered {
            Ok(registered) => {
                let key = registered.get().key;
                exports.regions.insert(id.index, (id, registered));
                Some(Access { address: base, key })
            }
            Err(error) => {
                tracing::warn!("region {id} is reached by messages only: {error}");
                None
            }
        }
    }

    /// A region is no more.
    pub(crate) fn withdraw(&self, id: RegionId) {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner).regions.remove(&id.index);
    }

    /// Before the service endpoint ends: lets go of memory that is bound to it.
    pub(super) fn withdraw_what_is_bound(&self) {
        if self.domain.binds_memory() {
            let mut exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
            *exports = Exports { whole: None, regions: HashMap::new() };
        }
    }

    /// Ends the job: what happened can be repaired by nobody.
    pub(crate) fn give_up(&self, rank: Option<usize>, reason: &str) -> ! {
        let who = self.node.who();
        let host = |node: usize| self.hosts.get(node).map_or("an unknown host", |host| host);
        let whom = rank.map_or_else(String::new, |rank| {
            let host = self.node.node_of(rank).map_or("an unknown host", host);
            format!(" with rank {rank} on {host}")
        });
        let message =
            format!("rank {} on {} cannot communicate{whom}: {reason}; the job ends", who.rank, host(who.node));
        // A peer that died has broken the connection: who saw how it died, its launcher, is to have the first word.
        std::thread::sleep(GRACE);
        // Without a reader of standard error, the code must do.
        let _ = writeln!(std::io::stderr(), "armci: {message}");
        self.aborter.abort(1, &message);
        // The other threads of this process are in the midst of anything: nothing of it is taken down.
        // SAFETY: it only ends the process.
        unsafe { libc::_exit(1) }
    }

    /// The same, for an operation that failed.
    pub(super) fn give_up_on(&self, rank: Option<usize>, failed: &Failed) -> ! {
        self.give_up(rank, &format!("{} (libfabric's error {})", failed.reason, failed.code))
    }
}

impl Exports {
    fn open(domain: &Domain, node: &Node, service: &Endpoint) -> Result<Self> {
        let regions = HashMap::new();
        if domain.wants_memory() {
            return Ok(Exports { whole: None, regions });
        }
        let slot = node.window().address(node.who().local_rank, 0);
        // SAFETY: EXPORTED.
        let whole = unsafe { domain.register(slot, node.window().slot_len() as usize, random::<1>()?[0], service) };
        Ok(Exports { whole: Some(whole?), regions })
    }
}

/// A card, taken apart.
struct Shown<'a> {
    secret: u64,
    address: &'a [u8],
    host: String,
    provider: String,
    version: Version,
}

fn read(rank: usize, card: &[u8]) -> Result<Shown<'_>> {
    let size = size_of::<Card>();
    if card.is_empty() {
        return Err(Error::Fabric(format!("rank {rank} cannot reach other nodes; it says why")));
    }
    let wrong = || Error::Fabric(format!("rank {rank} speaks another version of this library: start one build"));
    let (fixed, rest) = card.split_at_checked(size).ok_or_else(wrong)?;
    let Card { secret, address, host, version } = bytemuck::pod_read_unaligned(fixed);
    let (address, rest) = rest.split_at_checked(address as usize).ok_or_else(wrong)?;
    let (host, provider) = rest.split_at_checked(host as usize).ok_or_else(wrong)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Shown { secret, address, host: text(host), provider: text(provider), version: version.into() })
}

/// What tells networks apart: the boot of the machine, and its name space.
fn network() -> Result<Vec<u8>> {
    use std::os::unix::fs::MetadataExt;
    let read = |source| Error::System { call: "reading the identity of this machine in /proc", source };
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").map_err(read)?;
    let network = std::fs::metadata("/proc/self/ns/net").map_err(read)?.ino();
    Ok([&boot[..], &network.to_le_bytes()].concat())
}
