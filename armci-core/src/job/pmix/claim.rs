//! One process for each rank: a claim that other processes of the machine can see.
//!
//! A program that a rank starts inherits the `PMIX_` variables, and the server takes it for the rank: it would wait in the
//! first exchange for ranks that never come. So whoever joins binds a socket to a name made of job and rank, which
//! lasts as long as the process holds it, and lies in no file system. Whoever finds it bound asks the kernel by whom:
//! if that is an ancestor, the variables are the ancestor's, and this is a job of one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::super::descent::descends;
use crate::error::{Error, Result};

/// How many may ask whose a claim is: those who have asked stay in the queue, as nobody takes them out. The kernel allows
/// as many as its own limit.
const VISITS: i32 = 1 << 20;

/// A claim that was made.
#[derive(Debug)]
pub(super) enum Claim {
    /// It lasts as long as this is held.
    Ours(OwnedFd),
    /// This process descends from the one that stands for the rank.
    AncestorsOf(u32),
}

/// Claims a rank of a job.
///
/// # Errors
/// If another process of this user stands for it, and did not start this one.
pub(super) fn claim(namespace: &str, rank: &str) -> Result<Claim> {
    // Names have at most 107 bytes; what is unlike in those of jobs may stand at either end.
    let user = rustix::process::geteuid().as_raw();
    let job: String = if namespace.len() <= 60 { namespace.into() } else { shortened(namespace) };
    let system = |call| move |errno| Error::system(call, errno);
    let address = SocketAddrUnix::new_abstract_name(format!("armci-{user}-{job}-{rank}").as_bytes())
        .map_err(system("naming a socket"))?;
    let socket = || {
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(system("socket"))
    };
    let ours = socket()?;
    match rustix::net::bind(&ours, &address) {
        Ok(()) => {
            // Only who listens can be asked for; nobody is ever let in.
            rustix::net::listen(&ours, VISITS).map_err(system("listen"))?;
            return Ok(Claim::Ours(ours));
        }
        Err(Errno::ADDRINUSE) => {}
        Err(errno) => return Err(Error::system("bind", errno)),
    }
    let visit = socket()?;
    rustix::io::ioctl_fionbio(&visit, true).map_err(system("ioctl(FIONBIO)"))?;
    match rustix::net::connect(&visit, &address) {
        Ok(()) => {}
        // Who it is cannot be known, but somebody is there: to join would be to wait for ranks that never come.
        Err(Errno::AGAIN) => {
            return Err(Error::Job(format!(
                "another process stands for rank {rank} already, and too many have asked which: say \
                 ARMCI_BOOTSTRAP=alone for a job of one beside it"
            )));
        }
        // It is gone again, or not ours to ask: no reason not to join.
        Err(_) => return Ok(Claim::Ours(ours)),
    }
    let holder = socket_peercred(&visit).map_err(system("getsockopt(SO_PEERCRED)"))?;
    if holder.uid.as_raw() != user {
        // Anybody may take any name; only ours counts.
        return Ok(Claim::Ours(ours));
    }
    let process = holder.pid.as_raw_nonzero().get();
    if descends(std::process::id() as i32, process) {
        return Ok(Claim::AncestorsOf(process as u32));
    }
    Err(Error::Job(format!(
        "process {process} stands for rank {rank} already: a rank is one process, and initializes once; say \
         ARMCI_BOOTSTRAP=alone for a job of one beside it"
    )))
}

/// The ends of a name.
fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().filter(char::is_ascii).collect();
    let (head, tail) = (letters.iter().take(30), letters.iter().skip(letters.len().max(60) - 30));
    head.chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_lasts_as_long_as_it_is_held() {
        let job = format!("test-{}", std::process::id());
        let first = claim(&job, "0").unwrap();
        assert!(matches!(first, Claim::Ours(_)));
        // This process counts as its own ancestor here.
        assert!(matches!(claim(&job, "0").unwrap(), Claim::AncestorsOf(holder) if holder == std::process::id()));
        assert!(matches!(claim(&job, "1").unwrap(), Claim::Ours(_)));
        // However many programs it starts.
        for _ in 0..100 {
            assert!(matches!(claim(&job, "0").unwrap(), Claim::AncestorsOf(_)));
        }
        drop(first);
        assert!(matches!(claim(&job, "0").unwrap(), Claim::Ours(_)));
    }

    #[test]
    fn long_names_are_cut() {
        let job = "x".repeat(255);
        assert!(matches!(claim(&format!("{}-{job}", std::process::id()), "99999").unwrap(), Claim::Ours(_)));
    }
}
