//! The timeline of a node: what each thread of each rank did when, and which messages were served, in the trace-event
//! format of Chrome and Perfetto (`ARMCI_TRACE=FILE`; to be opened at <https://ui.perfetto.dev>).
//!
//! A process of the timeline is a rank; its threads are the one that joined, those that attached (a number is used
//! again by later ones), and two tracks for the messages served, by the progress thread and by threads that waited.
//! Events are kept in memory, up to `ARMCI_TRACE_EVENTS` per rank, the first ones: what comes later is counted, and the
//! file says how many that were. Times are those of `CLOCK_MONOTONIC`, from the first event on.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytemuck::{Pod, Zeroable};

use super::{Call, Kind, summary};
use crate::am::owner::Server;
use crate::error::{Error, Result};
use crate::job::Identity;
use crate::memory::RegionId;

/// The names of served messages' events lie behind those of the calls.
const SERVED: u8 = Kind::CALLS as u8;
/// Threads beyond those with contexts.
const PROGRESS_THREAD: u16 = 1000;
const WAITERS: u16 = 1001;

const NOBODY: u32 = u32::MAX;
/// No region's bits: indexes that high do not come.
const NO_REGION: u64 = u64::MAX;

/// How a call reached its target.
const PATHS: [Option<&str>; 3] = [None, Some("remote memory access"), Some("message")];

/// Room for a rank's events, which all its threads share.
#[derive(Debug)]
pub(crate) struct Room {
    left: AtomicI64,
    lacking: AtomicU64,
}

impl Room {
    /// For so many.
    pub(crate) fn new(events: u32) -> Self {
        Room { left: AtomicI64::new(events.into()), lacking: AtomicU64::new(0) }
    }

    /// Takes the room of one event, or notes that it is missing.
    pub(crate) fn take(&self) -> bool {
        // A count alone; nothing is published by it.
        let there = self.left.fetch_sub(1, Ordering::Relaxed) > 0;
        if !there {
            self.lacking.fetch_add(1, Ordering::Relaxed);
        }
        there
    }

    /// Events there was no room for.
    pub(crate) fn lacking(&self) -> u64 {
        self.lacking.load(Ordering::Relaxed)
    }
}

/// Something that began and ended.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct Event {
    pub(crate) begin: u64,
    nanoseconds: u64,
    bytes: u64,
    region: u64,
    offset: u64,
    /// The target of a call, the source of a message served.
    peer: u32,
    thread: u16,
    /// A [`Kind`], or [`SERVED`] plus a kind of message.
    name: u8,
    /// One of [`PATHS`].
    path: u8,
}

impl Event {
    pub(crate) fn of_call(begin: u64, nanoseconds: u64, thread: usize, call: &Call<'_>) -> Self {
        let transfer = matches!(call.kind, Kind::Put | Kind::Get | Kind::Accumulate | Kind::Rmw | Kind::Notify);
        Event {
            begin,
            nanoseconds,
            bytes: call.bytes as u64,
            region: call.region.map_or(NO_REGION, RegionId::to_bits),
            offset: call.offset,
            peer: call.target.map_or(NOBODY, |target| target as u32),
            thread: thread as u16,
            name: call.kind as u8,
            path: match (transfer, call.direct) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => 2,
            },
        }
    }

    pub(crate) fn of_message(
        begin: u64,
        nanoseconds: u64,
        kind: usize,
        region: Option<RegionId>,
        bytes: usize,
        source: usize,
        server: Server,
    ) -> Self {
        Event {
            begin,
            nanoseconds,
            bytes: bytes as u64,
            region: region.map_or(NO_REGION, RegionId::to_bits),
            offset: 0,
            peer: source as u32,
            thread: if server == Server::ProgressThread { PROGRESS_THREAD } else { WAITERS },
            name: SERVED + kind as u8,
            path: 0,
        }
    }

    /// How long it lasted.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.nanoseconds
    }

    /// The event as an object, its times in microseconds since `start`.
    fn write(&self, to: &mut impl Write, rank: usize, start: u64) -> io::Result<()> {
        let call = Kind::NAMES.get(usize::from(self.name));
        let (prefix, name, category) = match call {
            Some(name) => ("", name, "call"),
            None => ("serve ", &summary::NAMES[usize::from(self.name - SERVED)], "served"),
        };
        let micro = |time: u64| (time / 1000, time % 1000);
        let ((at, at_ns), (us, us_ns)) = (micro(self.begin.saturating_sub(start)), micro(self.nanoseconds));
        write!(
            to,
            "{{\"name\":\"{prefix}{name}\",\"cat\":\"{category}\",\"ph\":\"X\",\"pid\":{rank},\"tid\":{},\
             \"ts\":{at}.{at_ns:03},\"dur\":{us}.{us_ns:03},\"args\":{{\"bytes\":{}",
            self.thread, self.bytes
        )?;
        if self.peer != NOBODY {
            let peer = if call.is_some() { "target" } else { "source" };
            write!(to, ",\"{peer}\":{}", self.peer)?;
        }
        if self.region != NO_REGION {
            write!(to, ",\"region\":\"{}\"", RegionId::from_bits(self.region))?;
        }
        if let Some(path) = PATHS[usize::from(self.path)] {
            write!(to, ",\"offset\":{},\"path\":\"{path}\"", self.offset)?;
        }
        to.write_all(b"}}")
    }
}

/// What people read of a thread.
fn thread_name(thread: u16) -> String {
    match thread {
        0 => "main".into(),
        PROGRESS_THREAD => "served by the progress thread".into(),
        WAITERS => "served by threads that wait".into(),
        number => format!("attached {number}"),
    }
}

/// The file of a node.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    file: BufWriter<File>,
    start: u64,
    /// Ranks and threads that have been named.
    named: BTreeSet<(usize, Option<u16>)>,
    events: u64,
}

/// Each node of several has a file of its own: `jobs/run.json` becomes `jobs/run.node1.json`.
fn path_of(path: &Path, who: &Identity) -> PathBuf {
    if who.nodes == 1 {
        return path.into();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".node{}", who.node));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

impl Output {
    /// Creates the file, if this is the first rank of its node and one is asked for.
    ///
    /// # Errors
    /// [`Error::Job`] names the file that cannot be created.
    pub(crate) fn create(path: Option<&Path>, who: &Identity) -> Result<Option<Self>> {
        let Some(path) = path.filter(|_| who.local_rank == 0) else { return Ok(None) };
        let path = path_of(path, who);
        let file = File::create(&path).map_err(|error| {
            Error::Job(format!(
                "the timeline that ARMCI_TRACE asks for cannot be written to {}: {error}",
                path.display()
            ))
        })?;
        Ok(Some(Output { path, file: BufWriter::new(file), start: 0, named: BTreeSet::new(), events: 0 }))
    }

    /// Writes what comes before the events. Time begins at `start`; of each rank so many events lack.
    pub(crate) fn begin(&mut self, start: u64, first_rank: usize, lacking: &[u64]) -> io::Result<()> {
        self.start = start;
        write!(
            self.file,
            "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"clock\":\"CLOCK_MONOTONIC\",\"start_ns\":{start},\
             \"dropped\":{},\"dropped_by_rank\":{{",
            lacking.iter().sum::<u64>()
        )?;
        for (member, lacking) in lacking.iter().enumerate() {
            let comma = if member == 0 { "" } else { "," };
            write!(self.file, "{comma}\"{}\":{lacking}", first_rank + member)?;
        }
        self.file.write_all(b"}},\n\"traceEvents\":[")
    }

    fn comma(&mut self) -> io::Result<()> {
        let comma: &[u8] = if self.events == 0 { b"\n" } else { b",\n" };
        self.events += 1;
        self.file.write_all(comma)
    }

    /// Names a rank, or a thread of it, at its first event.
    fn name(&mut self, rank: usize, thread: Option<u16>) -> io::Result<()> {
        if !self.named.insert((rank, thread)) {
            return Ok(());
        }
        self.comma()?;
        let (what, name) = match thread {
            None => ("process_name", format!("rank {rank}")),
            Some(thread) => ("thread_name", thread_name(thread)),
        };
        let tid = thread.unwrap_or(0);
        write!(
            self.file,
            "{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{rank},\"tid\":{tid},\"args\":{{\"name\":\"{name}\"}}}}"
        )
    }

    /// Writes events of a rank.
    pub(crate) fn write(&mut self, rank: usize, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.name(rank, None)?;
            self.name(rank, Some(event.thread))?;
            self.comma()?;
            event.write(&mut self.file, rank, self.start)?;
        }
        Ok(())
    }

    /// Writes what comes behind the events.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.file.write_all(b"\n]}\n")?;
        self.file.flush()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn room_is_for_so_many() {
        let room = Room::new(2);
        assert_eq!([(); 5].map(|()| room.take()), [true, true, false, false, false]);
        assert_eq!(room.lacking(), 3);
    }

    #[test]
    fn each_of_several_nodes_has_a_file() {
        let on = |node, nodes| Identity { rank: 0, size: 4, local_rank: 0, local_size: 2, nodes, node, nodes_here: 1 };
        assert_eq!(path_of(Path::new("a.b/run.json"), &on(0, 1)), Path::new("a.b/run.json"));
        assert_eq!(path_of(Path::new("a.b/run.json"), &on(1, 2)), Path::new("a.b/run.node1.json"));
        assert_eq!(path_of(Path::new("run"), &on(0, 2)), Path::new("run.node0"));
    }
}
