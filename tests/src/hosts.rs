//! Hosts for tests, made of network namespaces: each has its own addresses, and reaches the others only over a network.
//!
//! ```text
//!   namespace armci-PID-N-hub          a launcher runs here
//!     bridge0 10.77.0.1
//!       |            |
//!     veth         veth                the lines: may be taken down
//!       |            |
//!   ...-h0         ...-h1              `ip netns exec` is the remote shell
//!   eth 10.77.0.2  eth 10.77.0.3
//! ```
//!
//! [`crate::Ranks::hosts`] runs the body of a test on such hosts. Where lines are to be slow and lose some of what is sent
//! ([`Hosts::make_in`]), their two ends are devices of a relay of this process in place of a veth pair.
//!
//! Guaranteed: the names are of this process, and nothing is made in its own namespace, so that tests at the same time, or
//! the machine's own network, are not in each other's way. All is removed when the value is dropped; what a killed test
//! has left is removed by the next. Where namespaces may not be made, [`Hosts::make`] says so and returns nothing.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use armci_core::job;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::place::AGENT;
use crate::relay::{Relay, Weather};

/// What all names begin with.
const PREFIX: &str = "armci-";
/// Where `ip` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";

/// Some hosts and the network between them.
#[derive(Debug)]
pub struct Hosts {
    family: String,
    names: Vec<String>,
    /// One a host, if there are any.
    relays: Vec<Relay>,
}

impl Hosts {
    /// So many hosts and a hub; nothing, with a line on standard error, where that is not allowed.
    ///
    /// # Panics
    /// If the machine allows namespaces but no network in them.
    #[must_use]
    pub fn make(hosts: usize) -> Option<Self> {
        Self::make_in(hosts, None)
    }

    /// The same, with lines in such weather. Nothing, with a line on standard error, also where relays are not allowed.
    ///
    /// # Panics
    /// If the machine allows namespaces but no network in them.
    #[must_use]
    pub fn make_in(hosts: usize, weather: Option<Weather>) -> Option<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        remove_left_behind();
        let family = format!("{PREFIX}{}-{}-", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = (0..hosts).map(|host| format!("{family}h{host}")).collect();
        let mut made = Self { names, family, relays: Vec::new() };
        if let Err(why) = ip(&["netns", "add", &made.hub()]) {
            eprintln!("SKIPPED: this machine may not make network namespaces, which stand for hosts here: {why}");
            return None;
        }
        if let Err(why) = made.connect(weather) {
            eprintln!(
                "SKIPPED: this machine may not make devices whose frames a program sees (TAP), which lines with delay and loss are here: {why}"
            );
            return None;
        }
        Some(made)
    }

    /// An error is why a relay cannot be made.
    fn connect(&mut self, weather: Option<Weather>) -> Result<(), String> {
        let hub = self.hub();
        let within = |namespace: &str, words: &[&str]| {
            let all = [&["-n", namespace], words].concat();
            ip(&all).unwrap_or_else(|why| panic!("ip {}: {why}", all.join(" ")));
        };
        within(&hub, &["link", "set", "dev", "lo", "up"]);
        within(&hub, &["link", "add", "name", "bridge0", "type", "bridge"]);
        within(&hub, &["link", "set", "dev", "bridge0", "up"]);
        within(&hub, &["address", "add", &format!("{}/24", address(1)), "dev", "bridge0"]);
        for (host, name) in self.names.iter().enumerate() {
            let line = line(host);
            ip(&["netns", "add", name]).unwrap_or_else(|why| panic!("ip netns add {name}: {why}"));
            match weather {
                Some(weather) => {
                    self.relays.push(Relay::join((&hub, &line), (name, "eth"), weather, host as u64)?);
                }
                None => within(&hub, &["link", "add", &line, "type", "veth", "peer", "name", "eth", "netns", name]),
            }
            within(&hub, &["link", "set", "dev", &line, "master", "bridge0", "up"]);
            within(name, &["link", "set", "dev", "lo", "up"]);
            within(name, &["link", "set", "dev", "eth", "up"]);
            within(name, &["address", "add", &format!("{}/24", self.address(host)), "dev", "eth"]);
        }
        Ok(())
    }

    /// The hosts' names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of the namespace where launchers run.
    #[must_use]
    pub fn hub(&self) -> String {
        format!("{}hub", self.family)
    }

    /// The file that stands for a namespace, such as the hub's: what a thread enters to be there.
    #[must_use]
    pub fn file(namespace: &str) -> PathBuf {
        [NAMESPACES, namespace].iter().collect()
    }

    /// The address of a host.
    #[must_use]
    pub fn address(&self, host: usize) -> String {
        address(host + 2)
    }

    /// All addresses.
    #[must_use]
    pub fn network(&self) -> String {
        format!("{}/24", address(0))
    }

    /// The address of the hub.
    #[must_use]
    pub fn hub_address(&self) -> String {
        address(1)
    }

    /// A list for `armci-run --hosts`, with so many ranks on each host.
    #[must_use]
    pub fn list(&self, ranks_each: usize) -> String {
        self.names.iter().map(|name| format!("{name}:{ranks_each}")).collect::<Vec<_>>().join(",")
    }

    /// A command that runs in the hub.
    #[must_use]
    pub fn in_hub(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hub(), program]);
        command
    }

    /// Runs something on a thread in the hub, as a launcher is.
    ///
    /// # Panics
    /// If the hub is gone, or `run` panics.
    pub fn within_hub<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        within(&self.hub(), run)
    }

    /// For a job of any program: the agent is this test program, whose test `agent` calls
    /// [`serve_if_agent`].
    ///
    /// # Errors
    /// If this program's file is not known.
    pub fn for_job(&self, agent: &str) -> armci_core::Result<job::Hosts> {
        self.of_this_program(&["--exact", agent, "--nocapture"], false)
    }

    /// For a job of this program: its own file is the agent, too, with these arguments. Detached: what a remote shell has
    /// started lives on without it, as on a real host.
    pub(crate) fn of_this_program(&self, args: &[&str], detached: bool) -> armci_core::Result<job::Hosts> {
        let this = std::env::current_exe().map_err(|error| armci_core::Error::Job(error.to_string()))?;
        let shell = if detached { "setsid -w ip netns exec" } else { "ip netns exec" };
        let agent = ["env".into(), format!("{AGENT}=1").into(), this.into_os_string()];
        let agent = agent.into_iter().chain(args.iter().map(OsString::from));
        Ok(job::Hosts::list(&self.names.join(","))?.remote_shell(shell.split(' ')).agent(agent))
    }

    /// The processes that live on these hosts, in words; nothing if there are none.
    ///
    /// # Panics
    /// If nobody can be asked.
    #[must_use]
    pub fn processes(&self) -> Option<String> {
        let of = |name: &String| {
            let command = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            pids(name).map(|pid| format!("{name} {pid} {:?}; ", command(pid))).collect::<String>()
        };
        Some(self.names.iter().map(of).collect::<String>()).filter(|all| !all.is_empty())
    }

    /// Ends whatever lives on these hosts, such as agents of launchers that wait for a lost one.
    ///
    /// # Panics
    /// If nobody can be asked what does.
    pub fn end_processes(&self) {
        for pid in self.names.iter().flat_map(|name| pids(name)).filter_map(Pid::from_raw) {
            // One that has ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Takes a host's line down, as if its cable were pulled: whatever is sent either way is lost.
    ///
    /// # Panics
    /// If that fails.
    pub fn pull(&self, host: usize) {
        let (hub, line) = (self.hub(), line(host));
        ip(&["-n", &hub, "link", "set", "dev", &line, "down"])
            .unwrap_or_else(|why| panic!("taking {line} down: {why}"));
    }

    /// Takes down the host's own end of its line: the host knows at once that nothing can be sent.
    ///
    /// # Panics
    /// If that fails.
    pub fn unplug(&self, host: usize) {
        let name = &self.names[host];
        ip(&["-n", name, "link", "set", "dev", "eth", "down"])
            .unwrap_or_else(|why| panic!("taking {name} down: {why}"));
    }

    /// From now on the relay of a host's line loses everything; both ends stay up, and nobody is told.
    ///
    /// # Panics
    /// If its line is no relay.
    pub fn lose(&self, host: usize) {
        self.relays[host].cut();
    }
}

/// Serves as the agent of a host and ends this process, if that is what it was started for ([`Hosts::for_job`]).
pub fn serve_if_agent() {
    if std::env::var_os(AGENT).is_some() {
        std::process::exit(job::serve_as_agent());
    }
}

/// Runs something on a thread of its own in a namespace.
///
/// # Panics
/// If the namespace is gone, or `run` panics.
pub(crate) fn within<T: Send>(namespace: &str, run: impl FnOnce() -> T + Send) -> T {
    let file = File::open(Hosts::file(namespace)).expect("the namespace is there");
    let entered = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("whoever made it may enter");
        run()
    };
    std::thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.hub()]) {
            // One that was never made, or is gone.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// The processes that live in a namespace.
fn pids(name: &str) -> impl Iterator<Item = i32> {
    let pids = Command::new("ip").args(["netns", "pids", name]).output().expect("ip can be run").stdout;
    let pids = String::from_utf8_lossy(&pids).into_owned();
    pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>().into_iter()
}

fn address(last: usize) -> String {
    format!("10.77.0.{last}")
}

/// The hub's end of a host's line.
fn line(host: usize) -> String {
    format!("to-h{host}")
}

/// Removes the namespaces of test processes that do not live any more.
fn remove_left_behind() {
    let names = std::fs::read_dir(NAMESPACES)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    for name in names {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !PathBuf::from(format!("/proc/{process}")).exists()) {
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

/// Runs `ip`; an error is what it said.
fn ip(words: &[&str]) -> Result<(), String> {
    let Output { status, stderr, .. } =
        Command::new("ip").args(words).stdin(Stdio::null()).output().map_err(|error| format!("ip: {error}"))?;
    if status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&stderr).trim().to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    #[test]
    fn hosts_reach_each_other_and_leave_nothing() {
        let Some(hosts) = Hosts::make(2) else { return };
        let hears = |from: &str, to: &str| {
            let script = format!("exec 3<>/dev/tcp/{to}/9");
            let mut command = Command::new("timeout");
            let said = command.args(["5", "ip", "netns", "exec", from, "bash", "-c", &script]).output().unwrap();
            String::from_utf8_lossy(&said.stderr).into_owned()
        };
        // Somebody refuses: a host is there.
        assert!(hears(&hosts.names()[0], &hosts.address(1)).contains("refused"));
        assert!(hears(&hosts.hub(), &hosts.address(0)).contains("refused"));
        hosts.pull(1);
        assert!(!hears(&hosts.names()[0], &hosts.address(1)).contains("refused"));
        let (hub, name) = (Hosts::file(&hosts.hub()), Hosts::file(&hosts.names()[1]));
        assert!(hub.exists() && name.exists());
        drop(hosts);
        assert!(!hub.exists() && !name.exists());
    }

    #[test]
    fn a_relayed_line_is_late_and_loses_what_it_is_told_to() {
        let delay = Duration::from_millis(20);
        let weather = Weather { delay, jitter: Duration::from_millis(5), loss: 30.0 };
        let Some(hosts) = Hosts::make_in(2, Some(weather)) else { return };
        let socket =
            |host: usize| within(&hosts.names()[host], || UdpSocket::bind((hosts.address(host).as_str(), 0)).unwrap());
        let (here, there) = (socket(0), socket(1));
        let to = there.local_addr().unwrap();
        there.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        // Until the neighbour is known, whatever is sent waits for that: it may be lost, too.
        let mut word = [0; 8];
        let known = (0..20).any(|_| here.send_to(&[0; 8], to).is_ok() && there.recv(&mut word).is_ok());
        assert!(known);
        while there.recv(&mut word).is_ok() {}
        let begin = Instant::now();
        (1..=400u64).for_each(|number| assert_eq!(here.send_to(&number.to_le_bytes(), to).unwrap(), 8));
        let (mut last, mut count) = (0, 0);
        while there.recv(&mut word).is_ok() {
            assert!(begin.elapsed() >= 2 * delay, "two lines lie between");
            let number = u64::from_le_bytes(word);
            assert!(number > last, "{number} after {last}");
            (last, count) = (number, count + 1);
        }
        // 49 of a hundred come through.
        assert!((120..280).contains(&count), "{count} of 400");
        hosts.lose(1);
        here.send_to(&[1; 8], to).unwrap();
        assert!(there.recv(&mut word).is_err());
    }
}
