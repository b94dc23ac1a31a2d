//! Where the launcher's socket is, as the environment says, and whether that is true.
//!
//! Variables outlive what they describe: a launcher within a launcher, or a program that a rank starts, inherits
//! `PMI_FD` without the descriptor. So it counts only if that is open, and a socket.

use std::os::fd::{BorrowedFd, RawFd};

use super::super::inherited::inherited;
use super::super::ticket::inode_of_socket;
use crate::error::{Error, Result};

/// A rank's place in the job of such a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Place {
    pub(super) descriptor: RawFd,
    pub(super) rank: usize,
    pub(super) size: usize,
}

impl Place {
    /// What the environment says; or why it does not count.
    ///
    /// # Errors
    /// If it contradicts itself.
    pub(in super::super) fn from_environment() -> Result<std::result::Result<Self, String>> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<std::result::Result<Self, String>> {
        let Some(text) = variable("PMI_FD") else { return Ok(Err("PMI_FD is not set".into())) };
        let open = text
            .parse()
            .ok()
            .filter(|descriptor| inherited(*descriptor).is_ok_and(|descriptor| inode_of_socket(descriptor).is_some()));
        let Some(descriptor) = open else {
            return Ok(Err(format!("PMI_FD={text} is stale: that is no open socket")));
        };
        let number = |name| variable(name).and_then(|text| text.trim().parse::<usize>().ok());
        match (number("PMI_RANK"), number("PMI_SIZE")) {
            (Some(rank), Some(size)) if rank < size => Ok(Ok(Self { descriptor, rank, size })),
            _ => {
                let shown = |name| variable(name).map_or("not set".into(), |text| format!("{text:?}"));
                Err(Error::Job(format!(
                    "PMI_FD={text} is the socket of a launcher, but PMI_RANK is {} and PMI_SIZE is {}: start the \
                     program with mpiexec or srun --mpi=pmi2, or say ARMCI_BOOTSTRAP=alone for a job of one",
                    shown("PMI_RANK"),
                    shown("PMI_SIZE")
                )))
            }
        }
    }

    /// The socket.
    ///
    /// # Errors
    /// If it has been closed since.
    pub(in super::super) fn socket(&self) -> Result<BorrowedFd<'static>> {
        inherited(self.descriptor).map_err(|errno| Error::system("fcntl on PMI_FD", errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    fn place(variables: &[(&str, &str)]) -> Result<std::result::Result<Place, String>> {
        Place::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn only_an_open_socket_counts() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let descriptor = ours.as_raw_fd();
        let good = place(&[("PMI_FD", &descriptor.to_string()), ("PMI_RANK", "2"), ("PMI_SIZE", "3")]);
        assert_eq!(good.unwrap(), Ok(Place { descriptor, rank: 2, size: 3 }));
        let file = std::fs::File::open("/dev/null").unwrap();
        for stale in ["", "x", "-1", "99999", &file.as_raw_fd().to_string()] {
            let why = place(&[("PMI_FD", stale), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]).unwrap().unwrap_err();
            assert!(why.contains("stale"), "{why}");
        }
        assert!(place(&[("PMI_RANK", "0")]).unwrap().unwrap_err().contains("not set"));
    }

    #[test]
    fn a_socket_without_a_rank_is_an_error_with_a_remedy() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let descriptor = ours.as_raw_fd().to_string();
        for (rank, size) in [("3", "3"), ("x", "3"), ("0", "")] {
            let error = place(&[("PMI_FD", &descriptor), ("PMI_RANK", rank), ("PMI_SIZE", size)]).unwrap_err();
            assert!(error.to_string().contains("srun --mpi=pmi2"), "{error}");
        }
    }
}
