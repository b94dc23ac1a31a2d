//! A job over several hosts: one agent a host, started through a remote shell, which starts the ranks there.
//!
//! ```text
//!   armci-run --hosts a:2,b:2        the head: hosts are to it what ranks are to a launcher
//!     |  remote shell: the call (address, secret, what to run) and rank 0's input down, output up
//!     |  TCP, from the agent back: exchanges, goodbyes, why it ended; signals
//!     +------------------------+
//!     v                        v
//!   armci-run --agent (a)    armci-run --agent (b)       a launcher, whose exchanges go on to the head
//!     |  a socket per rank     |
//!   rank 0, rank 1           rank 2, rank 3
//! ```
//!
//! Guaranteed: what [`super`] promises of ranks holds of those on other hosts; a host that is lost (its agent was killed,
//! it went down, its link did) ends the job within about ten seconds with one message that names it, and the ranks there
//! end by themselves, as their agent sees the head no more. No rank starts before all hosts are there. Only who
//! knows the job's secret is listened to. Not guaranteed: that what has once been proven stays so; the line is neither
//! encrypted nor sealed.
//!
//! Rooms: `list.rs` (which hosts, which ranks), `call.rs` (what an agent is told), `feed.rs` (how it gets there), `head.rs`,
//! `agent.rs`, `upstream.rs` (the agent's line). How hosts find and believe each other is [`super::super::network`]'s.

mod agent;
mod call;
mod feed;
pub(super) mod head;
mod list;
pub(super) mod upstream;

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use crate::error::{Error, Result};
pub use agent::serve_as_agent;

/// What starts a command on a host if nothing else is said: fails rather than asks for a password.
const REMOTE_SHELL: [&str; 3] = ["ssh", "-o", "BatchMode=yes"];

/// The hosts of a job, and how they are reached: build it up, then give it to [`super::Job::hosts`].
///
/// ```no_run
/// # use armci_core::job::{Hosts, Job};
/// let hosts = Hosts::list("a:2,b:2")?.agent(["/usr/local/bin/armci-run", "--agent"]);
/// Job::new(4, "./water")?.hosts(hosts)?.run()?;
/// # Ok::<(), armci_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Hosts {
    entries: Vec<list::Entry>,
    remote_shell: Vec<OsString>,
    agent: Vec<OsString>,
    address: Option<String>,
}

impl Hosts {
    /// The hosts of a list such as `a:2,b:2`; without numbers the ranks are split evenly.
    ///
    /// # Errors
    /// If it does not read like one.
    pub fn list(text: &str) -> Result<Self> {
        Ok(Self::new(list::parse_list(text)?))
    }

    /// The hosts of a file's text: one a line, with its slots (`a 2`), `#` begins a comment.
    ///
    /// # Errors
    /// If it does not read like one.
    pub fn file(text: &str) -> Result<Self> {
        Ok(Self::new(list::parse_file(text)?))
    }

    fn new(entries: Vec<list::Entry>) -> Self {
        let remote_shell = REMOTE_SHELL.iter().map(OsString::from).collect();
        Self { entries, remote_shell, agent: Vec::new(), address: None }
    }

    /// The command that starts others on a host: behind it come the host's name and what it is to start. It must let
    /// standard input, output and error through. Default: `ssh -o BatchMode=yes`.
    #[must_use]
    pub fn remote_shell<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.remote_shell = words.into_iter().map(Into::into).collect();
        self
    }

    /// The command that calls [`serve_as_agent`] on a host. A remote shell such as ssh's reads it anew, so a word must
    /// hold nothing that a shell takes for its own. Default: this program's file, with `--agent`.
    #[must_use]
    pub fn agent<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.agent = words.into_iter().map(Into::into).collect();
        self
    }

    /// The address that agents call back, or the interface whose addresses they try. Default: those of all interfaces
    /// but the loopback, in turn.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Which ranks each host gets.
    pub(super) fn deal(&self, ranks: usize) -> Result<Vec<(&str, Range<usize>)>> {
        list::deal(&self.entries, ranks)
    }

    /// What starts the agent on a host.
    fn command(&self, host: &str) -> Result<Command> {
        let (shell, words) = self.remote_shell.split_first().ok_or_else(|| {
            Error::Argument("the remote shell is an empty command; say --rsh ssh, for example".into())
        })?;
        let agent = match &self.agent[..] {
            [] => {
                let this = std::env::current_exe()
                    .map_err(|source| Error::System { call: "readlink of /proc/self/exe", source })?;
                vec![this.into_os_string(), "--agent".into()]
            }
            words => words.to_vec(),
        };
        if let Some(word) = agent.iter().find(|word| !is_plain(word)) {
            return Err(Error::Argument(format!(
                "{word:?} is to be run on other hosts, where a shell would read its blanks or signs as its own: put the \
                 agent at a path without them (--agent-path)"
            )));
        }
        let mut command = Command::new(shell);
        command.args(words).arg(host).args(agent);
        Ok(command)
    }

    fn remote_shell_shown(&self) -> String {
        self.remote_shell.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }
}

/// Whether a shell leaves the word as it is.
fn is_plain(word: &OsStr) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%,".contains(byte);
    !word.is_empty() && word.as_encoded_bytes().iter().all(plain)
}

/// How long a host may be silent. The kernel asks it, so that a program that is stopped or computes is no lost host.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the head may be: longer, so that where both live, and only the way between them is cut, the head is the first
/// to know, and says so.
const HEADS_SILENCE: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_shells_words_the_host_and_the_agents() {
        let hosts =
            Hosts::list("a,b").unwrap().remote_shell(["ip", "netns", "exec"]).agent(["/x/armci-run", "--agent"]);
        let command = hosts.command("a").unwrap();
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(
            (command.get_program(), &words[..]),
            (OsStr::new("ip"), &["netns", "exec", "a", "/x/armci-run", "--agent"].map(OsStr::new)[..])
        );
        assert!(hosts.agent(["/my files/armci-run"]).command("a").unwrap_err().to_string().contains("--agent-path"));
        let none = Hosts::list("a").unwrap().remote_shell([""; 0]).command("a").unwrap_err().to_string();
        assert!(none.contains("--rsh"), "{none}");
    }
}
