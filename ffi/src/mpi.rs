//! The MPI that the program is linked with, if it is, found at run time.
//!
//! What is asked of it is little: whether it has begun, whether its ranks are numbered as ours are, and communicators
//! for groups. Two families of handles are known: pointers (Open MPI, told by a symbol that it alone has) and `int`s
//! (MPICH and what has its ABI, told by how it names itself). Any other is used for nothing, with a message.
//!
//! # Safety
//! MPI-ABI: a function found under a name of MPI's has MPI's parameters. Handles are passed and returned as
//! machine words: on the 64-bit processors this runs on, an `int` argument is read from the low half of its register,
//! and an `int` is stored into the low half of a word that was 0, their byte order being little-endian.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::sync::OnceLock;

use armci_core::{Error, Result};

const _: () = assert!(cfg!(target_endian = "little") && size_of::<usize>() == 8, "MPI-ABI");

/// An MPI handle by value, of whichever width.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MPI_Comm(pub(crate) usize);
crate::abi::spelled! { MPI_Comm = "MPI_Comm" }

/// How wide a handle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handles {
    /// A pointer: Open MPI's, and what `armci.h` has with `ARMCI_NO_MPI`.
    Pointers,
    /// An `int`: MPICH's.
    Ints,
}

/// What of MPI is called.
#[derive(Debug)]
pub(crate) struct Mpi {
    handles: Handles,
    world: MPI_Comm,
    null: MPI_Comm,
    initialized: unsafe extern "C" fn(*mut c_int) -> c_int,
    finalized: unsafe extern "C" fn(*mut c_int) -> c_int,
    comm_rank: unsafe extern "C" fn(MPI_Comm, *mut c_int) -> c_int,
    comm_size: unsafe extern "C" fn(MPI_Comm, *mut c_int) -> c_int,
    comm_group: unsafe extern "C" fn(MPI_Comm, *mut usize) -> c_int,
    group_incl: unsafe extern "C" fn(usize, c_int, *const c_int, *mut usize) -> c_int,
    group_compare: unsafe extern "C" fn(usize, usize, *mut c_int) -> c_int,
    group_free: unsafe extern "C" fn(*mut usize) -> c_int,
    comm_create_group: unsafe extern "C" fn(MPI_Comm, usize, c_int, *mut MPI_Comm) -> c_int,
    comm_free: unsafe extern "C" fn(*mut MPI_Comm) -> c_int,
}

/// What `MPI_Group_compare` finds of groups with the same ranks in the same order.
const SAME: c_int = 0;
/// The tag under which communicators of groups are made.
const TAG: c_int = 27;

/// A symbol of the program or of what it is linked with.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: any name may be asked for.
    let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

/// The function under this name, of the type that it is asked for as.
///
/// # Safety
/// MPI-ABI: `F` is a pointer to a function with the parameters that MPI gives it.
unsafe fn function<F>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
    // SAFETY: MPI-ABI.
    symbol(name).map(|at| unsafe { transmute_copy(&at) })
}

/// The program's MPI; none if it has none that is known.
pub(crate) fn mpi() -> Option<&'static Mpi> {
    static FOUND: OnceLock<Option<Mpi>> = OnceLock::new();
    FOUND.get_or_init(Mpi::find).as_ref()
}

/// How wide the handles in an `ARMCI_Group` are.
pub(crate) fn handles() -> Handles {
    mpi().map_or(Handles::Pointers, |mpi| mpi.handles)
}

impl Mpi {
    fn find() -> Option<Self> {
        let (handles, world, null) = match (symbol(c"ompi_mpi_comm_world"), symbol(c"ompi_mpi_comm_null")) {
            // The handle is the object's address.
            (Some(world), Some(null)) => (Handles::Pointers, world as usize, null as usize),
            _ => Self::is_mpich()?.then_some((Handles::Ints, 0x4400_0000, 0x0400_0000))?,
        };
        // SAFETY: MPI-ABI: the types are those of the fields.
        unsafe {
            Some(Mpi {
                handles,
                world: MPI_Comm(world),
                null: MPI_Comm(null),
                initialized: function(c"MPI_Initialized")?,
                finalized: function(c"MPI_Finalized")?,
                comm_rank: function(c"MPI_Comm_rank")?,
                comm_size: function(c"MPI_Comm_size")?,
                comm_group: function(c"MPI_Comm_group")?,
                group_incl: function(c"MPI_Group_incl")?,
                group_compare: function(c"MPI_Group_compare")?,
                group_free: function(c"MPI_Group_free")?,
                comm_create_group: function(c"MPI_Comm_create_group")?,
                comm_free: function(c"MPI_Comm_free")?,
            })
        }
    }

    /// Whether there is an MPI that names itself as one of MPICH's ABI; none without any MPI.
    fn is_mpich() -> Option<bool> {
        /// More than `MPI_MAX_LIBRARY_VERSION_STRING` of any MPI.
        const ROOM: usize = 64 << 10;
        // SAFETY: MPI-ABI.
        let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
            unsafe { function(c"MPI_Get_library_version")? };
        let mut text = vec![0u8; ROOM];
        let mut length = 0;
        // SAFETY: MPI-ABI; may be called before MPI_Init; the buffer is longer than what is written.
        unsafe { version(text.as_mut_ptr().cast(), &mut length) };
        let text = String::from_utf8_lossy(&text[..usize::try_from(length).unwrap_or(0).min(ROOM)]);
        Some(["MPICH", "MVAPICH", "Intel(R) MPI", "CRAY MPI"].iter().any(|name| text.contains(name)))
    }

    /// What stands for all ranks.
    pub(crate) fn world(&self) -> MPI_Comm {
        self.world
    }

    /// What stands for no communicator.
    pub(crate) fn null(&self) -> MPI_Comm {
        self.null
    }

    /// The handle that was passed by value.
    pub(crate) fn passed(&self, comm: MPI_Comm) -> MPI_Comm {
        match self.handles {
            Handles::Pointers => comm,
            Handles::Ints => MPI_Comm(comm.0 as u32 as usize),
        }
    }

    /// Whether communicators can be asked for things now.
    pub(crate) fn is_running(&self) -> bool {
        let mut begun = 0;
        // SAFETY: MPI-ABI; may be called at any time.
        unsafe { (self.initialized)(&mut begun) };
        begun != 0 && !self.has_ended()
    }

    /// Whether all ranks have met in `MPI_Finalize`.
    pub(crate) fn has_ended(&self) -> bool {
        let mut ended = 0;
        // SAFETY: MPI-ABI; may be called at any time.
        unsafe { (self.finalized)(&mut ended) };
        ended != 0
    }

    /// Refuses a communicator that does not number this process as `rank` of `size`. MPI must be running.
    pub(crate) fn check(&self, comm: MPI_Comm, rank: usize, size: usize) -> Result<()> {
        let (its_rank, its_size) = self.place(comm)?;
        if (its_rank, its_size) == (rank as c_int, size as c_int) {
            return Ok(());
        }
        Err(Error::Job(format!(
            "for MPI this is rank {its_rank} of {its_size}, and for ARMCI rank {rank} of {size}: both must be started as \
             one job, by one launcher, and with the same ranks"
        )))
    }

    /// Refuses a communicator that has not all ranks of MPI's world, in its order. The groups are compared, not this
    /// process's numbers in them: where others are out of order its own may be right, and all are to find the same.
    /// MPI must be running.
    pub(crate) fn check_order(&self, comm: MPI_Comm) -> Result<()> {
        if comm == self.null || comm.0 == 0 {
            return Err(Error::Job("the communicator is MPI_COMM_NULL, of no ranks".into()));
        }
        let (mut all, mut its, mut found) = (0, 0, -1);
        // SAFETY: MPI-ABI; the groups were just made.
        unsafe {
            succeeded("MPI_Comm_group", (self.comm_group)(self.world, &mut all))?;
            let grouped = (self.comm_group)(comm, &mut its);
            let compared = if grouped == 0 { (self.group_compare)(all, its, &mut found) } else { 0 };
            (self.group_free)(&mut all);
            succeeded("MPI_Comm_group", grouped)?;
            (self.group_free)(&mut its);
            succeeded("MPI_Group_compare", compared)?;
        }
        if found == SAME {
            return Ok(());
        }
        let ((rank, size), (of_all, number)) = (self.place(comm)?, self.place(self.world)?);
        Err(Error::Job(format!(
            "the communicator, where this is rank {rank} of {size}, has not all ranks of MPI_COMM_WORLD in its order, where \
             this is rank {of_all} of {number}: pass MPI_COMM_WORLD or a duplicate of it, and make groups of other orders \
             with ARMCI_Group_create"
        )))
    }

    /// This process's rank in a communicator, and the communicator's size.
    fn place(&self, comm: MPI_Comm) -> Result<(c_int, c_int)> {
        let (mut rank, mut size) = (-1, -1);
        // SAFETY: MPI-ABI.
        unsafe {
            succeeded("MPI_Comm_rank", (self.comm_rank)(comm, &mut rank))?;
            succeeded("MPI_Comm_size", (self.comm_size)(comm, &mut size))?;
        }
        Ok((rank, size))
    }

    /// A communicator of these ranks of `parent`. Collective over them, and only them. MPI must be running.
    pub(crate) fn create(&self, parent: MPI_Comm, ranks: &[c_int]) -> Result<MPI_Comm> {
        let (mut all, mut some, mut comm) = (0, 0, MPI_Comm(0));
        // SAFETY: MPI-ABI; the groups were just made.
        unsafe {
            succeeded("MPI_Comm_group", (self.comm_group)(parent, &mut all))?;
            let included = (self.group_incl)(all, ranks.len() as c_int, ranks.as_ptr(), &mut some);
            (self.group_free)(&mut all);
            succeeded("MPI_Group_incl", included)?;
            let created = (self.comm_create_group)(parent, some, TAG, &mut comm);
            (self.group_free)(&mut some);
            succeeded("MPI_Comm_create_group", created)?;
        }
        Ok(comm)
    }

    /// Frees what [`Mpi::create`] made. Collective over its ranks. Once MPI has ended there is nothing to free.
    pub(crate) fn free(&self, mut comm: MPI_Comm) -> Result<()> {
        if !self.is_running() || comm == self.null {
            return Ok(());
        }
        // SAFETY: MPI-ABI.
        succeeded("MPI_Comm_free", unsafe { (self.comm_free)(&mut comm) })
    }
}

/// What a function of MPI returned.
fn succeeded(name: &str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Job(format!("{name} failed with code {code}"))) }
}
