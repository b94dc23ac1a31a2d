//! Hosts whose network is slow, loses some of what is sent, or goes away: the first two change no result, the last ends
//! the job, soon and by name, and leaves nothing behind.

use std::time::Duration;

use tests::Ranks;
use tests::relay::Weather;
use tests::sample::everything;

/// Two lines lie between any two hosts, so a question and its answer take 4 to 8 ms, and one of thirteen of them is lost
/// somewhere on the way.
const BAD: Weather = Weather { delay: Duration::from_millis(1), jitter: Duration::from_millis(1), loss: 2.0 };

#[test]
fn nothing_changes_when_lines_are_slow_and_lose_some() {
    for (ranks, hosts, progress) in [(2, 2, "thread"), (4, 2, "none"), (3, 3, "thread")] {
        let job = Ranks::new(ranks).hosts(hosts).weather(BAD).env("ARMCI_PROGRESS", progress);
        job.timeout(Duration::from_secs(150)).run(everything);
    }
}
