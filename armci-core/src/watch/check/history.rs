//! Who touched which bytes of a rank's memory, and with what that conflicts.
//!
//! The bytes of each region are cut into *segments*, at every place where an access began or ended; a segment lists the
//! accesses that touched all of it. An access to come is compared with those, and then takes the place of what it makes
//! superfluous there: whatever conflicts with a forgotten access and is not ordered with it conflicts with the new one
//! too, and is not ordered with that. So a segment lists at most a few accesses per rank, however often it is touched.
//!
//! *Ordered.* An access carries the number that its rank's own clock showed; it came before another one if the other's
//! rank had heard of that number. A put or an accumulate counts from the fence that completed it: until then it came
//! before nothing but what its own rank does.

use std::collections::BTreeMap;
use std::ops::Range;

/// The clock of a rank: per rank of the job the last number that it has heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clock(pub(super) Vec<u64>);

impl Clock {
    pub(super) fn new(ranks: usize) -> Self {
        Clock(vec![0; ranks])
    }

    /// Hears of all that another clock has heard of.
    pub(super) fn join(&mut self, other: &Clock) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether this is after what happened on a rank when its own clock showed `at`.
    pub(super) fn has_heard(&self, rank: usize, at: u64) -> bool {
        self.0.get(rank).is_some_and(|heard| *heard >= at)
    }
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Verb {
    Put,
    Get,
    Accumulate,
    Rmw,
    /// A flag set.
    Notify,
    /// A flag waited for.
    Wait,
}

impl Verb {
    pub(super) const ALL: [Verb; 6] = [Verb::Put, Verb::Get, Verb::Accumulate, Verb::Rmw, Verb::Notify, Verb::Wait];

    /// What people read.
    pub(super) fn name(self) -> &'static str {
        ["put", "get", "accumulate", "read-modify-write", "notify", "wait"][self as usize]
    }

    /// Whether two of them on the same bytes need to be ordered. Reads need not, nor do accumulates, nor what is done by
    /// the processor's atomics.
    fn conflicts(self, other: Verb) -> bool {
        let reads = |verb| matches!(verb, Verb::Get | Verb::Wait);
        let atomic = |verb| matches!(verb, Verb::Rmw | Verb::Notify | Verb::Wait);
        let adds = |verb| verb == Verb::Accumulate;
        ![reads as fn(Verb) -> bool, atomic, adds].iter().any(|alike| alike(self) && alike(other))
    }

    /// Whether it is complete only after a fence.
    pub(super) fn is_completed_by_fences(self) -> bool {
        matches!(self, Verb::Put | Verb::Accumulate)
    }
}

/// An access, as a segment lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) rank: usize,
    /// What its rank's own clock showed.
    pub(super) at: u64,
    pub(super) verb: Verb,
    /// The number of the place in the program.
    pub(super) site: usize,
    /// How many meetings of all ranks its rank had come to.
    pub(super) meetings: u64,
    /// The fence that completed it, if that is known.
    fenced: Option<Fence>,
}

/// A fence, by the number its rank's clock showed after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    at: u64,
    meetings: u64,
}

impl Access {
    pub(super) fn new(rank: usize, at: u64, verb: Verb, site: usize, meetings: u64) -> Self {
        let fenced = (!verb.is_completed_by_fences()).then_some(Fence { at, meetings });
        Access { rank, at, verb, site, meetings, fenced }
    }
}

/// A conflict with an earlier access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) earlier: Access,
    /// What both touch, or the first piece of it.
    pub(super) bytes: Range<u64>,
    /// The two are ordered, but no fence has completed the earlier one in between.
    pub(super) unfenced: bool,
}

#[derive(Debug)]
struct Segment {
    end: u64,
    accesses: Vec<Access>,
}

/// Fences of a rank that are kept before they are entered with the accesses they completed.
const FENCES_MAX: usize = 4096;

/// What is known of the accesses to a rank's memory.
#[derive(Debug)]
pub(super) struct History {
    /// By region and first byte; they do not overlap.
    segments: BTreeMap<(u64, u64), Segment>,
    /// How many there may be.
    limit: usize,
    /// The fences of each rank, in their order, as far as accesses may still be waiting for them.
    fences: Vec<Vec<Fence>>,
}

impl History {
    pub(super) fn new(ranks: usize, limit: usize) -> Self {
        History { segments: BTreeMap::new(), limit, fences: vec![Vec::new(); ranks] }
    }

    /// The conflicts of an access to these bytes by a rank whose clock says `heard`; it is compared with those to come,
    /// unless there are too many segments already: whether it is.
    pub(super) fn touch(
        &mut self,
        region: u64,
        bytes: Range<u64>,
        access: Access,
        heard: &Clock,
        conflicts: &mut Vec<Conflict>,
    ) -> bool {
        if bytes.is_empty() {
            return true;
        }
        self.compare(region, &bytes, &access, heard, conflicts);
        if self.segments.len() >= self.limit {
            return false;
        }
        self.enter(region, &bytes, access, heard);
        true
    }

    fn compare(&self, region: u64, bytes: &Range<u64>, access: &Access, heard: &Clock, conflicts: &mut Vec<Conflict>) {
        let first = self.at(region, bytes.start).unwrap_or(bytes.start);
        for (&(_, start), segment) in self.segments.range((region, first)..(region, bytes.end)) {
            let both = start.max(bytes.start)..segment.end.min(bytes.end);
            for earlier in &segment.accesses {
                if self.is_before(earlier, access.rank, heard) || !earlier.verb.conflicts(access.verb) {
                    continue;
                }
                let same =
                    |known: &&mut Conflict| (known.earlier.rank, known.earlier.site) == (earlier.rank, earlier.site);
                match conflicts.iter_mut().find(same) {
                    Some(known) if known.bytes.end == both.start => known.bytes.end = both.end,
                    Some(_) => {}
                    None => conflicts.push(Conflict {
                        earlier: *earlier,
                        bytes: both.clone(),
                        unfenced: heard.has_heard(earlier.rank, earlier.at),
                    }),
                }
            }
        }
    }

    fn enter(&mut self, region: u64, bytes: &Range<u64>, access: Access, heard: &Clock) {
        self.cut(region, bytes.start);
        self.cut(region, bytes.end);
        let mut free = Vec::new();
        let mut at = bytes.start;
        let History { segments, fences, .. } = self;
        for (&(_, start), segment) in segments.range_mut((region, bytes.start)..(region, bytes.end)) {
            free.push(at..start);
            at = segment.end;
            segment.accesses.retain(|earlier| match access.verb {
                Verb::Put => !is_before(fences, earlier, access.rank, heard),
                _ => (earlier.rank, earlier.verb) != (access.rank, access.verb),
            });
            segment.accesses.push(access);
        }
        free.push(at..bytes.end);
        for free in free.into_iter().filter(|free| !free.is_empty()) {
            segments.insert((region, free.start), Segment { end: free.end, accesses: vec![access] });
        }
        self.join(region, bytes);
    }

    /// The beginning of the segment that a byte lies in.
    fn at(&self, region: u64, byte: u64) -> Option<u64> {
        let ((of, start), segment) = self.segments.range(..=(region, byte)).next_back()?;
        (*of == region && segment.end > byte).then_some(*start)
    }

    /// Makes a segment begin at a byte, if it lies in one.
    fn cut(&mut self, region: u64, byte: u64) {
        let Some(start) = self.at(region, byte).filter(|start| *start != byte) else { return };
        let Some(segment) = self.segments.get_mut(&(region, start)) else { return };
        let rest = Segment { end: segment.end, accesses: segment.accesses.clone() };
        segment.end = byte;
        self.segments.insert((region, byte), rest);
    }

    /// Makes one of neighbours that list the same, from the one before these bytes to the one behind.
    fn join(&mut self, region: u64, bytes: &Range<u64>) {
        let before = bytes.start.checked_sub(1).and_then(|byte| self.at(region, byte)).unwrap_or(bytes.start);
        let all = self.segments.range((region, before)..=(region, bytes.end));
        let starts: Vec<u64> = all.map(|((_, start), _)| *start).collect();
        let mut last = before;
        for &next in starts.iter().filter(|start| **start != before) {
            let alike = match (self.segments.get(&(region, last)), self.segments.get(&(region, next))) {
                (Some(a), Some(b)) => a.end == next && a.accesses == b.accesses,
                _ => false,
            };
            if !alike {
                last = next;
            } else if let Some(gone) = self.segments.remove(&(region, next))
                && let Some(segment) = self.segments.get_mut(&(region, last))
            {
                segment.end = gone.end;
            }
        }
    }

    /// Whether an access came before what `rank` does now.
    fn is_before(&self, access: &Access, rank: usize, heard: &Clock) -> bool {
        is_before(&self.fences, access, rank, heard)
    }

    /// Notes that all of `rank` that was entered so far is complete; its own clock shows `at` from here on.
    pub(super) fn fence(&mut self, rank: usize, at: u64, meetings: u64) {
        // Two threads of a rank may fence at once, and come here in either order.
        let fences = &mut self.fences[rank];
        fences.insert(fences.partition_point(|known| known.at < at), Fence { at, meetings });
        if self.fences[rank].len() < FENCES_MAX {
            return;
        }
        let fences = std::mem::take(&mut self.fences[rank]);
        let accesses = self.segments.values_mut().flat_map(|segment| &mut segment.accesses);
        for access in accesses.filter(|access| access.rank == rank) {
            access.fenced = access.fenced.or_else(|| completed(&fences, access));
        }
    }

    /// Forgets what was complete before this meeting of all ranks: all that happens now is after that.
    pub(super) fn forget(&mut self, meeting: u64) {
        let History { segments, fences, .. } = self;
        segments.retain(|_, segment| {
            segment.accesses.retain(|access| {
                let fenced = access.fenced.or_else(|| completed(&fences[access.rank], access));
                fenced.is_none_or(|fence| fence.meetings >= meeting)
            });
            !segment.accesses.is_empty()
        });
        fences.iter_mut().for_each(|fences| fences.retain(|fence| fence.meetings >= meeting));
    }
}

/// The first fence after an access.
fn completed(fences: &[Fence], access: &Access) -> Option<Fence> {
    fences.get(fences.partition_point(|fence| fence.at <= access.at)).copied()
}

fn is_before(fences: &[Vec<Fence>], access: &Access, rank: usize, heard: &Clock) -> bool {
    let fenced = || access.fenced.or_else(|| completed(&fences[access.rank], access));
    access.rank == rank || fenced().is_some_and(|fence| heard.has_heard(access.rank, fence.at))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANKS: usize = 3;

    fn touch(history: &mut History, access: Access, bytes: Range<u64>, heard: [u64; RANKS]) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        assert!(history.touch(1, bytes, access, &Clock(heard.to_vec()), &mut conflicts));
        conflicts
    }

    #[test]
    fn what_was_heard_of_is_no_conflict_and_what_was_not_is() {
        let mut history = History::new(RANKS, 100);
        let get = |rank, at| Access::new(rank, at, Verb::Get, 0, 0);
        assert!(touch(&mut history, get(0, 4), 10..20, [4, 0, 0]).is_empty());
        let put = Access::new(1, 1, Verb::Put, 1, 0);
        assert!(touch(&mut history, put, 0..10, [0, 1, 0]).is_empty(), "next to each other");
        assert_eq!(touch(&mut history, put, 5..15, [3, 1, 0])[0].bytes, 10..15);
        assert!(touch(&mut history, put, 5..15, [4, 1, 0]).is_empty());
    }

    #[test]
    fn a_put_counts_from_its_fence() {
        let mut history = History::new(RANKS, 100);
        touch(&mut history, Access::new(0, 4, Verb::Put, 0, 0), 0..8, [4, 0, 0]);
        let get = Access::new(1, 1, Verb::Get, 1, 0);
        let [found] = &touch(&mut history, get, 0..8, [4, 1, 0])[..] else { panic!("one conflict") };
        assert!(found.unfenced);
        history.fence(0, 5, 0);
        assert!(touch(&mut history, get, 0..8, [5, 1, 0]).is_empty());
        let [found] = &touch(&mut history, get, 0..8, [3, 1, 0])[..] else { panic!("one conflict") };
        assert!(!found.unfenced);
    }

    #[test]
    fn what_is_forgotten_is_what_was_complete_before_the_meeting() {
        let mut history = History::new(RANKS, 100);
        touch(&mut history, Access::new(0, 1, Verb::Put, 0, 0), 0..8, [1, 0, 0]);
        touch(&mut history, Access::new(1, 1, Verb::Get, 0, 0), 8..16, [0, 1, 0]);
        history.forget(1);
        assert_eq!(history.segments.len(), 1, "a put without a fence stays");
        history.fence(0, 2, 1);
        history.forget(1);
        assert_eq!(history.segments.len(), 1);
        history.forget(2);
        assert!(history.segments.is_empty() && history.fences[0].is_empty());
    }

    #[test]
    fn a_loop_over_elements_takes_one_segment_and_a_full_history_still_compares() {
        let mut history = History::new(RANKS, 3);
        for element in 0..100 {
            touch(&mut history, Access::new(0, 1, Verb::Put, 0, 0), 8 * element..8 * element + 8, [1, 0, 0]);
        }
        assert_eq!(history.segments.len(), 1);
        let get = Access::new(1, 1, Verb::Get, 1, 0);
        assert_eq!(touch(&mut history, get, 80..88, [0, 1, 0]).len(), 1);
        let mut conflicts = Vec::new();
        assert!(!history.touch(1, 792..900, get, &Clock::new(RANKS), &mut conflicts));
        assert_eq!(conflicts[0].bytes, 792..800);
    }

    proptest! {
        /// Whether an access conflicts with anything at all is what a list of all accesses to each byte says.
        #[test]
        fn segments_find_what_a_list_finds(
            steps in prop::collection::vec((0..RANKS, 0..6usize, 0u64..24, 0u64..12, 0u8..6, 0..RANKS), 1..60),
        ) {
            let mut history = History::new(RANKS, 1000);
            let mut list: Vec<(Range<u64>, Access)> = Vec::new();
            let mut fences = vec![Vec::new(); RANKS];
            let mut clocks = vec![Clock::new(RANKS); RANKS];
            (0..RANKS).for_each(|rank| clocks[rank].0[rank] = 1);
            for (rank, verb, start, len, event, other) in steps {
                let at = clocks[rank].0[rank];
                if event == 0 {
                    // One hears of all that another one knows.
                    let told = clocks[rank].clone();
                    clocks[other].join(&told);
                    clocks[rank].0[rank] += 1;
                    continue;
                }
                if event == 1 {
                    history.fence(rank, at + 1, 0);
                    fences[rank].push(Fence { at: at + 1, meetings: 0 });
                    clocks[rank].0[rank] += 1;
                    continue;
                }
                let (access, bytes) = (Access::new(rank, at, Verb::ALL[verb], 0, 0), start..start + len);
                let mut found = Vec::new();
                history.touch(1, bytes.clone(), access, &clocks[rank], &mut found);
                let expected = list.iter().any(|(other, earlier)| {
                    other.start.max(start) < other.end.min(start + len)
                        && earlier.verb.conflicts(access.verb)
                        && !is_before(&fences, earlier, rank, &clocks[rank])
                });
                prop_assert_eq!(!found.is_empty(), expected);
                list.push((bytes, access));
            }
        }
    }
}
