//! Launchers that speak PMI-1: text over an inherited socket, as MPICH's Hydra and Slurm's pmi2 plugin do.
//!
//! ```text
//!   rank                                     launcher
//!   cmd=init pmi_version=1 ...        -->    cmd=response_to_init rc=0 ...
//!   cmd=get_maxes                     -->    cmd=maxes vallen_max=1024 ...
//!   cmd=get_my_kvsname                -->    cmd=my_kvsname kvsname=NAME
//!   cmd=put kvsname=NAME key=K value=V  ->   cmd=put_result rc=0
//!   cmd=barrier_in                    -->    cmd=barrier_out              (when all have said it)
//!   cmd=get kvsname=NAME key=K        -->    cmd=get_result rc=0 value=V
//!   cmd=abort exitcode=N              -->
//!   cmd=finalize                      -->    cmd=finalize_ack             (and the launcher hangs up)
//! ```
//!
//! An MPI in the same process uses the same socket. Hydra answers a second `init` like the first, whoever says it; each
//! answer is read to its last byte and no further; and of the two that could say `finalize`, which is heard only once,
//! the MPI is left to: it does so in `MPI_Finalize`, and hangs up. We look when the process exits whether somebody has,
//! and otherwise say it ourselves ([`leave`]).
//!
//! [`place`] finds the socket, [`wire`] is the language, [`client`] the key-value store made of it.

mod client;
mod leave;
mod place;
mod wire;

pub(super) use client::Client;
pub(super) use place::Place;
