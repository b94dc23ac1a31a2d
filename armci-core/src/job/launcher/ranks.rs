//! The duty of a launcher towards the ranks it has started itself: to serve their exchanges, and to judge their ends.
//!
//! Guaranteed: only consecutive ranks, first to last started in order; a rank's end is judged by everything it said
//! before. If there are ranks on other hosts, the launcher of the job ([`Upstream`]) hears what all ranks here ask and
//! why one failed, and says when to end; if it is gone, so are the ranks here.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::super::Identity;
use super::Failure;
use super::duty::{Duty, Member, Verdict, signal_groups};
use super::ending::Ending;
use super::exchange::{Exchange, Standing};
use super::hosts::upstream::{Order, Upstream};
use crate::topology::{self, Bind, Core, Seat, Topology};

/// Which ranks of a job are started here.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// All, on as many virtual nodes.
    All { ranks: usize, nodes: usize },
    /// Those of one host.
    Host(Share),
}

/// One host's part of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Its first rank, how many it has, and how many the job has.
    pub(super) first: usize,
    pub(super) ranks: usize,
    pub(super) size: usize,
    pub(super) node: usize,
    pub(super) nodes: usize,
    /// How many of the hosts are on this machine.
    pub(super) nodes_here: usize,
    /// How many ranks those have together, and how many come before ours.
    pub(super) ranks_here: usize,
    pub(super) before_here: usize,
}

impl Part {
    /// How many ranks are started here.
    pub(super) fn ranks(&self) -> usize {
        match self {
            Self::All { ranks, .. } => *ranks,
            Self::Host(share) => share.ranks,
        }
    }

    fn first(&self) -> usize {
        match self {
            Self::All { .. } => 0,
            Self::Host(share) => share.first,
        }
    }

    /// How many ranks the job has.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::All { ranks, .. } => *ranks,
            Self::Host(share) => share.size,
        }
    }

    /// Where the rank with this number among those here stands in the job.
    pub(super) fn identity(&self, index: usize) -> Identity {
        match self {
            Self::All { ranks, nodes } => Identity::on_one_machine(index, *ranks, *nodes),
            Self::Host(share) => Identity {
                rank: share.first + index,
                size: share.size,
                local_rank: index,
                local_size: share.ranks,
                nodes: share.nodes,
                node: share.node,
                nodes_here: share.nodes_here,
            },
        }
    }

    /// Where each rank sits, and the core it is tied to. Not to know the cores matters only if ranks are to be bound.
    pub(super) fn seats(&self, bind: Bind) -> crate::Result<Vec<(Seat, Option<Core>)>> {
        let (all, before) = match self {
            Self::All { ranks, .. } => (*ranks, 0),
            Self::Host(share) => (share.ranks_here, share.before_here),
        };
        let here = before..before + self.ranks();
        Ok(match bind {
            Bind::None => topology::quick_seats(all)[here].iter().map(|seat| (*seat, None)).collect(),
            Bind::Core => {
                let cores = Topology::load()?;
                here.map(|rank| (cores.seat(rank, all, Bind::Core), Some(cores.core_of(rank, all).clone()))).collect()
            }
        })
    }
}

/// See the module.
pub(super) struct Ranks {
    part: Part,
    exchange: Exchange,
    upstream: Option<Upstream>,
}

/// What a descriptor stands for.
#[derive(Clone, Copy)]
pub(super) enum Token {
    /// The control socket of a rank.
    Control(usize),
    /// The line to the launcher of the job.
    Upstream,
}

impl Ranks {
    /// `secret`: of the sockets between this process and its ranks.
    pub(super) fn new(part: Part, secret: u64, upstream: Option<Upstream>) -> Self {
        let exchange = Exchange::new(secret, part.first(), upstream.is_some());
        Self { part, exchange, upstream }
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    pub(super) fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    fn pump(&mut self, index: usize, members: &[Member]) -> Option<Verdict> {
        let before = self.exchange.joined_here();
        let verdict = match self.exchange.pump(index) {
            Ok(()) => None,
            Err((index, broke)) => Some(self.verdict(members, index, 1, &broke)),
        };
        if let Some(upstream) = &mut self.upstream {
            if !before && self.exchange.joined_here() {
                upstream.joined();
            }
            if let Some(asked) = self.exchange.take_asked() {
                upstream.ask(&asked);
            }
        }
        verdict
    }

    /// The job ends because of a rank.
    fn verdict(&self, members: &[Member], index: usize, code: i32, reason: &str) -> Verdict {
        let rank = self.part.first() + index;
        let pid = members.get(index).map_or(0, |member| member.process.pid.as_raw_nonzero().get());
        let failed = Some(Failure { rank, reason: reason.to_owned() });
        Verdict { code, failed, pid, why: format!("rank {rank} (pid {pid}) {reason}") }
    }

    /// Does as the launcher of the job says.
    fn obey(&mut self, members: &[Member]) -> Option<Verdict> {
        while let Some(order) = self.upstream.as_mut()?.order() {
            match order {
                Order::Answer(kind, table) => self.exchange.answer(kind, &table),
                Order::OthersJoined => {
                    self.exchange.others_joined();
                    if let Some(verdict) = self.judge(members, &[]) {
                        return Some(verdict);
                    }
                }
                Order::Signal(signal) => signal_groups(members, signal),
                Order::End(why) => return Some(Verdict { code: 1, failed: None, pid: 0, why }),
            }
        }
        None
    }
}

impl Duty for Ranks {
    type Token = Token;

    const GRACE: Duration = Duration::from_millis(200);

    fn wait_on<'a>(&'a self, add: &mut dyn FnMut(Token, BorrowedFd<'a>, PollFlags)) {
        let controls =
            (0..self.exchange.len()).filter_map(|index| Some((Token::Control(index), self.exchange.socket(index)?)));
        let upstream = self.upstream.as_ref().and_then(|upstream| Some((Token::Upstream, upstream.socket()?)));
        for (token, (socket, sending)) in controls.chain(upstream) {
            add(token, socket, if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN });
        }
    }

    fn serve(&mut self, token: Token, members: &[Member]) -> Option<Verdict> {
        match token {
            Token::Control(index) => self.pump(index, members),
            Token::Upstream => self.obey(members),
        }
    }

    fn last_words(&mut self, member: usize, members: &[Member]) -> Option<Verdict> {
        self.pump(member, members)
    }

    /// Of several at once, a signal tells more than a code, a code more than a silent leave.
    fn judge(&self, members: &[Member], ended: &[usize]) -> Option<Verdict> {
        let of_kind = |wanted: fn(Ending) -> bool| {
            ended
                .iter()
                .copied()
                .find_map(|rank| members[rank].ending.filter(|&ending| wanted(ending)).map(|ending| (rank, ending)))
        };
        let failed = of_kind(|ending| matches!(ending, Ending::Signal(_)))
            .or_else(|| of_kind(|ending| ending != Ending::Code(0)));
        if let Some((rank, ending)) = failed {
            return Some(self.verdict(members, rank, ending.code(), &ending.describe()));
        }
        if !self.exchange.anyone_joined() {
            return None;
        }
        // Also ranks that ended earlier: they may have become a problem only when somebody joined.
        let standing = |rank: usize| self.exchange.standing(rank);
        let rank =
            (0..members.len()).find(|&rank| members[rank].ending.is_some() && standing(rank) != Standing::Left)?;
        let how = match standing(rank) {
            Standing::Outside => OUTSIDE,
            _ => "left without finalize",
        };
        Some(self.verdict(members, rank, 1, how))
    }

    fn signal(&mut self, members: &[Member], signal: Signal) {
        signal_groups(members, signal);
    }

    fn others(&self, members: &[Member], failed: Option<usize>) -> usize {
        let first = self.part.first();
        let alive = |&(index, member): &(usize, &Member)| member.ending.is_none() && Some(first + index) != failed;
        members.iter().enumerate().filter(alive).count()
    }

    fn report(&mut self, verdict: &Verdict) -> bool {
        self.upstream.as_mut().is_some_and(|upstream| {
            upstream.failed(verdict);
            true
        })
    }

    fn all_done(&mut self) {
        if let Some(upstream) = &mut self.upstream {
            upstream.done();
        }
    }
}

/// How to say that a rank ended before it joined, while others have.
pub(super) const OUTSIDE: &str =
    "ended without joining the job that other ranks have joined; all ranks must initialize";
