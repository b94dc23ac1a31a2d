//! Beyond the node: how the first members of several nodes, which lead, meet and exchange what their nodes have.
//!
//! # Protocol
//! *Exchange.* A dissemination in as many steps as the number of nodes has bits. In the step of distance `d` a leader
//! sends the blocks it has, its own first, to the leader `d` before it, and gets those of the leader `d` behind it; it
//! then has twice as many. A block is what one node has: nothing, if leaders only meet. Messages name the gathering, the
//! number of the exchange and the step, so one that comes early waits on its shelf (`am/parcels.rs`).
//!
//! *Sharing.* A leader shows its neighbours how much it has got, and then that, a buffer at a time, by rounds of theirs.
//!
//! *Split-phase barriers* must go on while everybody computes. The last member of a node to arrive announces its node to
//! all leaders; each one's progress thread counts announcements, per node, and writes into the neighbours' barrier how
//! many times all nodes have come.

use std::cell::Cell;
use std::sync::Arc;

use super::Members;
use super::neighbours::{self, Neighbours};
use crate::am::origin::Origin;
use crate::am::parcels::{Exchange, Parcels};
use crate::node::Node;
use crate::node::exchange::{BUFFER_BYTES, EXCHANGE_BYTES};

/// Bytes that say how long somebody's bytes are.
pub(super) const LENGTH: usize = size_of::<u32>();
const _: () = assert!(EXCHANGE_BYTES + LENGTH <= BUFFER_BYTES);

/// The nodes of a gathering, and this one among them.
#[derive(Debug)]
pub(super) struct Beyond {
    /// Tells the gathering from all others.
    key: u64,
    /// The leaders' ranks, and the members of their nodes, in order.
    nodes: Box<[(usize, Box<[usize]>)]>,
    /// This node's number among them.
    mine: usize,
    /// Exchanges so far, and split-phase barriers.
    exchanges: Cell<u64>,
    phases: Cell<u64>,
    members: usize,
}

/// What all members have shown, in one place.
#[derive(Debug)]
pub(crate) struct Shown {
    bytes: Vec<u8>,
    /// Where each member's bytes lie.
    places: Vec<(usize, usize)>,
}

impl Shown {
    /// Copies what a member has shown, from byte `from` on.
    pub(super) fn read(&self, member: usize, from: usize, to: &mut [u8]) {
        let (start, len) = self.places[member];
        let theirs = &self.bytes[start..start + len];
        // Ranks that break the round (by unequal calls) get what there is.
        let theirs = theirs.get(from..).unwrap_or_default();
        let common = theirs.len().min(to.len());
        to[..common].copy_from_slice(&theirs[..common]);
    }
}

impl Beyond {
    /// The nodes of `members`, of which this rank is number `me`.
    pub(super) fn new(node: &Arc<Node>, members: &Members, me: usize, key: u64) -> Self {
        let mut nodes: Vec<(usize, usize, Vec<usize>)> = Vec::new();
        let place = |member: usize| {
            let rank = members.get(member).unwrap_or(0);
            (rank, node.node_of(rank).unwrap_or(0))
        };
        for member in 0..members.len() {
            let (rank, of) = place(member);
            match nodes.iter_mut().rfind(|(_, number, _)| *number == of) {
                Some((_, _, theirs)) => theirs.push(member),
                None => nodes.push((rank, of, vec![member])),
            }
        }
        let of_me = place(me).1;
        let mine = nodes.iter().position(|(_, number, _)| *number == of_me).unwrap_or(0);
        let nodes = nodes.into_iter().map(|(leader, _, theirs)| (leader, theirs.into_boxed_slice())).collect();
        Beyond { key, nodes, mine, exchanges: Cell::new(0), phases: Cell::new(0), members: members.len() }
    }

    /// Counts what other nodes announce, in the neighbours' barrier.
    pub(super) fn open(&self, origin: &Origin, near: &Neighbours) {
        origin.parcels().open(self.key, self.nodes.len() - 1, near.bells());
    }

    /// Counts no more.
    pub(super) fn close(&self, origin: &Origin) {
        origin.parcels().close(self.key);
    }

    /// The number of the split-phase barrier that this rank has just begun.
    pub(super) fn next_phase(&self) -> u64 {
        self.phases.set(self.phases.get() + 1);
        self.phases.get()
    }

    /// Tells all leaders that this node has arrived at a split-phase barrier.
    pub(super) fn announce(&self, origin: &Origin) {
        for (node, (leader, _)) in self.nodes.iter().enumerate() {
            if node != self.mine {
                Parcels::announce(origin, *leader, self.key, self.mine as u64);
            }
        }
    }

    /// Exchanges this node's block for those of all nodes, of which the first is its own and the others follow in
    /// order.
    pub(super) fn exchange(&self, origin: &Origin, mine: Vec<u8>) -> Vec<Vec<u8>> {
        let number = self.exchanges.replace(self.exchanges.get() + 1);
        let count = self.nodes.len();
        // What a block may have at most: everybody's buffer.
        let limit = self.members * (EXCHANGE_BYTES + LENGTH) + count * LENGTH;
        let mut blocks = vec![mine];
        let mut distance = 1;
        while distance < count {
            let exchange = Exchange { key: self.key, number, step: distance as u64 };
            let [before, behind] = [self.mine + count - distance, self.mine + distance].map(|node| node % count);
            let some = &blocks[..distance.min(count - distance)];
            let packed: Vec<u8> = some
                .iter()
                .flat_map(|block| (block.len() as u32).to_ne_bytes().into_iter().chain(block.iter().copied()))
                .collect();
            Parcels::send(origin, self.nodes[before].0, exchange, &packed);
            let got = origin.receive_parcel(self.nodes[behind].0, exchange, limit);
            blocks.extend(unpack(&got));
            distance *= 2;
        }
        debug_assert_eq!(blocks.len(), count);
        blocks
    }

    /// Exchanges what the neighbours have shown for what all members have: lengths in the order of members, then the
    /// bytes in that order.
    pub(super) fn gather(&self, origin: &Origin, round: &neighbours::Round<'_>) -> Vec<u8> {
        let mut block = Vec::new();
        for number in 0..self.nodes[self.mine].1.len() {
            let mut len = [0; LENGTH];
            round.read(number, 0, &mut len);
            let start = block.len();
            block.resize(start + LENGTH + u32::from_ne_bytes(len) as usize, 0);
            round.read(number, 0, &mut block[start..]);
        }
        let blocks = self.exchange(origin, block);
        let mut of_members: Vec<Vec<u8>> = vec![Vec::new(); self.members];
        for (distance, block) in blocks.into_iter().enumerate() {
            let (_, members) = &self.nodes[(self.mine + distance) % self.nodes.len()];
            for (member, theirs) in members.iter().zip(unpack(&block)) {
                of_members[*member] = theirs;
            }
        }
        let lengths = of_members.iter().flat_map(|bytes| (bytes.len() as u32).to_ne_bytes());
        lengths.chain(of_members.iter().flatten().copied()).collect()
    }

    /// Gives all neighbours what their leader has gathered.
    pub(super) fn share(&self, origin: &Origin, near: &Neighbours, gathered: Option<Vec<u8>>) -> Shown {
        let mine = gathered.as_deref().unwrap_or_default();
        let head = BUFFER_BYTES - size_of::<u64>();
        let first = [&(mine.len() as u64).to_ne_bytes(), &mine[..mine.len().min(head)]].concat();
        let mut bytes = if near.len() == 1 {
            gathered.unwrap_or_default()
        } else {
            let round = near.round(origin, if near.me() == 0 { &first } else { &[] });
            let mut len = [0; size_of::<u64>()];
            round.read(0, 0, &mut len);
            let len = u64::from_ne_bytes(len) as usize;
            let mut bytes = vec![0; len];
            let known = len.min(head);
            round.read(0, size_of::<u64>(), &mut bytes[..known]);
            for start in (known..len).step_by(BUFFER_BYTES) {
                let end = len.min(start + BUFFER_BYTES);
                let round = near.round(origin, mine.get(start..end).unwrap_or_default());
                round.read(0, 0, &mut bytes[start..end]);
            }
            bytes
        };
        let lengths = self.members * LENGTH;
        bytes.resize(bytes.len().max(lengths), 0);
        let mut start = lengths;
        let places = bytes[..lengths].as_chunks::<LENGTH>().0.iter().map(|len| {
            let len = u32::from_ne_bytes(*len) as usize;
            start += len;
            (start - len, len)
        });
        let places = places.collect();
        Shown { bytes, places }
    }
}

/// Bytes behind their lengths, apart; what contradicts itself ends there.
fn unpack(mut packed: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((len, rest)) = packed.split_first_chunk::<LENGTH>() {
        let Some((bytes, rest)) = rest.split_at_checked(u32::from_ne_bytes(*len) as usize) else { break };
        all.push(bytes.to_vec());
        packed = rest;
    }
    all
}
