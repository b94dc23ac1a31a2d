//! Which machine and which network a process is on: what makes ranks share a node.
//!
//! Two processes of one place reach each other by sockets without a network, and may share memory. Two network namespaces
//! of one machine are two places, which divide the machine's memory.

use std::os::unix::fs::MetadataExt;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};

/// A machine and a network on it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Place {
    /// Tells machines apart, or boots of one.
    pub(super) machine: [u64; 2],
    /// Tells apart what on a machine cannot reach each other.
    pub(super) network: u64,
}

impl Place {
    /// Where this process is.
    pub(super) fn mine() -> Result<Self> {
        let read = |source| Error::System { call: "reading the identity of this machine in /proc", source };
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(read)?;
        let digits: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
        let machine = [0, 16].map(|from| {
            digits.get(from..from + 16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
        });
        let network = std::fs::metadata("/proc/self/ns/net").map_err(read)?.ino();
        Ok(Self { machine, network })
    }
}
