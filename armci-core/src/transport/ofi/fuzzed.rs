//! The decoder of packets, as fuzzers call it: any bytes are taken apart, and whatever comes out of it is held against what
//! the rest of the code relies on.
//!
//! [`decode`] is what `armci-core/fuzz` feeds, and what the test below feeds with packets that were good until something
//! was done to them: a field that is another, a piece that is gone, doubled or of another packet.

use super::packet::{ADDRESS_MAX, Answer, BULK_BYTES, Reply, Request};
use crate::node::message::{INLINE_MAX, MAX_CONTEXTS, REQUEST_SLOTS, STAGING_BYTES};

/// The secret of the job whose packets these are, so that a fuzzer finds it in its first ones.
const SECRET: u64 = u64::from_le_bytes(*b"a secret");
/// Its ranks.
const RANKS: u32 = 7;

/// Takes a packet apart as a request, and as a reply; whether it was taken for either.
///
/// # Panics
/// If what was believed leaves the packet, or a bound that nobody looks at again.
#[must_use]
pub fn decode(packet: &[u8]) -> [bool; 2] {
    let request = Request::parse(packet, SECRET, RANKS);
    if let Ok(request) = &request {
        assert!(request.place.is_none_or(|place| (1..=BULK_BYTES).contains(&place.len)));
        let asker = request.asker;
        assert!(asker.rank < RANKS && usize::from(asker.context) < MAX_CONTEXTS);
        assert!(usize::from(asker.slot) < REQUEST_SLOTS);
        let (address, inline, payload) = (request.address, request.inline, request.payload);
        assert!(address.len() <= ADDRESS_MAX && inline.len() <= INLINE_MAX && payload.len() <= STAGING_BYTES);
        let bounds = packet.as_ptr_range();
        for piece in [address, inline, payload] {
            let piece = piece.as_ptr_range();
            assert!(bounds.start <= piece.start && piece.end <= bounds.end);
        }
        assert!(address.len() + inline.len() + payload.len() < packet.len(), "pieces do not overlap, nor the head");
    }
    let reply = Reply::parse(packet, SECRET, RANKS);
    if let Ok(reply) = &reply {
        assert!(reply.source < RANKS && usize::from(reply.slot) < REQUEST_SLOTS);
        if let Answer::Stored(len) = reply.answer {
            assert!(len <= BULK_BYTES);
        }
    }
    assert!(request.is_err() || reply.is_err(), "nothing is both");
    [request.is_ok(), reply.is_ok()]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::packet::{
        Asker, Errand, HEAD, PACKET_MAX, Place, Standing, Through, write_nothing, write_question, write_reply,
        write_request,
    };
    use super::*;
    use crate::node::message::Status;

    /// A few good packets: what mutations begin with.
    fn good() -> Vec<Vec<u8>> {
        let asker = Asker { rank: 3, context: 2, slot: 31, turn: 7 };
        let fetch = Place { errand: Errand::Fetch, through: Through::Line, address: 1 << 40, key: 77, len: BULK_BYTES };
        let store = Place { errand: Errand::Store, through: Through::Service, len: 1, ..fetch };
        let sizes = [
            (None, 0, 0, 0),
            (None, 16, 5, 0),
            (None, 28, 40, 100),
            (Some(fetch), 16, 40, 0),
            (Some(store), 16, 40, 0),
            (None, 64, INLINE_MAX, STAGING_BYTES),
        ];
        let standing = Standing { line: 1, number: 2 };
        let requests = sizes.map(|(place, address, inline, payload)| {
            let mut packet = vec![0x5a; PACKET_MAX];
            let inline = vec![1; inline];
            let front = write_request(
                &mut packet,
                SECRET,
                asker,
                standing,
                9,
                place.as_ref(),
                &vec![2; address],
                [&inline, &[]],
                payload,
            );
            packet.truncate(front + payload);
            packet
        });
        let replies = [(Status::Done, 0), (Status::Done, STAGING_BYTES), (Status::Refused, 30)].map(|(status, len)| {
            let mut packet = vec![0x5a; HEAD + len];
            write_reply(&mut packet, SECRET, 1, asker, status, len, false);
            packet
        });
        let mut stored = vec![0x5a; HEAD];
        write_reply(&mut stored, SECRET, 1, asker, Status::Done, BULK_BYTES, true);
        let mut question = vec![0x5a; PACKET_MAX];
        let len = write_question(&mut question, SECRET, asker, 1, &[2; 28]);
        question.truncate(len);
        let mut nothing = vec![0x5a; HEAD];
        write_nothing(&mut nothing, SECRET, 1, asker);
        requests.into_iter().chain(replies).chain([stored, question, nothing]).collect()
    }

    /// Numbers that are the same in each run (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % limit.max(1)
        }
    }

    /// Does something to a packet.
    fn mutate(random: &mut Random, packet: &mut Vec<u8>, other: &[u8]) {
        let len = packet.len();
        match random.below(8) {
            // A number of one, two, four or eight bytes at a place where one may be is another: near what it was, or one of
            // those at which something ends.
            0..4 => {
                let width = 1 << random.below(4);
                let at = random.below(HEAD / width) * width;
                let Some(field) = packet.get_mut(at..at + width) else { return };
                let mut word = [0; 8];
                word[..width].copy_from_slice(field);
                let before = u64::from_le_bytes(word);
                let edges = [0, 1, 31, 32, 64, 65, 255, 256, 8_192, 65_535, u64::MAX, u64::MAX >> 33];
                let after = match random.below(3) {
                    0 => before.wrapping_add(1),
                    1 => before.wrapping_sub(1),
                    _ => edges[random.below(edges.len())],
                };
                field.copy_from_slice(&after.to_le_bytes()[..width]);
            }
            4 => packet.truncate(random.below(len + 1)),
            5 => packet.extend_from_within(random.below(len)..),
            6 => {
                let at = random.below(len.min(other.len()));
                packet.truncate(at);
                packet.extend_from_slice(&other[at..]);
            }
            _ => {
                if let Some(byte) = packet.get_mut(random.below(len)) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }

    #[test]
    fn mutated_packets_are_taken_apart_or_refused() {
        let good = good();
        assert!(good.iter().all(|packet| decode(packet).contains(&true)));
        let (mut random, mut taken, mut refused) = (Random(0x9e37_79b9_7f4a_7c15), [0, 0], 0);
        for _ in 0..200_000 {
            let mut packet = good[random.below(good.len())].clone();
            for _ in 0..=random.below(3) {
                let other = random.below(good.len());
                mutate(&mut random, &mut packet, &good[other]);
            }
            let [request, reply] = decode(&packet);
            taken[0] += usize::from(request);
            taken[1] += usize::from(reply);
            refused += usize::from(!request && !reply);
        }
        // Both happen, so that it is the checks that are tried.
        assert!(taken.iter().all(|taken| *taken > 1_000) && refused > 10_000, "{taken:?} {refused}");
    }
}
