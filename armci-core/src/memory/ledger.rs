//! The ledger: how many bytes the ranks of a node may allocate, and hold.
//!
//! It lies in memory that all ranks of the node share. Bytes are granted here
//! before a page is touched, so that "too much" is an error with the numbers in
//! it and never a fault or the kernel's out-of-memory killer. What other
//! programs take meanwhile nobody can promise.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::primitive::{AtomicU64, Ordering};

/// Kept back from what is available: for page tables, stacks, and what other programs take.
const MARGIN: u64 = 256 << 20;

/// Bytes granted and grantable on this node.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ledger {
    granted: AtomicU64,
    limit: AtomicU64,
    /// The most that was granted at once.
    peak: AtomicU64,
}

/// Why the ledger refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) granted: u64,
    pub(crate) limit: u64,
}

impl Ledger {
    /// Sets what may be granted; by one rank, before anybody asks.
    pub(crate) fn open(&self, limit: u64) {
        self.limit.store(limit, Ordering::Release);
    }

    /// Takes `bytes` out of what may be granted.
    ///
    /// # Errors
    /// [`Refused`] with both numbers; nothing was taken.
    pub(crate) fn grant(&self, bytes: u64) -> Result<(), Refused> {
        let limit = self.limit.load(Ordering::Acquire);
        self.granted
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |granted| {
                granted.checked_add(bytes).filter(|sum| *sum <= limit)
            })
            .map(|before| {
                // For people to read, with nothing behind it.
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
            })
            .map_err(|granted| Refused { granted, limit })
    }

    /// Gives `bytes` of a grant back.
    pub(crate) fn release(&self, bytes: u64) {
        self.granted.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Bytes granted now.
    pub(crate) fn granted(&self) -> u64 {
        self.granted.load(Ordering::Acquire)
    }

    /// The most that was granted at once, so far.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// What may be allocated on this machine: available memory and every cgroup limit up the tree, less a margin.
pub(crate) fn limit_of_this_machine() -> u64 {
    let available = meminfo("MemAvailable").unwrap_or(u64::MAX);
    let limit = cgroup_rooms(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")).into_iter().min();
    available.min(limit.unwrap_or(u64::MAX)).saturating_sub(MARGIN)
}

/// All memory of this machine, in bytes.
pub(crate) fn memory_of_this_machine() -> u64 {
    meminfo("MemTotal").unwrap_or(64 << 30)
}

fn meminfo(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// The room left under each memory limit that holds for this process, in both versions of cgroups.
fn cgroup_rooms(membership: &Path, mount: &Path) -> Vec<u64> {
    let Ok(text) = fs::read_to_string(membership) else { return Vec::new() };
    let mut rooms = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let relative = path.trim_start_matches('/');
        if controllers.is_empty() {
            for root in [mount.to_path_buf(), mount.join("unified")] {
                rooms.extend(rooms_up(&root, relative, "memory.max", "memory.current", "inactive_file"));
            }
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let root = mount.join("memory");
            let [limit, usage] = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
            rooms.extend(rooms_up(&root, relative, limit, usage, "total_inactive_file"));
        }
    }
    rooms
}

/// The room left in the group `relative` below `root` and in each group above it.
fn rooms_up(root: &Path, relative: &str, limit: &str, usage: &str, cache: &str) -> Vec<u64> {
    let mut group: PathBuf = root.join(relative);
    let mut rooms = Vec::new();
    loop {
        let read = |name: &str| -> io::Result<u64> {
            fs::read_to_string(group.join(name))?.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
        };
        // A group without a limit holds the word "max", or has no such file.
        if let (Ok(limit), Ok(usage)) = (read(limit), read(usage)) {
            let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            let reclaimable =
                stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<u64>().ok()).unwrap_or(0);
            rooms.push(limit.saturating_sub(usage.saturating_sub(reclaimable)));
        }
        if group == *root || !group.pop() {
            return rooms;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ledger(limit: u64) -> Ledger {
        Ledger { granted: AtomicU64::new(0), limit: AtomicU64::new(limit), peak: AtomicU64::new(0) }
    }

    #[test]
    fn grants_stop_at_the_limit_and_name_it() {
        let ledger = ledger(100);
        ledger.grant(60).unwrap();
        assert_eq!(ledger.grant(41), Err(Refused { granted: 60, limit: 100 }));
        assert_eq!(ledger.grant(u64::MAX), Err(Refused { granted: 60, limit: 100 }), "no wrap-around");
        ledger.release(60);
        ledger.grant(100).unwrap();
        assert_eq!(ledger.granted(), 100);
    }

    #[test]
    fn the_tightest_group_up_the_tree_counts() {
        let dir = std::env::temp_dir().join(format!("armci-ledger-test-{}", std::process::id()));
        let group = dir.join("outer/inner");
        fs::create_dir_all(&group).unwrap();
        let write = |path: PathBuf, text: &str| fs::write(path, text).unwrap();
        write(dir.join("membership"), "0::/outer/inner\n");
        write(group.join("memory.max"), "max\n");
        write(group.join("memory.current"), "10\n");
        write(dir.join("outer/memory.max"), "1000\n");
        write(dir.join("outer/memory.current"), "400\n");
        write(dir.join("outer/memory.stat"), "anon 300\ninactive_file 100\n");
        let rooms = cgroup_rooms(&dir.join("membership"), &dir);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(rooms, [700]);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(limit_of_this_machine() > 0);
        assert!(limit_of_this_machine() <= memory_of_this_machine());
    }
}
