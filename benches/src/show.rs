//! Records as tables of text: one for each thing that was measured, a line for each record.

use std::fmt::Write;

use crate::record::{Document, OURS, Record, show};
use crate::table::grid;

/// A parent's name, a unit, an axis.
type Title = (String, String, String);

/// What distinguishes the tables: records whose names differ in the last word alone stand together, unless they count
/// different things.
fn title(record: &Record) -> Title {
    let parent = record.id.rsplit_once('/').map_or(record.id.as_str(), |(parent, _)| parent);
    (parent.into(), record.unit.clone(), record.axis.clone().unwrap_or_default())
}

/// Groups of records that stand in one table, in the order in which they first appear.
pub fn groups(records: &[Record]) -> Vec<(String, Vec<&Record>)> {
    let mut groups: Vec<(Title, Vec<&Record>)> = Vec::new();
    for record in records {
        let title = title(record);
        match groups.iter_mut().find(|(of, _)| *of == title) {
            Some((_, group)) => group.push(record),
            None => groups.push((title, vec![record])),
        }
    }
    let named = |((parent, unit, axis), records): (_, Vec<_>)| {
        let by: String = if axis == String::new() { axis } else { format!(" by {axis}") };
        let parent: String = parent;
        (format!("{parent}{by}, {unit}"), records)
    };
    groups.into_iter().map(named).collect()
}

/// The head of a table of records.
pub const HEAD: [&str; 9] = ["what", "at", "ranks", "by", "median", "5 %", "95 %", "of limit", "asked"];

/// The cells of a record.
pub fn cells(record: &Record) -> [String; 9] {
    let value = |value: Option<f64>| value.map_or_else(String::new, |value| show(value, &record.unit));
    let who = if record.side == OURS {
        let nodes = if record.nodes > 1 { format!(", {} nodes", record.nodes) } else { String::new() };
        format!("{} {}{nodes}", record.protocol, record.progress)
    } else {
        record.side.clone()
    };
    let limit = record.of_limit.map_or_else(String::new, |times| {
        let which = record.limit.as_deref().unwrap_or_default();
        format!("{times:.2} x {which}").trim_end().to_owned()
    });
    let asked = match record.met {
        _ if !record.is_judged() => String::new(),
        Some(false) => format!("{}: NOT MET, {}", record.show_asked(), record.show_met()),
        Some(true) => format!("{}: met", record.show_asked()),
        None => format!("{}: open", record.show_asked()),
    };
    [
        record.id.clone(),
        record.at.map_or_else(String::new, |at| format!("{at}")),
        // The machine and the model have none.
        if record.ranks == 0 { String::new() } else { record.ranks.to_string() },
        who,
        record.show(),
        value(record.low),
        value(record.high),
        limit,
        asked,
    ]
}

/// All records of a document, in tables.
pub fn render(document: &Document) -> String {
    let mut text = String::new();
    let machine = &document.machine;
    let passes: Vec<String> = machine.line.iter().map(|line| format!("{line:.0}")).collect();
    let _ = writeln!(
        text,
        "{}, {} cores; a cache line passes in {} ns; load of others {:.0} %",
        machine.processor,
        machine.cores,
        passes.join(", "),
        machine.others * 100.0
    );
    if machine.others > 0.05 {
        text.push_str("WARNING: other programs used this machine meanwhile: the figures are not to be trusted.\n");
    }
    for (title, records) in groups(&document.records) {
        let _ = writeln!(text, "\n{title}");
        let head = std::iter::once(HEAD.map(String::from));
        text.push_str(&grid(head.chain(records.into_iter().map(cells)).collect()));
    }
    for missing in &document.missing {
        let _ = writeln!(text, "{missing}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_stands_together() {
        let record = |id: &str, unit: &str| Record::new(id, 1.0, unit).at("bytes", 8.0);
        let records = [
            record("contig/put", "ns"),
            record("contig/get", "ns"),
            record("contig/put/rate", "GB/s"),
            record("contig/put", "ns").asked(0.5),
        ];
        let groups = groups(&records);
        assert_eq!(groups.iter().map(|(_, records)| records.len()).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(groups[0].0, "contig by bytes, ns");
        let text = render(&Document { records: records.into(), ..Document::default() });
        assert!(text.contains("NOT MET") && text.contains("1.00 GB/s"), "{text}");
    }
}
