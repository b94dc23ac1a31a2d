//! Faults, for tests: a fabric that is slow, short of room, at fault or poorer than it is.
//!
//! Asked for by `ARMCI_FABRIC_FAULTS`, a list that no user needs, so that it stands in no table:
//!
//! | word | what it does |
//! |---|---|
//! | `again=PERCENT` | so many attempts to begin an operation are told to come again, in storms |
//! | `delay=US` | completions are held back, up to so many microseconds |
//! | `duplicate=PERCENT` | so many replies come a second time, late |
//! | `overtake=PERCENT` | so many requests come before those that came with them |
//! | `lost=COUNT` | of each endpoint's requests the one with this number does not arrive, as if its connection had broken |
//! | `unheard=COUNT` | of the replies to each endpoint, likewise |
//! | `deaf=RANK+COUNT` | from the first long answer to this rank on, none to it is taken for so many attempts to answer others |
//! | `fail=COUNT` | after so many completions each one is an error, as if the peer had gone |
//! | `rank=RANK` | all of the above at this rank only |
//! | `wants=local+allocated+endpoint` | the provider wants own memory registered, memory behind it, and bound to an endpoint |
//! | `lacks=delivery+wait` | it does not tell when a write is there; it has nothing to sleep over |
//! | `largest=BYTES` | the most it takes in one access |
//!
//! Where none is asked for, that costs one look at a pointer that is null.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::abi;

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    again: u64,
    delay: Duration,
    duplicate: u64,
    overtake: u64,
    lost: Option<u64>,
    unheard: Option<u64>,
    /// Which rank takes no answers, for so many attempts to answer others.
    deaf: Option<(usize, u64)>,
    fail: Option<u64>,
    rank: Option<usize>,
    /// Bits of the mode of memory.
    pub(super) wants: i32,
    pub(super) lacks_delivery: bool,
    pub(super) lacks_wait: bool,
    pub(super) largest: Option<usize>,
}

/// Attempts that are refused in a row, once one is.
const STORM: u64 = 50;
/// From so many bytes on an answer is long: joining and meeting take none such.
const LONG: usize = 8 << 10;

impl FromStr for Asked {
    type Err = ();

    fn from_str(list: &str) -> Result<Self, ()> {
        let mut asked = Asked::default();
        for word in list.split(',') {
            let (name, value) = word.split_once('=').ok_or(())?;
            let number = || value.parse::<u64>().map_err(drop);
            let percent = || number().and_then(|percent| if percent < 100 { Ok(percent) } else { Err(()) });
            match name {
                "again" => asked.again = percent()?,
                "delay" => asked.delay = Duration::from_micros(number()?),
                "duplicate" => asked.duplicate = percent()?,
                "overtake" => asked.overtake = percent()?,
                "lost" => asked.lost = Some(number()?),
                "unheard" => asked.unheard = Some(number()?),
                "deaf" => {
                    let (rank, count) = value.split_once('+').ok_or(())?;
                    asked.deaf = Some((rank.parse().map_err(drop)?, count.parse().map_err(drop)?));
                }
                "fail" => asked.fail = Some(number()?),
                "rank" => asked.rank = Some(number()? as usize),
                "largest" => asked.largest = Some(number()?.max(1) as usize),
                "wants" => {
                    for want in value.split('+') {
                        asked.wants |= match want {
                            "local" => abi::MR_LOCAL,
                            "allocated" => abi::MR_ALLOCATED,
                            "endpoint" => abi::MR_ENDPOINT,
                            _ => return Err(()),
                        };
                    }
                }
                "lacks" => {
                    for lack in value.split('+') {
                        match lack {
                            "delivery" => asked.lacks_delivery = true,
                            "wait" => asked.lacks_wait = true,
                            _ => return Err(()),
                        }
                    }
                }
                _ => return Err(()),
            }
        }
        Ok(asked)
    }
}

/// The faults of one endpoint.
#[derive(Debug)]
pub(super) struct Faults {
    asked: Asked,
    random: AtomicU64,
    /// Attempts still to be refused in this storm.
    storm: AtomicU64,
    /// Completions so far.
    completions: AtomicU64,
    /// Attempts to answer others since a rank is deaf, and one; 0 before.
    others: AtomicU64,
    /// Requests and replies so far.
    sent: AtomicU64,
    heard: AtomicU64,
    began: Instant,
    /// When completions are let through again, in microseconds since then.
    next: AtomicU64,
}

impl Faults {
    /// Those of rank `rank`, if it is to have some; `seed` is another number for each endpoint.
    pub(super) fn of(asked: &Asked, rank: usize, seed: u64) -> Option<Box<Self>> {
        let Asked { again, delay, duplicate, overtake, lost, unheard, deaf, fail, .. } = *asked;
        let quiet = (again, delay, duplicate, overtake) == (0, Duration::ZERO, 0, 0);
        let quiet = quiet && (lost, unheard, deaf, fail) == (None, None, None, None);
        let mine = asked.rank.is_none_or(|one| one == rank);
        (mine && !quiet).then(|| {
            Box::new(Faults {
                asked: asked.clone(),
                random: AtomicU64::new(seed | 1),
                storm: AtomicU64::new(0),
                completions: AtomicU64::new(0),
                others: AtomicU64::new(0),
                sent: AtomicU64::new(0),
                heard: AtomicU64::new(0),
                began: Instant::now(),
                next: AtomicU64::new(0),
            })
        })
    }

    /// Whether something happens that does so many times in a hundred.
    fn happens(&self, percent: u64) -> bool {
        // George Marsaglia's xorshift; two threads that draw the same number do no harm.
        let mut word = self.random.load(Ordering::Relaxed);
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.random.store(word, Ordering::Relaxed);
        word % 100 < percent
    }

    /// Whether an attempt is told to come again.
    pub(super) fn refuses(&self) -> bool {
        let left = self.storm.load(Ordering::Relaxed);
        if left != 0 {
            self.storm.store(left - 1, Ordering::Relaxed);
            return true;
        }
        // A storm is as many refusals as so many attempts would meet.
        let begins = self.asked.again != 0 && self.happens(self.asked.again.div_ceil(STORM));
        if begins {
            self.storm.store(STORM, Ordering::Relaxed);
        }
        begins
    }

    /// Whether completions are held back now.
    pub(super) fn holds_back(&self) -> bool {
        if self.asked.delay.is_zero() {
            return false;
        }
        let now = self.began.elapsed().as_micros() as u64;
        if now < self.next.load(Ordering::Relaxed) {
            return true;
        }
        self.next.store(now + self.asked.delay.as_micros() as u64, Ordering::Relaxed);
        false
    }

    /// Counts completions; whether the fabric is at fault from now on.
    pub(super) fn fails(&self, completions: usize) -> bool {
        let so_far = self.completions.fetch_add(completions as u64, Ordering::Relaxed) + completions as u64;
        self.asked.fail.is_some_and(|limit| so_far > limit)
    }

    /// Whether an answer of so many bytes to this rank is not taken now.
    pub(super) fn withholds(&self, rank: usize, bytes: usize) -> bool {
        let Some((deaf, count)) = self.asked.deaf else { return false };
        let others = self.others.load(Ordering::Relaxed);
        if rank != deaf {
            self.others.store(others + u64::from(others != 0), Ordering::Relaxed);
            return false;
        }
        if others == 0 && bytes >= LONG {
            self.others.store(1, Ordering::Relaxed);
        }
        (1..=count).contains(&self.others.load(Ordering::Relaxed))
    }

    /// Counts requests; whether this one is lost.
    pub(super) fn loses_request(&self) -> bool {
        self.asked.lost.is_some_and(|number| self.sent.fetch_add(1, Ordering::Relaxed) + 1 == number)
    }

    /// Counts replies; whether this one is lost.
    pub(super) fn loses_reply(&self) -> bool {
        self.asked.unheard.is_some_and(|number| self.heard.fetch_add(1, Ordering::Relaxed) + 1 == number)
    }

    /// Whether a request comes before others.
    pub(super) fn overtakes(&self) -> bool {
        self.asked.overtake != 0 && self.happens(self.asked.overtake)
    }

    /// Whether a reply comes twice.
    pub(super) fn comes_twice(&self) -> bool {
        self.asked.duplicate != 0 && self.happens(self.asked.duplicate)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_understood_or_refused() {
        let asked: Asked =
            "again=30,delay=100,overtake=5,lost=7,wants=local+endpoint,lacks=wait,largest=5000,rank=1".parse().unwrap();
        assert_eq!((asked.again, asked.delay, asked.rank), (30, Duration::from_micros(100), Some(1)));
        assert_eq!(asked.wants, abi::MR_LOCAL | abi::MR_ENDPOINT);
        assert!(asked.lacks_wait && !asked.lacks_delivery);
        assert_eq!((asked.overtake, asked.lost, asked.unheard, asked.largest), (5, Some(7), None, Some(5000)));
        for wrong in ["", "again", "again=100", "again=x", "wants=more", "lacks=", "sleep=1", "deaf=1", "deaf=+2"] {
            assert!(wrong.parse::<Asked>().is_err(), "{wrong}");
        }
        assert!(Faults::of(&asked, 0, 1).is_none() && Faults::of(&asked, 1, 1).is_some());
        assert!(Faults::of(&"largest=5".parse().unwrap(), 1, 1).is_none(), "none but a poorer provider");
    }

    #[test]
    fn a_deaf_rank_waits_for_others() {
        let faults = Faults::of(&"deaf=2+2".parse().unwrap(), 0, 7).unwrap();
        let told = [(2, 10), (1, LONG), (2, LONG), (2, 10), (1, 10), (2, 10), (1, 10), (2, LONG)];
        let withheld = told.map(|(rank, bytes)| faults.withholds(rank, bytes));
        assert_eq!(withheld, [false, false, true, true, false, true, false, false]);
    }

    #[test]
    fn storms_come_and_end() {
        let faults = Faults::of(&"again=50".parse().unwrap(), 0, 7).unwrap();
        let refused = (0..100_000).filter(|_| faults.refuses()).count();
        assert!((10_000..60_000).contains(&refused), "{refused}");
        let faults = Faults::of(&"fail=3".parse().unwrap(), 0, 7).unwrap();
        assert_eq!([faults.fails(2), faults.fails(1), faults.fails(1)], [false, false, true]);
    }
}
