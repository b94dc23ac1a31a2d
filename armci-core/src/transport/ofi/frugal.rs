//! Settings of libfabric that keep an endpoint small, made before it is loaded.
//!
//! Over tcp, `ofi_rxm` gives each endpoint bounce buffers of 16 KiB by the thousand, and touches them all: 85 MiB and
//! tens of milliseconds a thread, seen with 1.17. Ours post buffers of their own, which tcp reads into directly, so those
//! of 1 KiB will do, if the limit of eager messages stays where it is. Verbs needs both to be equal, so nothing is set
//! where an adapter of that kind may be used. Whatever the user has set stays.
//!
//! They are not taken back, although what the program starts inherits them: libfabric 1.17 reads the buffers' size when it
//! is first asked what there is, but the limit whenever an endpoint is opened (seen by watching `getenv`), and endpoints
//! are opened by threads at their first operation that leaves the node, when the environment may no longer be changed. Nor
//! may one of the two stay alone: the limit is there for the sake of the small buffers, and without it most packets
//! would go by rendezvous.
//!
//! # Safety
//! ENVIRONMENT: changed while the rank joins, before this library starts a thread; a program with threads of its own that
//! read or change the environment meanwhile would also be in the way of libfabric, which reads it then.
#![allow(unsafe_code)]

use std::env;
use std::path::Path;

use super::domain::Wanted;

/// The bytes of a bounce buffer, and the longest eager message, which a packet of ours fits (see `packet.rs`).
const SETTINGS: [(&str, &str); 2] = [("FI_OFI_RXM_BUFFER_SIZE", "1024"), ("FI_OFI_RXM_EAGER_LIMIT", "16384")];
/// Where the system lists adapters that verbs would use.
const ADAPTERS: &str = "/sys/class/infiniband";

/// Makes the settings, where they are of use.
pub(super) fn set(wanted: Option<&Wanted>) {
    let adapters = Path::new(ADAPTERS).read_dir().is_ok_and(|mut adapters| adapters.next().is_some());
    if fits(wanted, adapters) && SETTINGS.iter().all(|(name, _)| env::var_os(name).is_none()) {
        // SAFETY: ENVIRONMENT.
        SETTINGS.iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
    }
}

/// Whether the provider will be tcp's, or one that does not ask.
fn fits(wanted: Option<&Wanted>, adapters: bool) -> bool {
    wanted.map_or(!adapters, |wanted| wanted.provider.split(';').next() == Some("tcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tcp_gets_small_buffers() {
        let wanted = |provider: &str| Wanted { provider: provider.into(), domain: None };
        assert!(fits(None, false) && !fits(None, true));
        assert!(fits(Some(&wanted("tcp")), true) && fits(Some(&wanted("tcp;ofi_rxm")), false));
        for other in ["verbs;ofi_rxm", "shm", "tcp2"] {
            assert!(!fits(Some(&wanted(other)), false), "{other}");
        }
    }
}
