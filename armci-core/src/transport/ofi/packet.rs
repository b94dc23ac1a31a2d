//! What travels between nodes: the layout of a request and of its reply.
//!
//! ```text
//!   request   Head | Place? | the sender's address | arguments | payload     to the service endpoint of the target
//!   reply     Head | data, or the reason of a refusal                        to the endpoint of the context that asked
//!   question  Head | the sender's address                                    as a request
//!   nothing   Head                                                           as a reply
//! ```
//!
//! A request with a [`Place`] has its payload there, in the memory of whoever asks, or wants its reply there. The reply
//! to the latter is a head that says how much was written. A question is whether anything of who asks is there (see `doubts.rs`).
//!
//! Nothing that came from a network is believed before it was looked at: [`Request::parse`] and [`Reply::parse`] take
//! any bytes and say what is wrong with them. A packet that does not show the job's secret is not of this job.

use bytemuck::{Pod, Zeroable};

use crate::node::message::{INLINE_MAX, MAX_CONTEXTS, REQUEST_SLOTS, STAGING_BYTES, Status};

/// Says what these bytes are, and in which version.
const MARK: u32 = u32::from_le_bytes(*b"AR\x00\x04");
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const REFUSAL: u8 = 3;
/// A request with a place.
const PLACED: u8 = 4;
/// A reply that lies where the request said.
const STORED: u8 = 5;
/// Whether anything of who asks is here.
const QUESTION: u8 = 6;
/// Nothing is.
const NOTHING: u8 = 7;

/// Bytes of an endpoint's address at most.
pub(crate) const ADDRESS_MAX: usize = 64;
/// Bytes of a packet at most: what most providers take without a rendezvous.
pub(crate) const PACKET_MAX: usize = HEAD + PLACE + ADDRESS_MAX + INLINE_MAX + STAGING_BYTES;
/// Bytes before a reply's data.
pub(crate) const HEAD: usize = size_of::<Head>();
/// Bytes of a request's place.
pub(crate) const PLACE: usize = size_of::<PlaceWords>();
/// Bytes that lie at a place at most: what is fetched, or stored, in one go. Packing, fetching and serving overlap by as
/// much, and what is fetched is to be in the cache still when it is served; but each piece costs both sides some 15 us of
/// their processors. (1 MiB over TCP on loopback, in pieces of 256 KiB, 512 KiB and all at once: accumulate 219, 155 and 320 us;
/// rows of 64 bytes got 232, 185 and 422. A first piece that is smaller gains nothing.)
pub const BULK_BYTES: usize = 512 << 10;

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
    /// Counts the uses of a slot, so that a reply that comes twice is known; of a question, its round.
    turn: u16,
    /// Of a request, where it stands; of a question, its line.
    line: u32,
    number: u32,
}

/// A place as it travels.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct PlaceWords {
    address: u64,
    key: u64,
    len: u32,
    /// [`STORES`], [`SERVED`].
    flags: u32,
}

/// The reply is written there; otherwise the payload is read from there.
const STORES: u32 = 1;
/// It is reached through the service endpoint of the rank that asks; otherwise through the endpoint that asks.
const SERVED: u32 = 2;

/// What is done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// The request's payload is fetched from there.
    Fetch,
    /// The reply's data are stored there.
    Store,
}

/// Whose endpoint a place is reached through, and so who moves it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// That of the context that asks, which looks at it while it is in a call.
    Line,
    /// That of its rank's service context, which a progress thread looks at.
    Service,
}

/// Memory of the rank that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) errand: Errand,
    pub(crate) through: Through,
    /// Its address, or offset, in what was registered under the key.
    pub(crate) address: u64,
    pub(crate) key: u64,
    /// 1 to [`BULK_BYTES`].
    pub(crate) len: usize,
}

impl Place {
    fn words(&self) -> PlaceWords {
        let Place { errand, through, address, key, len } = *self;
        assert!((1..=BULK_BYTES).contains(&len));
        let stores = if errand == Errand::Store { STORES } else { 0 };
        let served = if through == Through::Service { SERVED } else { 0 };
        PlaceWords { address, key, len: len as u32, flags: stores | served }
    }

    fn of(words: PlaceWords) -> Option<Self> {
        let PlaceWords { address, key, len, flags } = words;
        let known = flags & !(STORES | SERVED) == 0 && (1..=BULK_BYTES).contains(&(len as usize));
        known.then_some(Place {
            errand: if flags & STORES != 0 { Errand::Store } else { Errand::Fetch },
            through: if flags & SERVED != 0 { Through::Service } else { Through::Line },
            address,
            key,
            len: len as usize,
        })
    }
}

/// Who waits for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) rank: u32,
    pub(crate) context: u16,
    pub(crate) slot: u16,
    pub(crate) turn: u16,
}

/// Where a request stands among those of its line to its target. They are let through in this order, whatever the provider does:
/// what it sends by rendezvous it may complete behind what was sent later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Tells the line from those that its context had before.
    pub(crate) line: u32,
    /// From 0 on, wrapping.
    pub(crate) number: u32,
}

/// A request, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) asker: Asker,
    pub(crate) standing: Standing,
    /// It only asks whether anything of its asker is here, and has no number.
    pub(crate) is_question: bool,
    pub(crate) handler: u16,
    pub(crate) place: Option<Place>,
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
    pub(crate) answer: Answer<'a>,
}

/// What a reply brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    Data(&'a [u8]),
    /// So many bytes, at the place that the request named.
    Stored(usize),
    /// To a question: nothing of who asked is there.
    Nothing,
}

/// Writes what of a request comes before its payload; says how many bytes that are.
#[allow(clippy::too_many_arguments)]
pub(crate) fn write_request(
    to: &mut [u8],
    secret: u64,
    asker: Asker,
    standing: Standing,
    handler: u16,
    place: Option<&Place>,
    address: &[u8],
    inline: [&[u8]; 2],
    payload: usize,
) -> usize {
    let inline_len = inline[0].len() + inline[1].len();
    assert!(address.len() <= ADDRESS_MAX && inline_len <= INLINE_MAX && payload <= STAGING_BYTES);
    let head = Head {
        mark: MARK,
        kind: if place.is_some() { PLACED } else { REQUEST },
        address: address.len() as u8,
        inline: inline_len as u16,
        secret,
        source: asker.rank,
        payload: payload as u32,
        context: asker.context,
        slot: asker.slot,
        handler,
        turn: asker.turn,
        line: standing.line,
        number: standing.number,
    };
    let words = place.map(Place::words);
    let place = words.as_ref().map_or(&[][..], bytemuck::bytes_of);
    write(to, &[bytemuck::bytes_of(&head), place, address, inline[0], inline[1]])
}

/// Writes the question, of this line, whether anything of `asker` is there; says how many bytes that are.
pub(crate) fn write_question(to: &mut [u8], secret: u64, asker: Asker, line: u32, address: &[u8]) -> usize {
    assert!(address.len() <= ADDRESS_MAX);
    let head = Head { address: address.len() as u8, line, ..bare(QUESTION, secret, asker.rank, asker) };
    write(to, &[bytemuck::bytes_of(&head), address])
}

/// Writes that nothing of `asker` is here: [`HEAD`] bytes.
pub(crate) fn write_nothing(to: &mut [u8], secret: u64, me: u32, asker: Asker) {
    write(to, &[bytemuck::bytes_of(&bare(NOTHING, secret, me, asker))]);
}

/// Writes pieces one behind the other; says how many bytes that are.
fn write(to: &mut [u8], pieces: &[&[u8]]) -> usize {
    let mut len = 0;
    for piece in pieces {
        to[len..len + piece.len()].copy_from_slice(piece);
        len += piece.len();
    }
    len
}

/// The head of what has nothing else: from rank `source`, about a slot of `asker`.
fn bare(kind: u8, secret: u64, source: u32, asker: Asker) -> Head {
    let Asker { context, slot, turn, .. } = asker;
    Head { mark: MARK, kind, secret, source, context, slot, turn, ..Head::zeroed() }
}

/// Writes what of a reply comes before its data: [`HEAD`] bytes, or all of it if the data were `stored`.
pub(crate) fn write_reply(to: &mut [u8], secret: u64, me: u32, asker: Asker, status: Status, len: usize, stored: bool) {
    let kind = match (status, stored) {
        (Status::Refused, _) => REFUSAL,
        (Status::Done, false) => REPLY,
        (Status::Done, true) => STORED,
    };
    let head = Head { payload: len as u32, ..bare(kind, secret, me, asker) };
    write(to, &[bytemuck::bytes_of(&head)]);
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
    let place = if head.kind == PLACED { PLACE } else { 0 };
    // What was stored does not travel.
    let (payload, stored) = if head.kind == STORED { (0, head.payload) } else { (head.payload, 0) };
    let told = [place, head.address.into(), head.inline.into(), payload as usize];
    if told[1] > ADDRESS_MAX
        || told[2] > INLINE_MAX
        || told[3] > STAGING_BYTES
        || stored as usize > BULK_BYTES
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
        let is_question = head.kind == QUESTION;
        if ![REQUEST, PLACED, QUESTION].contains(&head.kind)
            || usize::from(head.context) >= MAX_CONTEXTS
            || usize::from(head.slot) >= REQUEST_SLOTS
            || (is_question && (head.inline != 0 || head.payload != 0))
        {
            return Err(format!("{head:?} is no request"));
        }
        let (words, rest) = rest.split_at(if head.kind == PLACED { PLACE } else { 0 });
        let place = match words {
            [] => None,
            words => {
                let words: PlaceWords = bytemuck::pod_read_unaligned(words);
                let place = Place::of(words).ok_or_else(|| format!("{words:?} is no place"))?;
                if place.errand == Errand::Fetch && head.payload != 0 {
                    return Err(format!("{head:?} has a payload, and one to be fetched from {place:?}"));
                }
                Some(place)
            }
        };
        let (address, rest) = rest.split_at(head.address.into());
        let (inline, payload) = rest.split_at(head.inline.into());
        let asker = Asker { rank: head.source, context: head.context, slot: head.slot, turn: head.turn };
        let standing = Standing { line: head.line, number: head.number };
        Ok(Request { asker, standing, is_question, handler: head.handler, place, address, inline, payload })
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
            REPLY | STORED | NOTHING => Status::Done,
            REFUSAL => Status::Refused,
            _ => return Err(format!("{head:?} is no reply")),
        };
        if head.address != 0 || head.inline != 0 || usize::from(head.slot) >= REQUEST_SLOTS {
            return Err(format!("{head:?} is no reply"));
        }
        let answer = match head.kind {
            STORED => Answer::Stored(head.payload as usize),
            NOTHING if rest.is_empty() => Answer::Nothing,
            NOTHING => return Err(format!("{head:?} is more than nothing")),
            _ => Answer::Data(rest),
        };
        Ok(Reply { source: head.source, slot: head.slot, turn: head.turn, status, answer })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: u64 = 0x1234_5678_9abc_def0;
    const ASKER: Asker = Asker { rank: 3, context: 2, slot: 31, turn: 7 };

    const STANDING: Standing = Standing { line: 5, number: u32::MAX };

    fn request(place: Option<&Place>, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; PACKET_MAX];
        let inline: [&[u8]; 2] = [b"argu", b"ments"];
        let len = write_request(&mut packet, SECRET, ASKER, STANDING, 9, place, b"address", inline, payload.len());
        packet[len..len + payload.len()].copy_from_slice(payload);
        packet.truncate(len + payload.len());
        packet
    }

    /// None, and one of each kind.
    fn places() -> [Option<Place>; 5] {
        let place = |errand, through, len| Some(Place { errand, through, address: u64::MAX - 7, key: 5, len });
        [
            None,
            place(Errand::Fetch, Through::Line, 1),
            place(Errand::Fetch, Through::Service, BULK_BYTES),
            place(Errand::Store, Through::Line, 77),
            place(Errand::Store, Through::Service, STAGING_BYTES),
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        for place in places() {
            let payload: &[u8] =
                if place.is_some_and(|place| place.errand == Errand::Fetch) { b"" } else { b"payload" };
            let packet = request(place.as_ref(), payload);
            let read = Request::parse(&packet, SECRET, 4).unwrap();
            let (address, inline) = (b"address", b"arguments");
            let expected = Request {
                asker: ASKER,
                standing: STANDING,
                is_question: false,
                handler: 9,
                place,
                address,
                inline,
                payload,
            };
            assert_eq!(read, expected);
        }

        let mut packet = [0; HEAD + 4];
        write_reply(&mut packet, SECRET, 1, ASKER, Status::Refused, 4, true);
        packet[HEAD..].copy_from_slice(b"why!");
        let read = Reply::parse(&packet, SECRET, 4).unwrap();
        let expected = Reply { source: 1, slot: 31, turn: 7, status: Status::Refused, answer: Answer::Data(b"why!") };
        assert_eq!(read, expected);
        write_reply(&mut packet, SECRET, 1, ASKER, Status::Done, BULK_BYTES, true);
        let read = Reply::parse(&packet[..HEAD], SECRET, 4).unwrap();
        assert_eq!(read, Reply { status: Status::Done, answer: Answer::Stored(BULK_BYTES), ..expected });
        assert!(Reply::parse(&packet, SECRET, 4).is_err(), "what was stored does not travel");
        write_reply(&mut packet, SECRET, 1, ASKER, Status::Done, BULK_BYTES + 1, true);
        assert!(Reply::parse(&packet[..HEAD], SECRET, 4).is_err());
    }

    #[test]
    fn questions_and_their_answer_have_nothing_else() {
        let mut packet = vec![0; PACKET_MAX];
        let len = write_question(&mut packet, SECRET, ASKER, 5, b"address");
        packet.truncate(len);
        let read = Request::parse(&packet, SECRET, 4).unwrap();
        assert!(read.is_question && read.place.is_none() && read.standing.line == 5);
        assert_eq!((read.asker, read.address, read.inline, read.payload), (ASKER, &b"address"[..], &b""[..], &b""[..]));
        // The number of bytes of arguments, and of payload.
        for at in [6, 20] {
            let mut longer = packet.clone();
            longer[at] = 1;
            longer.push(0);
            assert!(Request::parse(&longer, SECRET, 4).unwrap_err().contains("no request"), "{at}");
        }
        let mut nothing = vec![0; HEAD];
        write_nothing(&mut nothing, SECRET, 1, ASKER);
        let expected = Reply { source: 1, slot: 31, turn: 7, status: Status::Done, answer: Answer::Nothing };
        assert_eq!(Reply::parse(&nothing, SECRET, 4).unwrap(), expected);
        nothing[20] = 1;
        nothing.push(0);
        assert!(Reply::parse(&nothing, SECRET, 4).unwrap_err().contains("more than nothing"));
    }

    #[test]
    fn strangers_and_liars_are_refused() {
        let packet = request(None, b"payload");
        assert!(Request::parse(&packet, SECRET ^ 1, 4).unwrap_err().contains("secret"));
        assert!(Request::parse(&packet, SECRET, 3).unwrap_err().contains("rank 3"));
        assert!(Reply::parse(&packet, SECRET, 4).unwrap_err().contains("no reply"));
        for short in 0..packet.len() {
            assert!(Request::parse(&packet[..short], SECRET, 4).is_err(), "{short}");
        }
        let mut longer = packet.clone();
        longer.push(0);
        assert!(Request::parse(&longer, SECRET, 4).is_err());
        // A place of nothing, of too much, with an unknown flag, and one to fetch a payload from beside another.
        let place = places()[1];
        let good = request(place.as_ref(), b"");
        assert!(Request::parse(&good, SECRET, 4).is_ok());
        for (at, words) in [(16, [0, 0]), (16, [BULK_BYTES as u32 + 1, 0]), (16, [1, 4])] {
            let mut packet = good.clone();
            packet[HEAD + at..][..8].copy_from_slice(bytemuck::bytes_of(&words));
            assert!(Request::parse(&packet, SECRET, 4).unwrap_err().contains("no place"), "{words:?}");
        }
        assert!(Request::parse(&request(place.as_ref(), b"more"), SECRET, 4).unwrap_err().contains("fetched"));
    }

    proptest! {
        /// Whatever comes, it is taken apart within its bounds or refused; nothing panics.
        #[test]
        fn any_bytes_are_read_or_refused(
            at in 0..HEAD + PLACE,
            kind in 0..5usize,
            byte in any::<u8>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..256),
            len in 0..400usize,
        ) {
            let _ = Request::parse(&bytes, SECRET, 4);
            let _ = Reply::parse(&bytes, SECRET, 4);
            // One byte of a good packet is another.
            let place = places()[kind];
            let mut packet = request(place.as_ref(), &bytes);
            let at = at.min(packet.len() - 1);
            packet[at] = byte;
            packet.truncate(len);
            if let Ok(read) = Request::parse(&packet, SECRET, 4) {
                prop_assert!(read.asker.rank < 4 && usize::from(read.asker.slot) < REQUEST_SLOTS);
                let place = if read.place.is_some() { PLACE } else { 0 };
                let rest = place + read.address.len() + read.inline.len() + read.payload.len();
                prop_assert_eq!(HEAD + rest, packet.len());
                prop_assert!(read.place.is_none_or(|place| (1..=BULK_BYTES).contains(&place.len)));
            }
            let _ = Reply::parse(&packet, SECRET, 4);
        }
    }
}
