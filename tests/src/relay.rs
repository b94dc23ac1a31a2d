//! A line between two network namespaces that delays what goes over it, and loses some: a relay in this process.
//!
//! ```text
//!   namespace A                this process                 namespace B
//!   device (TAP)  ==frames==>  due in so many ms  ==>  device (TAP)        and the other way round
//!                              or thrown away
//! ```
//!
//! Guaranteed: each frame comes once or not at all, in order, no sooner than [`Weather::delay`] after it was sent, and no frame
//! is changed. The kernel has put checksums into frames that it gives to such a device, and cut them to the line's size, so
//! that what they carry is checked as on a wire. Losses are drawn from a fixed seed, though not the frames' times. Both
//! devices are gone when the relay is dropped.
//!
//! # Safety
//! INTERFACE-REQUEST: the ioctl reads and writes as many bytes as C's `struct ifreq` has on 64-bit machines, which
//! [`Request`] has.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::ioctl::{Updater, ioctl, opcode};

use crate::hosts::within;

/// The longest frame of such a line, and more.
const FRAME: usize = 4 << 10;
/// Frames on their way at most; more are thrown away, as a full queue's are.
const QUEUE: usize = 4_000;
/// A frame as it is, without a header of the kernel's, of an Ethernet.
const TAP: i16 = 0x0002 | 0x1000;
/// The ioctl that makes a device of an open file.
const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);

/// C's `struct ifreq`, as far as this ioctl is concerned.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<Request>() == 40);

/// What a line does to what goes over it, each way.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// How long a frame takes at least.
    pub delay: Duration,
    /// How much longer it may take.
    pub jitter: Duration,
    /// How many of a hundred frames are lost.
    pub loss: f64,
}

/// A running relay.
#[derive(Debug)]
pub(crate) struct Relay {
    thread: Option<JoinHandle<()>>,
    stop: Option<OwnedFd>,
    cut: Arc<AtomicBool>,
}

impl Relay {
    /// Makes a device in each of two namespaces, and joins them.
    ///
    /// # Errors
    /// In words: what is not allowed here.
    pub(crate) fn join(a: (&str, &str), b: (&str, &str), weather: Weather, seed: u64) -> Result<Self, String> {
        let ends = [device(a.0, a.1)?, device(b.0, b.1)?];
        let (stopped, stop) = rustix::pipe::pipe().map_err(|errno| format!("pipe: {errno}"))?;
        let cut = Arc::new(AtomicBool::new(false));
        let thread = {
            let cut = Arc::clone(&cut);
            let way = || Way { queue: VecDeque::new(), last: Instant::now() };
            let mut carrier =
                Carrier { ends, ways: [way(), way()], weather, random: fastrand::Rng::with_seed(seed), cut };
            std::thread::Builder::new().name("relay".into()).spawn(move || carrier.carry(&stopped))
        };
        let thread = thread.map_err(|error| format!("a thread: {error}"))?;
        Ok(Self { thread: Some(thread), stop: Some(stop), cut })
    }

    /// From now on everything is lost, both ways.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been shown.
            let _ = thread.join();
        }
    }
}

/// A device of this name in a namespace; it lives as long as its file is open.
fn device(namespace: &str, name: &str) -> Result<File, String> {
    within(namespace, || {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = options.open("/dev/net/tun").map_err(|error| format!("/dev/net/tun: {error}"))?;
        let mut request = Request { name: [0; 16], flags: TAP, rest: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: INTERFACE-REQUEST.
        unsafe { ioctl(&file, Updater::<TUNSETIFF, Request>::new(&mut request)) }
            .map_err(|errno| format!("a TAP device: {errno}"))?;
        Ok(file)
    })
}

/// Frames that go one way.
struct Way {
    queue: VecDeque<(Instant, Vec<u8>)>,
    /// When the last one is due: none overtakes another.
    last: Instant,
}

/// What the thread has.
struct Carrier {
    ends: [File; 2],
    /// From end 0 to end 1, and from 1 to 0.
    ways: [Way; 2],
    weather: Weather,
    random: fastrand::Rng,
    cut: Arc<AtomicBool>,
}

impl Carrier {
    fn carry(&mut self, stopped: &OwnedFd) {
        loop {
            let due = self.ways.iter().filter_map(|way| way.queue.front()).map(|(due, _)| *due).min();
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let descriptors = [stopped.as_fd(), self.ends[0].as_fd(), self.ends[1].as_fd()];
            let mut polled = descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            match rustix::event::poll(&mut polled, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => panic!("a relay cannot wait: {errno}"),
            }
            let ready = polled.map(|polled| !polled.revents().is_empty());
            if ready[0] {
                return;
            }
            for end in [0, 1] {
                if ready[end + 1] {
                    self.take(end);
                }
                self.deliver(end);
            }
        }
    }

    /// Takes in what has been sent at one end.
    fn take(&mut self, end: usize) {
        let mut frame = [0; FRAME];
        // A device that is down has nothing.
        while let Ok(len @ 1..) = self.ends[end].read(&mut frame) {
            let lost = self.cut.load(Ordering::Relaxed) || self.random.f64() * 100.0 < self.weather.loss;
            let way = &mut self.ways[end];
            if lost || way.queue.len() >= QUEUE {
                continue;
            }
            let later = self.weather.jitter.mul_f64(self.random.f64());
            way.last = way.last.max(Instant::now() + self.weather.delay + later);
            way.queue.push_back((way.last, frame[..len].to_vec()));
        }
    }

    /// Hands out at the other end what is due.
    fn deliver(&mut self, from: usize) {
        let now = Instant::now();
        let queue = &mut self.ways[from].queue;
        while queue.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, frame)) = queue.pop_front() else { return };
            // A device that is down takes nothing: the frame is lost, as on a wire.
            if !self.cut.load(Ordering::Relaxed) {
                let _ = self.ends[1 - from].write(&frame);
            }
        }
    }
}
