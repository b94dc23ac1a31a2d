//! The launcher's side of the control sockets: who has joined, who has left, and the answers to
//! collective requests.
//!
//! A request is collective: it is answered, to all, when all ranks have made it. Where some ranks are on other hosts,
//! what all of this host have asked is one request to the launcher of the job, and its answer is theirs. Nothing here
//! waits: [`Exchange::pump`] takes what has arrived and sends what fits; the rest of an answer
//! leaves when the socket is writable again.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::super::network::line::Line;
use super::super::wire::{self, Frame, Kind};

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not said hello; perhaps it never will (`armci-run -n 2 hostname`).
    Outside,
    /// It takes part, and the others count on it.
    Joined,
    /// It, like all others, has said goodbye.
    Left,
}

/// A rank that broke the rules: its number on this host, and how.
pub(super) type Violation = (usize, String);

/// All ranks' control sockets.
pub(super) struct Exchange {
    secret: u64,
    /// The number of the first rank here.
    first: usize,
    ranks: Vec<Rank>,
    /// Whether a rank of another host takes part.
    others_joined: bool,
    /// Where there are other hosts: what all ranks of this one ask.
    asked: Option<Option<Frame>>,
}

/// One rank's.
struct Rank {
    line: Line,
    standing: Standing,
    asked: Option<Frame>,
}

impl Exchange {
    /// `elsewhere`: there are ranks on other hosts, too.
    pub(super) fn new(secret: u64, first: usize, elsewhere: bool) -> Self {
        Self { secret, first, ranks: Vec::new(), others_joined: false, asked: elsewhere.then_some(None) }
    }

    /// Adds the next rank.
    pub(super) fn add(&mut self, socket: OwnedFd) {
        self.ranks.push(Rank { line: Line::new(socket), standing: Standing::Outside, asked: None });
    }

    /// How many ranks there are.
    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    pub(super) fn standing(&self, rank: usize) -> Standing {
        self.ranks[rank].standing
    }

    /// Whether any rank takes part.
    pub(super) fn anyone_joined(&self) -> bool {
        self.others_joined || self.joined_here()
    }

    /// Whether any rank of this host does.
    pub(super) fn joined_here(&self) -> bool {
        self.ranks.iter().any(|rank| rank.standing != Standing::Outside)
    }

    /// A rank of another host has joined.
    pub(super) fn others_joined(&mut self) {
        self.others_joined = true;
    }

    /// What all ranks of this host ask of those elsewhere, once.
    pub(super) fn take_asked(&mut self) -> Option<Frame> {
        self.asked.as_mut().and_then(Option::take)
    }

    /// The socket of a rank, and whether there is something to be sent on it.
    pub(super) fn socket(&self, rank: usize) -> Option<(BorrowedFd<'_>, bool)> {
        self.ranks[rank].line.socket()
    }

    /// Takes what a rank has sent, and sends it what is due.
    pub(super) fn pump(&mut self, rank: usize) -> Result<(), Violation> {
        self.ranks[rank].line.receive();
        while let Some(frame) = self.ranks[rank].line.next().map_err(|error| (rank, error.to_string()))? {
            self.accept(rank, frame)?;
        }
        self.ranks[rank].line.flush();
        Ok(())
    }

    fn accept(&mut self, rank: usize, frame: Frame) -> Result<(), Violation> {
        let asking = &mut self.ranks[rank];
        match (frame.kind, asking.standing) {
            (Kind::Hello, Standing::Outside) if frame.payload == self.secret.to_le_bytes() => {
                asking.standing = Standing::Joined;
                asking.line.send(Frame::encode(Kind::Hello, &self.secret.to_le_bytes()).into());
                Ok(())
            }
            (Kind::Hello, Standing::Outside) => Err((rank, "did not know the job's secret".into())),
            (Kind::Hello, Standing::Joined) => {
                Err((rank, "joined twice; a rank is one process, and initializes once".into()))
            }
            (Kind::Hello, Standing::Left) => {
                let refusal =
                    "this rank has already finished its part in the job; a job runs one program per rank, once";
                asking.line.send(Frame::encode(Kind::Refused, refusal.as_bytes()).into());
                Ok(())
            }
            (Kind::Gather | Kind::Goodbye, Standing::Joined) if asking.asked.is_none() => {
                asking.asked = Some(frame);
                self.answer_all()
            }
            (kind, standing) => {
                Err((rank, format!("sent {kind:?} while {standing:?}, against the rules of the control socket")))
            }
        }
    }

    /// Answers a collective request if everybody has made it.
    fn answer_all(&mut self) -> Result<(), Violation> {
        let Some(kinds) =
            self.ranks.iter().map(|rank| rank.asked.as_ref().map(|frame| frame.kind)).collect::<Option<Vec<_>>>()
        else {
            return Ok(());
        };
        let kind = kinds[0];
        if let Some(other) = kinds.iter().position(|&other| other != kind) {
            return Err((other, differing(kinds[other], self.first, kind)));
        }
        let shares = self.ranks.iter().filter_map(|rank| rank.asked.as_ref()).map(|frame| frame.payload.as_slice());
        let table = wire::encode_table(shares);
        if table.len() > wire::LARGEST {
            return Err((0, too_much(table.len())));
        }
        match &mut self.asked {
            None => self.answer(kind, &table),
            Some(asked) => *asked = Some(Frame { kind, payload: table }),
        }
        Ok(())
    }

    /// Gives all ranks here the answer to what they have asked.
    pub(super) fn answer(&mut self, kind: Kind, table: &[u8]) {
        let answer: Arc<[u8]> = Frame::encode(kind, table).into();
        for rank in &mut self.ranks {
            rank.asked = None;
            if kind == Kind::Goodbye {
                rank.standing = Standing::Left;
            }
            rank.line.send(Arc::clone(&answer));
        }
    }
}

/// How to say that two ranks asked for different things.
pub(super) fn differing(asked: Kind, first: usize, of_first: Kind) -> String {
    format!(
        "asked for {asked:?} while rank {first} asked for {of_first:?}: collective calls must be made in the same order by all ranks"
    )
}

/// How to say that an exchange was too large.
pub(super) fn too_much(bytes: usize) -> String {
    format!("and the others exchanged {bytes} bytes at once; at most {} are carried", wire::LARGEST)
}
