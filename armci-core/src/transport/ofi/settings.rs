//! Settings of libfabric that are made before it is asked for anything. Whatever the user's environment says stays.
//!
//! **Connections are noticed soon.** `ofi_rxm` looks only every 10 ms at what its connections want, though it is looked at all
//! the time: a quarter of first contacts took 11 ms with 1.17 over tcp, and none more than 4 with a look every
//! millisecond, which costs nothing that could be measured.
//!
//! **Endpoints are small**, before 1.18. Over tcp, `ofi_rxm` gives each endpoint bounce buffers of 16 KiB by the thousand, and touches them
//! all: 85 MiB and tens of milliseconds a thread, seen with 1.17. Ours post buffers of their own, which tcp reads into
//! directly, so those of 1 KiB will do, if the limit of eager messages stays where it is. Verbs needs both to be equal,
//! so these two are not set where an adapter of that kind may be used. Since 1.18 tcp does without `ofi_rxm`; and where
//! that is used all the same, 2.1 knows no such limit, so that longer messages would go by rendezvous.
//!
//! They are not taken back, although what the program starts inherits them: libfabric 1.17 reads the buffers' size when it
//! is first asked what there is, but the limit whenever an endpoint is opened (seen by watching `getenv`), and endpoints
//! are opened by threads at their first operation that leaves the node, when the environment may no longer be changed. Nor
//! may one of the two stay alone: the limit is there for the sake of the small buffers, and without it most packets
//! would go by rendezvous.
//!
//! # Safety
//! ENVIRONMENT: changed while the rank joins, before this library starts a thread, with libfabric loaded and nothing asked
//! of it but its version; a program with threads of its own that
//! read or change the environment meanwhile would also be in the way of libfabric, which reads it then.
#![allow(unsafe_code)]

use std::env;
use std::path::Path;

use super::domain::Wanted;
use super::library::Version;

type Setting = (&'static str, &'static str);

/// Microseconds between looks at what connections want.
const SOON: [Setting; 1] = [("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "1000")];
/// The bytes of a bounce buffer, and the longest eager message, which a packet of ours fits (see `packet.rs`).
const SMALL: [Setting; 2] = [("FI_OFI_RXM_BUFFER_SIZE", "1024"), ("FI_OFI_RXM_EAGER_LIMIT", "16384")];
/// The first version whose tcp needs no `ofi_rxm`.
const WITHOUT_RXM: Version = Version { major: 1, minor: 18 };
/// Where the system lists adapters that verbs would use.
const ADAPTERS: &str = "/sys/class/infiniband";

/// Makes the settings, where they are of use.
pub(super) fn set(wanted: Option<&Wanted>, version: Version) {
    set_together(&SOON);
    let adapters = Path::new(ADAPTERS).read_dir().is_ok_and(|mut adapters| adapters.next().is_some());
    if takes_small(wanted, adapters, version) {
        set_together(&SMALL);
    }
}

/// Makes these settings, unless the user has made one of them.
fn set_together(settings: &[Setting]) {
    if settings.iter().all(|(name, _)| env::var_os(name).is_none()) {
        // SAFETY: ENVIRONMENT.
        settings.iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
    }
}

/// Whether the provider will be `ofi_rxm` over tcp as it was, or one that does not ask.
fn takes_small(wanted: Option<&Wanted>, adapters: bool, version: Version) -> bool {
    version < WITHOUT_RXM && wanted.map_or(!adapters, |wanted| wanted.provider.split(';').next() == Some("tcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tcp_by_way_of_rxm_gets_small_buffers() {
        let wanted = |provider: &str| Wanted { provider: provider.into(), domain: None };
        let (tcp, old) = (wanted("tcp"), Version { major: 1, minor: 17 });
        assert!(takes_small(None, false, old) && !takes_small(None, true, old));
        assert!(takes_small(Some(&tcp), true, old) && takes_small(Some(&wanted("tcp;ofi_rxm")), false, old));
        for other in ["verbs;ofi_rxm", "shm", "tcp2"] {
            assert!(!takes_small(Some(&wanted(other)), false, old), "{other}");
        }
        for (major, minor) in [(1, 18), (2, 0), (2, 17)] {
            let version = Version { major, minor };
            assert!(!takes_small(Some(&tcp), false, version) && !takes_small(None, false, version), "{version}");
        }
    }
}
