//! The regions that `ARMCI_Malloc` and its kin made over a group of ranks, numbered alike on each of them.
//!
//! C frees by address, and a rank whose part is empty has none: so the ranks agree on which region is meant.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_long, c_void};
use std::ptr;

use armci_core::{Error, Reduce, Region, Result, World};

use crate::groups::Ranks;

/// Stands for the size of a rank that passed no table.
pub(crate) const NO_TABLE: c_long = c_long::MIN;

/// The regions of one group.
#[derive(Default)]
pub(crate) struct Allocations {
    /// The number of the youngest; the first has 1.
    last: u64,
    /// Each region, and where this rank's part begins, or 0 if it has none.
    by_number: BTreeMap<u64, (Region, usize)>,
    by_address: BTreeMap<usize, u64>,
}

impl Allocations {
    /// Remembers a region whose part here begins at `address`, or is empty if that is 0.
    fn keep(&mut self, region: Region, address: usize) {
        self.last += 1;
        self.by_number.insert(self.last, (region, address));
        if address != 0 {
            self.by_address.insert(address, self.last);
        }
    }

    /// Forgets a region and returns it.
    fn take(&mut self, number: u64) -> Option<Region> {
        let (region, address) = self.by_number.remove(&number)?;
        self.by_address.remove(&address);
        Some(region)
    }

    /// Frees all that is left. Collective.
    pub(crate) fn free_all(self, world: &World) -> Result<()> {
        self.by_number.into_values().map(|(region, _)| world.free(region)).fold(Ok(()), Result::and)
    }
}

/// Allocates a region; returns where each rank's part begins. Collective; fails on all ranks alike.
pub(crate) fn allocate(
    world: &World,
    ranks: Ranks<'_>,
    allocations: &RefCell<Allocations>,
    size: c_long,
) -> Result<Vec<*mut c_void>> {
    let sizes = ranks.all_gather(&[size])?;
    if let Some((rank, size)) = sizes.iter().enumerate().find(|(_, size)| **size < 0) {
        return Err(Error::Argument(match *size {
            NO_TABLE => format!("rank {rank} passed NULL for the table of pointers"),
            size => format!("rank {rank} asked for {size} bytes"),
        }));
    }
    if sizes.iter().all(|size| *size == 0) {
        return Ok(vec![ptr::null_mut(); sizes.len()]);
    }
    let region = ranks.allocate(size as usize)?;
    let base = |(size, address): (&c_long, *mut u8)| if *size == 0 { ptr::null_mut() } else { address.cast() };
    let bases: Vec<*mut c_void> = sizes.iter().zip(world.addresses(&region)?).map(base).collect();
    allocations.borrow_mut().keep(region, bases[ranks.rank()] as usize);
    Ok(bases)
}

/// Frees the region whose part begins at `address` here, or elsewhere if it is 0. Collective; fails on all ranks alike.
pub(crate) fn free(world: &World, ranks: Ranks<'_>, allocations: &RefCell<Allocations>, address: usize) -> Result<()> {
    let number = allocations.borrow().by_address.get(&address).copied();
    let unknown = address != 0 && number.is_none();
    // The largest number, the largest complement (so the smallest number), and a rank that knows no such address.
    let refused = if unknown { ranks.rank() as u64 + 1 } else { 0 };
    let mut seen = [number.unwrap_or(0), number.map_or(0, |number| !number), refused];
    ranks.all_reduce(&mut seen, Reduce::Max)?;
    let [highest, lowest, refused] = [seen[0], !seen[1], seen[2]];
    if unknown {
        let why = "is not where an allocation of these ranks begins on this one: pass what ARMCI_Malloc gave for it, once, \
                   and free with ARMCI_Free_group what was allocated with a group";
        return Err(Error::Argument(format!("{address:#x} {why}")));
    }
    if refused != 0 {
        return Err(Error::Argument(format!(
            "rank {} passed an address where no allocation of its begins",
            refused - 1
        )));
    }
    if highest == 0 {
        return Ok(()); // nobody has a part
    }
    if highest != lowest {
        return Err(Error::Argument(format!(
            "ranks passed parts of different allocations, number {lowest} and {highest}"
        )));
    }
    let region = allocations.borrow_mut().take(highest);
    region.map_or_else(|| Err(Error::Argument("it was freed before".into())), |region| world.free(region))
}
