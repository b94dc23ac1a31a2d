//! The message layer: who is there, meeting, and broadcasts.
//!
//! # Safety
//! C-BUFFER: the elements that buffer and length name are the caller's alone during the call, as `armci.h` demands: no
//! rank transfers to or from them, either, so they are a slice here. C-GROUP, as in `group`. C-WORD: an `int` may be
//! written where one is asked for. POINTER-TABLE: the table has as many pointers as its length says.
#![allow(unsafe_code)]

use std::ffi::{c_double, c_int, c_void};
use std::slice;
use std::sync::OnceLock;
use std::time::Instant;

use armci_core::{Error, Result, World};

use crate::abi::{c_constants, c_functions};
use crate::arguments::{count, present, rank, unknown};
use crate::entry;
use crate::group::{ARMCI_Group, known};
use crate::groups::{Group, Ranks, Scope};
use crate::member::{member, primary, world};

c_constants! {
    /// All ranks.
    SCOPE_ALL = 0;
    /// Those of this node.
    SCOPE_NODE = 1;
    /// The first of each node.
    SCOPE_MASTERS = 2;
}

c_functions! {
    /// This rank.
    answer fn armci_msg_me() -> c_int = || world().map(|world| world.rank() as c_int);

    /// How many ranks there are.
    answer fn armci_msg_nproc() -> c_int = || world().map(|world| world.size() as c_int);

    /// Seconds since some time in the past. May be called at any time.
    answer fn armci_timer() -> c_double = || {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        Ok(BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64())
    };

    /// All ranks meet. Completes their transfers, too, which ARMCI does not promise here.
    answer fn armci_msg_barrier = parmci_msg_barrier() = || {
        let (world, _) = primary()?;
        member()?.aggregates.send();
        world.barrier()
    };

    /// The ranks of a group meet.
    answer fn armci_msg_group_barrier = parmci_msg_group_barrier(group: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        member()?.aggregates.send();
        // SAFETY: C-GROUP.
        unsafe { known(primary, group)? }.ranks()?.barrier()
    };

    /// Ends the job with `code`, or with 1 if the code would look like success. Any thread may.
    answer fn armci_msg_abort(code: c_int) = || {
        entry::say("armci_msg_abort", &format_args!("code {code}"));
        entry::end(code)
    };

    /// Gives every rank the bytes that `root` has.
    answer fn armci_msg_brdcst(buffer: *mut c_void, len: c_int, root: c_int) = || {
        let (world, primary) = primary()?;
        // SAFETY: C-BUFFER.
        unsafe { broadcast(world, primary.groups.world(), SCOPE_ALL, buffer, len, root) }
    };

    /// [`armci_msg_brdcst`] by its other name.
    answer fn armci_msg_bcast(buffer: *mut c_void, len: c_int, root: c_int) = || {
        let (world, primary) = primary()?;
        // SAFETY: C-BUFFER.
        unsafe { broadcast(world, primary.groups.world(), SCOPE_ALL, buffer, len, root) }
    };

    /// [`armci_msg_brdcst`] among the ranks of a scope.
    answer fn armci_msg_bcast_scope(scope: c_int, buffer: *mut c_void, len: c_int, root: c_int) = || {
        let (world, primary) = primary()?;
        // SAFETY: C-BUFFER.
        unsafe { broadcast(world, primary.groups.world(), scope, buffer, len, root) }
    };

    /// [`armci_msg_brdcst`] among the ranks of a group that are of a scope. `root` is a rank among all.
    answer fn armci_msg_group_bcast_scope(
        scope: c_int, buf: *mut c_void, len: c_int, root: c_int, group: *mut ARMCI_Group
    ) = || {
        let (world, primary) = primary()?;
        // SAFETY: C-GROUP, C-BUFFER.
        unsafe { broadcast(world, &*known(primary, group)?, scope, buf, len, root) }
    };

    /// [`armci_msg_brdcst`] on each node, from its first rank.
    answer fn armci_msg_clus_brdcst(buf: *mut c_void, len: c_int) = || {
        let (world, primary) = primary()?;
        let group = primary.groups.world();
        let first = group.list(world, Scope::Node)?.first().map_or(-1, |first| *first as c_int);
        // SAFETY: C-BUFFER.
        unsafe { broadcast(world, group, SCOPE_NODE, buf, len, first) }
    };

    /// The place of this rank in a binary tree over a scope; -1 for who is not there.
    answer fn armci_msg_bintree(
        scope_of: c_int, root: *mut c_int, up: *mut c_int, left: *mut c_int, right: *mut c_int
    ) = || {
        let (world, primary) = primary()?;
        let list = primary.groups.world().list(world, scope(scope_of)?)?;
        let at = |index: Option<usize>| index.and_then(|index| list.get(index)).map_or(-1, |rank| *rank as c_int);
        let me = list.iter().position(|rank| *rank == world.rank());
        let tree = [
            (root, at(Some(0))),
            (up, at(me.and_then(|me| Some(me.checked_sub(1)? / 2)))),
            (left, at(me.map(|me| 2 * me + 1))),
            (right, at(me.map(|me| 2 * me + 2))),
        ];
        for (place, rank) in tree {
            present(place, "a place for a rank")?;
            // SAFETY: C-WORD.
            unsafe { place.write(rank) };
        }
        Ok(())
    };

    /// Gives every rank the pointer that each rank has at its own place of the table.
    answer fn armci_exchange_address(ptr_ar: *mut *mut c_void, n: c_int) = || {
        let (_, primary) = primary()?;
        // SAFETY: POINTER-TABLE.
        unsafe { exchange(primary.groups.world(), ptr_ar, n) }
    };

    /// [`armci_exchange_address`] among the ranks of a group.
    answer fn armci_exchange_address_grp(ptr_arr: *mut *mut c_void, n: c_int, group: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-GROUP, POINTER-TABLE.
        unsafe { exchange(&*known(primary, group)?, ptr_arr, n) }
    };
}

/// A scope by its number.
pub(crate) fn scope(number: c_int) -> Result<Scope> {
    match number {
        SCOPE_ALL => Ok(Scope::All),
        SCOPE_NODE => Ok(Scope::Node),
        SCOPE_MASTERS => Ok(Scope::Masters),
        other => unknown(other, "scope", "SCOPE_ALL (0), SCOPE_NODE (1) and SCOPE_MASTERS (2)"),
    }
}

/// # Safety
/// C-BUFFER.
unsafe fn broadcast(
    world: &World,
    group: &Group,
    scope_of: c_int,
    buffer: *mut c_void,
    len: c_int,
    root: c_int,
) -> Result<()> {
    let root = rank(world, root)?;
    let Some(ranks) = group.scoped(world, scope(scope_of)?)? else { return Ok(()) };
    let member = ranks.member(root);
    let member = member.ok_or_else(|| Error::Argument(format!("rank {root} is not one of those that take part")))?;
    // SAFETY: C-BUFFER.
    ranks.broadcast(member, unsafe { elements(buffer.cast::<u8>(), len)? })
}

/// # Safety
/// POINTER-TABLE.
unsafe fn exchange(group: &Group, table: *mut *mut c_void, number: c_int) -> Result<()> {
    let (ranks, size): (Ranks<'_>, _) = (group.ranks()?, group.to_world.len());
    if count(number, "the number of pointers")? != size {
        return Err(Error::Argument(format!("{number} pointers were to be exchanged by {size} ranks: each has one")));
    }
    present(table, "the table of pointers")?;
    // SAFETY: POINTER-TABLE.
    let table = unsafe { slice::from_raw_parts_mut(table, size) };
    let all = ranks.all_gather(&[table[ranks.rank()] as usize])?;
    table.iter_mut().zip(all).for_each(|(pointer, address)| *pointer = address as *mut c_void);
    Ok(())
}

/// A buffer as a slice.
///
/// # Safety
/// C-BUFFER.
pub(crate) unsafe fn elements<'a, T>(buffer: *mut T, number: c_int) -> Result<&'a mut [T]> {
    let number = count(number, "the number of elements")?;
    if number == 0 {
        return Ok(&mut []);
    }
    present(buffer, "the buffer")?;
    if !buffer.is_aligned() {
        return Err(Error::Argument(format!(
            "the buffer at {buffer:?} is not aligned to its {}-byte elements",
            size_of::<T>()
        )));
    }
    // SAFETY: C-BUFFER; not NULL, aligned.
    Ok(unsafe { slice::from_raw_parts_mut(buffer, number) })
}
