//! The checker, `ARMCI_CHECK=1`: finds accesses of two ranks to the same bytes, one of them at least a write, that
//! nothing orders.
//!
//! ```text
//!   rank 0                         rank 1
//!   put to A on rank 2             get of A on rank 2        found, whichever comes first
//!
//!   put to A on rank 2
//!   barrier       - - - - - - ->   barrier
//!                                  get of A on rank 2        ordered
//! ```
//!
//! # What orders
//! Each rank has a vector clock: how far into every other rank's course it has *heard*. Ranks hear of each other
//!
//! - at every collective call, over the world or a team, all of all (of a split-phase barrier: what came before it began,
//!   once it was found to be over);
//! - by a flag: who waits for it hears of who set it;
//! - by read-modify-writes of one word: each hears of those before it. Mutexes are made of these and of flags, and need
//!   no mention here;
//! - by a message received: of its sender. By a message to a handler: its rank hears of its sender, from the message on,
//!   for the handler may have told the rank's threads; and who waits for the reply hears of whoever sent to that rank's
//!   handlers before, for those are run one at a time.
//!
//! A put or an accumulate must also be complete where it went, by a fence or what includes one (a barrier, an unlock;
//! a flag on the same rank), before the rank that made it tells others. A job that forgets this runs well by remote memory
//! access and breaks by messages; it is reported in both.
//!
//! # Who keeps what
//! What was done to a rank's memory is kept by that rank ([`home`]), and so is what was told at its words, in its
//! messages, or at the collective calls of gatherings whose first member it is. Everything is asked for by awaited active
//! messages, of a handler like a user's: no clock travels with the messages of the program, so no protocol knows of the
//! checker; and a rank asks before it synchronises, and hears afterwards. That is slow, and is to be.
//!
//! Whoever touches memory is answered with the conflicts, and writes them to standard error unless the same two places of
//! the program were found before, which the first rank knows. The job goes on and ends as it would have.
//!
//! # What is not seen
//! A rank is one: what its own threads do to each other is for the tools that watch threads, which see the program's own
//! locks and channels. Nor is seen what goes by pointers: reads and writes of the own part of a region in place, what
//! handlers do, the local side of a transfer. A non-blocking get counts where it was started. What a C program calls is
//! reported at the place in the C interface.
//!
//! Reported, although it may be meant: a flag that is looked at by gets until it is set. Waiting for it, or looking by a
//! fetch, is in order. And a rank that serves nobody, computing without a progress thread or held back by a test, holds up
//! who touches its memory, since it has to answer.
//!
//! Conflicts are found if the *ordering* of this run leaves them open, whichever access came first; what is ordered in
//! this run by chance, by who drew from a counter first, is not found.

mod history;
mod home;
mod request;
pub(crate) mod state;

use std::ops::Range;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Call, Extent, Kind};
use crate::collectives::Collective;
use crate::error::Result;
use crate::gathering::Gathering;
use crate::memory::{GlobalPtr, RegionId};
use crate::node::message::STAGING_BYTES;
use crate::world::World;
use history::{Clock, Verb};
use request::{Meeting, Reader, Request, Site};
use state::{Check, lock, say};

impl Check {
    /// Asks a rank.
    fn ask(&self, world: &World, rank: usize, request: Request) -> Vec<u8> {
        let answer = if rank == world.rank() {
            lock(&self.home).answer(self.me, request)
        } else {
            let slot = world.post_to(rank, self.handler.0, &[], &request.encode(), false);
            world.origin().collect(slot, <[u8]>::to_vec).map_err(|error| error.to_string())
        };
        answer.unwrap_or_else(|error| {
            tracing::error!("the checker of rank {rank} did not answer: {error}");
            Vec::new()
        })
    }

    /// Tells those who come there all that was heard here.
    fn tell(&self, world: &World, rank: usize, meeting: Meeting) {
        let (heard, meetings) = {
            let mut own = self.own();
            let heard = own.clock.clone();
            own.tick(self.me);
            (heard, own.meetings)
        };
        self.ask(world, rank, Request::Tell { meeting, meetings, heard });
    }

    /// Hears what others have told there.
    fn hear(&self, world: &World, rank: usize, meeting: Meeting) {
        let answer = self.ask(world, rank, Request::Hear { meeting });
        self.listen(&mut Reader(&answer));
    }

    fn listen(&self, answer: &mut Reader<'_>) {
        if let Ok(heard) = answer.words() {
            lock(&self.own).clock.join(&Clock(heard));
        }
    }

    /// Bytes of a rank's memory are touched.
    fn touch(&self, world: &World, place: GlobalPtr<u8>, site: &Site, bytes: &[Range<u64>]) {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        let (heard, at, meetings) = {
            let mut own = self.own();
            if site.verb.is_completed_by_fences() {
                own.unfenced.insert(place.rank());
            }
            (own.clock.clone(), own.clock.0[self.me], own.meetings)
        };
        // What remains of a message besides the clock and the site.
        let fit = (STAGING_BYTES / 2).saturating_sub(8 * self.ranks) / size_of::<Range<u64>>();
        for bytes in bytes.chunks(fit.max(1)) {
            let (site, heard, region) = (site.clone(), heard.clone(), place.region.to_bits());
            let touch = Request::Touch { site: site.clone(), at, meetings, heard, region, bytes: bytes.to_vec() };
            let answer = self.ask(world, place.rank(), touch);
            self.report(world, place, &site, &mut Reader(&answer));
        }
    }

    /// A word is touched by atomics.
    fn touch_word(&self, world: &World, place: GlobalPtr<u8>, bytes: u64, site: Site, [hears, tells]: [bool; 2]) {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        let (heard, at, meetings) = {
            let mut own = self.own();
            let (heard, at) = (own.clock.clone(), own.clock.0[self.me]);
            if tells {
                own.tick(self.me);
            }
            (heard, at, own.meetings)
        };
        let (region, bytes) = (place.region.to_bits(), place.offset..place.offset + bytes);
        let touch = Request::Word { site: site.clone(), at, meetings, heard, region, bytes, hears, tells };
        let answer = self.ask(world, place.rank(), touch);
        let mut answer = Reader(&answer);
        self.listen(&mut answer);
        self.report(world, place, &site, &mut answer);
    }

    /// Writes down the conflicts of an answer, as far as they are new.
    fn report(&self, world: &World, place: GlobalPtr<u8>, mine: &Site, answer: &mut Reader<'_>) {
        if answer.word() == Ok(0) {
            self.not_kept.fetch_add(1, Ordering::Relaxed);
        }
        while let Ok((other, theirs, bytes, unfenced)) = answer.conflict() {
            let (rank, other, on) = (world.rank(), other as usize, place.rank);
            let found = Request::Found { first: mine.clone(), second: theirs.clone() };
            if !Reader(&self.ask(world, Self::FIRST, found)).word().is_ok_and(|new| new == 1) {
                continue;
            }
            let why = if unfenced {
                format!("and no fence completes the {} before what orders them", theirs.verb.name())
            } else {
                "and nothing orders them".into()
            };
            let (mine, theirs) = (written(mine, rank), written(&theirs, other));
            let Range { start, end } = bytes;
            let region = place.region;
            say(format_args!(
                "{mine} and {theirs} both touch bytes {start}..{end} of region {region} on rank {on}, {why}"
            ));
        }
    }

    /// Says what was found in the job; collective.
    pub(crate) fn finish(&self, everyone: Collective<'_>) {
        let world = everyone.world;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let total = Request::Total { accesses: count(&self.accesses), not_kept: count(&self.not_kept) };
        self.ask(world, Self::FIRST, total);
        everyone.gathering.meet(world.origin());
        if world.rank() != Self::FIRST {
            return;
        }
        let findings = std::mem::take(&mut lock(&self.home).findings);
        let conflicts: u64 = findings.pairs.values().sum();
        if conflicts == 0 {
            say(format_args!("no conflicts in {}", counted(findings.accesses, "access", "es")));
        } else {
            let (found, places) =
                (counted(conflicts, "conflict", "s"), counted(findings.pairs.len() as u64, "pair", "s"));
            say(format_args!("{found} in {places} of places, in {}", counted(findings.accesses, "access", "es")));
        }
        for ((first, second), times) in &findings.pairs {
            let [first, second] =
                [first, second].map(|site| format!("{} at {}:{}", site.verb.name(), site.file, site.line));
            say(format_args!("{}: {first}, {second}", counted(*times, "time", "s")));
        }
        if findings.not_kept != 0 {
            let not_kept = counted(findings.not_kept, "access", "es");
            say(format_args!("{not_kept} not kept to be compared with later ones: too many between two barriers"));
        }
    }
}

/// A site and who was there, as people read it.
fn written(site: &Site, rank: usize) -> String {
    format!("{} by rank {rank} at {}:{}", site.verb.name(), site.file, site.line)
}

/// So many of something.
fn counted(count: u64, one: &str, plural: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { plural })
}

/// A site that the program called from.
fn site(verb: Verb, at: &Location<'_>) -> Site {
    Site::new(verb, at.file(), at.line())
}

/// A flag as it is touched.
const FLAG: u64 = 8;

impl World {
    /// The checker, if there is one.
    #[inline]
    fn check(&self) -> Option<&Check> {
        if self.is_plain() { None } else { self.shared().check.as_ref() }
    }

    /// Runs an operation, and checks what it touches.
    pub(super) fn checked<T>(&self, call: &Call<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let (Some(check), Some(place)) = (self.check(), place(call)) else { return run() };
        if call.kind != Kind::Rmw {
            let done = run()?;
            self.check_touched(call);
            return Ok(done);
        }
        if self.resolve(place, call.bytes as u64).is_err() || self.aligned(place, call.bytes, "").is_err() {
            return run();
        }
        // Told before, so that who finds what this leaves behind finds that too; and heard again afterwards.
        check.touch_word(self, place, call.bytes as u64, site(Verb::Rmw, call.site), [true, true]);
        let done = run()?;
        check.hear(self, place.rank(), Meeting::Word(place.region.to_bits(), place.offset));
        Ok(done)
    }

    /// Checks what a transfer touches.
    pub(super) fn check_touched(&self, call: &Call<'_>) {
        let (Some(check), Some(place)) = (self.check(), place(call)) else { return };
        let verb = match call.kind {
            Kind::Put => Verb::Put,
            Kind::Get => Verb::Get,
            Kind::Accumulate => Verb::Accumulate,
            _ => return,
        };
        let from = place.offset;
        let bytes = match call.extent {
            Extent::Elsewhere => return,
            Extent::Bytes => std::iter::once(from..from + call.bytes as u64).collect(),
            Extent::Rows { patch, outward } => {
                let mut rows = Vec::with_capacity(patch.rows());
                patch.for_each_place(outward, |at, row| {
                    let start = from + at as u64;
                    rows.push(start..start + row as u64);
                });
                rows
            }
        };
        check.touch(self, place, &site(verb, call.site), &bytes);
    }

    /// A flag is about to be set.
    #[inline]
    pub(crate) fn check_notify(&self, flag: GlobalPtr<i64>, at: &Location<'_>) {
        if let Some(check) = self.check() {
            check.touch_word(self, flag.cast(), FLAG, site(Verb::Notify, at), [false, true]);
        }
    }

    /// A flag of this rank has been waited for.
    #[inline]
    pub(crate) fn check_wait(&self, flag: GlobalPtr<i64>, at: &Location<'_>) {
        if let Some(check) = self.check() {
            check.touch_word(self, flag.cast(), FLAG, site(Verb::Wait, at), [true, false]);
        }
    }

    /// All that this rank wrote at `rank`, or everywhere, is complete.
    #[inline]
    pub(crate) fn check_fence(&self, rank: Option<usize>) {
        if let Some(check) = self.check() {
            let (fenced, at, meetings) = {
                let mut own = check.own();
                let fenced: Vec<usize> =
                    own.unfenced.extract_if(.., |at| rank.is_none_or(|rank| rank == *at)).collect();
                if fenced.is_empty() {
                    return;
                }
                (fenced, own.tick(check.me) + 1, own.meetings)
            };
            fenced.into_iter().for_each(|rank| drop(check.ask(self, rank, Request::Fence { at, meetings })));
        }
    }

    /// A message is about to be sent.
    #[inline]
    pub(crate) fn check_send(&self, target: usize, tag: i32) {
        if let Some(check) = self.check() {
            check.tell(self, target, Meeting::Letters(self.rank() as u64, tag.into()));
        }
    }

    /// A message was received.
    #[inline]
    pub(crate) fn check_receive(&self, source: usize, tag: i32) {
        if let Some(check) = self.check() {
            check.hear(self, self.rank(), Meeting::Letters(source as u64, tag.into()));
        }
    }

    /// A message to a user's handler is about to be sent.
    #[inline]
    pub(crate) fn check_handler(&self, target: usize) {
        if let Some(check) = self.check() {
            check.tell(self, target, Meeting::Handlers);
        }
    }

    /// A user's handler has answered.
    #[inline]
    pub(crate) fn check_reply(&self, target: usize) {
        if let Some(check) = self.check() {
            check.hear(self, target, Meeting::Handlers);
        }
    }

    /// This rank comes to a meeting, whose number is returned.
    #[inline]
    pub(crate) fn check_arrive(&self, gathering: &Gathering) -> u64 {
        let Some(check) = self.check() else { return 0 };
        let number = gathering.next_meeting();
        let (rank, meeting) = named(gathering, number);
        check.tell(self, rank, meeting);
        if gathering.is_everyone() {
            lock(&check.own).meetings = number + 1;
        }
        number
    }

    /// The meeting of this number is over.
    #[inline]
    pub(crate) fn check_leave(&self, gathering: &Gathering, number: u64) {
        if let Some(check) = self.check() {
            let (rank, meeting) = named(gathering, number);
            check.hear(self, rank, meeting);
            if gathering.is_everyone() {
                // All have come to this one, so all have left the one before.
                lock(&check.home).forget(number);
            }
        }
    }
}

/// With whom it lies what is told at a meeting, and the meeting's name there.
fn named(gathering: &Gathering, number: u64) -> (usize, Meeting) {
    let first = gathering.members().get(0).expect("a gathering has members");
    (first, Meeting::Collective(gathering.name(), number, gathering.len() as u64))
}

/// Where the operation begins that is told.
fn place(call: &Call<'_>) -> Option<GlobalPtr<u8>> {
    let (rank, region): (usize, RegionId) = (call.target?, call.region?);
    Some(GlobalPtr::new(region, rank as u32, call.offset))
}
