//! How the two ends of a line over the network show each other that they know the job's secret, without showing it.
//!
//! Each side sends a number that was never used before and gets it back in a keyed hash (SipHash-2-4, a pseudo-random
//! function of 128-bit keys), together with the other's number and what is to be agreed on. The secret itself travels by
//! the remote shell, or through the store of another launcher. What is proven is who is at the other end; the bytes that
//! follow are neither hidden nor sealed.

use crate::error::Result;

/// What both sides of a job know, and nobody else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Secret(pub(in super::super) [u64; 2]);

/// A number used once.
pub(super) type Nonce = [u64; 2];

/// Which side proves.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Called,
    Caller,
}

impl Secret {
    pub(in super::super) fn invent() -> Result<Self> {
        super::super::random().map(Self)
    }

    /// What a side answers: to both numbers, about these words.
    pub(super) fn proof(self, side: Side, called: Nonce, caller: Nonce, about: &[u8]) -> u64 {
        let mut message = match side {
            Side::Called => b"called  ".to_vec(),
            Side::Caller => b"caller  ".to_vec(),
        };
        for word in called.iter().chain(&caller) {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.extend_from_slice(about);
        sip_hash(self.0, &message)
    }
}

/// SipHash-2-4: two rounds a word, four at the end.
fn sip_hash(key: [u64; 2], message: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut take = |word: u64| {
        state[3] ^= word;
        (0..2).for_each(|_| round(&mut state));
        state[0] ^= word;
    };
    let mut words = message.chunks_exact(8);
    for word in &mut words {
        take(word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    let rest = words.remainder().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    take((message.len() as u64) << 56 | rest);
    state[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let message: Vec<u8> = (0..15).collect();
        // The example worked out in the paper that defines it.
        assert_eq!(sip_hash(key, &message), 0xa129_ca61_49be_45e5);
    }

    #[test]
    #[allow(deprecated, reason = "the standard library's is the same function")]
    fn and_the_standard_librarys() {
        use std::hash::{Hasher, SipHasher};
        for length in 0..40 {
            let message: Vec<u8> = (0..length).map(|byte: u8| byte.wrapping_mul(7)).collect();
            let mut theirs = SipHasher::new_with_keys(3, 5);
            theirs.write(&message);
            assert_eq!(sip_hash([3, 5], &message), theirs.finish(), "{length}");
        }
    }

    #[test]
    fn each_word_of_a_proof_counts() {
        let secret = Secret([1, 2]);
        let proofs = [
            secret.proof(Side::Caller, [3, 4], [5, 6], b"x"),
            secret.proof(Side::Called, [3, 4], [5, 6], b"x"),
            secret.proof(Side::Caller, [9, 4], [5, 6], b"x"),
            secret.proof(Side::Caller, [3, 4], [5, 9], b"x"),
            secret.proof(Side::Caller, [3, 4], [5, 6], b"y"),
            Secret([1, 9]).proof(Side::Caller, [3, 4], [5, 6], b"x"),
        ];
        for (index, proof) in proofs.iter().enumerate() {
            assert!(!proofs[..index].contains(proof), "{index}");
        }
    }
}
