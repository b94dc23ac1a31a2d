//! How the ranks of a node come to hold each other's memory: descriptors, passed over a socket.
//!
//! ```text
//!   rank k of the node               rank 0 of the node
//!     "I know the secret"  ------->    is it the same user? is it the secret?
//!     its memory, its lifeline         ... until all have come, then to one after the other:
//!     maps them            <-------    all memories, in pieces; the next one's lifeline
//!     "taken"              ------->
//! ```
//!
//! The socket has an abstract name, so nothing lies in a file system; its name and the secret travel by the job's
//! bootstrap, which strangers do not hear. Each side asks the kernel whose process is at the other end, and
//! hands nothing to another user's. Unlike opening `/proc/PID/fd/N`, this needs neither one PID namespace nor leave
//! to trace a process; it needs one network namespace, which is what the bootstrap takes for a node.
//!
//! Guaranteed: a rank that is missing, or breaks off, is an error here after [`PATIENCE`], on all ranks of the node.
//! It costs three messages a rank, and descriptors in rank 0 while it lasts.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::error::{Error, Result};

/// How long anybody waits for the next word. Ranks come here within milliseconds of each other, since an exchange
/// precedes; but machines swap, and valgrind is slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// Descriptors in one message; the kernel takes at most 253.
const PIECE: usize = 64;

/// Where the ranks of a node meet, and the word that opens: made up by each rank, valid is its first rank's.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Place {
    name: u64,
    secret: [u64; 2],
}

/// What a rank says when it comes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct Greeting {
    secret: [u64; 2],
    slot: u64,
}

/// What a rank gives.
#[derive(Debug)]
pub(crate) struct Gift<'a> {
    pub(crate) memory: BorrowedFd<'a>,
    /// One end of a line whose other end only this rank holds, if its bootstrap wants the ranks to watch each other.
    pub(crate) lifeline: Option<BorrowedFd<'a>>,
}

/// A rank that has come, as the first one sees it.
struct Member {
    line: Option<OwnedFd>,
    memory: OwnedFd,
    lifeline: Option<OwnedFd>,
}

impl Place {
    /// Makes one up.
    pub(crate) fn invent() -> Result<Self> {
        let [name, first, second] = crate::job::random()?;
        Ok(Place { name, secret: [first, second] })
    }

    /// Opens it, as the first rank of a node does before the others hear of it.
    pub(crate) fn open(&self) -> Result<OwnedFd> {
        let listener = socket()?;
        rustix::net::bind(&listener, &self.address()?).map_err(|errno| Error::system("bind", errno))?;
        // The kernel cuts the number down to what it allows; then some ranks wait to be let in.
        rustix::net::listen(&listener, i32::MAX).map_err(|errno| Error::system("listen", errno))?;
        Ok(listener)
    }

    fn address(&self) -> Result<SocketAddrUnix> {
        SocketAddrUnix::new_abstract_name(format!("armci-{:016x}", self.name).as_bytes())
            .map_err(|errno| Error::system("naming a socket", errno))
    }
}

/// Gives this rank's memory to the others of its node, and hands each of theirs to `take`, with its slot. Returns the
/// lifeline of the rank in the next slot (behind the last comes the first), if that has one. Collective over the node.
///
/// The first rank brings the socket at which `place` is open.
///
/// # Errors
/// If a rank does not come or breaks off; or what `take` reports.
pub(crate) fn share(
    place: &Place,
    listener: Option<&OwnedFd>,
    slot: usize,
    slots: usize,
    gift: &Gift<'_>,
    take: impl FnMut(usize, OwnedFd) -> Result<()>,
) -> Result<Option<OwnedFd>> {
    match listener {
        Some(listener) => receive_all(listener, place, slots, gift).and_then(|members| hand_out(members, take)),
        None => visit(place, slot, slots, gift, take),
    }
}

/// What every other rank does.
fn visit(
    place: &Place,
    slot: usize,
    slots: usize,
    gift: &Gift<'_>,
    mut take: impl FnMut(usize, OwnedFd) -> Result<()>,
) -> Result<Option<OwnedFd>> {
    let line = socket()?;
    patient(&line)?;
    let address = place.address()?;
    retry_on_intr(|| rustix::net::connect(&line, &address)).map_err(|errno| lost("the first", "connect", errno))?;
    if !same_user(&line)? {
        return Err(Error::Job(
            "the socket at which the ranks of this node meet is another user's: all must run as the same user".into(),
        ));
    }
    let descriptors: Vec<_> = [Some(gift.memory), gift.lifeline].into_iter().flatten().collect();
    let greeting = Greeting { secret: place.secret, slot: slot as u64 };
    send(&line, bytemuck::bytes_of(&greeting), &descriptors).map_err(|errno| lost("the first", "sendmsg", errno))?;
    let mut taken = 0;
    while taken < slots {
        let (word, descriptors) = receive(&line).map_err(|errno| lost("the first", "recvmsg", errno))?;
        if word.is_empty() || descriptors.is_empty() {
            return Err(gave_up());
        }
        for memory in descriptors {
            if taken != slot {
                take(taken, memory)?;
            }
            taken += 1;
        }
    }
    let (word, descriptors) = receive(&line).map_err(|errno| lost("the first", "recvmsg", errno))?;
    if word.is_empty() {
        return Err(gave_up());
    }
    send(&line, &[1], &[]).map_err(|errno| lost("the first", "sendmsg", errno))?;
    Ok(descriptors.into_iter().next())
}

/// Lets the ranks of the node in, until all have come. Whoever does not know the secret, or is not of this user, is
/// shown out, and keeps nobody waiting.
fn receive_all(listener: &OwnedFd, place: &Place, slots: usize, gift: &Gift<'_>) -> Result<Vec<Member>> {
    let own = |descriptor: BorrowedFd<'_>| {
        rustix::io::fcntl_dupfd_cloexec(descriptor, 3).map_err(|errno| Error::system("fcntl(F_DUPFD)", errno))
    };
    let myself = Member { line: None, memory: own(gift.memory)?, lifeline: gift.lifeline.map(own).transpose()? };
    let mut members: Vec<Option<Member>> = (0..slots).map(|_| None).collect();
    members[0] = Some(myself);
    let mut at_the_door: Vec<OwnedFd> = Vec::new();
    let mut deadline = Instant::now() + PATIENCE;
    while let Some(missing) = members.iter().position(Option::is_none) {
        let sources = [listener].into_iter().chain(&at_the_door);
        let mut polled: Vec<_> = sources.map(|source| PollFd::new(source, PollFlags::IN)).collect();
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let ready = retry_on_intr(|| rustix::event::poll(&mut polled, Some(&timeout)))
            .map_err(|errno| Error::system("poll", errno))?;
        if ready == 0 {
            return Err(Error::Job(format!(
                "rank {missing} of this node did not bring its memory within {PATIENCE:?}: is it stopped, or in \
                 another network namespace?"
            )));
        }
        let ready: Vec<bool> = polled.iter().map(|source| !source.revents().is_empty()).collect();
        // From the end, so that the others keep their numbers.
        for index in (0..at_the_door.len()).rev().filter(|index| ready[index + 1]) {
            let line = at_the_door.swap_remove(index);
            let Ok((word, descriptors)) = receive(&line) else { continue };
            let mut descriptors = descriptors.into_iter();
            let (Some(slot), Some(memory)) = (admitted(&word, place, slots), descriptors.next()) else { continue };
            if members[slot].is_none() {
                members[slot] = Some(Member { line: Some(line), memory, lifeline: descriptors.next() });
                deadline = Instant::now() + PATIENCE;
            }
        }
        if ready[0] {
            let line = retry_on_intr(|| rustix::net::accept_with(listener, SocketFlags::CLOEXEC))
                .map_err(|errno| Error::system("accept", errno))?;
            if same_user(&line)? {
                patient(&line)?;
                at_the_door.push(line);
            }
        }
    }
    Ok(members.into_iter().flatten().collect())
}

/// The slot of whoever says this, if it belongs here.
fn admitted(word: &[u8], place: &Place, slots: usize) -> Option<usize> {
    let greeting: Greeting = bytemuck::try_pod_read_unaligned(word).ok()?;
    let slot = usize::try_from(greeting.slot).ok()?;
    (greeting.secret == place.secret && (1..slots).contains(&slot)).then_some(slot)
}

/// Gives each rank what all have brought, one after the other, so that few descriptors are under way: the kernel
/// counts them, for each user.
fn hand_out(members: Vec<Member>, mut take: impl FnMut(usize, OwnedFd) -> Result<()>) -> Result<Option<OwnedFd>> {
    let memories: Vec<_> = members.iter().map(|member| member.memory.as_fd()).collect();
    for (slot, member) in members.iter().enumerate() {
        let Some(line) = &member.line else { continue };
        let who = format!("the {slot}th");
        for piece in memories.chunks(PIECE) {
            send(line, &[1], piece).map_err(|errno| lost(&who, "sendmsg", errno))?;
        }
        let next = &members[(slot + 1) % members.len()];
        let lifeline: Vec<_> = next.lifeline.iter().map(AsFd::as_fd).collect();
        send(line, &[1], &lifeline).map_err(|errno| lost(&who, "sendmsg", errno))?;
        let (word, _) = receive(line).map_err(|errno| lost(&who, "recvmsg", errno))?;
        if word.is_empty() {
            return Err(Error::Job(format!("rank {slot} of this node broke off while the ranks shared their memory")));
        }
    }
    let mut lifeline = None;
    for (slot, member) in members.into_iter().enumerate() {
        if slot == 1 {
            lifeline = member.lifeline;
        }
        if slot > 0 {
            take(slot, member.memory)?;
        }
    }
    Ok(lifeline)
}

fn socket() -> Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::system("socket", errno))
}

/// Limits how long a call on this socket waits.
fn patient(line: &OwnedFd) -> Result<()> {
    [Timeout::Recv, Timeout::Send]
        .into_iter()
        .try_for_each(|side| set_socket_timeout(line, side, Some(PATIENCE)))
        .map_err(|errno| Error::system("setsockopt", errno))
}

/// Whether the process at the other end is this user's, as the kernel saw when they were connected.
fn same_user(line: &OwnedFd) -> Result<bool> {
    let other = socket_peercred(line).map_err(|errno| Error::system("getsockopt(SO_PEERCRED)", errno))?;
    Ok(other.uid == rustix::process::geteuid())
}

fn send(line: &OwnedFd, word: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIECE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "{} descriptors", descriptors.len());
    }
    retry_on_intr(|| rustix::net::sendmsg(line, &[IoSlice::new(word)], &mut control, SendFlags::NOSIGNAL)).map(drop)
}

/// One message: its bytes, none at the end of the line, and the descriptors with it.
fn receive(line: &OwnedFd) -> rustix::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut word = [0; size_of::<Greeting>() + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIECE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        rustix::net::recvmsg(line, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((word[..received.bytes].to_vec(), rights.flatten().collect()))
}

fn lost(who: &str, call: &str, errno: rustix::io::Errno) -> Error {
    Error::Job(format!(
        "{who} rank of this node, with which memory was to be shared, cannot be reached: {call} failed: {errno}; all \
         ranks of a node must run as the same user and in the same network namespace, with descriptors to spare \
         (ulimit -n)"
    ))
}

fn gave_up() -> Error {
    Error::Job("the first rank of this node broke off while the ranks shared their memory".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn memory(number: u64) -> OwnedFd {
        let memory = rustix::fs::memfd_create("sharing-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&memory, 4096 + number).unwrap();
        memory
    }

    fn number(memory: &OwnedFd) -> u64 {
        rustix::fs::fstat(memory).unwrap().st_size as u64 - 4096
    }

    /// What the rank in `slot` gets: the numbers of the others' memories, and what it reads from the next one's lifeline.
    fn play(place: &Place, listener: Option<&OwnedFd>, slot: usize, slots: usize) -> Result<(Vec<u64>, u8)> {
        let mine = memory(slot as u64);
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&write, &[slot as u8]).unwrap();
        let gift = Gift { memory: mine.as_fd(), lifeline: Some(read.as_fd()) };
        let mut seen = Vec::new();
        let next = share(place, listener, slot, slots, &gift, |from, memory| {
            assert_eq!(number(&memory), from as u64);
            seen.push(number(&memory));
            Ok(())
        })?;
        let mut byte = [0];
        rustix::io::read(next.unwrap(), &mut byte).unwrap();
        Ok((seen, byte[0]))
    }

    #[test]
    fn everybody_gets_everybodys_and_the_next_ones_lifeline() {
        for slots in [2, 3, 7, 2 * PIECE + 3] {
            let place = Place::invent().unwrap();
            let listener = place.open().unwrap();
            let results: Vec<_> = std::thread::scope(|scope| {
                let play = |slot| {
                    let listener = (slot == 0).then_some(&listener);
                    scope.spawn(move || play(&place, listener, slot, slots).unwrap())
                };
                let ranks: Vec<_> = (0..slots).map(play).collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            for (slot, (seen, next)) in results.into_iter().enumerate() {
                let others: Vec<_> = (0..slots as u64).filter(|other| *other != slot as u64).collect();
                assert_eq!(seen, others);
                assert_eq!(usize::from(next), (slot + 1) % slots);
            }
        }
    }

    #[test]
    fn strangers_are_shown_out_and_keep_nobody_waiting() {
        let place = Place::invent().unwrap();
        let listener = place.open().unwrap();
        let address = place.address().unwrap();
        let stranger = || {
            let line = socket().unwrap();
            rustix::net::connect(&line, &address).unwrap();
            line
        };
        let silent = stranger();
        let wrong = stranger();
        let memory = memory(9);
        for (secret, slot) in [([1, 2], 1), (place.secret, 0), (place.secret, 2), (place.secret, u64::MAX)] {
            let line = stranger();
            let greeting = Greeting { secret, slot };
            send(&line, bytemuck::bytes_of(&greeting), &[memory.as_fd()]).unwrap();
        }
        send(&wrong, b"?", &[]).unwrap();
        let second = std::thread::spawn(move || play(&place, None, 1, 2).unwrap());
        assert_eq!(play(&place, Some(&listener), 0, 2).unwrap(), (vec![1], 1));
        assert_eq!(second.join().unwrap(), (vec![0], 0));
        assert!(silent.as_raw_fd() >= 0);
    }

    #[test]
    fn a_first_rank_that_breaks_off_is_an_error_for_the_others() {
        let place = Place::invent().unwrap();
        let listener = place.open().unwrap();
        let second = std::thread::spawn(move || play(&place, None, 1, 3));
        let line = rustix::net::accept(&listener).unwrap();
        receive(&line).unwrap();
        drop(line);
        assert!(second.join().unwrap().unwrap_err().to_string().contains("broke off"));
        drop(listener);
        assert!(play(&place, None, 1, 3).unwrap_err().to_string().contains("connect failed"));
    }
}
