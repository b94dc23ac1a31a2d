//! The environment variable `ARMCI_JOB`: what the launcher tells a rank before it can speak to it.
//!
//! ```text
//! ARMCI_JOB="4 fd=5 socket=48213 rank=2 size=4 local=0/2 node=1/2 here=2 secret=91f3... core=1,5 progress=5 shares=0 crowded=0"
//! ```
//!
//! `local` and `node` are a number and how many there are; `here` is how many of the nodes this machine plays.
//!
//! Guaranteed: a ticket that [`Ticket::from_environment`] returns names an open descriptor that is
//! the socket the launcher made for this rank, found by its inode number; nothing was written to
//! it. Variables outlive what they describe (a rank starts another program, which inherits the text
//! but not the close-on-exec socket); such a stale ticket reads as none.

use std::os::fd::RawFd;

use super::Identity;
use crate::error::{Error, Result};
use crate::topology::{Core, Seat};

/// The variable's name.
pub(super) const VARIABLE: &str = "ARMCI_JOB";
/// The first word of the text; another number is another language.
const FORMAT: &str = "4";

/// One rank's admission to its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// The inherited control socket.
    pub(super) descriptor: RawFd,
    /// The socket's inode number: what tells it from another descriptor of that number.
    pub(super) inode: u64,
    /// Where the rank stands in its job.
    pub(super) who: Identity,
    pub(super) secret: u64,
    /// The processors the launcher has tied this rank to, if it has.
    pub(super) core: Option<Core>,
    pub(super) seat: Seat,
}

impl Ticket {
    /// This process's ticket, if it has one that is not stale.
    ///
    /// # Errors
    /// If the variable is set but is not a text of ours, or of another version.
    pub(super) fn from_environment() -> Result<Option<Self>> {
        let Some(text) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let ticket = text.to_str().and_then(Self::parse).ok_or_else(|| {
            Error::Job(format!(
                "{VARIABLE} is set to {text:?}, which this library cannot read; use the armci-run of the same version, or unset it"
            ))
        })?;
        if ticket.is_live() {
            return Ok(Some(ticket));
        }
        tracing::warn!(
            descriptor = ticket.descriptor,
            "{VARIABLE} is stale: its socket is not open here; running as a job of one (a wrapper that closes descriptors must pass it on)"
        );
        Ok(None)
    }

    /// The variable's value.
    pub(super) fn to_text(&self) -> String {
        let core = self.core.as_ref().map(|core| core.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        format!(
            "{FORMAT} fd={} socket={} rank={} size={} local={}/{} node={}/{} here={} secret={:016x} core={} progress={} \
             shares={} crowded={}",
            self.descriptor,
            self.inode,
            self.who.rank,
            self.who.size,
            self.who.local_rank,
            self.who.local_size,
            self.who.node,
            self.who.nodes,
            self.who.nodes_here,
            self.secret,
            or_none(core),
            or_none(self.seat.progress_cpu.map(|cpu| cpu.to_string())),
            u8::from(self.seat.shares),
            u8::from(self.seat.crowded),
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next()? != FORMAT {
            return None;
        }
        let mut field = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        let descriptor = field("fd")?.parse().ok()?;
        let inode = field("socket")?.parse().ok()?;
        let (rank, size) = (field("rank")?.parse().ok()?, field("size")?.parse().ok()?);
        let (local_rank, local_size) = one_of(field("local")?)?;
        let (node, nodes) = one_of(field("node")?)?;
        let nodes_here = field("here")?.parse().ok()?;
        let ticket = Self {
            descriptor,
            inode,
            who: Identity { rank, size, local_rank, local_size, nodes, node, nodes_here },
            secret: u64::from_str_radix(field("secret")?, 16).ok()?,
            core: optional(field("core")?, |list| list.split(',').map(|cpu| cpu.parse().ok()).collect())?,
            seat: Seat {
                progress_cpu: optional(field("progress")?, |cpu| cpu.parse().ok())?,
                shares: field("shares")? == "1",
                crowded: field("crowded")? == "1",
            },
        };
        let possible = rank < size && local_size <= size && nodes <= size && (1..=nodes).contains(&nodes_here);
        let possible = possible && ticket.descriptor >= 0;
        (words.next().is_none() && possible).then_some(ticket)
    }

    /// Whether the descriptor is open and still the socket that was meant.
    fn is_live(&self) -> bool {
        super::inherited::inherited(self.descriptor).is_ok_and(|socket| inode_of_socket(socket) == Some(self.inode))
    }
}

/// A number out of so many, as `2/4`.
fn one_of(text: &str) -> Option<(usize, usize)> {
    let (number, many) = text.split_once('/')?;
    let (number, many) = (number.parse().ok()?, many.parse().ok()?);
    (number < many).then_some((number, many))
}

/// What `parse` makes of the text, or `-` for none; the outer option is whether it was either.
fn optional<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == "-" { Some(None) } else { parse(text).map(Some) }
}

/// The inode number of an open descriptor that is a socket.
pub(super) fn inode_of_socket<Fd: std::os::fd::AsFd>(socket: Fd) -> Option<u64> {
    let stat = rustix::fs::fstat(socket).ok()?;
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_socket().then_some(stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let seat = Seat { progress_cpu: None, shares: true, crowded: false };
        let who = Identity { rank: 2, size: 4, local_rank: 0, local_size: 2, nodes: 3, node: 1, nodes_here: 2 };
        Ticket { descriptor: 5, inode: 77, who, secret: 0xfeed, core: Some(vec![3, 7]), seat }
    }

    #[test]
    fn text_round_trips() {
        assert_eq!(Ticket::parse(&ticket().to_text()), Some(ticket()));
        let seat = Seat { progress_cpu: Some(5), shares: false, crowded: true };
        let unbound = Ticket { core: None, seat, ..ticket() };
        assert_eq!(Ticket::parse(&unbound.to_text()), Some(unbound));
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let good = ticket().to_text();
        for bad in [
            "",
            "1",
            "3 fd=5",
            "4 fd=5",
            "rank=1",
            &format!("{good} more=1"),
            &good.replace("rank=2", "rank=4"),
            &good.replace("local=0/2", "local=2/2"),
            &good.replace("local=0/2", "local=0/5"),
            &good.replace("node=1/3", "node=0/0"),
            &good.replace("node=1/3", "node=1/5"),
            &good.replace("here=2", "here=0"),
            &good.replace("here=2", "here=4"),
            &good.replace("fd=5", "fd=-5"),
            &good.replace("core=3,7", "core=3,,7"),
        ] {
            assert_eq!(Ticket::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_closed_or_different_descriptor_is_stale() {
        assert!(!Ticket { descriptor: 1000, ..ticket() }.is_live());
        assert!(!Ticket { descriptor: 0, ..ticket() }.is_live());
    }
}
