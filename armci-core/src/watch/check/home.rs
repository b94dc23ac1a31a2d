//! What a rank keeps for the checker, and answers when others ask.
//!
//! Of its own memory: who touched it ([`History`]). Of what lies with it that ranks hear of each other by: what they
//! have told there. And the first rank: which conflicts were found.
//!
//! *Bounded.* What was told at words before the last meeting but one of all ranks has been heard by everybody, and is
//! dropped; if there are too many words nevertheless, the rest share one clock, by which ranks hear too much and not too
//! little. What was told at a collective call is dropped once all have heard it, a message's clock with the message.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use super::history::{Access, Clock, Conflict, History};
use super::request::{Meeting, Request, Site, Writer};

/// Segments of a rank's memory: about 40 MiB.
const SEGMENTS_MAX: usize = 1 << 18;
/// Words with a clock of their own.
const WORDS_MAX: usize = 1 << 14;
/// Conflicts that one answer tells.
const TOLD_MAX: usize = 24;

/// What was told at a word.
#[derive(Debug)]
struct Word {
    heard: Clock,
    /// When it was told last, in meetings of all ranks.
    meetings: u64,
}

/// What was told at a collective call.
#[derive(Debug)]
struct Round {
    heard: Clock,
    /// Who has heard it.
    left: u64,
}

/// What is found in one pair of places.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) pairs: BTreeMap<(Site, Site), u64>,
    pub(super) accesses: u64,
    pub(super) not_kept: u64,
}

/// What a rank keeps.
#[derive(Debug)]
pub(super) struct Home {
    ranks: usize,
    history: History,
    sites: Vec<Site>,
    words: HashMap<(u64, u64), Word>,
    /// Of the words that there is no room for.
    other_words: Clock,
    rounds: HashMap<(u64, u64), Round>,
    letters: HashMap<(u64, i64), VecDeque<Clock>>,
    /// What has been told with messages to this rank's handlers.
    pub(super) handlers: Clock,
    pub(super) findings: Findings,
}

impl Home {
    pub(super) fn new(ranks: usize) -> Self {
        Home {
            ranks,
            history: History::new(ranks, SEGMENTS_MAX),
            sites: Vec::new(),
            words: HashMap::new(),
            other_words: Clock::new(ranks),
            rounds: HashMap::new(),
            letters: HashMap::new(),
            handlers: Clock::new(ranks),
            findings: Findings::default(),
        }
    }

    /// Answers rank `source`.
    pub(super) fn answer(&mut self, source: usize, request: Request) -> Result<Vec<u8>, String> {
        let mut answer = Writer::default();
        match request {
            Request::Touch { site, at, meetings, heard, region, bytes } => {
                self.touch(&mut answer, source, (site, at, meetings), &heard, region, &bytes)?;
            }
            Request::Word { site, at, meetings, mut heard, region, bytes, hears, tells } => {
                let place = (region, bytes.start);
                if hears {
                    heard.join(self.word(place));
                }
                answer.words(&heard.0);
                self.touch(&mut answer, source, (site, at, meetings), &heard, region, &[bytes])?;
                if tells {
                    self.tell_word(place, &heard, meetings);
                }
            }
            Request::Tell { meeting, meetings, heard } => self.tell(meeting, heard, meetings),
            Request::Hear { meeting } => {
                answer.words(&self.hear(meeting).0);
            }
            Request::Fence { at, meetings } => self.history.fence(self.member(source)?, at, meetings),
            Request::Found { first, second } => {
                let pair = if first <= second { (first, second) } else { (second, first) };
                let count = self.findings.pairs.entry(pair).or_insert(0);
                *count += 1;
                answer.word(u64::from(*count == 1));
            }
            Request::Total { accesses, not_kept } => {
                self.findings.accesses += accesses;
                self.findings.not_kept += not_kept;
            }
        }
        Ok(answer.0)
    }

    fn member(&self, source: usize) -> Result<usize, String> {
        if source < self.ranks { Ok(source) } else { Err(format!("there is no rank {source} here")) }
    }

    fn touch(
        &mut self,
        answer: &mut Writer,
        source: usize,
        (site, at, meetings): (Site, u64, u64),
        heard: &Clock,
        region: u64,
        bytes: &[Range<u64>],
    ) -> Result<(), String> {
        let (rank, verb) = (self.member(source)?, site.verb);
        let number = self.sites.iter().position(|known| *known == site).unwrap_or_else(|| {
            self.sites.push(site);
            self.sites.len() - 1
        });
        let access = Access::new(rank, at, verb, number, meetings);
        let mut conflicts = Vec::new();
        let mut kept = true;
        for bytes in bytes {
            kept &= self.history.touch(region, bytes.clone(), access, heard, &mut conflicts);
        }
        answer.word(u64::from(kept));
        for Conflict { earlier, bytes, unfenced } in conflicts.iter().take(TOLD_MAX) {
            answer.conflict(earlier.rank, &self.sites[earlier.site], bytes, *unfenced);
        }
        Ok(())
    }

    fn word(&self, place: (u64, u64)) -> &Clock {
        self.words.get(&place).map_or(&self.other_words, |word| &word.heard)
    }

    fn tell_word(&mut self, place: (u64, u64), heard: &Clock, meetings: u64) {
        if self.words.len() >= WORDS_MAX && !self.words.contains_key(&place) {
            self.other_words.join(heard);
            return;
        }
        // What was told here when there was no room is among what was told at the others.
        let others = &self.other_words;
        let word = self.words.entry(place).or_insert_with(|| Word { heard: others.clone(), meetings });
        word.heard.join(heard);
        word.meetings = word.meetings.max(meetings);
    }

    fn tell(&mut self, meeting: Meeting, heard: Clock, meetings: u64) {
        match meeting {
            Meeting::Word(region, offset) => self.tell_word((region, offset), &heard, meetings),
            Meeting::Collective(which, number, _) => {
                let ranks = self.ranks;
                let round = || Round { heard: Clock::new(ranks), left: 0 };
                self.rounds.entry((which, number)).or_insert_with(round).heard.join(&heard);
            }
            Meeting::Letters(source, tag) => self.letters.entry((source, tag)).or_default().push_back(heard),
            Meeting::Handlers => self.handlers.join(&heard),
        }
    }

    fn hear(&mut self, meeting: Meeting) -> Clock {
        let nothing = Clock::new(self.ranks);
        match meeting {
            Meeting::Word(region, offset) => self.word((region, offset)).clone(),
            Meeting::Collective(which, number, members) => {
                let Some(round) = self.rounds.get_mut(&(which, number)) else { return nothing };
                round.left += 1;
                if round.left < members {
                    return round.heard.clone();
                }
                self.rounds.remove(&(which, number)).map_or(nothing, |round| round.heard)
            }
            Meeting::Letters(source, tag) => {
                let Some(queue) = self.letters.get_mut(&(source, tag)) else { return nothing };
                let heard = queue.pop_front();
                if queue.is_empty() {
                    self.letters.remove(&(source, tag));
                }
                heard.unwrap_or(nothing)
            }
            Meeting::Handlers => self.handlers.clone(),
        }
    }

    /// Drops what everybody has heard of, once this meeting of all ranks is over for everybody.
    pub(super) fn forget(&mut self, meeting: u64) {
        self.history.forget(meeting);
        self.words.retain(|_, word| word.meetings >= meeting);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_collective_call_is_dropped_once_all_have_heard() {
        let mut home = Home::new(2);
        let call = Meeting::Collective(0, 5, 2);
        home.tell(call, Clock(vec![3, 0]), 0);
        home.tell(call, Clock(vec![0, 4]), 0);
        assert_eq!(home.hear(call), Clock(vec![3, 4]));
        assert_eq!(home.hear(call), Clock(vec![3, 4]));
        assert!(home.rounds.is_empty());
    }

    #[test]
    fn each_message_brings_its_own_clock() {
        let mut home = Home::new(2);
        let letters = Meeting::Letters(1, -7);
        home.tell(letters, Clock(vec![0, 1]), 0);
        home.tell(letters, Clock(vec![0, 2]), 0);
        assert_eq!(home.hear(letters), Clock(vec![0, 1]));
        assert_eq!(home.hear(letters), Clock(vec![0, 2]));
        assert!(home.letters.is_empty());
        assert_eq!(home.hear(letters), Clock::new(2));
    }

    #[test]
    fn words_without_room_share_a_clock_and_old_ones_are_dropped() {
        let mut home = Home::new(1);
        for word in 0..=WORDS_MAX as u64 {
            home.tell(Meeting::Word(0, word), Clock(vec![word]), 3);
        }
        let last = Meeting::Word(0, WORDS_MAX as u64);
        assert_eq!(home.hear(last), Clock(vec![WORDS_MAX as u64]));
        home.forget(3);
        assert_eq!(home.hear(Meeting::Word(0, 7)), Clock(vec![7]));
        home.forget(4);
        assert!(home.words.is_empty());
    }
}
