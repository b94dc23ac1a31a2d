//! The report of `ARMCI_STATS=1`, as people read it.

use std::fmt::{self, Write as _};

use super::Kind;
use super::summary::{Served, Share, Summary};
use super::tally::{Place, RegionTally, Tally};

/// Regions that have a line of their own.
const LISTED: usize = 12;
/// Kinds of calls that move data to or from one rank, and go one way or another.
const TRANSFERS: [Kind; 5] = [Kind::Put, Kind::Get, Kind::Accumulate, Kind::Rmw, Kind::Notify];
/// Kinds that concern one rank, but have one way only.
const PAIRWISE: [Kind; 4] = [Kind::Wait, Kind::Message, Kind::Send, Kind::Receive];

/// The report.
pub(crate) fn text(summary: &Summary) -> String {
    let Summary { nodes, node, first_rank, shares, .. } = summary;
    let ranks = Count(shares.len() as u64, "rank");
    let lasted = Time(shares.iter().map(|share| share.nanoseconds).max().unwrap_or(0));
    let mut report = match nodes {
        1 => format!("armci: what {ranks} did in {lasted}\n"),
        _ => format!("armci: what {ranks} of node {node} of {nodes}, from rank {first_rank} on, did in {lasted}\n"),
    };
    operations(&mut report, summary);
    regions(&mut report, summary);
    served(&mut report, &summary.served);
    rest(&mut report, summary);
    report
}

/// The cells behind a row's name: what was moved which way, between nodes too if there are several, and how long calls
/// took.
fn cells(tally: &Tally, nodes: bool, sides: bool, ways: bool) -> Vec<String> {
    let only = |there: bool, number: u64| if there { Number(number).to_string() } else { "-".into() };
    let mut cells = vec![
        Number(tally.calls).to_string(),
        if tally.bytes == 0 { "-".into() } else { Bytes(tally.bytes).to_string() },
        only(sides, tally.to_itself),
        only(sides, tally.calls - tally.to_itself),
    ];
    cells.extend(nodes.then(|| only(sides, tally.beyond)));
    cells.extend([only(ways, tally.direct), only(ways, tally.calls - tally.direct)]);
    cells.extend(times(tally));
    cells
}

const MOVED: [&str; 4] = ["calls", "bytes", "to itself", "to others"];
const BEYOND: [&str; 1] = ["to other nodes"];
const WAYS: [&str; 2] = ["by access", "by message"];
const LASTED: [&str; 4] = ["p50", "p99", "longest", "all together"];

fn times(tally: &Tally) -> [String; 4] {
    let times = &tally.times;
    let of = |time: u64| if tally.calls == 0 { "-".into() } else { Time(time).to_string() };
    [of(times.percentile(50)), of(times.percentile(99)), of(times.longest()), of(times.total())]
}

/// A row of names.
fn heading(first: &str, others: &[&[&str]]) -> Vec<String> {
    std::iter::once(&first).chain(others.iter().copied().flatten()).map(|name| (*name).to_owned()).collect()
}

fn operations(report: &mut String, summary: &Summary) {
    let nodes = summary.nodes > 1;
    let mut rows = vec![heading("operation", &[&MOVED, &BEYOND[..usize::from(nodes)], &WAYS, &LASTED])];
    for (kind, tally) in summary.counts.kinds.iter().enumerate().filter(|(_, tally)| tally.calls != 0) {
        let among = |kinds: &[Kind]| kinds.iter().any(|other| *other as usize == kind);
        let (ways, pairwise) = (among(&TRANSFERS), among(&PAIRWISE));
        rows.push(row(Kind::NAMES[kind].into(), cells(tally, nodes, ways || pairwise, ways)));
    }
    table(report, &rows);
}

fn regions(report: &mut String, summary: &Summary) {
    let mut regions: Vec<&RegionTally> = summary.counts.regions().collect();
    regions.sort_by_key(|region| {
        let busy = (region.all.bytes, region.all.calls, region.size);
        (region.place == Place::FURTHER, std::cmp::Reverse(busy), region.place)
    });
    if regions.is_empty() {
        return;
    }
    let names = TRANSFERS.map(|kind| Kind::NAMES[kind as usize]);
    let nodes = summary.nodes > 1;
    let mut rows = vec![heading("region", &[&["size"], &MOVED, &BEYOND[..usize::from(nodes)], &WAYS, &LASTED, &names])];
    let line = |name: String, region: &RegionTally| {
        let mut cells = cells(&region.all, nodes, true, true);
        cells.insert(0, Bytes(region.size).to_string());
        cells.extend(TRANSFERS.map(|kind| Number(region.kinds[kind as usize]).to_string()));
        row(name, cells)
    };
    let own_line = regions.len().min(LISTED)
        - usize::from(regions.len() <= LISTED && regions.last().is_some_and(|last| last.place == Place::FURTHER));
    let (listed, others) = regions.split_at(own_line);
    for region in listed {
        let name = match region.place.owner {
            Place::EVERYBODY => region.place.region().to_string(),
            rank => format!("{} of rank {rank}", region.place.region()),
        };
        rows.push(line(name, region));
    }
    if let Some((first, others)) = others.split_first() {
        let sum = others.iter().fold(**first, |mut sum, region| {
            sum.merge(region);
            sum
        });
        let further = others.last().unwrap_or(first).place == Place::FURTHER;
        let name = if further { "all others".into() } else { Count(others.len() as u64 + 1, "other").to_string() };
        rows.push(line(name, &sum));
    }
    table(report, &rows);
}

fn served(report: &mut String, served: &Served) {
    let [by_thread, by_waiters] = served.totals();
    if by_thread + by_waiters == 0 {
        report.push_str("  no messages were served\n");
        return;
    }
    let by = ["calls", "by progress threads", "by waiting threads", "bytes"];
    let mut rows = vec![heading("served", &[&by, &LASTED])];
    for (name, [thread, waiters]) in served.kinds() {
        let mut both = *thread;
        both.merge(waiters);
        if both.calls == 0 {
            continue;
        }
        let mut cells: Vec<String> = [both.calls, thread.calls, waiters.calls].map(|n| Number(n).to_string()).into();
        cells.push(Bytes(both.bytes).to_string());
        cells.extend(times(&both));
        rows.push(row(name.into(), cells));
    }
    table(report, &rows);
}

fn rest(report: &mut String, summary: &Summary) {
    let Summary { shares, .. } = summary;
    let sum = |number: fn(&Share) -> u64| Number(shares.iter().map(number).sum());
    let spread = |number: fn(&Share) -> u64| {
        let (least, most) =
            (shares.iter().map(number).min().unwrap_or(0), shares.iter().map(number).max().unwrap_or(0));
        format!("{} to {}", Time(least), Time(most))
    };
    let most = |number: fn(&Share) -> u64| Bytes(shares.iter().map(number).max().unwrap_or(0));
    let lines = [
        format!(
            "progress threads: {} rounds, {} of them fruitful; {} times asleep",
            sum(|share| share.rounds),
            sum(|share| share.fruitful),
            sum(|share| share.parks)
        ),
        format!(
            "order: {} waits, {} avoided, {} false ones; fences that found messages to wait for: {}",
            sum(|share| share.waits),
            sum(|share| share.avoided),
            sum(|share| share.false_waits),
            sum(|share| share.fences)
        ),
        format!(
            "region cache: {} hits, {} misses, {} evictions",
            sum(|share| share.hits),
            sum(|share| share.misses),
            sum(|share| share.evictions)
        ),
        format!("memory: {} granted at the end, {} at most", most(|share| share.granted), most(|share| share.peak)),
        format!("threads that attached: {}", sum(|share| share.threads)),
        format!(
            "a rank spent in these calls {}, in barriers {}",
            spread(|share| share.in_calls),
            spread(|share| share.in_barriers)
        ),
    ];
    lines.iter().for_each(|line| report.push_str(&format!("  {line}\n")));
}

fn row(name: String, mut cells: Vec<String>) -> Vec<String> {
    cells.insert(0, name);
    cells
}

/// Writes rows with their columns below each other: the first flush left, the others flush right.
fn table(to: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    for row in rows {
        let _ = write!(to, "  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(to, "  {cell:>width$}");
        }
        to.push('\n');
    }
    to.push('\n');
}

/// So many of something.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, what) = self;
        write!(f, "{} {what}{}", Number(*number), if *number == 1 { "" } else { "s" })
    }
}

/// A number in groups of three digits.
struct Number(u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let (first, rest) = digits.split_at((digits.len() - 1) % 3 + 1);
        f.write_str(first)?;
        rest.as_bytes().chunks(3).try_for_each(|group| write!(f, ",{}", String::from_utf8_lossy(group)))
    }
}

/// Bytes, exactly if they are few.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 10_000 {
            return write!(f, "{} B", Number(self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1000.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", units[unit])
    }
}

/// Nanoseconds, in a unit that suits them.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{time} ns"),
            1_000..1_000_000 => write!(f, "{:.1} us", time / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", time / 1e6),
            _ => write!(f, "{:.2} s", time / 1e9),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(|n| Number(n).to_string()), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2].map(|n| Count(n, "rank").to_string()), ["1 rank", "2 ranks"]);
        assert_eq!(
            [0, 9_999, 10_240, 1 << 20, 5 << 30].map(|n| Bytes(n).to_string()),
            ["0 B", "9,999 B", "10.0 KiB", "1.0 MiB", "5.0 GiB"]
        );
        assert_eq!(
            [0, 999, 1_500, 2_000_000, 3_210_000_000].map(|n| Time(n).to_string()),
            ["0 ns", "999 ns", "1.5 us", "2.0 ms", "3.21 s"]
        );
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut text = String::new();
        let rows = [["a", "b"], ["long", "1,000"]].map(|row| row.map(String::from).to_vec());
        table(&mut text, &rows);
        assert_eq!(text, "  a         b\n  long  1,000\n\n");
    }
}
