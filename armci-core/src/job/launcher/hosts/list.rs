//! Which hosts there are, and which ranks each gets: read from `a:2,b:2` or a file, dealt in blocks of consecutive ranks.
//!
//! Guaranteed: a host is one entry, however often it was named; each host that is used has at least one rank; no host
//! gets more ranks than the slots it was said to have.

use std::ops::Range;

use crate::error::{Error, Result};

/// One host of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// How many ranks it takes, if that was said.
    pub(super) slots: Option<usize>,
}

/// Reads `a:2,b:2`; the numbers may be left out.
pub(super) fn parse_list(text: &str) -> Result<Vec<Entry>> {
    merge(text.split(',').map(|word| entry(word.trim(), None)))
}

/// Reads a file's lines: a name and, if it is said, its slots (`a`, `a 2`, `a:2`, `a slots=2`); `#` begins a comment.
pub(super) fn parse_file(text: &str) -> Result<Vec<Entry>> {
    let lines =
        text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty());
    merge(lines.map(|line| {
        let mut words = line.split_whitespace();
        let (name, slots) = (words.next().unwrap_or_default(), words.next());
        match words.next() {
            None => entry(name, slots.map(|slots| slots.strip_prefix("slots=").unwrap_or(slots))),
            Some(more) => {
                Err(Error::Argument(format!("{more:?} is too much in the line {line:?} of the list of hosts")))
            }
        }
    }))
}

/// One host; a name that contains colons itself stands in brackets if slots follow.
fn entry(text: &str, slots: Option<&str>) -> Result<Entry> {
    let (name, slots) = match (text.rsplit_once(':'), slots) {
        (Some((name, slots)), None) if !name.contains(':') || name.ends_with(']') => (name, Some(slots)),
        _ => (text, slots),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    // The remote shell would take it for an option.
    if name.is_empty() || name.starts_with('-') || name.chars().any(char::is_whitespace) {
        return Err(Error::Argument(format!("{text:?} is no host's name; a list of hosts reads like a:2,b:2")));
    }
    let slots = match slots.map(|slots| (slots, slots.parse())) {
        None => None,
        Some((_, Ok(slots))) if slots > 0 => Some(slots),
        Some((slots, _)) => {
            let what = format!("host {name} is said to have {slots:?} slots: it must be a number from 1");
            return Err(Error::Argument(what));
        }
    };
    Ok(Entry { name: name.to_owned(), slots })
}

/// One entry a host. Slots add up; who was once named without has none.
fn merge(entries: impl Iterator<Item = Result<Entry>>) -> Result<Vec<Entry>> {
    let mut merged: Vec<Entry> = Vec::new();
    for next in entries {
        let next = next?;
        match merged.iter_mut().find(|entry| entry.name == next.name) {
            Some(entry) => entry.slots = entry.slots.zip(next.slots).map(|(one, other)| one.saturating_add(other)),
            None => merged.push(next),
        }
    }
    if merged.is_empty() {
        return Err(Error::Argument("the list of hosts is empty".into()));
    }
    Ok(merged)
}

/// Which ranks each host gets. Slots are filled in the order of the list; hosts without a number share evenly what those
/// with one leave over. Hosts that get no rank are left out, but only behind slots that sufficed.
pub(super) fn deal(entries: &[Entry], ranks: usize) -> Result<Vec<(&str, Range<usize>)>> {
    let offered = entries.iter().filter_map(|entry| entry.slots).fold(0, usize::saturating_add);
    let open = entries.iter().filter(|entry| entry.slots.is_none()).count();
    let left = ranks.saturating_sub(offered);
    let list = || entries.iter().map(show).collect::<Vec<_>>().join(", ");
    if open == 0 && left > 0 {
        return Err(Error::Argument(format!(
            "{ranks} ranks were asked for, but the hosts have {offered} slots ({}): ask for fewer ranks, or name more \
             hosts or slots",
            list()
        )));
    }
    if open > left {
        return Err(Error::Argument(format!(
            "{ranks} ranks are too few for these hosts ({}): each host without a number of slots gets at least one rank, \
             and {left} are left for {open} of them",
            list()
        )));
    }
    let (mut next, mut opened) = (0, 0);
    let mut dealt = Vec::new();
    for entry in entries {
        let share = entry.slots.unwrap_or_else(|| {
            opened += 1;
            left * opened / open - left * (opened - 1) / open
        });
        let end = ranks.min(next + share.min(ranks));
        if end > next {
            dealt.push((entry.name.as_str(), next..end));
        }
        next = end;
    }
    Ok(dealt)
}

fn show(entry: &Entry) -> String {
    entry.slots.map_or_else(|| entry.name.clone(), |slots| format!("{}:{slots}", entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt(list: &str, ranks: usize) -> String {
        match parse_list(list).and_then(|entries| {
            let dealt = deal(&entries, ranks)?;
            Ok(dealt.iter().map(|(name, ranks)| format!("{name} {}-{}", ranks.start, ranks.end)).collect::<Vec<_>>())
        }) {
            Ok(dealt) => dealt.join(", "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn ranks_are_dealt_in_blocks() {
        for (list, ranks, expected) in [
            ("a,b", 4, "a 0-2, b 2-4"),
            ("a,b", 5, "a 0-2, b 2-5"),
            ("a,b,c", 3, "a 0-1, b 1-2, c 2-3"),
            ("a:1,b:3", 4, "a 0-1, b 1-4"),
            ("a:2,b:2", 3, "a 0-2, b 2-3"),
            ("a:4,b:4", 3, "a 0-3"),
            ("a:2,b,c", 6, "a 0-2, b 2-4, c 4-6"),
            ("a:1,b:1,a:2", 4, "a 0-3, b 3-4"),
            ("a, a", 2, "a 0-2"),
            ("[fe80::1]:2,10.0.0.1:1", 3, "fe80::1 0-2, 10.0.0.1 2-3"),
            ("::1", 1, "::1 0-1"),
            ("a:18446744073709551615,b:9", 2, "a 0-2"),
        ] {
            assert_eq!(dealt(list, ranks), expected, "{list} {ranks}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        for (list, ranks, words) in [
            ("a:2,b:2", 5, &["5 ranks", "4 slots", "a:2, b:2"][..]),
            ("a,b,c", 2, &["2 ranks", "a, b, c", "2 are left for 3"]),
            ("a:2,b", 2, &["2 ranks", "0 are left for 1"]),
            ("a:0", 1, &["host a", "\"0\" slots"]),
            ("a:many", 1, &["host a", "\"many\" slots"]),
            ("a,,b", 2, &["\"\" is no host's name"]),
            ("-oProxyCommand=x", 1, &["no host's name"]),
        ] {
            let error = dealt(list, ranks);
            assert!(words.iter().all(|word| error.contains(word)), "{list} {ranks}: {error}");
        }
    }

    #[test]
    fn files_have_a_host_a_line() {
        let entries = parse_file("# ours\na 2\n\nb slots=3  # the new one\nc:4\nd\n").unwrap();
        let shown: Vec<_> = entries.iter().map(show).collect();
        assert_eq!(shown, ["a:2", "b:3", "c:4", "d"]);
        assert!(parse_file("a 2 3").unwrap_err().to_string().contains("\"3\" is too much"));
        assert!(parse_file("# nobody\n").unwrap_err().to_string().contains("empty"));
    }
}
