//! What travels between nodes: the layout of a request and of its reply.
//!
//! ```text
//!   request   Head | the sender's address | arguments | payload        to the service endpoint of the target
//!   reply     Head | data, or the reason of a refusal                  to the endpoint of the context that asked
//! ```
//!
//! Nothing that came from a network is believed before it was looked at: [`Request::parse`] and [`Reply::parse`] take
//! any bytes and say what is wrong with them. A packet that does not show the job's secret is not of this job.

use bytemuck::{Pod, Zeroable};

use crate::node::message::{INLINE_MAX, MAX_CONTEXTS, REQUEST_SLOTS, STAGING_BYTES, Status};

/// Says what these bytes are, and in which version.
const MARK: u32 = u32::from_le_bytes(*b"AR\x00\x01");
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const REFUSAL: u8 = 3;

/// Bytes of an endpoint's address at most.
pub(crate) const ADDRESS_MAX: usize = 64;
/// Bytes of a packet at most: what providers take without a rendezvous.
pub(crate) const PACKET_MAX: usize = HEAD + ADDRESS_MAX + INLINE_MAX + STAGING_BYTES;
/// Bytes before a reply's data.
pub(crate) const HEAD: usize = size_of::<Head>();

const _: () = assert!(PACKET_MAX <= 16 << 10, "an eager message of most providers");

/// What every packet begins with.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct Head {
    mark: u32,
    kind: u8,
    /// Bytes of the sender's address.
    address: u8,
    /// Bytes of arguments.
    inline: u16,
    secret: u64,
    /// The rank that sends this.
    source: u32,
    /// Bytes of payload, or of the reply.
    payload: u32,
    /// The context and the request slot that wait for the reply.
    context: u16,
    slot: u16,
    handler: u16,
    /// Counts the uses of a slot, so that a reply that comes twice is known.
    turn: u16,
}

/// Who waits for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) rank: u32,
    pub(crate) context: u16,
    pub(crate) slot: u16,
    pub(crate) turn: u16,
}

/// A request, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) asker: Asker,
    pub(crate) handler: u16,
    /// Where the reply goes.
    pub(crate) address: &'a [u8],
    pub(crate) inline: &'a [u8],
    pub(crate) payload: &'a [u8],
}

/// A reply, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    pub(crate) source: u32,
    pub(crate) slot: u16,
    pub(crate) turn: u16,
    pub(crate) status: Status,
    pub(crate) data: &'a [u8],
}

/// Writes what of a request comes before its payload; says how many bytes that are.
pub(crate) fn write_request(
    to: &mut [u8],
    secret: u64,
    asker: Asker,
    handler: u16,
    address: &[u8],
    inline: [&[u8]; 2],
    payload: usize,
) -> usize {
    let inline_len = inline[0].len() + inline[1].len();
    assert!(address.len() <= ADDRESS_MAX && inline_len <= INLINE_MAX && payload <= STAGING_BYTES);
    let head = Head {
        mark: MARK,
        kind: REQUEST,
        address: address.len() as u8,
        inline: inline_len as u16,
        secret,
        source: asker.rank,
        payload: payload as u32,
        context: asker.context,
        slot: asker.slot,
        handler,
        turn: asker.turn,
    };
    let mut len = 0;
    for piece in [bytemuck::bytes_of(&head), address, inline[0], inline[1]] {
        to[len..len + piece.len()].copy_from_slice(piece);
        len += piece.len();
    }
    len
}

/// Writes what of a reply comes before its data: [`HEAD`] bytes.
pub(crate) fn write_reply(to: &mut [u8], secret: u64, me: u32, asker: Asker, status: Status, len: usize) {
    let head = Head {
        mark: MARK,
        kind: if status == Status::Done { REPLY } else { REFUSAL },
        address: 0,
        inline: 0,
        secret,
        source: me,
        payload: len as u32,
        context: asker.context,
        slot: asker.slot,
        handler: 0,
        turn: asker.turn,
    };
    to[..HEAD].copy_from_slice(bytemuck::bytes_of(&head));
}

/// The head of a packet of this job, and what follows it.
fn head(packet: &[u8], secret: u64, ranks: u32) -> Result<(Head, &[u8]), String> {
    let Some((head, rest)) = packet.split_at_checked(HEAD) else {
        return Err(format!("{} bytes are no packet", packet.len()));
    };
    let head: Head = bytemuck::pod_read_unaligned(head);
    if head.mark != MARK {
        return Err(format!("a packet is marked {:#x} and not {MARK:#x}: do all ranks run the same build?", head.mark));
    }
    if head.secret != secret {
        return Err("a packet does not know the job's secret".into());
    }
    if head.source >= ranks {
        return Err(format!("a packet says it came from rank {}, of {ranks}", head.source));
    }
    let told = [head.address.into(), head.inline.into(), head.payload as usize];
    if told[0] > ADDRESS_MAX
        || told[1] > INLINE_MAX
        || told[2] > STAGING_BYTES
        || rest.len() != told.iter().sum::<usize>()
    {
        let len = rest.len();
        return Err(format!("a packet of rank {} says it has {told:?} bytes, and has {len}", head.source));
    }
    Ok((head, rest))
}

impl<'a> Request<'a> {
    /// Takes a packet apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(packet: &'a [u8], secret: u64, ranks: u32) -> Result<Self, String> {
        let (head, rest) = head(packet, secret, ranks)?;
        if head.kind != REQUEST || usize::from(head.context) >= MAX_CONTEXTS || usize::from(head.slot) >= REQUEST_SLOTS
        {
            return Err(format!("{head:?} is no request"));
        }
        let (address, rest) = rest.split_at(head.address.into());
        let (inline, payload) = rest.split_at(head.inline.into());
        let asker = Asker { rank: head.source, context: head.context, slot: head.slot, turn: head.turn };
        Ok(Request { asker, handler: head.handler, address, inline, payload })
    }
}

impl<'a> Reply<'a> {
    /// Takes a packet apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(packet: &'a [u8], secret: u64, ranks: u32) -> Result<Self, String> {
        let (head, rest) = head(packet, secret, ranks)?;
        let status = match head.kind {
            REPLY => Status::Done,
            REFUSAL => Status::Refused,
            _ => return Err(format!("{head:?} is no reply")),
        };
        if head.address != 0 || head.inline != 0 || usize::from(head.slot) >= REQUEST_SLOTS {
            return Err(format!("{head:?} is no reply"));
        }
        Ok(Reply { source: head.source, slot: head.slot, turn: head.turn, status, data: rest })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: u64 = 0x1234_5678_9abc_def0;
    const ASKER: Asker = Asker { rank: 3, context: 2, slot: 31, turn: 7 };

    fn request(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; PACKET_MAX];
        let len = write_request(&mut packet, SECRET, ASKER, 9, b"address", [b"argu", b"ments"], payload.len());
        packet[len..len + payload.len()].copy_from_slice(payload);
        packet.truncate(len + payload.len());
        packet
    }

    #[test]
    fn what_was_written_is_read() {
        let packet = request(b"payload");
        let read = Request::parse(&packet, SECRET, 4).unwrap();
        let expected =
            Request { asker: ASKER, handler: 9, address: b"address", inline: b"arguments", payload: b"payload" };
        assert_eq!(read, expected);

        let mut packet = [0; HEAD + 4];
        write_reply(&mut packet, SECRET, 1, ASKER, Status::Refused, 4);
        packet[HEAD..].copy_from_slice(b"why!");
        let read = Reply::parse(&packet, SECRET, 4).unwrap();
        assert_eq!(read, Reply { source: 1, slot: 31, turn: 7, status: Status::Refused, data: b"why!" });
    }

    #[test]
    fn strangers_and_liars_are_refused() {
        let packet = request(b"payload");
        assert!(Request::parse(&packet, SECRET ^ 1, 4).unwrap_err().contains("secret"));
        assert!(Request::parse(&packet, SECRET, 3).unwrap_err().contains("rank 3"));
        assert!(Reply::parse(&packet, SECRET, 4).unwrap_err().contains("no reply"));
        for short in 0..packet.len() {
            assert!(Request::parse(&packet[..short], SECRET, 4).is_err(), "{short}");
        }
        let mut longer = packet.clone();
        longer.push(0);
        assert!(Request::parse(&longer, SECRET, 4).is_err());
    }

    proptest! {
        /// Whatever comes, it is taken apart within its bounds or refused; nothing panics.
        #[test]
        fn any_bytes_are_read_or_refused(
            at in 0..HEAD,
            byte in any::<u8>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..256),
            len in 0..400usize,
        ) {
            let _ = Request::parse(&bytes, SECRET, 4);
            let _ = Reply::parse(&bytes, SECRET, 4);
            // One byte of a good packet is another.
            let mut packet = request(&bytes);
            packet[at] = byte;
            packet.truncate(len);
            if let Ok(read) = Request::parse(&packet, SECRET, 4) {
                prop_assert!(read.asker.rank < 4 && usize::from(read.asker.slot) < REQUEST_SLOTS);
                prop_assert_eq!(HEAD + read.address.len() + read.inline.len() + read.payload.len(), packet.len());
            }
            let _ = Reply::parse(&packet, SECRET, 4);
        }
    }
}
