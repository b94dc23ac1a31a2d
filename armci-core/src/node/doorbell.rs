//! The doorbell: where a progress thread is woken, which sleeps in one of two ways.
//!
//! On a job of one node it sleeps on a futex ([`Bell`]). With a fabric it sleeps over that one's descriptor, and a futex
//! cannot be waited for beside it: so it opens a datagram socket under an abstract name, and a neighbour that finds it
//! asleep sends it one byte. No neighbour keeps a descriptor for that.
//!
//! # Protocol
//! As that of the bell, with the flag `dozing` in place of its own: the sleeper raises it, looks once more behind a
//! sequentially consistent fence, and sleeps; who rings publishes, passes such a fence (that of the bell), and looks at
//! the flag. The byte stays in the socket until the sleeper has taken it out, which it does after each sleep: one that
//! came early or twice only wakes it in vain.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

use crate::error::{Error, Result};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fence};
use crate::sync::bell::Bell;

/// A bell that may be rung through a socket. All zero bytes: one that is not.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Doorbell {
    bell: Bell,
    /// Not zero while somebody sleeps over the socket, or is about to.
    dozing: AtomicU32,
    /// The name of the socket; 0 if there is none.
    name: AtomicU64,
}

impl Doorbell {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the system has none.
    pub(crate) fn open(&self) -> Result<OwnedFd> {
        let [random] = crate::job::random::<1>()?;
        let name = random | 1;
        let socket = datagram().map_err(|error| Error::system("socket", error))?;
        bind(&socket, &address(name)).map_err(|error| Error::system("bind of a doorbell", error))?;
        self.name.store(name, Ordering::Release);
        Ok(socket)
    }

    /// Wakes whoever sleeps here. To be called after what they wait for was published.
    #[inline]
    pub(crate) fn ring(&self) {
        self.ring_by(|| self.send());
    }

    #[inline]
    fn ring_by(&self, send: impl FnOnce()) {
        self.bell.ring();
        // The bell's fence stands between what was published and this look.
        if self.dozing.load(Ordering::Relaxed) != 0 && self.dozing.swap(0, Ordering::Relaxed) != 0 {
            send();
        }
    }

    #[cold]
    fn send(&self) {
        let name = self.name.load(Ordering::Acquire);
        if name != 0 {
            // A full socket has woken its owner already. Without a descriptor for it nobody can be woken: whoever sleeps
            // there wakes by itself now and then.
            let _ = datagram().map(|socket| sendto(socket, &[0], SendFlags::DONTWAIT, &address(name)));
        }
    }

    /// Sleeps until rung, on the futex, unless `ready` holds; may return early.
    pub(crate) fn sleep_on_futex_unless(&self, ready: impl FnOnce() -> bool) {
        self.bell.sleep_unless(ready);
    }

    /// Runs `sleep`, which returns when the socket is readable, unless `ready` holds.
    pub(crate) fn sleep_unless(&self, ready: impl FnOnce() -> bool, sleep: impl FnOnce()) {
        self.dozing.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ready() {
            sleep();
        }
        self.dozing.store(0, Ordering::Relaxed);
    }
}

/// Takes out of the socket what has come.
pub(crate) fn drain(socket: BorrowedFd<'_>) {
    let mut bytes = [0u8; 8];
    while recv(socket.as_fd(), &mut bytes[..], RecvFlags::DONTWAIT).is_ok() {}
}

fn datagram() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

fn address(name: u64) -> SocketAddrUnix {
    SocketAddrUnix::new_abstract_name(format!("armci-bell-{name:016x}").as_bytes()).expect("a short name")
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::{sync::Arc, thread};

    /// A doorbell, the socket behind it as a count of bytes, and what the sleeper waits for.
    struct Door {
        doorbell: Doorbell,
        bytes: AtomicU32,
        published: AtomicU32,
    }

    impl Door {
        fn new() -> Arc<Self> {
            let doorbell = Doorbell { bell: Bell::new(), dozing: AtomicU32::new(0), name: AtomicU64::new(1) };
            Arc::new(Door { doorbell, bytes: AtomicU32::new(0), published: AtomicU32::new(0) })
        }

        fn publish_and_ring(&self) {
            self.published.fetch_add(1, Ordering::Release);
            self.doorbell.ring_by(|| drop(self.bytes.fetch_add(1, Ordering::Release)));
        }

        /// Sleeps until so many have published. One that sleeps on is a loop that never ends.
        fn wait_for(&self, count: u32) {
            let ready = || self.published.load(Ordering::Acquire) == count;
            while !ready() {
                self.doorbell.sleep_unless(ready, || {
                    while self.bytes.load(Ordering::Acquire) == 0 {
                        thread::yield_now();
                    }
                    self.bytes.store(0, Ordering::Relaxed);
                });
            }
        }
    }

    #[test]
    fn nobody_sleeps_through_a_ring() {
        loom::model(|| {
            let door = Door::new();
            let sleeper = thread::spawn({
                let door = door.clone();
                move || door.wait_for(1)
            });
            door.publish_and_ring();
            sleeper.join().unwrap();
        });
    }

    #[test]
    fn nor_through_the_second_of_two() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let door = Door::new();
            let other = thread::spawn({
                let door = door.clone();
                move || door.publish_and_ring()
            });
            let sleeper = thread::spawn({
                let door = door.clone();
                move || door.wait_for(2)
            });
            door.publish_and_ring();
            other.join().unwrap();
            sleeper.join().unwrap();
        });
    }
}
