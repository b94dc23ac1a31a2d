//! Groups of ranks, as C holds them.
//!
//! An `ARMCI_Group` belongs to the caller and begins with two MPI communicators, whose width is the MPI's: pointers with
//! Open MPI, `int`s with MPICH. Programs read the first as an MPI_Comm, so it is one. The second is ours: it holds
//! the group's number and a mark. What else is written there are the arrays and numbers that the names of the fields
//! promise, and nothing lies past it.
//!
//! # Safety
//! C-GROUP: a group that is not NULL is an `ARMCI_Group` of the program's, as wide as its MPI makes it, readable, and
//! writable where the call fills it in. C-ARRAY: an array that is not NULL has as many elements as its length says.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::slice;

use armci_core::{Error, Result};

use crate::abi::{c_functions, spelled};
use crate::arguments::{count, present};
use crate::groups::{Group, NUMBERS};
use crate::member::{Primary, member, primary};
use crate::mpi::{Handles, MPI_Comm, handles, mpi};

/// A group, of a size that only the program knows.
#[repr(C)]
#[derive(Debug)]
pub struct ARMCI_Group {
    opaque: [u8; 0],
}
spelled! { ARMCI_Group = "ARMCI_Group" }

/// Where the fields of a group lie.
#[derive(Debug)]
pub struct GroupLayout {
    /// For handles of this width.
    pub handles: Handles,
    /// Of the whole.
    pub size: usize,
    comm: usize,
    ours: usize,
    to_world: usize,
    from_world: usize,
    rank: usize,
    count: usize,
}

impl GroupLayout {
    /// The fields by their names in C.
    pub fn fields(&self) -> [(&'static str, usize); 6] {
        [
            ("comm", self.comm),
            ("noncoll_pgroup_comm", self.ours),
            ("grp_to_abs", self.to_world),
            ("abs_to_grp", self.from_world),
            ("rank", self.rank),
            ("size", self.count),
        ]
    }
}

/// Both layouts.
pub const LAYOUTS: [GroupLayout; 2] = [
    GroupLayout {
        handles: Handles::Pointers,
        size: 40,
        comm: 0,
        ours: 8,
        to_world: 16,
        from_world: 24,
        rank: 32,
        count: 36,
    },
    GroupLayout {
        handles: Handles::Ints,
        size: 32,
        comm: 0,
        ours: 4,
        to_world: 8,
        from_world: 16,
        rank: 24,
        count: 28,
    },
];

/// Stands above a group's number in the field that is ours.
const MARK: u32 = 0xa7 << 24;
const _: () = assert!(NUMBERS <= 1 << 24);

c_functions! {
    /// Makes a group of these ranks of the default group. Collective over them; others may call it too.
    answer fn ARMCI_Group_create(grp_size: c_int, pid_list: *mut c_int, group_out: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-ARRAY, C-GROUP.
        unsafe { create(grp_size, pid_list, group_out, &primary.groups.default()) }
    };

    /// Makes a group of these ranks of another.
    answer fn ARMCI_Group_create_child(
        grp_size: c_int, pid_list: *mut c_int, group_out: *mut ARMCI_Group, group_parent: *mut ARMCI_Group
    ) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-ARRAY, C-GROUP.
        unsafe { create(grp_size, pid_list, group_out, &*known(primary, group_parent)?) }
    };

    /// Ends a group, and frees what is still allocated over it. Collective over its ranks.
    answer fn ARMCI_Group_free(group: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-GROUP.
        let freed = unsafe { known(primary, group)? };
        let ended = primary.groups.free(freed);
        // SAFETY: C-GROUP.
        unsafe { clear(group) };
        ended
    };

    /// This rank's number in a group, -1 if it is not of it; returns 0 or, then, something else.
    answer fn ARMCI_Group_rank(group: *mut ARMCI_Group, rank: *mut c_int) -> c_int = || {
        present(rank, "the place for the rank")?;
        // SAFETY: C-GROUP.
        let mine = unsafe { known(primary()?.1, group)? }.rank();
        // SAFETY: C-ARRAY.
        unsafe { rank.write(mine) };
        Ok((mine < 0).into())
    };

    /// How many ranks a group has.
    answer fn ARMCI_Group_size(group: *mut ARMCI_Group, size: *mut c_int) = || {
        present(size, "the place for the size")?;
        // SAFETY: C-GROUP, C-ARRAY.
        unsafe { size.write(known(primary()?.1, group)?.to_world.len() as c_int) };
        Ok(())
    };

    /// Makes a group the one whose ranks [`ARMCI_Group_create`] names.
    answer fn ARMCI_Group_set_default(group: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-GROUP.
        primary.groups.set_default(unsafe { known(primary, group)? });
        Ok(())
    };

    /// The group that was made the default; all ranks, at first.
    answer fn ARMCI_Group_get_default(group_out: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-GROUP.
        unsafe { fill(group_out, &primary.groups.default()) }
    };

    /// The group of all ranks.
    answer fn ARMCI_Group_get_world(group_out: *mut ARMCI_Group) = || {
        let (_, primary) = primary()?;
        // SAFETY: C-GROUP.
        unsafe { fill(group_out, primary.groups.world()) }
    };

    /// The rank among all of a rank of a group.
    answer fn ARMCI_Absolute_id(group: *mut ARMCI_Group, group_rank: c_int) -> c_int =
        // SAFETY: C-GROUP.
        || unsafe { known(primary()?.1, group)? }.world_rank(group_rank);

    /// Whether the ranks of a group reach each other through shared memory.
    answer fn ARMCI_Uses_shm_grp(group: *mut ARMCI_Group) -> c_int = || {
        let world = &member()?.world;
        // SAFETY: C-GROUP.
        let group = unsafe { known(primary()?.1, group)? };
        let mine = world.node_of(world.rank())?;
        let here = |rank: &c_int| world.node_of(*rank as usize).is_ok_and(|node| node == mine);
        Ok(group.to_world.iter().all(here).into())
    };

    /// The MPI communicator of a group's ranks.
    answer fn armci_group_comm(group: *mut ARMCI_Group) -> MPI_Comm = || {
        let Some(mpi) = mpi() else {
            return Err(Error::Job("this program is linked with no MPI that is known, so groups have no communicators".into()));
        };
        // SAFETY: C-GROUP.
        let group = unsafe { known(primary()?.1, group)? };
        group.comm.filter(|comm| group.rank() < 0 || *comm != mpi.null()).ok_or_else(|| {
            Error::Job("the group was created before MPI was initialised, so it has no communicator".into())
        })
    };
}

/// # Safety
/// C-ARRAY, C-GROUP.
unsafe fn create(size: c_int, ranks: *const c_int, out: *mut ARMCI_Group, parent: &Group) -> Result<()> {
    let (world, primary) = primary()?;
    let size = count(size, "the number of ranks")?;
    present(ranks, "the array of ranks")?;
    present(out, "the place for the group")?;
    // SAFETY: C-ARRAY, not NULL.
    let group = primary.groups.create(world, parent, unsafe { slice::from_raw_parts(ranks, size) })?;
    // SAFETY: C-GROUP.
    unsafe { fill(out, &group) }
}

fn layout() -> &'static GroupLayout {
    &LAYOUTS[usize::from(handles() == Handles::Ints)]
}

/// A field of a group, `offset` bytes from its begin.
///
/// # Safety
/// C-GROUP; there is such a field.
unsafe fn field<T>(group: *mut ARMCI_Group, offset: usize) -> *mut T {
    // SAFETY: C-GROUP.
    unsafe { group.cast::<u8>().add(offset).cast() }
}

/// Writes a machine word as wide as a handle.
///
/// # Safety
/// C-GROUP; at `offset` there is a communicator.
unsafe fn write_handle(group: *mut ARMCI_Group, offset: usize, value: usize) {
    // SAFETY: C-GROUP, of the width that the MPI has.
    unsafe {
        match handles() {
            Handles::Pointers => field::<usize>(group, offset).write_unaligned(value),
            Handles::Ints => field::<u32>(group, offset).write_unaligned(value as u32),
        }
    }
}

/// Writes a group down for C.
///
/// # Safety
/// C-GROUP.
unsafe fn fill(out: *mut ARMCI_Group, group: &Group) -> Result<()> {
    present(out, "the place for the group")?;
    let at = layout();
    let comm = group.comm.map_or(0, |comm| comm.0);
    // SAFETY: C-GROUP. C never writes through the arrays, which live as long as the group.
    unsafe {
        write_handle(out, at.comm, comm);
        write_handle(out, at.ours, (MARK | group.number) as usize);
        field::<*const c_int>(out, at.to_world).write_unaligned(group.to_world.as_ptr());
        field::<*const c_int>(out, at.from_world).write_unaligned(group.from_world.as_ptr());
        field::<c_int>(out, at.rank).write_unaligned(group.rank());
        field::<c_int>(out, at.count).write_unaligned(if group.rank() < 0 { 0 } else { group.to_world.len() as c_int });
    }
    Ok(())
}

/// Makes a group that is gone recognisable as such.
///
/// # Safety
/// C-GROUP.
unsafe fn clear(group: *mut ARMCI_Group) {
    let at = layout();
    let null = mpi().map_or(0, |mpi| mpi.null().0);
    // SAFETY: C-GROUP.
    unsafe {
        write_handle(group, at.comm, null);
        write_handle(group, at.ours, 0);
        field::<*mut c_void>(group, at.to_world).write_unaligned(std::ptr::null_mut());
        field::<*mut c_void>(group, at.from_world).write_unaligned(std::ptr::null_mut());
        field::<c_int>(group, at.rank).write_unaligned(-1);
        field::<c_int>(group, at.count).write_unaligned(0);
    }
}

/// The group that C means.
///
/// # Safety
/// C-GROUP.
pub(crate) unsafe fn known(primary: &Primary, group: *mut ARMCI_Group) -> Result<Rc<Group>> {
    present(group, "the group")?;
    let at = layout();
    // SAFETY: C-GROUP.
    let (ours, list) = unsafe {
        (field::<u32>(group, at.ours).read_unaligned(), field::<*const c_int>(group, at.to_world).read_unaligned())
    };
    let found = (ours & !(NUMBERS - 1) == MARK).then(|| primary.groups.get(ours & (NUMBERS - 1))).flatten();
    // The list, too: nobody else's memory happens to have both.
    found
        .filter(|found| found.to_world.as_ptr() == list)
        .ok_or_else(|| Error::Argument(format!("the group at {group:?} is none: it was never created, or was freed")))
}
