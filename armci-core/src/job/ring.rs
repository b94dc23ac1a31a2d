//! The connections by which nodes watch each other under launchers that are not ours: their first ranks in a ring.
//!
//! ```text
//!   node 0 ---> node 1 ---> node 2      each calls the next one, at all addresses that it has told
//!     ^                       |         through the launcher's store, and both prove the job's secret;
//!     +-----------------------+         two nodes have one connection
//! ```
//!
//! Guaranteed: what is established is so at both ends. Not guaranteed: that there is a connection. Where a firewall lets
//! nobody through, or hosts have no address, the job is as good as it was without; it goes on, and a line says what is not
//! watched.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;

use super::guard::Neighbour;
use super::host_name;
use super::network::addresses;
use super::network::door::{Caller, Door};
use super::network::greeting::{Introduction, VERSION};
use super::network::knock::knock;
use super::network::line::Line;
use super::network::proof::Secret;
use super::place::Place;
use super::wire::{Frame, Kind, Reader, Words};
use crate::error::{Error, Result};

/// How long a node may be silent: a switch that starts again, or a machine that stands still for a moment, is to end no job.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// How long goodbyes may take to be heard.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long each step at an address may take, in a first round and in a second.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// How long all may take.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// What the first rank of a node has before the others know of it.
pub(super) struct Opening {
    secret: Secret,
    node: usize,
    nodes: usize,
    door: Option<Door>,
    addresses: Vec<IpAddr>,
}

/// What it tells.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    rank: usize,
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Opening {
    /// Listens, if this node is called by another. `at_home`: all nodes are on one machine and network.
    pub(super) fn new(secret: Secret, node: usize, nodes: usize, at_home: bool) -> Self {
        let addresses = if at_home {
            vec![Ipv4Addr::LOCALHOST.into()]
        } else {
            // A host without any is not called; who would have called it says so.
            addresses::to_be_called_at(None).unwrap_or_default()
        };
        let is_called = (nodes > 2 || node == 1) && !addresses.is_empty();
        let door = if is_called { Door::open(&addresses, secret, SILENCE).ok() } else { None };
        Self { secret, node, nodes, door, addresses }
    }

    /// What the others are to know of this node.
    pub(super) fn tell(&self, rank: usize) -> Vec<u8> {
        let port = self.door.as_ref().map(Door::port);
        let addresses = self.addresses.iter().filter_map(|address| Some(SocketAddr::new(*address, port?))).collect();
        Told { rank, host: host_name(), addresses }.encode()
    }

    /// The nodes before and behind.
    pub(super) fn neighbours(&self) -> [usize; 2] {
        [(self.node + self.nodes - 1) % self.nodes, (self.node + 1) % self.nodes]
    }

    /// Connects, once all have told; what they have is that of [`Self::neighbours`]. It takes no longer than `limit`, or
    /// little. A line on standard error says what cannot be watched.
    ///
    /// # Errors
    /// If they have told something else.
    pub(super) fn connect(self, rank: usize, told: [Vec<u8>; 2], limit: Duration) -> Result<Vec<Neighbour>> {
        let read = |bytes: Vec<u8>| {
            Told::decode(&bytes).ok_or_else(|| Error::Job("a node has told what is none of its addresses".into()))
        };
        let [before, behind] = told;
        let (before, behind) = (read(before)?, read(behind)?);
        let Self { secret, node, nodes, door, .. } = self;
        let previous = (node + nodes - 1) % nodes;
        let until = Instant::now() + limit;
        let who = Introduction { host: node, version: VERSION.to_owned(), place: Place::mine()? };
        let (called, calls) = std::thread::scope(|scope| {
            // A program's signals go to the program's threads. Without a thread nobody is let in, and who calls says so.
            let blocked = progress_thread::block_all_but_faults();
            let waiter = || std::thread::Builder::new().name(format!("armci-ring-{rank}"));
            let called =
                door.and_then(|door| waiter().spawn_scoped(scope, move || be_called(door, previous, until)).ok());
            drop(blocked);
            let calls = (nodes > 2 || node == 0).then(|| call(&behind.addresses, secret, &who, until));
            // It panics nowhere; and if it did, nobody has called.
            (called.and_then(|thread| thread.join().ok().flatten()), calls)
        });
        let mut neighbours = Vec::new();
        match calls {
            Some(Ok(line)) => neighbours.push(behind.watched_by(line, false)),
            Some(Err(tried)) => {
                let line = format!(
                    "armci: rank {rank}: host {} (rank {}) cannot be reached to watch it, so that nobody may notice if it is \
                     lost: {tried}\n",
                    behind.host, behind.rank
                );
                // In one piece, as other ranks write too; without a reader nobody is to be told.
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            None => {}
        }
        neighbours.extend(called.map(|line| before.watched_by(line, nodes > 2)));
        Ok(neighbours)
    }
}

impl Told {
    fn encode(&self) -> Vec<u8> {
        let mut words = Words::default();
        words.number(self.rank as u64);
        words.bytes(self.host.as_bytes());
        for address in &self.addresses {
            words.bytes(address.to_string().as_bytes());
        }
        words.0
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = Reader(bytes);
        let rank = usize::try_from(words.number()?).ok()?;
        let host = String::from_utf8_lossy(words.bytes()?).into_owned();
        let mut addresses = Vec::new();
        while !words.0.is_empty() {
            addresses.push(std::str::from_utf8(words.bytes()?).ok()?.parse().ok()?);
        }
        Some(Self { rank, host, addresses })
    }

    fn watched_by(&self, line: Line, by_another_too: bool) -> Neighbour {
        Neighbour { line, rank: self.rank, host: Some(self.host.clone()), by_another_too }
    }
}

/// Calls the next node at one address after the other; an error is what became of that.
fn call(
    addresses: &[SocketAddr],
    secret: Secret,
    who: &Introduction,
    until: Instant,
) -> std::result::Result<Line, String> {
    let mut tried = vec!["it has told no address".to_owned()];
    for patience in PATIENCE.iter().filter(|_| !addresses.is_empty()) {
        tried.clear();
        for address in addresses {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match knock(*address, secret, who, SILENCE, left.min(*patience)) {
                Ok(Some(greeted)) => {
                    let mut line = greeted.into_line();
                    line.send(Frame::encode(Kind::Joined, &[]).into());
                    return Ok(line);
                }
                Ok(None) => tried.push(format!("{address} (it refuses)")),
                Err(error) => tried.push(format!("{address} ({error})")),
            }
        }
    }
    Err(tried.join(", "))
}

/// Waits for the node before this one. Who has called and been believed is taken only when it says that it has taken us:
/// it may have given up meanwhile, and call again.
fn be_called(mut door: Door, previous: usize, until: Instant) -> Option<Line> {
    let mut believed = Vec::new();
    let taken = be_taken(&mut door, &mut believed, previous, until);
    if taken.is_none() {
        // Who has taken us and not said so in time is not to take our leaving for a death.
        farewell(believed);
    }
    taken
}

fn be_taken(door: &mut Door, believed: &mut Vec<Line>, previous: usize, until: Instant) -> Option<Line> {
    loop {
        let strangers: Vec<_> = door.strangers().map(|(number, ..)| number).collect();
        let sockets = door.strangers().map(|(_, socket, _)| socket);
        let sockets = [door.listener()]
            .into_iter()
            .chain(sockets)
            .chain(believed.iter().filter_map(|line| Some(line.socket()?.0)));
        let mut polled: Vec<_> = sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)).collect();
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        retry_on_intr(|| rustix::event::poll(&mut polled, Timespec::try_from(left).ok().as_ref())).ok()?;
        door.answer().ok()?;
        for number in strangers {
            let caller =
                door.hear(number).filter(|caller| caller.who.host == previous && caller.who.version == VERSION);
            if let Some(Caller { mut line, welcome, .. }) = caller {
                line.send(welcome.into());
                believed.push(line);
            }
        }
        for line in believed.iter_mut() {
            line.receive();
        }
        if let Some(taken) =
            believed.iter_mut().position(|line| matches!(line.next(), Ok(Some(frame)) if frame.kind == Kind::Joined))
        {
            return Some(believed.swap_remove(taken));
        }
        believed.retain(|line| line.socket().is_some());
    }
}

/// Says goodbye, and waits until it is heard: a connection that is closed while something arrives takes with it what is
/// under way the other way.
pub(super) fn farewell(mut lines: Vec<Line>) {
    for line in &mut lines {
        line.send(Frame::encode(Kind::Goodbye, &[]).into());
        line.end();
    }
    let until = Instant::now() + LAST_WORDS;
    loop {
        let sockets = lines.iter().filter_map(|line| Some(line.socket()?.0));
        let mut polled: Vec<_> = sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)).collect();
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        if polled.is_empty() || !matches!(retry_on_intr(|| rustix::event::poll(&mut polled, left.as_ref())), Ok(1..)) {
            return;
        }
        // Whoever hears a goodbye closes its end.
        lines.iter_mut().for_each(Line::receive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret([1, 2]);

    /// What all nodes of a ring have for neighbours: the ranks, by node.
    fn ring(secrets: &[Secret], limit: Duration) -> Vec<Vec<(usize, bool)>> {
        let nodes = secrets.len();
        let openings: Vec<_> =
            secrets.iter().enumerate().map(|(node, secret)| Opening::new(*secret, node, nodes, true)).collect();
        let told: Vec<_> = openings.iter().enumerate().map(|(node, opening)| opening.tell(10 * node)).collect();
        std::thread::scope(|scope| {
            let connect = |opening: Opening| {
                let told = opening.neighbours().map(|node| told[node].clone());
                scope.spawn(move || opening.connect(0, told, limit).unwrap())
            };
            let threads: Vec<_> = openings.into_iter().map(connect).collect();
            let all: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            all.iter().map(|all| all.iter().map(|one| (one.rank, one.by_another_too)).collect()).collect()
        })
    }

    #[test]
    fn two_nodes_have_one_connection_and_more_have_a_ring() {
        assert_eq!(ring(&[SECRET; 2], LIMIT), [[(10, false)], [(0, false)]]);
        assert_eq!(
            ring(&[SECRET; 3], LIMIT),
            [[(10, false), (20, true)], [(20, false), (0, true)], [(0, false), (10, true)]]
        );
    }

    #[test]
    fn who_does_not_know_the_secret_is_no_neighbour() {
        assert_eq!(ring(&[SECRET, Secret([1, 3])], Duration::from_millis(500)), [[], []]);
    }

    #[test]
    fn what_is_told_round_trips() {
        let addresses = ["10.0.0.1:7", "[fd00::1]:8"].map(|address| address.parse().unwrap()).to_vec();
        let told = Told { rank: 3, host: "node7".into(), addresses };
        let bytes = told.encode();
        assert_eq!(Told::decode(&bytes), Some(told));
        assert_eq!(Told::decode(&bytes[..bytes.len() - 1]), None);
    }
}
