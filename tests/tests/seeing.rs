//! What a job tells of itself when asked: exact counts, a timeline that can be read; and nothing when not asked.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Mutex;

use armci_core::{Reduce, Source, Strided, World};
use serde_json::Value;
use tests::Ranks;

const PUTS: u64 = 10;
const OWN_PUTS: u64 = 3;
const THREAD_PUTS: u64 = 6;
const GETS: u64 = 5;
const ACCUMULATES: u64 = 4;
const DRAWS: u64 = 7;

/// The jobs: ranks, path, who serves.
fn jobs() -> impl Iterator<Item = (u64, &'static str, &'static str)> {
    [1, 2, 3, 4].into_iter().flat_map(|ranks| {
        ["rma", "am"].into_iter().flat_map(move |path| ["thread", "none"].map(|server| (ranks, path, server)))
    })
}

/// A job on one node, which alone has one report and one file.
fn job((ranks, path, server): (u64, &str, &str)) -> Ranks {
    Ranks::new(ranks as usize).on_one_node().env("ARMCI_PROTOCOL", path).env("ARMCI_PROGRESS", server)
}

/// A file that no other test writes. It is removed with this, and so are those of nodes, also when the test fails.
struct Scratch(PathBuf);

fn file(name: &str) -> Scratch {
    Scratch(std::env::temp_dir().join(format!("armci-seeing-{name}-{}.json", std::process::id())))
}

impl Deref for Scratch {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What was looked at, or was never written, is not there.
        let _ = std::fs::remove_file(&self.0);
        (0..2).for_each(|node| drop(std::fs::remove_file(self.0.with_extension(format!("node{node}.json")))));
    }
}

/// A known number of each operation.
fn known_work(world: &World) {
    let handler = world.register(|_, reply| reply.set(b"seen")).unwrap();
    let region = world.allocate(1024).unwrap();
    let flags = world.allocate(8).unwrap();
    let (right, me) = ((world.rank() + 1) % world.size(), world.rank());
    world.put_value(0i64, flags.at(me, 0)).unwrap();
    world.barrier().unwrap();
    (0..PUTS).for_each(|at| world.put_value(at, region.at(right, at as usize)).unwrap());
    (0..OWN_PUTS).for_each(|_| world.put(&[1u64, 2], region.at(me, 20)).unwrap());
    (0..GETS).for_each(|_| assert_eq!(world.get_value::<u64>(region.at(right, 3)).unwrap(), 3));
    (0..ACCUMULATES).for_each(|_| world.accumulate(0.0, &[1.0; 8], region.at(0, 64)).unwrap());
    (0..DRAWS).for_each(|_| assert!(world.fetch_add(region.at::<i64>(0, 100), 0).is_ok()));
    world.fence(right).unwrap();
    world.notify(flags.at(right, 0), 1).unwrap();
    world.wait_value(flags.at(me, 0), 1).unwrap();
    world.send(right, handler, &[0; 100]).unwrap();
    assert_eq!(world.request(right, handler, &[0; 5000]).unwrap(), b"seen");
    world.send_to(right, 7, &[2.5; 4]).unwrap();
    world.receive(Source::Any, 7, &mut [0.0; 4]).unwrap();
    let (threads, place) = (world.threads(), region.at(right, 3));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let world = threads.attach().unwrap();
            (0..THREAD_PUTS).for_each(|_| world.put_value(3u64, place).unwrap());
            world.detach().unwrap();
        });
    });
    world.all_reduce(&mut [1u64], Reduce::Sum).unwrap();
    world.free(flags).unwrap();
    world.free(region).unwrap();
}

/// The report as tables: section, row, column.
struct Report {
    text: String,
    cells: HashMap<(String, String, String), String>,
}

impl Report {
    /// Reads what was written to standard error, each line behind the rank that wrote it.
    fn read(stderr: &[u8], from: usize) -> Report {
        let text = String::from_utf8(stderr.to_vec()).unwrap();
        let (mut cells, mut heading) = (HashMap::new(), Vec::new());
        for line in text.lines() {
            let Some(line) = line.strip_prefix(&format!("[{from}] ")) else { continue };
            let row: Vec<String> =
                line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(String::from).collect();
            match row.first().map(String::as_str) {
                None => heading.clear(),
                Some("operation" | "region" | "served") => heading = row,
                Some(_) if row.len() == heading.len() => {
                    for (column, cell) in heading.iter().zip(&row).skip(1) {
                        cells.insert((heading[0].clone(), row[0].clone(), column.clone()), cell.clone());
                    }
                }
                Some(_) => {}
            }
        }
        Report { text, cells }
    }

    /// A cell, without its unit and the commas between its digits; 0 if there is no such row.
    fn number(&self, section: &str, row: &str, column: &str) -> u64 {
        match self.cells.get(&(section.into(), row.into(), column.into())).map(String::as_str) {
            None | Some("-") => 0,
            Some(cell) => {
                let digits = cell.split(' ').next().unwrap().replace(',', "");
                digits.parse().unwrap_or_else(|_| panic!("{cell} in {row}, {column}\n{}", self.text))
            }
        }
    }

    /// The numbers of a line of words, in order.
    fn line(&self, start: &str) -> Vec<u64> {
        let line =
            self.text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{start}\n{}", self.text));
        let words = line.split_once(start).unwrap().1.split(' ');
        words.filter_map(|word| word.replace(',', "").trim_end_matches(';').parse().ok()).collect()
    }
}

#[test]
fn the_report_counts_exactly() {
    for (ranks, path, server) in jobs() {
        let job = job((ranks, path, server)).env("ARMCI_STATS", "1");
        let Some(outcome) = job.outcome(known_work) else { continue };
        let report = Report::read(&outcome.stderr, 0);
        let text = &report.text;
        assert!(text.lines().all(|line| line.starts_with("[0]")), "only rank 0 writes:\n{text}");
        let title = if ranks == 1 { "what 1 rank did".into() } else { format!("what {ranks} ranks did") };
        assert_eq!(text.matches(&title).count(), 1, "{text}");

        let direct = path == "rma";
        // Of what goes to the right only a job of one keeps something; of what goes to rank 0, that rank does.
        let alone = |calls: u64| if ranks == 1 { calls } else { 0 };
        let rows = [
            ("put", 1 + PUTS + OWN_PUTS + THREAD_PUTS, 8 + 8 * PUTS + 16 * OWN_PUTS + 8 * THREAD_PUTS, {
                alone(PUTS + THREAD_PUTS) + (1 + OWN_PUTS) * ranks
            }),
            ("get", GETS, 8 * GETS, alone(GETS)),
            ("accumulate", ACCUMULATES, 64 * ACCUMULATES, ACCUMULATES),
            ("rmw", DRAWS, 8 * DRAWS, DRAWS),
            ("notify", 1, 8, alone(1)),
            ("wait", 1, 0, ranks),
            ("message", 2, 5100, alone(2)),
            ("send", 1, 32, alone(1)),
            ("receive", 1, 32, alone(1)),
        ];
        for (name, calls, bytes, own) in rows {
            let cell = |column: &str| report.number("operation", name, column);
            assert_eq!(cell("calls"), calls * ranks, "{name}\n{text}");
            // From 10,000 on it is rounded.
            assert!(bytes * ranks >= 10_000 || cell("bytes") == bytes * ranks, "{name}\n{text}");
            assert_eq!([cell("to itself"), cell("to others")], [own, calls * ranks - own], "{name}\n{text}");
            if ["put", "get", "accumulate", "rmw", "notify"].contains(&name) {
                let ways = if direct { [calls * ranks, 0] } else { [0, calls * ranks] };
                assert_eq!([cell("by access"), cell("by message")], ways, "{name}\n{text}");
            }
        }
        for (name, calls) in [("fence", 1), ("barrier", 1), ("collective", 1), ("allocate", 2), ("free", 2)] {
            assert_eq!(report.number("operation", name, "calls"), calls * ranks, "{name}\n{text}");
        }

        let regions: Vec<&String> =
            report.cells.keys().filter(|key| key.0 == "region" && key.2 == "size").map(|key| &key.1).collect();
        assert_eq!(regions.len(), 2, "{text}");
        let busy = regions.iter().max_by_key(|region| report.number("region", region, "bytes")).unwrap();
        let of_region = |column| report.number("region", busy, column);
        assert_eq!(of_region("size"), 1024 * ranks, "{text}");
        assert_eq!(of_region("put"), (PUTS + OWN_PUTS + THREAD_PUTS) * ranks, "{text}");
        assert_eq!([of_region("get"), of_region("rmw")], [GETS * ranks, DRAWS * ranks], "{text}");
        assert_eq!(of_region("calls"), (PUTS + OWN_PUTS + THREAD_PUTS + GETS + ACCUMULATES + DRAWS) * ranks, "{text}");

        let flags = regions.iter().find(|region| *region != busy).unwrap();
        let of_flags = ["calls", "put", "notify"].map(|column| report.number("region", flags, column));
        assert_eq!(of_flags, [2 * ranks, ranks, ranks], "{text}");

        let served = |kind: &str| {
            let by = |who: &str| report.number("served", kind, who);
            let [thread, waiters] = [by("by progress threads"), by("by waiting threads")];
            assert_eq!(thread + waiters, by("calls"), "{text}");
            assert!(server == "thread" || thread == 0, "{text}");
            thread + waiters
        };
        let by_message = |calls: u64| if direct { 0 } else { calls * ranks };
        assert_eq!(served("put"), by_message(1 + PUTS + OWN_PUTS + THREAD_PUTS), "{text}");
        assert_eq!([served("get"), served("rmw")], [GETS, DRAWS].map(by_message), "{text}");
        assert_eq!([served("accumulate"), served("notify")], [ACCUMULATES, 1].map(by_message), "{text}");
        assert_eq!(served("user"), 2 * ranks, "{text}");
        // To oneself a message goes straight.
        assert_eq!(served("send"), if ranks == 1 { 0 } else { ranks }, "{text}");
        assert_eq!(report.line("threads that attached:"), [ranks], "{text}");
        assert_eq!(report.line("region cache:"), [0, 0, 0], "{text}");
        assert!(server == "thread" || report.line("progress threads:") == [0, 0, 0], "{text}");
    }
}

/// Each rank resolves each region of each other rank once, by message; what it frees it forgets.
#[test]
fn the_cache_is_counted() {
    let job = Ranks::new(3)
        .on_one_node()
        .env("ARMCI_STATS", "1")
        .env("ARMCI_RESOLVE", "cache")
        .env("ARMCI_REGION_CACHE", "2");
    let outcome = job.outcome(|world| {
        let region = world.allocate(64).unwrap();
        for _ in 0..4 {
            (0..2).for_each(|rank| world.put_value(1u64, region.at(rank, world.rank())).unwrap());
        }
        world.put_value(1u64, region.at(2, world.rank())).unwrap();
        world.free(region).unwrap();
    });
    if let Some(outcome) = outcome {
        let report = Report::read(&outcome.stderr, 0);
        assert_eq!(report.line("region cache:"), [3 * 6, 3 * 3, 3], "{}", report.text);
        assert_eq!(report.number("served", "describe", "calls"), 3 * 3, "{}", report.text);
    }
}

#[test]
fn each_node_has_its_report_and_its_file() {
    let path = file("nodes");
    let job = Ranks::new(4).nodes(2).env("ARMCI_STATS", "1").env("ARMCI_TRACE", path.to_str().unwrap());
    let outcome = job.outcome(|world| {
        let mine = world.allocate_local(64).unwrap();
        (0..=world.rank() as u64).for_each(|value| world.put_value(value, mine.at(0)).unwrap());
        world.free_local(mine).unwrap();
    });
    let Some(outcome) = outcome else { return };
    for (node, puts, ranks) in [(0, 3, [0, 1]), (1, 7, [2, 3])] {
        let report = Report::read(&outcome.stderr, 2 * node);
        assert!(report.text.contains(&format!("what 2 ranks of node {node} of 2, from rank {} on", 2 * node)));
        assert_eq!(report.number("operation", "put", "calls"), puts, "{}", report.text);
        assert_eq!(report.number("region", &format!("20480.1 of rank {}", ranks[1]), "calls"), ranks[1] + 1);
        let trace = Trace::take(&path.with_extension(format!("node{node}.json")));
        assert_eq!(ranks.map(|rank| trace.count(rank, "put")), ranks.map(|rank| rank + 1));
    }
}

/// Of each node's two ranks one has its right neighbour on the other node: it is told what went there, and which way it
/// really went. (Accumulates, and small rows, go there by message whatever is asked for.)
#[test]
fn what_goes_to_other_nodes_is_told() {
    let job = Ranks::new(4).nodes(2).env("ARMCI_STATS", "1").env("ARMCI_PROTOCOL", "rma");
    let outcome = job.outcome(|world| {
        let region = world.allocate(8 * 3_000).unwrap();
        let right = (world.rank() + 1) % world.size();
        (0..3).for_each(|value| world.put_value(value, region.at(right, 0)).unwrap());
        (0..2).for_each(|_| world.accumulate(1.0, &[2.0], region.at(right, 10)).unwrap());
        for row in [2, 1_100] {
            let shape = Strided { counts: &[row, 2], local: &[row], remote: &[row + 1] };
            world.get_strided(region.at(right, 0), &mut vec![0i64; 2 * row], &shape).unwrap();
        }
        let mut many = world.aggregate();
        (0..5).for_each(|at| many.accumulate(1, &[1i64], region.at(right, 100 + at)).unwrap());
        many.finish().unwrap();
        world.free(region).unwrap();
    });
    let Some(outcome) = outcome else { return };
    for node in [0, 1] {
        let report = Report::read(&outcome.stderr, 2 * node);
        for (name, calls, beyond, messages) in [("put", 6, 3, 0), ("accumulate", 14, 7, 7), ("get", 4, 2, 1)] {
            let cell = |column: &str| report.number("operation", name, column);
            let found = ["calls", "to itself", "to others", "to other nodes", "by access", "by message"].map(cell);
            assert_eq!(found, [calls, 0, calls, beyond, calls - messages, messages], "{name}\n{}", report.text);
        }
    }
}

#[test]
fn nothing_is_said_unasked() {
    for kind in jobs() {
        for zero in ["0", ""] {
            let Some(outcome) = job(kind).env("ARMCI_STATS", zero).outcome(known_work) else { continue };
            assert_eq!(String::from_utf8(outcome.stderr).unwrap(), "");
        }
    }
}

/// A timeline, as it was written.
struct Trace {
    whole: Value,
    /// What lasted.
    events: Vec<Value>,
}

impl Trace {
    /// Reads a file and removes it.
    fn take(path: &std::path::Path) -> Trace {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::remove_file(path).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        let all = whole["traceEvents"].as_array().unwrap();
        let events = all.iter().filter(|event| event["ph"] == "X").cloned().collect();
        Trace { events, whole }
    }

    fn count(&self, rank: u64, name: &str) -> u64 {
        self.events.iter().filter(|event| event["pid"] == rank && event["name"] == name).count() as u64
    }

    /// The names of a rank and of its threads.
    fn name(&self, rank: u64, thread: Option<u64>) -> Option<&str> {
        let what = if thread.is_some() { "thread_name" } else { "process_name" };
        let all = self.whole["traceEvents"].as_array().unwrap();
        let mut named = all.iter().filter(|event| {
            event["ph"] == "M"
                && event["name"] == what
                && event["pid"] == rank
                && thread.is_none_or(|thread| event["tid"] == thread)
        });
        named.next()?["args"]["name"].as_str()
    }
}

/// When an event began and ended, in nanoseconds.
fn span(event: &Value) -> (u64, u64) {
    let nanoseconds = |field: &str| (event[field].as_f64().unwrap() * 1000.0).round() as u64;
    (nanoseconds("ts"), nanoseconds("ts") + nanoseconds("dur"))
}

#[test]
fn the_timeline_has_every_event_once_and_in_order() {
    let path = file("order");
    for (ranks, protocol, server) in jobs() {
        let job = job((ranks, protocol, server)).env("ARMCI_TRACE", path.to_str().unwrap());
        let Some(outcome) = job.outcome(known_work) else { continue };
        assert_eq!(String::from_utf8(outcome.stderr).unwrap(), "");
        let trace = Trace::take(&path);
        assert_eq!(trace.whole["otherData"]["dropped"], 0);
        assert_eq!(trace.whole["otherData"]["clock"], "CLOCK_MONOTONIC");

        let direct = protocol == "rma";
        for rank in 0..ranks {
            let count = |name: &str| trace.count(rank, name);
            let puts = 1 + PUTS + OWN_PUTS + THREAD_PUTS;
            assert_eq!(count("put"), puts);
            assert_eq!([count("get"), count("accumulate"), count("rmw")], [GETS, ACCUMULATES, DRAWS]);
            assert_eq!([count("message"), count("serve user")], [2; 2]);
            assert_eq!(["notify", "wait", "send", "receive", "fence", "barrier", "collective"].map(count), [1; 7]);
            assert_eq!([count("allocate"), count("free")], [2; 2]);
            assert_eq!(count("serve put"), if direct { 0 } else { puts });
            assert_eq!(count("serve rmw"), if direct || rank != 0 { 0 } else { DRAWS * ranks });
            assert_eq!(trace.name(rank, None), Some(format!("rank {rank}").as_str()));
            assert_eq!(trace.name(rank, Some(0)), Some("main"));

            let threads: std::collections::BTreeSet<u64> = trace
                .events
                .iter()
                .filter(|event| event["pid"] == rank)
                .map(|event| event["tid"].as_u64().unwrap())
                .collect();
            for thread in threads {
                let of_thread = trace.events.iter().filter(|event| event["pid"] == rank && event["tid"] == thread);
                let spans: Vec<_> = of_thread.clone().map(span).collect();
                assert!(spans.is_sorted_by_key(|(begin, _)| *begin), "{rank}/{thread}");
                // No call is made within another one that is told.
                assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{rank}/{thread}: {spans:?}");
                let name = trace.name(rank, Some(thread)).unwrap();
                assert!(server == "thread" || name != "served by the progress thread");
                if name.starts_with("attached") {
                    assert_eq!(of_thread.filter(|event| event["name"] == "put").count() as u64, THREAD_PUTS);
                }
            }
            let main: Vec<&str> = trace
                .events
                .iter()
                .filter(|event| event["pid"] == rank && event["tid"] == 0)
                .map(|event| event["name"].as_str().unwrap())
                .collect();
            assert_eq!(main[..4], ["allocate", "allocate", "put", "barrier"]);
            assert_eq!(main[main.len() - 3..], ["collective", "free", "free"]);
        }
        for put in trace.events.iter().filter(|event| event["name"] == "put" && event["args"]["bytes"] == 16) {
            let args = &put["args"];
            assert_eq!((&args["target"], &args["offset"]), (&put["pid"], &Value::from(160)));
            assert_eq!(args["path"], if direct { "remote memory access" } else { "message" });
            assert!(args["region"].is_string());
        }
        // It lasted less than the minute a job may take, and ranks were at their barrier together.
        assert!(trace.events.iter().all(|event| span(event).1 < 60_000_000_000));
        let barriers: Vec<_> = trace.events.iter().filter(|event| event["name"] == "barrier").map(span).collect();
        let (entered, left) = (barriers.iter().map(|span| span.0).max(), barriers.iter().map(|span| span.1).min());
        assert!(entered <= left, "{barriers:?}");
    }
}

#[test]
fn a_full_buffer_is_said() {
    let path = file("full");
    let job = Ranks::new(2).on_one_node().env("ARMCI_TRACE", path.to_str().unwrap()).env("ARMCI_TRACE_EVENTS", "8");
    if let Some(outcome) = job.outcome(known_work) {
        let trace = Trace::take(&path);
        assert_eq!(trace.events.len(), 2 * 8);
        let dropped = trace.whole["otherData"]["dropped"].as_u64().unwrap();
        assert!(dropped > 40, "{dropped}");
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert!(said.contains(&format!("lacks the last {dropped} events")), "{said}");
    }
}

/// More events than travel in one piece.
#[test]
fn a_long_timeline_is_whole() {
    let path = file("long");
    let job = Ranks::new(3).on_one_node().env("ARMCI_TRACE", path.to_str().unwrap());
    let outcome = job.outcome(|world| {
        let region = world.allocate(8).unwrap();
        (0..1000 * world.rank()).for_each(|_| world.put_value(1u64, region.at(0, 0)).unwrap());
        world.free(region).unwrap();
    });
    if outcome.is_some() {
        let trace = Trace::take(&path);
        assert_eq!([0, 1, 2].map(|rank| trace.count(rank, "put")), [0, 1000, 2000]);
    }
}

#[test]
fn a_file_that_cannot_be_created_is_an_error_at_once() {
    let job = Ranks::new(2).on_one_node().env("ARMCI_TRACE", "/nowhere/at/all.json");
    let outcome = job.expect_failure(|_| ());
    let said = String::from_utf8(outcome.stderr).unwrap();
    assert!(said.contains("ARMCI_TRACE") && said.contains("/nowhere/at/all.json"), "{said}");
}

/// Keeps what the log is told.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl tracing::Subscriber for &'static Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("armci_core")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn the_log_tells_of_joining_refusals_and_leaving() {
    for progress in ["thread", "none"] {
        Ranks::new(2).on_one_node().env("ARMCI_PROGRESS", progress).env("ARMCI_MEMORY", "64M").run_bare(|| {
            let log: &'static Log = Box::leak(Box::default());
            tracing::subscriber::set_global_default(log).unwrap();
            let world = World::init().unwrap();
            let region = world.allocate(64).unwrap();
            (0..100u64).for_each(|value| world.put_value(value, region.at(0, 0)).unwrap());
            world.free(region).unwrap();
            assert!(world.allocate(1 << 30).is_err());
            world.finalize().unwrap();

            let log = log.0.lock().unwrap();
            let place =
                |what: &str| log.iter().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{log:?}"));
            let me = world.rank();
            let joined = place(&format!("INFO message=joined rank={me} size=2 node=0 nodes=1"));
            let thread = if progress == "thread" { "the progress thread" } else { "no progress thread" };
            let [served, refused, left] = [thread, "an allocation was refused", "message=left"].map(place);
            assert!(joined < served && served < refused && refused < left, "{log:?}");
            // Of what is done often, nothing is told.
            assert!(log.len() < 10, "{log:?}");
        });
    }
}
