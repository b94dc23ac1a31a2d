//! Doubts: what a line does about answers that stay away.
//!
//! A connection that breaks takes with it what was under way in it, and a provider that had let go of that says nothing. So who
//! has waited for an answer for a second asks its target whether anything of this context is there.
//!
//! | the target | says | and who waits |
//! |---|---|---|
//! | cannot be reached | nothing, but the provider does | gives up |
//! | takes no question for [`REFUSED`], over tcp | nothing: a connection that was there cannot be had any more | gives up |
//! | has something: it computes, others come first, it fetches | nothing | asks again, at last every minute; [`MOST`] times unless over tcp |
//! | has nothing | so | asks again a second later, and gives up after [`ROUNDS`] such answers in a row |
//!
//! In rounds, since the request or its answer may be on its way still: each begins when the one before was answered, so the
//! target has looked at its queue again between them. The answer ends the doubt.
//!
//! Over tcp a small message is refused only where there is no connection, and what a silent target does not read lies in its
//! kernel. Other providers may mean that the target is behind, and have less room.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::node::message::REQUEST_SLOTS;

/// The first wait, and that between rounds.
const SECOND: Duration = Duration::from_secs(1);
/// Between questions, at most.
const MINUTE: Duration = Duration::from_secs(60);
/// Answers in a row that nothing is there.
const ROUNDS: u32 = 4;
/// Questions that a silent target gets at most, where they may take room from others.
const MOST: u32 = 12;
/// How long a question is refused at most, over so many attempts at least: the processor may have been with others.
const REFUSED: (Duration, u32) = (Duration::from_secs(4), 1000);

/// Of one use of a slot.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// The use.
    turn: u16,
    /// Names the round.
    round: u16,
    /// Rounds that were answered.
    answered: u32,
    /// When it was asked last, or the wait for the next question began.
    since: Instant,
    pause: Duration,
    /// Questions in this round.
    asked: u32,
    /// Since when questions are not taken, and how many were not.
    refused: Option<(Instant, u32)>,
}

/// The doubts of a line.
#[derive(Debug)]
pub(super) struct Doubts {
    slots: [Cell<Option<Doubt>>; REQUEST_SLOTS],
    /// Rounds that have begun.
    rounds: Cell<u16>,
    /// Whether they go over tcp.
    over_tcp: bool,
}

/// What is to be done about a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Wait,
    /// To ask, in this round.
    Ask(u16),
    GiveUp(&'static str),
}

impl Doubts {
    pub(super) fn new(over_tcp: bool) -> Self {
        Doubts { slots: [const { Cell::new(None) }; REQUEST_SLOTS], rounds: Cell::new(0), over_tcp }
    }

    fn round(&self) -> u16 {
        self.rounds.set(self.rounds.get().wrapping_add(1));
        self.rounds.get()
    }

    /// What is to be done about a use of a slot whose answer has not come by `now`.
    pub(super) fn consider(&self, slot: usize, turn: u16, now: Instant) -> Then {
        match self.slots[slot].get().filter(|doubt| doubt.turn == turn) {
            None => {
                let doubt = Doubt {
                    turn,
                    round: self.round(),
                    answered: 0,
                    since: now,
                    pause: SECOND,
                    asked: 0,
                    refused: None,
                };
                self.slots[slot].set(Some(doubt));
                Then::Wait
            }
            Some(doubt) if now.saturating_duration_since(doubt.since) < doubt.pause => Then::Wait,
            Some(doubt) if doubt.asked >= MOST && !self.over_tcp => Then::Wait,
            Some(doubt) => Then::Ask(doubt.round),
        }
    }

    /// A question about a slot was taken by the provider, or was not.
    pub(super) fn asked(&self, slot: usize, taken: bool, now: Instant) -> Then {
        let Some(mut doubt) = self.slots[slot].get() else { return Then::Wait };
        if taken {
            (doubt.since, doubt.pause) = (now, (doubt.pause * 2).min(MINUTE));
            (doubt.asked, doubt.refused) = (doubt.asked + 1, None);
        } else if self.over_tcp {
            let (first, times) = doubt.refused.unwrap_or((now, 0));
            doubt.refused = Some((first, times + 1));
            let (long, often) = REFUSED;
            if times + 1 >= often && now.saturating_duration_since(first) >= long {
                return Then::GiveUp("it takes nothing any more, and a request to it was not answered");
            }
        }
        self.slots[slot].set(Some(doubt));
        Then::Wait
    }

    /// The slot has its answer.
    pub(super) fn end(&self, slot: usize) {
        self.slots[slot].set(None);
    }

    /// The target says that nothing is there.
    pub(super) fn answered(&self, slot: usize, turn: u16, round: u16, now: Instant) -> Then {
        let known = |doubt: &Doubt| (doubt.turn, doubt.round) == (turn, round);
        let Some(doubt) = self.slots[slot].get().filter(known) else { return Then::Wait };
        let answered = doubt.answered + 1;
        if answered >= ROUNDS {
            return Then::GiveUp("a request to it, or the answer, was lost: a connection has broken");
        }
        self.slots[slot].set(Some(Doubt {
            round: self.round(),
            answered,
            since: now,
            pause: SECOND,
            asked: 0,
            refused: None,
            ..doubt
        }));
        Then::Wait
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_has_nothing_is_asked_again_and_then_given_up() {
        let (doubts, start) = (Doubts::new(true), Instant::now());
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut now = 0.0;
        assert_eq!(doubts.consider(3, 9, at(now)), Then::Wait);
        for round in 1..=ROUNDS {
            assert_eq!(doubts.consider(3, 9, at(now + 0.9)), Then::Wait);
            now += 1.0;
            let Then::Ask(name) = doubts.consider(3, 9, at(now)) else { panic!("round {round}") };
            assert_eq!(doubts.asked(3, true, at(now)), Then::Wait);
            // What answers another use, or another round, is of no account.
            assert_eq!(doubts.answered(3, 8, name, at(now)), Then::Wait);
            assert_eq!(doubts.answered(3, 9, name.wrapping_sub(1), at(now)), Then::Wait);
            let then = doubts.answered(3, 9, name, at(now));
            assert_eq!(matches!(then, Then::GiveUp(_)), round == ROUNDS, "{round}");
        }
        // Another use of the slot begins anew.
        assert_eq!(doubts.consider(3, 10, at(now + 100.0)), Then::Wait);
    }

    #[test]
    fn who_is_silent_is_asked_ever_more_seldom() {
        let (doubts, start) = (Doubts::new(true), Instant::now());
        let mut questions = 0;
        for second in 0..3600 {
            let now = start + Duration::from_secs(second);
            if let Then::Ask(_) = doubts.consider(0, 1, now) {
                assert_eq!(doubts.asked(0, true, now), Then::Wait);
                questions += 1;
            }
        }
        assert!((60..70).contains(&questions), "{questions}");
        // Where they may take room from others it gets a few.
        let doubts = Doubts::new(false);
        let asks = |second| matches!(doubts.consider(0, 1, start + Duration::from_secs(second)), Then::Ask(_));
        let taken = (0..3600)
            .filter(|second| asks(*second))
            .map(|second| doubts.asked(0, true, start + Duration::from_secs(second)));
        assert_eq!(taken.count(), MOST as usize);
    }

    #[test]
    fn who_takes_no_question_is_given_up_after_a_while() {
        let (doubts, start) = (Doubts::new(true), Instant::now());
        assert_eq!(doubts.consider(0, 1, start), Then::Wait);
        // However late the first is.
        let now = |attempt: u32| start + MINUTE + Duration::from_millis(5) * attempt;
        let given_up = (0..2000).find(|attempt| {
            assert!(matches!(doubts.consider(0, 1, now(*attempt)), Then::Ask(_)));
            doubts.asked(0, false, now(*attempt)) != Then::Wait
        });
        assert_eq!(given_up, Some(999), "after a thousand attempts in five seconds");
        // Elsewhere that may mean that the target is behind.
        let doubts = Doubts::new(false);
        assert_eq!(doubts.consider(0, 1, start), Then::Wait);
        assert!((0..2000).all(|attempt| doubts.asked(0, false, now(attempt)) == Then::Wait));
    }
}
