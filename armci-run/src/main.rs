//! `armci-run`: starts the ranks of a job, on this machine or on several hosts, passes on what they write, and ends
//! with them.
//!
//! Everything it does is [`armci_core::job::Job`]'s; this program only reads the command line.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use armci_core::job::{Bind, Hosts, Job, serve_as_agent};
use armci_core::{Error, Result};
use clap::{Args, Parser, ValueEnum};

/// Starts a program as the ranks of one job, on this machine or on several hosts.
///
/// The ranks end together: when one fails, a line on standard error says which and why, and the
/// others are ended. Ctrl-C ends them all, Ctrl-Z suspends them all. Rank 0 reads standard input
/// unless that is a terminal; the others have none.
#[derive(Parser)]
#[command(version, after_help = AFTER_HELP)]
struct CommandLine {
    /// How many ranks to start
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    ranks: usize,

    /// Split the ranks into K virtual nodes that share no memory, to test what crosses nodes
    #[arg(long, value_name = "K", default_value_t = 1)]
    nodes: usize,

    /// Whether each rank is tied to a core of its own
    #[arg(long, value_enum, default_value_t = Binding::None)]
    bind: Binding,

    /// Who serves requests while a rank computes: a thread of the rank, or nobody (sets
    /// ARMCI_PROGRESS) [default: thread]
    #[arg(long, value_enum)]
    progress: Option<Progress>,

    /// Start each line that a rank writes with `[rank] `, and write it whole
    #[arg(long)]
    tag_output: bool,

    /// Set a variable in the environment of every rank; without a value, as it is here. With hosts, ARMCI_*, PATH and
    /// LD_LIBRARY_PATH go along anyway
    #[arg(short = 'x', long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,

    #[command(flatten)]
    hosts: HostArgs,

    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Where the ranks run.
#[derive(Args)]
#[command(next_help_heading = "Several hosts")]
struct HostArgs {
    /// Start the ranks on these hosts, consecutive ones on each: a:2,b:2, or a,b for equally many
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    hosts: Option<String>,

    /// Read the hosts from a file: one a line, with its number of ranks (a 2); # begins a comment
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,

    /// The command that starts others on a host; HOST and what to start come behind it [default: ssh -o BatchMode=yes]
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    rsh: Option<String>,

    /// The address at which the hosts reach this one, or the interface that has it [default: they try all]
    #[arg(long, value_name = "ADDRESS|INTERFACE")]
    address: Option<String>,

    /// Where armci-run is on the hosts [default: where it is here]
    #[arg(long, value_name = "PATH")]
    agent_path: Option<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  armci-run -n 4 ./water --steps 10
  armci-run -n 2 --bind core --tag-output ./water
  armci-run -n 8 --hosts node1:4,node2:4 ./water      (each host is a node; ssh must ask for no password)
  armci-run -n 2 --hosts a,b --rsh 'ip netns exec' ./water      (network namespaces a and b count as hosts)
  ARMCI_PROTOCOL=am armci-run -n 4 ./water      (settings are environment variables)

With several hosts, armci-run is started on each by the remote shell (as armci-run --agent), connects back to this one by
TCP, and starts the ranks in the directory of the same name. Each host is told a secret over the remote shell's standard
input; whoever does not know it is not listened to. A host that is lost ends the job within ten seconds.

Exit code:
  0 if all ranks exited with 0; the first failed rank's code, or 128 + its signal;
  128 + the signal that ended armci-run; 127 if PROGRAM was not found, 126 if it cannot be executed.";

#[derive(Clone, Copy, ValueEnum)]
enum Binding {
    /// Ranks run where the scheduler puts them
    None,
    /// Each rank stays on one core
    Core,
}

#[derive(Clone, Copy, ValueEnum)]
enum Progress {
    /// A thread of the rank serves requests at any time
    Thread,
    /// Requests wait until the rank calls the library; for study
    None,
}

impl CommandLine {
    fn job(self) -> Result<Job> {
        let mut words = self.program.into_iter();
        // clap has seen to it that there is one.
        let program = words.next().unwrap_or_default();
        let bind = match self.bind {
            Binding::None => Bind::None,
            Binding::Core => Bind::Core,
        };
        let mut job =
            Job::new(self.ranks, program)?.nodes(self.nodes)?.args(words).bind(bind).tag_output(self.tag_output);
        if let Some(hosts) = self.hosts.read()? {
            job = job.hosts(hosts)?;
        }
        for variable in self.env {
            if let Some((name, value)) = set(variable)? {
                job = job.env(name, value);
            }
        }
        Ok(match self.progress {
            Some(Progress::Thread) => job.env("ARMCI_PROGRESS", "thread"),
            Some(Progress::None) => job.env("ARMCI_PROGRESS", "none"),
            None => job,
        })
    }
}

impl HostArgs {
    fn read(self) -> Result<Option<Hosts>> {
        let list = self.hosts.as_deref().map(Hosts::list);
        let file = self.hostfile.map(|path| {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Error::Argument(format!("the list of hosts {}: {error}", path.display())))?;
            Hosts::file(&text)
        });
        let Some(mut hosts) = list.or(file).transpose()? else {
            let without = [("--rsh", self.rsh.is_some()), ("--address", self.address.is_some())];
            let without = without.into_iter().chain([("--agent-path", self.agent_path.is_some())]);
            return match without.into_iter().find(|(_, given)| *given) {
                Some((option, _)) => {
                    Err(Error::Argument(format!("{option} is for --hosts or --hostfile, and there is neither")))
                }
                None => Ok(None),
            };
        };
        if let Some(rsh) = self.rsh {
            hosts = hosts.remote_shell(rsh.split_whitespace());
        }
        if let Some(path) = self.agent_path {
            hosts = hosts.agent([path, "--agent".into()]);
        }
        Ok(Some(match self.address {
            Some(address) => hosts.address(address),
            None => hosts,
        }))
    }
}

/// A variable and its value; nothing for one that is not set here.
fn set(variable: OsString) -> Result<Option<(OsString, OsString)>> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = variable.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => (bytes, std::env::var_os(&variable)),
    };
    if name.is_empty() {
        return Err(Error::Argument(format!("-x {variable:?} names no variable: it reads NAME or NAME=VALUE")));
    }
    Ok(value.map(|value| (OsString::from_vec(name.to_vec()), value)))
}

fn main() -> ExitCode {
    // Nobody's business but the launcher's on another host, so it is no option.
    if std::env::args_os().skip(1).eq(["--agent"]) {
        return ExitCode::from(u8::try_from(serve_as_agent()).unwrap_or(1));
    }
    match CommandLine::parse().job().and_then(|job| job.run()) {
        Ok(outcome) => ExitCode::from(u8::try_from(outcome.code).unwrap_or(1)),
        Err(error) => {
            // Without a reader of standard error, the exit code must do.
            let _ = writeln!(std::io::stderr(), "armci-run: {error}");
            ExitCode::FAILURE
        }
    }
}
