//! Starting a process: a rank's, or a remote shell.
//!
//! Guaranteed: a started process is the leader of a process group of its own, dies with the launcher's
//! thread, inherits, if it is a rank, its end of its control socket, and none of the launcher's other descriptors (all
//! are close-on-exec), and starts with the signal mask the launcher had before it listened for
//! signals.
//!
//! # Safety
//! FORKED-CHILD: the closure given to `pre_exec` runs between fork and exec, in a copy of a process
//! whose other threads are gone. It makes plain system calls on values prepared before the fork; it
//! does not allocate, lock or unwind.
#![allow(unsafe_code)]

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::io::FdFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::CpuSet;

use super::super::Identity;
use super::super::ticket::{self, Ticket};
use super::Job;
use super::signals::Mask;
use crate::topology::{Core, Seat};

/// What is the same for all ranks of a job.
pub(super) struct Plan<'a> {
    pub(super) job: &'a Job,
    pub(super) secret: u64,
    pub(super) mask: Mask,
    pub(super) pipe_stdout: bool,
    pub(super) pipe_stderr: bool,
}

/// A process and the launcher's ends of what connects them.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) pid: Pid,
    /// Readable when the process has ended.
    pub(super) exit: OwnedFd,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// Starts a rank, on `core` if it is to be bound. Returns our end of its control socket, too.
pub(super) fn rank(plan: &Plan, who: Identity, seat: Seat, core: Option<&Core>) -> io::Result<(Started, OwnedFd)> {
    let job = plan.job;
    let (control, ranks_end) = socket_pair()?;
    let inode =
        ticket::inode_of_socket(&ranks_end).ok_or_else(|| io::Error::other("a new socket has no inode number"))?;
    let ticket =
        Ticket { descriptor: ranks_end.as_raw_fd(), inode, who, secret: plan.secret, core: core.cloned(), seat };

    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .env(ticket::VARIABLE, ticket.to_text());
    if ticket.who.rank > 0 || job.no_input || io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    if plan.pipe_stdout {
        command.stdout(Stdio::piped());
    }
    if plan.pipe_stderr {
        command.stderr(Stdio::piped());
    }
    let started = start(command, Some(ranks_end), plan.mask, core.map(cpu_set))?;
    Ok((started, control))
}

/// Starts a command; it inherits `kept`.
pub(super) fn start(
    mut command: Command,
    kept: Option<OwnedFd>,
    mask: Mask,
    cpus: Option<CpuSet>,
) -> io::Result<Started> {
    prepare(&mut command, kept, mask, cpus);
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let stdin = child.stdin.take().map(OwnedFd::from);
    let pipes = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
    let exit = rustix::process::pidfd_open(pid, PidfdFlags::empty()).and_then(|exit| {
        for pipe in [&stdin, &pipes.0, &pipes.1].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(exit)
    });
    match exit {
        Ok(exit) => Ok(Started { child, pid, exit, stdin, stdout: pipes.0, stderr: pipes.1 }),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error.into())
        }
    }
}

/// Two connected sockets, both close-on-exec, numbered above the standard three.
fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let theirs = if theirs.as_raw_fd() > 2 { theirs } else { rustix::io::fcntl_dupfd_cloexec(theirs, 3)? };
    Ok((ours, theirs))
}

/// Says what the child does between fork and exec.
fn prepare(command: &mut Command, kept: Option<OwnedFd>, mask: Mask, cpus: Option<CpuSet>) {
    let launcher = rustix::process::getpid();
    let in_child = move || -> io::Result<()> {
        rustix::process::setpgid(None, None)?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(launcher) {
            // The launcher died before the line above took effect.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if let Some(cpus) = &cpus {
            rustix::thread::sched_setaffinity(None, cpus)?;
        }
        if let Some(kept) = &kept {
            rustix::io::fcntl_setfd(kept.as_fd(), FdFlags::empty())?;
        }
        mask.restore()
    };
    // SAFETY: FORKED-CHILD.
    unsafe { command.pre_exec(in_child) };
}

fn cpu_set(core: &Core) -> CpuSet {
    let mut set = CpuSet::new();
    for &cpu in core {
        set.set(cpu);
    }
    set
}
