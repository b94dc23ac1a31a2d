//! A report as one page: everything in it, nothing fetched from elsewhere.

use std::fmt::Write;

use crate::error::Result;
use crate::pictures;
use crate::plot::{self, Axes};
use crate::record::{Document, Record};
use crate::run::SCF;
use crate::show::{HEAD, cells, groups};
use crate::study::STUDIES;

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{border:1px solid #ccc;padding:2px 8px;text-align:left}\
td.n{text-align:right}.bad{background:#fdd}.good{background:#dfd}summary{cursor:pointer}code{background:#eee}\
.warn{background:#ffd;padding:.5em}";

/// The page.
///
/// # Errors
/// If a picture cannot be drawn.
pub fn render(document: &Document, title: &str) -> Result<String> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style></head>\
         <body>\n<h1>{0}</h1>\n",
        escaped(title)
    );
    machine(&mut page, document);
    targets(&mut page, &document.records);
    for picture in pictures::of(&document.records)? {
        let _ = writeln!(page, "{}<p>{}</p>", picture.svg, escaped(picture.about));
    }
    for (name, about) in sections() {
        let prefix = format!("{name}/");
        let of: Vec<Record> = document
            .records
            .iter()
            .filter(|record| record.id == name || record.id.starts_with(&prefix))
            .cloned()
            .collect();
        if of.is_empty() {
            continue;
        }
        let _ = writeln!(page, "<h2 id=\"{name}\">{name}</h2>\n<p>{}</p>", escaped(about));
        for (title, records) in groups(&of) {
            let lines = plot::series(&records);
            if plot::worth_it(&lines) {
                let axis = records.iter().find_map(|record| record.axis.as_deref()).unwrap_or("");
                page += &plot::draw(&Axes { title: &title, axis, unit: &records[0].unit }, &lines)?;
            }
            table(&mut page, &title, &records);
        }
    }
    if !document.missing.is_empty() {
        page += "<h2>What is missing</h2>\n<ul>";
        for missing in &document.missing {
            let _ = write!(page, "<li>{}</li>", escaped(missing));
        }
        page += "</ul>\n";
    }
    page += "</body></html>\n";
    Ok(page)
}

/// Parts of a page, in order.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let more = [
        (
            SCF,
            "Hartree-Fock with tasks from a shared counter: wall time and the mean time of a rank in each phase (Fig. 14)",
        ),
        ("model", "The paper's equations with constants measured here: predicted and measured, and extrapolated"),
        ("peers", "Others on this machine, in the same run"),
        ("limits", "What the machine allows between two cores"),
        ("table", "Each figure of the whole table beside its limit and its peer"),
    ];
    STUDIES.iter().map(|study| (study.name, study.about)).chain(more)
}

fn machine(page: &mut String, document: &Document) {
    let machine = &document.machine;
    let passes: Vec<String> = machine.line.iter().map(|line| format!("{line:.0}")).collect();
    let _ = writeln!(
        page,
        "<p>{}, {} cores, {:.0} GiB; {}. A cache line passes between the two cores in {} ns. Command: <code>{}</code></p>",
        escaped(&machine.processor),
        machine.cores,
        machine.memory as f64 / (1u64 << 30) as f64,
        escaped(&machine.system),
        passes.join(", "),
        escaped(&document.command)
    );
    if machine.others > 0.05 {
        let _ = writeln!(
            page,
            "<p class=\"warn\">Other programs used {:.0} % of this machine meanwhile: the figures are not to be trusted.</p>",
            machine.others * 100.0
        );
    }
}

/// What was asked for, and whether it is met; what is not, first.
fn targets(page: &mut String, records: &[Record]) {
    let asked = judged(records);
    if asked.is_empty() {
        return;
    }
    let _ = writeln!(page, "<h2>Targets: {}</h2>\n<table><tr>", tally(&asked));
    for head in ["what", "", "measured", "asked", "met, or by how much it is missed, and why"] {
        let _ = write!(page, "<th>{head}</th>");
    }
    page.push_str("</tr>\n");
    for record in asked {
        let class = match record.met {
            Some(true) => "good",
            Some(false) => "bad",
            None => "",
        };
        let _ = writeln!(
            page,
            "<tr class=\"{class}\"><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>",
            escaped(record.note.as_deref().unwrap_or_default()),
            escaped(&record.id),
            record.show(),
            escaped(&record.show_asked()),
            escaped(&record.show_met())
        );
    }
    page.push_str("</table>\n");
}

/// Those of which something was asked: what is missed first, then what is open.
pub fn judged(records: &[Record]) -> Vec<&Record> {
    let mut asked: Vec<&Record> = records.iter().filter(|record| record.is_judged()).collect();
    asked.sort_by_key(|record| match record.met {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    });
    asked
}

/// How many are met, missed and open, in words.
pub fn tally(judged: &[&Record]) -> String {
    let count = |met: Option<bool>| judged.iter().filter(|record| record.met == met).count();
    let open = match count(None) {
        0 => String::new(),
        some => format!(", {some} open"),
    };
    format!("{} of {} met, {} missed{open}", count(Some(true)), judged.len(), count(Some(false)))
}

fn table(page: &mut String, title: &str, records: &[&Record]) {
    let _ = write!(page, "<details><summary>{}: {} figures</summary>\n<table><tr>", escaped(title), records.len());
    for head in HEAD {
        let _ = write!(page, "<th>{head}</th>");
    }
    page.push_str("</tr>\n");
    for record in records {
        page.push_str("<tr>");
        for cell in cells(record) {
            let _ = write!(page, "<td>{}</td>", escaped(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></details>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    #[test]
    fn a_page_holds_pictures_tables_targets_and_nothing_from_elsewhere() {
        let measured = model::tests::canned();
        let mut records = [measured.clone(), model::records(&measured).unwrap()].concat();
        records.push(Record::new("table/put_8", 9.0, "ns").asked(8.0).remark("put <8> B"));
        let document = Document { command: "armci-bench report".into(), records, ..Document::default() };
        let page = render(&document, "a & b").unwrap();
        assert!(page.matches("<svg").count() >= 4 && page.matches("<svg").count() == page.matches("</svg>").count());
        for part in [
            "0 of 1 met, 1 missed",
            "missed by 1.12x: no cause is known",
            "put &lt;8&gt; B",
            "a &amp; b",
            "<h2 id=\"contig\">",
            "<h2 id=\"model\">",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("src=") && !page.contains("href="), "nothing is fetched");
    }
}
