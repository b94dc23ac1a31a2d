//! The first three words on a line between hosts, after which each end knows whom it speaks to.
//!
//! ```text
//!   called (a head)                       caller (an agent)
//!     Challenge: a number        ------->
//!                                <-------  Hello: a number, which host, which version, where; proof of all that
//!     Hello: proof               ------->  now what comes from here is believed
//! ```
//!
//! Guaranteed: neither side shows the secret, and a proof is worth nothing on another line.

use super::super::place::Place;
use super::super::wire::{Frame, Kind, Reader, Words};
use super::proof::{Nonce, Secret, Side};

/// Tells versions of armci-run apart, and of what the two ends say to each other.
pub(in super::super) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (hosts 1)");

/// What a caller says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Introduction {
    /// The number of its host, or node.
    pub(in super::super) host: usize,
    pub(in super::super) version: String,
    pub(in super::super) place: Place,
}

/// The first word, of who is called.
pub(super) fn challenge(number: Nonce) -> Vec<u8> {
    let mut words = Words::default();
    number.iter().for_each(|word| words.number(*word));
    Frame::encode(Kind::Challenge, &words.0)
}

/// The caller's word to a challenge: if that is one.
pub(super) fn introduce(secret: Secret, challenge: &Frame, number: Nonce, who: &Introduction) -> Option<Vec<u8>> {
    let called = challenged(challenge)?;
    let mut words = Words::default();
    number.iter().for_each(|word| words.number(*word));
    words.number(who.host as u64);
    words.bytes(who.version.as_bytes());
    words.bytes(bytemuck::bytes_of(&who.place));
    let proof = secret.proof(Side::Caller, called, number, &words.0);
    words.number(proof);
    Some(Frame::encode(Kind::Hello, &words.0))
}

/// What is learnt from it, and the own proof: if it is from a caller of this job.
pub(super) fn believe(secret: Secret, challenge: Nonce, hello: &Frame) -> Option<(Introduction, Vec<u8>)> {
    if hello.kind != Kind::Hello {
        return None;
    }
    let (about, proof) = hello.payload.split_last_chunk()?;
    let mut words = Reader(about);
    let number = [words.number()?, words.number()?];
    if secret.proof(Side::Caller, challenge, number, about) != u64::from_le_bytes(*proof) {
        return None;
    }
    let host = words.number()? as usize;
    let version = String::from_utf8_lossy(words.bytes()?).into_owned();
    // Of another version, this may be something else; then the version is what counts.
    let place = words.bytes().and_then(|bytes| bytemuck::try_pod_read_unaligned(bytes).ok());
    let place = place.unwrap_or(Place { machine: [0; 2], network: 0 });
    let proof = secret.proof(Side::Called, challenge, number, &[]);
    Some((Introduction { host, version, place }, Frame::encode(Kind::Hello, &proof.to_le_bytes())))
}

/// Whether the other end has shown that it is of this job, too.
pub(super) fn is_ours(secret: Secret, challenge: &Frame, number: Nonce, hello: &Frame) -> bool {
    let proof = challenged(challenge).map(|called| secret.proof(Side::Called, called, number, &[]));
    hello.kind == Kind::Hello && proof.is_some_and(|proof| hello.payload == proof.to_le_bytes())
}

fn challenged(challenge: &Frame) -> Option<Nonce> {
    let mut words = Reader(&challenge.payload);
    let number = [words.number()?, words.number()?];
    (challenge.kind == Kind::Challenge && words.0.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::super::wire::Frames;
    use super::*;

    fn frame(bytes: &[u8]) -> Frame {
        let mut frames = Frames::default();
        frames.push(bytes);
        frames.next().unwrap().unwrap()
    }

    fn who(version: &str) -> Introduction {
        Introduction { host: 3, version: version.into(), place: Place { machine: [7, 8], network: 9 } }
    }

    #[test]
    fn both_sides_believe_each_other_and_nobody_else() {
        let (secret, wrong) = (Secret([1, 2]), Secret([1, 3]));
        let challenge = frame(&challenge([10, 11]));
        let hello = frame(&introduce(secret, &challenge, [20, 21], &who("9")).unwrap());
        let (said, answer) = believe(secret, [10, 11], &hello).unwrap();
        assert_eq!(said, who("9"));
        let answer = frame(&answer);
        assert!(is_ours(secret, &challenge, [20, 21], &answer));

        assert!(believe(wrong, [10, 11], &hello).is_none());
        assert!(believe(secret, [10, 12], &hello).is_none(), "another line's challenge");
        assert!(!is_ours(wrong, &challenge, [20, 21], &answer));
        assert!(!is_ours(secret, &challenge, [20, 22], &answer), "another caller's proof");
        assert!(!is_ours(secret, &challenge, [20, 21], &hello), "our own word, sent back");
        assert!(introduce(secret, &hello, [20, 21], &who("9")).is_none(), "no challenge");
        let shown = [&hello.payload[..], &answer.payload].concat();
        assert!(!shown.windows(8).any(|bytes| bytes == 2u64.to_le_bytes()), "the secret was shown");
    }

    #[test]
    fn a_changed_word_is_not_believed() {
        let secret = Secret([1, 2]);
        let challenge = frame(&challenge([10, 11]));
        let hello = frame(&introduce(secret, &challenge, [20, 21], &who("9")).unwrap());
        for byte in 0..hello.payload.len() {
            let mut changed = Frame { kind: hello.kind, payload: hello.payload.clone() };
            changed.payload[byte] ^= 1;
            assert!(believe(secret, [10, 11], &changed).is_none(), "byte {byte}");
            changed.payload.truncate(byte);
            assert!(believe(secret, [10, 11], &changed).is_none(), "{byte} bytes");
        }
    }
}
