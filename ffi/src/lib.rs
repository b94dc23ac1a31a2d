//! ARMCI's C interface.
//!
//! A C program includes `armci.h`, links `-larmci`, and is started with `armci-run -n 4 ./program` (or alone, as a
//! job of one). Names and signatures are ARMCI's; the values of constants and the layout of `armci_giov_t`, in which
//! ARMCIs differ, are ARMCI-MPI's. The semantics of each function stand in `ffi/include/armci.h`, which declares
//! exactly what this library has.
//!
//! ```text
//!   C program         ARMCI_Put(src, dst, bytes, proc)
//!                          |
//!   entry             no panic leaves; an error becomes one line on stderr and a code, or the end of the job
//!   member            the one World of this process, and what ARMCI_Malloc has allocated
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
//! # What is not there yet
//! - non-blocking calls: `ARMCI_NbPut` and its kin, `ARMCI_Wait`, `ARMCI_Test`, handles
//! - mutexes: `ARMCI_Create_mutexes`, `ARMCI_Lock`, `ARMCI_Unlock`
//! - groups: `ARMCI_Group_create` and its kin, `ARMCI_Malloc_group`, collectives of groups
//! - send and receive: `armci_msg_snd`, `armci_msg_rcv`
//! - `ARMCI_Malloc_local`, `ARMCI_Free_local`: any memory will do as a local buffer, so `malloc` does
//! - the names for profilers, `PARMCI_Put` and so on
//!
//! # Threads
//! A rank communicates from the thread that called `ARMCI_Init`; calls from others are errors.
//!
//! This crate is thin: it converts, calls, and converts back. It is the only one with process-global state.
#![allow(non_snake_case, non_camel_case_types)]

#[doc(hidden)]
pub mod abi;
mod arguments;
mod entry;
mod member;

pub mod life;
pub mod memory;
pub mod message;
pub mod one_sided;
pub mod rmw;
pub mod strided;
pub mod sync;
mod transfer;
pub mod value;
pub mod vector;
