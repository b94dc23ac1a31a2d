//! Memory that all ranks reach.
//!
//! Both calls are collective and fail on all ranks alike, also if only one rank's arguments are wrong.
//!
//! # Safety
//! POINTER-TABLE: a table that is not NULL has room for one pointer per rank.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::ptr;

use armci_core::{Error, Reduce, Result};

use crate::abi::c_functions;
use crate::member::{Member, member};

/// A size in bytes.
pub type armci_size_t = c_long;

/// Stands for the size of a rank that passed no table.
const NO_TABLE: armci_size_t = armci_size_t::MIN;

c_functions! {
    /// Allocates `size` bytes here, and what they ask for on other ranks; writes where each part begins, or NULL
    /// for a part of 0 bytes.
    code fn ARMCI_Malloc(base_ptrs: *mut *mut c_void, size: armci_size_t) -> c_int = || {
        let member = member()?;
        let bases = allocate(member, if base_ptrs.is_null() { NO_TABLE } else { size })?;
        for (rank, base) in bases.into_iter().enumerate() {
            // SAFETY: POINTER-TABLE; had any rank passed NULL, that were an error of all.
            unsafe { base_ptrs.add(rank).write(base) };
        }
        Ok(())
    };

    /// Frees what this rank's part begins at `ptr`; a rank whose part is empty passes NULL.
    code fn ARMCI_Free(ptr: *mut c_void) -> c_int = || free(member()?, ptr as usize);
}

/// Allocates a region; returns where each rank's part begins.
fn allocate(member: &Member, size: armci_size_t) -> Result<Vec<*mut c_void>> {
    let world = &member.world;
    let sizes = world.all_gather(&[size])?;
    if let Some((rank, size)) = sizes.iter().enumerate().find(|(_, size)| **size < 0) {
        return Err(Error::Argument(match *size {
            NO_TABLE => format!("rank {rank} passed NULL for the table of pointers"),
            size => format!("rank {rank} asked for {size} bytes"),
        }));
    }
    if sizes.iter().all(|size| *size == 0) {
        return Ok(vec![ptr::null_mut(); sizes.len()]);
    }
    let region = world.allocate(size as usize)?;
    let base = |(rank, size): (usize, &armci_size_t)| match size {
        0 => Ok(ptr::null_mut()),
        _ => world.address(&region, rank).map(<*mut u8>::cast),
    };
    let bases = sizes.iter().enumerate().map(base).collect::<Result<Vec<*mut c_void>>>()?;
    member.allocations.borrow_mut().keep(region, bases[world.rank()] as usize);
    Ok(bases)
}

/// Frees the region whose part begins at `address` here, or elsewhere if it is 0.
fn free(member: &Member, address: usize) -> Result<()> {
    let world = &member.world;
    let number = member.allocations.borrow().number(address);
    let unknown = address != 0 && number.is_none();
    // The largest number, the largest complement (so the smallest number), and a rank that knows no such address.
    let refused = if unknown { world.rank() as u64 + 1 } else { 0 };
    let mut seen = [number.unwrap_or(0), number.map_or(0, |number| !number), refused];
    world.all_reduce(&mut seen, Reduce::Max)?;
    let [highest, lowest, refused] = [seen[0], !seen[1], seen[2]];
    if unknown {
        let why = "is not where an allocation begins on this rank: pass what ARMCI_Malloc gave for it, once";
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
    let region = member.allocations.borrow_mut().take(highest);
    region.map_or_else(|| Err(Error::Argument("it was freed before".into())), |region| world.free(region))
}
