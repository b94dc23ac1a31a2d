//! The pictures of a report: which records each shows, and what is to be said of it. A picture whose records are not
//! there is left out.

use crate::contiguous::MIB;
use crate::error::Result;
use crate::plot::{self, Axes, Bar, Series};
use crate::record::{OURS, Record};

/// A picture.
#[derive(Debug)]
pub struct Picture {
    /// Its file's name, without the ending.
    pub file: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What is to be seen.
    pub about: &'static str,
    /// It.
    pub svg: String,
}

/// What it shows.
enum Shape {
    /// Lines over an axis, both logarithmic.
    Lines(fn(&[Record]) -> Vec<Series>),
    /// Bars that are divided.
    Bars(fn(&[Record]) -> Vec<Bar>),
}

struct Plan {
    file: &'static str,
    title: &'static str,
    about: &'static str,
    axis: &'static str,
    unit: &'static str,
    shape: Shape,
}

const PLANS: [Plan; 8] = [
    Plan {
        file: "get",
        title: "Time of a get on a node",
        about: "Two ranks on two cores, blocking gets of so many bytes; the others in the same run, each complete on return.",
        axis: "bytes",
        unit: "ns",
        shape: Shape::Lines(|records| by_side(records, "peers/get/time", |_, ns| ns)),
    },
    Plan {
        file: "put",
        title: "Rate of a put on a node",
        about: "Two ranks on two cores, blocking puts of so many bytes, one after the other; the limit is the best copy of as many bytes.",
        axis: "bytes",
        unit: "GB/s",
        shape: Shape::Lines(|records| {
            let limit = |record: &Record| (record.id == "limits/copy").then(|| "best copy (limit)".to_owned());
            let mut all = by_side(records, "peers/put/time", |bytes, ns| bytes / ns);
            all.extend(lines(records, limit, |bytes, ns| bytes / ns));
            all
        }),
    },
    Plan {
        file: "strided",
        title: "1 MiB in rows, by the length of a row",
        about: "Rows two lengths apart at the target, dense at the origin: directly, and by message (paper 003, Fig. 9).",
        axis: "bytes of a row",
        unit: "GB/s",
        shape: Shape::Lines(|records| {
            let name = |record: &Record| {
                let what = record.id.strip_prefix("strided/").filter(|what| ["put", "get"].contains(what))?;
                Some(format!("{what}{}", way(record)))
            };
            lines(records, name, |_, ns| MIB as f64 / ns)
        }),
    },
    Plan {
        file: "accumulate",
        title: "Accumulate of 1 MiB in rows, by the length of a row",
        about: "Applied by the origin, by the target, or fetched, added and put back by the origin under a lock (Fig. 11).",
        axis: "bytes of a row",
        unit: "GB/s",
        shape: Shape::Lines(|records| {
            let name = |record: &Record| {
                let what = match record.id.as_str() {
                    "acc/runtime" => "the runtime's",
                    "acc/source_driven" => "get, add, put",
                    "acc/source_driven_pipelined" => "get, add, put in a pipeline",
                    _ => return None,
                };
                Some(format!("{what}{}", way(record)))
            };
            lines(records, name, |_, ns| MIB as f64 / ns)
        }),
    },
    Plan {
        file: "counter",
        title: "Fetch-and-add on a counter whose owner computes",
        about: "All other ranks draw at once, on as many cores as there are; the owner computes in pieces of 300 us. Directly it \
                does not matter; by message it is the progress thread that makes the difference (Fig. 10).",
        axis: "ranks",
        unit: "ns per draw",
        shape: Shape::Lines(|records| {
            let name = |record: &Record| (record.id == "rmw/owner_computes").then(|| served(record));
            lines(records, name, |_, ns| ns)
        }),
    },
    Plan {
        file: "between",
        title: "Time of a get between nodes",
        about: "Two ranks on two virtual nodes over TCP through the loopback interface, the target waiting in a call.",
        axis: "bytes",
        unit: "ns",
        shape: Shape::Lines(|records| by_side(records, "peers/far_get/time", |_, ns| ns)),
    },
    Plan {
        file: "scf",
        title: "Where the time of (H2O)3 goes, on two nodes",
        about: "Time of both ranks together, by phase, with progress threads and without (Fig. 14).",
        axis: "",
        unit: "s",
        shape: Shape::Bars(split),
    },
    Plan {
        file: "memory",
        title: "Resident memory of a rank",
        about: "By the number of ranks on the node, before and after a thousand allocations.",
        axis: "ranks",
        unit: "MiB",
        shape: Shape::Lines(|records| {
            let name = |record: &Record| match record.id.as_str() {
                "memory/resident_before" => Some("nothing allocated".to_owned()),
                "memory/resident_after" => Some("1,000 allocations".to_owned()),
                _ => None,
            };
            lines(records, name, |_, bytes| bytes / MIB as f64)
        }),
    },
];

/// All that these records are enough for.
///
/// # Errors
/// What the plotting library says.
pub fn of(records: &[Record]) -> Result<Vec<Picture>> {
    let mut all = Vec::new();
    for Plan { file, title, about, axis, unit, shape } in &PLANS {
        let svg = match shape {
            Shape::Lines(choose) => {
                let lines = choose(records);
                if !plot::worth_it(&lines) {
                    continue;
                }
                plot::draw(&Axes { title, axis, unit }, &lines)?
            }
            Shape::Bars(choose) => {
                let bars = choose(records);
                if bars.is_empty() {
                    continue;
                }
                plot::draw_bars(title, unit, &bars)?
            }
        };
        all.push(Picture { file, title, about, svg });
    }
    Ok(all)
}

/// Records that have a name here, as lines; a point is its place, and what becomes of place and value.
fn lines(records: &[Record], name: impl Fn(&Record) -> Option<String>, value: fn(f64, f64) -> f64) -> Vec<Series> {
    plot::collect(records.iter().filter_map(|record| {
        let (name, at) = (name(record)?, record.at?);
        Some((name, at, value(at, record.value)))
    }))
}

/// Ours, and each peer's.
fn by_side(records: &[Record], id: &str, value: fn(f64, f64) -> f64) -> Vec<Series> {
    let name = |record: &Record| {
        let side = if record.side == OURS { "this runtime" } else { &record.side };
        (record.id == id).then(|| side.to_owned())
    };
    lines(records, name, value)
}

fn way(record: &Record) -> &'static str {
    if record.protocol.contains("am") { ", by message" } else { "" }
}

fn served(record: &Record) -> String {
    let by = match (record.protocol.contains("am"), record.progress.as_str()) {
        (false, _) => "directly",
        (true, "none") => "by message, nobody serves",
        (true, _) => "by message, served by a progress thread",
    };
    by.to_owned()
}

/// The table's figures of a calculation between nodes. What it took without threads is what it is held against.
fn split(records: &[Record]) -> Vec<Bar> {
    let mut bars = [("with progress threads", Vec::new()), ("without", Vec::new())];
    for phase in ["counter", "get", "accumulate", "integrals", "wait"] {
        let id = format!("table/far_scf_{phase}_thread");
        let Some(record) = records.iter().find(|record| record.id == id) else { return Vec::new() };
        let Some(times) = record.of_limit.filter(|times| *times > 0.0) else { return Vec::new() };
        for ((_, parts), ns) in bars.iter_mut().zip([record.value, record.value / times]) {
            parts.push((phase.to_owned(), ns / 1e9));
        }
    }
    bars.map(|(name, parts)| Bar { name: name.into(), parts }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_lines_of_its_records_and_is_left_out_without_them() {
        assert!(of(&[]).unwrap().is_empty());
        let get = |side: &str, at: f64| {
            let record = Record::new("peers/get/time", at, "ns").at("bytes", at);
            Record { side: side.into(), ..record }
        };
        let phases = ["counter", "get", "accumulate", "integrals", "wait"].map(|phase| Record {
            of_limit: Some(0.5),
            ..Record::new(format!("table/far_scf_{phase}_thread"), 1e9, "ns")
        });
        let gets = [get(OURS, 8.0), get(OURS, 64.0), get("UCX", 8.0), get("UCX", 64.0)];
        let all = of(&[&gets[..], &phases[..]].concat()).unwrap();
        assert_eq!(all.iter().map(|picture| picture.file).collect::<Vec<_>>(), ["get", "scf"]);
        assert!(all[0].svg.contains("this runtime") && all[0].svg.contains("UCX"));
        assert!(all[1].svg.contains("integrals") && all[1].svg.contains("with progress threads"));
        assert_eq!(split(&phases)[1].parts[0], ("counter".into(), 2.0));
        assert!(of(&phases[1..]).unwrap().is_empty(), "a phase is missing");
    }
}
