//! ARMCI's C interface.
//!
//! A C program includes `armci.h` (with `-DARMCI_NO_MPI`, or compiled by `mpicc`), links `-larmci`, and is started with
//! `armci-run -n 4 ./program` (or alone, as a job of one), or beside an MPI with its launcher. Names and signatures are
//! ARMCI's; the values of constants and the layouts of types, in which ARMCIs differ, are ARMCI-MPI's. The semantics of each
//! function stand in `ffi/include/armci.h` and `message.h`, which declare exactly what this library has; how to install
//! and link it, and what differs from other ARMCIs, in `ffi/README.md`.
//!
//! ```text
//!   C program         ARMCI_Put(src, dst, bytes, proc)
//!                          |
//!   entry             no panic leaves; an error becomes one line on stderr and a code, or the end of the job
//!   member            this thread's World; groups, allocations, mutexes of the thread that joined
//!   arguments         int -> usize, (proc, address) -> GlobalPtr, each checked
//!                          |
//!   armci-core        World::put, ...
//! ```
//!
//! ```c
//! #include <armci.h>
//! #include <stdlib.h>
//!
//! int main(void) {
//!     if (ARMCI_Init() != 0) return 1;
//!     int me = armci_msg_me(), n = armci_msg_nproc();
//!     void **base = malloc(n * sizeof *base);
//!     if (ARMCI_Malloc(base, 100 * sizeof(double)) != 0) ARMCI_Error("no memory", 1);
//!     double here[2] = {1, 2}, scale = 0.5;
//!     ARMCI_Put(here, base[(me + 1) % n], sizeof here, (me + 1) % n);
//!     ARMCI_Barrier();
//!     ARMCI_Acc(ARMCI_ACC_DBL, &scale, here, base[(me + 1) % n], sizeof here, (me + 1) % n);
//!     ARMCI_Barrier(); /* now base[me] holds 1.5, 3 */
//!     ARMCI_Free(base[me]);
//!     return ARMCI_Finalize();
//! }
//! ```
//!
//! # Errors
//! A function that returns a code returns 0, or after one line on standard error, with the rank, the function and
//! the numbers, something else; then nothing was transferred. A function that has no way to say so ends the job instead, as `ARMCI_Error` does.
//! `ARMCI_Malloc` and `ARMCI_Free` fail on all ranks alike.
//!
//! # Threads
//! Without more, a rank communicates from the thread that called `ARMCI_Init`, and calls from others are errors. After
//! `ARMCI_Init_thread` with a level of at least `MPI_THREAD_SERIALIZED`, each other thread has a context of its own from
//! its first call on, until it ends; what is collective, mutexes and messages stay with the first. A fence completes
//! what the calling thread wrote.
//!
//! # MPI
//! None is linked. The one that the program is linked with, if it is, is found at run time, for the communicators in
//! `ARMCI_Group` and to check that its ranks are numbered as ours.
//!
//! This crate is thin: it converts, calls, and converts back. It is the only one with process-global state.
#![allow(non_snake_case, non_camel_case_types)]

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
pub mod catalogue;

mod aggregate;
mod allocations;
mod arguments;
mod entry;
mod groups;
mod here;
mod member;
mod transfer;

pub mod access;
pub mod collective;
pub mod contiguous;
pub mod domain;
pub mod gop;
pub mod group;
pub mod handle;
pub mod life;
pub mod local;
pub mod memory;
pub mod mpi;
pub mod mutex;
pub mod notify;
pub mod pack;
pub mod rmw;
pub mod select;
pub mod strided;
pub mod sync;
pub mod tagged;
pub mod value;
pub mod vector;
