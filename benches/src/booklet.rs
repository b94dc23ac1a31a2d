//! A report for who reads the repository: pictures as files with a text that shows them, and the figures of another text
//! renewed between two marks. Everything comes from the document's records; nobody edits it by hand.

use std::fmt::Write;
use std::path::Path;

use crate::error::{Error, Result};
use crate::figure::Figure;
use crate::line::Class;
use crate::page::{judged, tally};
use crate::pictures;
use crate::record::{Document, OURS, Record, show};
use crate::row::Row;
use crate::rows::groups;

/// Between these two lines a text has its figures.
const MARKS: [&str; 2] = ["<!-- figures -->", "<!-- end of figures -->"];

/// What is shown in short.
const CHOSEN: [&str; 38] = [
    "put_8",
    "get_8",
    "put_located_1",
    "put_ptr_10000",
    "put_1048576",
    "get_1048576",
    "put_rows_16",
    "put_rows_64",
    "acc_8",
    "acc_1m",
    "acc_1m_am",
    "add_computes",
    "add_served_asleep",
    "add_served_paced",
    "am_request",
    "am_flood",
    "barrier_2",
    "barrier_8",
    "allocate_free",
    "each_put_8_threads",
    "start_16",
    "idle_thread",
    "resident_after",
    "array_put_8",
    "array_add",
    "array_patch",
    "array_create_unfilled",
    "matmul",
    "c_put_8",
    "c_put_rows",
    "c_add_busy",
    "ga_array_get_8",
    "ga_array_add",
    "far_get_8",
    "far_put_8",
    "far_put_1m",
    "far_get_8_shared",
    "far_add_shared",
];

/// Writes the pictures into a directory, and a `README.md` that shows them with all figures of the table.
///
/// # Errors
/// If a file cannot be written, or a picture cannot be drawn.
pub fn write(document: &Document, directory: &Path) -> Result<()> {
    let put = |name: String, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|source| Error::Write { path, source })
    };
    std::fs::create_dir_all(directory).map_err(|source| Error::Write { path: directory.into(), source })?;
    let mut text = format!(
        "# How fast, and beside what\n\nWritten by the benchmark itself (`make report`), whole: do not edit it.\n\n{}",
        circumstances(document)
    );
    for picture in pictures::of(&document.records)? {
        put(format!("{}.svg", picture.file), &picture.svg)?;
        let _ = write!(text, "\n## {0}\n\n{1}\n\n![{0}]({2}.svg)\n", picture.title, picture.about, picture.file);
    }
    text += &verdicts(document, true);
    text += &beside_peers(document);
    for group in groups() {
        let rows = group.rows.iter().filter_map(|row| Some(cells(row, of(document, row)?, class(document))));
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            let _ = write!(text, "\n## {}\n\n{}", group.title, table(HEAD, rows));
        }
    }
    if !document.missing.is_empty() {
        text += "\n## What could not be measured\n\n";
        for missing in &document.missing {
            let _ = writeln!(text, "- {missing}");
        }
    }
    put("README.md".into(), &text)
}

/// Renews the figures of a text, between its marks.
///
/// # Errors
/// If it cannot be read or written, or has no marks.
pub fn renew(document: &Document, readme: &Path) -> Result<()> {
    let wrong = |source| Error::Read { path: readme.into(), source };
    let text = std::fs::read_to_string(readme).map_err(wrong)?;
    let parts = text
        .split_once(MARKS[0])
        .and_then(|(before, rest)| Some((before, rest.split_once(MARKS[1])?.1)))
        .ok_or_else(|| Error::Asked(format!("{}: no lines '{}' and '{}'", readme.display(), MARKS[0], MARKS[1])))?;
    let chosen = CHOSEN.iter().filter_map(|name| {
        let row = groups().flat_map(|group| group.rows).find(|row| row.name == *name)?;
        let record = of(document, row)?;
        let mut cells = cells(row, record, class(document));
        // It stands among others than its own.
        cells[0].clone_from(record.note.as_ref()?);
        Some(cells)
    });
    let figures = format!(
        "{}\n{}\n\n{}\n{}\n{}{}",
        parts.0.to_owned() + MARKS[0],
        circumstances(document),
        table(HEAD, chosen.collect()),
        verdicts(document, false).trim_start(),
        MARKS[1],
        parts.1
    );
    std::fs::write(readme, figures).map_err(|source| Error::Write { path: readme.into(), source })
}

/// On what machine, and whether it was quiet.
fn circumstances(document: &Document) -> String {
    let machine = &document.machine;
    let mut line = machine.line.clone();
    line.sort_by(f64::total_cmp);
    let ends = line.first().zip(line.last()).map_or_else(String::new, |(least, most)| {
        format!("; a cache line passes between the two cores in {least:.0} to {most:.0} ns")
    });
    let mut text = format!(
        "{}, {} cores, {:.0} GiB, {}{ends}. `{}`.\n",
        machine.processor,
        machine.cores,
        machine.memory as f64 / (1u64 << 30) as f64,
        machine.system,
        document.command
    );
    if machine.others > 0.05 {
        let _ = writeln!(
            text,
            "\n**Other programs used {:.0} % of this machine meanwhile: ratios are worth something, times are not.**",
            machine.others * 100.0
        );
    }
    text
}

/// How near the cores were, mostly.
fn class(document: &Document) -> Class {
    Figure::of(document.machine.line.clone()).map_or(Class::Near, |line| Class::of(line.median))
}

/// The record of a row.
fn of<'a>(document: &'a Document, row: &Row) -> Option<&'a Record> {
    let id = format!("table/{}", row.name);
    document.records.iter().find(|record| record.id == id)
}

const HEAD: [&str; 6] = ["", "ours", "limit, same run", "peer, same run", "published, elsewhere", "asked"];

fn cells(row: &Row, record: &Record, class: Class) -> [String; 6] {
    // A rate's share of its limit and its ratio to a peer's are of rates.
    let shown = |value: f64| if value.is_finite() { show(value, &record.unit) } else { "-".into() };
    let limit = record.of_limit.map_or_else(|| "-".into(), |times| shown(record.value / times));
    let more = record.more_is_better();
    let peer = record.ratio.map(|ratio| if more { record.value / ratio } else { record.value * ratio });
    let asked = match record.met {
        _ if !record.is_judged() => "-".into(),
        Some(false) => format!("{}: **missed by {:.2}x**", record.show_asked(), record.beyond.unwrap_or(f64::NAN)),
        Some(true) => format!("{}: met", record.show_asked()),
        None => format!("{}: open", record.show_asked()),
    };
    let peer = peer.map_or_else(|| "-".into(), shown);
    [row.what.trim().into(), record.show(), limit, peer, row.anchor.of(class).into(), asked]
}

/// What is missed, by how much and why; with everything else that was asked, if `whole`.
fn verdicts(document: &Document, whole: bool) -> String {
    let all = judged(&document.records);
    if all.is_empty() {
        return String::new();
    }
    let heading =
        if whole { format!("\n## Targets: {}\n\n", tally(&all)) } else { format!("Targets: {}.\n\n", tally(&all)) };
    let line = |record: &&&Record| {
        let what = record.note.clone().unwrap_or_else(|| record.id.replace('/', ", "));
        [what, format!("`{}`", record.id), record.show(), record.show_asked(), record.show_met()]
    };
    let shown = all.iter().filter(|record| whole || record.met == Some(false)).map(|record| line(&record));
    let rows: Vec<_> = shown.collect();
    if rows.is_empty() { heading } else { heading + &table(["", "record", "measured", "asked", ""], rows) }
}

/// How many times as fast ours is, by operation and peer.
fn beside_peers(document: &Document) -> String {
    let records = || document.records.iter().filter(|record| record.id.starts_with("peers/"));
    let rows = records().filter(|record| record.side != OURS).filter_map(|record| {
        let mine = records().find(|mine| mine.side == OURS && mine.id == record.id && mine.at == record.at)?;
        let at = record.at.map_or_else(String::new, |bytes| format!(" {}", show(bytes, "bytes")));
        let what = record.id.trim_start_matches("peers/").trim_end_matches("/time");
        let ratio = format!("{:.2}", record.ratio?);
        Some([format!("`{what}`{at}"), record.side.clone(), mine.show(), record.show(), ratio])
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["", "peer", "ours", "peer's", "ours is so many times as fast"];
    format!("\n## Beside its peers, in one run\n\n{}", table(head, rows))
}

/// A table of Markdown.
fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let put = Record { of_limit: Some(10.0), ratio: Some(14.0), ..Record::new("table/put_8", 9.0, "ns") };
        let peer = Record { side: "UCX".into(), ratio: Some(0.5), ..Record::new("peers/get/time", 5.0, "ns") };
        let records = vec![
            Record { asked: Some("no slower than the peer".into()), ..put.asked(8.0) }.remark("put 8 B"),
            Record { side: "UCX".into(), ..peer.clone() }.at("bytes", 8.0),
            Record { ratio: None, side: OURS.into(), ..peer }.at("bytes", 8.0),
        ];
        Document { command: "armci-bench report".into(), records, ..Document::default() }
    }

    #[test]
    fn a_text_is_renewed_between_its_marks_alone_again_and_again() {
        let directory = crate::command::fresh_directory().unwrap();
        let readme = directory.path().join("README.md");
        std::fs::write(&readme, "before\n").unwrap();
        assert!(renew(&document(), &readme).is_err_and(|error| error.to_string().contains(MARKS[0])));
        std::fs::write(&readme, format!("before\n{}\nold\n{}\nafter\n", MARKS[0], MARKS[1])).unwrap();
        renew(&document(), &readme).unwrap();
        let first = std::fs::read_to_string(&readme).unwrap();
        renew(&document(), &readme).unwrap();
        assert_eq!(std::fs::read_to_string(&readme).unwrap(), first);
        assert!(first.starts_with("before\n<!-- figures -->") && first.ends_with("figures -->\nafter\n"), "{first}");
        assert!(!first.contains("old"), "{first}");
        for part in
            ["| put 8 B | 9.0 ns | 0.9 ns | 126.0 ns |", "**missed by 1.12x**", "missed by 1.12x: no cause is known"]
        {
            assert!(first.contains(part), "{part}: {first}");
        }
    }

    #[test]
    fn a_booklet_has_all_figures_and_names_its_pictures() {
        let directory = crate::command::fresh_directory().unwrap();
        let mut document = document();
        document.records.push(Record::new("peers/get/time", 9.0, "ns").at("bytes", 64.0));
        write(&document, directory.path()).unwrap();
        let text = std::fs::read_to_string(directory.path().join("README.md")).unwrap();
        assert!(text.contains("(get.svg)") && directory.path().join("get.svg").is_file(), "{text}");
        assert!(text.contains("| `get` 8 B | UCX | 5.0 ns | 5.0 ns | 0.50 |"), "{text}");
        assert!(text.contains("0 of 1 met, 1 missed"), "{text}");
    }

    #[test]
    fn what_is_chosen_is_in_the_table() {
        for name in CHOSEN {
            assert!(groups().flat_map(|group| group.rows).any(|row| row.name == name), "{name}");
        }
    }
}
